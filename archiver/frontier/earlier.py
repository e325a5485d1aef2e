"""What the database of an earlier crawl says: questions only, of a file that nobody writes any more.

Each is answered by an index, and in bounded portions. May be asked by one thread at a time, whichever it is.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from archiver.errors import ArchiveError
from archiver.frontier.captures import TAKEN, CaptureRow
from archiver.frontier.database import check_schema, connect_readonly
from archiver.frontier.port import InheritedThrottle
from archiver.model import State
from archiver.storage import bare

CAPTURES = f"""
SELECT urls.url, {TAKEN}
FROM urls CROSS JOIN captures ON captures.url = urls.id JOIN warcs ON warcs.id = captures.warc
WHERE urls.url = ? {{}} ORDER BY timestamp DESC LIMIT ?
"""  # noqa: S608 - a constant
ARCHIVED = """
SELECT urls.id, urls.url, urls.path, urls.depth, urls.off_scope_hops, coalesce(via.url, ''), coalesce(seed.url, '')
FROM urls LEFT JOIN urls AS via ON via.id = urls.via LEFT JOIN urls AS seed ON seed.id = urls.seed
WHERE urls.id > ? AND urls.state = 'archived' AND urls.status < 400 AND urls.priority >= 0
ORDER BY urls.id LIMIT ?
"""
WORD = "SELECT state, status FROM urls WHERE url = ?"
MANNERS = """
SELECT key, not_before, rate, rate_limit, concurrency, slow_reason FROM hosts
WHERE not_before > ? OR rate > 0 OR concurrency > 0
"""


class EarlierUrl(NamedTuple):
    """A URL that an earlier crawl has archived, and the way by which it came there."""

    row: int
    url: str
    path: str
    depth: int
    off_scope_hops: int
    via: str
    seed: str


class EarlierOutcome(NamedTuple):
    """What became of a URL."""

    state: State
    status: int


class EarlierDatabase:
    """The database of one earlier crawl. Raises `ArchiveError` where it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            self._db = connect_readonly(path, at_rest=True)
        try:
            self._check()
        except BaseException:
            self._db.close()
            raise

    def _check(self) -> None:
        with self._told():
            if not check_schema(self._db, self._path):
                raise ArchiveError(f"{self._path} is not the database of an earlier crawl: it is empty")

    def close(self) -> None:
        """No more questions."""
        self._db.close()

    def captures(self, address: str, most: int) -> list[CaptureRow]:
        """The captures of *address*, newest first, at most *most*."""
        return [CaptureRow(*row) for row in self._rows(CAPTURES.format(""), (address, most))]

    def capture(self, address: str, timestamp: int) -> CaptureRow | None:
        """The capture of *address* that holds a payload itself and has this date."""
        sql = CAPTURES.format("AND timestamp = ? AND revisit = ''")
        return next((CaptureRow(*row) for row in self._rows(sql, (address, timestamp, 1))), None)

    def archived(self, after: int, most: int) -> list[EarlierUrl]:
        """URLs whose last answer was no error, in the order of rows behind *after*; without robots.txt."""
        return [EarlierUrl(*row) for row in self._rows(ARCHIVED, (after, most))]

    def word(self, address: str) -> EarlierOutcome | None:
        """What became of *address*; None where it is not known."""
        rows = self._rows(WORD, (address,))
        return EarlierOutcome(State(rows[0][0]), rows[0][1]) if rows else None

    def files(self) -> list[str]:
        """The names of its WARC files."""
        return [bare(name, self._path) for (name,) in self._rows("SELECT name FROM warcs ORDER BY id")]

    def manners(self, now: float) -> list[InheritedThrottle]:
        """How hosts want to be asked: key, parked until, rate, its limit, width, and why."""
        return list(self._rows(MANNERS, (now,)))

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        with self._told():
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ArchiveError(
                f"{self._path}: the database of an earlier crawl cannot be read: {error}; put it back from a copy, or "
                f"move {self._path.parent} away to do without it"
            ) from error
