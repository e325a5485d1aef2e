"""One connection as an exchange sees it, the idle connections, and what the record says of a connection.

A connection sends bytes, receives bytes with a timeout, and notices the end. Idle connections wait for their next
exchange: their number and idle time are limited, with one timer for all. The server may have closed a connection while
it was idle: the caller has to check.
"""

import asyncio
import math
import select
import ssl
import sys
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from archiver.fetch.tls import iana_cipher
from archiver.http.auth import ConnectionLogin
from archiver.model import Peer

if TYPE_CHECKING:
    from archiver.fetch.connection import RawProtocol

UNVERIFIED = "tls-unverified"  # note: the certificate of the server is not valid
HIGH_WATER = 512 << 10  # bytes buffered for a slow reader before reading pauses
TOLERANCE = 0.01  # seconds by which our timers may be early
IDLE = 15.0  # seconds until an idle connection is closed; servers commonly close theirs after 5 to 75
MOST_IDLE = 1024  # connections with TLS, which take some 50 KB each …
PLAIN_FOR_TLS = 8  # … or so many times as many without


class Wire:
    """One connection, used by one exchange after another."""

    __slots__ = (
        "_end",
        "_ended",
        "_full",
        "_held",
        "_loop",
        "_paused",
        "_pieces",
        "_poll",
        "_pool",
        "_protocol",
        "_release",
        "_room",
        "_timer",
        "_transport",
        "_waiter",
        "answer",
        "awake",
        "error",
        "forwarded",
        "login",
        "notes",
        "peer",
        "proxy",
        "reused",
        "site_login",
    )

    def __init__(self, protocol: "RawProtocol", notes: tuple[str, ...], release: Callable[[], None]) -> None:
        self.reused = False
        self.error: BaseException | None = None
        self.notes = notes
        self.proxy = protocol.proxy
        self.login = b""  # the header line that was sent to the proxy
        self.forwarded = bool(protocol.proxy and protocol.proxy.forwards(protocol.origin))
        self.site_login = ConnectionLogin(
            self.forwarded, protocol.transport and protocol.transport.get_extra_info("ssl_object")
        )
        self.peer = peer_of(protocol.transport)
        if protocol.proxy is not None:
            self.peer = self.peer._replace(ip=protocol.site)
        self.answer = protocol.answer
        self.awake = protocol.pool.awake
        self._pool = protocol.pool
        self._protocol = protocol
        self._release = release  # closes the connection
        self._transport = cast(asyncio.Transport, protocol.transport)
        self._loop = asyncio.get_running_loop()
        self._poll: select.poll | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        self._ended = False
        self._paused = False
        self._full = False  # the system takes no more bytes for now
        self._room: asyncio.Future[None] | None = None
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
        """Write *request*; exactly these bytes are sent (or encrypted by TLS), and our login to a proxy."""
        if self.forwarded and self.proxy is not None:
            self.login = self._pool.tunnels.login(self.proxy).line(request)
            start = request.index(b"\r\n") + 2
            request = request[:start] + self.login + request[start:]
        self._transport.write(request)

    def send_more(self, data: bytes) -> None:
        """Write *data*, which belongs to the request that was sent last."""
        self._transport.write(data)

    async def has_room(self, timeout: float) -> bool:  # noqa: ASYNC109  its callers have one for each step
        """Wait up to *timeout* seconds (then TimeoutError) until more can be sent; False if the server answers now."""
        if self._full and not self._pieces and not self.closed:
            self._room = self._loop.create_future()
            try:
                async with asyncio.timeout(timeout):
                    await self._room
            finally:
                self._room = None
        return not self._pieces and not self.closed

    async def drained(self, timeout: float) -> bool:  # noqa: ASYNC109  its callers have one for each step
        """Wait up to *timeout* seconds (then TimeoutError) until nearly all is sent; False if the server has closed."""
        async with asyncio.timeout(timeout):
            while self._full and not self.closed:
                self._room = self._loop.create_future()
                await self._room
        return not self.closed

    def filled(self, *, full: bool) -> None:
        """Note whether the system takes more bytes (called by the protocol)."""
        self._full = full
        self._make_room()

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

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _wake(self) -> None:
        self._make_room()
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


class IdleConnections:
    """Idle connections by origin: the newest is used first, the oldest closed first. Close it.

    There are at most so many as *most* returns, of which each takes a descriptor, and less if they would take too much
    memory.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: Callable[[], float] = lambda: math.inf) -> None:
        self._loop = loop
        self._most = most
        self._since: OrderedDict[Wire, tuple[str, float]] = OrderedDict()  # the longest idle first, as …
        self._stacks: dict[str, list[Wire]] = {}  # … in each of these
        self._cost = 0  # of them all, in plain connections
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return the number of idle connections."""
        return len(self._since)

    def put(self, origin: str, connection: Wire) -> None:
        """Add *connection* to *origin*."""
        self._since[connection] = origin, self._loop.time()
        self._stacks.setdefault(origin, []).append(connection)
        self._cost += _cost(connection)
        most = self._most()
        while len(self._since) > most or self._cost > MOST_IDLE * PLAIN_FOR_TLS:
            self._close_oldest()
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE, self._expire)

    def logged_in(self, origin: str) -> bool:
        """Return True if a user is logged in on the connection to *origin* that would be used next."""
        stack = self._stacks.get(origin)
        return stack is not None and stack[-1].site_login.user != ""

    def take(self, origin: str) -> Wire | None:
        """Return the connection to *origin* that was added last; None if there is none."""
        stack = self._stacks.get(origin)
        if stack is None:
            return None
        connection = stack.pop()
        if not stack:
            del self._stacks[origin]
        del self._since[connection]
        self._cost -= _cost(connection)
        return connection

    def drop(self, origin: str) -> None:
        """Close all idle connections to *origin*."""
        while (connection := self.take(origin)) is not None:
            connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        while self._since:
            self._close_oldest()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_oldest(self) -> None:
        """Close the connection that has been idle longest."""
        connection, (origin, _) = self._since.popitem(last=False)
        stack = self._stacks[origin]
        del stack[0]
        if not stack:
            del self._stacks[origin]
        self._cost -= _cost(connection)
        connection.close()

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._since:
            since = next(iter(self._since.values()))[1]
            if since + IDLE > now:
                self._timer = self._loop.call_at(since + IDLE, self._expire)
                return
            self._close_oldest()


def _cost(connection: Wire) -> int:
    """Return how many plain connections take as much memory as *connection*."""
    return 1 if connection.peer.tls is None else PLAIN_FOR_TLS


def is_cut_off(transport: asyncio.BaseTransport | None) -> bool:
    """True if the peer closed a TLS connection without close_notify (RFC 9112 §9.8)."""
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    if tls is None:
        return False
    try:
        tls.read(1)  # returns nothing after close_notify, as all data was read
    except (ssl.SSLError, ValueError):
        return True
    return False


def peer_of(transport: asyncio.BaseTransport | None) -> Peer:
    """Return what is known about the peer; an empty `Peer` if the connection is closed."""
    if transport is None:
        return Peer(None)
    name = transport.get_extra_info("peername")
    ip = str(name[0]).partition("%")[0] if name else None
    tls = transport.get_extra_info("ssl_object")
    if tls is None:
        return Peer(ip)
    version, cipher = None, None
    with suppress(AttributeError, TypeError):  # a connection that was just closed has no cipher
        version = tls.version().replace("TLSv", "tls/")
        cipher = iana_cipher(tls.cipher()[0])
    return Peer(ip, version if version != "tls/1" else "tls/1.0", cipher)
