"""The numbers behind each plot of a report as a table, for people who do not see the plot, and for exact values."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from archiver.humanize import volume
from archiver.tools.report.plots import CLASSES, TimeSeries

NumberTable = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]  # names of columns, and rows


def numbers_of(title: str, data: TimeSeries) -> NumberTable:
    """Return the numbers of the plot *title*. Times without a capture are left out."""
    match title:
        case "Responses over time":
            return _by_time(data)
        case "Transfer rate":
            return ("time (UTC)", "bytes per second"), list(_received(data))
        case "Bytes by media type":
            rows = [(each.name, volume(each.received), f"{each.captures:,}") for each in data.kinds]
            return ("media type", "received", "captures"), rows
        case "Hosts":
            return ("host", "received", "captures", "failed"), [
                (each.host, volume(each.received), f"{each.captures:,}", f"{each.failed:,}") for each in data.hosts
            ]
        case "Response times":
            return ("time", "captures"), [(name, f"{captures:,}") for name, captures in data.speeds]
        case "Depth":
            return _depths(data)
    return (), []


def _moment(data: TimeSeries, place: int) -> str:
    return f"{datetime.fromtimestamp(data.span.begins + place * data.span.step, UTC):%Y-%m-%d %H:%M:%S}"


def _by_time(data: TimeSeries) -> NumberTable:
    there = [name for name in CLASSES if any(data.statuses[name])]
    rows = [
        (_moment(data, place), *(f"{data.statuses[name][place]:,}" for name in there))
        for place in range(data.span.slices)
        if any(data.statuses[name][place] for name in there)
    ]
    return ("time (UTC)", *there), rows


def _received(data: TimeSeries) -> Iterator[tuple[str, ...]]:
    for place, received in enumerate(data.received):
        if received:
            yield _moment(data, place), volume(round(received / data.span.step))


def _depths(data: TimeSeries) -> NumberTable:
    there = list(next(iter(data.depths))[1])
    rows = [(depth, *(f"{states[name]:,}" for name in there)) for depth, states in data.depths]
    return ("links from a seed", *there), rows


def summary_of(title: str, data: TimeSeries) -> str:
    """Return what the plot *title* shows, in a sentence; "" if its numbers say it as shortly."""
    if title == "Responses over time":
        sums = [(name, sum(data.statuses[name])) for name in CLASSES]
        return f"In all {', '.join(f'{total:,} {name}' for name, total in sums if total)}."
    if title == "Transfer rate" and any(data.received):
        most = max(range(len(data.received)), key=data.received.__getitem__)
        rate = volume(round(data.received[most] / data.span.step))
        return f"In all {volume(sum(data.received))}; at most {rate} per second, at {_moment(data, most)} UTC."
    return ""
