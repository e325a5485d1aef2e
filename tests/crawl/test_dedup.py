"""Payloads that come again become revisits, of one crawl, across hosts and across crawls; never where they may not."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver
from fixtures.lifetimes import crawl
from fixtures.rawserver import Answer, RawServer, Route, keep

BODY = b"".join(b"line %d of a document that many hosts have\n" % number for number in range(100))
OTHER = BODY[::-1]
SMALL = b"x" * 1023


def ok(body: bytes, *fields: bytes, status: bytes = b"200 OK", kind: bytes = b"text/plain") -> Answer:
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body), *fields]
    return keep(b"\r\n".join([*lines, b"", body]))


def chunked(body: bytes, trailer: bytes = b"") -> Answer:
    half = len(body) // 2
    framed = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    return keep(head + framed + b"0\r\n" + trailer + b"\r\n")


def page(*targets: str) -> Answer:
    return ok("".join(f'<a href="{target}">.</a>' for target in targets).encode(), kind=b"text/html")


def kinds(directory: Path) -> dict[str, str]:
    """Each URL's path, and the type of record it lies in."""
    found = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type in ("response", "revisit"):
                    target = record.rec_headers.get_header("WARC-Target-URI")
                    found[target.split("/", 3)[3]] = record.rec_type
    return found


SITE: dict[str, Route] = {
    "/a": ok(BODY),
    "/b": ok(BODY, b"X-Other: 1"),
    "/chunked": chunked(BODY),
    "/trailers": chunked(BODY, b"X-Sum: 1\r\n"),
    "/coded": ok(BODY, b"Content-Encoding: identity"),
    "/error": ok(BODY, status=b"404 Not Found"),
    "/error-too": ok(BODY, status=b"404 Not Found"),
    "/moved": ok(BODY, b"Location: /a", status=b"302 Found"),
    "/moved-too": ok(BODY, b"Location: /a", status=b"302 Found"),
    "/small": ok(SMALL),
    "/small-too": ok(SMALL),
    "/cut": Answer((b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9999\r\n\r\n" + OTHER,)),
    "/whole": ok(OTHER),
    "/large": ok(bytes(9 << 20)),
    "/large-too": ok(bytes(9 << 20)),
}


def test_what_becomes_a_revisit(tmp_path: Path) -> None:
    routes = {**SITE, "/": page(*SITE), "/robots.txt": ok(b"User-agent: *\nDisallow:\n" + BODY)}
    with RawServer(routes) as server:
        assert crawl(tmp_path / "c", server.url(), retries=0, timeout=5.0).code is ExitCode.DONE
    found = kinds(tmp_path / "c")
    print(found)


def refers(directory: Path) -> dict[str, tuple[str, str, str]]:
    """Of each revisit: its URL's path, and URL, date and id that it names."""
    found = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "revisit":
                    header = record.rec_headers.get_header
                    names = ("WARC-Refers-To-Target-URI", "WARC-Refers-To-Date", "WARC-Refers-To")
                    found[header("WARC-Target-URI").split("/", 3)[3]] = tuple(header(name) or "" for name in names)
    return found


def originals(directory: Path) -> dict[str, tuple[str, str, str]]:
    found = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "response":
                    header = record.rec_headers.get_header
                    url = header("WARC-Target-URI")
                    found[url.split("/", 3)[3]] = (url, header("WARC-Date"), header("WARC-Record-ID"))
    return found


def test_across_crawls(tmp_path: Path) -> None:
    routes = {
        "/": page("/a", "/b"),
        "/a": ok(BODY),
        "/b": ok(OTHER),
        "/2": page("/c", "/d", "/e"),
        "/c": ok(BODY),
        "/d": ok(BODY + b"."),
        "/e": ok(OTHER),
    }
    with RawServer(routes) as server:
        crawl(tmp_path / "one", server.url())
        there = originals(tmp_path / "one")
        before = {path: path.read_bytes() for path in (tmp_path / "one").rglob("*") if path.is_file()}
        crawl(tmp_path / "two", server.url("/2"), dedup_from=(str(tmp_path / "one"),))
        crawl(tmp_path / "three", server.url("/2"), dedup_from=(str(tmp_path / "one/indexes/index.cdxj"),))
        (tmp_path / "alone.cdxj").write_bytes((tmp_path / "one/indexes/index.cdxj").read_bytes())
        crawl(tmp_path / "four", server.url("/2"), dedup_from=(str(tmp_path / "alone.cdxj"),))
        (tmp_path / "one/archive").rename(tmp_path / "one/elsewhere")
    assert refers(tmp_path / "two") == {"c": there["a"], "e": there["b"]}
    assert refers(tmp_path / "three") == refers(tmp_path / "two")
    seconds = {name: (url, f"{date[:19]}Z", "") for name, (url, date, _) in there.items()}
    assert refers(tmp_path / "four") == {"c": seconds["a"], "e": seconds["b"]}
    assert {path: path.read_bytes() for path in before if "archive" not in path.parts} == {
        path: data for path, data in before.items() if "archive" not in path.parts
    }
