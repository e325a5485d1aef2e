"""Response heads: status line and header fields, parsed as leniently as browsers do, with every fault named.

Fault words are stable: they appear in metadata records, the frontier and crawl.log. `read_beginning` reads a stored
response only as far as its head, so the response may have any size. `request_framing` reads the head of a stored
request. Bounded and linear; never raises. Pure.

Source: RFC 9112; RFC 9110 §5.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, cast

from archiver.model import Framing

MAX_HEAD = 1 << 20  # of stored heads, by any crawler; `framer` cuts new ones earlier
LARGE_HEAD = 64 << 10  # servers' own limits are 8 to 64 KiB: a longer head is a fault
BODYLESS = frozenset((101, 204, 304))  # RFC 9112 §6.3; we never ask for an upgrade (101)
MAX_FIELDS = 5000  # parsed at most, as in curl; the head is stored complete. Real ones have some dozens
MAX_CODINGS = 5  # curl's limit for stacked codings
UNKNOWN_CODING = "unknown-content-coding"  # fault word: browsers show the body as it is; many name a charset there
SHORT = 256  # bytes; parsed lines up to this length are cached: a server repeats most of them

_STATUS = re.compile(rb"HTTP/(\d+(?:\.\d+)?)[ \t]+(\d{1,3})(?![^ \t])", re.IGNORECASE)  # as browsers do
_STATUS_AND_SIGN = re.compile(rb"HTTP/(\d+(?:\.\d+)?)[ \t]+(\d{3})(?=[:;,.])", re.IGNORECASE)  # `200: OK`, the same
_SHOUTCAST = re.compile(rb"ICY[ \t]+(\d{1,3})(?![^ \t])", re.IGNORECASE)
_LEADING = re.compile(rb"[\r\n]*")
_LINE_END = re.compile(rb"\r?\n")
_ESSENCE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")
_LENGTH = re.compile(r"[0-9]{1,64}")
LARGE_LENGTH = "large-content-length"  # fault word for 2^63 and more: as in browsers, the body ends with the connection
_WHOLE_RANGE = re.compile(r"bytes[ \t]+0-([0-9]{1,18})/([0-9]{1,18})", re.IGNORECASE)
_USUAL_LENGTH = 18  # digits of a body's length that fits in 63 bits

Field = tuple[str, str]
Status = tuple[int, str, tuple[str, ...]]  # status code, protocol, faults


class BodyLength(NamedTuple):
    """The way to find the end of a body: `size` bytes, or chunks, or (neither) the end of the connection."""

    size: int | None
    chunked: bool
    faults: tuple[str, ...] = ()


def head_end(data: bytes | bytearray, start: int = 0) -> int:
    """Return where the head ends, including its empty line; -1 if *data* does not hold the end from *start* on."""
    line = data.find(b"\n", start)  # one byte is found ten times as fast as two or three
    if line < 0:
        return -1
    usual = data.find(b"\n\r\n", line)  # before the other, because it is near: a long body may have no empty line
    bare = data.find(b"\n\n", line, usual + 1 if usual >= 0 else len(data))
    return bare + 2 if bare >= 0 else usual + 3 if usual >= 0 else -1


def leading_blank(data: bytes | bytearray, start: int = 0) -> int:
    """Return the end of the empty lines that some servers send before the status line; up to *start* all is empty."""
    found = _LEADING.match(data, start)
    return found.end() if found else start


def may_be_head(data: bytes | bytearray, start: int = 0) -> bool:
    """True if *data* can be the start of a head. Otherwise it is a bare body, as in HTTP/0.9."""
    begin = bytes(data[(at := leading_blank(data, start)) : at + 5]).upper()
    return b"HTTP/".startswith(begin) or b"ICY ".startswith(begin[:4])


def read_head(data: bytes) -> Framing:
    """Parse the head at the start of *data*; without a head, all of it is a body (HTTP/0.9)."""
    return read_message(data)[0]


def read_message(data: bytes) -> tuple[Framing, BodyLength]:
    """Parse the head at the start of *data*; return it and how its body ends."""
    end = data.find(b"\r\n\r\n") + 4
    return (_read_regular(data[:end]) if end > 3 else None) or _read_any(data)


def _read_regular(head: bytes) -> tuple[Framing, BodyLength] | None:
    """Parse a well-formed *head* quickly; None if it needs `_read_any`. Both give the same result."""
    lines = head.split(b"\r\n", MAX_FIELDS + 3)
    ends = len(lines) - 1
    if ends > MAX_FIELDS or len(head) > LARGE_HEAD or head.count(b"\n") != ends or head.count(b"\r") != ends:
        return None  # maybe other line ends
    if b"\0" in head or not head.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")):
        return None
    fields = tuple([_field(line) if len(line) <= SHORT else _read_field(line) for line in lines[1:-2]])
    if None in fields:
        return None
    sound = cast("tuple[Field, ...]", fields)
    first = _status(lines[0]) if len(lines[0]) <= SHORT else _read_status(lines[0])
    return _message(len(head), first, sound)


def _read_any(data: bytes) -> tuple[Framing, BodyLength]:
    start = leading_blank(data)
    if not may_be_head(data) or len(data) < start + 5:
        bare = Framing(0, 0, chunked=False, media_type="", fields=(), protocol="http/0.9", faults=("no-status-line",))
        return bare, BodyLength(None, chunked=False)
    end = head_end(data, start)
    length = len(data) if end < 0 else end
    status_line, *lines = _LINE_END.split(data[start:length], MAX_FIELDS + 3)
    status, protocol, faults = _read_status(status_line)
    fields, field_faults = _fields(lines[:MAX_FIELDS])
    faults += field_faults
    if b"\0" in data[:length]:
        faults += ("nul-in-head",)
    if data.count(b"\r", start, length) > data.count(b"\r\n", start, length):
        faults += ("lone-cr",)
    if length > LARGE_HEAD:
        faults += ("large-head",)
    if len(lines) > MAX_FIELDS + 2:
        faults += ("too-many-fields",)
    if end < 0:
        faults += ("no-head-end",)
    return _message(length, (status, protocol, faults), fields)


def _message(length: int, first: Status, fields: tuple[Field, ...]) -> tuple[Framing, BodyLength]:
    """Return the framing and body length for a parsed head of *length* bytes."""
    status, protocol, faults = first
    body = body_length(fields)
    framing = Framing(status, length, body.chunked, _media_type(fields), fields, protocol, faults + body.faults)
    return framing, body


def _read_status(line: bytes) -> Status:
    odd: tuple[str, ...] = ()
    found = _STATUS.match(line)
    if found is None and (found := _STATUS_AND_SIGN.match(line)):
        odd = ("status-code",)
    if found:
        version = found[1].decode()
        status = int(found[2])
        usual = version in ("1.0", "1.1") and line.startswith(b"HTTP/")
        faults: tuple[str, ...] = () if usual else ("http-version",)
        if status < 100:
            faults += ("status-line",)
        return status, "http/1.0" if version == "1.0" else "http/1.1", faults + odd
    if found := _SHOUTCAST.match(line):
        return int(found[1]), "http/1.0", ("icy-status-line",)
    return 0, "http/1.1", ("status-line",)


def _read_field(line: bytes) -> Field | None:
    """Return name and value of one complete *line*; None if it is no field on its own."""
    name, colon, value = line.partition(b":")
    if not colon or line[:1] in (b" ", b"\t"):
        return None
    return name.strip().decode("latin-1").lower(), value.strip(b" \t\0").decode("latin-1").strip()


_status = lru_cache(maxsize=64)(_read_status)
_field = lru_cache(maxsize=2048)(_read_field)  # at most 2 MB


def _fields(lines: list[bytes]) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    fields: list[tuple[str, list[str]]] = []
    faults: tuple[str, ...] = ()
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            if fields and (more := line.strip()):  # obsolete folding (RFC 9112 §5.2)
                fields[-1][1].append(more.decode("latin-1"))
            elif not fields and "folded-first-field" not in faults:  # §2.2: recipients ignore such a line
                faults += ("folded-first-field",)
            continue
        name, colon, value = line.partition(b":")
        if colon:
            fields.append((name.strip().decode("latin-1").lower(), [value.strip(b" \t\r\n\0").decode("latin-1")]))
        elif line and "field-without-colon" not in faults:
            faults += ("field-without-colon",)
    return tuple((name, " ".join(parts).strip()) for name, parts in fields), faults


def _media_type(fields: tuple[Field, ...]) -> str:
    value = dict(fields[::-1]).get("content-type", "")  # the first one
    return _essence(value) if len(value) <= SHORT else _read_essence(value)


def _read_essence(value: str) -> str:
    essence = value.partition(";")[0].strip().lower()
    return essence if _ESSENCE.fullmatch(essence) else ""


_essence = lru_cache(maxsize=256)(_read_essence)


def body_length(fields: tuple[Field, ...]) -> BodyLength:
    """Return how the body of a response with these *fields* ends (RFC 9112 §6.3)."""
    named = dict(fields)
    if len(named) == len(fields) and "transfer-encoding" not in named:  # the usual way, which gives what the other does
        length = named.get("content-length")
        if length is None or (length.isdecimal() and length.isascii() and len(length) <= _USUAL_LENGTH):
            return BodyLength(None if length is None else int(length), chunked=False)
    lengths = [value for name, value in fields if name == "content-length"]
    coded = [value for name, value in fields if name == "transfer-encoding"]
    if codings := _codings(coded):
        odd = len(codings) > MAX_CODINGS or codings[-1] != "chunked"
        return BodyLength(None, not odd, ("transfer-coding",) if odd else ())
    if not lengths:
        return BodyLength(None, chunked=False)
    stated = {part.strip() for value in lengths for part in value.split(",")}
    only = stated.pop()
    if stated or not _LENGTH.fullmatch(only):
        return BodyLength(None, chunked=False, faults=("content-length",))
    size = int(only)
    if size >= 1 << 63:
        return BodyLength(None, chunked=False, faults=(LARGE_LENGTH,))
    return BodyLength(size, chunked=False)


def is_unasked_part(request: bytes, framing: Framing) -> bool:
    """Return True if a response is a part (206) of what *request* asked for; one that holds all bytes is none."""
    if framing.status != 206 or b"\nrange:" in request.partition(b"\r\n\r\n")[0].lower():
        return False
    found = _WHOLE_RANGE.fullmatch((framing.first("content-range") or "").strip())
    return found is None or int(found[1]) + 1 != int(found[2])


def content_codings(fields: tuple[Field, ...]) -> tuple[str, ...]:
    """Return the content codings in the order in which they were applied, including "identity"."""
    values = [value for name, value in fields if name == "content-encoding"]
    return tuple(filter(None, _words(values))) if values else ()


def transfer_codings(fields: tuple[Field, ...]) -> tuple[str, ...]:
    """Return the transfer codings other than chunked, in the order in which they were applied."""
    coded = [value for name, value in fields if name == "transfer-encoding"]
    return tuple(coding for coding in _codings(coded) if coding != "chunked")


def _codings(values: list[str]) -> list[str]:
    return [word for word in _words(values) if word not in ("", "identity")]


def _words(values: list[str]) -> list[str]:
    return [part.strip().lower() for value in values for part in value.split(",")]


def request_framing(head: bytes, end: int) -> Framing:
    """Return a request's framing: its fields and body share the grammar of a response. Its `protocol` is the method."""
    length = end if end >= 0 else len(head)
    line = head.find(b"\n", 0, length)
    fields = head[line + 1 : length] if line >= 0 else b""
    coded = b"transfer-encoding" in fields.lower()  # else it cannot be chunked
    method = head[:32].split(maxsplit=1)
    return Framing(
        status=0,
        head_length=length,
        chunked=coded and read_head(b"HTTP/1.1 200\r\n" + fields).chunked,
        media_type="",
        fields=(),
        protocol=method[0].decode("latin-1") if method else "",
    )


LONGEST_HEAD = MAX_HEAD + 16  # bytes searched for a head: a crawl cuts longer ones


def read_stored(data: bytes) -> Framing:
    """Parse the head of a stored, final response. Responses without a body are never chunked."""
    framing = read_head(data)
    return replace(framing, chunked=False) if framing.status in BODYLESS else framing


def read_beginning(pieces: Iterator[bytes]) -> tuple[bytes, Framing]:
    """Read *pieces* of a stored response up to the end of its head; return these bytes and the parsed head."""
    buffer = bytearray()
    start = looked = 0
    for piece in pieces:
        buffer += piece
        start = leading_blank(buffer, start)
        if head_end(buffer, max(start, looked)) >= 0 or not may_be_head(buffer, start) or len(buffer) >= LONGEST_HEAD:
            break
        looked = max(0, len(buffer) - 2)  # the end may start here
    begin = bytes(buffer)
    return begin, read_stored(begin[:LONGEST_HEAD])


def beginning(pieces: Iterator[bytes], most: int) -> bytes:
    """Return the first of *pieces* joined, at least *most* bytes if there are that many; the rest stays in *pieces*."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        if len(buffer) >= most:
            break
    return bytes(buffer)
