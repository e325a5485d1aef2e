"""Answers that are odd but shown by browsers: their links are followed, and the verdict finds no fault with them."""

import gzip
import zlib
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import archiver
from fixtures.rawserver import RawServer, Sendable, keep
from fixtures.sites import message, ok, page

HOME = page("Home", ["/next"]).encode()
SENT = message("200 OK", HOME, content_type="text/html")


def coded(body: bytes, coding: str) -> Sendable:
    return keep(message("200 OK", body, content_type="text/html", content_encoding=coding))


SHOWN: dict[str, Sendable] = {
    "small letters": keep(SENT.replace(b"HTTP", b"http")),
    "mixed letters": keep(SENT.replace(b"HTTP", b"Http")),
    "no reason": keep(SENT.replace(b" OK", b"")),
    "SHOUTcast": SENT.replace(b"HTTP/1.1", b"ICY"),
    "LF only": SENT.replace(b"\r\n", b"\n"),
    "a plus": SENT.replace(b"Content-Length: ", b"Content-Length: +"),
    "an unknown coding": SENT.replace(b"Content-Length: ", b"Transfer-Encoding: x\r\nContent-Length: "),
    "gzip without its checksum": coded(gzip.compress(HOME)[:-8], "gzip"),
    "gzip and garbage": coded(gzip.compress(HOME) + b"\x1fgarbage", "gzip"),
    "zlib without its checksum": coded(zlib.compress(HOME)[:-4], "deflate"),
    "another length": SENT.replace(b"Content-Length: ", b"Content-Length: 9, "),
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_odd_answer_that_browsers_show_is_read_at_once_and_no_trouble(tmp_path: Path, name: str) -> None:
    with RawServer({"/": SHOWN[name], "/next": ok("next")}) as server:
        options = ("--rate", "0", "--probe", "off", "--robots", "ignore", "--strict", "-q")
        ran = archiver("crawl", server.url(), "-o", "o", *options, cwd=tmp_path)
        assert [*server.log.targets()] == ["/", "/next"]
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "verdict   2 pages: 2 ok\n" in ran.stderr
    assert archiver("verify", "o", cwd=tmp_path).returncode == ExitCode.DONE
