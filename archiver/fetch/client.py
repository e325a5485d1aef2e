"""The client: makes exchanges with servers over a pool of persistent connections.

Knows sockets, but nothing of archives, frontiers or rate limits: a gate decides when a request may start, just before
its first byte is sent. Raises `FetchError` only if no byte of a response came. A broken or cut response is an
`Exchange` that says so.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from archiver import url
from archiver.config.settings import SettingsByHost
from archiver.errors import Failure, FetchError, ProxyError
from archiver.fetch.connection import ConnectionPool
from archiver.fetch.dns import Lookups, routed
from archiver.fetch.exchange import USUAL, Attempt, Bounds, Hear, Keep, Particulars, Progress, SharedCpu
from archiver.fetch.http_proxy import (
    AUTHENTICATION_REQUIRED,
    CHALLENGES,
    LOGIN_REFUSED,
    MAX_CHALLENGES,
    keeps_connection,
    own_error,
)
from archiver.fetch.network import Timeouts
from archiver.fetch.private_networks import AddressGuard, normalized_host, spelled_address
from archiver.fetch.proxy import ProxyRoutes
from archiver.fetch.request import RequestMaker, absolute_form
from archiver.fetch.spool import Spool, Spooling
from archiver.fetch.tls import TlsContexts
from archiver.fetch.wire import UNVERIFIED, Wire
from archiver.http.auth import OF_CONNECTIONS, ConnectionLogin
from archiver.http.form_post import FormPost
from archiver.model import Block, Exchange

NOWHERE = (".example", ".invalid", ".localhost", ".test")  # names that no public name server knows (RFC 6761)
LONGEST_NAME = 200  # characters of a URL in a message
NOTHING_YET = Progress()


class Gate(Protocol):
    """Waits until a request may start, just before its first byte is sent."""

    async def __call__(self, *, verified: bool, login: ConnectionLogin) -> bytes:
        """Return header lines that depend on this moment and on the *login* of the connection, which they may change.

        *verified*: no certificate of the connection is invalid.
        """


class AskedFor(NamedTuple):
    """The parts of one request that its caller chooses."""

    needed: bool
    conditions: bytes
    form: FormPost | None
    language: str


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request that a client of ours makes, which is sent as it is."""

    address: str  # canonical URL
    method: str
    request: bytes
    upload: Block | None = None  # the rest of it, if that is large
    avoid: int = 0  # the port on which we listen: a request must not lead back to us

    @property
    def logs_in(self) -> bool:
        """True if it logs its connection in, which no other request may use then (Negotiate, NTLM)."""
        lines = self.request.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
        said = (line.partition(b":")[2].split() for line in lines if line.startswith(b"authorization:"))
        return any(words and words[0].decode("latin-1") in OF_CONNECTIONS for words in said)


class Upgrade(NamedTuple):
    """The answer to a request that changes the protocol of its connection."""

    exchange: Exchange
    wire: Wire | None  # speaks the other protocol; None: the server has refused
    early: bytes  # that it has said already


REPEATABLE = frozenset(("GET", "HEAD", "OPTIONS"))  # methods of requests that may be sent again


class _ProxyChallengeError(Exception):
    """A proxy asks for an answer to its Digest challenge, which the next request gives."""


class Fetcher:
    """Makes exchanges over a pool of persistent connections."""

    def __init__(
        self,
        settings: SettingsByHost,
        guard: AddressGuard,
        spooling: Spooling,
        lookups: Lookups | None = None,
        keep: Keep | None = None,
    ) -> None:
        """*keep* decides whether a body is read, unless it is needed or the settings decide."""
        self._guard = guard
        self._requests = RequestMaker(settings, guard)
        lookups = lookups or Lookups()
        routes = ProxyRoutes(settings, lookups.domain_of)
        self._pool = ConnectionPool(Timeouts(settings), guard, lookups, routes, TlsContexts(settings, guard))
        self._cpu = SharedCpu()
        self._progress: dict[asyncio.Task[Any] | None, Progress] = {}
        self.spool_folder, self._algorithm, self._writer = spooling
        self._keep = keep

    async def locate(self, address: str) -> str:
        """Return the first network address for the host of URL *address*; `FetchError` if there is none."""
        return await self._pool.locate(url.origin(address))

    async def reach(self, address: str) -> None:
        """Make a connection to the host of URL *address*, and close it without a request; or raise `FetchError`."""
        wire = await self._pool.connect(url.origin(address), fresh=True)
        wire.give_back(reusable=False)

    def progress(self, task: "asyncio.Task[Any] | None") -> Progress:
        """Return how far the exchange of *task* has come."""
        return self._progress.get(task, NOTHING_YET)

    async def fetch(
        self,
        address: str,
        gate: Gate,
        *,
        needed: bool = False,
        conditions: bytes = b"",
        form: FormPost | None = None,
        language: str = "",
    ) -> Exchange:
        """Fetch canonical URL *address* as soon as *gate* permits.

        *needed*: read the body whatever media types are wanted. *conditions*: additional header lines. *form*: POST it,
        once: on a new connection, because one that was used before may die without an answer, unless a user is logged
        in on that one (Negotiate, NTLM). *language*: send this Accept-Language, not that of the settings.
        """
        task = asyncio.current_task()
        progress = self._progress[task] = Progress()
        try:
            return await self._fetch(address, gate, progress, AskedFor(needed, conditions, form, language))
        finally:
            del self._progress[task]

    async def _fetch(self, address: str, gate: Gate, progress: Progress, asked: "AskedFor") -> Exchange:
        origin = url.origin(address)
        plan = self._requests.plan(origin, asked.language)
        bounds = plan.needed if asked.needed else plan.bounds
        keep = partial(self._keep, address) if self._keep is not None and not asked.needed else None
        special = USUAL if keep is None else Particulars(keep)
        first, challenged = True, 0
        while True:
            fresh = not first or (asked.form is not None and not self._pool.idle.logged_in(origin))
            wire = await self._pool.connect(origin, fresh=fresh)
            reusable = False
            progress.address = wire.peer.ip or ""
            try:
                verified = UNVERIFIED not in wire.notes
                lines = await gate(verified=verified, login=wire.site_login)
                if first and (wire.stale or wire.site_login.unfit):
                    first = False  # the connection died while we waited, or another user is logged in on it
                    continue
                request = self._requests.request(address, plan, lines + asked.conditions, asked.form, verified=verified)
                exchange, reusable = await self._made(wire, request, (address, bounds, progress), special)
            except _ProxyChallengeError:
                challenged += 1
                if challenged > MAX_CHALLENGES:
                    raise ProxyError(wire.proxy.name if wire.proxy else "", "it accepts no nonce") from None
                continue
            finally:
                wire.give_back(reusable=reusable)
            if exchange is not None:
                return exchange
            if not wire.reused or asked.form is not None:
                reason = str(wire.error) if wire.error else "the server closed the connection without an answer"
                raise FetchError(Failure.DISCONNECT, reason)
            first = False

    async def relay(self, asked: ClientRequest, hear: Hear) -> Exchange:
        """Send what a client has *asked* as it is; *hear* gets the response as it arrives.

        That may be incomplete when this raises `FetchError`. A host whose certificate does not verify gets nothing,
        unless it is named as one that gets secrets all the same: what clients send is theirs.
        """
        task = asyncio.current_task()
        progress = self._progress[task] = Progress()
        try:
            return await self._relay(asked, hear, progress)
        finally:
            del self._progress[task]

    async def _relay(self, asked: ClientRequest, hear: Hear, progress: Progress) -> Exchange:
        origin = url.origin(asked.address)
        course = asked.address, self._requests.plan(origin).needed, progress
        special = Particulars(method=asked.method, upload=asked.upload, hear=hear)
        repeatable, challenged = asked.method in REPEATABLE, 0
        fresh = not repeatable
        while True:
            wire = await self._pool.connect(origin, fresh=fresh)
            reusable = False
            progress.address = wire.peer.ip or ""
            try:
                self._check_relay(asked, wire, origin)
                exchange, reusable = await self._made(wire, asked.request, course, special)
            except _ProxyChallengeError:
                challenged += 1
                if challenged > MAX_CHALLENGES:
                    raise ProxyError(wire.proxy.name if wire.proxy else "", "it accepts no nonce") from None
                continue
            finally:
                wire.give_back(reusable=reusable and not asked.logs_in)
            if exchange is not None:
                return exchange
            if not (wire.reused and repeatable):
                reason = str(wire.error) if wire.error else "the server closed the connection without an answer"
                raise FetchError(Failure.DISCONNECT, reason)
            fresh = True

    @asynccontextmanager
    async def upgrade(self, asked: ClientRequest, hear: Hear, protocol: str) -> AsyncIterator[Upgrade]:
        """Relay what a client has *asked*, which changes the connection to *protocol*; keep it while the block runs."""
        origin = url.origin(asked.address)
        wire = await self._pool.connect(origin, fresh=True)
        try:
            self._check_relay(asked, wire, origin)
            if wire.forwarded:
                reason = f"an HTTP proxy passes no {protocol} on unless the site speaks TLS"
                raise FetchError(Failure.PROXY, reason)
            course = asked.address, self._requests.plan(origin).needed, Progress(wire.peer.ip or "")
            attempt = self._attempt(wire, asked.request, course, Particulars(upgrade=protocol, hear=hear))
            if (exchange := await attempt.run()) is None:
                raise FetchError(Failure.DISCONNECT, "the server closed the connection without an answer")
            yield Upgrade(exchange, wire if attempt.framer.upgraded else None, attempt.framer.early)
        finally:
            wire.give_back(reusable=False)

    def _check_relay(self, asked: ClientRequest, wire: Wire, origin: str) -> None:
        """Raise `FetchError` if nothing of *asked* may be sent on *wire*."""
        name = normalized_host(url.host(asked.address))
        if UNVERIFIED in wire.notes and not self._guard.may_send_secrets(origin, verified=False):
            reason = f"its certificate does not verify, so nothing is sent; --insecure-secrets {name} sends it"
            raise FetchError(Failure.TLS, reason)
        here = spelled_address(wire.peer.ip or "")
        if asked.avoid and here is not None and here.is_loopback and origin.endswith(f":{asked.avoid}"):
            raise FetchError(Failure.PRIVATE, f"{name}:{asked.avoid} is this proxy itself")

    async def _made(
        self, wire: Wire, request: bytes, course: tuple[str, Bounds, Progress], special: Particulars
    ) -> tuple[Exchange | None, bool]:
        """Make an exchange on *wire*; return its result, and whether the connection can carry another one."""
        origin = url.origin(course[0])
        if wire.forwarded:
            request = absolute_form(request, origin)
        attempt = self._attempt(wire, request, course, special)
        exchange = await (self._forwarded(attempt, wire) if wire.forwarded else attempt.run())
        if attempt.disturbed:
            self._pool.distrust(origin)
        return exchange, attempt.framer.reusable and (not wire.forwarded or keeps_connection(exchange))

    def _attempt(
        self, wire: Wire, request: bytes, course: tuple[str, Bounds, Progress], special: Particulars
    ) -> Attempt:
        address, bounds, progress = course
        spool = Spool(self.spool_folder, self._algorithm, self._writer, address[:LONGEST_NAME])
        return Attempt(wire, request, spool, bounds, (self._cpu, progress), special)

    async def _forwarded(self, attempt: Attempt, wire: Wire) -> Exchange | None:
        """Return the result of *attempt* at a proxy; raise `ProxyError` if the proxy is to blame for it."""
        proxy = wire.proxy
        assert proxy is not None
        answering = self._pool.tunnels.answering
        try:
            exchange = await attempt.run()
        except FetchError as error:
            raise self._pool.tunnels.timed_out(proxy, error.reason) from error
        if exchange is None and proxy.name not in answering and not wire.reused:
            raise ProxyError(proxy.name, "it closed the connection without an answer")
        if exchange is None:
            return None
        status, own = exchange.framing.status, own_error(exchange)
        login = self._pool.tunnels.login(proxy)
        is_login = status == AUTHENTICATION_REQUIRED and (login.has_challenge or proxy.name not in answering)
        if is_login and login.takes(exchange.framing.all(CHALLENGES), wire.login):
            exchange.response.close()
            raise _ProxyChallengeError
        if proxy.name not in answering and (
            status == AUTHENTICATION_REQUIRED or (own and status in LOGIN_REFUSED)
        ):  # later ones may come from a site, which must not end the crawl
            exchange.response.close()
            raise ProxyError(proxy.name, f"it refuses the login ({status})", refused=True)
        answering.add(proxy.name)
        if own:
            exchange.response.close()
            raise FetchError(Failure.CONNECT, f"proxy {proxy.name} answers {own}")
        return exchange

    @property
    def spooling(self) -> Spooling:
        """Where the fetcher keeps what is large."""
        return Spooling(self.spool_folder, self._algorithm, self._writer)

    def proxy_answers(self, name: str) -> bool:
        """Return True if the proxy *name* has answered since it last failed."""
        return name in self._pool.tunnels.answering

    @property
    def last_activity(self) -> float:
        """`time.monotonic()` of the last network activity: a new connection, or a byte received."""
        return self._pool.last_activity

    def has_no_route(self, address: str) -> bool:
        """True if the host of *address* is unreachable because this machine only has routes to itself."""
        name = url.host(address)
        is_local = name.startswith("127.") or name in ("[::1]", "localhost")
        return not is_local and not name.endswith(NOWHERE) and not routed()

    def running_time(self) -> float:
        """Return the seconds this process has run, without suspension. Server timeouts use this clock."""
        return self._pool.awake.now()

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()
