"""One connection as an exchange sees it: bytes out, bytes in, its end, and how long to wait for them."""

import asyncio
import math
import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from archiver.fetch.tls import peer_of

if TYPE_CHECKING:
    from archiver.fetch.connection import TapProtocol

UNVERIFIED = "tls-unverified"  # a note of a connection: nobody vouches for the other end
HIGH_WATER = 512 << 10  # bytes held for a slow reader before the server is made to wait
TOLERANCE = 0.01  # seconds by which a timer of ours may be early


class Wire:
    """One connection, lent for one exchange after another."""

    __slots__ = (
        "_end",
        "_held",
        "_lines",
        "_loop",
        "_over",
        "_paused",
        "_pieces",
        "_poll",
        "_protocol",
        "_release",
        "_timer",
        "_transport",
        "_waiter",
        "answer",
        "awake",
        "error",
        "notes",
        "peer",
        "reused",
    )

    def __init__(self, protocol: "TapProtocol", notes: tuple[str, ...], release: Callable[[], None]) -> None:
        self.reused = False
        self.error: BaseException | None = None
        self.notes = notes
        self.peer = peer_of(protocol.transport)
        self.answer = protocol.answer
        self.awake = protocol.lines.awake
        self._lines = protocol.lines
        self._protocol = protocol
        self._release = release  # closes the connection, and whatever aiohttp keeps for it
        self._transport = cast(asyncio.Transport, protocol.transport)
        self._loop = asyncio.get_running_loop()
        self._poll: select.poll | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        self._over = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._end = 0.0  # in the time of `awake`: until then the waiter waits
        self._timer: asyncio.TimerHandle | None = None

    def lend(self) -> "Wire":
        """It carries an exchange from now on: the next one."""
        protocol = self._protocol
        protocol.wire = self
        self.reused = protocol.exchanges > 0
        protocol.exchanges += 1
        if protocol.early:
            for data in protocol.early:
                self.received(data)
            protocol.early.clear()
        return self

    @property
    def over(self) -> bool:
        """Whether the server has said that no more will come."""
        return self._over

    @property
    def closed(self) -> bool:
        """Whether the server has already gone."""
        return self._over or self._transport.is_closing()

    @property
    def stale(self) -> bool:
        """Whether no request may be sent on it: the server has gone, or has said something that nobody asked for."""
        return self.closed or (self.reused and (bool(self._pieces) or self._readable()))

    def send(self, request: bytes) -> None:
        """Write *request*; these are exactly the bytes that go out (or into TLS)."""
        self._transport.write(request)

    async def read(self, timeout: float) -> bytes:  # noqa: ASYNC109  a timer of our own costs a tenth of asyncio.timeout
        """What has arrived, waiting for it up to *timeout* seconds (TimeoutError); b"" at the end."""
        if not self._pieces and not self._over:
            self._waiter = self._loop.create_future()
            self._watch(timeout)
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._taken()

    async def overhear(self, seconds: float) -> bytes:
        """What arrives within *seconds*, always the same few; b"" where nothing does."""
        if not self._pieces and not self._over:
            self._waiter = self._loop.create_future()
            self._end = math.inf
            self._lines.pauses.wake(self._waiter, seconds)
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._taken()

    def give_back(self, *, reusable: bool) -> None:
        """The exchange is over; the connection waits for another only if it can carry one."""
        self._protocol.wire = None
        origin = self._protocol.origin
        if reusable and not self.closed and not self._pieces and not self._paused and self._lines.trusts(origin):
            self._lines.idle.put(origin, self)
        else:
            self.close()

    def close(self) -> None:
        """The connection is used no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.peer.tls is not None:  # closing in order would wait for the server's consent
            self._protocol.abort()
        self._release()

    def received(self, data: bytes) -> None:
        """Bytes arrived (called by the protocol)."""
        self._pieces.append(data)
        self._held += len(data)
        if self._held > HIGH_WATER and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def ended(self, error: BaseException | None) -> None:
        """No more bytes will arrive (called by the protocol)."""
        self._over = True
        self.error = self.error or error
        self._wake()

    def _taken(self) -> bytes:
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        self.resume()
        return data

    def pause(self) -> None:
        """Let what arrives wait in the system until `resume`."""
        if not self._paused and not self.closed:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Take what arrives again, unless too much is held."""
        if self._paused and self._held <= HIGH_WATER:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _watch(self, seconds: float) -> None:
        """End the wait after *seconds*. A timer that rings earlier is left alone, and set anew when it does."""
        self._end = self.awake.now() + seconds
        if self._timer is not None and self._timer.when() > self._loop.time() + seconds:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._waiter is None or self._end == math.inf:
            return
        left = self._end - self.awake.now()
        if left > TOLERANCE:  # what it was set for came; or the process stood still, and what came is not read yet
            self._timer = self._loop.call_later(left, self._expire)
        elif not self._waiter.done():
            self._waiter.set_exception(TimeoutError())

    def _readable(self) -> bool:
        """Whether bytes, or the end, wait in the socket for the loop to look at them."""
        number = self._transport.get_extra_info("socket").fileno() if self._poll is None else -1
        if sys.platform == "win32":
            return bool(select.select([number], [], [], 0)[0])
        if self._poll is None:
            self._poll = select.poll()  # select() refuses descriptors from 1024 on
            self._poll.register(number, select.POLLIN)
        return bool(self._poll.poll(0))
