"""Politeness: when a host may be asked again. Pure: the time is an argument.

Invariant: in any window of `interval` seconds at most `starts` requests begin, however long each takes. Starts are
spread evenly over the interval, which is kinder to a server than a burst; one that came late may be made up for, by
half a distance at most, so that a busy machine still reaches the rate.
"""

from collections import deque
from dataclasses import dataclass

from archiver.config.values import Rate

SLACK = 0.02  # of the interval: what scheduler and network may shift between our start and the server's clock …
LEAST_SLACK = 0.01  # … in seconds, however short the interval is


@dataclass(frozen=True, slots=True)
class Terms:
    """How hosts may be asked that are asked together."""

    rate: Rate
    concurrency: int
    first: int = 0  # requests at once to begin with, where nothing is known; 0: all that there may be
    circle: str = ""  # whatever they have in common; empty: the host is alone
    nearby: str = ""  # shared with hosts at the same address of which this says the same; empty: with none


@dataclass(frozen=True, slots=True)
class Whole:
    """What all hosts together are asked with at most; 0 is no limit."""

    rate: Rate = Rate(0)
    bandwidth: int = 0  # bytes a second


UNLIMITED = Whole()


class Pace:
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

    def inherit(self, other: "Pace") -> None:
        """Count the latest starts of *other* as one's own: its host is asked by this pace from now on."""
        for start in other.starts:
            self.count(start)

    def forgettable(self, now: float) -> bool:
        """Whether a new pace would be as good: no start is recent enough to count."""
        return not self._starts or self._starts[-1] + max(self._window, self._delay, self._learned) <= now
