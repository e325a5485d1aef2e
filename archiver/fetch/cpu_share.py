"""Share one processor among the responses that are read at the same time: costly ones wait for all others.

Chunks or segments of one byte cost a thousand times as much as ordinary data. They are read in short steps, and all
such responses together get a twentieth of the time.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from archiver.http import Framer

if TYPE_CHECKING:
    from archiver.fetch.wire import Wire

STEP = 16 << 10  # bytes of a chunked body processed before others get a turn
COSTLY = 0.0005  # seconds of CPU time for a step; a response that takes longer waits …
PATIENCE = 20.0  # … this many times as long
TINY = 256  # bytes: a smaller piece costs more to receive than to parse, …
WAKING = 0.0001  # … about this many seconds …
FEW = 16  # … and a response may have this many without waiting


class SharedCpu:
    """The responses that are being read at the same time."""

    __slots__ = ("_free", "small_pieces")

    def __init__(self) -> None:
        self.small_pieces = 0  # pieces received of small responses: a large, fast response must not starve them
        self._free = float("-inf")  # when the waits of all costly responses end

    async def wait(self, wire: "Wire", spent: float) -> None:
        """Wait because of *spent* seconds of CPU time; meanwhile the system buffers what arrives on *wire*."""
        now = asyncio.get_running_loop().time()
        self._free = max(self._free, now) + PATIENCE * spent
        wire.pause()
        try:
            await asyncio.sleep(self._free - now)
        finally:
            wire.resume()


class FramerSteps:
    """Feeds a framer step by step and measures the cost."""

    __slots__ = ("_framer", "_tiny", "spent")

    def __init__(self, framer: Framer) -> None:
        self._framer = framer
        self._tiny = 0
        self.spent = 0.0  # seconds of CPU time of the last step, if it was costly

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what belongs to the block of each step of *data*."""
        self._tiny += len(data) < TINY
        waking = WAKING if len(data) < TINY and self._tiny > FEW else 0.0
        at = 0
        while at < len(data):
            framing = self._framer.framing
            plain = framing is not None and not framing.chunked
            part = data[at : at + STEP] if not plain and len(data) > STEP else data[at:]
            at += len(part)
            began = time.thread_time()
            piece = self._framer.feed(part)
            spent = time.thread_time() - began
            self.spent = waking + (spent if spent > COSTLY else 0.0)
            yield piece
