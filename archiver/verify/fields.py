"""The header of a record against the standard: which fields each type must, may and must not have, and their syntax.

One table, from WARC 1.1 (ISO 28500:2017) §5 and §6 with its errata; WARC 1.0 differs in the few points named here.
Findings are pairs of a code and a sentence.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, time
from ipaddress import ip_address

from archiver.verify.digests import digest_fault
from archiver.warc.reader import Record

Finding = tuple[str, str]

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

ALLOWED: dict[str, frozenset[str]] = {  # a known type that is not named must not have the field
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


def field_findings(record: Record) -> Iterator[Finding]:
    """Everything in the header of *record* that is not as it should be."""
    for word in record.faults:
        yield word, _HEADER_FAULTS[word]
    if record.version not in ("1.0", "1.1"):
        yield "version-unknown", f"the record calls itself WARC/{record.version}"
    if record.type and record.type not in TYPES:
        yield "type-unknown", f"a record of type {record.type!r}"
    yield from _presence(record)
    yield from _content_type(record)
    for name, check in _SYNTAX.items():
        for value in record.all(name):
            if finding := check(name, value):
                yield finding
    if record.version == "1.0" and "." in (moment := record.first("WARC-Date") or ""):
        yield "date-precision", f"WARC-Date is {moment[:40]!r}; WARC/1.0 knows whole seconds only"
    yield from _segments(record)
    if record.type == "revisit":
        yield from _revisit(record)


_HEADER_FAULTS = {
    "version-line": "the version line holds more than the version",
    "lone-lf": "a header line ends in LF without CR",
    "not-utf8": "a header field is not UTF-8",
    "folded-field": "a header field goes on over several lines",
    "field-syntax": "a header line is no `Name: value`",
}


def _presence(record: Record) -> Iterator[Finding]:
    kind = record.type
    for name, types in REQUIRED.items():
        if (kind in types or types is TYPES) and not record.first(name):
            yield "field-missing", f"a {kind or 'record'} must have {name}"
    if kind in TYPES:
        for name, types in ALLOWED.items():
            if kind not in types and record.first(name) is not None:
                yield "field-forbidden", f"a {kind} must not have {name}"
        if kind in ("warcinfo", "metadata") and record.first("WARC-Payload-Digest") is not None:
            yield "payload-digest-needless", f"a {kind} has no payload, yet a WARC-Payload-Digest"
    for name in ONCE:
        if (times := len(record.all(name))) > 1:
            yield "field-repeated", f"{name} stands {times} times"


def _content_type(record: Record) -> Iterator[Finding]:
    media_type = record.first("Content-Type")
    if record.size and record.type != "continuation" and not media_type:
        yield "field-recommended", "Content-Type is missing"
    if record.type == "warcinfo" and media_type and not media_type.lower().startswith("application/warc-fields"):
        yield "field-recommended", f"the Content-Type of a warcinfo is {media_type[:80]!r}, not application/warc-fields"


def _record_id(name: str, value: str) -> Finding | None:
    if value and not _RECORD_ID.fullmatch(value):
        return "record-id-syntax", f"{name} is {value[:80]!r}, no URI in angle brackets"
    return None


def _uri(name: str, value: str) -> Finding | None:
    if value.startswith("<") and value.endswith(">"):
        return "uri-brackets", f"{name} stands in angle brackets"
    if value and not _URI.fullmatch(value):
        return "uri-syntax", f"{name} is {value[:80]!r}, no absolute URI"
    return None


def _date(name: str, value: str) -> Finding | None:
    return ("date-syntax", f"{name} is {value[:40]!r}") if value and not is_date(value) else None


def is_date(value: str) -> bool:
    """Whether *value* is a date as WARC 1.1 §5.4 has it: UTC, of any precision from years to nanoseconds."""
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
    return second <= 60  # a leap second has happened 27 times


def _ip(name: str, value: str) -> Finding | None:
    try:
        ip_address(value)
    except ValueError:
        return "ip-syntax", f"{name} is {value[:60]!r}"
    return None


def _truncated(name: str, value: str) -> Finding | None:
    return None if value in _TRUNCATIONS else ("truncated-token", f"{name} is {value[:40]!r}")


def _segments(record: Record) -> Iterator[Finding]:
    number = record.first("WARC-Segment-Number")
    if number is None:
        return
    if not re.fullmatch(r"[0-9]{1,9}", number) or int(number) < 1:
        yield "segment-fields", f"WARC-Segment-Number is {number[:40]!r}"
    elif (record.type == "continuation") != (int(number) > 1):
        yield "segment-fields", f"a {record.type} has segment number {number}"


def _revisit(record: Record) -> Iterator[Finding]:
    profile = record.first("WARC-Profile") or ""
    if profile and profile not in _PROFILES:
        yield "revisit-profile", f"WARC-Profile is {profile[:120]!r}"
    if profile.endswith(IDENTICAL_PAYLOAD) and record.first("WARC-Payload-Digest") is None:
        yield "field-missing", "a revisit for an identical payload must have WARC-Payload-Digest"
    if profile.endswith(IDENTICAL_PAYLOAD) and record.size and record.first("WARC-Truncated") is None:
        yield "field-recommended", "WARC-Truncated is missing, though the payload is left out"


_SYNTAX: dict[str, Callable[[str, str], Finding | None]] = {
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
    "WARC-Block-Digest": digest_fault,
    "WARC-Payload-Digest": digest_fault,
    "WARC-Truncated": _truncated,
}
