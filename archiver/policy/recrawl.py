"""When a recrawl asks for a page again: by the dates in sitemaps, and by how often the page changed. Pure.

In doubt it asks. A sitemap is not trusted if its dates are all within a day, as when a program writes the time of its
own run, or if one is more than a day in the future. Dates in sitemaps may be local times, so a page must be a day older
than its capture.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

DAY = 86_400.0
LONGEST = 180 * DAY  # without a request, whatever the history says
MOST_DATES = 500_000  # pages whose dates are kept, in some 100 MB; any further page is asked for
NEVER_OLD = float("inf")


def are_trusted(dates: Collection[float], now: float) -> bool:
    """Return True if the *dates* of one sitemap, which was read at *now*, tell pages apart."""
    return bool(dates) and max(dates) - min(dates) > DAY and max(dates) <= now + DAY


class SitemapDates:
    """The dates of the last modification of pages, from all sitemaps of a crawl; several threads may use it."""

    def __init__(self) -> None:
        self._latest: dict[str, float] = {}

    def add(self, dates: Mapping[str, tuple[float, float]], now: float) -> None:
        """Add the entries of one sitemap: the first and the last moment that the date of each page may mean."""
        trusted = are_trusted([first for first, _ in dates.values()], now)
        for address, (_, last) in dates.items():
            if address in self._latest or len(self._latest) < MOST_DATES:
                self._latest[address] = max(self._latest.get(address, 0.0), last if trusted else NEVER_OLD)

    def modified(self, address: str) -> float:
        """Return the latest moment at which *address* was modified; infinity if no sitemap says so reliably."""
        return self._latest.get(address, NEVER_OLD)


def is_older(modified: float, captured: float) -> bool:
    """Return True if a page that was *modified* then has certainly not changed since it was *captured*."""
    return modified + DAY < captured


class PastVisit(NamedTuple):
    """One visit of a page in an earlier crawl."""

    time: float  # seconds since the epoch
    content: tuple[int, str]  # status and digest


def interval_of_change(visits: Sequence[PastVisit]) -> float:
    """Return the mean seconds between two changes in *visits*, newest first; the whole time if nothing changed.

    Several changes between two visits look like one.
    """
    if len(visits) < 2:
        return 0.0
    changes = sum(new.content != old.content for new, old in pairwise(visits))
    return max(0.0, visits[0].time - visits[-1].time) / max(changes, 1)


def is_due(visits: Sequence[PastVisit], now: float) -> bool:
    """Return True if a page with these *visits*, newest first, is asked for again at *now*.

    That is when half of its mean interval of change has passed. Fewer than two visits, or dates that run backwards, say
    nothing.
    """
    times = [now, *(visit.time for visit in visits)]
    if len(visits) < 2 or any(new < old for new, old in pairwise(times)):
        return True
    return now - visits[0].time >= min(interval_of_change(visits) / 2, LONGEST)
