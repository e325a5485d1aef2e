"""Connections made by aiohttp, tapped where their bytes arrive. The only file that knows aiohttp's inside.

aiohttp resolves, connects (happy eyeballs) and does TLS; its HTTP parser never sees a byte, because it refuses answers
that real servers give and can hand one URL the answer of another. What is idle waits in a pool of ours (`idle`).
Where there is nothing to resolve, to choose or to agree upon, the event loop itself connects, without aiohttp.
The seams: `ThreadedResolver._loop` looks names up, `TCPConnector._factory` builds our protocol, `connect()` lends it,
`Connection.close()` ends it. `tests/edges/test_aiohttp_seams.py` fails when an upgrade moves one of them.

Invariants: no connection is lent whose other end the guard refuses. Bytes that reach a used connection while no request
is open belong to nobody, and end it. (What is sent in the moment between a new request's leaving and its arrival cannot
be told from an answer by anybody who speaks HTTP/1.)
"""

import asyncio
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
from archiver.clock import AwakeClock, SharedTimers
from archiver.errors import Failure, FetchError, ShortageError
from archiver.fetch.dns import GuardedResolver, Lookups, RememberingResolver, SharedLookup
from archiver.fetch.errors import translated
from archiver.fetch.pool import IdleConnections
from archiver.fetch.private_networks import AddressGuard, spelled_address
from archiver.fetch.tls import is_cut_off
from archiver.fetch.wire import UNVERIFIED, Wire
from archiver.storage import allowed

Kept = TypeVar("Kept")

UNCLOSED = "the connection ended without TLS's word for it, so anything may be missing"
THEIRS = 0.5  # seconds by which a timer of aiohttp's may be early
FAREWELL = 1.0  # seconds in which connections that were cut say so; as a rule they do at once
IDLE_SHARE = 4  # of the files that may be open at most so much is for connections that wait
MAX_KNOWN = 4096  # origins of which something is remembered …
MAX_REQUESTS = 256  # … and those whose connection settings are kept: some KB each, quickly made anew


class TapProtocol(ResponseHandler):
    """aiohttp's client protocol with its parser left out: bytes go to the wire that has borrowed it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lines: "ConnectionPool") -> None:
        super().__init__(loop)
        self.lines = lines
        self.wire: Wire | None = None
        self.origin = ""
        self.answer: SharedLookup | None = None  # of the name servers, that led here
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
            self.wire.ended(self._cut_off())

    def _cut_off(self) -> BaseException | None:
        """An error, where the server has gone without the word that TLS has for it."""
        return ConnectionResetError(UNCLOSED) if is_cut_off(self.wiring) else None

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is gone, cleanly or not."""
        if self.wire is not None:
            self.wire.ended(exc or (None if self.wire.over else self._cut_off()))  # uvloop tells of no end before
        super().connection_lost(exc)
        self._exception = None  # nobody reads aiohttp's own queue
        self.lines.alive.discard(self)


class Connector(aiohttp.TCPConnector):
    """aiohttp's connector, which keeps no answers of name servers itself: its resolver does."""

    def clear_dns_cache(self, host: str | None = None, port: int | None = None) -> None:
        """Forget all answers of name servers."""
        if isinstance(self._resolver, RememberingResolver):
            self._resolver.forget()
        super().clear_dns_cache(host, port)


class ConnectionPool:
    """The pool of connections. Certificates are checked; a host that fails the check is spoken to all the same."""

    def __init__(self, timeout: float, guard: AddressGuard, lookups: Lookups | None = None) -> None:
        self._guard = guard
        self._patience = timeout
        self._timeout = aiohttp.ClientTimeout(total=None, connect=timeout, sock_connect=timeout)
        loop = self._loop = asyncio.get_running_loop()
        self.awake = AwakeClock(loop)
        self.pauses = SharedTimers(loop)
        self.idle: IdleConnections[Wire] = IdleConnections(loop, allowed() / IDLE_SHARE)
        self.heard = float("-inf")  # `time.monotonic()` when anything last came over the network
        lookups = lookups or Lookups()
        system = aiohttp.ThreadedResolver()
        system._loop = lookups  # type: ignore[assignment]  # noqa: SLF001  the seam: it asks of a loop just these two
        self._resolver = GuardedResolver(guard, system)
        self._names = RememberingResolver(self._resolver, lookups)
        self._connector = Connector(limit=0, use_dns_cache=False, resolver=self._names)
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

    async def locate(self, origin: str) -> str:
        """Return the address at which *origin* is asked first, without connecting to it; or `FetchError`."""
        host = url.host(f"{origin}/")
        if (address := spelled_address(host)) is not None:
            return str(address)
        whole = URL(origin + "/", encoded=True)
        return await self._names.first(whole.raw_host or host, whole.port or 0)

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
        await self._names.close()
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
        notes = (UNVERIFIED,) if origin in self._unverified else ()
        straight = origin.startswith("http://") and spelled_address(host) is not None
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
