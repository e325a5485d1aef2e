"""Connections made by aiohttp, tapped where their bytes arrive. The only file that knows aiohttp's inside.

aiohttp resolves, connects (happy eyeballs) and does TLS; its HTTP parser never sees a byte, because it refuses answers
that real servers give and can hand one URL the answer of another. What is idle waits in a pool of ours (`idle`).
Where there is nothing to resolve, to choose or to agree upon, the event loop itself connects, without aiohttp.
The seams: `TCPConnector._factory` builds our protocol, `connect()` lends it, `Connection.close()` ends
it. `tests/edges/test_aiohttp_seams.py` fails when an upgrade moves one of them.

Invariants: no connection is lent whose other end the guard refuses. Bytes that reach a used connection while no request
is open belong to nobody, and end it. (What is sent in the moment between a new request's leaving and its arrival cannot
be told from an answer by anybody who speaks HTTP/1.)
"""

import asyncio
import math
import select
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from yarl import URL

from archiver import url
from archiver.addresses import read
from archiver.errors import Failure, FetchError, ShortageError
from archiver.fetch.awake import Awake, Pauses
from archiver.fetch.descriptors import allowed
from archiver.fetch.failures import translated
from archiver.fetch.guard import Guard
from archiver.fetch.idle import Idle
from archiver.fetch.peers import peer_of
from archiver.fetch.resolver import Answer, GuardedResolver

Kept = TypeVar("Kept")

HIGH_WATER = 512 << 10  # bytes held for a slow reader before the server is made to wait
DNS_TTL = 300  # seconds; as long as browsers keep an address at most
TOLERANCE = 0.01  # seconds by which a timer of ours may be early …
THEIRS = 0.5  # … and one of aiohttp's
FAREWELL = 1.0  # seconds in which connections that were cut say so; as a rule they do at once
IDLE_SHARE = 4  # of the files that may be open at most so much is for connections that wait
MAX_KNOWN = 4096  # origins of which something is remembered …
MAX_REQUESTS = 256  # … and those whose connection settings are kept: some KB each, quickly made anew


class TapProtocol(ResponseHandler):
    """aiohttp's client protocol with its parser left out: bytes go to the wire that has borrowed it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lines: "Lines") -> None:
        super().__init__(loop)
        self.lines = lines
        self.wire: Wire | None = None
        self.origin = ""
        self.answer: Answer | None = None  # of the name servers, that led here
        self.exchanges = 0
        self.early: list[bytes] = []  # what a new server said before anybody could ask
        self.wiring: asyncio.Transport | None = None  # as `transport`, but to the very end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there (over TLS: and trusted)."""
        super().connection_made(transport)
        self.wiring = cast(asyncio.Transport, transport)
        self.lines.alive.add(self)
        self.lines.heard = time.monotonic()

    def data_received(self, data: bytes) -> None:
        """Hand *data* to the open exchange; without one, a used connection cannot be trusted any more."""
        self.lines.heard = time.monotonic()
        if self.wire is not None:
            self.wire.received(data)
        elif self.exchanges:
            self.lines.distrust(self.origin)
            self.force_close()
            self.abort()
        else:
            self.early.append(data)

    def eof_received(self) -> None:
        """The server will send no more; the transport closes itself."""
        if self.wire is not None:
            self.wire.ended(None)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is gone, cleanly or not."""
        if self.wire is not None:
            self.wire.ended(exc)
        super().connection_lost(exc)
        self._exception = None  # nobody reads aiohttp's own queue
        self.lines.alive.discard(self)


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

    def __init__(self, protocol: TapProtocol, notes: tuple[str, ...], release: Callable[[], None]) -> None:
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
        if self._paused:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

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


class Lines:
    """The pool of connections. Certificates are checked; a host that fails the check is spoken to all the same."""

    def __init__(self, timeout: float, guard: Guard) -> None:
        self._guard = guard
        self._patience = timeout
        self._timeout = aiohttp.ClientTimeout(total=None, connect=timeout, sock_connect=timeout)
        loop = self._loop = asyncio.get_running_loop()
        self.awake = Awake(loop)
        self.pauses = Pauses(loop)
        self.idle: Idle[Wire] = Idle(loop, allowed() / IDLE_SHARE)
        self.heard = float("-inf")  # `time.monotonic()` when anything last came over the network
        self._resolver = GuardedResolver(guard, aiohttp.ThreadedResolver())
        self._connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=DNS_TTL, resolver=self._resolver)
        self.alive: set[TapProtocol] = set()
        self._tapped = partial(TapProtocol, loop, self)
        self._connector._factory = self._tapped  # type: ignore[assignment]  # noqa: SLF001  the seam
        self._requests: OrderedDict[str, ClientRequest] = OrderedDict()
        self._unverified: OrderedDict[str, None] = OrderedDict()
        self._distrusted: OrderedDict[str, None] = OrderedDict()

    async def connect(self, origin: str, *, fresh: bool = False) -> Wire:
        """A connection to *origin* (scheme and authority), new if *fresh*, else perhaps idle; or `FetchError`."""
        while True:
            began = self.awake.now()
            try:
                return await self._connect(origin, fresh=fresh)
            except FetchError as error:
                stood_still = self.awake.now() - began < self._patience - THEIRS
                if error.failure is not Failure.TIMEOUT or not stood_still:
                    raise
            except ShortageError:
                if not self.idle:
                    raise
                self.idle.close()  # what is used has more right to a descriptor than what waits
                await asyncio.sleep(0)

    async def _connect(self, origin: str, *, fresh: bool) -> Wire:
        if fresh or not self.trusts(origin):
            self.idle.drop(origin)  # what is idle beside a dead one is seldom any better
        while (wire := self.idle.take(origin)) is not None:
            if not wire.lend().stale:
                return wire
            wire.give_back(reusable=False)
        with translated():
            return await self._make_anyway(origin)

    def distrust(self, origin: str) -> None:
        """*origin* was caught saying what nobody asked for: its connections carry one exchange each from now on."""
        _remember(self._distrusted, origin, None)

    def trusts(self, origin: str) -> bool:
        """Whether connections to *origin* may carry more than one exchange."""
        return origin not in self._distrusted

    async def close(self) -> None:
        """Close every connection; not one is left when this returns."""
        self.awake.close()
        self.pauses.close()
        self.idle.close()
        await self._connector.close(abort_ssl=True)
        leaving = [closed for protocol in self.alive if (closed := protocol.closed) is not None]
        for protocol in self.alive:
            if protocol.wiring is not None:
                protocol.wiring.abort()
        if leaving:  # uvloop says nothing of a connection that was given up in the very moment in which it was made
            await asyncio.wait(leaving, timeout=FAREWELL)

    async def _make_anyway(self, origin: str) -> Wire:
        try:
            return await self._make(origin)
        except aiohttp.ClientConnectorCertificateError:
            # An archive wants what the site says, not who vouches for it; that nobody does is written down.
            _remember(self._unverified, origin, None)
            self._requests.pop(origin, None)
            return await self._make(origin)

    async def _make(self, origin: str) -> Wire:
        host = url.host(f"{origin}/")
        self._guard.check(host)  # a name is checked when it is resolved
        notes = ("tls-unverified",) if origin in self._unverified else ()
        straight = origin.startswith("http://") and read(host) is not None
        protocol, release = await (self._straight(origin, host) if straight else self._by_aiohttp(origin))
        if protocol.transport is None:
            release()
            raise ConnectionResetError(f"{origin} closed the connection at once")
        protocol.origin = origin
        wire = Wire(protocol, notes, release)
        try:
            self._guard.check(host, wire.peer.ip)  # once: whom it lets pass, it always will
        except FetchError:
            wire.close()
            raise
        return wire.lend()

    async def _straight(self, origin: str, host: str) -> tuple[TapProtocol, Callable[[], None]]:
        """A connection to an address: nothing to look up, to choose from, or to agree upon."""
        number = origin[len("http://") + len(host) + 1 :]
        async with asyncio.timeout(self._patience):
            _, protocol = await self._loop.create_connection(self._tapped, host.strip("[]"), int(number or 80))
        return protocol, protocol.close

    async def _by_aiohttp(self, origin: str) -> tuple[TapProtocol, Callable[[], None]]:
        request = self._requests.get(origin)
        if request is None:
            request = ClientRequest(
                "GET",
                URL(origin + "/", encoded=True),
                loop=self._loop,
                ssl=origin not in self._unverified,
            )
            _remember(self._requests, origin, request, MAX_REQUESTS)
        connection = await self._connector.connect(request, [], self._timeout)
        protocol = connection.protocol
        if not isinstance(protocol, TapProtocol):
            connection.close()
            raise ConnectionResetError(f"{origin} closed the connection at once")
        protocol.answer = self._resolver.answer(request.url.raw_host or "", request.url.port or 0)
        return protocol, connection.close


def _remember(known: "OrderedDict[str, Kept]", key: str, value: Kept, most: int = MAX_KNOWN) -> None:
    known[key] = value
    if len(known) > most:
        known.popitem(last=False)
