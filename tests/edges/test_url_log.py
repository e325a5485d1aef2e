"""The second log of URLs: its fields, whole lines whatever comes, and no error that reaches the crawl."""

import fcntl
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.collection import url_log
from archiver.collection.crawl_log import CrawlLog, LogLine
from archiver.collection.url_log import JSON_FIELDS, UrlLog, check_place, json_line
from archiver.config.event_settings import STDERR, EventSettings
from archiver.errors import ConfigError
from fixtures.command import ROOT, environment

LINE = LogLine(
    logged=1_795_000_000.25,
    status=200,
    size=12_455,
    url="http://site.test/page",
    path="LLE",
    via="http://site.test/",
    mime="text/html",
    started=1_795_000_000.123456,
    duration=0.0316,
    digest="sha256:00",
    annotations=("retry", "timeTrunc"),
    source="http://site.test/",
)
LONG = LINE._replace(url="http://site.test/" + "x" * 9000)


def test_the_documented_fields_are_those_of_a_line() -> None:
    assert json.loads(json_line(LINE)) == {
        "at": "2026-11-18T11:06:40.250Z",
        "status": 200,
        "size": 12455,
        "url": "http://site.test/page",
        "hops": "LLE",
        "via": "http://site.test/",
        "type": "text/html",
        "started": "2026-11-18T11:06:40.123Z",
        "seconds": 0.032,
        "digest": "sha256:00",
        "annotations": ["retry", "timeTrunc"],
        "seed": "http://site.test/",
    }
    page = (ROOT / "docs/reference/url-log.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)`", page, re.MULTILINE) == list(json.loads(json_line(LINE))) == list(JSON_FIELDS)


def test_what_is_not_known_is_null_or_empty() -> None:
    found = json.loads(json_line(LINE._replace(size=None, via=None, started=None, mime="", digest="", annotations=())))
    assert (found["size"], found["via"], found["started"]) == (None, None, None)
    assert (found["type"], found["digest"], found["annotations"]) == ("", "", [])


@given(st.text(), st.text(), st.lists(st.text()))
def test_hostile_text_is_escaped(address: str, mime: str, annotations: list[str]) -> None:
    line = json_line(LINE._replace(url=address, mime=mime, annotations=annotations))
    assert line.isascii()
    assert line.isprintable()
    found = json.loads(line)
    assert (found["url"], found["type"], found["annotations"]) == (address, mime, annotations)


def both(folder: Path, place: str, form: str = "json") -> CrawlLog:
    """Return a crawl.log in *folder* with a second log at *place*."""
    return CrawlLog(folder / "crawl.log", EventSettings(log_to=place, log_format=form))


def test_a_file_gets_the_lines_of_each_batch_at_once(tmp_path: Path) -> None:
    place = tmp_path / "urls"
    place.write_bytes(b'{"cut')
    log = both(tmp_path, str(place))
    for _ in range(2):
        log.write([LINE, LONG])
        assert place.read_text().splitlines()[-2:] == [json_line(LINE), json_line(LONG)]
    log.close()
    assert place.read_text().splitlines()[0] == '{"cut'
    assert len((tmp_path / "crawl.log").read_text().splitlines()) == 4
    plain = both(tmp_path, f"{place}.txt", "heritrix")
    plain.write([LINE])
    plain.close()
    assert Path(f"{place}.txt").read_text() == f"{LINE.render()}\n"


def test_a_file_that_cannot_grow_loses_whole_lines_and_counts_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "urls"
    log = UrlLog(EventSettings(log_to=str(place)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with (tmp_path / "crawl.log").open("wb") as shared:
        log.write([LINE], shared)
        resource.setrlimit(resource.RLIMIT_FSIZE, (place.stat().st_size + 100, before[1]))
        try:
            log.write([LONG, LINE], shared)
            log.write([LONG], shared)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert place.read_text() == f"{json_line(LINE)}\n"
        log.write([LINE], shared)
        log.close()
    assert place.read_text() == f"{json_line(LINE)}\n" * 2
    assert [record.message.partition(": ")[0].partition(";")[2].strip() or "lost" for record in caplog.records] == [
        "lost",
        "3 lines are missing",
    ]


def test_a_pipe_that_is_not_read_loses_lines_and_one_that_is_closed_ends_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(url_log, "PATIENCE", 0.0)
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        log = both(tmp_path, STDERR)
        fcntl.fcntl(reading, fcntl.F_SETFL, os.O_NONBLOCK)
        for _ in range(3):
            log.write([LONG] * 10)  # 90 kB; the pipe holds 64
        whole = drained(reading)
        log.write([LINE])
        text = whole + drained(reading)
        os.close(reading)
        for _ in range(2):
            log.write([LINE])
        log.close()
    lines = text.splitlines()
    assert lines[-1] == json_line(LINE)
    assert [line for line in lines[:-1] if line != json_line(LONG)] == [lines[-2]]  # cut where the pipe was full
    assert json_line(LONG).startswith(lines[-2])
    said = [record.message for record in caplog.records]
    assert [f"{30 - len(lines) + 2} lines are missing" in said[0], len(said)] == [True, 2]
    assert "Broken pipe" in said[1]
    assert len((tmp_path / "crawl.log").read_text().splitlines()) == 33


def drained(reading: int) -> str:
    """Return everything that the pipe holds."""
    found = b""
    try:
        while piece := os.read(reading, 1 << 20):
            found += piece
    except BlockingIOError:
        pass
    return found.decode()


WRITER = """
import sys
from pathlib import Path
from archiver.collection.crawl_log import CrawlLog, LogLine
from archiver.config.event_settings import EventSettings
log = CrawlLog(Path(sys.argv[1]) / "crawl.log", EventSettings(log_to=sys.argv[2]))
line = LogLine(1.0, 200, 1, "http://site.test/" + "x" * 9000, "L", None, "", None, 0.0, "", ())
for number in range(40):
    log.write([line._replace(size=number)] * 5)
log.close()
"""


@pytest.mark.parametrize("place", [STDERR, "file"])
def test_several_processes_write_whole_lines(tmp_path: Path, place: str) -> None:
    """Lines that are longer than what a pipe takes at once."""
    where = place if place == STDERR else str(tmp_path / "urls")
    reading, writing = os.pipe()
    command = [sys.executable, "-c", WRITER, str(tmp_path), where]
    processes = [subprocess.Popen(command, stderr=writing, env=environment()) for _ in range(2)]
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert [process.wait() for process in processes] == [0, 0]
    lines = text.splitlines() if place == STDERR else (tmp_path / "urls").read_text().splitlines()
    assert sorted(json.loads(line)["size"] for line in lines) == sorted([*range(40)] * 10)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("none/urls", "is no folder"),
        ("folder", "it is a directory|it is a folder"),
        ("other", "it holds something else"),
        ("link", "it is a symbolic link"),
    ],
)
def test_a_place_that_is_no_log_is_refused(tmp_path: Path, name: str, fault: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").write_bytes(b"SQLite format 3\0")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    with pytest.raises(ConfigError, match=fault) as refused:
        check_place(str(tmp_path / name))
    assert str(refused.value).startswith(f"--log-to {tmp_path / name}: ")
    assert (tmp_path / "other").read_bytes() == b"SQLite format 3\0"
