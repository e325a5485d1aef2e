"""The table of fields and record types, and the syntax of each value: one row for each rule of the standard."""

import io

import pytest

from archiver.tools.verify.findings import CODES, Severity
from archiver.tools.verify.record_checks import TYPES, field_findings, is_date
from archiver.warc.reader import read_records
from fixtures.handmade_warc import record

ID = "<urn:uuid:00000000-0000-4000-8000-000000000009>"
PROFILE = ("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")
DIGEST = ("WARC-Payload-Digest", "sha256:" + "0" * 64)
SEGMENT = (("WARC-Segment-Number", "2"), ("WARC-Segment-Origin-ID", ID))
NEEDED = {"revisit": (PROFILE, DIGEST, ("WARC-Truncated", "length")), "continuation": SEGMENT}


def codes(data: bytes) -> list[str]:
    return sorted(code for code, _ in field_findings(next(read_records(io.BytesIO(data)))))


def made(kind: str, *fields: tuple[str, str], without: tuple[str, ...] = ()) -> bytes:
    return record(kind, b"x", *NEEDED.get(kind, ()), *fields, without=without)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_a_record_with_what_its_type_needs_has_no_finding(kind: str) -> None:
    assert codes(made(kind)) == []


@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("name", ["WARC-Record-ID", "WARC-Date"])
def test_some_fields_are_mandatory_everywhere(kind: str, name: str) -> None:
    assert codes(made(kind, without=(name,))) == ["field-missing"]


FORBIDDEN = {  # field: types that must not have it, as WARC 1.1 §5 says it
    "WARC-Target-URI": "warcinfo",
    "WARC-Concurrent-To": "warcinfo conversion continuation",
    "WARC-IP-Address": "warcinfo conversion continuation",
    "WARC-Refers-To": "warcinfo response request resource continuation",
    "WARC-Refers-To-Target-URI": "warcinfo response request resource metadata conversion continuation",
    "WARC-Refers-To-Date": "warcinfo response request resource metadata conversion continuation",
    "WARC-Warcinfo-ID": "warcinfo",
    "WARC-Filename": "response request resource metadata revisit conversion continuation",
    "WARC-Segment-Origin-ID": "warcinfo response request resource metadata revisit conversion",
    "WARC-Segment-Total-Length": "warcinfo response request resource metadata revisit conversion",
}
VALUES = {
    "WARC-Target-URI": "http://example.org/",
    "WARC-IP-Address": "192.0.2.1",
    "WARC-Refers-To-Target-URI": "http://example.org/",
    "WARC-Refers-To-Date": "2020-01-01T00:00:00Z",
    "WARC-Filename": "a.warc.gz",
    "WARC-Segment-Total-Length": "1",
}


@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("name", FORBIDDEN)
def test_some_fields_are_forbidden_in_some_types(kind: str, name: str) -> None:
    given = () if name in made(kind).decode() else ((name, VALUES.get(name, ID)),)
    assert codes(made(kind, *given)) == (["field-forbidden"] if kind in FORBIDDEN[name].split() else [])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, "WARC-Target-URI") for kind in sorted(TYPES - {"warcinfo", "metadata"})),
        ("revisit", "WARC-Profile"),
        ("revisit", "WARC-Payload-Digest"),
        ("continuation", "WARC-Segment-Number"),
        ("continuation", "WARC-Segment-Origin-ID"),
    ],
)
def test_some_fields_are_mandatory_in_some_types(kind: str, name: str) -> None:
    assert codes(made(kind, without=(name,))) in (["field-missing"], [])
    assert name == "WARC-Payload-Digest" or codes(made(kind, without=(name,))) == ["field-missing"]


def test_a_server_not_modified_needs_no_digest() -> None:
    profile = ("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/server-not-modified")
    assert codes(record("revisit", b"", profile)) == []
    assert codes(record("revisit", b"", PROFILE)) == ["field-missing"]


RULES = {
    "a field twice": (made("response", DIGEST, DIGEST), ["field-repeated"]),
    "concurrent to two": (made("metadata", ("WARC-Concurrent-To", ID), ("WARC-Concurrent-To", ID)), []),
    "two protocols": (made("response", ("WARC-Protocol", "h2"), ("WARC-Protocol", "tls/1.3")), []),
    "an unknown field": (made("response", ("X-Thing", "1"), ("X-Thing", "2")), []),
    "an unknown type": (record("monkeys"), ["type-unknown"]),
    "no Content-Type": (made("resource", without=("Content-Type",)), ["field-recommended"]),
    "no Content-Type, no block": (record("resource", without=["Content-Type"]), []),
    "a warcinfo of text": (made("warcinfo", ("Content-Type", "text/plain")), ["field-recommended"]),
    "a metadata with a payload": (made("metadata", DIGEST), ["payload-digest-needless"]),
    "an id without brackets": (made("resource", ("WARC-Record-ID", "urn:x:1")), ["record-id-syntax"]),
    "an id that is no URI": (made("resource", ("WARC-Record-ID", "<x>")), ["record-id-syntax"]),
    "a URI in brackets": (made("resource", ("WARC-Target-URI", "<http://a/>")), ["uri-brackets"]),
    "a URI with a space": (made("resource", ("WARC-Target-URI", "http://a/b c")), ["uri-syntax"]),
    "a relative URI": (made("resource", ("WARC-Target-URI", "/b")), ["uri-syntax"]),
    "a URI of DNS": (made("resource", ("WARC-Target-URI", "dns:example.org")), []),
    "a date of words": (made("resource", ("WARC-Date", "yesterday")), ["date-syntax"]),
    "an address": (made("response", ("WARC-IP-Address", "2001:db8::1")), []),
    "a host for an address": (made("response", ("WARC-IP-Address", "example.org")), ["ip-syntax"]),
    "an address with a zone": (made("response", ("WARC-IP-Address", "fe80::1/64")), ["ip-syntax"]),
    "a digest without algorithm": (made("resource", ("WARC-Block-Digest", "abc")), ["digest-syntax"]),
    "a digest too short": (made("resource", ("WARC-Block-Digest", "sha1:ABC")), ["digest-syntax"]),
    "a digest of the wrong alphabet": (made("resource", ("WARC-Block-Digest", "md5:" + "g" * 32)), ["digest-syntax"]),
    "an unknown digest": (made("resource", ("WARC-Block-Digest", "blake3:00")), ["digest-algorithm"]),
    "sha-256 with a dash": (made("resource", ("WARC-Block-Digest", "sha-256:" + "0" * 64)), []),
    "a truncation": (made("response", ("WARC-Truncated", "time")), []),
    "an unknown truncation": (made("response", ("WARC-Truncated", "headers")), ["truncated-token"]),
    "an unknown profile": (record("revisit", b"", ("WARC-Profile", "http://x/")), ["revisit-profile"]),
    "segment 1 of a response": (made("response", ("WARC-Segment-Number", "1")), []),
    "segment 2 of a response": (made("response", ("WARC-Segment-Number", "2")), ["segment-fields"]),
    "segment x": (made("response", ("WARC-Segment-Number", "x")), ["segment-fields"]),
    "version 0.17": (record("resource", b"x", version="0.17"), ["version-unknown"]),
    "version 1.0 with microseconds": (record("resource", b"x", version="1.0"), ["date-precision"]),
}


@pytest.mark.parametrize(("data", "wanted"), RULES.values(), ids=RULES)
def test_each_rule(data: bytes, wanted: list[str]) -> None:
    assert codes(data) == wanted


def test_segment_1_is_none_of_a_continuation() -> None:
    first = record("continuation", b"x", ("WARC-Segment-Number", "1"), ("WARC-Segment-Origin-ID", ID))
    assert codes(first) == ["segment-fields"]


DATES = {
    "2006": True,
    "2006-09": True,
    "2006-09-19": True,
    "2006-09-19T17:20Z": True,
    "2006-09-19T17:20:24Z": True,
    "2006-09-19t17:20:24z": True,
    "2016-12-31T23:59:60Z": True,
    "2006-09-19T17:20:24.1Z": True,
    "2006-09-19T17:20:24.123456789Z": True,
    "2006-09-19T17:20:24.1234567891Z": False,
    "2006-09-19T17:20:24": False,
    "2006-09-19T17:20:24+01:00": False,
    "2006-09-19 17:20:24Z": False,
    "2006-09-31T17:20:24Z": False,
    "2006-09-19T24:20:24Z": False,
    "2006-09-19T17:20:61Z": False,
    "0000-01-01": False,
    "20060919172024": False,
    "٢٠٠٦": False,
    "": False,
}


@pytest.mark.parametrize(("text", "good"), DATES.items())
def test_dates(text: str, good: bool) -> None:  # noqa: FBT001
    assert is_date(text) is good


def test_each_code_says_what_it_means() -> None:
    assert all(code.meaning.endswith(".") for code in CODES.values())
    assert {code.severity for code in CODES.values()} == set(Severity)
