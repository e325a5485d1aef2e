"""The inventory of all records read: a temporary SQLite database, so that memory stays flat with 10^7 records.

Each WARC file is read into an inventory of its own, in a process of its own perhaps; `merge` joins them.
"""

import sqlite3
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from archiver.model import Framing
from archiver.warc.listing import indexed
from archiver.warc.reader import Record

BATCH = 1000

_INSERT = """
    INSERT INTO records (file, offset, inner, length, type, id, url, date, concurrent, warcinfo, digest, content,
                         status, mime, truncated, origin, origin_id, origin_date)
    VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_FILE = """
    INSERT INTO files SELECT ?, path, name, read_to, whole_to FROM part.files WHERE true
    ON CONFLICT (id) DO UPDATE SET whole_to = max(whole_to, excluded.whole_to)
"""

_INDEXES = """
    CREATE INDEX records_place ON records (file, offset);
    CREATE INDEX records_id ON records (id);
    CREATE INDEX records_concurrent ON records (concurrent) WHERE concurrent <> '';
    CREATE INDEX records_original ON records (url, date);
"""


def connect(path: Path) -> sqlite3.Connection:
    """A new, empty inventory at *path*."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    db.executescript((files("archiver.verify") / "inventory.sql").read_text())
    return db


def text(value: str | None) -> str:
    """*value* as SQLite and JSON take it: bytes that were no UTF-8 show as `?`."""
    return (value or "").encode("utf-8", "replace").decode()


class Shelf:
    """Rows of one file on their way into its inventory."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._rows: list[tuple[object, ...]] = []

    def add(self, record: Record, framing: Framing | None) -> None:
        """Take a *record* that was read to its end."""
        content = text(record.first("Content-Type")).partition(";")[0].strip().lower()
        mime = content
        if framing is not None:
            mime = framing.protocol if record.type == "request" else framing.media_type
        self._rows.append(
            (
                *(record.offset, record.inner, record.length, text(record.type)),
                *(text(record.first("WARC-Record-ID")), indexed(text(record.first("WARC-Target-URI")))),
                *(text(record.first("WARC-Date")), text(record.first("WARC-Concurrent-To"))),
                *(text(record.first("WARC-Warcinfo-ID")), text(record.first("WARC-Payload-Digest")), content),
                framing.status if framing else 0,
                mime,
                text(record.first("WARC-Truncated")),
                indexed(text(record.first("WARC-Refers-To-Target-URI"))),
                *(text(record.first("WARC-Refers-To")), text(record.first("WARC-Refers-To-Date"))),
            )
        )
        if len(self._rows) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is held back."""
        self._db.execute("BEGIN")
        self._db.executemany(_INSERT, self._rows)
        self._db.execute("COMMIT")
        self._rows.clear()


def merge(db: sqlite3.Connection, parts: Iterable[tuple[int, Path]]) -> None:
    """Bring the inventories of files, or of pieces of files, together in *db*, each with the number of its file."""
    for number, part in parts:
        db.execute("ATTACH ? AS part", (str(part),))
        db.execute("BEGIN")
        db.execute(_FILE, (number,))
        db.execute("UPDATE part.records SET file = ?", (number,))
        db.execute("INSERT INTO records SELECT * FROM part.records")
        db.execute("COMMIT")
        db.execute("DETACH part")
        part.unlink()
    db.executescript(_INDEXES)
