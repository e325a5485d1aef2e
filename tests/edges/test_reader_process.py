"""Large documents are read in a process of their own, which is stopped when one takes too long."""

import io
import os
import re
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver import extract
from archiver.crawl import reader_process
from archiver.crawl.reader_process import MARK, NEAR, Mark, ReaderProcess, suspects
from archiver.extract import Document
from archiver.extract.exchange import UNREAD
from archiver.model import Links
from archiver.tools.wacz.pages import PageFinder
from archiver.warc.reader import Record, scan
from fixtures import quadratic_reader
from fixtures.handmade_warc import record

PAGE = b"".join(b"<p><a href=/%d>x</a></p>" % number for number in range(8000))


@pytest.fixture
def read() -> Iterator[ReaderProcess]:
    reader = ReaderProcess()
    yield reader
    reader.close()


def page(body: bytes) -> Document:
    return Document("http://e.org/", "text/html", None, body)


def children() -> set[int]:
    found = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, check=False, text=True).stdout
    return {int(pid) for pid in found.split()}


def test_a_large_document_gives_the_same_links_in_the_process(read: ReaderProcess) -> None:
    assert len(PAGE) > NEAR
    before = children()
    assert read(page(PAGE)) == extract.links(page(PAGE))
    assert len(children() - before) == 1
    read.close()
    assert children() == before


def test_a_small_document_needs_no_process(read: ReaderProcess) -> None:
    before = children()
    assert len(read(page(b"<a href=x>")).links) == 1
    assert children() == before


def test_a_document_that_takes_too_long_is_skipped() -> None:
    read = ReaderProcess(near=0, seconds=0.001 - 1e-6 * 8_000_000)  # next to nothing for a document of 8 MB
    try:
        given_up = read(page(b"<b '=x><i>" * 800_000))
        assert given_up.links == ()
        assert re.fullmatch(rf"{UNREAD}: it took more than [0-9.]+ s", given_up.note)
    finally:
        read.close()
    read = ReaderProcess(near=0)
    try:
        assert len(read(page(b"<a href=x>")).links) == 1
    finally:
        read.close()


def test_a_document_that_crashes_the_process_is_skipped(read: ReaderProcess) -> None:
    before = children()
    read(page(PAGE))
    (process,) = children() - before
    ender = threading.Timer(0.05, os.kill, (process, signal.SIGSEGV))
    ender.start()
    given_up = read(page(b"<b '=x><i>" * 800_000))  # needs longer than that
    ender.join()
    assert given_up.links == ()
    assert given_up.note == f"{UNREAD}: it ended the reading process (-11)"
    assert len(read(page(PAGE)).links) == 8000


HUNGRY = {
    "while it is read": lambda: b"<a " + b"".join(b"a%d " % number for number in range(3_000_000)) + b">",
    "before it is read": lambda: b"<p>" + b"x y " * (25 << 20),
}


@pytest.mark.parametrize("when", HUNGRY)
def test_a_document_that_takes_too_much_memory_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], when: str
) -> None:
    """The kernel refuses memory above the limit, which is smaller here so that the test needs no gigabytes."""
    monkeypatch.setattr(reader_process, "MEMORY", 80 << 20)
    before, read = children(), ReaderProcess()
    try:
        given_up = read(page(HUNGRY[when]()))
        assert given_up == Links(note=f"{UNREAD}: it took more memory than 0.0781 GiB")
        assert children() == before
        assert len(read(page(PAGE)).links) == 8000
    finally:
        read.close()
    assert "Traceback" not in capfd.readouterr().err


def test_the_process_has_the_limit_that_is_documented(read: ReaderProcess) -> None:
    before = children()
    read(page(PAGE))
    (process,) = children() - before
    assert resource.prlimit(process, resource.RLIMIT_AS)[0] == 4 << 30
    assert resource.prlimit(process, resource.RLIMIT_CORE) == (0, 0)


def test_any_reader_is_stopped_when_it_takes_too_long() -> None:
    """A document of 1 MB and a quadratic reader: it would take minutes."""
    read = ReaderProcess(seconds=0.3 - 1.0)
    before = children()
    try:
        found, why = read.apply(quadratic_reader.read, page(bytes(1_000_000)))
        assert (found, why) == (None, "it took more than 0.3 s")
        assert children() == before
        assert read.apply(quadratic_reader.read, page(bytes(1000))) == (1_000_000, "")  # small ones are read at once
    finally:
        read.close()


def test_pack_lists_a_page_that_takes_too_long_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    """The reader of titles and text is killed; that page and the following ones are listed."""
    costly = b"<title>Costly</title>" + b"<b><i><p>words</b>" * 100_000
    reader = ReaderProcess(seconds=0.001 - len(costly) / 1e6)
    finder = PageFinder(text=True, reader=reader)
    bodies = {"http://e.org/costly": costly, "http://e.org/": b"<title>Plain</title>plain words"}
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    whole = b"".join(
        record("response", head + body, ("WARC-Target-URI", address), number=number)
        for number, (address, body) in enumerate(bodies.items())
    )
    try:
        found = [found for item in scan(io.BytesIO(whole)) if isinstance(item, Record) for found in finder.add(item)]
        found += finder.finish()
    finally:
        finder.close()
    assert [(each.url, each.title, each.text) for each in found] == [
        ("http://e.org/costly", "", ""),
        ("http://e.org/", "Plain", "plain words"),
    ]
    assert "cannot read title and text of http://e.org/costly: it took more than" in caplog.text


def test_a_suspected_document_of_any_size_is_read_in_the_process(tmp_path: Path) -> None:
    mark = Mark(tmp_path / MARK.format(0))
    mark.set("http://e.org/")
    assert suspects(tmp_path) == {"http://e.org/"}
    before, suspected = children(), suspects(tmp_path)
    read = ReaderProcess(mark=Mark(tmp_path / MARK.format(0)), suspected=suspected)
    try:
        assert len(read(page(b"<a href=x>")).links) == 1
        assert len(children() - before) == 1
    finally:
        read.close()
        mark.remove()
    assert not list(tmp_path.iterdir())


def test_a_mark_names_the_documents_of_the_batch_and_of_no_earlier_one(tmp_path: Path) -> None:
    mark = Mark(tmp_path / MARK.format(0))
    read = ReaderProcess(mark=mark)
    with read.marking(["http://e.org/first", "http://e.org/a/much/longer/one"]):
        assert suspects(tmp_path) == {"http://e.org/first", "http://e.org/a/much/longer/one"}
        mark.set("http://e.org/")
        assert suspects(tmp_path) == {"http://e.org/"}
    assert suspects(tmp_path) == frozenset()
    read.close()
    assert not list(tmp_path.iterdir())


def test_a_mark_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    """As in a folder that someone else has prepared."""
    folder, outside = tmp_path / "spool", tmp_path / "outside"
    folder.mkdir()
    outside.write_text("mine")
    (folder / MARK.format(0)).symlink_to(outside)
    assert suspects(folder) == frozenset()
    mark = Mark(folder / MARK.format(0))
    mark.set("http://e.org/")
    mark.remove()
    assert outside.read_text() == "mine"
