"""The CDXJ index against the records, both ways.

Each line must point at a record of which it says the truth, keys must be those under which pywb looks up, lines
must be sorted bytewise, and each record that can be replayed must have a line. A crawl that is not finished may
have records that are not indexed yet, and lines for records written since: neither is a fault.
"""

import re
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path, PurePath
from typing import Any

from archiver import humanize
from archiver import url as urls
from archiver.collection.records import WARC_ENDINGS, is_stored
from archiver.storage import OPEN
from archiver.tools.verify.findings import Fault
from archiver.tools.verify.inventory import BATCH, text
from archiver.warc.cdxj import LONGEST_LINE, REVISIT, StrictLine, parse_strict_line

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
        SELECT 1 FROM records AS asked WHERE asked.type = 'request' AND asked.mime IN ('HEAD', 'OPTIONS')
        AND (asked.concurrent = placed.id AND asked.concurrent <> '' OR asked.id = placed.concurrent))
"""  # answers without a payload of their own are not listed


class IndexCheck:
    """One index against the inventory; `running`: the crawl is not finished."""

    def __init__(self, db: sqlite3.Connection, path: Path, *, running: bool) -> None:
        self._db = db
        self._path = path
        self._running = running
        self._files = {
            name: (number, whole_to) for number, name, whole_to in db.execute("SELECT id, name, whole_to FROM files")
        }
        self._seen: list[tuple[int]] = []

    def faults(self) -> Iterator[Fault]:
        """Everything that is wrong with the lines, in their order, then what they leave out."""
        try:
            yield from self._lines()
        except OSError as error:
            if not (self._running and isinstance(error, FileNotFoundError)):  # else merged into another since
                yield self._fault("unreadable", error.strerror or str(error), None)
                return
        self._mark()

    def _lines(self) -> Iterator[Fault]:
        before = b""
        with self._path.open("rb") as file:
            offset = 0
            for number, raw in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), start=1):
                if raw < before:
                    yield self._fault("index-order", f"line {number} sorts before the line above it", offset)
                if raw == before:
                    yield self._fault("index-repeated", f"line {number} repeats the line above it", offset)
                line = parse_strict_line(raw)
                if line is None:
                    yield self._fault(
                        "index-line", f"line {number} is not `key timestamp {{json}}` with all its parts", offset
                    )
                else:
                    for code, sentence in self._check(line):
                        yield self._fault(code, f"line {number}: {sentence}", offset, str(line.fields["url"]))
                before = raw
                offset += len(raw)

    def _fault(self, code: str, sentence: str, offset: int | None, url: str = "") -> Fault:
        return Fault(str(self._path), code, text(sentence), offset, url=text(url[:2000]))

    def _check(self, line: StrictLine) -> Iterator[tuple[str, str]]:
        entry = line.fields
        if "method" not in entry and str(entry["url"]).startswith(("http://", "https://")):
            key = _key(str(entry["url"]))
            if key != line.key:
                yield "index-key", f"the key is {line.key[:200]!r}, pywb looks for {key[:200]!r}"
        file = self._file(str(entry["filename"]))
        if file is None:
            if self._come_since(str(entry["filename"])):
                return
            yield "index-file", f"no file {str(entry['filename'])[:200]!r} in the archive"
            return
        number, whole_to = file
        offset, length = int(entry["offset"]), int(entry["length"])
        if offset >= whole_to and self._running:
            return  # written since
        found = self._db.execute(_RECORD, (number, offset)).fetchone()
        if found is None or length not in _lengths(found[1], str(entry["filename"])):
            there = "no whole record begins there" if found is None else f"the record there has {found[1]} bytes"
            yield "index-place", f"it says offset {offset}, length {length}; {there}"
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

    def _come_since(self, name: str) -> bool:
        """Whether *name* is a file that a crawl has begun, or an import brought in, since the others were found."""
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


def unindexed_faults(
    db: sqlite3.Connection, *, running: bool, arriving: Collection[str] = frozenset()
) -> Iterator[Fault]:
    """Records that can be replayed and stand in no index; *arriving*: files whose import has not come to its end."""
    behind: dict[str, int] = {}
    for path, offset, kind, url in db.execute(_UNINDEXED):
        if running or PurePath(path).name in arriving:
            behind[path] = behind.get(path, 0) + 1
        else:
            yield Fault(path, "index-incomplete", "no line of the index points at this record", offset, kind, url)
    for path, number in behind.items():
        count = f"{humanize.count(number, 'record is', 'records are')} not yet in the index"
        if PurePath(path).name in arriving:
            cure = "an import was stopped, or is under way; once more, the same import ends it"
            yield Fault(path, UNFINISHED, f"{count}: {cure}")
        else:
            yield Fault(path, "index-behind", count)


def _lengths(length: int | None, name: str) -> tuple[int | None, ...]:
    """What a line may say of a record of *length* bytes: some indexers leave out the two CRLF that end it."""
    return (length,) if length is None or name.removesuffix(OPEN).endswith(".gz") else (length, length - 4)


def _key(url: str) -> str:
    try:
        return urls.surt(url)
    except ValueError:  # a port beyond 65535, or half a surrogate pair
        return ""


def _against_record(line: StrictLine, found: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    _, _, kind, url, date, digest, status, mime = found
    entry = line.fields
    digits = re.sub(r"\D", "", date)
    if not (digits + "000000").startswith(line.timestamp):
        yield "index-key", f"the timestamp is {line.timestamp}, the record's date {date}"
    if entry["url"] != url:
        yield "index-mismatch", f"the URL is {str(entry['url'])[:200]!r}, the record's {url[:200]!r}"
    stated_digest = str(entry["digest"])  # some indexers leave the algorithm out
    if digest and stated_digest not in (digest, digest.rpartition(":")[2]):
        yield "index-mismatch", f"the digest is {stated_digest[:100]!r}, the record's {digest!r}"
    http = url.startswith(("http:", "https:"))  # others are listed by what the record says, not by what is in it
    stated = str(entry.get("status", "-"))
    if http and (kind == "response" or (kind == "revisit" and status)) and stated != (str(status) if status else "-"):
        yield "index-mismatch", f"the status is {stated[:20]!r}, the record's {status}"
    named = str(entry.get("mime", ""))
    if ((http and kind == "response") or kind == "resource") and mime and named.lower() != mime:
        yield "index-mismatch", f"the media type is {named[:100]!r}, the record's {mime!r}"
    if kind == "revisit" and mime and named.lower() not in (REVISIT, mime):
        yield "index-mismatch", f"the media type of a revisit is {named[:100]!r}"
