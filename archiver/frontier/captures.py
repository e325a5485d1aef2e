"""Captures, and resource records of no visit (DNS look-ups, settings, logs): where they are in the WARC files.

`EarlierDatabase` reads them in the database of an earlier crawl, which no process writes any more. An index answers
each of its queries, and results are bounded. One thread at a time may use it.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from archiver.ask import Ask
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.address import address_of, check_driver
from archiver.frontier.connection import Reader
from archiver.frontier.cookies import TO_INHERIT, cookie_of
from archiver.frontier.database import check_schema, connect_readonly
from archiver.frontier.gathered import UNDECODABLE
from archiver.frontier.links import POSTED
from archiver.frontier.port import InheritedThrottle
from archiver.model import Capture, Cookie, Profile, Resource, Span, State, Truncation
from archiver.storage import bare

if TYPE_CHECKING:
    from archiver.frontier.postgres_reading import PostgresReader

ROWS_AT_ONCE = 5000  # in memory

IN_FILE = f"""
SELECT urls.url, timestamp, captures.status, mime, payload_digest, payload_length, received, warcs.name,
       offset, response_length, request_length, metadata_length, truncated, revisit, captures.language, {POSTED}
FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
WHERE warcs.name = ? AND offset > ? ORDER BY offset LIMIT ?
"""  # noqa: S608 - a constant
TAKEN = "timestamp, captures.status, payload_digest, payload_length, truncated, revisit, warcs.name, offset"
_NEWEST = f"""
SELECT urls.url, urls.state, urls.failure, urls.note, {TAKEN}
FROM urls LEFT JOIN captures ON captures.id = (
    SELECT id FROM captures WHERE captures.url = urls.id AND captures.language = '' ORDER BY timestamp DESC LIMIT 1
)
LEFT JOIN warcs ON warcs.id = captures.warc
WHERE urls.priority >= 0 ORDER BY urls.id
"""  # noqa: S608 - only _IS_PLAIN is filled in, a constant


def capture(row: sqlite3.Row) -> Capture:
    """Return the capture in *row*."""
    offset = row[8]
    return Capture(
        url=row[0],
        timestamp=row[1],
        status=row[2],
        mime=row[3],
        payload_digest=row[4],
        payload_length=row[5],
        received=row[6],
        warc=row[7],
        response=Span(offset, row[9]),
        request=Span(offset + row[9], row[10]),
        metadata=Span(offset + row[9] + row[10], row[11]),
        truncated=Truncation(row[12]) if row[12] else None,
        revisit=Profile(row[13]) if row[13] else None,
        language=row[14],
        ask=Ask.of_text(row[15]) if row[15] else None,
    )


class CaptureRow(NamedTuple):
    """One capture, with the fields by which two crawls are compared."""

    url: str
    timestamp: int  # microseconds since the epoch: its WARC-Date
    status: int
    digest: str  # of the payload that it holds or refers to
    size: int  # bytes of that payload
    truncated: str
    revisit: str  # a word of `Profile`, or ""
    file: str
    offset: int

    @property
    def meant(self) -> int:
        """The status that a reader sees: 200 for a page that was not modified."""
        return 200 if self.revisit == Profile.NOT_MODIFIED else self.status


class UrlStatus(NamedTuple):
    """A URL with its state and its newest capture."""

    url: str
    state: State
    failure: str
    note: str
    taken: CaptureRow | None


def newest(db: Reader) -> Iterator[UrlStatus]:
    """Yield all URLs except robots.txt, in the order of discovery."""
    for row in db.execute(_NEWEST):
        taken = None if row[4] is None else CaptureRow(row[0], *row[4:])
        yield UrlStatus(row[0], State(row[1]), row[2], row[3], taken)


_SITEMAPS = f"""
SELECT captures.id, urls.url, {TAKEN} FROM captures CROSS JOIN urls ON urls.id = captures.url
JOIN warcs ON warcs.id = captures.warc
WHERE captures.id > ? AND captures.id <= ? AND urls.hop = 'M' AND captures.status IN (200, 304) AND warcs.machine = ?
ORDER BY captures.id LIMIT ?
"""  # noqa: S608 - only _IS_PLAIN is filled in, a constant


def sitemaps(db: Reader, after: int, machine: str, most: int) -> tuple[int, list[CaptureRow]]:
    """Return the last row looked at, and at most *most* captures of sitemaps of *machine* behind the row *after*."""
    last = int(db.execute("SELECT coalesce(max(id), 0) FROM captures").fetchone()[0])
    rows = db.execute(_SITEMAPS, (after, last, machine, most)).fetchall() if last > after else []
    return rows[-1][0] if len(rows) == most else last, [CaptureRow(*row[1:]) for row in rows]


def is_known(db: Reader, address: str) -> bool:
    """Return True if *address* has a row."""
    return db.execute("SELECT 1 FROM urls WHERE url = ?", (address,)).fetchone() is not None


RESOURCES = """
SELECT uri, timestamp, mime, resources.digest, warcs.name, offset, length
FROM resources JOIN warcs ON warcs.id = resources.warc
"""
RECORDS_IN_FILE = f"{RESOURCES} WHERE warcs.name = ? AND offset > ? ORDER BY offset LIMIT ?"
LATEST = f"{RESOURCES} WHERE substr(uri, 1, length(?)) = ? ORDER BY resources.id DESC LIMIT 1"


def resource_rows(rows: Iterable[sqlite3.Row]) -> list[Resource]:
    """Return the resources in *rows*."""
    return [Resource(row[0], row[1], row[2], row[3], row[4], Span(row[5], row[6])) for row in rows]


def in_files(db: Reader) -> Iterator[tuple[str, Iterator[Capture | Resource]]]:
    """Yield the name of each WARC file, and its captures and resources."""
    for (name,) in db.execute("SELECT name FROM warcs ORDER BY id").fetchall():
        yield bare(name, "the database"), _in_file(db, name)


def _in_file(db: Reader, name: str) -> Iterator[Capture | Resource]:
    after = -1
    while rows := db.execute(IN_FILE, (name, after, ROWS_AT_ONCE)).fetchall():
        yield from map(capture, rows)
        after = rows[-1][8]
    after = -1
    while rows := db.execute(RECORDS_IN_FILE, (name, after, ROWS_AT_ONCE)).fetchall():
        yield from resource_rows(rows)
        after = rows[-1][5]


class CapturePlace(NamedTuple):
    """A response to a plain GET, and the place of its record."""

    url: str
    warc: str
    offset: int


_MOST_HOSTS = 10_000  # more would take too long to sort
_MOST_ROWS = 1000  # looked at for one probe
_IS_PLAIN = """
warcs.indexed = 1 AND captures.status = 200 AND captures.revisit = '' AND captures.language = ''
AND NOT EXISTS (SELECT 1 FROM asks WHERE asks.url = captures.url)
"""
_SAMPLE = f"""
SELECT urls.url, warcs.name, offset FROM captures CROSS JOIN urls ON urls.id = captures.url
JOIN warcs ON warcs.id = captures.warc WHERE captures.id >= ? AND captures.id < ? AND {_IS_PLAIN}
ORDER BY captures.id LIMIT 1
"""  # noqa: S608 - only _IS_PLAIN is filled in, a constant
_LAST_OF_HOST = f"""
SELECT found.url, warcs.name, offset
FROM (SELECT id, url FROM urls WHERE url >= ? AND url < ? ORDER BY url DESC LIMIT ?) AS found
CROSS JOIN captures ON captures.url = found.id JOIN warcs ON warcs.id = captures.warc
WHERE {_IS_PLAIN} ORDER BY found.url DESC LIMIT ?
"""  # noqa: S608 - only _IS_PLAIN is filled in, a constant


def sample(db: Reader, most: int, key: Callable[[str], str]) -> list[CapturePlace]:
    """Return up to twice *most* captures: some from each part of the crawl, and the last ones in an index by *key*.

    Those that the index may not have yet, because their crawl is running, are none of them.
    """
    last = int(db.execute("SELECT coalesce(max(id), 0) FROM captures").fetchone()[0])
    starts = sorted({1 + last * step // most for step in range(most)})
    rows = [row for start in starts for row in db.execute(_SAMPLE, (start, start + _MOST_ROWS))]
    hosts = [host for (host,) in db.execute("SELECT key FROM hosts WHERE archived > 0 LIMIT ?", (_MOST_HOSTS + 1,))]
    if 0 < len(hosts) <= _MOST_HOSTS:
        host = max(hosts, key=lambda name: key(f"{name}/"))
        rows += db.execute(_LAST_OF_HOST, (f"{host}/", f"{host}0", _MOST_ROWS, most))
    return [CapturePlace(address, bare(name, "the database"), offset) for address, name, offset in dict.fromkeys(rows)]


class ClosedFile(NamedTuple):
    """A finished WARC file, as it was when it got its name."""

    name: str
    size: int
    digest: str  # sha256:HEX
    modified: int  # nanoseconds since the epoch


def closed_files(db: Reader) -> list[ClosedFile]:
    """Return the WARC files that are finished, and whose digest is known."""
    sql = "SELECT name, committed, digest, modified FROM warcs WHERE closed = 1 AND digest <> '' ORDER BY id"
    return [ClosedFile(bare(name, "the database"), *rest) for name, *rest in db.execute(sql)]


def file_names(db: Reader) -> list[str]:
    """Return the names of all WARC files."""
    return [bare(name, "the database") for (name,) in db.execute("SELECT name FROM warcs ORDER BY id")]


def first_capture(db: Reader) -> float:
    """Return the time of the first capture in seconds since the epoch; 0 if there is none."""
    return float(db.execute("SELECT coalesce(min(timestamp), 0) / 1e6 FROM captures").fetchone()[0])


CAPTURES = f"""
SELECT urls.url, {TAKEN}
FROM urls CROSS JOIN captures ON captures.url = urls.id JOIN warcs ON warcs.id = captures.warc
WHERE urls.url = ? AND captures.language = '' {{}} ORDER BY timestamp DESC LIMIT ?
"""  # noqa: S608 - a constant
ARCHIVED = """
SELECT urls.id, urls.url, urls.path, urls.depth, urls.off_scope_hops, coalesce(via.url, ''), coalesce(seed.url, '')
FROM urls LEFT JOIN urls AS via ON via.id = urls.via LEFT JOIN urls AS seed ON seed.id = urls.seed
WHERE urls.id > ? AND urls.state = 'archived' AND urls.status < 400 AND urls.priority >= 0
ORDER BY urls.id LIMIT ?
"""
OUTCOME = f"SELECT state, status, {UNDECODABLE} FROM urls WHERE url = ?"  # noqa: S608 - a constant
THROTTLES = """
SELECT key, not_before, rate, rate_limit, concurrency, slow_reason FROM hosts
WHERE not_before > ? OR rate > 0 OR concurrency > 0
"""


class EarlierUrl(NamedTuple):
    """A URL that an earlier crawl archived, and the path that led to it."""

    row: int
    url: str
    path: str
    depth: int
    off_scope_hops: int
    via: str
    seed: str


class EarlierOutcome(NamedTuple):
    """State and last status of a URL."""

    state: State
    status: int
    is_undecodable: bool


def _server(path: Path) -> "PostgresReader | None":
    """Return the database in PostgreSQL of an earlier crawl that has none in the file *path*; None if it has."""
    cure = f"move {path.parent} away to do without it"
    try:
        address = address_of(path)
    except ConfigError:
        raise ConfigError(f"{path.parent}: you have not named its database on this machine; {cure}") from None
    if not address:
        return None
    check_driver(address)
    from archiver.frontier import postgres_reading  # noqa: PLC0415 - an extra, which only such a crawl needs

    try:
        there = postgres_reading.holds_crawl(address)
    except (ArchiveError, ConfigError) as error:
        raise ArchiveError(f"{error}; it is the database of an earlier crawl; {cure}") from error
    if not there:
        raise ArchiveError(f"{address} is not the database of an earlier crawl: it is empty; {cure}")
    return postgres_reading.PostgresReader(address)


class EarlierDatabase:
    """The database of one earlier crawl. Raises `ArchiveError` if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | PostgresReader
        if (server := _server(path)) is not None:
            self._db = server
            return
        with self._errors():
            self._db = connect_readonly(path, at_rest=True)
        try:
            self._check(self._db)
        except BaseException:
            self._db.close()
            raise

    def _check(self, db: sqlite3.Connection) -> None:
        with self._errors():
            if not check_schema(db, self._path):
                raise ArchiveError(f"{self._path} is not the database of an earlier crawl: it is empty")

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def captures(self, address: str, most: int) -> list[CaptureRow]:
        """Return at most *most* captures of *address*, newest first."""
        return [CaptureRow(*row) for row in self._rows(CAPTURES.format(""), (address, most))]

    def capture(self, address: str, timestamp: int) -> CaptureRow | None:
        """Return the capture of *address* with this date that holds its payload itself."""
        sql = CAPTURES.format("AND timestamp = ? AND revisit = ''")
        return next((CaptureRow(*row) for row in self._rows(sql, (address, timestamp, 1))), None)

    def archived(self, after: int, most: int) -> list[EarlierUrl]:
        """Return URLs with a good last answer, in the order of rows behind *after*, without robots.txt."""
        return [EarlierUrl(*row) for row in self._rows(ARCHIVED, (after, most))]

    def outcome(self, address: str) -> EarlierOutcome | None:
        """Return the outcome of *address*, or None."""
        rows = self._rows(OUTCOME, (address,))
        return EarlierOutcome(State(rows[0][0]), rows[0][1], bool(rows[0][2])) if rows else None

    def files(self) -> list[str]:
        """Return the names of its WARC files."""
        return [bare(name, self._path) for (name,) in self._rows("SELECT name FROM warcs ORDER BY id")]

    def throttles(self, now: float) -> list[InheritedThrottle]:
        """Return the throttles of hosts, for hosts that have one or must wait."""
        return list(self._rows(THROTTLES, (now,)))

    def cookies(self, now: float) -> list[Cookie]:
        """Return the cookies that the next crawl begins with: those with time left, and the user's own."""
        return [cookie for row in self._rows(TO_INHERIT, (now,)) if (cookie := cookie_of(row)).expires > now]

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        if not isinstance(self._db, sqlite3.Connection):
            return self._db.rows(sql, values)
        with self._errors():
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ArchiveError(
                f"{self._path}: the database of an earlier crawl cannot be read: {error}; put it back from a copy, or "
                f"move {self._path.parent} away to do without it"
            ) from error
