"""Check one record: its header fields, and its digests while its block streams by.

The fields that each record type must, may and must not have come from WARC 1.1 (ISO 28500:2017) §5 and §6 with its
errata. WARC 1.0 differs in the few points named here. Findings are pairs of code and message.

The payload of an HTTP message is its body without chunked framing, still content-encoded (WARC 1.1 §5.9). Many writers
hash the framing too; if that is what a digest matches, the finding says so.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, time
from functools import lru_cache
from ipaddress import ip_address
from operator import itemgetter
from typing import NamedTuple

from archiver.ask import WEBSOCKET, opens_websocket
from archiver.http import Dechunker
from archiver.http.head import MAX_HEAD, head_end, leading_blank, may_be_head, read_message, request_framing
from archiver.model import Framing
from archiver.tools.verify.digests import USUAL_DIGEST, Digest, RecordFinding, digest_field, digest_finding
from archiver.warc.reader import Record

_HELD_HEAD = 2 * MAX_HEAD  # a capture that was cut for its endless head is a little longer than MAX_HEAD
_NO_BODY = (204, 304)


class BlockCheck:
    """Checks the block of one record: feed it, finish it, then read `findings`."""

    def __init__(self, record: Record) -> None:
        self.framing: Framing | None = None  # of an HTTP message, once its head has come by
        self.of_request = record.type == "request"
        self._stated: int | None = None  # the length of its body by its head
        self._record = record
        self._block = digest_field(record, "WARC-Block-Digest")
        self._http = record.type in MESSAGES and is_http(record.first("Content-Type") or "")
        self.segmented = record.first("WARC-Segment-Number") is not None
        checked = record.type in WITH_PAYLOAD and not self.segmented
        self._payload = digest_field(record, "WARC-Payload-Digest") if checked else None
        self._framed: Digest | None = None  # of a chunked body with its framing
        self._head = bytearray()
        self._dechunker: Dechunker | None = None
        self._body = 0

    def feed(self, piece: bytes) -> None:
        """Add the next *piece* of the block."""
        if self._block is not None:
            self._block.update(piece)
        if not self._http:
            self._take(piece)
        elif self.framing is not None:
            self._take_body(piece)
        else:
            self._try_head(bytes(self._head) + piece, last=False)

    def finish(self) -> None:
        """End the block."""
        if self._http and self.framing is None:
            self._try_head(bytes(self._head), last=True)
        for part in self._dechunker.finish() if self._dechunker is not None else ():
            self._take(part)

    def findings(self) -> Iterator[RecordFinding]:
        """Yield the findings for a complete block."""
        if self._block is not None and not self._block.holds():
            claimed = self._record.first("WARC-Block-Digest")
            yield "block-digest", f"the header says {claimed}, but the block has {self._block}"
        if self._payload is not None and not self._payload.holds():
            yield self._payload_finding(self._payload)
        if self.segmented and self._record.first("WARC-Payload-Digest"):
            yield "segmented", "the payload digest of a segmented record was not checked"
        if self._record.type == "response" and self.framing is not None:
            yield from self._framing_findings(self.framing)

    def _payload_finding(self, payload: Digest) -> RecordFinding:
        claimed = self._record.first("WARC-Payload-Digest")
        if self._dechunker is not None and self._framed is not None and self._framed.holds():
            return "payload-digest-of-framing", f"{claimed} includes the chunked framing; the payload has {payload}"
        message = f"the header says {claimed}, but the payload has {payload}"
        if self._block is not None and self._http and claimed == self._record.first("WARC-Block-Digest"):
            message += "; it repeats the block digest"
        return "payload-digest", message

    def _framing_findings(self, framing: Framing) -> Iterator[RecordFinding]:
        if framing.status < 200 or framing.status in _NO_BODY or self._record.first("WARC-Truncated"):
            return
        if self._dechunker is not None:
            if self._dechunker.unframed and self._body:
                yield "chunked-unframed", "the HTTP head says chunked, but the body has no chunks"
            elif not self._dechunker.done and not self._dechunker.unframed:
                yield "truncation-unmarked", "the last chunk is missing, without WARC-Truncated"
        elif self._stated is not None and self._stated > self._body:
            yield "truncation-unmarked", f"the body has {self._body} of {self._stated} bytes, without WARC-Truncated"

    def _try_head(self, head: bytes, *, last: bool) -> None:
        """Read the head of the message if *head*, the block up to here, holds it; else keep it for the next piece."""
        start = leading_blank(head)
        open_end = not last and len(head) < _HELD_HEAD and (self.of_request or may_be_head(head))
        if open_end and head.find(b"\r\n\r\n", start) < 0 and head_end(head, start) < 0:
            self._head[:] = head
            return
        if self.of_request:
            self.framing = request_framing(head, head_end(head, start))
            if opens_websocket(head[: self.framing.head_length]):
                self.framing = replace(self.framing, protocol=WEBSOCKET)
        else:
            self.framing, length = read_message(head)
            self._stated = length.size
        if self.framing.chunked:
            self._dechunker = Dechunker()
            self._framed = None if self._payload is None else digest_field(self._record, "WARC-Payload-Digest")
        self._head.clear()
        if len(head) > self.framing.head_length:
            self._take_body(head[self.framing.head_length :])

    def _take_body(self, piece: bytes) -> None:
        if self._dechunker is None:
            self._take(piece)
        else:
            if self._framed is not None:
                self._framed.update(piece)
            for part in self._dechunker.feed(piece):
                self._take(part)

    def _take(self, part: bytes | memoryview) -> None:
        self._body += len(part)
        if self._payload is not None:
            self._payload.update(part)


MESSAGES = frozenset({"response", "request", "revisit"})
WITH_PAYLOAD = frozenset({"response", "request", "resource", "conversion"})


@lru_cache(maxsize=64)
def is_http(content_type: str) -> bool:
    """Return True if this is the media type of an HTTP message."""
    return re.sub(r"\s", "", content_type).lower().startswith("application/http")


TYPES = frozenset({"warcinfo", "response", "request", "resource", "metadata", "revisit", "conversion", "continuation"})
_WITH_URI = frozenset({"response", "request", "resource", "revisit", "conversion", "continuation"})
_CAPTURED = frozenset({"response", "request", "resource", "metadata", "revisit"})

REQUIRED: dict[str, frozenset[str]] = {
    "WARC-Type": TYPES,
    "WARC-Record-ID": TYPES,
    "WARC-Date": TYPES,
    "WARC-Target-URI": _WITH_URI,
    "WARC-Profile": frozenset({"revisit"}),
    "WARC-Segment-Number": frozenset({"continuation"}),
    "WARC-Segment-Origin-ID": frozenset({"continuation"}),
}

_ONCE_ANYWHERE = (
    "Content-Length",
    "Content-Type",
    "WARC-Block-Digest",
    "WARC-Payload-Digest",
    "WARC-Truncated",
    "WARC-Identified-Payload-Type",
)

ALLOWED: dict[str, frozenset[str]] = {  # the known types that may have the field
    "WARC-Target-URI": TYPES - {"warcinfo"},
    "WARC-Concurrent-To": _CAPTURED,
    "WARC-IP-Address": _CAPTURED,
    "WARC-Refers-To": frozenset({"metadata", "revisit", "conversion"}),
    "WARC-Refers-To-Target-URI": frozenset({"revisit"}),
    "WARC-Refers-To-Date": frozenset({"revisit"}),
    "WARC-Warcinfo-ID": TYPES - {"warcinfo"},
    "WARC-Filename": frozenset({"warcinfo"}),
    "WARC-Segment-Origin-ID": frozenset({"continuation"}),
    "WARC-Segment-Total-Length": frozenset({"continuation"}),
}

ONCE = (*REQUIRED, *(ALLOWED.keys() - REQUIRED.keys() - {"WARC-Concurrent-To"}), *_ONCE_ANYWHERE)

IDENTICAL_PAYLOAD = "/revisit/identical-payload-digest"
NOT_MODIFIED = "/revisit/server-not-modified"
_PROFILES = frozenset(
    f"http://netpreserve.org/warc/{version}{name}"
    for version in ("1.0", "1.1")
    for name in (IDENTICAL_PAYLOAD, NOT_MODIFIED, "/server-not-modified")  # the last as the standard's example has it
)

_TRUNCATIONS = frozenset({"length", "time", "disconnect", "unspecified"})
_RECORD_ID = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]+>")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f<>]*")
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?Z)?)?)?",
    re.IGNORECASE,  # RFC 3339 §5.6
)
_LEAST = (0, 1, 1, 0, 0, 0)
_LONGEST = 100  # characters of a date or an address


def field_findings(record: Record) -> Iterable[RecordFinding]:
    """Return all findings for the header of *record*."""
    return () if _is_sound(record) else _field_findings(record)


def _is_sound(record: Record) -> bool:
    """Return True if the header of *record* is like most, so that it has no findings; if False, it may have some."""
    if not record.is_usual or (record.version == "1.0" and "." in (record.first("WARC-Date") or "")):
        return False
    if not record.has_known_fields or (form := _sound_form(record.type, tuple(record.values))) is None:
        return False
    if _USUAL_VALUES.fullmatch(form.template % form.choose(record.values)):
        return True
    checks = ((_SYNTAX.get(name), name, value) for name, value in record.values.items())
    return not any(check(name, value) for check, name, value in checks if check is not None)


class _Form(NamedTuple):
    """What a header says in the fields whose text is checked."""

    choose: Callable[[Mapping[str, str]], tuple[str, ...]]
    template: str  # makes of these values what `_USUAL_VALUES` expects


@lru_cache(maxsize=256)
def _sound_form(kind: str, names: tuple[str, ...]) -> _Form | None:
    """Return the form of a record of type *kind* with these fields; None if it may need others, or forbid one."""
    if kind in ("warcinfo", "revisit") or "Content-Type" not in names or "WARC-Segment-Number" in names:
        return None
    if kind not in TYPES or any(_presence(kind, dict.fromkeys(names, "given"))):
        return None
    checked = [name for name in _SYNTAX if name in names]  # several: each record has an ID and a date
    return _Form(itemgetter(*checked), "".join([f"{name} %s\n" for name in checked]))


def _field_findings(record: Record) -> Iterator[RecordFinding]:
    for word in record.faults:
        yield word, _HEADER_FAULTS[word]
    if record.version not in ("1.0", "1.1"):
        yield "version-unknown", f"the version is WARC/{record.version}"
    if record.type and record.type not in TYPES:
        yield "type-unknown", f"the type is {record.type!r}"
    yield from _presence(record.type, record.values)
    yield from _repeated(record)
    yield from _content_type(record)
    for name, check in _SYNTAX.items():
        for value in record.all(name):
            if finding := check(name, value):
                yield finding
    if record.version == "1.0" and "." in (moment := record.first("WARC-Date") or ""):
        yield "date-precision", f"WARC-Date is {moment[:40]!r}; WARC/1.0 allows whole seconds only"
    yield from _segments(record)
    if record.type == "revisit":
        yield from _revisit(record)


_HEADER_FAULTS = {
    "version-line": "the version line has extra characters",
    "lone-lf": "a header line ends in LF without CR",
    "not-utf8": "a header field is not UTF-8",
    "folded-field": "a header field is folded over several lines",
    "field-syntax": "a header line is not `Name: value`",
}


def _presence(kind: str, values: Mapping[str, str]) -> Iterator[RecordFinding]:
    """Yield the findings for missing and forbidden fields; *values* are the first ones, by name."""
    for name, types in REQUIRED.items():
        if (kind in types or types is TYPES) and not values.get(name):
            yield "field-missing", f"a {kind or 'record'} must have {name}"
    if kind in TYPES:
        for name, types in ALLOWED.items():
            if kind not in types and name in values:
                yield "field-forbidden", f"a {kind} must not have {name}"
        if kind in ("warcinfo", "metadata") and "WARC-Payload-Digest" in values:
            yield "payload-digest-needless", f"a {kind} record has a WARC-Payload-Digest, but no payload"


def _repeated(record: Record) -> Iterator[RecordFinding]:
    for name in ONCE:
        if (times := len(record.all(name))) > 1:
            yield "field-repeated", f"{name} occurs {times} times"


def _content_type(record: Record) -> Iterator[RecordFinding]:
    media_type = record.first("Content-Type")
    if record.size and record.type != "continuation" and not media_type:
        yield "field-recommended", "Content-Type is missing"
    if record.type == "warcinfo" and media_type and not media_type.lower().startswith("application/warc-fields"):
        yield "field-recommended", f"the Content-Type of a warcinfo is {media_type[:80]!r}, not application/warc-fields"


def _record_id(name: str, value: str) -> RecordFinding | None:
    if value and not _RECORD_ID.fullmatch(value):
        return "record-id-syntax", f"{name} is {value[:80]!r}, not a URI in angle brackets"
    return None


def _uri(name: str, value: str) -> RecordFinding | None:
    if value.startswith("<") and value.endswith(">"):
        return "uri-brackets", f"{name} is in angle brackets"
    if value and not _URI.fullmatch(value):
        return "uri-syntax", f"{name} is {value[:80]!r}, not an absolute URI"
    return None


def _date(name: str, value: str) -> RecordFinding | None:
    return ("date-syntax", f"{name} is {value[:40]!r}") if value and not is_date(value) else None


def is_date(value: str) -> bool:
    """Return whether *value* is a date by WARC 1.1 §5.4: UTC, with a precision from years to nanoseconds."""
    return len(value) <= _LONGEST and _is_date(value)


@lru_cache(maxsize=256)  # the records of a visit have the same
def _is_date(value: str) -> bool:
    found = _DATE.fullmatch(value)
    if found is None:
        return False
    year, month, day, hour, minute, second = (
        int(part or default) for part, default in zip(found.groups(), _LEAST, strict=True)
    )
    try:
        date(year, month, day)
        time(hour, minute, min(second, 59))
    except ValueError:
        return False
    return second <= 60  # 27 leap seconds so far


def _ip(name: str, value: str) -> RecordFinding | None:
    return None if len(value) <= _LONGEST and _is_ip(value) else ("ip-syntax", f"{name} is {value[:60]!r}")


@lru_cache(maxsize=256)
def _is_ip(value: str) -> bool:
    try:
        ip_address(value)
    except ValueError:
        return False
    return True


def _truncated(name: str, value: str) -> RecordFinding | None:
    return None if value in _TRUNCATIONS else ("truncated-token", f"{name} is {value[:40]!r}")


def _segments(record: Record) -> Iterator[RecordFinding]:
    number = record.first("WARC-Segment-Number")
    if number is None:
        return
    if not re.fullmatch(r"[0-9]{1,9}", number) or int(number) < 1:
        yield "segment-fields", f"WARC-Segment-Number is {number[:40]!r}"
    elif (record.type == "continuation") != (int(number) > 1):
        yield "segment-fields", f"a {record.type} has segment number {number}"


def _revisit(record: Record) -> Iterator[RecordFinding]:
    profile = record.first("WARC-Profile") or ""
    if profile and profile not in _PROFILES:
        yield "revisit-profile", f"WARC-Profile is {profile[:120]!r}"
    if profile.endswith(IDENTICAL_PAYLOAD) and record.first("WARC-Payload-Digest") is None:
        yield "field-missing", "a revisit for an identical payload must have WARC-Payload-Digest"
    if profile.endswith(IDENTICAL_PAYLOAD) and record.size and record.first("WARC-Truncated") is None:
        yield "field-recommended", "WARC-Truncated is missing, although the payload is omitted"


_SYNTAX: dict[str, Callable[[str, str], RecordFinding | None]] = {
    "WARC-Record-ID": _record_id,
    "WARC-Concurrent-To": _record_id,
    "WARC-Refers-To": _record_id,
    "WARC-Warcinfo-ID": _record_id,
    "WARC-Segment-Origin-ID": _record_id,
    "WARC-Target-URI": _uri,
    "WARC-Refers-To-Target-URI": _uri,
    "WARC-Date": _date,
    "WARC-Refers-To-Date": _date,
    "WARC-IP-Address": _ip,
    "WARC-Block-Digest": digest_finding,
    "WARC-Payload-Digest": digest_finding,
    "WARC-Truncated": _truncated,
}

_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_USUAL: dict[Callable[[str, str], RecordFinding | None], str] = {  # values that are sound; others need the check itself
    _record_id: _RECORD_ID.pattern,
    _uri: _URI.pattern,
    _date: r"[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]{1,9})?Z",
    _ip: rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    digest_finding: f"(?:{USUAL_DIGEST.pattern})",
    _truncated: f"(?:{'|'.join(sorted(_TRUNCATIONS))})",
}
# One expression for all values of a header, each behind the name of its field and before a line end
_USUAL_VALUES = re.compile("".join([rf"(?:{name} {_USUAL[check]}\n)?" for name, check in _SYNTAX.items()]))
