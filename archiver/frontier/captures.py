"""Captures, and resource records of no visit (DNS look-ups, settings, logs): where they are in the WARC files.

Everything here runs in the caller's transaction. The rows of the WARC files must exist.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from archiver.frontier.database import Connection
from archiver.model import Capture, Profile, Resource, Span, State, Truncation

IN_FILE = """
SELECT urls.url, timestamp, captures.status, mime, payload_digest, payload_length, received, warcs.name,
       offset, response_length, request_length, metadata_length, truncated, revisit
FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
WHERE warcs.name = ? AND offset > ? ORDER BY offset LIMIT ?
"""
TAKEN = "timestamp, captures.status, payload_digest, payload_length, truncated, revisit, warcs.name, offset"
_NEWEST = f"""
SELECT urls.url, urls.state, urls.note, {TAKEN}
FROM urls LEFT JOIN captures ON captures.id = (
    SELECT id FROM captures WHERE captures.url = urls.id ORDER BY timestamp DESC LIMIT 1
)
LEFT JOIN warcs ON warcs.id = captures.warc
WHERE urls.priority >= 0 ORDER BY urls.id
"""  # noqa: S608 - a constant above


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
    note: str
    taken: CaptureRow | None


def newest(db: sqlite3.Connection) -> Iterator[UrlStatus]:
    """Yield all URLs except robots.txt, in the order of discovery."""
    for row in db.execute(_NEWEST):
        yield UrlStatus(row[0], State(row[1]), row[2], None if row[3] is None else CaptureRow(row[0], *row[3:]))


def is_known(db: sqlite3.Connection, address: str) -> bool:
    """Return True if *address* has a row."""
    return db.execute("SELECT 1 FROM urls WHERE url = ?", (address,)).fetchone() is not None


KEEP = """
INSERT OR IGNORE INTO resources (uri, timestamp, mime, digest, warc, offset, length)
SELECT ?, ?, ?, ?, id, ?, ? FROM warcs WHERE name = ?
"""
_SELECT = """
SELECT uri, timestamp, mime, resources.digest, warcs.name, offset, length
FROM resources JOIN warcs ON warcs.id = resources.warc
"""
RECORDS_IN_FILE = f"{_SELECT} WHERE warcs.name = ? AND offset > ? ORDER BY offset LIMIT ?"
LATEST = f"{_SELECT} WHERE substr(uri, 1, length(?)) = ? ORDER BY resources.id DESC LIMIT 1"


def add_resources(db: Connection, resources: Sequence[Resource]) -> None:
    """Add a row for each of *resources*."""
    if resources:
        db.executemany(KEEP, [_row(each) for each in resources])


def resource_rows(rows: Iterable[sqlite3.Row]) -> list[Resource]:
    """Return the resources in *rows*."""
    return [Resource(row[0], row[1], row[2], row[3], row[4], Span(row[5], row[6])) for row in rows]


def _row(each: Resource) -> tuple[str | int, ...]:
    return each.uri, each.timestamp, each.mime, each.digest, each.span.offset, each.span.length, each.warc
