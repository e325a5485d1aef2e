"""Response heads as servers send them: what is parsed from each, and how its faults are named."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.http import Framer, head, read_head, read_stored, transfer_codings
from archiver.http.head import (
    LARGE_HEAD,
    MAX_CODINGS,
    MAX_FIELDS,
    SHORT,
    body_length,
    head_end,
    leading_blank,
    may_be_head,
)
from archiver.model import Framing

Fields = tuple[tuple[str, str], ...]


@pytest.mark.parametrize(
    ("line", "status", "protocol", "faults"),
    [
        (b"HTTP/1.1 200 OK", 200, "http/1.1", ()),
        (b"HTTP/1.0 404", 404, "http/1.0", ()),
        (b"HTTP/1.1  200\t OK", 200, "http/1.1", ()),
        (b"HTTP/1.1\t301 Moved", 301, "http/1.1", ()),
        (b"HTTP/1.1 999 Request denied", 999, "http/1.1", ()),
        (b"HTTP/1.1 200 \xe0 la carte \x7f", 200, "http/1.1", ()),
        (b"HTTP/2 200", 200, "http/1.1", ("http-version",)),
        (b"HTTP/1.2 200 OK", 200, "http/1.1", ("http-version",)),
        (b"HTTP/11 200 OK", 200, "http/1.1", ("http-version",)),
        (b"HTTP/1.1 99 Low", 99, "http/1.1", ("status-line",)),
        (b"HTTP/1.1 2000 OK", 0, "http/1.1", ("status-line",)),
        (b"HTTP/1.1 200: OK", 200, "http/1.1", ("status-code",)),
        (b"HTTP/1.0 404, gone", 404, "http/1.0", ("status-code",)),
        (b"HTTP/1.1 20: OK", 0, "http/1.1", ("status-line",)),
        (b"HTTP/1.1 200OK", 0, "http/1.1", ("status-line",)),
        (b"HTTP/1.1 -200 OK", 0, "http/1.1", ("status-line",)),
        (b"HTTP/1.1", 0, "http/1.1", ("status-line",)),
        (b"HTTP/ 200", 0, "http/1.1", ("status-line",)),
        (b"ICY 200 OK", 200, "http/1.0", ("icy-status-line",)),
        (b"ICY fine", 0, "http/1.1", ("status-line",)),
    ],
)
def test_status_lines(line: bytes, status: int, protocol: str, faults: tuple[str, ...]) -> None:
    framing = read_head(line + b"\r\n\r\n")
    assert (framing.status, framing.protocol, framing.faults) == (status, protocol, faults)
    assert framing.head_length == len(line) + 4


@pytest.mark.parametrize("data", [b"", b"<p>hi", b"\r\n\r\n", b"HTTP", b"ICY", b"HTTPS/1.1 200"])
def test_without_a_head_everything_is_body(data: bytes) -> None:
    framing = read_head(data)
    assert (framing.status, framing.head_length, framing.protocol) == (0, 0, "http/0.9")
    assert framing.faults == ("no-status-line",)


@pytest.mark.parametrize(
    ("lines", "fields", "faults"),
    [
        (b"A: 1", (("a", "1"),), ()),
        (b"aB:1\r\nAB: 2\r\nab:   3  ", (("ab", "1"), ("ab", "2"), ("ab", "3")), ()),
        (b"A :1", (("a", "1"),), ()),
        (b"A:", (("a", ""),), ()),
        (b": x", (("", "x"),), ()),
        (b"A: b: c", (("a", "b: c"),), ()),
        (b"A: one\r\n two\r\n\t three", (("a", "one two three"),), ()),
        (b"A:\r\n one", (("a", "one"),), ()),
        (b" one\r\nA: 1", (("a", "1"),), ("folded-first-field",)),
        (b"\tone\r\n two\r\nno colon\r\nA: 1", (("a", "1"),), ("folded-first-field", "field-without-colon")),
        (b"A: 1\nB: 2", (("a", "1"), ("b", "2")), ()),
        (b"A: caf\xe9", (("a", "caf\xe9"),), ()),
        (b"what is this\r\nand this\r\nA: 1", (("a", "1"),), ("field-without-colon",)),
        (b"A: a\0b", (("a", "a\0b"),), ("nul-in-head",)),
        (b"A: 1\rB: 2", (("a", "1\rB: 2"),), ("lone-cr",)),
    ],
)
def test_fields(lines: bytes, fields: Fields, faults: tuple[str, ...]) -> None:
    framing = read_head(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n\r\nbody\0\r")
    assert framing.fields == fields
    assert framing.faults == faults


def test_first_and_all() -> None:
    framing = read_head(b"HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\na: 3\r\n\r\n")
    assert (framing.first("a"), framing.first("c"), framing.all("a")) == ("1", None, ["1", "3"])


def test_large_heads_are_named_and_their_fields_bounded() -> None:
    def head(count: int, value: bytes = b"1") -> Framing:
        return read_head(b"HTTP/1.1 200 OK\r\n" + b"A: " + value + b"\r\n" + b"B:1\r\n" * (count - 1) + b"\r\n")

    assert head(5000).faults == ()
    assert head(1, b"x" * LARGE_HEAD).faults == ("large-head",)
    assert "too-many-fields" not in head(MAX_FIELDS).faults
    assert "too-many-fields" in head(MAX_FIELDS + 1).faults
    assert len(head(MAX_FIELDS).fields) == len(head(MAX_FIELDS + 1000).fields) == MAX_FIELDS


@pytest.mark.parametrize(
    ("fields", "size", "chunked", "faults"),
    [
        ((), None, False, ()),
        ((("content-length", "5"),), 5, False, ()),
        ((("content-length", "5"), ("content-length", "5, 5")), 5, False, ()),
        ((("content-length", "+5"),), None, False, ("content-length",)),
        ((("content-length", "5 5"),), None, False, ("content-length",)),
        ((("content-length", "\u0665"),), None, False, ("content-length",)),
        ((("content-length", str((1 << 63) - 1)),), (1 << 63) - 1, False, ()),
        ((("content-length", str(1 << 63)),), None, False, ("large-content-length",)),
        ((("content-length", "0" * 60 + "5"),), 5, False, ()),
        ((("content-length", "9" * 64),), None, False, ("large-content-length",)),
        ((("content-length", "9" * 65),), None, False, ("content-length",)),
        ((("transfer-encoding", "chunked"),), None, True, ()),
        ((("transfer-encoding", "chunked"), ("content-length", "5")), None, True, ()),
        ((("transfer-encoding", "gzip, Chunked"),), None, True, ()),
        ((("transfer-encoding", "gzip"), ("transfer-encoding", ",chunked,")), None, True, ()),
        ((("transfer-encoding", "chunked, gzip"),), None, False, ("transfer-coding",)),
        ((("transfer-encoding", "gzip," * MAX_CODINGS + "chunked"),), None, False, ("transfer-coding",)),
        ((("transfer-encoding", "identity"), ("content-length", "5")), 5, False, ()),
    ],
)
def test_body_length(fields: Fields, size: int | None, chunked: object, faults: tuple[str, ...]) -> None:
    length = body_length(fields)
    assert (length.size, length.chunked, length.faults) == (size, chunked, faults)


@pytest.mark.parametrize(
    ("value", "media_type"),
    [
        ("text/html", "text/html"),
        ("Text/HTML; charset=UTF-8", "text/html"),
        (" text/html ;", "text/html"),
        ("text", ""),
        ("text/", ""),
        ("text/html, text/plain", ""),
        ("text/h tml", ""),
        ("", ""),
    ],
)
def test_media_type(value: str, media_type: str) -> None:
    assert read_head(f"HTTP/1.1 200 OK\r\nContent-Type: {value}\r\n\r\n".encode()).media_type == media_type


def test_stored_heads_of_answers_without_a_body_are_not_chunked() -> None:
    head = b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert [read_stored(head % status).chunked for status in (200, 204, 304, 101)] == [True, False, False, False]


def test_transfer_codings_besides_chunked() -> None:
    fields = (("transfer-encoding", "GZIP, identity"), ("transfer-encoding", "deflate,chunked"))
    assert transfer_codings(fields) == ("gzip", "deflate")


@given(st.binary(max_size=200))
def test_parsing_never_raises_and_lengths_fit(data: bytes) -> None:
    start = leading_blank(data)
    assert data[:start].strip(b"\r\n") == b""
    assert may_be_head(data) == may_be_head(data, start)
    assert -1 <= head_end(data) <= len(data)
    assert 0 <= read_head(data).head_length <= len(data)


PARTS = (
    *(b"HTTP/1.1 200 OK", b"HTTP/1.0 404", b"HTTP/1.1 99 Low", b"HTTP/1.1", b"HTTP/2 200", b"ICY 200 OK"),
    *(b"\r\n", b"\r\n", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"A", b"\x85", b"\xa0", b"\x1f"),
    *(b"Content-Length: 5", b"content-LENGTH:5, 6", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip"),
    *(
        b"Content-Type: text/html",
        b"Content-Type:\xa0Text/HTML ;x",
        b"A: 1",
        b"no colon",
        b" folded",
        b"X: " + b"y" * SHORT,
    ),
)


@given(raw=st.lists(st.sampled_from(PARTS), max_size=14).map(b"".join), sound=st.booleans())
def test_a_regular_head_is_parsed_like_any_other(raw: bytes, *, sound: bool) -> None:
    data = b"HTTP/1.1 200 OK\r\n" + raw + b"\r\n\r\n" if sound else raw
    assert head.read_message(data) == head._read_any(data)


def test_most_heads_are_regular() -> None:
    lines = b"Date: Sat, 21 Nov 2026 20:43:25 GMT\r\nContent-Type: text/html\r\nSet-Cookie: " + b"c" * SHORT + b"\r\n"
    assert head._read_regular(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n") is not None


def replies(folder: Path, name: str) -> list[dict[str, object]]:
    rows = json.loads((folder / "http" / name).read_text())
    assert rows
    return list(rows)


def framed(raw: bytes) -> tuple[bytes, Framing, bool]:
    """Return body and framing, and whether the message was complete and without fault."""
    framer = Framer()
    block = framer.feed(raw) + framer.finish()
    assert framer.framing is not None
    sound = not framer.framing.faults and framer.truncated is None
    return block[framer.framing.head_length :], framer.framing, sound


@pytest.mark.suites
def test_browsers_content_lengths(suites: Path) -> None:
    for row in replies(suites, "content-lengths.json"):
        raw = b"HTTP/1.1 200 OK\r\n" + str(row["input"]).encode() + b"\r\n\r\n" + b"A" * 30 + b"B" * 12
        body, _, sound = framed(raw)
        assert not sound or len(body) == row["output"], row


@pytest.mark.suites
def test_browsers_status_lines(suites: Path) -> None:
    for row in replies(suites, "status_line.json"):
        _, framing, sound = framed(str(row["status_line"]).encode() + b"\r\nContent-Length: 0\r\n\r\n")
        expected = row["expected"]
        assert not sound or (isinstance(expected, dict) and framing.status == expected["status"]), row


@pytest.mark.suites
def test_browsers_lone_crs(suites: Path) -> None:
    for row in replies(suites, "lone_cr.json"):
        raw = str(row["reply_latin1"]).encode("latin-1")
        lone = raw.replace(b"\r\n", b"").count(b"\r") > 0  # one row has none: it only mixes its line ends
        assert framed(raw)[2] != lone, row


ASKED = b"GET / HTTP/1.1\r\nHost: h\r\n"


@pytest.mark.parametrize(
    ("request_end", "status", "content_range", "is_part"),
    [
        (b"\r\n", 206, b"bytes 0-9/20", True),
        (b"\r\n", 206, b"bytes 10-19/20", True),
        (b"\r\n", 206, b"bytes 0-19/20", False),
        (b"\r\n", 206, b"Bytes  0-19/20 ", False),
        (b"\r\n", 206, b"bytes 0-19/*", True),
        (b"\r\n", 206, b"bytes */20", True),
        (b"\r\n", 206, b"0-19/20", True),
        (b"\r\n", 206, b"bytes 0-%b/%b" % (b"9" * 5000, b"9" * 5000), True),
        (b"\r\n", 206, b"", True),
        (b"\r\n", 200, b"bytes 0-9/20", False),
        (b"Range: bytes=0-9\r\n\r\n", 206, b"bytes 0-9/20", False),
        (b"RANGE: bytes=0-9\r\n\r\n", 206, b"", False),
        (b"X-Range: bytes=0-9\r\n\r\n", 206, b"bytes 0-9/20", True),
        (b"\r\n\nrange: in a body", 206, b"bytes 0-9/20", True),
    ],
)
def test_a_part_that_was_not_asked_for(request_end: bytes, status: int, content_range: bytes, *, is_part: bool) -> None:
    framing = read_head(b"HTTP/1.1 %d X\r\nContent-Range: %b\r\n\r\n" % (status, content_range))
    assert head.is_unasked_part(ASKED + request_end, framing) is is_part
