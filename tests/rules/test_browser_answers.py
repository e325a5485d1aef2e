"""Answers from an archive: what the browser is told, and which parameters count as cache busters."""

import json

import pytest

from archiver.browser.answers import LARGEST_PART, Asked, Told, part_of, preflight, readable, told_fields
from archiver.browser.page_info import LONGEST_URL, PageInfo, page_id, records_of
from archiver.browser.tab import Given
from archiver.browser.view import Viewed
from archiver.collection.browser_answers import second_of, without_cache_busters


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://a/b", "http://a/b"),
        ("http://a/b?_=123", "http://a/b"),
        ("http://a/b?x=1&_=123", "http://a/b?x=1"),
        ("http://a/b?_=123&x=1", "http://a/b?x=1"),
        ("http://a/b?cb=9&uncache=8&x=1&utm_source=mail", "http://a/b?x=1"),
        ("http://a/b?ts=1700000000000&cachebust=1700000000000", "http://a/b"),
        ("http://a/b?fbclid=abc&y=2", "http://a/b?y=2"),
        ("http://a/b?_=abc", "http://a/b?_=abc"),
        ("http://a/b?cb=", "http://a/b?cb="),
        ("http://a/b?ts=12", "http://a/b?ts=12"),
    ],
)
def test_cache_busters(address: str, expected: str) -> None:
    assert without_cache_busters(address) == expected


def asked(**fields: str) -> Asked:
    named = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    return Asked("http://a/b", "GET", "Media", named)


WHOLE = Told(200, (("content-type", "audio/ogg"),), bytes(range(100)), 7)


@pytest.mark.parametrize(
    ("wanted", "status", "length", "place"),
    [
        ("", 200, 100, ""),
        ("bytes=0-", 206, 100, "bytes 0-99/100"),
        ("bytes=10-19", 206, 10, "bytes 10-19/100"),
        ("bytes=90-200", 206, 10, "bytes 90-99/100"),
        ("bytes=100-", 416, 0, "bytes */100"),
        ("bytes=-5", 200, 100, ""),  # a server may ignore Range (RFC 9110 §14.2)
        ("bytes=1-2,5-6", 200, 100, ""),
        ("bytes=20-10", 200, 100, ""),
    ],
)
def test_ranges(wanted: str, status: int, length: int, place: str) -> None:
    told = part_of(asked(range=wanted), WHOLE)
    assert (told.status, len(told.body)) == (status, length)
    assert dict(told.fields).get("content-range", "") == place


def test_a_range_is_told_in_parts() -> None:
    told = part_of(asked(range="bytes=0-"), Told(200, (), bytes(LARGEST_PART + 1)))
    assert len(told.body) == LARGEST_PART
    assert part_of(asked(range="bytes=0-1"), Told(404, (), b"no")).status == 404


def test_headers_that_would_change_the_page_are_dropped() -> None:
    kept = (("content-type", "text/html"), ("set-cookie", "a=1"), ("location", "/x"), ("etag", '"e"'))
    dropped = (
        ("content-security-policy", "default-src 'none'"),
        ("content-encoding", "br"),
        ("content-length", "3"),
        ("refresh", "0"),
        ("x-frame-options", "deny"),
        ("access-control-allow-origin", "https://elsewhere.example"),
    )
    assert told_fields((*dropped, *kept)) == kept


def test_every_page_may_read_every_answer() -> None:
    told = readable(asked(origin="https://a.example"), WHOLE)
    assert ("access-control-allow-origin", "https://a.example") in told.fields
    assert (told.body, told.status) == (WHOLE.body, 200)
    answer = preflight(asked(access_control_request_method="PUT", access_control_request_headers="x-own"))
    assert answer.status == 204
    assert ("access-control-allow-methods", "PUT") in answer.fields
    assert ("access-control-allow-headers", "x-own") in answer.fields


def test_dates() -> None:
    assert second_of("20231114221320") == 1_700_000_000
    assert second_of("2023") == 0
    assert second_of("20239914221320") == 0


def test_records_of_a_view() -> None:
    """A POST is listed under the URL by which a replay looks it up; URLs without end are left out."""
    told = {
        Asked("http://a/", "GET", "Document"): Given(200, "text/html"),
        Asked("http://a/api", "POST", "XHR", (("content-type", "text/plain"),), b'{"b": 1}'): Given(404, "text/plain"),
        Asked("http://a/" + "x" * LONGEST_URL, "GET", "Image"): Given(200, "image/png"),
    }
    missing = (Asked("http://a/no", "GET", "Fetch"),)
    viewed = Viewed("http://a/", "A\x00b", told, missing, ("wss://a/",), "60 seconds", {}, "text", b"\xff\xd8")
    info, text, picture = records_of(viewed, 1_700_000_000_123_456, 2, 1)
    assert [each.uri for each in (info, text, picture)] == [
        "urn:pageinfo:http://a/",
        "urn:text:http://a/",
        "urn:view:http://a/",
    ]
    assert (text.block, picture.block) == (b"text", b"\xff\xd8")
    fields = json.loads(info.block)
    assert fields.pop("pageid") == page_id("http://a/", 1_700_000_000_123_456)
    assert fields == {
        "url": "http://a/",
        "ts": "2023-11-14T22:13:20.123Z",
        "title": "A\\x00b",
        "round": 2,
        "late": 1,
        "urls": {
            "http://a/": {"status": 200, "mime": "text/html", "type": "document"},
            "http://a/api?__wb_method=POST&b=1": {"status": 404, "mime": "text/plain", "type": "xhr"},
            "http://a/no": {"status": 0, "type": "fetch"},
        },
        "missing": ["http://a/no"],
        "live": ["wss://a/"],
        "ended": "60 seconds",
    }
    assert PageInfo.parse(info.block) == PageInfo(1_700_000_000, "A\\x00b")


@pytest.mark.parametrize(
    "block",
    [b"", b"{}", b"[]", b'{"ts": 1}', b'{"ts": "x"}', b'{"ts": "2023-11-14T22:13:20"}', b"[" * 100_000, b"\xff", b"1"],
)
def test_a_page_info_that_says_nothing(block: bytes) -> None:
    assert PageInfo.parse(block) is None


def test_a_page_info_of_another_program() -> None:
    assert PageInfo.parse(b'{"ts": "2023-11-14T22:13:20.5Z", "title": [1]}') == PageInfo(1_700_000_000)
