"""Heads of requests as a client sends them to a proxy: read strictly, and written for the server. Pure.

A server's faults are stored as they are; a client can send its request again. So everything whose end or meaning two
programs could see differently is refused: bare LF, folded lines, spaces before a colon, two lengths, a length beside a
transfer coding (request smuggling, RFC 9112 §11.2).
Source: RFC 9112; RFC 9110 §7.6.1 for the headers of one connection.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_HEAD = 64 << 10  # bytes; servers' own limits are 8 to 64 KiB
MOST_FIELDS = 200  # browsers send some dozens
CONNECT = "CONNECT"

_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
_TARGET = re.compile(rb"[!-~\x80-\xff]{1,16384}")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_VALUE = re.compile(rb"[\t -~\x80-\xff]*")
_LENGTH = re.compile(r"[0-9]{1,18}")
_AUTHORITY = re.compile(r"(?:[A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}")
_ONE_CONNECTION = frozenset(
    (
        *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te"),
        *("upgrade", "http2-settings"),
    )
)
_NOT_TO_BE_NAMED = frozenset(("host", "content-length", "transfer-encoding"))  # in Connection


class RequestFault(ValueError):  # noqa: N818  the word of this program for what is wrong with a message
    """A request that a proxy refuses, with the *status* that says so."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of one request. Names and values are Latin-1, as they came."""

    method: str
    target: str
    version: str  # HTTP/1.0 or HTTP/1.1
    fields: tuple[tuple[str, str], ...]
    lines: tuple[bytes, ...]  # the same fields, byte for byte
    length: int | None  # bytes of the body; None: it is chunked

    def all(self, name: str) -> list[str]:
        """Return every value of the header *name* (in lower case), in order."""
        return [value for known, value in self.fields if known.lower() == name]

    @property
    def host(self) -> str:
        """The value of Host; "" without one."""
        return next(iter(self.all("host")), "")

    @property
    def persistent(self) -> bool:
        """True if the client wants to send more requests on its connection."""
        words = self._words("connection") | self._words("proxy-connection")
        return "close" not in words and (self.version == "HTTP/1.1" or "keep-alive" in words)

    @property
    def expects_continue(self) -> bool:
        """True if the client waits for 100 Continue before it sends the body."""
        return self.version == "HTTP/1.1" and "100-continue" in self._words("expect")

    @property
    def upgrade(self) -> str:
        """The protocol to which the client wants to change, such as "websocket"; "" for none."""
        named = ", ".join(self.all("upgrade")).strip().lower()
        return named if "upgrade" in self._words("connection") else ""

    @property
    def opens_websocket(self) -> bool:
        """True if it opens a WebSocket connection as RFC 6455 §4.1 says."""
        return self.upgrade == "websocket" and (self.method, self.version, self.length) == ("GET", "HTTP/1.1", 0)

    def for_websocket(self, target: str) -> bytes:
        """Return the head with the *target* that the server gets, to open a WebSocket connection."""
        dropped = (_ONE_CONNECTION | (self._words("connection") - _NOT_TO_BE_NAMED)) - {"upgrade"}
        sent = [f"{self.method} {target} {self.version}".encode("latin-1")]
        for (name, _), line in zip(self.fields, self.lines, strict=True):
            low = name.lower()
            if low == "upgrade":
                sent += (b"Connection: Upgrade", line)
            elif low not in dropped and low != "expect":
                sent.append(line)
        return b"\r\n".join([*sent, b"", b""])

    def for_server(self, target: str, length: int) -> bytes:
        """Return the head with the *target* that the server gets, without what concerns the connection to us.

        A body of *length* bytes follows. If it was chunked, Content-Length takes the place of Transfer-Encoding.
        """
        dropped = _ONE_CONNECTION | (self._words("connection") - _NOT_TO_BE_NAMED)
        sent = [f"{self.method} {target} {self.version}".encode("latin-1")]
        for (name, _), line in zip(self.fields, self.lines, strict=True):
            low = name.lower()
            if low == "transfer-encoding":
                sent.append(b"Content-Length: %d" % length)
            elif low not in dropped and low != "expect":  # we have answered that, and have read the body
                sent.append(line)
        return b"\r\n".join([*sent, b"", b""])

    def _words(self, name: str) -> set[str]:
        return {word.strip().lower() for value in self.all(name) for word in value.split(",") if word.strip()}


def read_request(head: bytes) -> RequestHead:
    """Parse *head*, which ends with its empty line. Raises `RequestFault`."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if not head.endswith(b"\r\n\r\n") or b"\n" in b"".join(lines) or b"\r" in b"".join(lines):
        raise RequestFault(400, "the lines of the request do not end with CRLF")
    if len(lines) > MOST_FIELDS + 1:
        raise RequestFault(431, f"the request has more than {MOST_FIELDS} headers")
    method, target, version = _first_line(lines[0])
    fields = tuple(_field(line) for line in lines[1:])
    names = [name.lower() for name, _ in fields]
    if names.count("host") > 1 or (version == "HTTP/1.1" and "host" not in names):
        raise RequestFault(400, "the request must have one Host header")
    return RequestHead(method, target, version, fields, tuple(lines[1:]), _body_length(fields, version))


def _first_line(line: bytes) -> tuple[str, str, str]:
    parts = line.split(b" ")
    if len(parts) != 3 or not _METHOD.fullmatch(parts[0]):
        raise RequestFault(400, "the request does not begin with METHOD URL HTTP/1.1")
    if not _TARGET.fullmatch(parts[1]):
        long = len(parts[1]) > 16384
        raise RequestFault(414 if long else 400, "the URL is too long" if long else "the URL has forbidden characters")
    if parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise RequestFault(505, "this proxy reads HTTP/1.1 and HTTP/1.0")
    return parts[0].decode(), parts[1].decode("latin-1"), parts[2].decode()


def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise RequestFault(400, "a header of the request is malformed")
    return name.decode(), value.strip(b" \t").decode("latin-1")


def _body_length(fields: Iterable[tuple[str, str]], version: str) -> int | None:
    """Return how long the body is; None if it is chunked."""
    lengths = [value for name, value in fields if name.lower() == "content-length"]
    codings = [value for name, value in fields if name.lower() == "transfer-encoding"]
    if codings and lengths:
        raise RequestFault(400, "the request has both Content-Length and Transfer-Encoding")
    if codings:
        if version == "HTTP/1.0" or len(codings) > 1 or codings[0].strip().lower() != "chunked":
            raise RequestFault(501, "the only transfer coding of a request that this proxy reads is chunked")
        return None
    if len(lengths) > 1 or (lengths and not _LENGTH.fullmatch(lengths[0])):
        raise RequestFault(400, "the Content-Length of the request is not one number")
    return int(lengths[0]) if lengths else 0


def read_authority(text: str) -> tuple[str, int]:
    """Return host and port of *text*, the target of CONNECT. Raises `RequestFault`."""
    host, _, port = text.rpartition(":")
    if not _AUTHORITY.fullmatch(text) or not 0 < int(port) < 1 << 16:
        raise RequestFault(400, "CONNECT needs HOST:PORT")
    return host, int(port)


def split_absolute(target: str) -> tuple[str, str]:
    """Return origin and path of *target*, an absolute http URL as a client writes it. Raises `RequestFault`."""
    scheme, mark, rest = target.partition("://")
    if not mark or scheme.lower() != "http":
        raise RequestFault(
            400, "this is a recording proxy: set it as the proxy of a browser or client; it does not serve pages itself"
        )
    end = min((place for sign in "/?#" if (place := rest.find(sign)) >= 0), default=len(rest))
    authority, path = rest[:end], rest[end:].partition("#")[0]
    if not authority or "@" in authority:
        raise RequestFault(400, "the URL must have a host, and no user or password")
    return f"http://{authority}", path if path.startswith("/") else f"/{path}"


def head_for_client(head: bytes, *, keep: bool) -> bytes:
    """Return the *head* of a response without what concerns the connection to the server.

    *keep*: the connection to the client stays open. The other lines, and their order, are as they came.
    """
    first, *lines = (line.rstrip(b"\r") for line in head.strip(b"\r\n").split(b"\n"))
    said = (line.partition(b":")[2] for line in lines if _name_of(line) == "connection")
    named = {word.strip().lower().decode("latin-1") for words in said for word in words.split(b",")}
    dropped = _ONE_CONNECTION | (named - _NOT_TO_BE_NAMED)
    kept, dropping = [first], False
    for line in lines:
        if line[:1] not in (b" ", b"\t"):  # not folded
            dropping = _name_of(line) in dropped
        if not dropping:
            kept.append(line)
    kept.append(b"Connection: keep-alive" if keep else b"Connection: close")
    return b"\r\n".join([*kept, b"", b""])


def _name_of(line: bytes) -> str:
    return line.partition(b":")[0].strip().lower().decode("latin-1")
