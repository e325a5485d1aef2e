"""Compare an index with the records of the inventory.

Each line must match its record, keys must be those that pywb looks up, lines must be sorted bytewise, and each record
that can be replayed needs a line. The index of an unfinished crawl may lack recent records, or have lines for records
written since: neither is a fault.
"""

import re
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path, PurePath
from typing import Any

from archiver import humanize
from archiver.collection.records import WARC_ENDINGS, is_stored
from archiver.storage import OPEN
from archiver.tools.verify.findings import VerifyFinding
from archiver.tools.verify.inventory import BATCH, mark, text
from archiver.warc.cdxj import LONGEST_LINE, REVISIT, StrictLine, lookup_key, parse_strict_line, variant_url
from archiver.warc.records import ACCEPT_LANGUAGE

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
        self._look = db.cursor().execute
        self._seen: list[tuple[int]] = []

    def findings(self) -> Iterator[VerifyFinding]:
        """Yield the findings for the lines, in their order."""
        try:
            yield from self._lines()
        except OSError as error:
            if not (self._running and isinstance(error, FileNotFoundError)):  # else it was merged into another file
                yield self._finding("unreadable", error.strerror or str(error), None)
                return
        mark(self._db, "indexed", self._seen)

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
        found = self._look(_RECORD, (number, offset)).fetchone()
        if found is None or length not in _lengths(found[1], str(entry["filename"])):
            actual = "no complete record begins there" if found is None else f"the record there has {found[1]} bytes"
            yield "index-place", f"it says offset {offset}, length {length}, but {actual}"
            return
        self._seen.append((found[0],))
        if len(self._seen) >= BATCH:
            mark(self._db, "indexed", self._seen)
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
_PUNCTUATION = dict.fromkeys(map(ord, "-T:.Z"))  # of a usual date


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
    digits = date.translate(_PUNCTUATION)
    if not digits.isdecimal():
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
