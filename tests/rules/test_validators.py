"""What of a stored head is sent back as a condition: exactly what came, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.collection.earlier_crawls import conditions, contradicts, given_by_hand, shown_alike
from archiver.extract.sitemap import modified
from archiver.http import read_stored

MONDAY = b"Mon, 16 Nov 2026 08:00:00 GMT"


def head(*lines: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""])


@pytest.mark.parametrize(
    ("lines", "sent"),
    [
        ([b'ETag: "a"'], b'If-None-Match: "a"\r\n'),
        ([b'etag:   W/"a b"  '], b'If-None-Match: W/"a b"\r\n'),
        ([b"ETag: bare-word"], b"If-None-Match: bare-word\r\n"),
        ([b'ETag: "\xfc\xe9"'], b'If-None-Match: "\xfc\xe9"\r\n'),
        ([b'ETag: ""'], b'If-None-Match: ""\r\n'),
        ([b"Last-Modified: " + MONDAY], b"If-Modified-Since: " + MONDAY + b"\r\n"),
        (
            [b"Last-Modified: " + MONDAY, b'ETag: "a"'],
            b'If-None-Match: "a"\r\nIf-Modified-Since: ' + MONDAY + b"\r\n",
        ),
        ([b"Last-Modified: 2026-11-16 08:00:00"], b"If-Modified-Since: 2026-11-16 08:00:00\r\n"),
        ([b"ETag: *"], b""),
        ([b'ETag: "a", "b"'], b""),
        ([b"ETag: a,b"], b""),
        ([b"ETag: a b"], b""),
        ([b'ETag: "a', b' b"'], b'If-None-Match: "a b"\r\n'),  # a folded line means one space
        ([b'ETag: "a"', b'ETag: "b"'], b""),
        ([b'ETag: "\x01"'], b""),
        ([b'ETag: "a\rX: y"'], b""),
        ([b'ETag: "' + b"a" * 2000 + b'"'], b""),
        ([b"ETag:"], b""),
        ([b"Last-Modified: <now>"], b""),
        ([b"Last-Modified: " + MONDAY, b"Last-Modified: " + MONDAY], b""),
        ([], b""),
    ],
)
def test_conditions(lines: list[bytes], sent: bytes) -> None:
    assert conditions(read_stored(head(*lines))) == sent


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_break_out_of_a_field(tag: bytes, date: bytes) -> None:
    sent = conditions(read_stored(head(b"ETag: " + tag, b"Last-Modified: " + date)))
    lines = sent.split(b"\r\n")
    assert lines.pop() == b""
    assert len(lines) <= 2
    for line in lines:
        name, _, value = line.partition(b": ")
        assert name in (b"If-None-Match", b"If-Modified-Since")
        assert value in (tag.strip(), date.strip()) or value in tag or value in date
        assert not any(byte < 0x20 or byte == 0x7F for byte in value)
        assert value != b"*"


@pytest.mark.parametrize(
    ("asked", "lines", "other"),
    [
        ([b'ETag: "a"'], [b'ETag: "a"'], False),
        ([b'ETag: "a"'], [b'ETag: W/"a"'], False),
        ([b'ETag: W/"a"'], [b'ETag: "a"'], False),
        ([b'ETag: "a"'], [], False),
        ([b'ETag: "a"'], [b"ETag: *"], False),
        ([b"Last-Modified: " + MONDAY], [b'ETag: "b"'], False),
        ([b'ETag: "a"'], [b'ETag: "b"'], True),
        ([b"Last-Modified: " + MONDAY, b'ETag: "a"'], [b'ETag: W/"b"'], True),
    ],
)
def test_a_304_of_another_version(asked: list[bytes], lines: list[bytes], *, other: bool) -> None:
    assert contradicts(read_stored(head(*lines)), conditions(read_stored(head(*asked)))) is other


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ([b"Content-Type: a/b", b"Date: x", b"ETag: 1"], [b"Content-Type: a/b", b"Server: y"], True),
        ([b"Content-Type: text/html"], [b"Content-Type: text/plain"], False),
        ([b"Content-Type: a/b"], [b"Content-Type: a/b", b"Content-Disposition: attachment"], False),
        ([b"Link: </a>", b"Link: </b>"], [b"Link: </a>"], False),
    ],
)
def test_what_is_shown_alike(one: list[bytes], other: list[bytes], *, alike: bool) -> None:
    assert shown_alike(read_stored(head(*one)), read_stored(head(*other))) is alike


def test_what_the_user_gives_goes_before_it() -> None:
    assert given_by_hand(("Accept-Language: de", 'if-none-match: "a"'))
    assert given_by_hand(("Range: bytes=0-9",))
    assert not given_by_hand(("Accept-Language: de", "X-If-None-Match: a"))


@pytest.mark.parametrize(
    ("context", "moment"),
    [
        ("loc lastmod:2026-11-16", 1794787200.0),
        ("loc lastmod:2026-11-16T08:00:00Z", 1794816000.0),
        ("loc lastmod:2026-11-16T09:00+01:00", 1794816000.0),
        ("loc lastmod:2026", 1767225600.0),
        ("loc lastmod:2026-11", 1793491200.0),
        ("loc lastmod:2026-13-16", None),
        ("loc lastmod:0000-01-01", None),
        ("loc", None),
        ("a/@href", None),
    ],
)
def test_when_a_sitemap_says_that_a_page_was_modified(context: str, moment: float | None) -> None:
    assert modified(context) == moment
