"""Serves the metrics of a running crawl over HTTP, in a process of its own, which ends with the crawl.

The process reads live.json and nothing else, so whatever a client sends, the crawl does not notice. Each connection
gets one answer and has a few seconds for its request. On loopback every program may ask, but only by a name of this
machine: a page in a browser could otherwise read the metrics by changing the address of its own name.
"""

import hmac
import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

from archiver.errors import ConfigError
from archiver.tools.metrics.exposition import live_of, metrics_text

_PROGRAM = """
import sys, json, signal
for name in ("SIGINT", "SIGHUP"):  # of the terminal: they are for the crawl
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from archiver.tools.metrics.server import serve
serve()
"""
MOST = 16  # connections at once; further ones are closed
PATIENCE = 5.0  # seconds for a request and its answer
NICE = 5  # steps below the crawl
PATH = "/metrics"
_NAME = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::[0-9]+)?$")  # the name in a Host header


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """The place where metrics are served."""

    host: str  # an IP address
    port: int  # 0: a free one

    @property
    def is_loopback(self) -> bool:
        """True if only programs on this machine can ask."""
        return ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def metrics_address(text: str) -> MetricsAddress:
    """Return the address written as PORT or HOST:PORT. Raises `ConfigError`."""
    host, colon, port = text.rpartition(":")
    host = (host.removeprefix("[").removesuffix("]") if colon else "") or "127.0.0.1"
    host = "127.0.0.1" if host == "localhost" else host
    try:
        ipaddress.ip_address(host)
        number = int(port) if port.isascii() and port.isdigit() else -1
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise ConfigError(f"--metrics {text[:100]}: write PORT, or IP:PORT such as 127.0.0.1:9321 or [::1]:9321")
    return MetricsAddress(host, number)


@dataclass(frozen=True, slots=True)
class _Task:
    directory: str
    process: int
    token: str
    names: tuple[str, ...]  # by which clients may call us; empty: by any


@contextmanager
def metrics_server(directory: Path, address: MetricsAddress, token: str = "") -> Iterator[str]:
    """Serve the metrics of the crawl in *directory*, which runs in this process, while the block runs; yield the URL.

    With a *token*, clients must send it. Raises `ConfigError` if the address cannot be used.
    """
    with listening(address) as place:
        port = place.getsockname()[1]
        served = MetricsAddress(address.host, port)
        names = ("localhost", "127.0.0.1", "::1", address.host) if address.is_loopback else ()
        task = _Task(str(directory.absolute()), os.getpid(), token, names)
        path = json.dumps([path or str(Path.cwd()) for path in sys.path])
        process = subprocess.Popen(  # noqa: S603  our own program, with our own path
            [sys.executable, "-P", "-c", _PROGRAM, path, str(place.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(place.fileno(),),
        )
    assert process.stdin is not None
    try:
        with suppress(OSError):  # it has ended already, and has said why
            process.stdin.write(json.dumps(asdict(task)).encode() + b"\n")
            process.stdin.flush()
        yield f"http://{served}{PATH}"
    finally:
        with suppress(OSError):
            process.stdin.close()
        process.terminate()
        process.wait()


def listening(address: MetricsAddress) -> socket.socket:
    """Return a socket that listens at *address*. Raises `ConfigError` if that is not possible."""
    if sys.platform == "win32":
        raise ConfigError("--metrics: not on Windows, where a process cannot hand on its socket this way")
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigError(f"--metrics {address}: {reason}; choose another port, or end what uses it") from None


def serve() -> NoReturn:
    """Serve as the task says that comes through standard input, at the socket that is open, until the input ends."""
    task = _Task(**json.loads(sys.stdin.buffer.readline()))
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    server = _Server(socket.socket(fileno=int(sys.argv[2])), task)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with suppress(OSError):
        sys.stdin.buffer.read()
    os._exit(0)  # the crawl has ended


class _Server(ThreadingHTTPServer):
    """Answers at an open socket."""

    def __init__(self, place: socket.socket, task: _Task) -> None:
        self.address_family = place.family
        super().__init__(place.getsockname()[:2], _Answer, bind_and_activate=False)
        self.socket.close()
        self.socket = place
        self.task = task
        self._room = threading.BoundedSemaphore(MOST)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if there is room for one more."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and close the connection when the time is over."""
        timer = threading.Timer(PATIENCE, _close, (request,))
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of one connection."""


def _close(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Answer(BaseHTTPRequestHandler):
    """The answer to one request."""

    server: _Server
    server_version, sys_version = "archiver", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Send the metrics."""
        refusal = self._refusal()
        if refusal:
            self._send(refusal, b"", "text/plain")
            return
        task = self.server.task
        live = live_of(Path(task.directory))
        crawls = {} if live is None else {"": live}
        body, kind = metrics_text(crawls, self.headers.get("Accept", ""), task.process)
        self._send(200, body, kind)

    def _refusal(self) -> int:
        """Return the status that refuses the request; 0 if it may be answered."""
        task = self.server.task
        host = _NAME.match(self.headers.get("Host", ""))
        if task.names and (host is None or (host[1] or host[2]) not in task.names):
            return 403
        if task.token:
            given = self.headers.get("Authorization", "").encode("utf-8", "replace")
            if not hmac.compare_digest(given, f"Bearer {task.token}".encode()):
                return 401
        return 0 if self.path.partition("?")[0] == PATH else 404

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
