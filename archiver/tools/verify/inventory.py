"""The inventory of all records, and what it shows: faults between records, and between records and the CDXJ index.

It is a temporary SQLite database, so that memory stays flat with 10^7 records. Each WARC file is read into its own
inventory, perhaps in its own process. `merge` joins them. `relation_findings` then finds what is wrong between records:
IDs, request and response pairs, warcinfo, revisits.

`IndexCheck` compares an index with the records. Each line must match its record, keys must be those that pywb looks up,
lines must be sorted bytewise, and each record that can be replayed needs a line. The index of an unfinished crawl may
lack recent records, or have lines for records written since: neither is a fault.
"""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from archiver import humanize
from archiver.collection.records import WARC_ENDINGS, is_stored
from archiver.model import Framing
from archiver.storage import OPEN
from archiver.tools.verify.findings import VerifyFinding
from archiver.warc.cdxj import (
    LONGEST_LINE,
    REVISIT,
    StrictLine,
    index_url,
    lookup_key,
    parse_strict_line,
    variant_url,
)
from archiver.warc.reader import Record
from archiver.warc.records import ACCEPT_LANGUAGE

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
"""


def connect(path: Path) -> sqlite3.Connection:
    """Create an empty inventory at *path*."""
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

    def add(self, record: Record, framing: Framing | None) -> None:
        """Add a *record* that was read to its end."""
        value, safe = record.values.get, str if record.is_usual else text  # a usual header is ASCII
        content = _essence(safe(value("Content-Type", "")))
        mime = content
        if framing is not None:
            mime = framing.protocol if record.type == "request" else framing.media_type
        self._rows.append(
            (
                *(record.offset, record.inner, record.length, safe(record.type)),
                *(safe(value("WARC-Record-ID", "")), index_url(safe(value("WARC-Target-URI", "")))),
                *(safe(value("WARC-Date", "")), safe(value("WARC-Concurrent-To", ""))),
                *(safe(value("WARC-Warcinfo-ID", "")), safe(value("WARC-Payload-Digest", "")), content),
                framing.status if framing else 0,
                mime,
                safe(value("WARC-Truncated", "")),
                index_url(safe(value("WARC-Refers-To-Target-URI", ""))),
                *(safe(value("WARC-Refers-To", "")), safe(value("WARC-Refers-To-Date", ""))),
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


@lru_cache(maxsize=64)
def _essence(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def merge(db: sqlite3.Connection, parts: Iterable[tuple[int, Path]]) -> None:
    """Merge the inventories of files, or pieces of files, into *db*, each with the number of its file."""
    for number, part in parts:
        db.execute("ATTACH ? AS part", (str(part),))
        db.execute("BEGIN")
        db.execute(_FILE, (number,))
        db.execute(_MERGE, (number,))
        db.execute("COMMIT")
        db.execute("DETACH part")
        part.unlink()
    db.executescript(_INDEXES)


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
        """SELECT path, offset, type, url, warcinfo FROM placed AS r
           WHERE warcinfo <> '' AND NOT EXISTS
             (SELECT 1 FROM records AS o WHERE o.id = r.warcinfo AND o.file = r.file AND o.type = 'warcinfo')""",
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


UNFINISHED = "import-unfinished"

_RECORD = """
    SELECT rowid, length, type, url, date, digest, status, mime FROM records
    WHERE file = ? AND offset = ? AND inner = 0
"""
_UNINDEXED = """
    SELECT path, offset, type, url FROM placed
    WHERE indexed = 0 AND (url LIKE 'http%' OR url LIKE 'metadata://archiver.invalid/%')
      AND (type IN ('response', 'revisit', 'resource') OR type = 'metadata' AND content <> 'application/warc-fields')
      AND NOT EXISTS (
        SELECT 1 FROM records AS asked WHERE asked.type = 'request'
        AND asked.mime IN ('HEAD', 'OPTIONS', 'DELETE', 'PATCH', 'WEBSOCKET')
        AND (asked.concurrent = placed.id AND asked.concurrent <> '' OR asked.id = placed.concurrent))
"""  # responses that are not those to GET are not indexed


class IndexCheck:
    """Compares one index with the inventory; `running`: the crawl is not finished; *away*: files that were not read."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, *, running: bool, away: Collection[str] = frozenset()
    ) -> None:
        self._away = away
        self._db = db
        self._path = path
        self._running = running
        self._files = {
            name: (number, whole_to) for number, name, whole_to in db.execute("SELECT id, name, whole_to FROM files")
        }
        self._seen: list[tuple[int]] = []

    def findings(self) -> Iterator[VerifyFinding]:
        """Yield the findings for the lines, in their order."""
        try:
            yield from self._lines()
        except OSError as error:
            if not (self._running and isinstance(error, FileNotFoundError)):  # else it was merged into another file
                yield self._finding("unreadable", error.strerror or str(error), None)
                return
        self._mark()

    def _lines(self) -> Iterator[VerifyFinding]:
        before = b""
        with self._path.open("rb") as file:
            offset = 0
            for number, raw in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), start=1):
                if raw < before:
                    yield self._finding("index-order", f"line {number} sorts before the line above it", offset)
                if raw == before:
                    yield self._finding("index-repeated", f"line {number} repeats the line above it", offset)
                line = parse_strict_line(raw)
                if line is None:
                    yield self._finding(
                        "index-line", f"line {number} is not a complete `key timestamp {{json}}` line", offset
                    )
                else:
                    for code, message in self._check(line):
                        yield self._finding(code, f"line {number}: {message}", offset, str(line.fields["url"]))
                before = raw
                offset += len(raw)

    def _finding(self, code: str, message: str, offset: int | None, url: str = "") -> VerifyFinding:
        return VerifyFinding(str(self._path), code, text(message), offset, url=text(url[:2000]))

    def _check(self, line: StrictLine) -> Iterator[tuple[str, str]]:
        entry = line.fields
        if "method" not in entry and str(entry["url"]).startswith(("http://", "https://")):
            key = _key(str(entry["url"]))
            if key != line.key:
                yield "index-key", f"the key is {line.key[:200]!r}, but pywb looks for {key[:200]!r}"
        file = self._file(str(entry["filename"]))
        if file is None:
            if entry["filename"] in self._away or self._added_since(str(entry["filename"])):
                return
            yield "index-file", f"no file {str(entry['filename'])[:200]!r} in the archive"
            return
        number, whole_to = file
        offset, length = int(entry["offset"]), int(entry["length"])
        if offset >= whole_to and self._running:
            return  # written since
        found = self._db.execute(_RECORD, (number, offset)).fetchone()
        if found is None or length not in _lengths(found[1], str(entry["filename"])):
            actual = "no complete record begins there" if found is None else f"the record there has {found[1]} bytes"
            yield "index-place", f"it says offset {offset}, length {length}, but {actual}"
            return
        self._seen.append((found[0],))
        if len(self._seen) >= BATCH:
            self._mark()
        yield from _against_record(line, found)

    def _file(self, name: str) -> tuple[int, int] | None:
        if name in self._files or not self._running:
            return self._files.get(name)
        return self._files.get(name.removesuffix(OPEN)) or self._files.get(
            name + OPEN
        )  # renamed since the line was written

    def _added_since(self, name: str) -> bool:
        """Return whether *name* is a file that was added since the others were listed, by a crawl or an import."""
        if not self._running and (PurePath(name).name != name or not name.endswith(WARC_ENDINGS)):
            return False
        try:
            return is_stored(self._path.parent.parent / "archive", PurePath(name).name)
        except OSError:  # such as a name that is too long
            return False

    def _mark(self) -> None:
        self._db.execute("BEGIN")
        self._db.executemany("UPDATE records SET indexed = 1 WHERE rowid = ?", self._seen)
        self._db.execute("COMMIT")
        self._seen.clear()


def unindexed_findings(
    db: sqlite3.Connection, *, running: bool, unfinished: Collection[str] = frozenset()
) -> Iterator[VerifyFinding]:
    """Yield the records that can be replayed but are in no index. *unfinished*: files whose import was interrupted."""
    behind: dict[str, int] = {}
    for path, offset, kind, url in db.execute(_UNINDEXED):
        if running or PurePath(path).name in unfinished:
            behind[path] = behind.get(path, 0) + 1
        else:
            yield VerifyFinding(path, "index-incomplete", "no index line for this record", offset, kind, url)
    for path, number in behind.items():
        count = f"{humanize.count(number, 'record is', 'records are')} not yet in the index"
        if PurePath(path).name in unfinished:
            remedy = "an import is running or was interrupted; if interrupted, run it again"
            yield VerifyFinding(path, UNFINISHED, f"{count}: {remedy}")
        else:
            yield VerifyFinding(path, "index-behind", count)


_NO_DIGIT = re.compile(r"\D")


def _lengths(length: int | None, name: str) -> tuple[int | None, ...]:
    """Return the lengths that a line may give for a record of *length* bytes: some indexers omit the final two CRLF."""
    return (length,) if length is None or name.removesuffix(OPEN).endswith(".gz") else (length, length - 4)


def _key(url: str) -> str:
    try:
        return lookup_key(url)
    except ValueError:  # a port beyond 65535, or half a surrogate pair
        return ""


def _against_record(line: StrictLine, found: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    _, _, kind, url, date, digest, status, mime = found
    entry = line.fields
    digits = _NO_DIGIT.sub("", date)
    if not (digits + "000000").startswith(line.timestamp):
        yield "index-key", f"the timestamp is {line.timestamp}, but the record's date is {date}"
    language = str(entry.get(ACCEPT_LANGUAGE, ""))
    if entry["url"] != (variant_url(url, language) if language else url):
        yield "index-mismatch", f"the URL is {str(entry['url'])[:200]!r}, but the record's is {url[:200]!r}"
    stated_digest = str(entry["digest"])  # some indexers omit the algorithm
    if digest and stated_digest not in (digest, digest.rpartition(":")[2]):
        yield "index-mismatch", f"the digest is {stated_digest[:100]!r}, but the record's is {digest!r}"
    http = url.startswith(("http:", "https:"))  # entries of other schemes describe the record itself
    stated = str(entry.get("status", "-"))
    if http and (kind == "response" or (kind == "revisit" and status)) and stated != (str(status) if status else "-"):
        yield "index-mismatch", f"the status is {stated[:20]!r}, but the record's is {status}"
    named = str(entry.get("mime", ""))
    if ((http and kind == "response") or kind == "resource") and mime and named.lower() != mime:
        yield "index-mismatch", f"the media type is {named[:100]!r}, but the record's is {mime!r}"
    if kind == "revisit" and mime and named.lower() not in (REVISIT, mime):
        yield "index-mismatch", f"the media type of a revisit is {named[:100]!r}"
