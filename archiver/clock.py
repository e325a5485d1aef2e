"""Time as the crawl sees it: seconds since the epoch that never jump, whatever happens to the wall clock.

Time that passes only while this process runs: not while it is stopped (SIGSTOP), nor while its machine sleeps.

Patience with a server is measured in it, because what the server said meanwhile is still to be read.
"""

import asyncio
import time
from collections import deque


class Clock:
    """Starts at the wall clock's time and goes on by the monotonic one."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.at(time.monotonic())

    def at(self, monotonic: float) -> float:
        """The moment at which `time.monotonic()` was *monotonic*."""
        return monotonic + self._offset


TICK = 1.0  # seconds between two looks
TOGETHER = 0.0005  # seconds by which a short wait may be longer, so that many end with one timer
TARDY = 1.0  # seconds by which a look may be late; beyond that the process stood still


class AwakeClock:
    """A clock of one event loop; close it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._looked = time.monotonic()
        self._stood = 0.0
        self._timer = loop.call_later(TICK, self._tick)

    def now(self) -> float:
        """Seconds that the process has run, from some moment on."""
        moment = time.monotonic()
        gap = moment - self._looked
        if gap > TICK + TARDY:
            self._stood += gap
        self._looked = moment
        return moment - self._stood

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _tick(self) -> None:
        self.now()
        self._timer = self._loop.call_later(TICK, self._tick)


class SharedTimers:
    """Wakes those who wait for the same short while, many with one timer and never early; close it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def wake(self, waiter: "asyncio.Future[None]", seconds: float) -> None:
        """Set *waiter*, if nobody else has, after *seconds*: as many as all others who wait."""
        end = self._loop.time() + seconds
        self._waiting.append((end, waiter))
        if self._timer is None:
            self._timer = self._loop.call_at(end + TOGETHER, self._ring)

    def close(self) -> None:
        """Wake nobody any more."""
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
