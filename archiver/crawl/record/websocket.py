"""WebSocket connections that the proxy passes on: bytes go both ways as they come, and none of them is recorded.

WARC has no form for them yet (iipc/warc-specifications#115 is a draft). Only the handshake is recorded. Each way has
one buffer of bounded size, so a slow side slows the other one down.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial

from archiver.crawl.record.client_link import ClientLink
from archiver.fetch.wire import Wire
from archiver.humanize import count, volume

PROTOCOL = "websocket"
REMARK = "websocket"  # on the exchange that has opened one
SILENT = 3600.0  # seconds in which neither side says anything, until both are closed
STALLED = 30.0  # seconds in which a side must take what the other one has sent
LINGER = 5.0  # seconds for the server to answer a client that has ended its side
PIECE = 64 << 10
MOST_NAMED = 10
SHOWN = 200  # characters of a URL


@dataclass(slots=True)
class PassedOn:
    """What was passed on in this run, and is not recorded."""

    connections: int = 0
    open: int = 0  # of these
    sent: int = 0  # bytes of clients
    received: int = 0  # bytes of servers
    names: dict[str, None] = field(default_factory=dict)  # URLs, at most `MOST_NAMED`

    @property
    def text(self) -> str:
        """Say what is not recorded; "" if nothing was passed on."""
        if not self.connections:
            return ""
        were = "was" if self.connections == 1 else "were"
        what, size = count(self.connections, "WebSocket connection"), volume(self.sent + self.received)
        names = ", ".join(name[:SHOWN] for name in self.names)
        return f"{what} {were} passed on, and only the handshakes are recorded, not the {size} that followed: {names}"

    def begin(self, address: str) -> None:
        """Count a connection to *address*."""
        self.connections += 1
        self.open += 1
        if len(self.names) < MOST_NAMED:
            self.names[address] = None


class PassedConnection:
    """One connection between a client and a server."""

    def __init__(self, link: ClientLink, wire: Wire, counts: PassedOn) -> None:
        self._link = link
        self._wire = wire
        self._counts = counts
        self._clock = asyncio.get_running_loop().time
        self._heard = self._clock()  # when either side has said something
        self.sent = self.received = 0

    @property
    def ending(self) -> str:
        """Say how much is not recorded."""
        return f"the WebSocket connection has ended after {volume(self.sent)} up and {volume(self.received)} down"

    async def run(self, early: bytes) -> None:
        """Pass on what comes, until a side ends; *early*: what the server has said already."""
        self._count(received=len(early))
        self._link.write(early)
        upwards = asyncio.create_task(self._upwards(), name="websocket, from the client")
        downwards = asyncio.create_task(self._downwards(), name="websocket, from the server")
        both = upwards, downwards
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not (downwards.done() or self._link.lost):
                await asyncio.wait((downwards,), timeout=LINGER)
        finally:
            for task in both:
                task.cancel()
            for task in both:
                with suppress(asyncio.CancelledError, TimeoutError, OSError):
                    await task
        if self._wire.error is not None:
            self._link.abort()

    async def _upwards(self) -> None:
        async with aclosing(self._said(partial(self._link.take, PIECE))) as pieces:
            async for data in pieces:
                self._count(sent=len(data))
                self._wire.send_more(data)
                if not await self._wire.drained(STALLED):
                    return

    async def _downwards(self) -> None:
        async with aclosing(self._said(self._wire.read)) as pieces:
            async for data in pieces:
                self._count(received=len(data))
                self._link.write(data)
                if not await self._link.has_room(STALLED):
                    return

    async def _said(self, take: Callable[[float], Awaitable[bytes]]) -> AsyncGenerator[bytes, None]:
        """Yield what one side says, until its end or a silence of both; *take* waits for it up to so many seconds."""
        while True:
            try:
                data = await take(self._left())
            except TimeoutError:
                if self._left() <= 0:
                    return
                continue
            if not data:
                return
            yield data

    def _left(self) -> float:
        """Return the seconds of silence until the connection is closed."""
        return max(0.0, self._heard + SILENT - self._clock())

    def _count(self, *, sent: int = 0, received: int = 0) -> None:
        self._heard = self._clock()
        self.sent += sent
        self.received += received
        self._counts.sent += sent
        self._counts.received += received
