"""Limits: how often a host may be asked, and how much it may be asked for in the whole crawl. Pure.

In any window of `interval` seconds at most `starts` requests begin, however long each takes. Starts are spread evenly
over the interval, which is kinder to a server than a burst. A late start may be made up for, by half a step at most, so
that a busy machine still reaches the rate.

The quota of a host is a number of URLs and of bytes. A host is a row of the frontier: scheme and authority. Once it
reaches its quota we ask it only for a robots.txt that another host needs; its URLs wait until the quota is raised. The
quota counts what --max-urls and --max-bytes count, over all runs: URLs visited at least once without robots.txt, and
every byte of every response.
"""

from collections import deque
from dataclasses import dataclass

from archiver.config.option_types import Rate
from archiver.config.settings import LimitSettings

SLACK = 0.02  # of the interval: what scheduler and network may shift between our start and the server's clock …
LEAST_SLACK = 0.01  # … in seconds, however short the interval is


@dataclass(frozen=True, slots=True)
class Politeness:
    """The limits on a group of hosts."""

    rate: Rate
    concurrency: int
    first: int = 0  # requests at once to begin with, where nothing is known; 0: all that there may be
    group: str = ""  # key of the group; empty: the host is alone
    by_address: str = ""  # if not empty: shared with hosts at the same address that have the same word here


@dataclass(frozen=True, slots=True)
class GlobalLimits:
    """The limits on all hosts together; 0 is no limit."""

    rate: Rate = Rate(0)
    bandwidth: int = 0  # bytes a second


UNLIMITED = GlobalLimits()


class RateLimiter:
    """Limits how often requests start."""

    def __init__(self, rate: Rate, *, not_before: float = 0.0, delay: float = 0.0) -> None:
        self._window = rate.interval + max(rate.interval * SLACK, LEAST_SLACK) if rate.starts else 0.0
        self._step = self._window / rate.starts if rate.starts else 0.0
        self._delay = delay
        self._learned = 0.0
        self._not_before = not_before
        self._starts: deque[float] = deque(maxlen=rate.starts or 1)
        self._beat = float("-inf")  # when the latest start was due, at most half a step before it came

    @property
    def starts(self) -> tuple[float, ...]:
        """The latest starts that count."""
        return tuple(self._starts)

    @property
    def gap(self) -> float:
        """Seconds from one start to the next; 0 without a limit."""
        return max(self._step, self._delay, self._learned)

    def limit_to(self, rate: float) -> None:
        """Permit at most *rate* starts a second from now on, if that is less than before (infinity: no limit).

        The distance to the latest start counts too, so a lowered rate never lets two requests through together.
        """
        self._learned = 1 / rate

    def slow_down(self, delay: float) -> None:
        """Keep at least *delay* seconds between two starts (Crawl-delay), the latest one included."""
        self._delay = max(self._delay, delay)

    def next(self, now: float) -> float:
        """Return when a request may start, not before *now*."""
        if not self.gap:
            return max(now, self._not_before)
        earliest = max(now, self._not_before, self._beat + self._step)
        if self._starts:
            earliest = max(earliest, self._starts[-1] + max(self._delay, self._learned))
            if len(self._starts) == self._starts.maxlen:
                earliest = max(earliest, self._starts[0] + self._window)
        return earliest

    def start(self, now: float) -> float:
        """Start a request and return *now*; or, if none may start, return the time at which to ask again."""
        earliest = self.next(now)
        if earliest <= now:
            self.count(now)
        return earliest

    def count(self, now: float) -> None:
        """Count a request that has started at *now*, even if it came too early."""
        self._starts.append(now)
        self._beat = max(self._beat + self._step, now - self._step / 2)

    def inherit(self, other: "RateLimiter") -> None:
        """Count the latest starts of *other* too, because its host moves here."""
        for start in other.starts:
            self.count(start)

    def forgettable(self, now: float) -> bool:
        """Return True if no start is recent enough to count."""
        return not self._starts or self._starts[-1] + max(self._window, self._delay, self._learned) <= now


ANY = (1 << 63) - 1  # more than there can be


@dataclass(frozen=True, slots=True)
class Allowance:
    """The quota of each host; 0: no limit."""

    urls: int = 0
    size: int = 0  # bytes

    @classmethod
    def of(cls, settings: LimitSettings) -> "Allowance":
        """Return the quota in *settings*."""
        return cls(settings.max_urls_per_host, settings.max_bytes_per_host)

    @property
    def bounds(self) -> tuple[int, int]:
        """The numbers of URLs and of bytes that a host must stay below."""
        return self.urls or ANY, self.size or ANY

    def reached(self, urls: int, size: int) -> str:
        """Return the setting that a host has reached after so many *urls* and bytes; "" if it has not."""
        if 0 < self.urls <= urls:
            return f"max-urls-per-host: {self.urls}"
        return f"max-bytes-per-host: {self.size}" if 0 < self.size <= size else ""


FREE = Allowance()
