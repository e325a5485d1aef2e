"""Compare crawl.db with the records, in both directions.

Each capture's three records must be where crawl.db says, and each response must be a capture.

A crawl may be running, so only what was committed before the files were read is compared. Further records in an open
file are a note.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from archiver.ask import Ask
from archiver.collection.layout import Layout
from archiver.collection.records import LARGEST_METADATA, is_below, record_at
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.frontier.address import shared_frontier
from archiver.frontier.connection import Reader
from archiver.frontier.database import ASKED
from archiver.model import Profile, Truncation
from archiver.policy.retry import CUT, DAMAGE, OVERLOADED
from archiver.storage import OPEN, bare
from archiver.tools.verify.findings import VerifyFinding
from archiver.tools.verify.inventory import BATCH, mark
from archiver.tools.verify.resources import WarcExtent, resource_findings
from archiver.url import canonical
from archiver.warc.members import DamagedRecord
from archiver.warc.records import VisitMetadata, parse_date

_LARGEST_INTEGER = (1 << 63) - 1
_USUAL_DATE = 64  # characters at most

_CAPTURES = f"""
    SELECT warcs.name, captures.offset, response_length, request_length, metadata_length,
           urls.url, timestamp, captures.status, mime, payload_digest, truncated, revisit,
           {ASKED}
    FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
    ORDER BY captures.warc, captures.offset
"""  # noqa: S608 - a constant

_WITHOUT_CAPTURE = """
    SELECT url FROM urls WHERE state = 'archived' AND NOT EXISTS (SELECT 1 FROM captures WHERE captures.url = urls.id)
"""

_SETTLED_TWICE = """
    SELECT urls.url, count(*), requeued FROM captures JOIN urls ON urls.id = captures.url
    WHERE captures.status NOT IN (SELECT value FROM json_each(?)) AND truncated NOT IN (SELECT value FROM json_each(?))
      AND NOT (urls.priority < 0 AND captures.status >= 500) AND NOT (captures.status = 304 AND revisit = '')
      AND captures.status <> 401
    GROUP BY urls.id, captures.language HAVING count(*) > 1 + requeued
"""  # a final capture ends the visits of a URL until it is requested again; robots.txt errors and 304s are not final
# … nor is a 401, which the next request may have answered with a password

_METADATA = """
    SELECT warcs.name, captures.offset + response_length + request_length FROM captures
    JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
    WHERE urls.url = ? AND metadata_length > 0 LIMIT 1000
"""

_COUNTS = """
    WITH counted AS (
        SELECT host, count(*) FILTER (WHERE state = 'waiting') AS waiting,
               count(*) FILTER (WHERE state = 'archived') AS archived,
               count(*) FILTER (WHERE state = 'failed') AS failed,
               count(*) FILTER (WHERE state = 'excluded') AS excluded, count(*) FILTER (WHERE state = 'held') AS held,
               count(*) FILTER (WHERE tries > 0 AND priority >= 0) AS visited
        FROM urls GROUP BY host
    )
    SELECT key FROM hosts LEFT JOIN counted ON counted.host = hosts.id
    WHERE (hosts.waiting, hosts.archived, hosts.failed, hosts.excluded, hosts.visited, hosts.held) <>
          (coalesce(counted.waiting, 0), coalesce(counted.archived, 0), coalesce(counted.failed, 0),
           coalesce(counted.excluded, 0), coalesce(counted.visited, 0), coalesce(counted.held, 0))
"""

_RECORDS = """
    SELECT rowid, offset, length, type, id, concurrent, url, date, status, mime, digest, truncated FROM records
    WHERE file = ? AND offset >= ? AND inner = 0 ORDER BY offset
"""

_UNKNOWN = """
    SELECT offset, type, url FROM records
    WHERE file = ? AND captured = 0 AND offset < ? AND type IN ('response', 'revisit') ORDER BY offset
"""


@dataclass(frozen=True, slots=True)
class WarcRow:
    """A WARC file according to crawl.db."""

    committed: int
    closed: bool
    digest: str  # sha256:hex of all bytes of a closed file; empty if unknown
    indexed: bool = True  # whether its lines are known to be in index.cdxj


def committed_files(directory: Path) -> dict[str, WarcRow] | None:
    """Return the WARC files of *directory* in its database, by final name; None if that is empty.

    Raises `ConfigError` if its schema has another version, and `ArchiveError` if it is damaged or cannot be read.
    """
    with _readable(directory):
        totals.has_started(directory)
        try:
            with _opened(directory) as db:
                return _rows(db, directory)
        except ConfigError:
            return None


def _rows(db: Reader, directory: Path) -> dict[str, WarcRow]:
    sqlite = isinstance(db, sqlite3.Connection)
    damage = [line for (line,) in db.execute("PRAGMA integrity_check(3)") if line != "ok"] if sqlite else []
    if damage:
        raise ArchiveError(f"{directory / totals.NAME}: database is damaged: {'; '.join(damage)}")
    path = directory / totals.NAME
    shared = shared_frontier(path)
    machine = "" if shared is None else shared.machine  # files of other machines are in their directories
    rows = db.execute("SELECT name, committed, closed, digest, indexed FROM warcs WHERE machine = ?", (machine,))
    return {
        bare(name, path): WarcRow(size, bool(closed), digest, bool(indexed))
        for name, size, closed, digest, indexed in rows
    }


@contextmanager
def _opened(directory: Path) -> Iterator[Reader]:
    with totals.open_totals(directory) as db:
        if isinstance(db, sqlite3.Connection):
            db.text_factory = lambda text: text.decode(errors="replace")  # damage need not show in the structure
        yield db


@contextmanager
def _readable(directory: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite quotes a damaged schema in its message, which is not valid UTF-8
        raise ArchiveError(f"{directory / totals.NAME}: its schema is damaged") from error


class FrontierCheck:
    """Compares crawl.db of *directory* with the inventory; *before* is what it said before the files were read.

    It need not know *others*: imported files, and files of other crawls in the collection. Files that it *adopted* were
    written by other programs: they may have records that it does not know, and other spellings of URLs.
    """

    def __init__(
        self,
        inventory: sqlite3.Connection,
        directory: Path,
        before: dict[str, WarcRow],
        others: Collection[str] = frozenset(),
        adopted: Collection[str] = frozenset(),
    ) -> None:
        self._adopted = adopted
        self._inventory = inventory
        self._others = others
        self._directory = directory
        self._path = str(directory / totals.NAME)
        self._before = before
        rows = inventory.execute("SELECT name, id, path, read_to FROM files").fetchall()
        self._files = {name: rest for name, *rest in rows}
        self._seen: list[tuple[int]] = []
        self._records: Iterator[Any] = iter(())  # of file `_number`, behind `_record`
        self._record: Any = None
        self._number = self._passed = 0

    def findings(self) -> Iterator[VerifyFinding]:
        """Yield all differences between the database and the files. Raises what `open_totals` raises."""
        with _readable(self._directory), _opened(self._directory) as db:
            yield from self._sizes()
            for row in db.execute(_CAPTURES):
                yield from self._capture(_Row(*row))
            mark(self._inventory, "captured", self._seen)
            yield from resource_findings(db, self._inventory, self._known())
            for (url,) in db.execute(_WITHOUT_CAPTURE):
                yield VerifyFinding(
                    self._path, "archived-without-capture", "it is archived, but has no capture", url=url
                )
            yield from self._settled_twice(db)
            for (key,) in db.execute(_COUNTS):
                yield VerifyFinding(self._path, "host-counts", f"the counts of {key} do not match its URLs")
        yield from self._unknown()

    def _settled_twice(self, db: Reader) -> Iterator[VerifyFinding]:
        """Yield the URLs with several final captures; one that is damaged may have been requested once more."""
        values = json.dumps(sorted(OVERLOADED)), json.dumps(sorted(CUT))
        for url, times, requeued in db.execute(_SETTLED_TWICE, values).fetchall():
            places = db.execute(_METADATA, (url,)).fetchall()
            if times - sum(self._is_damaged(*place) for place in places) > 1 + requeued:
                message = f"it has {times} final captures instead of one"
                yield VerifyFinding(self._path, "settled-twice", message, url=url)

    def _is_damaged(self, name: str, offset: int) -> bool:
        """Return True if the metadata record at *offset* of the file *name* says that a body is damaged."""
        with suppress(ArchiveError, DamagedRecord, OSError, ValueError, OverflowError):  # they are findings elsewhere
            if is_below(name):
                with record_at(Layout(self._directory).archive, name, offset) as record:
                    notes = b"".join(record.pieces()) if (record.size or 0) <= LARGEST_METADATA else b""
                    return not DAMAGE.isdisjoint(VisitMetadata.parse(notes).faults)
        return False

    def _known(self) -> dict[str, WarcExtent]:
        files = ((name, row, self._file(name)) for name, row in self._before.items())
        return {
            name: WarcExtent(file[0], file[1], row.committed)
            for name, row, file in files
            if file is not None and name not in self._adopted
        }

    def _file(self, name: str) -> list[Any] | None:
        return self._files.get(name) or self._files.get(name + OPEN)

    def _sizes(self) -> Iterator[VerifyFinding]:
        where = quote(str(self._directory))
        remedy = f"restore a copy, or fetch its URLs again: archiver rebuild {where} && archiver resume {where}"
        if not Layout(self._directory).archive.is_dir():  # a crawl that another one has followed
            remedy = "restore a copy"
        for name, row in self._before.items():
            file = self._file(name)
            if file is None:
                if row.committed or row.closed:
                    yield VerifyFinding(self._path, "warc-missing", f"archive/{name} is missing; {remedy}")
                continue
            _, path, read_to = file
            if read_to < row.committed:
                yield VerifyFinding(path, "warc-length", f"it has {read_to} bytes, but {row.committed} were committed")
            elif row.closed and read_to > row.committed:
                message = f"crawl.db says it was closed at {row.committed} bytes, but it has {read_to}"
                yield VerifyFinding(path, "warc-length", message, row.committed)
            elif read_to > row.committed:
                message = f"{read_to - row.committed} bytes are not yet committed"
                yield VerifyFinding(path, "open-tail", message, row.committed)
        for name, (_, path, _) in self._files.items():
            if name.removesuffix(OPEN) not in self._before and name not in self._others:
                where = quote(str(self._directory))
                message = f"crawl.db does not list this file; if the crawl wrote it, run: archiver rebuild {where}"
                yield VerifyFinding(path, "warc-unknown", message)

    def _capture(self, row: "_Row") -> Iterator[VerifyFinding]:
        file, before = self._file(row.warc), self._before.get(row.warc)
        if file is None or before is None or (not before.closed and row.end > before.committed):
            return  # reported already, or written since
        number, path, _ = file
        found = self._between(number, row.offset, row.end)
        actual = [(record[3], record[1], record[2]) for record in found]  # type, offset, length
        expected = row.places()
        if actual != expected:
            found_places = _format_places(actual) or "no complete record"
            message = f"crawl.db says {_format_places(expected)}, but the file has {found_places}"
            yield VerifyFinding(path, "capture-place", message, row.offset, url=row.url)
            return
        self._seen.append((found[0][0],))
        if len(self._seen) >= BATCH:
            mark(self._inventory, "captured", self._seen)
        response, *others = found
        for field, actual_value, expected_value in row.differences(response, foreign=row.warc in self._adopted):
            message = f"the {field} is {actual_value!r:.200}, but crawl.db says {expected_value!r:.200}"
            yield VerifyFinding(path, "capture-mismatch", message, row.offset, response[3], row.url)
        for _, offset, _, kind, _, concurrent, url, date, *_ in others:
            if url != row.target or _micros(date) != row.timestamp or concurrent != response[4]:
                message = "it does not match the response before it"
                yield VerifyFinding(path, "capture-mismatch", message, offset, kind, row.url)

    def _between(self, number: int, start: int, stop: int) -> list[Any]:
        """Return the records of file *number* that begin from *start* to *stop*.

        Captures come in the order of their records, so one query for each file is enough, unless captures overlap.
        """
        if number != self._number or start < self._passed:
            self._records = iter(self._inventory.execute(_RECORDS, (number, start)))
            self._number, self._record = number, next(self._records, None)
        found: list[Any] = []
        while (record := self._record) is not None and record[1] < stop:
            if record[1] >= start:
                found.append(record)
            self._record = next(self._records, None)
        self._passed = stop
        return found

    def _unknown(self) -> Iterator[VerifyFinding]:
        for name, row in self._before.items():
            file = self._file(name)
            if file is not None and name not in self._adopted:
                for offset, kind, url in self._inventory.execute(_UNKNOWN, (file[0], row.committed)):
                    yield VerifyFinding(
                        file[1], "capture-missing", "crawl.db has no capture at this offset", offset, kind, url
                    )


class _Row(NamedTuple):
    """One row of captures."""

    warc: str
    offset: int
    response_length: int
    request_length: int
    metadata_length: int
    url: str
    timestamp: int
    status: int
    mime: str
    digest: str
    truncated: str
    revisit: str
    ask: str | None = None  # what was sent, if it was a POST

    @property
    def target(self) -> str:
        """The URL in its records."""
        return self.url if self.ask is None else Ask.of_text(self.ask).target

    @property
    def end(self) -> int:
        """The offset of its end, at most SQLite's largest integer, because the row may be damaged."""
        return min(self.offset + self.response_length + self.request_length + self.metadata_length, _LARGEST_INTEGER)

    def places(self) -> list[tuple[str, int, int]]:
        """Return type, offset and length of its three records, without those that were damaged when it was rebuilt."""
        request = self.offset + self.response_length
        places = [
            ("revisit" if self.revisit else "response", self.offset, self.response_length),
            ("request", request, self.request_length),
            ("metadata", request + self.request_length, self.metadata_length),
        ]
        return [place for place in places if place[2]]

    @property
    def _truncation(self) -> str:
        """The truncation in its record. A revisit without payload is truncated, whatever was received."""
        return Truncation.LENGTH.value if self.revisit == Profile.IDENTICAL else self.truncated

    def differences(self, record: tuple[Any, ...], *, foreign: bool) -> Iterator[tuple[str, Any, Any]]:
        """Yield the name, the value in the response *record* and our value of each field that differs.

        *foreign*: another program wrote it, which may spell URLs and truncations in its own way.
        """
        _, _, _, _, _, _, url, date, status, mime, digest, truncated = record
        if foreign:
            url, truncated = canonical(url) or url, self._truncation
        pairs = [("URL", url, self.target), ("date", _micros(date), self.timestamp), ("digest", digest, self.digest)]
        pairs.append(("truncation", truncated, self._truncation))
        if self.revisit != Profile.NOT_MODIFIED:  # its block is empty
            pairs += [("status", status, self.status), ("media type", mime, self.mime)]
        return (pair for pair in pairs if pair[1] != pair[2])


def _format_places(places: list[tuple[str, int, int]]) -> str:
    return ", ".join(f"{kind} {offset}+{length}" for kind, offset, length in places)


def _micros(date: str) -> int | None:
    """Return *date* in microseconds; None if it is invalid. The records of a visit have the same."""
    return _usual_micros(date) if len(date) <= _USUAL_DATE else _read_micros(date)


def _read_micros(date: str) -> int | None:
    try:
        return parse_date(date)
    except ValueError:
        return None


_usual_micros = lru_cache(maxsize=256)(_read_micros)
