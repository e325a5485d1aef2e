"""Records that belong to no visit: the text of a look-up, its URI, and the keys of invented URIs."""

import pytest

from archiver import url
from archiver.model import Lookup, Resource, Span
from archiver.warc.cdxj import capture_line, lookup_key
from archiver.warc.resources import PLACE, lookup_block, lookup_uri, mime_of

ASKED = 1_795_000_000_999_999


@pytest.mark.parametrize(
    ("host", "addresses", "uri", "lines"),
    [
        ("a.test", ("192.0.2.1",), "dns:a.test", ["a.test.\tIN\tA\t192.0.2.1"]),
        (
            "xn--bcher-kva.test",
            ("2001:db8::1", "192.0.2.7", "192.0.2.1"),
            "dns:xn--bcher-kva.test",
            [
                "xn--bcher-kva.test.\tIN\tAAAA\t2001:db8::1",
                "xn--bcher-kva.test.\tIN\tA\t192.0.2.7",
                "xn--bcher-kva.test.\tIN\tA\t192.0.2.1",
            ],
        ),
        ("_a;b.test", ("192.0.2.1",), "dns:_a;b.test", ["_a\\;b.test.\tIN\tA\t192.0.2.1"]),
        ('a"(b.test', ("192.0.2.1",), "dns:a%22(b.test", ['a\\"\\(b.test.\tIN\tA\t192.0.2.1']),
        ("none.test", (), "dns:none.test", []),
    ],
)
def test_a_look_up(host: str, addresses: tuple[str, ...], uri: str, lines: list[str]) -> None:
    lookup = Lookup(host, addresses, ASKED)
    assert lookup_uri(lookup) == uri
    assert lookup_block(lookup).decode().splitlines() == ["20261118110640", *lines]


def test_a_line_has_no_status() -> None:
    found = Resource("dns:a.test", ASKED, "text/dns", "sha256:00", "w.warc.gz", Span(12, 34))
    assert capture_line(found, "w.warc.gz.open").decode() == (
        'dns:a.test 20261118110640 {"url": "dns:a.test", "mime": "text/dns", "digest": "sha256:00", '
        '"length": "34", "offset": "12", "filename": "w.warc.gz.open"}\n'
    )


def test_invented_uris_have_keys_that_no_site_has() -> None:
    assert lookup_key(f"{PLACE}crawl.toml") == "invalid,archiver)/crawl/crawl.toml" == url.surt(f"{PLACE}crawl.toml")


@pytest.mark.parametrize(
    ("content_type", "mime"),
    [("text/dns", "text/dns"), ("text/plain; charset=utf-8", "text/plain"), ("text/html ;x", "text/html"), ("", "")],
)
def test_media_types(content_type: str, mime: str) -> None:
    assert mime_of(content_type) == mime
