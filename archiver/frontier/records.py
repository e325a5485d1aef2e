"""Records that belong to no visit, as an index lists them: look-ups of names, and the papers of the crawl.

Runs inside its caller's transaction, after the files were told in which they lie.
"""

import sqlite3
from collections.abc import Iterable, Sequence

from archiver.frontier.connection import Connection
from archiver.model import Resource, Span

KEEP = """
INSERT OR IGNORE INTO records (uri, timestamp, mime, digest, warc, offset, length)
SELECT ?, ?, ?, ?, id, ?, ? FROM warcs WHERE name = ?
"""
_SELECT = """
SELECT uri, timestamp, mime, records.digest, warcs.name, offset, length
FROM records JOIN warcs ON warcs.id = records.warc
"""
IN_FILE = f"{_SELECT} WHERE warcs.name = ? AND offset > ? ORDER BY offset LIMIT ?"
LATEST = f"{_SELECT} WHERE substr(uri, 1, length(?)) = ? ORDER BY records.id DESC LIMIT 1"


def keep(db: Connection, resources: Sequence[Resource]) -> None:
    """Write down where *resources* lie."""
    if resources:
        db.executemany(KEEP, [_row(each) for each in resources])


def read(rows: Iterable[sqlite3.Row]) -> list[Resource]:
    """What *rows* of a selection from here say."""
    return [Resource(row[0], row[1], row[2], row[3], row[4], Span(row[5], row[6])) for row in rows]


def _row(each: Resource) -> tuple[str | int, ...]:
    return each.uri, each.timestamp, each.mime, each.digest, each.span.offset, each.span.length, each.warc
