"""Find stored payloads by digest, in this collection and in other archives.

The writer threads look a whole batch up in crawl.db, with one query on a read-only connection of their own. A commit
follows the sync of the WARC files, so every payload found is on disk.

Index files of other archives are sorted by URL. A scratch database (dedup.db) maps digests to their lines. You can
delete it: a crawl makes it again if it is missing, damaged or has another schema, or if an index has changed.
"""

import json
import logging
import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archiver.errors import ArchiveError
from archiver.frontier import database
from archiver.frontier.address import address_of
from archiver.frontier.database import CHECKED_SIZE, connect_readonly
from archiver.storage import bare, sync_data
from archiver.warc import cdx
from archiver.warc.cdx import parse_line
from archiver.warc.cdxj import LONGEST_LINE, IndexEntry, is_plain, is_revisit

if TYPE_CHECKING:
    from archiver.frontier.postgres_reading import PostgresReader

MOST = 6  # places named of one payload, the newest first: some may be coded otherwise, or damaged since

# As in the index `captures_payload`. The answer is one row, because a thread that waits for its next row may wait long
# for its turn. Rows of the same end of a digest are the same payload, but for one in some hundred.
_FIND = f"""
SELECT json_group_array(json_array(payload_digest, payload_length, captures.status, urls.url, warcs.name, offset))
FROM json_each(?) AS wanted CROSS JOIN captures ON captures.id IN (
    SELECT id FROM captures AS near WHERE substr(near.payload_digest, -8) = substr(wanted.value, -8)
       AND near.revisit = '' AND near.truncated = '' AND near.payload_length > 0 AND near.status / 100 <> 3
    ORDER BY id DESC LIMIT {MOST}
)
CROSS JOIN urls ON urls.id = captures.url CROSS JOIN warcs ON warcs.id = captures.warc
WHERE payload_digest = wanted.value
"""  # noqa: S608 - a constant above


# PostgreSQL looks into an index for each payload only this way, which SQLite does not have.
_FIND_IN_POSTGRES = f"""
SELECT coalesce(json_agg(json_build_array(payload_digest, payload_length, near.status, urls.url, warcs.name, offset)
                         ORDER BY near.id DESC), '[]')
FROM json_each(?) AS wanted JOIN LATERAL (
    SELECT * FROM captures WHERE substr(captures.payload_digest, -8) = right(wanted.value, 8)
       AND revisit = '' AND truncated = '' AND payload_length > 0 AND captures.status / 100 <> 3
    ORDER BY id DESC LIMIT {MOST}
) AS near ON near.payload_digest = wanted.value
JOIN urls ON urls.id = near.url JOIN warcs ON warcs.id = near.warc
"""  # noqa: S608 - a constant above


class PayloadLocation(NamedTuple):
    """A response whose record lies in the archive."""

    digest: str  # of its payload
    length: int
    status: int
    url: str
    warc: str  # the final name
    offset: int


class Payloads:
    """The payloads of one crawl. To be used by one thread at a time.

    *at_rest*: no process writes the database. Nothing is found in one that is empty or damaged.
    """

    def __init__(self, path: Path, *, at_rest: bool = False) -> None:
        self._path = path
        self._at_rest = at_rest
        self._db: sqlite3.Connection | None = None
        self._silent = False
        self._server: PostgresReader | None = None

    def find(self, digests: Collection[str]) -> list[PayloadLocation]:
        """Responses with a payload of one of *digests*, a few of each, those that were stored last first."""
        if self._silent:
            return []
        try:
            if self._server is None and self._db is None:
                self._connect()
                return self.find(digests)
            if self._server is not None:
                (found,) = self._server.row(_FIND_IN_POSTGRES, (json.dumps(list(digests)),))
                return self._places(found)
            assert self._db is not None
            (found,) = self._db.execute(_FIND, (json.dumps(list(digests)),)).fetchone()
        except sqlite3.Error as error:
            if self._at_rest:
                self._silent = True  # its payloads are stored once more, which no crawl need end for
                log.warning("%s cannot be read, its payloads are not looked for: %s", self._path, error)
                return []
            raise ArchiveError(f"{self._path}: {database.describe_error(error, self._path)}") from error
        return self._places(found)

    def _connect(self) -> None:
        if not self._at_rest and (address := address_of(self._path)):
            from archiver.frontier.postgres_reading import PostgresReader  # noqa: PLC0415 - an extra

            self._server = PostgresReader(address)
            return
        self._db = connect_readonly(self._path, at_rest=self._at_rest)
        self._silent = not database.check_schema(self._db, self._path)

    def _places(self, found: str) -> list[PayloadLocation]:
        places = [PayloadLocation(*row) for row in json.loads(found)]
        for place in places:
            bare(place.warc, self._path)
        return places

    def close(self) -> None:
        """No more questions."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._db is not None:
            self._db.close()
            self._db = None


MOST_EXTERNAL = 3  # lines read of one payload
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
_FIND_EXTERNAL = f"""
SELECT json_group_array(json_array(wanted.value, source, offset)) FROM json_each(?) AS wanted CROSS JOIN lines
ON lines.rowid IN (SELECT rowid FROM lines AS near WHERE near.short = substr(wanted.value, -8) LIMIT {MOST_EXTERNAL})
"""  # noqa: S608 - a constant above

log = logging.getLogger(__name__)


class ExternalMatch(NamedTuple):
    """An index line with a payload that was looked up."""

    digest: str
    source: int  # the number of its index
    entry: IndexEntry


class ExternalIndex:
    """The lines of *indexes*, by payload. To be used by one thread at a time."""

    def __init__(self, path: Path, indexes: Sequence[Path]) -> None:
        self._path = path
        self._indexes = indexes
        self._db: sqlite3.Connection | None = None

    def find(self, digests: Collection[str]) -> Iterator[ExternalMatch]:
        """Yield a few lines for each of *digests*."""
        try:
            if self._db is None:
                self._db = _opened(self._path)
            (found,) = self._db.execute(_FIND_EXTERNAL, (json.dumps(list(digests)),)).fetchone()
            places = json.loads(found)
        except (sqlite3.Error, ValueError) as error:
            raise ArchiveError(f"{self._path}: {error}; delete it, and the next run makes it again") from error
        for digest, source, offset in places:
            entry = self._line(source, offset)
            if entry is not None and _digest(entry) == digest:
                yield ExternalMatch(digest, source, entry)

    def _line(self, source: object, offset: object) -> IndexEntry | None:
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
        raise ArchiveError(f"{draft}: {database.describe_error(error, draft)}") from error
    except OSError as error:
        raise ArchiveError(f"{error.filename or path}: {error.strerror or error}") from error


def _state(index: Path) -> tuple[int, int]:
    found = index.stat()
    return found.st_size, found.st_mtime_ns


def _opened(path: Path) -> sqlite3.Connection:
    """Open the database at *path*, which must be one of ours; sqlite3.Error if it is not. Its journals are ignored."""
    db = connect_readonly(path, at_rest=True)
    try:
        database.check_exact_schema(db, path, database.schema_of(_TABLES, _INDEX))
    except BaseException:
        db.close()
        raise
    return db


def _told(path: Path, count: int) -> list[tuple[int, str, int, int]]:
    """Return the indexes from which the database was made, *count* and one more at most; none if it is not sound."""
    if path.exists():
        with suppress(sqlite3.Error), closing(_opened(path)) as db:
            if path.stat().st_size > CHECKED_SIZE or db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return db.execute("SELECT id, path, size, modified FROM indexes ORDER BY id").fetchmany(count + 1)
    return []


def _places(number: int, index: Path) -> Iterator[tuple[str, int, int]]:
    for place, line in _lines(index):
        entry = parse_line(line)
        if entry is not None and not is_revisit(entry) and is_plain(entry) and not entry.status.startswith("3"):
            digest = _digest(entry)
            if ":" in digest:
                yield digest[-8:], number, place


def _lines(index: Path) -> Iterator[tuple[int, bytes]]:
    """Every line, and its place."""
    if index.suffix in cdx.ZIPNUM_SUFFIXES:
        yield from cdx.zipnum_lines(index)
        return
    with index.open("rb") as file:
        offset = 0
        while line := file.readline(LONGEST_LINE):
            yield offset, line
            offset += len(line)


def _digest(entry: IndexEntry) -> str:
    return f"sha1:{entry.digest}" if _BARE.fullmatch(entry.digest) else entry.digest


def _line(index: Path, place: int) -> IndexEntry | None:
    """Return the entry that is at *place* of *index* now."""
    try:
        if index.suffix in cdx.ZIPNUM_SUFFIXES:
            return parse_line(cdx.zipnum_line_at(index, place))
        with index.open("rb") as file:
            file.seek(place)
            return parse_line(file.readline(LONGEST_LINE))
    except (OSError, OverflowError, ArchiveError):
        return None  # it was there when the crawl began; the payload is stored whole
