"""Payloads of other archives, found by their index files, whatever stands in them."""

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from archiver.archive.others import indexes_of
from archiver.crawl.dedup import Earlier, Like
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import elsewhere
from archiver.frontier.elsewhere import Elsewhere, gather
from archiver.model import Profile, Revisit

SHA1 = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
SHA256 = "sha256:" + "a" * 64
URL = "http://old.test/a"
DATE = "2020-02-29T12:00:01Z"


def line(digest: str = SHA256, *, key: str = "test,old)/a", stamp: str = "20200229120001", **said: object) -> str:
    known = {"url": URL, "mime": "text/html", "status": "200", "digest": digest, "offset": "7", "filename": "a.warc.gz"}
    return f"{key} {stamp} {json.dumps({**known, **said})}\n"


def wanted(digest: str = SHA256, length: int = 9, status: int = 200) -> Like:
    return Like(digest, length, status, ())


def found(folder: Path, text: str, *likes: Like) -> dict[Like, Revisit]:
    """What a revisit says of each of *likes*, by an index of which *text* is all that there is."""
    index = folder / "some.cdxj"
    index.write_text(text, "utf-8")
    gather(folder / "dedup.db", folder / "dedup.db.tmp", [index])
    earlier = Earlier(Elsewhere(folder / "dedup.db", [index]), [(folder,)])
    try:
        return dict(earlier.find(likes))
    finally:
        earlier.close()


def test_a_line_alone_gives_url_and_second(tmp_path: Path) -> None:
    revisit = Revisit(Profile.IDENTICAL, URL, DATE, "", SHA256, 9)
    assert found(tmp_path, line(), wanted()) == {wanted(): revisit}


@pytest.mark.parametrize(
    ("text", "like"),
    [
        (line(SHA1), wanted(f"sha1:{SHA1}")),
        ("!meta 0 {}\n" + line(), wanted()),
        ("\n\x00\x00 broken {\n" + line(), wanted()),
        (line(mime="warc/revisit") + line(offset="9"), wanted()),
        (line(status="301") + line(), wanted()),
        (line(stamp="20200229120001123"), wanted()),
        (line(filename="../../elsewhere/a.warc.gz"), wanted()),
        (line("sha256:" + "b" * 56 + "a" * 8) + line(), wanted()),
    ],
)
def test_lines_that_are_understood(tmp_path: Path, text: str, like: Like) -> None:
    assert found(tmp_path, text, like)[like].date == DATE


@pytest.mark.parametrize(
    "text",
    [
        "",
        line("-"),
        line("sha256:" + "b" * 64),
        line("sha256:" + "b" * 56 + "a" * 8),
        line(mime="warc/revisit"),
        line(status="302"),
        line(status="404"),
        line(stamp="20201341250000"),
        line(stamp="2020"),
        line(url="http://old.test/a\r\nWARC-Type: warcinfo"),
        line(url="no url"),
        line(url=f"http://old.test/{chr(0)}"),
        line(offset="none"),
    ],
)
def test_lines_that_name_nothing(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text, wanted()) == {}


@pytest.mark.parametrize("offset", ["7", "0", "-1", "9" * 40])
def test_a_file_that_is_there_must_hold_what_its_line_says(tmp_path: Path, offset: str) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"no record")
    assert found(tmp_path, line(offset=offset), wanted()) == {}


def test_it_is_read_anew_only_when_an_index_has_changed(tmp_path: Path) -> None:
    target = tmp_path / "dedup.db"
    found(tmp_path, line())
    before = target.stat().st_ino
    gather(target, tmp_path / "dedup.db.tmp", [tmp_path / "some.cdxj"])
    assert target.stat().st_ino == before
    assert found(tmp_path, line(SHA1) + line(SHA256, offset="12"), wanted(f"sha1:{SHA1}"), wanted()).keys() == {
        wanted(f"sha1:{SHA1}"),
        wanted(),
    }
    target.write_bytes(b"broken" * 500)
    assert found(tmp_path, line(), wanted())
    with closing(sqlite3.connect(target)) as db:
        db.execute("DROP TABLE lines")
    assert found(tmp_path, line(), wanted())


def test_an_index_that_changes_meanwhile_names_nothing(tmp_path: Path) -> None:
    found(tmp_path, line())
    (tmp_path / "some.cdxj").write_text(line("sha256:" + "c" * 64))
    lines = Elsewhere(tmp_path / "dedup.db", [tmp_path / "some.cdxj"])
    assert not list(lines.find([SHA256]))
    (tmp_path / "some.cdxj").unlink()
    assert not list(lines.find([SHA256]))
    lines.close()


def test_a_scratch_file_that_breaks_meanwhile_is_named_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / "dedup.db").write_bytes(b"broken" * 500)
    lines = Elsewhere(tmp_path / "dedup.db", [])
    with pytest.raises(ArchiveError, match=r"dedup.db: .*; delete it"):
        list(lines.find([SHA256]))
    lines.close()


def test_long_reading_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(elsewhere, "LONG", 10)
    with caplog.at_level(logging.WARNING):
        found(tmp_path, line())
    assert "takes some time" in caplog.text


def test_where_the_files_of_an_index_may_lie(tmp_path: Path) -> None:
    own = tmp_path / "own"
    for folder in ("old/indexes", "old/archive", "flat"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "old/indexes/index.cdxj").write_text(line())
    (tmp_path / "flat/a.cdxj").write_text("")
    old, flat = tmp_path / "old", tmp_path / "flat"
    assert indexes_of([str(old), str(old)], own) == ((old / "indexes/index.cdxj", (old / "archive", old)),)
    (alone,) = indexes_of([str(old / "indexes/index.cdxj")], own)
    assert old / "archive" in alone.folders
    assert indexes_of([str(flat)], own) == ((flat / "a.cdxj", (flat / "archive", flat)),)
    with pytest.raises(ConfigError, match="belongs to this crawl itself"):
        indexes_of([str(old / "indexes/index.cdxj")], old)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nothing", "nothing: there is no such file or directory"),
        ("empty", "empty holds no index, indexes/.*; name a CDXJ file"),
        ("bare", "archiver index .*bare makes it"),
        ("text", "text is no CDXJ index"),
        ("old.WARC.gz", "old.WARC.gz is no index; make a collection of it, and name that: archiver import .* -o OTHER"),
        ("own", "own belongs to this crawl itself"),
    ],
)
def test_what_is_no_archive_is_refused_in_one_line(tmp_path: Path, given: str, said: str) -> None:
    for folder in ("empty", "own", "bare/archive"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "text").write_text("not a line of an index\n" * 30)
    (tmp_path / "old.WARC.gz").write_bytes(b"\x1f\x8b\x08 and so on")
    with pytest.raises(ConfigError, match=said) as refused:
        indexes_of([str(tmp_path / given)], tmp_path / "own")
    assert "\n" not in str(refused.value)
