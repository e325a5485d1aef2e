"""pywb shows revisits as if their payload had been stored with them: of another URL, another host, another crawl."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl
from fixtures.pywb_server import archiver_replay, plain_wayback
from fixtures.rawserver import Answer, RawServer, Route, keep
from fixtures.sites import ok, page

pytestmark = [pytest.mark.replay, pytest.mark.slow]

TEXT = b"".join(b"<p>paragraph %d</p>\n" % number for number in range(200))
ZIPPED = gzip.compress(TEXT, mtime=0, compresslevel=0)
YEARS = b"2024;1;2\r\n" * 200
HOSTS = ("127.0.0.1", "127.0.0.2")


def chunked(body: bytes, *fields: bytes) -> Answer:
    head = b"\r\n".join([b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked", *fields, b"", b""])
    return keep(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


def coded(body: bytes, *fields: bytes) -> Answer:
    lines = [b"HTTP/1.1 200 OK", b"Content-Encoding: gzip", b"Content-Length: %d" % len(body), *fields]
    return keep(b"\r\n".join([*lines, b"", body]))


def missing(body: bytes) -> Answer:
    return keep(
        b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )


IDENTICAL = "identical-payload-digest"
HTML = b"Content-Type: text/html"
FIRST: dict[str, tuple[Route, bytes]] = {
    "/plain": (ok(TEXT, "text/html"), TEXT),
    "/chunked": (chunked(TEXT, HTML), TEXT),
    "/zipped": (coded(ZIPPED, HTML), ZIPPED),
    "/zipped-chunked": (chunked(ZIPPED, HTML, b"Content-Encoding: gzip"), ZIPPED),
    "/chunks-first": (chunked(TEXT[3:], HTML), TEXT[3:]),
    "/whole-after": (ok(TEXT[3:], "text/html"), TEXT[3:]),
    "/years": (ok(YEARS, "text/csv"), YEARS),
    "/years-in-chunks": (chunked(YEARS), YEARS),
    "/missing": (missing(TEXT[7:]), TEXT[7:]),
    "/missing-too": (missing(TEXT[7:]), TEXT[7:]),
}


def test_revisits_replay(tmp_path: Path) -> None:
    """Raw they are the payload of the original behind a head of their own; rewritten they are a page."""
    here, there = HOSTS
    first: dict[str, Route] = {name: route for name, (route, _) in FIRST.items()}
    routes: dict[str, Route] = {**first, "/": ok(page("all", FIRST)), "/again": first["/plain"]}
    with RawServer(routes, hosts=HOSTS) as server:
        seeds = server.url("/", here), server.url("/", there)
        assert crawl(tmp_path / "collections/one", *seeds).code is ExitCode.DONE
        crawl(tmp_path / "collections/two", server.url("/again"), dedup_from=(str(tmp_path / "collections/one"),))
    urls = {server.url(name, host): body for name, (_, body) in FIRST.items() for host in HOSTS}
    revisits = rows(
        tmp_path / "collections/one",
        "SELECT urls.url FROM captures JOIN urls ON urls.id = captures.url WHERE revisit <> ''",
    )
    again = {"/" + str(url).split("/", 3)[3] for (url,) in revisits}
    assert again >= FIRST.keys() - {"/years-in-chunks"}  # of one batch, these may both be stored
    with plain_wayback(tmp_path / "collections/one", "--all-coll", "all") as wayback:
        for url, body in urls.items():
            raw = wayback.get(url)
            assert raw.body == body, url
            assert raw.status == (404 if "missing" in url else 200)
        assert b"paragraph 199" in wayback.get(server.url("/chunked", there), "mp_").body
        everywhere = replace(wayback, collection="all")
        assert everywhere.get(server.url("/again")).body == TEXT
        assert wayback.get(server.url("/again")).status == 404
    (tmp_path / "collections/two/crawl.toml").write_text(f"dedup-from = ['{tmp_path / 'collections/one'}']\n")
    with archiver_replay(tmp_path / "collections/two") as wayback:  # finds the other by itself
        assert wayback.get(server.url("/again")).body == TEXT
    assert rows(tmp_path / "collections/two", "SELECT revisit FROM captures WHERE status = 200") == [(IDENTICAL,)]
