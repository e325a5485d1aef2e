"""Connections, whose bytes go to our own framer, and the pool in which they wait for their next exchange.

The event loop connects; aiohappyeyeballs brings the race between several addresses. No HTTP library is involved: those
reject responses that real servers send, can assign a response to the wrong URL, and take long to import.

Invariants: the guard has accepted the other end of every connection that is used; behind a proxy that resolves names,
the name. Connections are kept by origin, which always leads to the same proxy. Bytes that arrive on a used
connection while no request is open end that connection. (HTTP/1 cannot tell bytes that the server sends just before a
new request arrives from the response to it.)
"""

import asyncio
import errno
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from aiohappyeyeballs import AddrInfoType, addr_to_addr_infos

from archiver import url
from archiver.clock import AwakeClock, SharedTimers
from archiver.config.settings import LimitSettings, Settings, SettingsByHost
from archiver.errors import Failure, FetchError, ShortageError
from archiver.fetch.connection_errors import UnresolvedError, translated
from archiver.fetch.dns import (
    GuardedResolver,
    Lookups,
    RememberingResolver,
    SharedLookup,
    SystemResolver,
    remember,
)
from archiver.fetch.name_servers import NameServers
from archiver.fetch.network import GivenAddresses, LocalEnd, LocalEnds, Timeouts, name_servers, race
from archiver.fetch.private_networks import AddressGuard, spelled_address
from archiver.fetch.proxy import Proxy, ProxyRoutes, ProxyTunnels
from archiver.fetch.tls import TlsContexts
from archiver.fetch.wire import MOST_IDLE, UNVERIFIED, IdleConnections, Wire, is_cut_off
from archiver.storage import allowed

UNCLOSED = "the TLS connection ended without close_notify, so the response may be incomplete"
TIMER_TOLERANCE = 0.5  # seconds by which timers may be early
CLOSE_TIMEOUT = 1.0  # seconds for aborted connections to report that they are closed; usually at once
IDLE_SHARE = 4  # idle connections get one file descriptor in this many …
SPARE = 2048  # … or all but so many, if more are left beside those of all requests at once
MAX_TUNNELS = 4  # addresses of a host that are tried through a proxy, one after the other
MAX_KNOWN = 4096  # origins with remembered state


class RawProtocol(asyncio.Protocol):
    """The protocol of a connection: bytes go to the wire that uses it."""

    __slots__ = (
        *("_closed", "answer", "early", "exchanges", "origin", "pool", "proxy", "raw_transport", "site", "transport"),
        *("wire", "__weakref__"),
    )

    def __init__(self, pool: "ConnectionPool") -> None:
        self.pool = pool
        self.transport: asyncio.Transport | None = None  # until we close it
        self._closed: asyncio.Future[None] | None = None
        self.wire: Wire | None = None
        self.origin = ""
        self.answer: SharedLookup | None = None  # the DNS answer that led here
        self.proxy: Proxy | None = None  # the connection goes through it
        self.site: str | None = None  # the address of the site behind the proxy, if we know it
        self.exchanges = 0
        self.early: list[bytes] = []  # bytes that the server sent before the first request
        self.raw_transport: asyncio.Transport | None = None  # like `transport`, but set until the end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established (with TLS: and verified)."""
        self.transport = self.raw_transport = cast(asyncio.Transport, transport)
        self.pool.alive.add(self)
        self.pool.last_activity = time.monotonic()

    def data_received(self, data: bytes) -> None:
        """Pass *data* to the open exchange. Without one, a used connection can no longer be trusted."""
        self.pool.last_activity = time.monotonic()
        if self.wire is not None:
            self.wire.received(data)
        elif self.exchanges:
            self.pool.distrust(self.origin)
            self.abort()
        else:
            self.early.append(data)

    def eof_received(self) -> None:
        """The server will send no more. The transport closes itself."""
        if self.wire is not None:
            self.wire.end(self._cut_off())

    def pause_writing(self) -> None:
        """The system takes no more bytes for now."""
        if self.wire is not None:
            self.wire.filled(full=True)

    def resume_writing(self) -> None:
        """The system takes bytes again."""
        if self.wire is not None:
            self.wire.filled(full=False)

    def _cut_off(self) -> BaseException | None:
        """Return an error if the server closed a TLS connection without close_notify."""
        return ConnectionResetError(UNCLOSED) if is_cut_off(self.raw_transport) else None

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended, with or without an error."""
        if self.wire is not None:
            self.wire.end(
                exc or (None if self.wire.ended else self._cut_off())
            )  # uvloop does not call eof_received before
        self.transport = None
        self.pool.alive.discard(self)
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def closed(self) -> "asyncio.Future[None]":
        """Return a future that is done when the connection has ended."""
        if self._closed is None:
            self._closed = asyncio.get_running_loop().create_future()
        return self._closed

    def close(self) -> None:
        """Close the connection when all bytes are sent."""
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()
            self.transport = None


class ConnectionPool:
    """The pool of connections. Certificates are checked, but hosts that fail the check are fetched all the same."""

    def __init__(
        self,
        timeouts: Timeouts,
        guard: AddressGuard,
        lookups: Lookups | None = None,
        routes: ProxyRoutes | None = None,
        tls: TlsContexts | None = None,
    ) -> None:
        self._guard = guard
        self._tls = tls or TlsContexts(SettingsByHost(Settings()), guard)
        self._routes = routes or ProxyRoutes(SettingsByHost(Settings()))
        self.tunnels = ProxyTunnels()
        self._timeouts = timeouts
        common = timeouts.settings.common
        self._ends = LocalEnds(timeouts.settings)
        given = GivenAddresses(common.network.resolve)
        given.check(self._routes)
        loop = self._loop = asyncio.get_running_loop()
        self.awake = AwakeClock(loop)
        self.pauses = SharedTimers(loop)
        files = allowed()
        self.idle = IdleConnections(loop, lambda: most_idle(timeouts.settings.common.limits, files))
        self.last_activity = float("-inf")  # `time.monotonic()` of the last network activity
        lookups = lookups or Lookups()
        system = SystemResolver(lookups)
        servers = name_servers(common)
        names = NameServers(servers, system, timeouts.longest_look_up()) if servers else system
        self._resolver = GuardedResolver(guard, names, given)
        self._names = RememberingResolver(self._resolver, lookups)
        self.alive: set[RawProtocol] = set()
        self._new_protocol = partial(RawProtocol, self)
        self._unverified: OrderedDict[str, None] = OrderedDict()
        self._distrusted: OrderedDict[str, None] = OrderedDict()

    async def connect(self, origin: str, *, fresh: bool = False) -> Wire:
        """Return a connection to *origin* (scheme and authority), a new one if *fresh*; or raise `FetchError`."""
        while True:
            began = self.awake.now()
            try:
                return await self._connect(origin, fresh=fresh)
            except FetchError as error:
                suspended = self.awake.now() - began < self._timeouts.connect(origin) - TIMER_TOLERANCE
                if error.failure is not Failure.TIMEOUT or not suspended:
                    raise
            except ShortageError:
                if not self.idle:
                    raise
                self.idle.close()  # active connections need the descriptors of idle ones
                await asyncio.sleep(0)

    async def _connect(self, origin: str, *, fresh: bool) -> Wire:
        if fresh or not self.trusts(origin):
            self.idle.drop(origin)  # other idle connections to this origin are probably dead too
        while (wire := self.idle.take(origin)) is not None:
            if not wire.lend().stale:
                return wire
            wire.give_back(reusable=False)
        with translated():
            return await self._connect_unverified(origin)

    async def locate(self, origin: str) -> str:
        """Return the first network address of *origin* without connecting, "" if a proxy looks it up.

        Raises `FetchError` if there is none.
        """
        host = url.host(f"{origin}/")
        proxy = self._routes.of(origin)
        if proxy is not None and proxy.resolves:
            return ""
        if (address := spelled_address(host)) is not None:
            return str(address)
        return await self._names.first(*_place(origin), self._family(origin, proxy))

    def distrust(self, origin: str) -> None:
        """Allow one exchange per connection to *origin* from now on: it sent data that no request asked for."""
        remember(self._distrusted, origin, None)

    def trusts(self, origin: str) -> bool:
        """True if connections to *origin* may carry more than one exchange."""
        return origin not in self._distrusted

    async def close(self) -> None:
        """Close every connection; all are closed when this returns."""
        self.awake.close()
        self.pauses.close()
        self.idle.close()
        await self._names.close()
        leaving = [protocol.closed() for protocol in self.alive]
        for protocol in self.alive:
            if protocol.raw_transport is not None:
                protocol.raw_transport.abort()
        if leaving:  # uvloop does not report a connection aborted while it is being made
            await asyncio.wait(leaving, timeout=CLOSE_TIMEOUT)

    def _family(self, origin: str, proxy: Proxy | None) -> socket.AddressFamily:
        """Return the family of addresses that may be used for *origin*."""
        family = self._ends.of(origin).family
        if proxy is None or proxy.address.kind != "socks4":
            return family
        if family == socket.AF_INET6:
            raise FetchError(Failure.CONNECT, f"proxy {proxy.name}: SOCKS4 knows no IPv6 addresses")
        return socket.AF_INET

    async def _connect_unverified(self, origin: str) -> Wire:
        try:
            return await self._connect_new(origin)
        except ssl.SSLCertVerificationError:
            # An archive stores what the site sends, with or without a valid certificate. A note records the failure.
            remember(self._unverified, origin, None)
            return await self._connect_new(origin)

    async def _connect_new(self, origin: str) -> Wire:
        host = url.host(f"{origin}/")
        self._guard.check(host)  # names are checked when they are resolved
        notes: tuple[str, ...] = (UNVERIFIED,) if origin in self._unverified else ()
        proxy = self._routes.of(origin)
        self._ends.of(origin)  # refuses an address of the wrong family
        is_direct = origin.startswith("http://") and spelled_address(host) is not None
        if proxy is not None:
            notes = (*notes, f"proxy:{proxy.name}")
            protocol, release = await self._connect_by_proxy(proxy, origin, host)
        elif is_direct:
            protocol, release = await self._connect_directly(origin)
        else:
            protocol, release = await self._connect_by_name(origin)
        if protocol.transport is None:
            release()
            raise ConnectionResetError(f"{origin} closed the connection at once")
        protocol.origin = origin
        wire = Wire(protocol, notes, release)
        try:
            self._guard.check(host, wire.peer.ip)  # once is enough: what the guard allows stays allowed
        except FetchError:
            wire.close()
            raise
        return wire.lend()

    async def _connect_directly(self, origin: str) -> tuple[RawProtocol, Callable[[], None]]:
        """Connect to an address: no name to resolve, no TLS."""
        async with asyncio.timeout(self._timeouts.connect(origin)):
            _, protocol = await self._loop.create_connection(
                self._new_protocol, *_place(origin), local_addr=self._ends.of(origin).place
            )
        return protocol, protocol.close

    async def _connect_by_proxy(self, proxy: Proxy, origin: str, host: str) -> tuple[RawProtocol, Callable[[], None]]:
        """Connect through *proxy*; for plain HTTP to the proxy itself, if its kind is http."""
        self._guard.check_name(host)
        name, port = _place(origin)
        spelled, patience = spelled_address(host), self._timeouts.connect(origin)
        if proxy.forwards(origin):
            protocol = await self._reach_proxy(proxy, patience, self._ends.of(origin))
            site = str(spelled) if spelled is not None else None
        else:
            tunnel, site = await self._tunnel(proxy, origin, name, port)
            context = self._context(origin)  # the one for direct connections
            try:
                async with asyncio.timeout(patience):
                    _, protocol = await self._loop.create_connection(
                        self._new_protocol,
                        sock=tunnel,
                        ssl=context,
                        server_hostname=name.rstrip(".") if context else None,
                    )
            except BaseException:
                tunnel.close()
                raise
        if spelled is None and not proxy.resolves:
            protocol.answer = self._resolver.answer(name, port)
        protocol.proxy, protocol.site = proxy, site
        return protocol, protocol.close

    async def _tunnel(self, proxy: Proxy, origin: str, name: str, port: int) -> tuple[socket.socket, str | None]:
        """Return a socket that *proxy* has connected to *name*, and the address of *name* if we know it."""
        patience, leaves_by = self._timeouts.connect(origin), self._ends.of(origin).address
        if spelled_address(name) is not None:
            return await self.tunnels.open(proxy, (name, port), patience, leaves_by), name
        if proxy.resolves:
            return await self.tunnels.open(proxy, (name.rstrip("."), port), patience, leaves_by), None
        failed = FetchError(Failure.DNS, f"host name {name} has no address")
        found = await self._names.addresses(name, port, self._family(origin, proxy), self._timeouts.look_up(origin))
        addresses = found[:MAX_TUNNELS]
        for address in addresses:
            site = address.partition("%")[0]
            try:
                return await self.tunnels.open(proxy, (site, port), patience / len(addresses), leaves_by), site
            except FetchError as error:
                if error.failure is not Failure.CONNECT and not isinstance(error.__cause__, TimeoutError):
                    raise
                failed = error
        raise failed

    async def _reach_proxy(self, proxy: Proxy, patience: float, end: LocalEnd) -> RawProtocol:
        place = proxy.address.host.strip("[]"), proxy.address.port
        try:
            async with asyncio.timeout(patience):
                _, protocol = await self._loop.create_connection(self._new_protocol, *place, local_addr=end.place)
        except TimeoutError:
            raise self.tunnels.failed(proxy, OSError(errno.ETIMEDOUT, "")) from None
        except OSError as error:
            raise self.tunnels.failed(proxy, error) from error
        return protocol

    async def _connect_by_name(self, origin: str) -> tuple[RawProtocol, Callable[[], None]]:
        (name, port), end = _place(origin), self._ends.of(origin)
        longest, patience = self._timeouts.look_up(origin), self._timeouts.connect(origin)
        async with asyncio.timeout(patience if longest is None else None) as limit:
            places = await self._places(name, port, end.family, longest)
            if longest is not None:  # the connection has a limit of its own
                limit.reschedule(self._loop.time() + patience)
            context = self._context(origin)
            connect = partial(
                self._loop.create_connection,
                self._new_protocol,
                ssl=context,
                server_hostname=name.rstrip(".") if context else None,
            )
            _, protocol = await race(places, end.place, connect, patience)
        protocol.answer = self._resolver.answer(name, port)
        return protocol, protocol.close

    async def _places(
        self, name: str, port: int, family: socket.AddressFamily, longest: float | None
    ) -> Sequence[AddrInfoType]:
        """Return the addresses of *name* in the form of `getaddrinfo`."""
        if spelled_address(name) is not None:
            return addr_to_addr_infos((name, port)) or ()
        try:
            found = await self._names.resolve(name, port, family, longest)
        except OSError as error:
            raise UnresolvedError(name, error) from error
        return [place for each in found for place in addr_to_addr_infos((each["host"], port)) or ()]

    def _context(self, origin: str) -> ssl.SSLContext | None:
        """Return the TLS context for *origin*; None without TLS."""
        return self._tls.of(origin, verified=origin not in self._unverified)


def most_idle(limits: LimitSettings, files: float) -> float:
    """Return how many connections may be idle in a crawl that may open so many *files*.

    Among thousands of hosts, a connection waits while its robots.txt is stored and all other hosts get their turn.
    """
    slow = min(limits.slow_concurrency, files / IDLE_SHARE)
    return max(min(MOST_IDLE, files / IDLE_SHARE), files - limits.concurrency - slow - SPARE)


def _place(origin: str) -> tuple[str, int]:
    """Return the host of *origin*, an IPv6 address without brackets, and its port."""
    scheme, _, authority = origin.partition("://")
    host = url.host(f"{origin}/")
    number = authority[len(host) + 1 :]
    return host.strip("[]"), int(number or (443 if scheme == "https" else 80))
