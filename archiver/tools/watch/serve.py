"""Runs the control room: its socket, its bounds against slow and many connections, and its end.

A connection must send the head of its first request within some seconds. aiohttp bounds the length of heads and bodies,
and closes idle connections.
"""

import asyncio
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from archiver.errors import ConfigError
from archiver.tools.watch.app import Explain, Room, Serving, protect, refusal
from archiver.tools.watch.crawls import Crawls
from archiver.tools.watch.guard import LOOPBACK_NAMES, Guard, Origin, is_loopback
from archiver.tools.watch.users import Users

MOST_CONNECTIONS = 400
HEAD_TIME = 10.0  # seconds
IDLE_TIME = 20.0
REQUESTS: dict[str, Any] = {
    "access_log": None,
    "keepalive_timeout": IDLE_TIME,
    "lingering_time": 2.0,
    "max_headers": 60,
}
ENDS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@dataclass(frozen=True, slots=True)
class Listening:
    """Where and how to listen."""

    address: str = "127.0.0.1"
    port: int = 0
    users: Users | None = None
    certificate: tuple[Path, Path] | None = None  # and its key
    behind: str = ""  # the address of the page behind a proxy
    replay: str = ""
    until_stdin_ends: bool = False  # end with the process that has started this one


class _Closing(asyncio.Protocol):
    """Closes a connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class WatchedConnection(web.RequestHandler):
    """Answers the requests of one connection, and in our words what is no request at all."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a request that no route has seen; one of ours that failed is logged as a bug."""
        if status >= 500 or request.writer.output_size:
            response = super().handle_error(request, status, exc, message)
        else:
            response = refusal(status)
            response.force_close()
        protect(response)
        return response


class WatchConnections:
    """Makes a handler for each connection, unless there are too many, and closes those that say nothing."""

    def __init__(self, most: int = MOST_CONNECTIONS, head_time: float = HEAD_TIME) -> None:
        self._most = most
        self._head_time = head_time
        self._silent: set[web.RequestHandler] = set()
        self._server: web.Server | None = None

    def serve(self, server: web.Server) -> None:
        """Let *server* answer."""
        self._server = server

    def heard(self, request: web.Request) -> None:
        """Note that a connection has sent the head of a request."""
        self._silent.discard(request.protocol)

    def __call__(self) -> asyncio.Protocol:
        """Return the handler of a new connection."""
        assert self._server is not None
        if len(self._server.connections) >= self._most:
            return _Closing()
        handler = WatchedConnection(self._server, loop=asyncio.get_running_loop(), **REQUESTS)
        self._silent.add(handler)
        asyncio.get_running_loop().call_later(self._head_time, self._close, handler)
        return handler

    def _close(self, handler: web.RequestHandler) -> None:
        if handler in self._silent:
            self._silent.discard(handler)
            handler.force_close()


def run(crawls: Crawls, listening: Listening, explain: Explain, started: Callable[[str], None]) -> None:
    """Serve *crawls* until a signal; *started* receives the address of the page. Raises `ConfigError`."""
    _check_users(listening)
    tls = _tls(listening)
    with _bound(listening) as sock, suppress(asyncio.CancelledError):
        asyncio.run(_serve(crawls, listening, explain, (sock, tls), started))


def check_listening(listening: Listening) -> None:
    """Raise `ConfigError` if the server could not listen."""
    _check_users(listening)
    with _bound(listening):
        pass


def _check_users(listening: Listening) -> None:
    if not is_loopback(listening.address) and listening.users is None:
        raise ConfigError(
            f"{listening.address}: other machines can reach it, so name who may log in; "
            "archiver watch --users FILE --add-user NAME makes a file of users"
        )


@contextmanager
def _bound(listening: Listening) -> Iterator[socket.socket]:
    """Give a socket that is bound to the address."""
    try:
        family, _, _, _, place = socket.getaddrinfo(
            listening.address, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise ConfigError(f"--listen {listening.address}: not an address of this machine") from None
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        if sys.platform != "win32":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(place)
            sock.listen(128)
        except OSError as error:
            raise ConfigError(
                f"port {listening.port} of {listening.address} cannot be used: {error.strerror or error}; choose "
                "another with --port, or 0 for a free one"
            ) from None
        yield sock


def _tls(listening: Listening) -> ssl.SSLContext | None:
    if listening.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate, key = listening.certificate
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error.reason if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(f"--cert {certificate} and --key {key} cannot be used: {reason or error}") from None
    return context


def _names(listening: Listening, here: str) -> tuple[str, ...]:
    """Return the names at which the server may be asked."""
    name = f"[{here}]" if ":" in here else here
    given = listening.address.lower()
    own = [f"[{given}]" if ":" in given else given, name]
    if not is_loopback(here):
        machine = socket.gethostname().lower()
        own += [machine, *_addresses(machine)]
    return tuple(dict.fromkeys((*own, *LOOPBACK_NAMES)))


def _addresses(machine: str) -> list[str]:
    """Return the addresses of this machine, as far as its name leads to them."""
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(machine, None, type=socket.SOCK_STREAM)}
    except OSError:
        return []
    return [f"[{each}]" if ":" in each else each for each in sorted(found)]


async def _serve(
    crawls: Crawls,
    listening: Listening,
    explain: Explain,
    bound: tuple[socket.socket, ssl.SSLContext | None],
    started: Callable[[str], None],
) -> None:
    (sock, tls), loop, over = bound, asyncio.get_running_loop(), asyncio.Event()
    here, port = sock.getsockname()[:2]
    names = _names(listening, here)
    origin = Origin.of(tls=tls is not None, names=names, port=port, behind=listening.behind)
    guard = Guard(origin, listening.users, time.monotonic)
    near = is_loopback(here) and not listening.behind
    serving = Serving(port, origin.scheme == "https", near, bool(listening.behind), listening.replay)
    connections = WatchConnections()
    app = Room(crawls, guard, serving, explain).application(connections.heard)
    runner = web.AppRunner(app, shutdown_timeout=2.0)
    with _until(over, listening):
        await runner.setup()
        assert runner.server is not None
        connections.serve(runner.server)
        seconds = HEAD_TIME if tls is not None else None
        server = await loop.create_server(connections, sock=sock, ssl=tls, ssl_handshake_timeout=seconds)
        sampling = asyncio.create_task(crawls.sample())
        try:
            root = listening.behind.rstrip("/") or f"{origin.scheme}://{names[0]}:{port}"
            started(f"{root}/#token={guard.token}" if guard.token else f"{root}/")
            await over.wait()
        finally:
            sampling.cancel()
            server.close()
            await runner.cleanup()


@contextmanager
def _until(over: asyncio.Event, listening: Listening) -> Iterator[None]:
    """Set *over* when a signal comes, or when the process that has started this one ends."""
    loop = asyncio.get_running_loop()
    numbers = [each for each in ENDS if signal.getsignal(each) is not signal.SIG_IGN]
    for number in numbers:
        if sys.platform == "win32":
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(over.set))
        else:
            loop.add_signal_handler(number, over.set)
    if listening.until_stdin_ends:
        tell = partial(loop.call_soon_threadsafe, over.set)
        threading.Thread(target=_wait_for_end, args=(tell,), daemon=True).start()  # a read cannot be cancelled
    try:
        yield
    finally:
        for number in numbers if sys.platform != "win32" else ():
            loop.remove_signal_handler(number)


def _wait_for_end(tell: Callable[[], object]) -> None:
    while sys.stdin.buffer.read(1):
        pass
    with suppress(RuntimeError):  # the loop has ended already
        tell()
