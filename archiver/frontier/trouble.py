"""Why SQLite failed, told to the person who can act."""

import sqlite3
from pathlib import Path
from shlex import quote

from archiver import disk

PRIMARY = 0xFF  # of an SQLite result code: the rest says more of it
SHARED = 32 << 10  # bytes by which SQLite makes the index of its write-ahead file (-shm) longer


def words(error: sqlite3.Error, path: Path) -> str:
    """What *error* means for the database at *path*; a full disk in figures, though SQLite does not say its wish."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)  # an error of Python's own module has none
    match code & PRIMARY:
        case sqlite3.SQLITE_FULL:
            return disk.full(path)
        case sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_IOERR_SHMSIZE and disk.free(path) < SHARED:
            return disk.full(path, SHARED)
        case sqlite3.SQLITE_IOERR:
            return f"{error} ({error.sqlite_errorname})"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(str(error), path)
        case sqlite3.SQLITE_INTERRUPT:
            return damaged("a query took longer than the size of the file can explain", path)
    return str(error)


def damaged(how: str, path: Path) -> str:
    """That the database at *path* is damaged, *how*, and what to do."""
    return f"it is damaged ({how}); archiver rebuild {quote(str(path.parent))} makes it anew from the WARC files"
