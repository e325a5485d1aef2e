"""Time as the crawl sees it: seconds since the epoch that never jump, whatever happens to the wall clock."""

import time


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
