"""The server of the recording proxy: reads requests of clients, opens tunnels, and has each request recorded.

Requests are read strictly and within bounds of size and time. A tunnel (CONNECT) ends here: what the client says in it
is read with a certificate of the user's own authority, or as plain HTTP if no TLS comes. The Host of a request must be
the one that it leads to, or one site could be recorded as another.
"""

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from archiver import url
from archiver.crawl.record.authority import Authority
from archiver.crawl.record.client_answer import ClientAnswer, own_answer
from archiver.crawl.record.client_link import ClientLink
from archiver.crawl.record.recorder import Recorder
from archiver.crawl.record.websocket import PROTOCOL, PassedConnection, PassedOn
from archiver.errors import ArchiveError
from archiver.fetch.client import ClientRequest
from archiver.fetch.spool import FileBlock, MemoryBlock, Spool, Spooling
from archiver.http import Dechunker
from archiver.http.request_head import (
    CONNECT,
    LONGEST_HEAD,
    RequestFault,
    RequestHead,
    read_authority,
    read_request,
    split_absolute,
)
from archiver.model import Framing

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
IDLE_TIME = 60.0  # seconds until a client that asks for nothing is left
HEAD_TIME = 20.0  # seconds for a whole head, and for a TLS handshake
BODY_TIME = 30.0  # seconds for each piece of a body …
LEAST_RATE = 1024.0  # … and bytes a second on average
LINGER = 1.0  # seconds for the rest of a refused request: if we closed at once, the client might not see why
PIECE = 64 << 10
MOST_WARNED = 1000
OF_STRANGERS = frozenset((407, 429))  # answers that anyone can cause, as often as they like
HANDSHAKE = 0x16  # the first byte of TLS
LEFT_EARLY = "the client left before the body was complete"
UNFRAMED = Framing(0, 0, chunked=False, media_type="", fields=())  # of a body alone

_OTHER_BYTES = re.compile(rb"[\x80-\xff]")
_CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

log = logging.getLogger(__name__)


class LoginRefusal(NamedTuple):
    """The answer to a client that may not use the proxy."""

    status: int
    reason: str


class ClientLogins(Protocol):
    """Decides who may use the proxy."""

    async def refusal(self, login: str, address: str) -> LoginRefusal | None:
        """Return why a request from *address* with this Proxy-Authorization is refused; None if it is not."""


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """The limits on what clients may do."""

    connections: int
    body: int  # bytes of the body of a request
    websockets: bool = False  # WebSocket connections are passed on, and not refused
    logins: ClientLogins | None = None  # None: anyone who reaches the proxy may use it


class _Target(NamedTuple):
    """What a request leads to."""

    address: str  # canonical URL
    path: str  # as the client wrote it, Latin-1


class RecordingProxy:
    """Serves clients on one socket."""

    def __init__(
        self, recorder: Recorder, authority: Authority, spooling: Spooling, limits: ProxyLimits, port: int
    ) -> None:
        self._recorder = recorder
        self._authority = authority
        self._spooling = spooling
        self._limits = limits
        self._port = port
        self._links: set[ClientLink] = set()
        self._busy: set[ClientLink] = set()  # of these, those whose request is under way
        self._draining = False
        self._quiet = asyncio.Event()  # no client is left
        self._warned: set[str] = set()
        self._turned_away = 0  # clients that are told that there are too many
        self.passed = PassedOn()

    @property
    def active(self) -> int:
        """The number of requests that are under way."""
        return len(self._busy)

    async def listen(self, where: socket.socket, group: asyncio.TaskGroup) -> asyncio.Server:
        """Accept connections on *where*, each with a task in *group*."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: ClientLink(self._serve, group), sock=where)

    def drain(self) -> None:
        """Read no more requests; those under way go on."""
        self._draining = True
        for link in self._links - self._busy:
            link.cancel()

    def cut(self) -> None:
        """Break off what is under way."""
        self.drain()
        for link in tuple(self._links):
            link.cancel()

    async def drained(self) -> None:
        """Wait until all clients are served."""
        while self._links:
            self._quiet.clear()
            await self._quiet.wait()

    async def _serve(self, link: ClientLink) -> None:
        if self._draining or len(self._links) >= self._limits.connections:
            await self._turn_away(link)
            return
        self._links.add(link)
        try:
            await self._requests(link, "")
        except RequestFault as fault:
            level = logging.DEBUG if fault.status in OF_STRANGERS else logging.WARNING
            log.log(level, "a request of %s is refused: %s", link.address, fault.reason)
            await link.refuse(own_answer(fault.status, fault.reason), LINGER)
        except TimeoutError:
            await link.refuse(own_answer(408, "the request did not come in time"), LINGER)
        except ArchiveError as error:  # of the spool, in which the body of a request was
            log.error("a request is not recorded: %s", error)  # noqa: TRY400  a traceback says nothing more
            await link.refuse(own_answer(503, f"the request is not recorded: {error}"), LINGER)
        except (OSError, asyncio.CancelledError):  # the client left in a handshake, or we leave
            link.abort()
        finally:
            link.close()
            self._links.discard(link)
            self._quiet.set()

    async def _turn_away(self, link: ClientLink) -> None:
        """Say that there are too many clients, or nothing if too many are being told."""
        if self._draining or self._turned_away >= self._limits.connections:
            link.abort()
            return
        self._turned_away += 1
        try:
            await link.refuse(own_answer(503, f"more than {self._limits.connections} connections"), LINGER)
        except asyncio.CancelledError:
            link.abort()
        finally:
            self._turned_away -= 1

    async def _requests(self, link: ClientLink, tunnel: str) -> None:
        """Answer the requests on *link*, which leads to the origin *tunnel* if that is not empty."""
        while not self._draining:
            try:
                if not await link.peek(IDLE_TIME):
                    return
            except TimeoutError:
                return
            link.skip_empty_lines()
            head = await link.take_head(LONGEST_HEAD, HEAD_TIME)
            if head is None:
                raise RequestFault(431, f"the head of the request is longer than {LONGEST_HEAD >> 10} KB")
            if not head:
                return
            request = read_request(head)
            if not tunnel:  # a tunnel has had its login
                await self._check_login(link, request)
            if request.method == CONNECT and not tunnel:
                await self._tunnel(link, request)
                return
            self._busy.add(link)
            try:
                if not await self._answer(link, request, tunnel):
                    return
            finally:
                self._busy.discard(link)

    async def _check_login(self, link: ClientLink, request: RequestHead) -> None:
        """Refuse a client that may not use the proxy. Its login is in no record and in no log."""
        if self._limits.logins is None:
            return
        logins = request.all("proxy-authorization")
        refusal = await self._limits.logins.refusal(logins[0] if len(logins) == 1 else "", link.address)
        if refusal is not None:
            raise RequestFault(*refusal)

    async def _tunnel(self, link: ClientLink, request: RequestHead) -> None:
        """Answer what the client sends in the tunnel for which it has asked."""
        host, port = read_authority(request.target)
        address = url.canonical(f"https://{host}:{port}/")
        if address is None:
            raise RequestFault(400, "CONNECT names no host")
        link.write(_CONNECTED)
        if not (first := await link.peek(IDLE_TIME)):
            return
        if first[0] != HANDSHAKE:
            plain = url.canonical(f"http://{host}:{port}/")
            assert plain is not None
            await self._requests(link, url.origin(plain))
            return
        try:
            context = await asyncio.to_thread(self._authority.context, url.host(address))
        except OSError as error:
            log.error("no certificate for %s could be made: %s", url.host(address), error.strerror)  # noqa: TRY400
            link.abort()
            return
        try:
            await link.start_tls(context, HEAD_TIME)
        except ssl.SSLError as error:
            self._warn_untrusted(url.host(address), error)
            return
        await self._requests(link, url.origin(address))

    def _warn_untrusted(self, host: str, error: ssl.SSLError) -> None:
        """Say once for each host that a client has not accepted our certificate."""
        if host not in self._warned and len(self._warned) < MOST_WARNED:
            self._warned.add(host)
            reason = (error.reason or "").lower().replace("_", " ")
            log.warning(
                "%s: a client does not accept the certificate (%s); let it trust %s",
                host,
                reason or "no reason given",
                self._authority.certificate,
            )

    async def _answer(self, link: ClientLink, request: RequestHead, tunnel: str) -> bool:
        """Have *request* recorded; return True if *link* can go on."""
        target = _target(request, tunnel)
        self._check(request, target)
        if why := self._recorder.unfit():
            log.warning("%s", why)
            raise RequestFault(503, why)
        if request.expects_continue:
            link.write(_CONTINUE)
        if request.upgrade.startswith(PROTOCOL):
            await self._pass_websocket(link, request, target)
            return False
        body = await self._body(link, request, target.address)
        head = request.for_server(target.path, body.length)
        small = isinstance(body, MemoryBlock)
        sent = head + body.head(body.length) if small else head
        upload = None if small else body
        asked = ClientRequest(target.address, request.method, sent, upload, self._port)
        answer = ClientAnswer(
            link, target.address, request.method, persistent=request.persistent and not self._draining
        )
        return await self._recorder.record(asked, answer)

    async def _pass_websocket(self, link: ClientLink, request: RequestHead, target: _Target) -> None:
        """Have the handshake recorded, and pass on what is said then."""
        address = target.address
        asked = ClientRequest(address, request.method, request.for_websocket(target.path), None, self._port)
        answer = ClientAnswer(link, address, request.method, persistent=not self._draining)
        async with AsyncExitStack() as stack:
            opened = await self._recorder.open_websocket(stack, asked, answer)
            if opened is None or opened.wire is None or self._draining:
                return
            self._busy.discard(link)  # the request is recorded, and the end of the recording does not wait for the rest
            self._warn_once(address, "a WebSocket connection is passed on; only its handshake is recorded")
            self.passed.begin(address)
            connection = PassedConnection(link, opened.wire, self.passed)
            try:
                await connection.run(opened.early)
            finally:
                self.passed.open -= 1
                log.info("%s: %s", address, connection.ending)

    def _warn_once(self, address: str, text: str) -> None:
        """Say *text* once of *address*."""
        if address not in self._warned and len(self._warned) < MOST_WARNED:
            self._warned.add(address)
            log.warning("%s: %s", address, text)

    def _check(self, request: RequestHead, target: _Target) -> None:
        """Refuse what is not recorded."""
        if request.upgrade.startswith(PROTOCOL) and not self._limits.websockets:
            reason = "WebSocket connections are not recorded, so they are refused; --websockets pass passes them on"
            self._warn_once(target.address, reason)
            raise RequestFault(501, f"{target.address}: {reason}")
        if request.upgrade.startswith(PROTOCOL) and not request.opens_websocket:
            raise RequestFault(400, f"{target.address}: a WebSocket connection begins with a GET of HTTP/1.1")
        if request.method not in METHODS:
            raise RequestFault(501, f"requests with the method {request.method} are not recorded")
        if port := url.blocked_port(target.address):
            raise RequestFault(403, f"port {port} is not one of a web server")
        if request.length is not None and request.length > self._limits.body:
            raise RequestFault(413, self._too_large())

    def _too_large(self) -> str:
        return f"the body of the request has more than {self._limits.body} bytes; --max-request-size allows more"

    async def _body(self, link: ClientLink, request: RequestHead, address: str) -> MemoryBlock | FileBlock:
        """Return the body of *request*, in a file if it is large. The caller closes it."""
        spool = Spool(*self._spooling, address)
        clock = asyncio.get_running_loop().time
        began = clock()
        pieces = _chunks(link) if request.length is None else _sized(link, request.length)
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    full = spool.add(piece)
                    if spool.length > self._limits.body:
                        raise RequestFault(413, self._too_large())
                    if clock() - began > BODY_TIME + spool.length / LEAST_RATE:
                        raise TimeoutError
                    if full:
                        await spool.flush(UNFRAMED)
            await spool.finish(UNFRAMED)
            return spool.block()
        finally:
            spool.discard()


async def _sized(link: ClientLink, size: int) -> AsyncGenerator[bytes, None]:
    """Yield the *size* bytes that come next on *link*."""
    while size:
        data = await link.take(min(size, PIECE), BODY_TIME)
        if not data:
            raise RequestFault(400, LEFT_EARLY)
        size -= len(data)
        yield data


async def _chunks(link: ClientLink) -> AsyncGenerator[bytes, None]:
    """Yield the parts of the chunked body that comes next on *link*. Trailers are refused."""
    dechunker = Dechunker()
    while not dechunker.done:
        data = await link.take(PIECE, BODY_TIME)
        if not data:
            raise RequestFault(400, LEFT_EARLY)
        parts = dechunker.feed(data)
        if dechunker.broken or dechunker.irregular:
            raise RequestFault(400, "the chunks of the body are malformed")
        link.give_back(data[dechunker.consumed :])
        for part in parts:
            yield bytes(part)


def _target(request: RequestHead, tunnel: str) -> _Target:
    """Return what *request* leads to, over a connection to the origin *tunnel* if that is not empty."""
    if tunnel and not request.target.startswith("/"):
        raise RequestFault(400, "a request in a tunnel must name a path")
    origin, path = (tunnel, request.target.partition("#")[0]) if tunnel else split_absolute(request.target)
    escaped = _OTHER_BYTES.sub(lambda found: b"%%%02X" % ord(found[0]), path.encode("latin-1")).decode()
    address = url.canonical(origin + escaped)
    if address is None:
        raise RequestFault(400, "the URL of the request cannot be read")
    scheme = address.partition("://")[0]
    if "@" in request.host or (
        request.host and url.canonical(f"{scheme}://{request.host}/") != f"{url.origin(address)}/"
    ):
        raise RequestFault(400, "the Host of the request is not that of its URL")
    return _Target(address, path)
