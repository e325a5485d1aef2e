"""Payloads of other archives, found by their index files, whatever stands in them."""

import json
import logging
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from archiver.collection.dedup_sources import indexes_of
from archiver.crawl.dedup import DedupKey, ExternalArchives
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import database, dedup
from archiver.frontier.database import connect_readonly
from archiver.frontier.dedup import ExternalIndex, gather
from archiver.model import Profile, Revisit
from fixtures.endless_table import endless_table

SHA1 = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
SHA256 = "sha256:" + "a" * 64
URL = "http://old.test/a"
DATE = "2020-02-29T12:00:01Z"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def line(digest: str = SHA256, *, key: str = "test,old)/a", stamp: str = "20200229120001", **said: object) -> str:
    known = {"url": URL, "mime": "text/html", "status": "200", "digest": digest, "offset": "7", "filename": "a.warc.gz"}
    return f"{key} {stamp} {json.dumps({**known, **said})}\n"


def wanted(digest: str = SHA256, length: int = 9, status: int = 200) -> DedupKey:
    return DedupKey(digest, length, status, ())


def found(folder: Path, text: str, *likes: DedupKey) -> dict[DedupKey, Revisit]:
    """What a revisit says of each of *likes*, by an index of which *text* is all that there is."""
    (folder / "some.cdxj").write_text(text, "utf-8")
    return asked(folder, *likes)


def asked(folder: Path, *likes: DedupKey) -> dict[DedupKey, Revisit]:
    """The same of the index that is there."""
    index = folder / "some.cdxj"
    gather(folder / "dedup.db", folder / "dedup.db.tmp", [index])
    earlier = ExternalArchives(ExternalIndex(folder / "dedup.db", [index]), [(folder,)])
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
def test_lines_that_are_understood(tmp_path: Path, text: str, like: DedupKey) -> None:
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
    lines = ExternalIndex(tmp_path / "dedup.db", [tmp_path / "some.cdxj"])
    assert not list(lines.find([SHA256]))
    (tmp_path / "some.cdxj").unlink()
    assert not list(lines.find([SHA256]))
    lines.close()


def test_a_scratch_file_that_breaks_meanwhile_is_named_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / "dedup.db").write_bytes(b"broken" * 500)
    lines = ExternalIndex(tmp_path / "dedup.db", [])
    with pytest.raises(ArchiveError, match=r"dedup.db: .*; delete it"):
        list(lines.find([SHA256]))
    lines.close()


def test_long_reading_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dedup, "LONG", 10)
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
        ("text", "text is not a CDXJ index"),
        (
            "old.WARC.gz",
            "old.WARC.gz is not an index; import it into a collection and name that: archiver import .* -o OTHER",
        ),
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


def objects(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT type, name FROM sqlite_master ORDER BY name").fetchall()


def do(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


HOSTILE: dict[str, tuple[str, ...]] = {
    "a trigger": ("CREATE TRIGGER evil BEFORE INSERT ON lines BEGIN SELECT 1; END",),
    "a trigger that is named like those of SQLite": (
        "PRAGMA writable_schema = 1",
        (
            "INSERT INTO sqlite_master VALUES ('trigger', 'sqlite_evil', 'lines', 0, "
            "'CREATE TRIGGER sqlite_evil BEFORE INSERT ON lines BEGIN SELECT 1; END')"
        ),
    ),
    "a view in the place of a table": (
        "ALTER TABLE lines RENAME TO others",
        f"CREATE VIEW lines AS SELECT short, source, ({ENDLESS}) AS offset FROM others",
    ),
    "a virtual table": (
        "DROP TABLE lines",
        "CREATE VIRTUAL TABLE lines USING fts5(short, source, offset)",
    ),
    "a column that is made up": (
        "DROP TABLE indexes",
        f"CREATE TABLE indexes (id INTEGER PRIMARY KEY, path, size AS (length(hex(zeroblob({1 << 28})))), modified)",
    ),
    "one index more": ("CREATE INDEX evil ON lines (length(zeroblob(900000000)))",),
    "no index": ("DROP INDEX lines_short",),
    "a table of no types": ("DROP TABLE lines", "CREATE TABLE lines (short, source, offset)"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_foreign_schema_is_not_obeyed_and_the_database_is_made_again(tmp_path: Path, how: str) -> None:
    target = tmp_path / "dedup.db"
    expected = found(tmp_path, line(), wanted())
    ours = objects(target)
    do(target, *HOSTILE[how])
    lines = ExternalIndex(target, [tmp_path / "some.cdxj"])
    with pytest.raises(ArchiveError, match=r"dedup.db: .*; delete it"):
        list(lines.find([SHA256]))
    lines.close()
    assert asked(tmp_path, wanted()) == expected
    assert objects(target) == ours


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("source", "7"),
        ("source", "-1"),
        ("source", "'some'"),
        ("source", "9e999"),
        ("source", "x'00'"),
        ("offset", "-1"),
        ("offset", "9223372036854775807"),
        ("offset", "1.5"),
        ("offset", "NULL"),
    ],
)
def test_values_that_name_no_line_find_nothing(tmp_path: Path, column: str, value: str) -> None:
    """They are of types that the table does not take, as a file that somebody else has made can hold them."""
    target = tmp_path / "dedup.db"
    expected = found(tmp_path, line(), wanted())
    with closing(sqlite3.connect(target, isolation_level=None)) as db:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'lines'").fetchone()
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE lines (short, source, offset)' WHERE name = 'lines'")
        db.execute("PRAGMA writable_schema = RESET")
        db.execute(f"UPDATE lines SET {column} = {value}")
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'lines'", (sql,))
    lines = ExternalIndex(target, [tmp_path / "some.cdxj"])
    with suppress(ArchiveError):
        assert not list(lines.find([SHA256]))
    lines.close()
    sound = value in ("7", "-1", "9223372036854775807")  # of the right type: it counts until an index changes
    assert asked(tmp_path, wanted()) == ({} if sound else expected)


def test_a_query_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that refer to each other hold more rows than anyone can count, in a file of some kilobytes."""
    monkeypatch.setattr(database, "PROGRESS_STEPS", 2_000_000)
    monkeypatch.setattr(dedup, "CHECKED_SIZE", 0)  # as if the file were too large to be looked through
    target = tmp_path / "dedup.db"
    expected = found(tmp_path, line(), wanted())
    endless_table(target, "indexes")
    with closing(connect_readonly(target)) as db:
        database.guard(db, target)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            db.execute("SELECT count(path) FROM indexes").fetchone()
    assert asked(tmp_path, wanted()) == expected


def test_journals_beside_it_are_not_used(tmp_path: Path) -> None:
    """A received one would be played back into the database, or bar it for good."""
    target = tmp_path / "dedup.db"
    expected = found(tmp_path, line(), wanted())
    for ending in ("-journal", "-wal"):
        target.with_name(f"{target.name}{ending}").write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    before = target.stat().st_ino
    assert asked(tmp_path, wanted()) == expected
    assert target.stat().st_ino == before
