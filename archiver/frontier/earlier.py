"""Read the database of an earlier crawl, which no process writes any more.

An index answers each query, and results are bounded. One thread at a time may use it.
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


class EarlierDatabase:
    """The database of one earlier crawl. Raises `ArchiveError` if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._errors():
            self._db = connect_readonly(path, at_rest=True)
        try:
            self._check()
        except BaseException:
            self._db.close()
            raise

    def _check(self) -> None:
        with self._errors():
            if not check_schema(self._db, self._path):
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
        rows = self._rows(WORD, (address,))
        return EarlierOutcome(State(rows[0][0]), rows[0][1]) if rows else None

    def files(self) -> list[str]:
        """Return the names of its WARC files."""
        return [bare(name, self._path) for (name,) in self._rows("SELECT name FROM warcs ORDER BY id")]

    def throttles(self, now: float) -> list[InheritedThrottle]:
        """Return the throttles of hosts, for hosts that have one or must wait."""
        return list(self._rows(THROTTLES, (now,)))

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
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
