"""Clocks and timers of a crawl.

`Clock` gives seconds since the epoch that never jump, even if the wall clock does. `AwakeClock` counts only while the
process runs, not while it is stopped (SIGSTOP) or the machine sleeps. Server timeouts use it, because data that
arrived meanwhile has not been read yet.
"""

import asyncio
import time
from collections import deque


class Clock:
    """A clock that starts at the wall clock's time and then follows the monotonic clock."""

    def __init__(self, ahead: float = 0.0) -> None:
        """*ahead*: seconds by which it is ahead of the wall clock of this machine."""
        self._offset = time.time() - time.monotonic() + ahead

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return self.at(time.monotonic())

    def at(self, monotonic: float) -> float:
        """Return the time at which `time.monotonic()` was *monotonic*."""
        return monotonic + self._offset


TICK = 1.0  # seconds between two ticks
TOGETHER = 0.0005  # seconds by which a short wait may be extended, so that one timer ends many
TARDY = 1.0  # seconds by which a tick may be late; beyond that the process was stopped


class AwakeClock:
    """A clock of one event loop that stops while the process is stopped; close it after use."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last_tick = time.monotonic()
        self._stopped = 0.0
        self._timer = loop.call_later(TICK, self._tick)

    def now(self) -> float:
        """Return the seconds that the process has run since an arbitrary start."""
        moment = time.monotonic()
        gap = moment - self._last_tick
        if gap > TICK + TARDY:
            self._stopped += gap
        self._last_tick = moment
        return moment - self._stopped

    def close(self) -> None:
        """Stop ticking."""
        self._timer.cancel()

    def _tick(self) -> None:
        self.now()
        self._timer = self._loop.call_later(TICK, self._tick)


class SharedTimers:
    """Wakes tasks that wait for the same short time, many with one timer and never early; close it after use."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def wake(self, waiter: "asyncio.Future[None]", seconds: float) -> None:
        """Set the result of *waiter*, unless it is done, after *seconds*, the same number for all waiters."""
        end = self._loop.time() + seconds
        self._waiting.append((end, waiter))
        if self._timer is None:
            self._timer = self._loop.call_at(end + TOGETHER, self._ring)

    def close(self) -> None:
        """Drop all waiters."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._waiting:
            end, waiter = self._waiting[0]
            if end > now and not waiter.done():
                self._timer = self._loop.call_at(end + TOGETHER, self._ring)
                return
            if not waiter.done():
                waiter.set_result(None)
            self._waiting.popleft()
