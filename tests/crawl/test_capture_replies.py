"""The real command against servers that break every rule: what stands in its WARCs is what they sent."""

import gzip
import json
import random
import zlib
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import brotlicffi
import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.http import Framer
from archiver.model import ExitCode
from fixtures import crawl_in_process
from fixtures.archives import rows
from fixtures.badserver import BAD, NO_ANSWER, Verdict
from fixtures.command import archiver
from fixtures.rawserver import Answer, End, RawServer, Route, Sendable, in_turn, keep, trickle
from fixtures.sites import message, ok, page

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

QUICK = ("--rate", "0", "--retries", "0", "--timeout", "2", "--robots", "ignore", "-q")
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


@dataclass
class Captured:
    """What the archive says of one URL."""

    block: bytes = b""
    request: bytes = b""
    truncated: str | None = None
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    interim: bytes = b""
    surplus: bytes = b""
    protocols: tuple[str, ...] = ()
    cipher: str | None = None


def captures(directory: Path) -> dict[str, Captured]:
    """Every capture in *directory*, read by another reader than our own; each URL is there once."""
    found: dict[str, Captured] = {}
    seen: set[tuple[str, str]] = set()
    for path in sorted((directory / "archive").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type == "warcinfo":
                    continue
                fields = record.rec_headers
                url = fields.get_header("WARC-Target-URI")
                assert (url, record.rec_type) not in seen
                seen.add((url, record.rec_type))
                capture = found.setdefault(url, Captured())
                block = record.raw_stream.read()
                if record.rec_type == "response":
                    capture.block = block
                    capture.truncated = fields.get_header("WARC-Truncated")
                    capture.protocols = tuple(value for name, value in fields.headers if name == "WARC-Protocol")
                    capture.cipher = fields.get_header("WARC-Cipher-Suite")
                elif record.rec_type == "request":
                    capture.request = block
                else:
                    notes = [line.partition(": ")[::2] for line in block.decode().split("\r\n")]
                    capture.faults = tuple(value for name, value in notes if name == "fault")
                    capture.remarks = tuple(value for name, value in notes if name == "remark")
                    values = dict(notes)
                    capture.interim = b64decode(values.get("interimResponse", ""))
                    capture.surplus = b64decode(values.get("surplusBytes", ""))
    return found


def crawl(server: RawServer, cwd: Path, *options: str) -> dict[str, Captured]:
    """Crawl *server* from `/` and verify the result; captures by target."""
    ran = archiver("crawl", server.url(), "-o", "out", *QUICK, *options, cwd=cwd)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert "Traceback" not in ran.stderr
    verified = archiver("verify", "out", cwd=cwd)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    start = server.url("")
    return {url.removeprefix(start): capture for url, capture in captures(cwd / "out").items()}


def linked(routes: Mapping[str, Route]) -> dict[str, Route]:
    return {"/": ok(page("All of them", routes)), **routes}


@BOTH
@pytest.mark.suites
@pytest.mark.parametrize("size", [0, 7], ids=["whole", "in small pieces"])
def test_the_replies_of_others(tmp_path: Path, suites: Path, size: int, *, tls: bool) -> None:
    folder = suites / "http-replies"
    rows = json.loads((folder / "index.json").read_text())
    raws = {f"/{row['file']}": (folder / row["file"]).read_bytes() for row in rows}
    routes: dict[str, Route] = {
        target: trickle(raw, size=size) if size and len(raw) < 5000 else raw for target, raw in raws.items()
    }
    with RawServer(linked(routes), tls=tls) as server:
        got = crawl(server, tmp_path, "--max-depth", "1", "--no-page-requisites")
    assert set(raws) <= set(got)
    for row in rows:
        target = f"/{row['file']}"
        capture = got[target]
        framer = Framer()
        block = framer.feed(raws[target]) + framer.finish()
        assert (capture.interim, capture.block) == (framer.interim, block), target
        assert capture.surplus == framer.surplus or (size and framer.surplus.startswith(capture.surplus)), target
        assert capture.request in server.log.requests(target)
        marked = capture.truncated is not None or bool(capture.faults)
        if row["expected"] == "parsable":
            assert capture.truncated is None, target
        if row["expected"] == "truncated":
            assert capture.truncated, target
        if row["expected"] == "garbage":
            assert marked, target


@BOTH
def test_bad_answers_of_our_own(tmp_path: Path, *, tls: bool) -> None:
    routes: dict[str, Route] = {f"/{name}": Answer((bad.raw,), bad.end) for name, bad in BAD.items() if bad.exact}
    routes |= {f"/{name}": route for name, route in NO_ANSWER.items()}
    routes["/stalled"] = Answer((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",), End.HANG)
    with RawServer(linked(routes), tls=tls) as server:
        got = crawl(server, tmp_path)
    assert not {f"/{name}" for name in NO_ANSWER} & set(got)
    assert (got["/stalled"].truncated, got["/stalled"].block[-2:]) == ("time", b"hi")
    for name, bad in BAD.items():
        if not bad.exact:
            continue
        capture = got[f"/{name}"]
        assert capture.block == bad.block, name
        assert capture.interim + capture.block + capture.surplus == bad.raw, name
        assert capture.request in server.log.requests(f"/{name}")
        if bad.verdict is Verdict.COMPLETE:
            assert capture.truncated is None, name
        elif bad.verdict is Verdict.TRUNCATED:
            assert capture.truncated == "disconnect", name
        else:
            assert capture.truncated or capture.faults, name
        if tls:
            assert "tls-unverified" in capture.remarks
            assert capture.protocols[1:] == ("tls/1.3",)
            assert str(capture.cipher).startswith("TLS_")
        else:
            assert (capture.protocols[1:], capture.cipher) == ((), None)


def test_hosts_that_cannot_be_asked_do_not_end_a_crawl(tmp_path: Path) -> None:
    hosts = [
        "http://a..b/",
        "http://./",
        f"http://{'a' * 64}.example/",
        "http://nowhere.invalid/",
        "http://127.0.0.1:1/",
    ]
    body = page("Nobody is there", images=[f"{host}{number}.png" for number, host in enumerate(hosts)], links=["/next"])
    with RawServer({"/": ok(body), "/next": ok("fine")}) as server:
        got = crawl(server, tmp_path, "--probe", "off")
    assert {target for target in got if target.startswith("/")} == {"/", "/next"}


def test_a_size_limit_marks_what_it_cuts(tmp_path: Path) -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n" + b"x" * 500_000
    with RawServer(linked({"/long": raw})) as server:
        got = crawl(server, tmp_path, "--max-response-size", "400000")
    assert (got["/long"].block, got["/long"].truncated) == (raw[:400_000], "length")
    assert got["/"].truncated is None


def test_a_coding_that_breaks_gets_a_fault_word(tmp_path: Path) -> None:
    """Whatever the type, also where nobody looks for links; sound ones get none, and rebuild says the same."""
    whole = gzip.compress(b"<title>x</title>" * 2000, mtime=0)
    broken = whole[:40] + b"\xff" * 20 + whole[60:]
    bodies = {"sound": whole, "broken": broken, "cut": whole[:-12], "none": b"plain text, not gzip", "empty": b""}
    kinds = ("text/html", "image/png", "application/x-data")
    routes: dict[str, Route] = {
        f"/{name}/{kind}": ok_bytes(body, kind) for name, body in bodies.items() for kind in kinds
    }
    with RawServer({"/": ok(page("Front", list(routes))), **routes}) as server:
        assert crawl_in_process.crawl(tmp_path, server.url(), probe="off").code is ExitCode.DONE
    told = rows(tmp_path, "SELECT url, note FROM urls")
    for address, note in told:
        faulty = any(f"/{name}/" in str(address) for name in ("broken", "cut", "none"))
        assert (note == "malformed: content-coding") == faulty, (address, note)
    assert (tmp_path / "logs" / "crawl.log").read_text().count("content-coding") >= 9
    assert archiver("rebuild", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE
    assert sorted(rows(tmp_path, "SELECT url, note FROM urls")) == sorted(told)


def ok_bytes(body: bytes, kind: str) -> Sendable:
    return keep(message("200 OK", body, content_type=kind, content_encoding="gzip"))


CODERS = {
    "gzip": lambda body: gzip.compress(body, mtime=0),
    "deflate": zlib.compress,
    "br": brotlicffi.compress,
    "zstd": zstd.compress,
}


def coded(body: bytes, coding: str, kind: str) -> Sendable:
    return keep(message("200 OK", body, content_type=kind, content_encoding=coding))


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("kind", ["text/html", "image/png"])
def test_a_body_that_is_cut_inside_its_coding_is_requested_once_more(tmp_path: Path, coding: str, kind: str) -> None:
    """Content-Length is that of the cut body, so only the decoder notices."""
    whole = CODERS[coding](random.Random(1).randbytes(5000).hex().encode())
    answers = {"/once": (whole[:-900], whole), "/always": (whole[:-900],), "/sound": (whole,)}
    routes = {name: in_turn(*(coded(each, coding, kind) for each in several)) for name, several in answers.items()}
    with RawServer({"/": ok(page("Front", list(routes))), **routes}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK[:2], "--retries", "3", *QUICK[4:], cwd=tmp_path)
        assert [len(server.log.requests(name)) for name in answers] == [2, 2, 1]
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "verdict   4 pages: 3 ok, 1 undecodable (Content-Encoding)\n" in ran.stderr
    assert "archiver retry o --truncated && archiver resume o" in ran.stderr
    listed = archiver("urls", "o", "--truncated", "--why", cwd=tmp_path).stdout
    assert listed == f"{server.url('/always')}\tarchived: answered 200; malformed: content-coding\n"
    report = archiver("report", "o", cwd=tmp_path).stdout
    assert report.startswith("result    Finished, but 1 page does not decode.\n")
    assert archiver("verify", "o", cwd=tmp_path).returncode == ExitCode.DONE
    got = archiver("get", "o", server.url("/always"), "--raw", "-o", "always", cwd=tmp_path)
    assert got.returncode == ExitCode.DONE, got.stderr
    assert (tmp_path / "always").read_bytes().endswith(whole[:-900])


def test_a_large_body_that_is_cut_at_its_end_gets_a_fault_word(tmp_path: Path) -> None:
    """A body without links is checked further than the first megabyte."""
    whole = gzip.compress(random.Random(2).randbytes(3_000_000), mtime=0)
    routes = {"/data": coded(whole[:-9], "gzip", "application/x-data")}
    with RawServer({"/": ok(page("Front", list(routes))), **routes}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK, cwd=tmp_path)
    assert "2 pages: 1 ok, 1 undecodable (Content-Encoding)\n" in ran.stderr


@pytest.mark.parametrize("coding", ["utf-8", "none", "binary"])
def test_a_word_that_is_no_coding_makes_no_page_bad(tmp_path: Path, coding: str) -> None:
    """Browsers show such a page, and it is not requested again."""
    routes = {"/": coded(page("Front", ["/next"]).encode(), coding, "text/html"), "/next": ok("fine")}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK[:2], "-q", "--strict", cwd=tmp_path)
        assert len(server.log.requests("/")) == 1
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "verdict   2 pages: 2 ok\n" in ran.stderr
    assert ("malformed: unknown-content-coding",) in rows(tmp_path / "o", "SELECT note FROM urls")


def test_a_recrawl_does_not_keep_a_damaged_body(tmp_path: Path) -> None:
    """A 304 would say that the damaged body is still right."""
    whole = gzip.compress(page("A").encode() * 200, mtime=0)
    cut = message("200 OK", whole[:-20], content_type="text/html", content_encoding="gzip", etag='"1"')
    routes: dict[str, Route] = {"/": keep(cut)}
    with RawServer(routes) as server:
        assert archiver("crawl", server.url(), "-o", "o/a", *QUICK, cwd=tmp_path).returncode == ExitCode.DONE
        ran = archiver("recrawl", "o/a", "-q", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert not any(b"If-None-Match" in each for each in server.log.requests("/"))


def test_a_body_that_is_cut_inside_its_transfer_coding_is_undecodable(tmp_path: Path) -> None:
    part = gzip.compress(b"a text " * 100, mtime=0)[:-12]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    raw = head + b"%x\r\n" % len(part) + part + b"\r\n0\r\n\r\n"
    with RawServer({"/": raw}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", *QUICK, cwd=tmp_path)
    assert "1 page: 1 undecodable (Content-Encoding)\n" in ran.stderr
