"""The inventory of all records, and the faults between them.

It is a temporary SQLite database, so that memory stays flat with 10^7 records. Each WARC file is read into its own
inventory, perhaps in its own process. `merged` joins them. `relation_findings` then finds what is wrong between
records: IDs, request and response pairs, warcinfo, revisits.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from archiver.tools.verify.findings import VerifyFinding
from archiver.tools.verify.usual_blocks import BlockSummary
from archiver.warc.cdxj import index_url
from archiver.warc.reader import Record

BATCH = 1000

_COLUMNS = """offset, inner, length, type, id, url, date, concurrent, warcinfo, digest, content,
    status, mime, truncated, origin, origin_id, origin_date"""
_INSERT = f"""
    INSERT INTO records (file, {_COLUMNS})
    VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""  # noqa: S608 - a constant
_MERGE = f"INSERT INTO records (file, {_COLUMNS}) SELECT ?, {_COLUMNS} FROM part.records"  # noqa: S608 - a constant

_FILE = """
    INSERT INTO files SELECT ?, path, name, read_to, whole_to FROM part.files WHERE true
    ON CONFLICT (id) DO UPDATE SET whole_to = max(whole_to, excluded.whole_to)
"""

_INDEXES = """
    CREATE INDEX records_place ON records (file, offset);
    CREATE INDEX records_id ON records (id);
    CREATE INDEX records_concurrent ON records (concurrent) WHERE concurrent <> '';
    CREATE INDEX records_original ON records (url, date);
    CREATE INDEX records_revisit ON records (file) WHERE type = 'revisit';
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open the inventory at *path*, or create an empty one."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    db.executescript((files("archiver.tools.verify") / "inventory.sql").read_text())
    return db


def text(value: str | None) -> str:
    """Return *value* as valid UTF-8 for SQLite and JSON; invalid bytes become `?`."""
    return (value or "").encode("utf-8", "replace").decode()


class InventoryWriter:
    """Writes the records of one file into its inventory."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._rows: list[tuple[object, ...]] = []

    def add(self, record: Record, block: BlockSummary) -> None:
        """Add a *record* that was read to its end, and what the inventory keeps of its *block*."""
        values = record.values
        if not record.is_usual:  # a usual header is ASCII
            values = {name: text(value) for name, value in values.items()}
        value = values.get
        content = _essence(value("Content-Type", ""))
        self._rows.append(
            (
                record.offset,
                record.inner,
                record.length,
                record.type if record.is_usual else text(record.type),
                value("WARC-Record-ID", ""),
                index_url(value("WARC-Target-URI", "")),
                value("WARC-Date", ""),
                value("WARC-Concurrent-To", ""),
                value("WARC-Warcinfo-ID", ""),
                value("WARC-Payload-Digest", ""),
                content,
                block.status,
                content if block.mime is None else block.mime,
                value("WARC-Truncated", ""),
                index_url(value("WARC-Refers-To-Target-URI", "")),
                value("WARC-Refers-To", ""),
                value("WARC-Refers-To-Date", ""),
            )
        )
        if len(self._rows) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are still in memory."""
        self._db.execute("BEGIN")
        self._db.executemany(_INSERT, self._rows)
        self._db.execute("COMMIT")
        self._rows.clear()


def mark(db: sqlite3.Connection, column: str, rows: list[tuple[int]]) -> None:
    """Set *column* of these *rows* of the inventory *db*, and empty the list."""
    db.execute("BEGIN")
    db.executemany(f"UPDATE records SET {column} = 1 WHERE rowid = ?", rows)  # noqa: S608 - one of two names
    db.execute("COMMIT")
    rows.clear()


@lru_cache(maxsize=64)
def _essence(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def merged(path: Path, parts: Sequence[tuple[int, Path]]) -> sqlite3.Connection:
    """Merge *parts*, the inventories of files or pieces of files with the number of each file, into one at *path*.

    The first one becomes the whole, so that its records need not be copied.
    """
    if parts and parts[0][0] == 1:
        parts[0][1].rename(path)
        parts = parts[1:]
    db = connect(path)
    for number, part in parts:
        db.execute("ATTACH ? AS part", (str(part),))
        db.execute("BEGIN")
        db.execute(_FILE, (number,))
        db.execute(_MERGE, (number,))
        db.execute("COMMIT")
        db.execute("DETACH part")
        part.unlink()
    db.executescript(_INDEXES)
    return db


_ROWS: tuple[tuple[str, str, str], ...] = (  # code, query (the last column fills the message), message
    (
        "record-id-repeated",
        """SELECT path, offset, type, url, id FROM placed AS r
           WHERE id <> '' AND EXISTS
             (SELECT 1 FROM records AS o WHERE o.id = r.id AND o.rowid < r.number
              AND NOT (r.type = 'warcinfo' AND o.type = 'warcinfo' AND o.date = r.date))""",  # it may recur
        "an earlier record has the same ID: {}",
    ),
    (
        "concurrent-missing",
        """SELECT path, offset, type, url, concurrent FROM placed AS r
           WHERE concurrent <> '' AND NOT EXISTS (SELECT 1 FROM records AS o WHERE o.id = r.concurrent)""",
        "WARC-Concurrent-To names {}, which is missing",
    ),
    (
        "concurrent-mismatch",
        """SELECT r.path, r.offset, r.type, r.url, CASE WHEN o.url <> r.url THEN o.url ELSE o.date END
           FROM placed AS r JOIN records AS o ON o.id = r.concurrent
           WHERE (r.url <> o.url OR r.date <> o.date) AND (r.type = 'request') <> (o.type = 'request')
             AND r.type IN ('request', 'response', 'revisit') AND o.type IN ('request', 'response', 'revisit')""",
        "its counterpart has {}",
    ),
    (
        "warcinfo-missing",
        """SELECT path, offset, type, url, warcinfo FROM placed
           WHERE warcinfo <> '' AND (file, warcinfo) NOT IN (SELECT file, id FROM records WHERE type = 'warcinfo')""",
        "WARC-Warcinfo-ID names {}, which is not a warcinfo record of this file",
    ),
    (
        "revisit-original",
        """SELECT path, offset, type, url, origin || ' of ' || origin_date FROM placed AS r
           WHERE type = 'revisit' AND origin <> ''
             AND NOT EXISTS (SELECT 1 FROM records AS o WHERE o.url = r.origin AND o.date = r.origin_date)""",
        "it refers to {}, which is not in the files that were read",
    ),
    (
        "revisit-of-revisit",
        """SELECT path, offset, type, url, origin || ' of ' || origin_date FROM placed AS r
           WHERE type = 'revisit' AND origin <> ''
             AND EXISTS (SELECT 1 FROM records AS o WHERE o.url = r.origin AND o.date = r.origin_date)
             AND NOT EXISTS (SELECT 1 FROM records AS o WHERE o.url = r.origin AND o.date = r.origin_date
                             AND o.type IN ('response', 'resource'))""",
        "it refers to {}, which has no payload itself",
    ),
    (
        "revisit-of-cut",
        """SELECT r.path, r.offset, r.type, r.url, r.origin || ' of ' || r.origin_date
           FROM placed AS r JOIN records AS o ON o.url = r.origin AND o.date = r.origin_date
           WHERE r.type = 'revisit' AND o.type IN ('response', 'resource') AND o.truncated <> ''""",
        "it refers to {}, which is truncated",
    ),
    (
        "revisit-unnamed",
        """SELECT path, offset, type, url, digest FROM placed AS r
           WHERE type = 'revisit' AND origin = '' AND NOT EXISTS
             (SELECT 1 FROM records AS o WHERE o.url = r.url AND o.digest = r.digest AND o.date < r.date
              AND o.type IN ('response', 'resource'))""",
        "it does not name the original of its payload {}",
    ),
    (
        "revisit-mismatch",
        """SELECT r.path, r.offset, r.type, r.url, o.url || ' of ' || o.date
           FROM placed AS r JOIN records AS o ON o.id = r.origin_id
           WHERE r.type = 'revisit' AND r.origin_id <> '' AND r.origin <> ''
             AND (o.url <> r.origin OR r.origin_date <> '' AND o.date <> r.origin_date)""",
        "WARC-Refers-To names {}, but the other WARC-Refers-To fields name another record",
    ),
    (
        "revisit-mismatch",
        """SELECT r.path, r.offset, r.type, r.url, o.digest
           FROM placed AS r JOIN placed AS o ON o.url = r.origin AND o.date = r.origin_date
           WHERE r.type = 'revisit' AND o.type IN ('response', 'resource')
             AND length(r.digest_value) = length(o.digest_value)
             AND upper(r.digest_value) <> upper(o.digest_value)""",
        "the original has the payload digest {}",
    ),
)

_PAIRS = """
    SELECT path, sum(type = 'request'), sum(type <> 'request') FROM placed AS r
    WHERE (type = 'request' OR type = 'response' AND content = 'application/http')
      AND NOT EXISTS (
        SELECT 1 FROM records AS o WHERE o.id = r.concurrent AND (o.type = 'request') <> (r.type = 'request'))
      AND NOT EXISTS (
        SELECT 1 FROM records AS o WHERE o.concurrent <> '' AND o.concurrent = r.id
          AND (o.type = 'request') <> (r.type = 'request') AND o.type IN ('request', 'response', 'revisit'))
    GROUP BY file
"""


def relation_findings(db: sqlite3.Connection) -> Iterator[VerifyFinding]:
    """Yield the findings about two records that contradict each other, or about a missing record."""
    for code, query, message in _ROWS:
        for path, offset, kind, url, what in db.execute(query):
            yield VerifyFinding(path, code, message.format(what[:200]), offset, kind, url)
    for path, requests, responses in db.execute(_PAIRS):
        yield VerifyFinding(path, "pair-missing", f"unpaired: {requests} requests, {responses} responses")
