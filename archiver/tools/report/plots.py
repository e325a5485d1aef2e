"""The course of a crawl as the plots show it, in values small enough for a page, however long the crawl was.

The plots of a report: which there are, what they show, and in which units. Pure.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from archiver import humanize
from archiver.frontier import figures
from archiver.frontier.figures import DEEPEST, SPEEDS, STATES, TimeSlices
from archiver.frontier.totals import Totals
from archiver.humanize import duration, printable, volume
from archiver.tools.report import svg as drawing
from archiver.tools.report.svg import PlotBar, Series

HOSTS = 12  # named in the plot; the others are one bar
SHORTEST_PAUSE = 3  # slices without an answer that are shown as a pause
NO_ANSWER = "no answer"
CLASSES = ("2xx", "3xx", "4xx", "5xx", "other", NO_ANSWER)
_NAMES = {2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx", 0: "other"}


class MediaShare(NamedTuple):
    """What came of one kind of media types."""

    name: str
    captures: int
    received: int


class HostShare(NamedTuple):
    """What came of one host."""

    host: str
    captures: int
    received: int
    failed: int
    several: bool  # all hosts that are not named


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Everything that is plotted."""

    span: TimeSlices
    statuses: dict[str, list[int]]  # class → for each slice; captures, and URLs of which no answer came
    received: list[int]  # for each slice
    pauses: tuple[tuple[int, int], ...]  # (first slice, slices) in which nothing came
    kinds: tuple[MediaShare, ...]  # most bytes first
    hosts: tuple[HostShare, ...]  # most bytes first; the last may be all others
    speeds: tuple[tuple[str, int], ...]  # (how long, captures)
    depths: tuple[tuple[str, dict[str, int]], ...]  # (depth, state → URLs)


def gathered(db: sqlite3.Connection, totals: Totals) -> TimeSeries:
    """The course of the crawl behind *db*."""
    span = TimeSlices.of(totals)
    statuses = {name: [0] * span.slices for name in CLASSES}
    received = [0] * span.slices
    speeds = [0] * (len(SPEEDS) + 1)
    for each in figures.answered(db, span):
        statuses[_NAMES[each.status]][each.slice] += each.captures
        received[each.slice] += each.received
        speeds[each.speed] += each.captures
    for place, urls in figures.failed(db, span) if span.slices else ():
        statuses[NO_ANSWER][min(max(place, 0), span.slices - 1)] += urls
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


def _hosts(db: sqlite3.Connection) -> tuple[HostShare, ...]:
    rows = figures.largest_hosts(db, HOSTS)
    others = figures.host_count(db) - HOSTS
    return tuple(
        HostShare(
            printable(row.key) or humanize.count(others, "other host"),
            row.captures,
            row.received,
            row.failed,
            several=not row.key,
        )
        for row in rows
    )


def _depths(db: sqlite3.Connection) -> tuple[tuple[str, dict[str, int]], ...]:
    found: dict[int, dict[str, int]] = {}
    for depth, state, urls in figures.depths(db):
        found.setdefault(depth, dict.fromkeys(STATES, 0))[state] = urls
    return tuple((f"{depth}" if depth < DEEPEST else f"≥{DEEPEST}", found[depth]) for depth in sorted(found))


def _seconds(bound: float) -> str:
    return f"{bound * 1000:.0f} ms" if bound < 1 else duration(bound).replace(".0", "")


_SPEED_NAMES = (*(f"≤ {_seconds(bound)}" for bound in SPEEDS), f"> {_seconds(SPEEDS[-1])}")

MARKS = 5  # of the axis of time, at most
_MARK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY = 86_400
_UNITS = ((1, "second"), (60, "minute"), (3600, "hour"), (_DAY, "day"))


@dataclass(frozen=True, slots=True)
class ReportPlot:
    """A plot with what a person must know to read it."""

    title: str
    note: str
    svg: str
    legend: tuple[tuple[str, str], ...] = ()  # (class of the colour, what it stands for)


def drawn(course: TimeSeries) -> Iterator[ReportPlot]:
    """Every plot of which there is something to show."""
    if course.span.slices:
        yield _by_time(course)
        yield _received(course)
        yield ReportPlot("Bytes by type", "What was received, and in how many captures.", _kinds(course))
    if course.hosts:
        yield ReportPlot(
            "Hosts", "What was received, in how many captures, and how many URLs failed.", _host_plot(course)
        )
    if course.span.slices:
        yield ReportPlot(
            "Response times", "Captures by the time from the request to the end of the answer.", _speeds(course)
        )
    if course.depths:
        yield _depth_plot(course)


def _by_time(course: TimeSeries) -> ReportPlot:
    per, unit = _unit([sum(each) for each in zip(*course.statuses.values(), strict=True)], course.span.step)
    there = [(f"k{place}", name) for place, name in enumerate(CLASSES) if any(course.statuses[name])]
    series = [(colour, [value * per for value in course.statuses[name]]) for colour, name in there]
    title = "Status by time"
    note = f"Captures a {unit} by response code, and URLs of which no answer came. {_scale(course.span)}"
    return ReportPlot(title, note, _timed(title, course, series, _number), tuple(there))


def _received(course: TimeSeries) -> ReportPlot:
    title = "Rate"
    series = [("k0", [value / course.span.step for value in course.received])]
    note = f"Bytes received a second. {_scale(course.span)}"
    return ReportPlot(
        title, note, _timed(title, course, series, lambda value: volume(round(value)).replace(".0 ", " "))
    )


def _timed(title: str, course: TimeSeries, series: Sequence[Series], written: Callable[[float], str]) -> str:
    step = course.span.step
    pauses = [(first, length, f"nothing for {duration(length * step)}") for first, length in course.pauses]
    return drawing.columns(title, series, list(marks(course.span)), written, pauses)


def _scale(span: TimeSlices) -> str:
    day = datetime.fromtimestamp(span.begins, UTC)
    return f"Each column is {_length(span.step)}, from {day:%Y-%m-%d %H:%M:%S} UTC."


def _length(seconds: int) -> str:
    size, unit = next((size, unit) for size, unit in reversed(_UNITS) if seconds % size == 0)
    return humanize.count(seconds // size, unit)


def _unit(counts: Sequence[int], step: int) -> tuple[float, str]:
    """By what a count of a slice is to be multiplied, and the unit of time for which it stands then."""
    fastest = max(counts, default=0) / step
    size, unit = next(((size, unit) for size, unit in _UNITS if fastest * size >= 1), _UNITS[-1])
    return size / step, unit


def marks(span: TimeSlices) -> Iterator[tuple[float, str]]:
    """(place among the slices, time of the day or date): some round moments."""
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


def _kinds(course: TimeSeries) -> str:
    return drawing.bars(
        "Bytes by type",
        [PlotBar(each.name, each.received, _came(each.captures, each.received)) for each in course.kinds],
    )


def _host_plot(course: TimeSeries) -> str:
    rows = [
        PlotBar(
            each.host,
            None if each.several else each.received,
            _came(each.captures, each.received) + (f" · {each.failed:,} failed" if each.failed else ""),
        )
        for each in course.hosts
    ]
    return drawing.bars("Hosts", rows)


def _came(captures: int, received: int) -> str:
    return f"{volume(received)} · {captures:,} {humanize.plural(captures, 'capture')}"


def _speeds(course: TimeSeries) -> str:
    last = max((place for place, (_, count) in enumerate(course.speeds) if count), default=0)
    return drawing.bars(
        "Response times", [PlotBar(name, count, f"{count:,}") for name, count in course.speeds[: last + 1]]
    )


def _depth_plot(course: TimeSeries) -> ReportPlot:
    there = [(f"k{place}", name) for place, name in _STATE_COLOURS if any(states[name] for _, states in course.depths)]
    series = [(colour, [states[name] for _, states in course.depths]) for colour, name in there]
    places = [(place + 0.5, depth) for place, (depth, _) in enumerate(course.depths)]
    svg = drawing.columns("Depth", series, places, _number)
    return ReportPlot("Depth", "URLs by the number of links from a seed, and what became of them.", svg, tuple(there))


_STATE_COLOURS = tuple(zip((0, 3, 2, 5, 4), STATES, strict=True))
