"""A crawl.db that somebody else has made: what it would have us run is not run, and one line says what is wrong."""

import re
import shutil
import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from archiver.frontier import database
from archiver.frontier.database import check_schema, connect_readonly, schema, schema_script
from archiver.model import ExitCode
from fixtures.crawl_in_process import crawl
from fixtures.endless_table import endless_table
from fixtures.forks import Forks
from fixtures.rawserver import RawServer
from fixtures.sites import tree

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
NAMED_LIKE = "CREATE TRIGGER sqlite_evil AFTER UPDATE ON urls BEGIN DELETE FROM seeds; END"
HOSTILE: dict[str, tuple[str, ...]] = {
    "a trigger": (f"CREATE TRIGGER evil AFTER UPDATE ON urls BEGIN DELETE FROM urls WHERE ({ENDLESS}); END",),
    "another trigger of one of our names": (
        "DROP TRIGGER urls_changed",
        f"CREATE TRIGGER urls_changed AFTER UPDATE OF state ON urls BEGIN DELETE FROM seeds WHERE ({ENDLESS}); END",
    ),
    "a view": (f"CREATE VIEW more AS {ENDLESS}",),
    "a view in the place of a table": ("DROP TABLE refusals", f"CREATE VIEW refusals AS {ENDLESS}"),
    "a table without types": (
        "DROP TABLE seeds",
        "CREATE TABLE seeds (url INTEGER PRIMARY KEY REFERENCES urls (id), position INTEGER NOT NULL)",
    ),
    "a column that is made up": ("ALTER TABLE hosts ADD COLUMN more INTEGER AS (length(zeroblob(1000000000)))",),
    "an index": ("CREATE INDEX evil ON urls (length(zeroblob(900000000)))",),
    "a trigger that is named like those of SQLite": (
        "PRAGMA writable_schema = 1",
        f"INSERT INTO sqlite_master VALUES ('trigger', 'sqlite_evil', 'urls', 0, '{NAMED_LIKE}')",
    ),
    "a view that is named like those of SQLite": (
        "PRAGMA writable_schema = 1",
        (
            "INSERT INTO sqlite_master VALUES"
            " ('view', 'sqlite_stat1', 'sqlite_stat1', 0, 'CREATE VIEW sqlite_stat1 AS SELECT zeroblob(1000000000)')"
        ),
    ),
    "a virtual table": ("CREATE VIRTUAL TABLE evil USING fts5(x)",),
    "a virtual table in the place of a table": ("DROP TABLE refusals", "CREATE VIRTUAL TABLE refusals USING fts5(x)"),
    "a table that is not there": ("DROP TABLE refusals",),
}
DIFFERS = re.compile("is not one that archiver makes|it has no table")
COMMANDS: dict[str, tuple[str, ...]] = {
    "resume": ("resume", "c"),
    "status": ("status", "c"),
    "report": ("report", "c"),
    "urls": ("urls", "c"),
    "retry": ("retry", "c", "--status", "404"),
    "recrawl": ("recrawl", "c"),
}


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    with RawServer(tree(4).routes) as server:
        crawl(folder / "c", server.url())
        (folder / "c/crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\nmetadata-warc = false\n')
    return folder


@pytest.fixture(name="folder")
def _folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "here")
    return tmp_path / "here"


def _do(folder: Path, statements: Iterable[str]) -> None:
    with closing(sqlite3.connect(folder / "c/crawl.db", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", HOSTILE)
def test_nothing_in_the_schema_is_obeyed(folder: Path, forks: Forks, how: str, command: str) -> None:
    _do(folder, HOSTILE[how])
    done = forks.archiver(*COMMANDS[command], cwd=folder)
    assert done.returncode == ExitCode.STORAGE, done.stderr
    assert DIFFERS.search(done.stderr)
    assert "archiver rebuild c" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("how", HOSTILE)
def test_verify_names_it_and_a_rebuilding_heals_it(folder: Path, forks: Forks, how: str) -> None:
    _do(folder, HOSTILE[how])
    verified = forks.archiver("verify", "c", cwd=folder)
    assert verified.returncode == ExitCode.FAULTS
    assert DIFFERS.search(verified.stdout)
    assert forks.archiver("rebuild", "c", cwd=folder).returncode == ExitCode.DONE
    assert forks.archiver("verify", "c", cwd=folder).returncode == ExitCode.DONE


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "value", ["x'00ff'", "zeroblob(1000)", "9e999", "-1e308", "'\ud83d'", "CAST(x'ff' AS TEXT)", "9223372036854775807"]
)
def test_values_of_other_types_are_told_in_one_line(folder: Path, forks: Forks, command: str, value: str) -> None:
    """A table is STRICT by its schema, but the values were stored when it was not."""
    if command in ("resume", "recrawl") and "e" not in value and value.isdigit():
        command = "status"  # a crawl would wait for a host that asked for a pause until then, a day at most
    with closing(sqlite3.connect(folder / "c/crawl.db", isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = 1")
        db.execute("PRAGMA writable_schema = 1")
        for table in ("urls", "hosts", "captures"):
            db.execute("UPDATE sqlite_master SET sql = replace(sql, ') STRICT', ')') WHERE name = ?", (table,))
        db.execute("PRAGMA writable_schema = RESET")
    with closing(sqlite3.connect(folder / "c/crawl.db", isolation_level=None)) as db:
        value = value.encode("utf-8", "replace").decode()
        for table, column in (("urls", "status"), ("urls", "note"), ("hosts", "not_before"), ("captures", "timestamp")):
            db.execute(f"UPDATE {table} SET {column} = {value}")
        db.execute("PRAGMA writable_schema = 1")
        for table in ("urls", "hosts", "captures"):
            db.execute("UPDATE sqlite_master SET sql = sql || ' STRICT' WHERE name = ?", (table,))
        db.execute("PRAGMA writable_schema = RESET")
    done = forks.archiver(*COMMANDS[command], cwd=folder)
    assert done.returncode in (ExitCode.DONE, ExitCode.USAGE, ExitCode.STORAGE), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["status", "report", "retry", "resume"])
def test_a_table_without_end_is_named_as_damage(folder: Path, forks: Forks, command: str) -> None:
    """Pages that refer to each other hold more rows than anyone can count, in a file of some kilobytes."""
    endless_table(folder / "c/crawl.db", "hosts")
    done = forks.archiver(*COMMANDS[command], cwd=folder)
    assert done.returncode == ExitCode.STORAGE, (done.stdout, done.stderr)
    assert "it is damaged (" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_connections_to_a_received_database_are_guarded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are bounded, and so is each query, but not all queries of a connection together."""
    path = folder / "c/crawl.db"
    monkeypatch.setattr(database, "PROGRESS_STEPS", 3_000_000)
    monkeypatch.setattr(database, "STEPS_PER_BYTE", 1)
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?) SELECT count(*) FROM n"
    with closing(connect_readonly(path)) as db:
        check_schema(db, path)
        assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert db.execute("PRAGMA cell_size_check").fetchone() == (1,)
        assert db.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == database.LARGEST
        if sys.version_info >= (3, 12):
            assert db.getconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            db.execute(rows, (10_000_000,)).fetchone()
        for _ in range(10):
            assert db.execute(rows, (100_000,)).fetchone() == (100_000,)


def test_our_schema_is_accepted_after_use(tmp_path: Path) -> None:
    """Also when SQLite has added tables of its own."""
    path = tmp_path / "crawl.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert not check_schema(db, path)
        db.executescript(schema_script())
        assert check_schema(db, path)
        db.execute("ANALYZE")
        db.execute("VACUUM")
        assert check_schema(db, path)
    assert ("table", "urls") in schema()
