"""The course of a crawl as the plots show it, in values small enough for a page, however long the crawl was."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from archiver.frontier import figures
from archiver.frontier.account import Totals
from archiver.frontier.figures import DEEPEST, SPEEDS, STATES, Span
from archiver.stats import duration, printable

HOSTS = 12  # named in the plot; the others are one bar
SHORTEST_PAUSE = 3  # slices without an answer that are shown as a pause
NO_ANSWER = "no answer"
CLASSES = ("2xx", "3xx", "4xx", "5xx", "other", NO_ANSWER)
_NAMES = {2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx", 0: "other"}


class Kind(NamedTuple):
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
class Course:
    """Everything that is plotted."""

    span: Span
    statuses: dict[str, list[int]]  # class → for each slice; captures, and URLs of which no answer came
    received: list[int]  # for each slice
    pauses: tuple[tuple[int, int], ...]  # (first slice, slices) in which nothing came
    kinds: tuple[Kind, ...]  # most bytes first
    hosts: tuple[HostShare, ...]  # most bytes first; the last may be all others
    speeds: tuple[tuple[str, int], ...]  # (how long, captures)
    depths: tuple[tuple[str, dict[str, int]], ...]  # (depth, state → URLs)


def gathered(db: sqlite3.Connection, totals: Totals) -> Course:
    """The course of the crawl behind *db*."""
    span = Span.of(totals)
    statuses = {name: [0] * span.slices for name in CLASSES}
    received = [0] * span.slices
    speeds = [0] * (len(SPEEDS) + 1)
    for each in figures.answered(db, span):
        statuses[_NAMES[each.status]][each.slice] += each.captures
        received[each.slice] += each.received
        speeds[each.speed] += each.captures
    for place, urls in figures.failed(db, span) if span.slices else ():
        statuses[NO_ANSWER][min(max(place, 0), span.slices - 1)] += urls
    return Course(
        span,
        statuses,
        received,
        tuple(_pauses([sum(column) for column in zip(*statuses.values(), strict=True)])),
        tuple(Kind(*kind) for kind in figures.kinds(db)),
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
            printable(row.key) or f"{others} other host{'' if others == 1 else 's'}",
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
