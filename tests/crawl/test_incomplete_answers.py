"""Answers that are not whole: what is kept of them, how often they are requested, and what the verdict says."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver
from fixtures.rawserver import Answer, End, RawServer, Route, Sendable, in_turn, keep
from fixtures.sites import message, ok, page

QUICK = ("--rate", "0", "--probe", "off", "--timeout", "2", "-q")
BEGIN, REST = b"<title>Begin</title><p>first words</p>", b"<a href=/next>next</a>\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%b\r\n" % (len(BEGIN), BEGIN)
BROKEN = {
    "no size": CHUNKED + CHUNK + b"zz\r\n" + REST + b"\r\n0\r\n\r\n",
    "a negative size": CHUNKED + CHUNK + b"-5\r\n" + REST,
    "a size beyond all": CHUNKED + CHUNK + b"f" * 40 + b"\r\n" + REST,
    "more than its size": CHUNKED + CHUNK[:-2] + b"garbage\r\n0\r\n\r\n",
    "an empty line": CHUNKED + CHUNK + b"\r\n0\r\n\r\n",
    "the first size": CHUNKED + b"0x5\r\n" + BEGIN + b"\r\n0\r\n\r\n",
    "after a fault in its head": CHUNKED.replace(b"\r\nT", b"\r\nno field\r\nT") + CHUNK + b"zz\r\n",
    "no last chunk": CHUNKED + CHUNK,
    "no end of the last chunk": CHUNKED + CHUNK + b"0\r\n",
    "a cut chunk": CHUNKED + CHUNK + b"ff\r\n" + REST,
}
PART = b"206 Partial Content\r\nContent-Type: text/html"
PARTS = {
    "a part": PART + b"\r\nContent-Range: bytes 0-60/500",
    "another part": PART + b"\r\nContent-Range: bytes 100-160/161",
    "of unknown length": PART + b"\r\nContent-Range: bytes 0-60/*",
    "no range": PART,
    "no number": PART + b"\r\nContent-Range: bytes */61",
    "gzip": PART + b"\r\nContent-Range: bytes 0-60/500\r\nContent-Encoding: gzip",
}
PIECE = gzip.compress(BEGIN + REST, mtime=0)[:-10]


def part(line: bytes) -> bytes:
    body = PIECE if line.endswith(b"gzip") else BEGIN + REST
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (line, len(body), body)


WRONG: dict[str, bytes] = {**BROKEN, **{name: part(line) for name, line in PARTS.items()}}


def responses(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Yield URL and block of each response record."""
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type == "response":
                    yield record.rec_headers.get_header("WARC-Target-URI"), record.raw_stream.read()


@pytest.mark.parametrize("name", WRONG)
def test_a_seed_that_is_not_whole_is_requested_once_more_and_named(tmp_path: Path, name: str) -> None:
    with RawServer({"/": WRONG[name], "/next": ok("next")}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK, "--retries", "3", "--robots", "ignore", cwd=tmp_path)
        assert len(server.log.requests("/")) == 2
    assert [block for address, block in responses(tmp_path / "o") if address == server.url()] == [WRONG[name]] * 2
    assert ", 1 truncated\n" in ran.stderr or "1 page: 1 truncated\n" in ran.stderr
    assert "archiver retry o --truncated && archiver resume o" in ran.stderr
    assert ran.returncode == ExitCode.DONE  # as after any cut body
    assert archiver("resume", "o", "--strict", "-q", cwd=tmp_path).returncode == ExitCode.TROUBLE
    assert server.url() in archiver("urls", "o", "--truncated", cwd=tmp_path).stdout
    assert archiver("verify", "o", cwd=tmp_path).returncode == ExitCode.DONE
    before = rows(tmp_path / "o", "SELECT url, state, status, note FROM urls ORDER BY url")
    assert archiver("rebuild", "o", cwd=tmp_path).returncode == ExitCode.DONE
    assert rows(tmp_path / "o", "SELECT url, state, status, note FROM urls ORDER BY url") == before


@pytest.mark.parametrize("name", ["no size", "no last chunk", "a part"])
def test_a_page_that_is_whole_the_next_time_counts_as_whole(tmp_path: Path, name: str) -> None:
    routes: dict[str, Route] = {"/": ok(page("Home", ["/a"])), "/a": in_turn(WRONG[name], ok("<a href=/b>b</a>"))}
    with RawServer({**routes, "/b": ok("b"), "/next": ok("next")}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK, "--robots", "ignore", "--strict", cwd=tmp_path)
        assert "/b" in server.log.targets()
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "pages: 3 ok\n" in ran.stderr or "pages: 4 ok\n" in ran.stderr
    assert archiver("verify", "o", cwd=tmp_path).returncode == ExitCode.DONE


WHOLE: dict[str, tuple[Sendable, tuple[str, ...]]] = {
    "all of it": (part(PART + b"\r\nContent-Range: bytes 0-%d/%d" % (len(BEGIN + REST) - 1, len(BEGIN + REST))), ()),
    "as it was asked for": (part(PARTS["a part"]), ("--header", "Range: bytes=0-60")),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_part_that_is_all_or_was_asked_for_is_no_fault(tmp_path: Path, name: str) -> None:
    route, options = WHOLE[name]
    with RawServer({"/": route, "/next": ok("next")}) as server:
        options = (*options, *QUICK, "--robots", "ignore", "--strict")
        ran = archiver("crawl", server.url(), "-o", "o", *options, cwd=tmp_path)
        assert len(server.log.requests("/")) == 1
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "verdict   2 pages: 2 ok\n" in ran.stderr


RULES = b"User-agent: *\nDisallow: /x\n"
TEXT = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CUT_RULES: dict[str, Sendable] = {
    "no last chunk": TEXT + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(RULES), RULES),
    "broken chunks": TEXT + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\nzz\r\n" % (len(RULES), RULES),
    "cut in gzip": keep(
        message("200 OK", gzip.compress(RULES * 50)[:-12], content_type="text/plain", content_encoding="gzip")
    ),
}


@pytest.mark.parametrize("name", CUT_RULES)
def test_a_robots_txt_that_is_not_whole_is_no_permission(tmp_path: Path, name: str) -> None:
    """The missing part may hold the rule that matters."""
    with RawServer({"/robots.txt": CUT_RULES[name], "/": ok("home")}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK, "--robots-patience", "3", cwd=tmp_path)
        assert len(server.log.requests("/robots.txt")) == 2
        assert "/" not in server.log.targets()
    assert ran.returncode == ExitCode.NO_SEED
    assert "was cut short" in ran.stderr


NEVER_CHUNKED = TEXT + b"Transfer-Encoding: chunked\r\n\r\n" + RULES


@pytest.mark.parametrize("route", [NEVER_CHUNKED, Answer((part(PARTS["a part"]),), End.CLOSE)])
def test_a_robots_txt_that_may_be_whole_is_followed(tmp_path: Path, route: Sendable) -> None:
    with RawServer({"/robots.txt": route, "/": ok(page("Home", ["/x"])), "/x": ok("x")}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK, cwd=tmp_path)
        assert ("/x" in server.log.targets()) == (route != NEVER_CHUNKED)
    assert ran.returncode == ExitCode.DONE, ran.stderr
