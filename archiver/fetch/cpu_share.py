"""How the answers that are read at once share one processor: what is costly by itself waits for all the others.

Chunks of a byte each, or segments of a byte each, cost a thousand times as much as the bytes are worth. They are read
in short steps, and all answers of that kind together get a twentieth of the time.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from archiver.http import Framer

if TYPE_CHECKING:
    from archiver.fetch.wire import Wire

STEP = 16 << 10  # bytes of a body in chunks that are looked at before others may go on
COSTLY = 0.0005  # seconds of the processor for such a step, beyond which an answer has to wait …
PATIENCE = 20.0  # … so many times as long
TINY = 256  # bytes: a piece below costs more to fetch than to read, …
WAKING = 0.0001  # … about so many seconds …
FEW = 16  # … and an answer may have so many of them


class SharedCpu:
    """The answers that are read at once."""

    __slots__ = ("_free", "came")

    def __init__(self) -> None:
        self.came = 0  # pieces of those that are not large: one that is large and fast could keep a processor busy
        self._free = float("-inf")  # when all that was costly will have been waited for

    async def wait(self, wire: "Wire", spent: float) -> None:
        """Wait because of *spent* seconds of the processor; meanwhile what arrives on *wire* gathers in the system."""
        now = asyncio.get_running_loop().time()
        self._free = max(self._free, now) + PATIENCE * spent
        wire.pause()
        try:
            await asyncio.sleep(self._free - now)
        finally:
            wire.resume()


class FramerSteps:
    """Feeds a framer, a step at a time, and knows what that costs."""

    __slots__ = ("_framer", "_tiny", "spent")

    def __init__(self, framer: Framer) -> None:
        self._framer = framer
        self._tiny = 0
        self.spent = 0.0  # seconds of the processor for the latest step, where it was costly

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give what belongs to the block of each step of *data*."""
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
