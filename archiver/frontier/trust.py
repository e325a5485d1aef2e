"""A crawl.db may come from somebody else: it holds the tables, indexes and triggers of its version, and nothing more.

A trigger or a view of a stranger would run whenever we read or write. So the schema is compared with our own before the
first question, and no value may be longer than what a crawl ever stores.
"""

import logging
import re
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import trouble
from archiver.frontier.migrations import APPLICATION_ID, VERSION, script

LARGEST = 256 << 20  # bytes of one value; the largest that we make are lists, which questions take as JSON

log = logging.getLogger(__name__)

_COMMENT = re.compile(r"--[^\n]*")
_SPACE = re.compile(r"\s+")
_MARKS = re.compile(r"\s*([(),;=<>+*/])\s*")
_OBJECTS = "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


def check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse the database *db* at *path* if its schema is not one that this program makes, and bound its values."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    db.execute("PRAGMA trusted_schema = 0")
    db.execute("PRAGMA cell_size_check = 1")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        return  # refused by its number
    found = db.execute(_OBJECTS).fetchall()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if found and application != APPLICATION_ID and not any(name == "urls" for _, name, _ in found):
        raise ConfigError(f"{path} is an SQLite database, but not one of archiver's crawls")
    expected = schema(version) if version > 0 else {}
    for kind, name, sql in found:
        if expected.get((kind, name)) != _plain(sql):
            said = f"its {kind} {str(name)[:60]!r} is not one that archiver makes"
            raise ArchiveError(f"{path}: {trouble.damaged(said, path)}")


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
def schema(version: int) -> dict[tuple[str, str], str]:
    """Return every object of the schema of this *version*, by type and name."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for step in range(1, version + 1):
            db.executescript(script(step))
        return {(kind, name): _plain(sql) for kind, name, sql in db.execute(_OBJECTS)}


def _plain(sql: object) -> str:
    """Return *sql* without what does not matter: comments and space."""
    return _MARKS.sub(r"\1", _SPACE.sub(" ", _COMMENT.sub("", str(sql)))).strip()
