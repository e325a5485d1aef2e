"""Where index files of other archives speak of a payload: they are sorted by URL, so a scratch database finds it.

It holds the place of each line and nothing that could not be read again: delete it as you like. A crawl makes it again
if it is missing, damaged, or of a schema that is not ours, as in a received folder, and if an index has changed. Each
line is read from its index when it is asked for.
"""

import json
import logging
import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from archiver import zipnum
from archiver.disk import sync_data
from archiver.errors import ArchiveError
from archiver.frontier import trouble, trust
from archiver.frontier.migrations import CHECKED
from archiver.frontier.readonly import connected
from archiver.warc.cdx import read_line
from archiver.warc.cdxj import LONGEST_LINE, Entry, is_revisit

MOST = 3  # lines read of one payload
LONG = 64 << 20  # bytes of indexes whose reading takes so long that it is said
_BARE = re.compile(r"[A-Z2-7]{32}")  # a digest whose writer has left "sha1:" out
_PRAGMAS = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
"""
_TABLES = """
CREATE TABLE indexes (id INTEGER PRIMARY KEY, path TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL)
STRICT;
CREATE TABLE lines (short TEXT NOT NULL, source INTEGER NOT NULL, offset INTEGER NOT NULL) STRICT;
"""
_INDEX = "CREATE INDEX lines_short ON lines (short)"
_FIND = f"""
SELECT json_group_array(json_array(wanted.value, source, offset)) FROM json_each(?) AS wanted CROSS JOIN lines
ON lines.rowid IN (SELECT rowid FROM lines AS near WHERE near.short = substr(wanted.value, -8) LIMIT {MOST})
"""  # noqa: S608 - a constant above

log = logging.getLogger(__name__)


class Found(NamedTuple):
    """A line that speaks of a payload that was asked for."""

    digest: str
    source: int  # the number of its index
    entry: Entry


class Elsewhere:
    """The lines of *indexes*, by payload. To be used by one thread at a time."""

    def __init__(self, path: Path, indexes: Sequence[Path]) -> None:
        self._path = path
        self._indexes = indexes
        self._db: sqlite3.Connection | None = None

    def find(self, digests: Collection[str]) -> Iterator[Found]:
        """The lines that speak of a payload of one of *digests*, a few of each."""
        try:
            if self._db is None:
                self._db = _opened(self._path)
            (found,) = self._db.execute(_FIND, (json.dumps(list(digests)),)).fetchone()
            places = json.loads(found)
        except (sqlite3.Error, ValueError) as error:
            raise ArchiveError(f"{self._path}: {error}; delete it, and the next run makes it again") from error
        for digest, source, offset in places:
            entry = self._line(source, offset)
            if entry is not None and _digest(entry) == digest:
                yield Found(digest, source, entry)

    def _line(self, source: object, offset: object) -> Entry | None:
        """Return what the line at *offset* of index *source* says now; None if that is no place."""
        if type(source) is int and type(offset) is int and 0 <= source < len(self._indexes) and offset >= 0:
            return _line(self._indexes[source], offset)
        return None

    def close(self) -> None:
        """No more questions."""
        if self._db is not None:
            self._db.close()
            self._db = None


def gather(path: Path, draft: Path, indexes: Sequence[Path]) -> None:
    """Make the database at *path* say where the lines of *indexes* stand, if it does not do so already."""
    try:
        now = [(number, str(index), *_state(index)) for number, index in enumerate(indexes)]
        if _told(path, len(now)) == now:
            return
        if sum(size for _, _, size, _ in now) > LONG:
            log.warning("the indexes of other archives are read, once; that takes some time")
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft)) as db:
            db.executescript(_PRAGMAS + _TABLES)
            db.executemany("INSERT INTO indexes VALUES (?, ?, ?, ?)", now)
            for number, index in enumerate(indexes):
                db.executemany("INSERT INTO lines VALUES (?, ?, ?)", _places(number, index))
            db.execute(_INDEX)
            db.commit()
        with draft.open("r+b") as file:
            sync_data(file)
        draft.replace(path)
    except sqlite3.Error as error:
        raise ArchiveError(f"{draft}: {trouble.words(error, draft)}") from error
    except OSError as error:
        raise ArchiveError(f"{error.filename or path}: {error.strerror or error}") from error


def _state(index: Path) -> tuple[int, int]:
    found = index.stat()
    return found.st_size, found.st_mtime_ns


def _opened(path: Path) -> sqlite3.Connection:
    """Open the database at *path*, which must be one of ours; sqlite3.Error if it is not. Its journals are ignored."""
    db = connected(path, at_rest=True)
    try:
        trust.check_like(db, path, trust.schema_of(_TABLES, _INDEX))
    except BaseException:
        db.close()
        raise
    return db


def _told(path: Path, count: int) -> list[tuple[int, str, int, int]]:
    """Return the indexes from which the database was made, *count* and one more at most; none if it is not sound."""
    if path.exists():
        with suppress(sqlite3.Error), closing(_opened(path)) as db:
            if path.stat().st_size > CHECKED or db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return db.execute("SELECT id, path, size, modified FROM indexes ORDER BY id").fetchmany(count + 1)
    return []


def _places(number: int, index: Path) -> Iterator[tuple[str, int, int]]:
    for place, line in _lines(index):
        entry = read_line(line)
        if entry is not None and not is_revisit(entry) and not entry.status.startswith("3"):
            digest = _digest(entry)
            if ":" in digest:
                yield digest[-8:], number, place


def _lines(index: Path) -> Iterator[tuple[int, bytes]]:
    """Every line, and its place."""
    if index.suffix in zipnum.SUFFIXES:
        yield from zipnum.every_line(index)
        return
    with index.open("rb") as file:
        offset = 0
        while line := file.readline(LONGEST_LINE):
            yield offset, line
            offset += len(line)


def _digest(entry: Entry) -> str:
    return f"sha1:{entry.digest}" if _BARE.fullmatch(entry.digest) else entry.digest


def _line(index: Path, place: int) -> Entry | None:
    """What stands there now."""
    try:
        if index.suffix in zipnum.SUFFIXES:
            return read_line(zipnum.line_at(index, place))
        with index.open("rb") as file:
            file.seek(place)
            return read_line(file.readline(LONGEST_LINE))
    except (OSError, OverflowError, ArchiveError):
        return None  # it was there when the crawl began; the payload is stored whole
