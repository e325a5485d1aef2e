"""Connections that only read, to be used by one thread at a time, whichever it is; and which schema is read there."""

import sqlite3
from pathlib import Path

from archiver.disk import regular
from archiver.frontier.trust import Bounded

WAYS_SINCE = 3  # schema version: each host has the way in which it is asked
COUNTED_SINCE = 4  # … and the numbers of its URLs
REVISITS_SINCE = 5  # a capture may be a revisit
VERDICT_SINCE = 6  # it is known how runs ended, and which hosts refuse us
HELD_SINCE = 7  # a URL may be held as a suspected trap

_BUSY = 10.0  # seconds to wait for a moment of the crawl's own transactions


def connected(path: Path, *, at_rest: bool = False, more: str = "") -> sqlite3.Connection:
    """A connection to the database at *path*; *at_rest*: nobody writes it, so nothing is made beside it."""
    regular(path)
    where = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}{more}"
    return sqlite3.connect(
        where, uri=True, timeout=_BUSY, isolation_level=None, check_same_thread=False, factory=Bounded
    )


def version_of(db: sqlite3.Connection) -> int:
    """The version of the schema of *db*; 0 while there is none."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])
