"""The plots of a report as SVG: their data, titles, units, and how they are drawn.

The data are small enough for a page, however long the crawl was. Plots are drawn for the width of a phone and scale.
All text is escaped here. Colours are the classes `k0` to `k5`, so that the page can choose them for light and dark.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from archiver import humanize
from archiver.frontier import figures
from archiver.frontier.connection import Reader
from archiver.frontier.figures import SPEEDS, TimeSlices
from archiver.frontier.gathered import DEEPEST, STATES
from archiver.frontier.totals import Totals
from archiver.humanize import duration, printable, volume

WIDTH, LINE, LETTER = 480, 16, 8.0  # pixels; the letter width is an estimate for phones
TICKS = 4  # per axis, at most, besides the one at zero
WIDEST = 72  # pixels of a column
_LEFT, _RIGHT, _TOP, _BOTTOM, _HIGH = 58, 12, 28, 26, 174

Series = tuple[str, Sequence[float]]  # class of its colour, and a value for each column


@dataclass(frozen=True, slots=True)
class PlotBar:
    """A bar with the text above it."""

    name: str
    size: float | None  # None: without a bar, because it is not comparable
    words: str


def ticks(highest: float, *, whole: bool = False) -> list[float]:
    """Return at least two round numbers from zero to *highest* or more; integers if *whole*."""
    highest = max(highest, 1.0 if whole else 1e-9)
    rough = max(highest / TICKS, 1.0 if whole else 0.0)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]


def columns(
    title: str,
    series: Sequence[Series],
    marks: Sequence[tuple[float, str]],
    written: Callable[[float], str],
    pauses: Sequence[tuple[int, int, str]] = (),
    unit: str = "",
) -> str:
    """Draw stacked columns. *marks* are (position among the columns, text) below them, *unit* is that of the values.

    *pauses* are (first column, columns, text) without data; *written* formats a value of the axis.
    """
    count = max(len(values) for _, values in series)
    heights = [sum(each) for each in zip(*(values for _, values in series), strict=True)]
    rows = ticks(max(heights, default=1) or 1, whole=all(map(_is_whole, heights)))
    wide = (WIDTH - _LEFT - _RIGHT) / max(count, 1)
    floor = _TOP + _HIGH
    parts = [_text(0, LINE - 4, unit, kind="soft")] if unit else []
    for row in rows:
        y = floor - row / rows[-1] * _HIGH
        parts.append(f'<path class="{"axis" if row == 0 else "grid"}" d="M{_LEFT},{y:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 6, y + 4, written(row), "end"))
    for first, length, word in pauses:
        x, across = _LEFT + first * wide, length * wide
        parts.append(f'<rect class="pause" x="{x:.1f}" y="{_TOP}" width="{across:.1f}" height="{_HIGH}"/>')
        if across > (len(word) + 1) * LETTER:
            parts.append(_text(x + across / 2, _TOP + LINE, word, "middle", "soft"))
    parts += _stacks(series, wide, rows[-1])
    for place, word in marks:
        half = len(word) * LETTER / 2
        x = min(max(_LEFT + place * wide, half), WIDTH - half)
        parts.append(_text(x, floor + 18, word, "middle"))
    return _picture(title, floor + _BOTTOM, parts)


def _is_whole(value: float) -> bool:
    return value == int(value)


def _stacks(series: Sequence[Series], wide: float, highest: float) -> list[str]:
    """Return one path per colour."""
    gap = min(1.0, wide / 6) if wide < 20 else max(wide / 6, wide - WIDEST)
    heights = [0.0] * max(len(values) for _, values in series)
    drawn = []
    for colour, values in series:
        path = []
        for place, value in enumerate(values):
            if not value:
                continue
            low, heights[place] = heights[place], heights[place] + value
            x, y = _LEFT + place * wide + gap / 2, _TOP + _HIGH * (1 - heights[place] / highest)
            high = max(_HIGH * value / highest, 0.8 if not low else 0.0)
            path.append(f"M{x:.1f},{y:.1f}h{wide - gap:.1f}v{high:.1f}h-{wide - gap:.1f}z")
        if path:
            drawn.append(f'<path class="{colour}" d="{"".join(path)}"/>')
    return drawn


def bars(title: str, rows: Sequence[PlotBar]) -> str:
    """Draw a bar for each of *rows*, with its name and text above it."""
    most = max((row.size or 0 for row in rows), default=0) or 1
    high, parts = 30, []
    for place, row in enumerate(rows):
        y = place * high + 14
        fits = int((WIDTH - (len(row.words) + 2) * LETTER) / LETTER)
        parts.append(_text(0, y, _cut(row.name, fits), full=row.name))
        parts.append(_text(WIDTH, y, row.words, "end", "soft"))
        if row.size is None:
            continue
        wide = max(WIDTH * row.size / most, 1 if row.size else 0)
        parts.append(f'<rect class="track" x="0" y="{y + 4}" width="{WIDTH}" height="7" rx="2"/>')
        parts.append(f'<rect class="k0" x="0" y="{y + 4}" width="{wide:.1f}" height="7" rx="2"/>')
    return _picture(title, len(rows) * high + 4, parts)


def _cut(name: str, fits: int) -> str:
    """Shorten *name* in the middle if it is too long."""
    if len(name) <= fits:
        return name
    half = max(fits // 2, 2)
    return f"{name[:half]}…{name[1 - half :]}"


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "", full: str = "") -> str:
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    kind = f' class="{kind}"' if kind else ""
    hint = f"<title>{escape(full)}</title>" if full and full != words else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{where}{kind}>{escape(words)}{hint}</text>'


def _picture(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


HOSTS = 12  # shown by name; the others share one bar
SHORTEST_PAUSE = 3  # empty slices in a row that are shown as a pause
NO_RESPONSE = "no response"
CLASSES = ("2xx", "3xx", "4xx", "5xx", "other", NO_RESPONSE)
_NAMES = {2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx", 0: "other"}


class MediaShare(NamedTuple):
    """The captures of one group of media types."""

    name: str
    captures: int
    received: int


class HostShare(NamedTuple):
    """The captures of one host."""

    host: str
    captures: int
    received: int
    failed: int
    other: bool  # all other hosts together


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """The data of all plots."""

    span: TimeSlices
    statuses: dict[str, list[int]]  # status class → captures per slice; also URLs without a response
    received: list[int]  # bytes per slice
    pauses: tuple[tuple[int, int], ...]  # (first slice, number of slices) without captures
    kinds: tuple[MediaShare, ...]  # most bytes first
    hosts: tuple[HostShare, ...]  # most bytes first; the last may be all others
    speeds: tuple[tuple[str, int], ...]  # (response time, captures)
    depths: tuple[tuple[str, dict[str, int]], ...]  # (depth, state → URLs)


def read_time_series(db: Reader, totals: Totals) -> TimeSeries:
    """Read the time series of the crawl in *db*."""
    span = TimeSlices.of(totals)
    statuses = {name: [0] * span.slices for name in CLASSES}
    received = [0] * span.slices
    speeds = [0] * (len(SPEEDS) + 1)
    for each in figures.answered(db, span):
        statuses[_NAMES[each.status]][each.slice] += each.captures
        received[each.slice] += each.received
        speeds[each.speed] += each.captures
    for place, urls in figures.failed(db, span) if span.slices else ():
        statuses[NO_RESPONSE][min(max(place, 0), span.slices - 1)] += urls
    return TimeSeries(
        span,
        statuses,
        received,
        tuple(_pauses([sum(column) for column in zip(*statuses.values(), strict=True)])),
        tuple(MediaShare(*kind) for kind in figures.kinds(db)),
        _hosts(db),
        tuple(zip(_SPEED_NAMES, speeds, strict=True)),
        _depths(db),
    )


def _pauses(columns: list[int]) -> Iterable[tuple[int, int]]:
    begun = None
    for place, count in enumerate([*columns, 1]):
        if not count:
            begun = place if begun is None else begun
        elif begun is not None:
            if place - begun >= SHORTEST_PAUSE:
                yield begun, place - begun
            begun = None


def _hosts(db: Reader) -> tuple[HostShare, ...]:
    rows = figures.largest_hosts(db, HOSTS)
    others = figures.host_count(db) - HOSTS
    return tuple(
        HostShare(
            printable(row.key) or humanize.count(others, "other host"),
            row.captures,
            row.received,
            row.failed,
            other=not row.key,
        )
        for row in rows
    )


def _depths(db: Reader) -> tuple[tuple[str, dict[str, int]], ...]:
    found: dict[int, dict[str, int]] = {}
    for depth, state, urls in figures.depths(db):
        found.setdefault(depth, dict.fromkeys(STATES, 0))[state] = urls
    return tuple((f"{depth}" if depth < DEEPEST else f"≥{DEEPEST}", found[depth]) for depth in sorted(found))


def _seconds(bound: float) -> str:
    return f"{bound * 1000:.0f} ms" if bound < 1 else duration(bound).replace(".0", "")


_SPEED_NAMES = (*(f"≤ {_seconds(bound)}" for bound in SPEEDS), f"> {_seconds(SPEEDS[-1])}")

MARKS = 5  # of the time axis, at most
_MARK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY = 86_400
_UNITS = ((1, "second"), (60, "minute"), (3600, "hour"), (_DAY, "day"))


@dataclass(frozen=True, slots=True)
class ReportPlot:
    """A plot with its title, note and legend."""

    title: str
    note: str
    svg: str
    legend: tuple[tuple[str, str], ...] = ()  # (CSS class, name)


def draw_plots(data: TimeSeries) -> Iterator[ReportPlot]:
    """Yield each plot that has data."""
    if data.span.slices:
        yield _by_time(data)
        yield _received(data)
        yield ReportPlot("Bytes by media type", "Bytes received and number of captures per media type.", _kinds(data))
    if data.hosts:
        yield ReportPlot("Hosts", "Bytes received, captures and failed URLs per host.", _host_plot(data))
    if data.span.slices:
        yield ReportPlot(
            "Response times", "Captures by the time from the request to the end of the response.", _speeds(data)
        )
    if data.depths:
        yield _depth_plot(data)


def _by_time(data: TimeSeries) -> ReportPlot:
    per, unit = _unit([sum(each) for each in zip(*data.statuses.values(), strict=True)], data.span.step)
    there = [(f"k{place}", name) for place, name in enumerate(CLASSES) if any(data.statuses[name])]
    series = [(colour, [value * per for value in data.statuses[name]]) for colour, name in there]
    title = "Responses over time"
    note = f"Captures per {unit} by status class, and URLs without a response. {_scale(data.span)}"
    return ReportPlot(title, note, _timed(title, data, series, _number, f"captures per {unit}"), tuple(there))


def _received(data: TimeSeries) -> ReportPlot:
    title = "Transfer rate"
    series = [("k0", [value / data.span.step for value in data.received])]
    note = f"Bytes received per second. {_scale(data.span)}"
    drawn = _timed(title, data, series, lambda value: volume(round(value)).replace(".0 ", " "), "bytes per second")
    return ReportPlot(title, note, drawn)


def _timed(title: str, data: TimeSeries, series: Sequence[Series], written: Callable[[float], str], unit: str) -> str:
    step = data.span.step
    pauses = [(first, length, f"idle for {duration(length * step)}") for first, length in data.pauses]
    return columns(title, series, list(marks(data.span)), written, pauses, unit)


def _scale(span: TimeSlices) -> str:
    day = datetime.fromtimestamp(span.begins, UTC)
    return f"Each column is {_length(span.step)}, starting at {day:%Y-%m-%d %H:%M:%S} UTC."


def _length(seconds: int) -> str:
    size, unit = next((size, unit) for size, unit in reversed(_UNITS) if seconds % size == 0)
    return humanize.count(seconds // size, unit)


def _unit(counts: Sequence[int], step: int) -> tuple[float, str]:
    """Return the factor for the count of one slice, and the unit of time that it gives."""
    fastest = max(counts, default=0) / step
    size, unit = next(((size, unit) for size, unit in _UNITS if fastest * size >= 1), _UNITS[-1])
    return size / step, unit


def marks(span: TimeSlices) -> Iterator[tuple[float, str]]:
    """Yield (position among the slices, time of day or date) for a few round times."""
    length = span.step * span.slices
    days = max(1, -(-length // (_DAY * MARKS)))
    every = next((step for step in _MARK_STEPS if length // step < MARKS), days * _DAY)
    first = -(-span.begins // every) * every
    for moment in range(first, span.begins + length + 1, every):
        yield (moment - span.begins) / span.step, _mark(datetime.fromtimestamp(moment, UTC), every, length)


def _mark(moment: datetime, every: int, length: int) -> str:
    if every >= _DAY:
        return f"{moment.day} {moment:%b}" if length < 300 * _DAY else f"{moment:%b %Y}"
    return f"{moment:%H:%M:%S}" if every < 60 else f"{moment:%H:%M}"


def _number(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _kinds(data: TimeSeries) -> str:
    rows = [PlotBar(each.name, each.received, _came(each.captures, each.received)) for each in data.kinds]
    return bars("Bytes by media type", rows)


def _host_plot(data: TimeSeries) -> str:
    rows = [
        PlotBar(
            each.host,
            None if each.other else each.received,
            _came(each.captures, each.received) + (f" · {each.failed:,} failed" if each.failed else ""),
        )
        for each in data.hosts
    ]
    return bars("Hosts", rows)


def _came(captures: int, received: int) -> str:
    return f"{volume(received)} · {captures:,} {humanize.plural(captures, 'capture')}"


def _speeds(data: TimeSeries) -> str:
    last = max((place for place, (_, count) in enumerate(data.speeds) if count), default=0)
    return bars("Response times", [PlotBar(name, count, f"{count:,}") for name, count in data.speeds[: last + 1]])


def _depth_plot(data: TimeSeries) -> ReportPlot:
    there = [(f"k{place}", name) for place, name in _STATE_COLOURS if any(states[name] for _, states in data.depths)]
    series = [(colour, [states[name] for _, states in data.depths]) for colour, name in there]
    places = [(place + 0.5, depth) for place, (depth, _) in enumerate(data.depths)]
    drawn = columns("Depth", series, places, _number, unit="URLs")
    return ReportPlot("Depth", "URLs by number of links from a seed, and by state.", drawn, tuple(there))


_STATE_COLOURS = tuple(zip((0, 3, 2, 5, 4), STATES, strict=True))
