"""A database may come from somebody else: it holds the tables, indexes and triggers of its version, and nothing more.

A trigger or a view of a stranger would run whenever we read or write. So the schema is compared with our own before the
first query. No value may be longer than what a crawl ever stores, and no query may take longer than the size of the
file explains.
"""

import logging
import re
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import trouble
from archiver.frontier.migrations import APPLICATION_ID, VERSION, script

LARGEST = 256 << 20  # bytes of one value; the largest that we make are lists, which queries take as JSON
STEPS = 100_000_000  # of SQLite's virtual machine in one query: about two seconds …
STEPS_PER_BYTE = 1000  # … and for each byte of the file; whole tables joined and sorted take less than a tenth
STEPS_AT_ONCE = 1_000_000  # between two looks at what a query has used

log = logging.getLogger(__name__)

_COMMENT = re.compile(r"--[^\n]*")
_SPACE = re.compile(r"\s+")
_MARKS = re.compile(r"\s*([(),;=<>+*/])\s*")
_OBJECTS = "SELECT type, name, coalesce(sql, '') FROM sqlite_master"
_OF_SQLITE = (  # what SQLite makes by itself: for ANALYZE, and for keys that are declared in tables
    re.compile(r"table sqlite_stat1 CREATE TABLE sqlite_stat1\(tbl,idx,stat\)"),
    re.compile(r"table sqlite_stat4 CREATE TABLE sqlite_stat4\(tbl,idx,neq,nlt,ndlt,sample\)"),
    re.compile(r"table sqlite_sequence CREATE TABLE sqlite_sequence\(name,seq\)"),
    re.compile(r"index sqlite_autoindex_\w+ "),
)

Schema = Mapping[tuple[str, str], str]  # the SQL of each object, by type and name


class Bounded(sqlite3.Connection):
    """A connection that gives up a query which takes longer than the size of its file can explain.

    Pages of a hostile file can refer to each other so that a scan of 40 kB has more rows than anyone can count.
    """

    _left = STEPS
    _path: Path | None = None

    def bound(self, path: Path) -> None:
        """Bound each query from now on by the size of the database at *path*."""
        self._path = path
        self.set_progress_handler(self._goes_too_far, STEPS_AT_ONCE)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Run a query, with steps of its own."""
        self._left = STEPS
        return super().execute(*arguments)

    def _goes_too_far(self) -> bool:
        """Return True if the query must end. SQLite asks after each `STEPS_AT_ONCE`."""
        self._left -= STEPS_AT_ONCE
        return self._left < 0 and -self._left > STEPS_PER_BYTE * self._size()

    def _size(self) -> int:
        assert self._path is not None
        try:
            return sum(each.stat().st_size for each in (self._path, self._path.with_name(f"{self._path.name}-wal")))
        except OSError:
            return self._path.stat().st_size if self._path.exists() else 0


def guard(db: sqlite3.Connection, path: Path) -> None:
    """Bound values and queries of the database *db* at *path*, and let nothing in its schema have effects."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    if isinstance(db, Bounded):
        db.bound(path)
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
    db.execute("PRAGMA trusted_schema = 0")
    db.execute("PRAGMA cell_size_check = 1")


def check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse the database *db* at *path* if its schema is not one that this program makes, and bound its values."""
    guard(db, path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        return  # refused by its number
    found = _objects(db)
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if found and application != APPLICATION_ID and not any(name == "urls" for _, name, _ in found):
        raise ConfigError(f"{path} is an SQLite database, but not one of archiver's crawls")
    if said := _foreign(found, schema(version) if version > 0 else {}):
        raise ArchiveError(f"{path}: {trouble.damaged(said, path)}")


def check_like(db: sqlite3.Connection, path: Path, expected: Schema) -> None:
    """Refuse the database *db* at *path*, with sqlite3.DatabaseError, if it has not exactly the *expected* schema."""
    guard(db, path)
    found = _objects(db)
    said = _foreign(found, expected)
    if missing := expected.keys() - {(kind, name) for kind, name, _ in found}:
        said = said or f"it has no {' '.join(min(missing))}"
    if said:
        raise sqlite3.DatabaseError(said)


def _objects(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return every object of the schema but those that SQLite makes by itself, each as type, name and SQL.

    A name proves nothing: SQLite takes any trigger that a file calls `sqlite_…`.
    """
    found = [(str(kind), str(name), str(sql)) for kind, name, sql in db.execute(_OBJECTS)]
    return [each for each in found if not any(known.fullmatch(" ".join(each)) for known in _OF_SQLITE)]


def _foreign(found: Iterable[tuple[str, str, str]], expected: Schema) -> str:
    """Return what is wrong with the first of the objects *found* that is not *expected*; "": nothing."""
    for kind, name, sql in found:
        if expected.get((kind, name)) != _plain(sql):
            return f"its {kind[:20]} {name[:60]!r} is not one that archiver makes"
    return ""


def explained(db: sqlite3.Connection, error: Exception, path: Path) -> ArchiveError:
    """Return why what stands in *db* could not be shown: *error* came of values that no crawl stores."""
    log.debug("what %s holds cannot be shown", path, exc_info=error)
    try:
        (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as worse:
        said = str(worse)
    how = f"values that no crawl stores: {error}" if said == "ok" else str(said)
    return ArchiveError(f"{path}: {trouble.damaged(how[:200], path)}")


@cache
def schema(version: int) -> Schema:
    """Return every object of the schema of this *version*."""
    return schema_of(*(script(step) for step in range(1, version + 1)))


def schema_of(*scripts: str) -> Schema:
    """Return every object of the schema that *scripts* make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for each in scripts:
            db.executescript(each)
        return {(kind, name): _plain(sql) for kind, name, sql in _objects(db)}


def _plain(sql: object) -> str:
    """Return *sql* without what does not matter: comments and space."""
    return _MARKS.sub(r"\1", _SPACE.sub(" ", _COMMENT.sub("", str(sql)))).strip()
