"""The plots of a report: which there are, what they show, and in which units. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from archiver.frontier.figures import STATES, Span
from archiver.report import drawing
from archiver.report.course import CLASSES, Course
from archiver.report.drawing import Bar, Series
from archiver.stats import duration, volume

MARKS = 5  # of the axis of time, at most
_MARK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY = 86_400
_UNITS = ((1, "second"), (60, "minute"), (3600, "hour"), (_DAY, "day"))


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with what a person must know to read it."""

    title: str
    note: str
    svg: str
    legend: tuple[tuple[str, str], ...] = ()  # (class of the colour, what it stands for)


def drawn(course: Course) -> Iterator[Plot]:
    """Every plot of which there is something to show."""
    if course.span.slices:
        yield _by_time(course)
        yield _received(course)
        yield Plot("Bytes by type", "What was received, and in how many captures.", _kinds(course))
    if course.hosts:
        yield Plot("Hosts", "What was received, in how many captures, and how many URLs failed.", _hosts(course))
    if course.span.slices:
        yield Plot("Response times", "Captures by the time from the request to the end of the answer.", _speeds(course))
    if course.depths:
        yield _depths(course)


def _by_time(course: Course) -> Plot:
    per, unit = _unit([sum(each) for each in zip(*course.statuses.values(), strict=True)], course.span.step)
    there = [(f"k{place}", name) for place, name in enumerate(CLASSES) if any(course.statuses[name])]
    series = [(colour, [value * per for value in course.statuses[name]]) for colour, name in there]
    title = "Status by time"
    note = f"Captures a {unit} by response code, and URLs of which no answer came. {_scale(course.span)}"
    return Plot(title, note, _timed(title, course, series, _number), tuple(there))


def _received(course: Course) -> Plot:
    title = "Rate"
    series = [("k0", [value / course.span.step for value in course.received])]
    note = f"Bytes received a second. {_scale(course.span)}"
    return Plot(title, note, _timed(title, course, series, lambda value: volume(round(value)).replace(".0 ", " ")))


def _timed(title: str, course: Course, series: Sequence[Series], written: Callable[[float], str]) -> str:
    step = course.span.step
    pauses = [(first, length, f"nothing for {duration(length * step)}") for first, length in course.pauses]
    return drawing.columns(title, series, list(marks(course.span)), written, pauses)


def _scale(span: Span) -> str:
    day = datetime.fromtimestamp(span.begins, UTC)
    return f"Each column is {_length(span.step)}, from {day:%Y-%m-%d %H:%M:%S} UTC."


def _length(seconds: int) -> str:
    size, unit = next((size, unit) for size, unit in reversed(_UNITS) if seconds % size == 0)
    count = seconds // size
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _unit(counts: Sequence[int], step: int) -> tuple[float, str]:
    """By what a count of a slice is to be multiplied, and the unit of time for which it stands then."""
    fastest = max(counts, default=0) / step
    size, unit = next(((size, unit) for size, unit in _UNITS if fastest * size >= 1), _UNITS[-1])
    return size / step, unit


def marks(span: Span) -> Iterator[tuple[float, str]]:
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


def _kinds(course: Course) -> str:
    return drawing.bars(
        "Bytes by type", [Bar(each.name, each.received, _came(each.captures, each.received)) for each in course.kinds]
    )


def _hosts(course: Course) -> str:
    rows = [
        Bar(
            each.host,
            None if each.several else each.received,
            _came(each.captures, each.received) + (f" · {each.failed:,} failed" if each.failed else ""),
        )
        for each in course.hosts
    ]
    return drawing.bars("Hosts", rows)


def _came(captures: int, received: int) -> str:
    return f"{volume(received)} · {captures:,} capture{'' if captures == 1 else 's'}"


def _speeds(course: Course) -> str:
    last = max((place for place, (_, count) in enumerate(course.speeds) if count), default=0)
    return drawing.bars("Response times", [Bar(name, count, f"{count:,}") for name, count in course.speeds[: last + 1]])


def _depths(course: Course) -> Plot:
    there = [(f"k{place}", name) for place, name in _STATE_COLOURS if any(states[name] for _, states in course.depths)]
    series = [(colour, [states[name] for _, states in course.depths]) for colour, name in there]
    places = [(place + 0.5, depth) for place, (depth, _) in enumerate(course.depths)]
    svg = drawing.columns("Depth", series, places, _number)
    return Plot("Depth", "URLs by the number of links from a seed, and what became of them.", svg, tuple(there))


_STATE_COLOURS = tuple(zip((0, 3, 2, 5, 4), STATES, strict=True))
