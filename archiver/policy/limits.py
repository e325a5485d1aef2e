"""Politeness: when a host may be asked again. Pure: the time is an argument.

Invariant: in any window of `interval` seconds at most `starts` requests begin, however long each takes. Starts are
spread evenly over the interval, which is kinder to a server than a burst; one that came late may be made up for, by
half a distance at most, so that a busy machine still reaches the rate.

What one host may be asked for in the whole crawl: so many URLs, so many bytes. Pure.

A host is a row of the frontier: scheme and authority. One that has reached a limit is asked for nothing more but a
robots.txt that somebody waits for; its URLs wait until the limit is larger. What counts is what counts for --max-urls
and --max-bytes, over all runs: URLs that were visited at least once, robots.txt aside; every byte of every response.
"""

from collections import deque
from dataclasses import dataclass

from archiver.config.option_types import Rate
from archiver.config.settings import LimitSettings

SLACK = 0.02  # of the interval: what scheduler and network may shift between our start and the server's clock …
LEAST_SLACK = 0.01  # … in seconds, however short the interval is


@dataclass(frozen=True, slots=True)
class Politeness:
    """How hosts may be asked that are asked together."""

    rate: Rate
    concurrency: int
    first: int = 0  # requests at once to begin with, where nothing is known; 0: all that there may be
    circle: str = ""  # whatever they have in common; empty: the host is alone
    nearby: str = ""  # shared with hosts at the same address of which this says the same; empty: with none


@dataclass(frozen=True, slots=True)
class GlobalLimits:
    """What all hosts together are asked with at most; 0 is no limit."""

    rate: Rate = Rate(0)
    bandwidth: int = 0  # bytes a second


UNLIMITED = GlobalLimits()


class RateLimiter:
    """The starts of requests on one host."""

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
        """The latest starts, as many as count."""
        return tuple(self._starts)

    @property
    def gap(self) -> float:
        """Seconds from one start to the next; 0 where there is no limit."""
        return max(self._step, self._delay, self._learned)

    def heed(self, rate: float) -> None:
        """At most *rate* starts a second from now on, where that is less than what holds anyway (infinity: no limit).

        They keep their distance from the latest start, so a rate that was lowered never lets two through together.
        """
        self._learned = 1 / rate

    def slow_down(self, delay: float) -> None:
        """Keep at least *delay* seconds between two starts (Crawl-delay), the latest one included."""
        self._delay = max(self._delay, delay)

    def next(self, now: float) -> float:
        """The earliest time, not before *now*, at which a request may start."""
        if not self.gap:
            return max(now, self._not_before)
        earliest = max(now, self._not_before, self._beat + self._step)
        if self._starts:
            earliest = max(earliest, self._starts[-1] + max(self._delay, self._learned))
            if len(self._starts) == self._starts.maxlen:
                earliest = max(earliest, self._starts[0] + self._window)
        return earliest

    def start(self, now: float) -> float:
        """*now*, and the request has started; or, if it may not, the time at which to ask again."""
        earliest = self.next(now)
        if earliest <= now:
            self.count(now)
        return earliest

    def count(self, now: float) -> None:
        """A request has started at *now*, whether it might or not."""
        self._starts.append(now)
        self._beat = max(self._beat + self._step, now - self._step / 2)

    def inherit(self, other: "RateLimiter") -> None:
        """Count the latest starts of *other* as one's own: its host is asked by this pace from now on."""
        for start in other.starts:
            self.count(start)

    def forgettable(self, now: float) -> bool:
        """Whether a new pace would be as good: no start is recent enough to count."""
        return not self._starts or self._starts[-1] + max(self._window, self._delay, self._learned) <= now


ANY = (1 << 63) - 1  # more than there can be


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of each host; 0: none."""

    urls: int = 0
    size: int = 0  # bytes

    @classmethod
    def of(cls, settings: LimitSettings) -> "Allowance":
        """As the settings have it."""
        return cls(settings.max_urls_per_host, settings.max_bytes_per_host)

    @property
    def bounds(self) -> tuple[int, int]:
        """The numbers of URLs and of bytes that a host has to stay below, to be compared with what it has cost."""
        return self.urls or ANY, self.size or ANY

    def reached(self, urls: int, size: int) -> str:
        """The limit that a host has reached which has cost so much, as the settings have it; "" where there is none."""
        if 0 < self.urls <= urls:
            return f"max-urls-per-host: {self.urls}"
        return f"max-bytes-per-host: {self.size}" if 0 < self.size <= size else ""


FREE = Allowance()
