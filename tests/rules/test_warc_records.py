"""The records of a capture: their fields, their headers' bytes, and notes that come back as they were written."""

import io
from itertools import count
from os import urandom
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.fetch.spool import MemoryBlock
from archiver.model import Claim, Digests, Exchange, Framing, Hop, Link, Links, Peer, Profile, Revisit, Truncation
from archiver.warc.reader import Record, read_records
from archiver.warc.records import (
    FIELDS_TYPE,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    BlockHeaders,
    RecordIds,
    VisitMetadata,
    capture_headers,
    header,
    parse_date,
    warc_date,
    warc_fields,
)

STARTED = 1_795_000_000_123_456
URL = "http://site.test/page"
FRAMING = Framing(200, 19, chunked=False, media_type="text/html", fields=())


def _exchange(peer: Peer = Peer("127.0.0.1"), truncated: Truncation | None = None) -> Exchange:  # noqa: B008  frozen
    response = MemoryBlock(b"HTTP/1.1 200 OK\r\n\r\n")
    return Exchange(b"GET / HTTP/1.1\r\n\r\n", response, FRAMING, None, peer, STARTED, 0.5, truncated)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (STARTED, "2026-11-18T11:06:40.123456Z"),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_dates(microseconds: int, text: str) -> None:
    assert warc_date(microseconds) == text
    assert parse_date(text) == microseconds


@given(st.integers(0, 253_402_300_799_999_999))
def test_dates_come_back(microseconds: int) -> None:
    assert parse_date(warc_date(microseconds)) == microseconds


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2000-01-01T00:00:00Z", 946_684_800_000_000),
        ("2000-01-01T00:00:00.5Z", 946_684_800_500_000),
        ("2000-01-01T01:00:00+01:00", 946_684_800_000_000),
        ("2000-01-01T00:00:00.123456789Z", 946_684_800_123_456),
    ],
)
def test_dates_of_others(text: str, microseconds: int) -> None:
    assert parse_date(text) == microseconds


@pytest.mark.parametrize("text", ["", "x", "2000-01-01T00:00:00", "2000-13-01T00:00:00Z", "20"])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(ValueError):
        parse_date(text)


def test_header_bytes() -> None:
    fields = [("WARC-Record-ID", "<urn:uuid:1>"), ("WARC-Target-URI", URL)]
    assert header("response", fields, RESPONSE_TYPE, 19) == (
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://site.test/page\r\n"
        b"Content-Type: application/http;msgtype=response\r\nContent-Length: 19\r\n\r\n"
    )


TYPES = (RESPONSE_TYPE, REQUEST_TYPE, FIELDS_TYPE)


def _fields(exchange: Exchange, revisit: Revisit | None = None) -> dict[str, list[tuple[str, str]]]:
    ids = count(1)
    stored = 19 if revisit else exchange.response.length
    blocks = BlockHeaders(Digests("sha1:B", "sha1:P", 0), stored, "sha1:R", len(exchange.request), "sha1:M", 7, revisit)
    made = capture_headers(URL, exchange, blocks, "<urn:uuid:file>", lambda: f"<urn:uuid:{next(ids)}>")
    sizes = stored, len(exchange.request), 7
    ends = [(("Content-Type", kind), ("Content-Length", str(size))) for kind, size in zip(TYPES, sizes, strict=True)]
    fields: dict[str, list[tuple[str, str]]] = {}
    for header_bytes, end in zip(made, ends, strict=True):
        version, kind, *lines = header_bytes.decode().removesuffix("\r\n\r\n").split("\r\n")
        pairs = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        assert (version, tuple(pairs[-2:])) == ("WARC/1.1", end)
        fields[kind.removeprefix("WARC-Type: ")] = pairs[:-2]
    return fields


def test_the_fields_of_a_capture() -> None:
    together = [("WARC-Target-URI", URL), ("WARC-Date", warc_date(STARTED)), ("WARC-Warcinfo-ID", "<urn:uuid:file>")]
    assert _fields(_exchange()) == {
        "response": [
            ("WARC-Record-ID", "<urn:uuid:1>"),
            *together,
            ("WARC-IP-Address", "127.0.0.1"),
            ("WARC-Protocol", "http/1.1"),
            ("WARC-Block-Digest", "sha1:B"),
            ("WARC-Payload-Digest", "sha1:P"),
        ],
        "request": [
            ("WARC-Record-ID", "<urn:uuid:2>"),
            ("WARC-Concurrent-To", "<urn:uuid:1>"),
            *together,
            ("WARC-IP-Address", "127.0.0.1"),
            ("WARC-Block-Digest", "sha1:R"),
        ],
        "metadata": [
            ("WARC-Record-ID", "<urn:uuid:3>"),
            ("WARC-Concurrent-To", "<urn:uuid:1>"),
            *together,
            ("WARC-Block-Digest", "sha1:M"),
        ],
    }


@pytest.mark.parametrize(
    ("peer", "truncated", "expected"),
    [
        (Peer("2001:DB8:0:0::1"), None, [("WARC-IP-Address", "2001:db8::1"), ("WARC-Protocol", "http/1.1")]),
        (Peer(None), None, [("WARC-Protocol", "http/1.1")]),
        (
            Peer("::1", "tls/1.3", "TLS_AES_128_GCM_SHA256"),
            None,
            [
                ("WARC-IP-Address", "::1"),
                ("WARC-Protocol", "http/1.1"),
                ("WARC-Protocol", "tls/1.3"),
                ("WARC-Cipher-Suite", "TLS_AES_128_GCM_SHA256"),
            ],
        ),
        (Peer(None), Truncation.LENGTH, [("WARC-Protocol", "http/1.1"), ("WARC-Truncated", "length")]),
    ],
)
def test_what_is_known_of_the_peer_and_the_end(
    peer: Peer, truncated: Truncation | None, expected: list[tuple[str, str]]
) -> None:
    found = _fields(_exchange(peer, truncated))["response"]
    assert [pair for pair in found if pair[0] in {name for name, _ in expected}] == expected


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("record_id", ["<urn:uuid:old>", ""])
def test_the_fields_of_a_revisit(profile: Profile, record_id: str) -> None:
    """Request and metadata are those of any capture; all that names the original stands as the original has it."""
    url, date = "https://other.test/a", "2020-02-29T12:00:00.5Z"
    made = _fields(_exchange(), Revisit(profile, url, date, record_id, "sha1:P", 4))
    assert {name: made[name] for name in ("request", "metadata")} == {
        name: fields for name, fields in _fields(_exchange()).items() if name != "response"
    }
    assert made["revisit"] == [
        ("WARC-Record-ID", "<urn:uuid:1>"),
        ("WARC-Target-URI", URL),
        ("WARC-Date", warc_date(STARTED)),
        ("WARC-Warcinfo-ID", "<urn:uuid:file>"),
        ("WARC-IP-Address", "127.0.0.1"),
        ("WARC-Protocol", "http/1.1"),
        ("WARC-Profile", f"http://netpreserve.org/warc/1.1/revisit/{profile.value}"),
        *([("WARC-Refers-To", record_id)] if record_id else []),
        ("WARC-Refers-To-Target-URI", url),
        ("WARC-Refers-To-Date", date),
        ("WARC-Block-Digest", "sha1:B"),
        ("WARC-Payload-Digest", "sha1:P"),
        *([("WARC-Truncated", "length")] if profile is Profile.IDENTICAL else []),
    ]


@given(st.binary(min_size=16, max_size=16))
def test_record_ids_are_random_uuids(chance: bytes) -> None:
    """All of the chance that a UUID of version 4 can hold stands in them."""
    new_id = RecordIds(lambda size: chance * (size // 16))
    for _ in range(RecordIds.AT_ONCE + 1):
        assert new_id() == f"<{UUID(bytes=chance, version=4).urn}>"


def test_no_chance_is_used_twice() -> None:
    new_id = RecordIds(urandom)
    assert len({new_id() for _ in range(3 * RecordIds.AT_ONCE)}) == 3 * RecordIds.AT_ONCE


def _notes(**values: object) -> VisitMetadata:
    known = {
        "path": "LLR",
        "hop": Hop.REDIRECT,
        "depth": 2,
        "off_scope_hops": 1,
        "tries": 3,
        "duration": 0.125,
        "via": "http://site.test/",
        "seed": "http://site.test/",
        "links": Links(),
    }
    return VisitMetadata(**{**known, **values})  # type: ignore[arg-type]


def test_the_block_of_a_metadata_record() -> None:
    links = Links((Link(URL, Hop.LINK, "a/@href"), Link("http://cdn.test/i.gif", Hop.REQUISITE)), "utf-8", "a bound")
    notes = _notes(links=links, faults=("bare-lf",), remarks=("tls-unverified",), interim=b"HTTP/1.1 103\r\n\r\n")
    assert notes.block().decode().split("\r\n") == [
        "via: http://site.test/",
        "hopsFromSeed: LLR",
        "fetchTimeMs: 125",
        "seed: http://site.test/",
        "charsetForLinkExtraction: utf-8",
        "linkExtractionNote: a bound",
        "hop: R",
        "depth: 2",
        "offScopeHops: 1",
        "tries: 3",
        "fault: bare-lf",
        "remark: tls-unverified",
        "interimResponse: SFRUUC8xLjEgMTAzDQoNCg==",
        "outlink: http://site.test/page L a/@href",
        "outlink: http://cdn.test/i.gif E -",
        "",
    ]
    assert VisitMetadata.parse(notes.block()) == notes


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, categories=["L", "N", "P", "S"]), min_size=1)
LINK = st.builds(Link, WORD.map(lambda word: f"http://h/{word}"), st.sampled_from(Hop), WORD.filter(lambda w: w != "-"))


@given(
    st.lists(LINK, max_size=5),
    st.lists(WORD, max_size=3),
    st.binary(max_size=40),
    st.sampled_from([None, "http://site.test/"]),
    st.sampled_from(["", "L", "PR", "12+LLE"]),
)
def test_notes_come_back(links: list[Link], words: list[str], surplus: bytes, via: str | None, path: str) -> None:
    notes = _notes(links=Links(tuple(links)), faults=tuple(words), surplus=surplus, via=via, path=path)
    assert VisitMetadata.parse(notes.block()) == notes


@given(st.text())
def test_a_hostile_context_stays_on_its_line(context: str) -> None:
    """Whatever a document says, the notes say the same number of lines, and can be read."""
    notes = _notes(links=Links((Link(URL, Hop.LINK, context), Link(URL, Hop.REQUISITE))))
    again = VisitMetadata.parse(notes.block())
    assert [(link.url, link.hop) for link in again.links.links] == [(URL, Hop.LINK), (URL, Hop.REQUISITE)]
    assert again.path == notes.path


@given(st.binary())
def test_any_bytes_are_notes_or_a_value_error(block: bytes) -> None:
    try:
        VisitMetadata.parse(block)
    except ValueError:
        return


@given(st.lists(st.tuples(WORD, st.text()), max_size=5))
def test_a_block_of_fields_has_a_line_for_each(pairs: list[tuple[str, str]]) -> None:
    assert warc_fields(pairs).count(b"\n") == len(pairs)


@given(st.lists(st.tuples(WORD, st.text(st.sampled_from("a \r\n\0\x7f\x85\u2028é"))), max_size=4))
def test_what_is_no_part_of_a_line_becomes_a_space(pairs: list[tuple[str, str]]) -> None:
    values = ["".join(char if char.isprintable() else " " for char in value) for _, value in pairs]
    lines = [f"{name}: {value}\r\n" for (name, _), value in zip(pairs, values, strict=True)]
    assert warc_fields(pairs) == "".join(lines).encode()


def test_the_reader_reads_what_is_written() -> None:
    block = warc_fields([("software", "a test"), ("description", "späte Blüte")])
    whole = header("warcinfo", [("WARC-Record-ID", "<urn:uuid:1>")], FIELDS_TYPE, len(block)) + block + b"\r\n\r\n"
    (record,) = read_records(io.BytesIO(whole))
    assert (record.type, record.version, record.faults) == ("warcinfo", "1.1", ())
    assert record.size == len(block)


def test_notes_are_taken_from_a_visit() -> None:
    claim = Claim(1, URL, 1, Hop.LINK, "L", 1, 0, 2, via="http://site.test/", seed="http://site.test/")
    notes = VisitMetadata.of(claim, _exchange(), Links())
    assert (notes.path, notes.hop, notes.depth, notes.tries, notes.via) == ("L", Hop.LINK, 1, 2, claim.via)


@pytest.mark.parametrize("profile", Profile)
def test_notes_of_a_revisit_hold_what_its_block_does_not(profile: Profile) -> None:
    claim = Claim(1, URL, 1, Hop.LINK, "L", 1, 0, 0)
    exchange = _exchange()
    notes = VisitMetadata.of(
        claim, exchange, Links(), Revisit(profile, URL, "2020-01-01T00:00:00Z", "", "sha1:P", 4096)
    )
    assert (notes.payload_length, notes.received) == (4096, exchange.response.length)
    assert VisitMetadata.parse(notes.block()) == notes


UNMODIFIED = b'HTTP/1.1 304 Not Modified\r\nETag: "50% \xe9"\r\n\r\n'


def _revisit(notes: VisitMetadata) -> Record:
    """A revisit with *notes* in its header, as the reader has it."""
    fields = notes.fields().encode()
    head = b"WARC/1.1\r\nWARC-Type: revisit\r\n" + fields + b"Content-Length: 0\r\n\r\n"
    (record,) = read_records(io.BytesIO(head + b"\r\n\r\n"))
    assert record.faults == ()
    return record


@given(
    st.lists(WORD, max_size=3),
    st.binary(max_size=40),
    st.sampled_from([None, "http://site.test/"]),
    st.sampled_from(["", "L", "PR", "12+LLE"]),
    st.sampled_from(Hop),
    st.integers(0, 3),
)
def test_notes_come_back_from_the_header_of_a_revisit(
    words: list[str], surplus: bytes, via: str | None, path: str, hop: Hop, number: int
) -> None:
    notes = _notes(
        remarks=tuple(words),
        surplus=surplus,
        via=via,
        path=path,
        hop=hop,
        off_scope_hops=number,
        tries=number,
        payload_length=7,
        received=len(UNMODIFIED) + number,
        unmodified=UNMODIFIED,
        links_of=("a.warc.gz", 12),
    )
    assert VisitMetadata.of_revisit(_revisit(notes)) == notes


def test_what_has_no_place_in_a_header_gets_a_metadata_record() -> None:
    assert _notes(unmodified=UNMODIFIED).fields()
    assert not _notes(unmodified=UNMODIFIED, links=Links((Link(URL, Hop.LINK),))).fields()
    assert not _notes(unmodified=b"a" * 10_000).fields()
    assert not _notes(surplus=b"a" * 10_000).fields()


@pytest.mark.parametrize("field", [b"fetchTimeMs", b"depth"])
def test_notes_in_a_header_that_lack_something_are_refused(field: bytes) -> None:
    record = _revisit(_notes(unmodified=UNMODIFIED))
    broken = record.header.replace(field, b"other") + b"\r\n\r\n"
    with pytest.raises(ValueError, match="without"):
        VisitMetadata.of_revisit(next(read_records(io.BytesIO(broken))))


@pytest.mark.parametrize("number", ["-1", "1" * 19, "1e3", "٣"])
def test_lengths_that_no_file_has_are_refused(number: str) -> None:
    with pytest.raises(ValueError, match="number of bytes"):
        VisitMetadata.parse(
            _notes(payload_length=1, received=1)
            .block()
            .replace(b"receivedLength: 1", b"receivedLength: " + number.encode())
        )
