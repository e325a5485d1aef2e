"""A response head: status line and fields, read as leniently as browsers do, with every fault named.

Fault words are stable: they stand in metadata records, the frontier and crawl.log. Never raises.
Source: RFC 9112; RFC 9110 §5.

A stored response read again from the beginning of its block: as many bytes as its head takes, and what they say.

The rest is not touched, so the answer can be of any size. Bounded and linear; never raises. Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, cast

from archiver.model import Framing

MAX_HEAD = 1 << 20  # of what is stored, whoever wrote it; `framer` cuts what comes now at less
LARGE_HEAD = 64 << 10  # servers' own limits lie between 8 and 64 KiB: beyond is named as a fault
BODYLESS = frozenset((101, 204, 304))  # RFC 9112 §6.3; 101 where nobody asked for an upgrade
MAX_FIELDS = 5000  # are read, as in curl; a head with more is stored whole. Real ones have some dozens
MAX_CODINGS = 5  # curl's limit for stacked codings
SHORT = 256  # bytes; lines up to this are remembered: a server says nearly the same ones with every answer

_STATUS = re.compile(rb"HTTP/(\d+(?:\.\d+)?)[ \t]+(\d{1,3})(?![^ \t])")
_STATUS_AND_SIGN = re.compile(rb"HTTP/(\d+(?:\.\d+)?)[ \t]+(\d{3})(?=[:;,.])")  # as browsers read `200: OK`
_SHOUTCAST = re.compile(rb"ICY[ \t]+(\d{1,3})(?![^ \t])")
_LEADING = re.compile(rb"[\r\n]*")
_LINE_END = re.compile(rb"\r?\n")
_ESSENCE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")
_LENGTH = re.compile(r"[0-9]{1,64}")

Field = tuple[str, str]
Status = tuple[int, str, tuple[str, ...]]  # with the protocol and what is malformed


class BodyLength(NamedTuple):
    """How the end of a body is found: `size` bytes, or chunks, or (neither) the end of the connection."""

    size: int | None
    chunked: bool
    faults: tuple[str, ...] = ()


def head_end(data: bytes | bytearray, start: int = 0) -> int:
    """Where the head ends, its empty line included; -1 where *data* does not hold it from *start* on."""
    bare = data.find(b"\n\n", start)
    usual = data.find(b"\n\r\n", start, bare + 1 if bare >= 0 else len(data))
    return usual + 3 if usual >= 0 else bare + 2 if bare >= 0 else -1


def leading_blank(data: bytes | bytearray, start: int = 0) -> int:
    """Where the empty lines end that some servers send before the status line; up to *start* all is empty."""
    found = _LEADING.match(data, start)
    return found.end() if found else start


def may_be_head(data: bytes | bytearray, start: int = 0) -> bool:
    """Whether *data* can be the beginning of a head; if not, it is a bare body as HTTP/0.9 has it."""
    begin = bytes(data[(at := leading_blank(data, start)) : at + 5])
    return b"HTTP/".startswith(begin) or b"ICY ".startswith(begin[:4])


def read_head(data: bytes) -> Framing:
    """What the head at the beginning of *data* says; without one, all of it is a body (HTTP/0.9)."""
    return read_message(data)[0]


def read_message(data: bytes) -> tuple[Framing, BodyLength]:
    """What the head at the beginning of *data* says, and how its body ends."""
    end = data.find(b"\r\n\r\n") + 4
    return (_read_regular(data[:end]) if end > 3 else None) or _read_any(data)


def _read_regular(head: bytes) -> tuple[Framing, BodyLength] | None:
    """What *head* says if it is one as it should be, which the other way of reading would read the same."""
    lines = head.split(b"\r\n", MAX_FIELDS + 3)
    ends = len(lines) - 1
    if ends > MAX_FIELDS or len(head) > LARGE_HEAD or head.count(b"\n") != ends or head.count(b"\r") != ends:
        return None  # perhaps lines that end otherwise
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
    """What a head of so many bytes says, of whose *fields* and *first* line all is known, and how its body ends."""
    status, protocol, faults = first
    body = body_length(fields)
    framing = Framing(
        status=status,
        head_length=length,
        chunked=body.chunked,
        media_type=_media_type(fields),
        fields=fields,
        protocol=protocol,
        faults=faults + body.faults,
    )
    return framing, body


def _read_status(line: bytes) -> Status:
    odd: tuple[str, ...] = ()
    found = _STATUS.match(line)
    if found is None and (found := _STATUS_AND_SIGN.match(line)):
        odd = ("status-code",)
    if found:
        version = found[1].decode()
        status = int(found[2])
        faults: tuple[str, ...] = () if version in ("1.0", "1.1") else ("http-version",)
        if status < 100:
            faults += ("status-line",)
        return status, "http/1.0" if version == "1.0" else "http/1.1", faults + odd
    if found := _SHOUTCAST.match(line):
        return int(found[1]), "http/1.0", ("icy-status-line",)
    return 0, "http/1.1", ("status-line",)


def _read_field(line: bytes) -> Field | None:
    """Name and value of one whole *line*; None where it is no field by itself."""
    name, colon, value = line.partition(b":")
    if not colon or line[:1] in (b" ", b"\t"):
        return None
    return name.strip().decode("latin-1").lower(), value.strip(b" \t\0").decode("latin-1").strip()


_status = lru_cache(maxsize=64)(_read_status)
_field = lru_cache(maxsize=2048)(_read_field)  # less than 2 MB, whatever servers send


def _fields(lines: list[bytes]) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    fields: list[tuple[str, list[str]]] = []
    faults: tuple[str, ...] = ()
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            if fields and (more := line.strip()):  # obsolete folding (RFC 9112 §5.2)
                fields[-1][1].append(more.decode("latin-1"))
            elif not fields and "folded-first-field" not in faults:  # §2.2: recipients leave such a line out
                faults += ("folded-first-field",)
            continue
        name, colon, value = line.partition(b":")
        if colon:
            fields.append((name.strip().decode("latin-1").lower(), [value.strip(b" \t\r\n\0").decode("latin-1")]))
        elif line and "field-without-colon" not in faults:
            faults += ("field-without-colon",)
    return tuple((name, " ".join(parts).strip()) for name, parts in fields), faults


def _media_type(fields: tuple[Field, ...]) -> str:
    for name, value in fields:
        if name == "content-type":
            return _essence(value) if len(value) <= SHORT else _read_essence(value)
    return ""


def _read_essence(value: str) -> str:
    essence = value.partition(";")[0].strip().lower()
    return essence if _ESSENCE.fullmatch(essence) else ""


_essence = lru_cache(maxsize=256)(_read_essence)


def body_length(fields: tuple[Field, ...]) -> BodyLength:
    """How the body of a response with these *fields* ends (RFC 9112 §6.3)."""
    lengths: list[str] = []
    coded: list[str] = []
    for name, value in fields:
        if name == "content-length":
            lengths.append(value)
        elif name == "transfer-encoding":
            coded.append(value)
    if codings := _codings(coded):
        odd = len(codings) > MAX_CODINGS or codings[-1] != "chunked"
        return BodyLength(None, not odd, ("transfer-coding",) if odd else ())
    if not lengths:
        return BodyLength(None, chunked=False)
    said = {part.strip() for value in lengths for part in value.split(",")}
    only = said.pop()
    if said or not _LENGTH.fullmatch(only):
        return BodyLength(None, chunked=False, faults=("content-length",))
    size = int(only)
    return BodyLength(size if size < 1 << 63 else None, chunked=False)


def content_codings(fields: tuple[Field, ...]) -> tuple[str, ...]:
    """How the payload itself is said to be coded, in the order in which that was done: "identity" is a word too."""
    values = [value for name, value in fields if name == "content-encoding"]
    return tuple(filter(None, _words(values))) if values else ()


def transfer_codings(fields: tuple[Field, ...]) -> tuple[str, ...]:
    """The transfer codings besides chunked, in the order in which they were applied."""
    coded = [value for name, value in fields if name == "transfer-encoding"]
    return tuple(coding for coding in _codings(coded) if coding != "chunked")


def _codings(values: list[str]) -> list[str]:
    return [word for word in _words(values) if word not in ("", "identity")]


def _words(values: list[str]) -> list[str]:
    return [part.strip().lower() for value in values for part in value.split(",")]


LONGEST_HEAD = MAX_HEAD + 16  # bytes in which a head is looked for: a crawl cuts a longer one off


def read_stored(data: bytes) -> Framing:
    """What the head of a stored, final response says; answers that have no body are never chunked."""
    framing = read_head(data)
    return replace(framing, chunked=False) if framing.status in BODYLESS else framing


def read_beginning(pieces: Iterator[bytes]) -> tuple[bytes, Framing]:
    """The first of the *pieces* of a stored response, its whole head in them, and what that says."""
    held = bytearray()
    start = looked = 0
    for piece in pieces:
        held += piece
        start = leading_blank(held, start)
        if head_end(held, max(start, looked)) >= 0 or not may_be_head(held, start) or len(held) >= LONGEST_HEAD:
            break
        looked = max(0, len(held) - 2)  # the end may have begun
    begin = bytes(held)
    return begin, read_stored(begin[:LONGEST_HEAD])


def beginning(pieces: Iterator[bytes], most: int) -> bytes:
    """The first of *pieces* in one, at least *most* bytes where there are so many; the others are still to come."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= most:
            break
    return bytes(held)
