"""Politeness: when a host may be asked again. Pure: the time is an argument.

Invariant: in any window of `interval` seconds at most `starts` requests begin, however long each takes. Starts are
spread evenly over the interval, which is kinder to a server than a burst, and keeps the promise under jitter.
"""

from collections import deque

from archiver.config.values import Rate

SLACK = 0.02  # of the interval: what scheduler and network may shift between our start and the server's clock


class Pace:
    """The starts of requests on one host."""

    def __init__(self, rate: Rate, *, not_before: float = 0.0, delay: float = 0.0) -> None:
        self._rate = rate
        self._not_before = not_before
        self._window = rate.interval * (1 + SLACK)
        self._gap = max(self._window / rate.starts if rate.starts else 0.0, delay)
        self._starts: deque[float] = deque(maxlen=rate.starts or 1)
        self._latest = float("-inf")

    @property
    def limited(self) -> bool:
        """Whether there is any limit at all."""
        return self._gap > 0

    def slow_down(self, delay: float) -> None:
        """Keep at least *delay* seconds between two starts (Crawl-delay)."""
        self._gap = max(self._gap, delay)

    def next(self, now: float) -> float:
        """The earliest time, not before *now*, at which a request may start."""
        if not self._gap:
            return max(now, self._not_before)
        earliest = max(now, self._not_before, self._latest + self._gap)
        if self._rate.starts and len(self._starts) == self._rate.starts:
            earliest = max(earliest, self._starts[0] + self._window)
        return earliest

    def reserve(self, now: float) -> float:
        """As `next`, and the start is taken: whoever asks afterwards comes later."""
        slot = self.next(now)
        if self._gap:
            self._starts.append(slot)
            self._latest = slot
        return slot

    def started(self, slot: float, now: float) -> None:
        """The start reserved for *slot* really came at *now*, later than that: what follows keeps its distance."""
        if self._gap and now > slot:
            self._latest = max(self._latest, now)
            for place in range(len(self._starts) - 1, -1, -1):
                if self._starts[place] == slot:
                    self._starts[place] = now
                    break
