"""One connection as an exchange sees it: send bytes, receive bytes with a timeout, and notice the end."""

import asyncio
import math
import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from archiver.fetch.tls import peer_of

if TYPE_CHECKING:
    from archiver.fetch.connection import RawProtocol

UNVERIFIED = "tls-unverified"  # note: the certificate of the server is not valid
HIGH_WATER = 512 << 10  # bytes buffered for a slow reader before reading pauses
TOLERANCE = 0.01  # seconds by which our timers may be early


class Wire:
    """One connection, used by one exchange after another."""

    __slots__ = (
        "_end",
        "_ended",
        "_held",
        "_loop",
        "_paused",
        "_pieces",
        "_poll",
        "_pool",
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

    def __init__(self, protocol: "RawProtocol", notes: tuple[str, ...], release: Callable[[], None]) -> None:
        self.reused = False
        self.error: BaseException | None = None
        self.notes = notes
        self.peer = peer_of(protocol.transport)
        self.answer = protocol.answer
        self.awake = protocol.pool.awake
        self._pool = protocol.pool
        self._protocol = protocol
        self._release = release  # closes the connection and aiohttp's state for it
        self._transport = cast(asyncio.Transport, protocol.transport)
        self._loop = asyncio.get_running_loop()
        self._poll: select.poll | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        self._ended = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._end = 0.0  # deadline of the waiter, on the `awake` clock
        self._timer: asyncio.TimerHandle | None = None

    def lend(self) -> "Wire":
        """Attach the connection to its next exchange."""
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
    def ended(self) -> bool:
        """True if the server will send no more."""
        return self._ended

    @property
    def closed(self) -> bool:
        """True if the server has closed the connection."""
        return self._ended or self._transport.is_closing()

    @property
    def stale(self) -> bool:
        """True if no request may be sent: the server has closed, or has sent data that no request asked for."""
        return self.closed or (self.reused and (bool(self._pieces) or self._readable()))

    def send(self, request: bytes) -> None:
        """Write *request*; exactly these bytes are sent (or encrypted by TLS)."""
        self._transport.write(request)

    async def read(self, timeout: float) -> bytes:  # noqa: ASYNC109  our own timer costs a tenth of asyncio.timeout
        """Return what has arrived, waiting up to *timeout* seconds (then TimeoutError); b"" at the end."""
        if not self._pieces and not self._ended:
            self._waiter = self._loop.create_future()
            self._watch(timeout)
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._take_all()

    async def read_within(self, seconds: float) -> bytes:
        """Return what arrives within *seconds*, which must always be the same short time; b"" if nothing does."""
        if not self._pieces and not self._ended:
            self._waiter = self._loop.create_future()
            self._end = math.inf
            self._pool.pauses.wake(self._waiter, seconds)
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._take_all()

    def give_back(self, *, reusable: bool) -> None:
        """End the exchange; keep the connection if it can carry another one."""
        self._protocol.wire = None
        origin = self._protocol.origin
        if reusable and not self.closed and not self._pieces and not self._paused and self._pool.trusts(origin):
            self._pool.idle.put(origin, self)
        else:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.peer.tls is not None:  # an orderly TLS close would wait for the server
            self._protocol.abort()
        self._release()

    def received(self, data: bytes) -> None:
        """Take *data* that arrived (called by the protocol)."""
        self._pieces.append(data)
        self._held += len(data)
        if self._held > HIGH_WATER and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def end(self, error: BaseException | None) -> None:
        """Note that no more bytes will arrive (called by the protocol)."""
        self._ended = True
        self.error = self.error or error
        self._wake()

    def _take_all(self) -> bytes:
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        self.resume()
        return data

    def pause(self) -> None:
        """Leave arriving bytes in the system's buffer until `resume`."""
        if not self._paused and not self.closed:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again, unless too much is buffered."""
        if self._paused and self._held <= HIGH_WATER:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _watch(self, seconds: float) -> None:
        """End the wait after *seconds*. An earlier timer stays, and is set again when it fires."""
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
        if left > TOLERANCE:  # that wait has ended; or the process was suspended and has not read yet
            self._timer = self._loop.call_later(left, self._expire)
        elif not self._waiter.done():
            self._waiter.set_exception(TimeoutError())

    def _readable(self) -> bool:
        """True if bytes, or the end, are waiting in the socket."""
        number = self._transport.get_extra_info("socket").fileno() if self._poll is None else -1
        if sys.platform == "win32":
            return bool(select.select([number], [], [], 0)[0])
        if self._poll is None:
            self._poll = select.poll()  # select() refuses descriptors from 1024 on
            self._poll.register(number, select.POLLIN)
        return bool(self._poll.poll(0))
