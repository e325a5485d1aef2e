"""A response head: status line and fields, read as leniently as browsers do, with every fault named.

Fault words are stable: they stand in metadata records, the frontier and crawl.log. Never raises.
Source: RFC 9112; RFC 9110 §5.
"""

import re
from dataclasses import dataclass, replace

from archiver.model import Framing

MAX_HEAD = 1 << 20  # browsers stop at 256 KiB, curl at 300 KB; more is an attack, and the block is cut there
LARGE_HEAD = 64 << 10  # servers' own limits lie between 8 and 64 KiB: beyond is named as a fault
BODYLESS = frozenset((101, 204, 304))  # RFC 9112 §6.3; 101 where nobody asked for an upgrade
MAX_FIELDS = 10_000  # are read; curl refuses half as many, and real heads have some dozens
MAX_CODINGS = 5  # curl's limit for stacked codings

_STATUS = re.compile(rb"HTTP/(\d+(?:\.\d+)?)[ \t]+(\d{1,3})(?![^ \t])")
_SHOUTCAST = re.compile(rb"ICY[ \t]+(\d{1,3})(?![^ \t])")
_LONE_CR = re.compile(rb"\r(?!\n)")
_LEADING = re.compile(rb"[\r\n]*")
_HEAD_END = re.compile(rb"\n\r?\n")
_LINE_END = re.compile(rb"\r?\n")


@dataclass(frozen=True, slots=True)
class BodyLength:
    """How the end of a body is found: `size` bytes, or chunks, or (neither) the end of the connection."""

    size: int | None
    chunked: bool
    faults: tuple[str, ...] = ()


def head_end(data: bytes | bytearray, start: int = 0) -> int:
    """Where the head ends, its empty line included; -1 where *data* does not hold it from *start* on."""
    found = _HEAD_END.search(data, start)
    return found.end() if found else -1


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
    start = leading_blank(data)
    if not may_be_head(data) or len(data) < start + 5:
        return Framing(0, 0, chunked=False, media_type="", fields=(), protocol="http/0.9", faults=("no-status-line",))
    end = head_end(data, start)
    length = len(data) if end < 0 else end
    status_line, *lines = _LINE_END.split(data[start:length], MAX_FIELDS + 3)
    status, protocol, faults = _status(status_line)
    fields, field_faults = _fields(lines[:MAX_FIELDS])
    faults += field_faults
    if b"\0" in data[:length]:
        faults += ("nul-in-head",)
    if _LONE_CR.search(data, start, length):
        faults += ("lone-cr",)
    if length > LARGE_HEAD:
        faults += ("large-head",)
    if len(lines) > MAX_FIELDS + 2:
        faults += ("too-many-fields",)
    if end < 0:
        faults += ("no-head-end",)
    body = body_length(fields)
    return Framing(
        status=status,
        head_length=length,
        chunked=body.chunked,
        media_type=_media_type(fields),
        fields=fields,
        protocol=protocol,
        faults=faults + body.faults,
    )


def read_stored(data: bytes) -> Framing:
    """What the head of a stored, final response says; answers that have no body are never chunked."""
    framing = read_head(data)
    return replace(framing, chunked=False) if framing.status in BODYLESS else framing


def _status(line: bytes) -> tuple[int, str, tuple[str, ...]]:
    if found := _STATUS.match(line):
        version = found[1].decode()
        status = int(found[2])
        faults: tuple[str, ...] = () if version in ("1.0", "1.1") else ("http-version",)
        if status < 100:
            faults += ("status-line",)
        return status, "http/1.0" if version == "1.0" else "http/1.1", faults
    if found := _SHOUTCAST.match(line):
        return int(found[1]), "http/1.0", ("icy-status-line",)
    return 0, "http/1.1", ("status-line",)


def _fields(lines: list[bytes]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    fields: list[tuple[str, list[str]]] = []
    faults: tuple[str, ...] = ()
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            if fields and (more := line.strip()):  # obsolete folding (RFC 9112 §5.2)
                fields[-1][1].append(more.decode("latin-1"))
            continue
        name, colon, value = line.partition(b":")
        if colon:
            fields.append((name.strip().decode("latin-1").lower(), [value.strip(b" \t\r\n\0").decode("latin-1")]))
        elif line and not faults:
            faults = ("field-without-colon",)
    return tuple((name, " ".join(parts).strip()) for name, parts in fields), faults


def _media_type(fields: tuple[tuple[str, str], ...]) -> str:
    value = next((value for name, value in fields if name == "content-type"), "")
    essence = value.partition(";")[0].strip().lower()
    return essence if re.fullmatch(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+", essence) else ""


def body_length(fields: tuple[tuple[str, str], ...]) -> BodyLength:
    """How the body of a response with these *fields* ends (RFC 9112 §6.3)."""
    if codings := _codings(fields):
        odd = len(codings) > MAX_CODINGS or codings[-1] != "chunked"
        return BodyLength(None, not odd, ("transfer-coding",) if odd else ())
    lengths = {part.strip() for name, value in fields if name == "content-length" for part in value.split(",")}
    if not lengths:
        return BodyLength(None, chunked=False)
    only = lengths.pop()
    if lengths or not re.fullmatch(r"[0-9]{1,64}", only):
        return BodyLength(None, chunked=False, faults=("content-length",))
    size = int(only)
    return BodyLength(size if size < 1 << 63 else None, chunked=False)


def transfer_codings(fields: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The transfer codings besides chunked, in the order in which they were applied."""
    return tuple(coding for coding in _codings(fields) if coding != "chunked")


def _codings(fields: tuple[tuple[str, str], ...]) -> list[str]:
    lists = (value.split(",") for name, value in fields if name == "transfer-encoding")
    words = (part.strip().lower() for parts in lists for part in parts)
    return [word for word in words if word not in ("", "identity")]
