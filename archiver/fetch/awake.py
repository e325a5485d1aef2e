"""Time that passes only while this process runs: not while it is stopped (SIGSTOP), nor while its machine sleeps.

Patience with a server is measured in it, because what the server said meanwhile is still to be read.
"""

import asyncio
import time

TICK = 1.0  # seconds between two looks
TARDY = 1.0  # seconds by which a look may be late; beyond that the process stood still


class Awake:
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
