"""Answers that are not read to their end: streams without one, and media types that nobody wants."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.errors import ArchiveError
from archiver.http import body
from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.log import Row
from fixtures.mounts import mounted
from fixtures.rawserver import Answer, End, Piece, RawServer, Route, Sendable
from fixtures.sites import ok, page

ICY = b"ICY 200 OK\r\nicy-name:Jazz\r\ncontent-type:audio/mpeg\r\n\r\n"
WEBCAM = b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=f\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
AUDIO = b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n"
FILM = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 9000000000\r\n\r\n"
SAMPLE = body.SAMPLE


def without_end(head: bytes, piece: bytes = b"x" * 8192, pause: float = 0.0) -> Route:
    def pieces() -> Iterator[Piece]:
        yield head
        while True:
            yield piece
            if pause:
                yield pause

    def route(row: Row) -> Sendable:
        del row
        return Answer(pieces(), End.CLOSE)

    return route


def blocks(directory: Path) -> dict[str, tuple[str | None, bytes]]:
    """WARC-Truncated and the block of each response, by the target."""
    found = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type == "response":
                    target = "/" + record.rec_headers.get_header("WARC-Target-URI").split("/", 3)[3]
                    found[target] = (record.rec_headers.get_header("WARC-Truncated"), record.raw_stream.read())
    return found


def crawled(directory: Path, routes: dict[str, Route], **values: Any) -> RawServer:
    """A crawl, to its end, of a page that shows every one of *routes* but /robots.txt."""
    shown = [target for target in routes if target not in ("/", "/robots.txt")]
    with RawServer({"/": ok(page("Front", images=shown)), **routes}) as server:
        assert crawl(directory, server.url(), **values).code is ExitCode.DONE
    return server


def noted(directory: Path, target: str) -> tuple[object, ...]:
    return rows(directory, f"SELECT state, tries, note FROM urls WHERE url LIKE '%{target}'")[0]


def logged(directory: Path, target: str) -> str:
    lines = (directory / "logs" / "crawl.log").read_text().splitlines()
    return next(line.split()[-1] for line in lines if line.split()[3].endswith(target))


def test_streams_are_cut_after_a_sample(tmp_path: Path) -> None:
    heads = {"/icy": ICY, "/webcam": WEBCAM}
    crawled(tmp_path, {target: without_end(head) for target, head in heads.items()})
    kept = blocks(tmp_path)
    for (target, head), word in zip(heads.items(), ("broadcast", "webcam"), strict=True):
        assert kept[target] == ("length", head + b"x" * SAMPLE)
        assert noted(tmp_path, target)[0:2] == ("archived", 1)
        note = str(noted(tmp_path, target)[2])
        assert note.startswith("cut: length")
        assert note.endswith(f"; an endless stream ({word}); a sample is stored")
        assert logged(tmp_path, target).startswith("lenTrunc")
        assert logged(tmp_path, target).endswith(f"endless:{word}")
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE
    told = rows(tmp_path, "SELECT url, state, note FROM urls ORDER BY url")
    assert archiver("rebuild", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE
    assert rows(tmp_path, "SELECT url, state, note FROM urls ORDER BY url") == told


def test_a_sample_is_over_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where little comes, and where nothing comes at all."""
    monkeypatch.setattr(body, "SAMPLE_TIME", 0.3)
    event = b"7\r\ndata: x\r\n"
    routes: dict[str, Route] = {"/events": without_end(EVENTS, event, 0.05), "/mute": Answer((EVENTS,), End.HANG)}
    server = crawled(tmp_path, routes, timeout=20.0)
    why, block = blocks(tmp_path)["/events"]
    assert why == "length"
    assert block.startswith(EVENTS + event)
    assert blocks(tmp_path)["/mute"] == ("length", EVENTS)
    assert noted(tmp_path, "/mute") == (
        "archived",
        1,
        "cut: length; an endless stream (events); a sample is stored",
    )
    assert all(row.lost for row in server.log if row.target in routes)


def test_a_stream_that_ends_is_whole(tmp_path: Path) -> None:
    whole = EVENTS + b"7\r\ndata: x\r\n0\r\n\r\n"
    crawled(tmp_path, {"/events": Answer((whole,), End.KEEP)})
    assert blocks(tmp_path)["/events"] == (None, whole)
    assert noted(tmp_path, "/events") == ("archived", 1, "")


def test_audio_at_the_speed_of_listening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audio of which nobody knows how long it is: a broadcast is slow, a file is quick."""
    monkeypatch.setattr(body, "LISTENED", 0.3)
    file = AUDIO + b"x" * 200_000
    quick = Answer((file[:150_000], 0.5, file[150_000:]), End.CLOSE)
    crawled(tmp_path, {"/radio": without_end(AUDIO, b"x" * 100, 0.05), "/file": quick})
    why, block = blocks(tmp_path)["/radio"]
    assert why == "length"
    assert 0 < len(block) < 20_000
    assert logged(tmp_path, "/radio") == "lenTrunc,endless:audio"
    assert blocks(tmp_path)["/file"] == (None, file)


def test_the_size_limit_still_holds(tmp_path: Path) -> None:
    crawled(tmp_path, {"/webcam": without_end(WEBCAM)}, max_response_size=1000)
    assert blocks(tmp_path)["/webcam"][0] == "length"
    assert len(blocks(tmp_path)["/webcam"][1]) == 1000
    assert noted(tmp_path, "/webcam") == ("archived", 1, "cut: length")


def test_an_excluded_type_is_not_read(tmp_path: Path) -> None:
    routes = {"/film": without_end(FILM), "/robots.txt": ok("User-agent: *\nDisallow: /no", "text/plain")}
    server = crawled(tmp_path, {**routes, "/no": ok("no")}, exclude_type=("video/*", "text/plain"))
    why, block = blocks(tmp_path)["/film"]
    assert why == "length"
    assert block.startswith(FILM)
    assert len(block) < 4 << 20
    told = "cut: length; the rest was not wanted: exclude-type video/*"
    assert noted(tmp_path, "/film") == ("archived", 1, told)
    assert logged(tmp_path, "/film") == "lenTrunc,exclude-type:video/*"
    assert blocks(tmp_path)["/robots.txt"][0] is None
    assert "/no" not in server.log.targets()
    assert next(row for row in server.log if row.target == "/film").lost
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE


@pytest.mark.parametrize("whole", [True, False])
def test_links_of_an_excluded_type_are_not_followed(tmp_path: Path, *, whole: bool) -> None:
    """Be it all there already when the head is read, or not."""
    body = page("Frame", ["/deep"]).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml\r\nContent-Length: %d\r\n\r\n" % len(body)
    frame = Answer((head + body,) if whole else (head, 0.2, body), End.KEEP)
    server = crawled(tmp_path, {"/frame": frame}, exclude_type=("application/xhtml+xml",))
    assert "/deep" not in server.log.targets()
    assert blocks(tmp_path)["/frame"] == ((None, head + body) if whole else ("length", head))
    assert "not wanted: exclude-type application/xhtml+xml" in str(noted(tmp_path, "/frame")[2])


def test_only_included_types_are_read(tmp_path: Path) -> None:
    text = ok(b"x" * 10, "text/plain")
    crawled(tmp_path, {"/film": without_end(FILM), "/text": text}, include_type=("text/*",))
    assert blocks(tmp_path)["/film"][0] == "length"
    assert noted(tmp_path, "/film")[2] == "cut: length; the rest was not wanted: no include-type names video/mp4"
    assert blocks(tmp_path)["/text"][0] is None


def long_answer(status: str) -> Route:
    """1 MB, of which the server sends the head first."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n".encode()
    return Answer((head, 0.2, *(b"x" * 10_000 for _ in range(100))), End.KEEP)


def test_bodies_of_other_statuses_are_not_read(tmp_path: Path) -> None:
    moved = b"HTTP/1.1 301 Moved\r\nLocation: /there\r\nContent-Length: 4\r\n\r\n"
    routes: dict[str, Route] = {
        "/robots.txt": Answer((b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\n", 0.2, b"none"), End.KEEP),
        "/gone": long_answer("404 Gone"),
        "/kept": long_answer("200 OK"),
        "/moved": Answer((moved, 0.2, b"over"), End.KEEP),
        "/there": ok("there"),
        "/forbidden": long_answer("403 Forbidden"),
    }
    server = crawled(tmp_path, routes, keep_status="200")
    kept = blocks(tmp_path)
    why, block = kept["/gone"]
    assert why == "length"
    assert block.startswith(b"HTTP/1.1 404")
    assert len(block) < 1_000_000
    told = "cut: length; the rest was not wanted: keep-status does not name 404"
    assert noted(tmp_path, "/gone") == ("archived", 1, told)
    assert logged(tmp_path, "/gone") == "lenTrunc,no-keep-status:404"
    assert kept["/kept"][0] is None
    assert len(kept["/kept"][1]) > 1_000_000
    assert kept["/moved"] == (None, moved + b"over")
    assert "/there" in server.log.targets()
    assert kept["/robots.txt"][0] is None
    assert kept["/robots.txt"][1].endswith(b"none")
    head = kept["/forbidden"][1].index(b"\r\n\r\n") + 4
    assert len(kept["/forbidden"][1]) <= head + SAMPLE
    assert kept["/forbidden"][0] == "length"
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE


def test_neither_resume_nor_rebuild_asks_for_unread_bodies_again(tmp_path: Path) -> None:
    routes: dict[str, Route] = {"/": ok(page("Front", images=["/gone", "/busy"])), "/gone": long_answer("404 Gone")}
    routes["/busy"] = long_answer("503 Busy")
    with RawServer(routes) as server:
        values: dict[str, Any] = {"keep_status": "2xx", "retries": 1}
        assert crawl(tmp_path, server.url(), **values).code is ExitCode.DONE
        assert server.log.targets().count("/busy") == 2  # retried as ever
        before = server.log.targets()
        told = rows(tmp_path, "SELECT url, state, note FROM urls ORDER BY url")
        assert crawl(tmp_path, server.url(), resume=True, **values).code is ExitCode.DONE
        assert archiver("rebuild", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE
        assert rows(tmp_path, "SELECT url, state, note FROM urls ORDER BY url") == told
        assert server.log.targets() == before


def test_a_host_may_keep_other_statuses(tmp_path: Path) -> None:
    with RawServer({"/": long_answer("404 Gone")}) as server:
        for directory, host in (("one", "127.0.0.1 keep-status=2xx"), ("two", "127.0.0.1 keep-status=404")):
            options = ("--keep-status", "2xx,3xx", "--host", host, "--rate", "0", "--probe", "off", "-o", directory)
            archiver("crawl", server.url(), *options, cwd=tmp_path)
    assert blocks(tmp_path / "one")["/"][0] == "length"
    assert blocks(tmp_path / "two")["/"][0] is None
    assert len(blocks(tmp_path / "two")["/"][1]) > 1_000_000
    explained = archiver("explain", "one", server.url(), cwd=tmp_path).stdout
    assert "keep-status does not name 404" in explained


def test_a_status_that_is_none_is_refused(tmp_path: Path) -> None:
    ran = archiver("crawl", "http://127.0.0.1:9/", "--keep-status", "20", "-o", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert "'20' is not status codes, or classes of them, with commas (200,404 or 2xx,4xx)" in ran.stderr
    assert not (tmp_path / "c").exists()


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-data\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-data\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = b"2000\r\n" + b"x" * 8192 + b"\r\n"
MOST = 600_000
UNSTATED: dict[str, Route] = {"/plain": without_end(PLAIN), "/chunked": without_end(CHUNKED, CHUNK)}


def test_a_body_of_unstated_length_is_cut_and_done_with(tmp_path: Path) -> None:
    """One that states its length is whole, whatever that is; none is asked for again, by resume neither."""
    large = b"y" * (3 * MOST)
    routes: dict[str, Route] = {**UNSTATED, "/stated": ok(large, "application/x-data")}
    server = crawled(tmp_path, routes, max_unstated_size=MOST)
    kept = blocks(tmp_path)
    for target, head in (("/plain", PLAIN), ("/chunked", CHUNKED)):
        why, block = kept[target]
        assert why == "length"
        assert len(block) == len(head) + MOST
        note = noted(tmp_path, target)[2]
        assert note == f"cut: length; the response stated no length; reading stopped after {MOST} bytes"
    why, block = kept["/stated"]
    assert why is None
    assert block.endswith(large)
    assert crawl(tmp_path, server.url(), resume=True).code is ExitCode.DONE
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE
    assert sorted(row.target for row in server.log if row.target in routes) == sorted(routes)


@pytest.mark.parametrize("target", UNSTATED)
def test_a_body_of_unstated_length_does_not_fill_the_disk(tmp_path: Path, target: str) -> None:
    """By default the bound is far above what this disk holds: the crawl goes on all the same."""
    directory = tmp_path / "c"
    with mounted(directory, "48m"):
        floor = 8 << 20
        routes: dict[str, Route] = {target: UNSTATED[target], "/other": ok("other", "text/plain")}
        crawled(directory, routes, min_free_disk=floor)
        assert blocks(directory)[target][0] == "length"
        assert noted(directory, "/other")[0] == "archived"
        assert str(noted(directory, target)[2]).endswith("bytes, because the disk is almost full")


def test_the_line_about_a_full_disk_names_the_url(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with mounted(directory, "32m"), RawServer({"/": without_end(FILM)}) as server:
        named = f"the response of {server.url()} cannot be spooled: the disk is full"
        with pytest.raises(ArchiveError, match=named):
            crawl(directory, server.url(), min_free_disk=0)
