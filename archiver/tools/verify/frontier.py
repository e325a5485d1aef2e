"""crawl.db against the records, both ways: each capture's three records lie where it says, each response is a capture.

A crawl may be running: only what was committed before the files were read is compared, and what an open file
holds beyond that is a note.

Records that belong to no visit against the rows by which crawl.db knows them, both ways.

Only what was committed before the files were read is compared. A database of an older schema knows of none.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from archiver.collection.layout import Layout
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.model import Profile, Truncation
from archiver.policy.retry import CUT, OVERLOADED
from archiver.storage import OPEN, bare
from archiver.tools.verify.findings import Fault
from archiver.tools.verify.inventory import BATCH
from archiver.warc.records import parse_date

_ROWS = """
    SELECT warcs.name, offset, length, uri, timestamp, mime, records.digest
    FROM records JOIN warcs ON warcs.id = records.warc ORDER BY records.warc, offset
"""
_THERE = """
    SELECT length, type, url, date, mime, digest FROM records WHERE file = ? AND offset = ? AND inner = 0
"""
_OFFSETS = "SELECT offset FROM records JOIN warcs ON warcs.id = records.warc WHERE warcs.name = ?"
_RESOURCES = "SELECT offset, url FROM records WHERE file = ? AND offset < ? AND type = 'resource' ORDER BY offset"


class WarcExtent(NamedTuple):
    """A file of the inventory, and how much of it crawl.db spoke of before it was read."""

    number: int
    path: str
    committed: int


def resource_faults(
    db: sqlite3.Connection, inventory: sqlite3.Connection, files: Mapping[str, WarcExtent]
) -> Iterator[Fault]:
    """Everything in which *db* and the *inventory* of *files*, by final name, say different things of such records."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'").fetchone():
        return
    for name, offset, length, *ours in db.execute(_ROWS):
        file = files.get(name.removesuffix(OPEN))
        if file is None or offset >= file.committed:
            continue  # named already, or written since
        found = inventory.execute(_THERE, (file.number, offset)).fetchone()
        if found is None or found[:2] != (length, "resource"):
            there = f"{found[1]} {offset}+{found[0]}" if found else "nothing whole"
            sentence = f"crawl.db says resource {offset}+{length}; there is {there}"
            yield Fault(file.path, "capture-place", sentence, offset, url=ours[0])
            continue
        for what, is_there, said in _differences(found[2:], tuple(ours)):
            sentence = f"the {what} is {is_there!r:.200}, crawl.db says {said!r:.200}"
            yield Fault(file.path, "capture-mismatch", sentence, offset, "resource", ours[0])
    for name, file in files.items():
        known = {row[0] for row in db.execute(_OFFSETS, (name,))}
        for offset, url in inventory.execute(_RESOURCES, (file.number, file.committed)):
            if offset not in known:
                yield Fault(file.path, "capture-missing", "crawl.db knows of no record here", offset, "resource", url)


def _differences(there: tuple[Any, ...], ours: tuple[Any, ...]) -> Iterator[tuple[str, Any, Any]]:
    url, date, mime, digest = there
    try:
        moment: int | None = parse_date(date)
    except ValueError:
        moment = None
    pairs = zip(("URL", "date", "media type", "digest"), (url, moment, mime, digest), ours, strict=True)
    return (pair for pair in pairs if pair[1] != pair[2])


_MOST = (1 << 63) - 1

_CAPTURES = """
    SELECT warcs.name, captures.offset, response_length, request_length, metadata_length,
           urls.url, timestamp, captures.status, mime, payload_digest, truncated, {revisit}
    FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
    ORDER BY captures.warc, captures.offset
"""

_LOST = """
    SELECT url FROM urls WHERE state = 'archived' AND NOT EXISTS (SELECT 1 FROM captures WHERE captures.url = urls.id)
"""

_TWICE = """
    SELECT urls.url, count(*), {again} AS again FROM captures JOIN urls ON urls.id = captures.url
    WHERE captures.status NOT IN (SELECT value FROM json_each(?)) AND truncated NOT IN (SELECT value FROM json_each(?))
      AND NOT (urls.priority < 0 AND captures.status >= 500) AND NOT (captures.status = 304 AND {revisit} = '')
    GROUP BY urls.id HAVING count(*) > 1 + again
"""  # Every other answer is the last word on its URL, until somebody asks for it again; no error is on a robots.txt,
# and no 304 that spoke of another version.

_COUNTS = """
    WITH counted AS (
        SELECT host, sum(state = 'waiting') AS waiting, sum(state = 'archived') AS archived,
               sum(state = 'failed') AS failed, sum(state = 'excluded') AS excluded,
               sum(tries > 0 AND priority >= 0) AS spent{held}
        FROM urls GROUP BY host
    )
    SELECT key FROM hosts LEFT JOIN counted ON counted.host = hosts.id
    WHERE (hosts.waiting, hosts.archived, hosts.failed, hosts.excluded, hosts.spent{hosts_held}) IS NOT
          (coalesce(counted.waiting, 0), coalesce(counted.archived, 0), coalesce(counted.failed, 0),
           coalesce(counted.excluded, 0), coalesce(counted.spent, 0){counted_held})
"""

_RECORDS = """
    SELECT rowid, offset, length, type, id, concurrent, url, date, status, mime, digest, truncated FROM records
    WHERE file = ? AND offset >= ? AND offset < ? AND inner = 0 ORDER BY offset
"""

_UNKNOWN = """
    SELECT offset, type, url FROM records
    WHERE file = ? AND captured = 0 AND offset < ? AND type IN ('response', 'revisit') ORDER BY offset
"""


@dataclass(frozen=True, slots=True)
class WarcRow:
    """What crawl.db says of one WARC file."""

    committed: int
    closed: bool
    digest: str  # of all bytes of a closed file, `sha256:hex`; empty where it is not known
    indexed: bool = True  # whether its lines are known to stand in index.cdxj


def committed_files(directory: Path) -> dict[str, WarcRow] | None:
    """The WARC files that crawl.db in *directory* knows now, by final name; None where it is empty.

    Raises `ConfigError` where a newer program wrote it, `ArchiveError` where it cannot be read or is damaged.
    """
    with _readable(directory):
        totals.begun(directory)
        try:
            with _opened(directory) as db:
                return _rows(db, directory)
        except ConfigError:
            return None


def _rows(db: sqlite3.Connection, directory: Path) -> dict[str, WarcRow]:
    damage = [said for (said,) in db.execute("PRAGMA integrity_check(3)") if said != "ok"]
    if damage:
        raise ArchiveError(f"{directory / totals.NAME}: it is damaged: {'; '.join(damage)}")
    digest = "digest" if _has(db, "warcs", "digest") else "''"  # schema version 1 did not know it
    rows = db.execute(f"SELECT name, committed, closed, {digest}, indexed FROM warcs")  # noqa: S608  one of two constants
    path = directory / totals.NAME
    return {
        bare(name, path): WarcRow(size, bool(closed), digest, bool(indexed))
        for name, size, closed, digest, indexed in rows
    }


@contextmanager
def _opened(directory: Path) -> Iterator[sqlite3.Connection]:
    with totals.open_totals(directory) as db:
        db.text_factory = lambda text: text.decode(errors="replace")  # damage need not show in the structure
        yield db


@contextmanager
def _readable(directory: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite quotes a damaged schema in its message, which Python cannot read
        raise ArchiveError(f"{directory / totals.NAME}: its schema is damaged") from error


def _twice(db: sqlite3.Connection) -> str:
    return _TWICE.format(
        again="urls.again" if _has(db, "urls", "again") else "0",  # schema version 2 did not know it
        revisit=_revisit(db),
    )


def _revisit(db: sqlite3.Connection) -> str:
    return "captures.revisit" if _has(db, "captures", "revisit") else "''"  # nor version 4


def _has(db: sqlite3.Connection, table: str, column: str) -> bool:
    """Whether *table* has *column*: older versions of the schema have fewer."""
    (count,) = db.execute("SELECT count(*) FROM pragma_table_info(?) WHERE name = ?", (table, column)).fetchone()
    return bool(count)


class FrontierCheck:
    """crawl.db of *directory* against the inventory; *before* is what it said before the files were read.

    Of *others*, files of other crawls in the same collection and imported ones, it need not know.
    """

    def __init__(
        self,
        inventory: sqlite3.Connection,
        directory: Path,
        before: dict[str, WarcRow],
        others: Collection[str] = frozenset(),
    ) -> None:
        self._inventory = inventory
        self._others = others
        self._directory = directory
        self._path = str(directory / totals.NAME)
        self._before = before
        rows = inventory.execute("SELECT name, id, path, read_to FROM files").fetchall()
        self._files = {name: rest for name, *rest in rows}
        self._seen: list[tuple[int]] = []

    def faults(self) -> Iterator[Fault]:
        """Everything in which the database and the files disagree. Raises what `account.opened` raises."""
        with _readable(self._directory), _opened(self._directory) as db:
            yield from self._sizes()
            for row in db.execute(_CAPTURES.format(revisit=_revisit(db))):
                yield from self._capture(_Row(*row))
            self._mark()
            yield from resource_faults(db, self._inventory, self._known())
            for (url,) in db.execute(_LOST):
                yield Fault(self._path, "archived-without-capture", "it counts as archived, without a capture", url=url)
            for url, times, _ in db.execute(_twice(db), (json.dumps(sorted(OVERLOADED)), json.dumps(sorted(CUT)))):
                sentence = f"it has {times} captures, and each of them is the last word"
                yield Fault(self._path, "settled-twice", sentence, url=url)
            if _has(db, "hosts", "archived"):
                for (key,) in db.execute(_COUNTS.format(**_held(db))):
                    yield Fault(self._path, "host-counts", f"the numbers of {key} are not those of its URLs")
        yield from self._unknown()

    def _known(self) -> dict[str, WarcExtent]:
        files = ((name, row, self._file(name)) for name, row in self._before.items())
        return {name: WarcExtent(file[0], file[1], row.committed) for name, row, file in files if file is not None}

    def _file(self, name: str) -> list[Any] | None:
        return self._files.get(name) or self._files.get(name + OPEN)

    def _sizes(self) -> Iterator[Fault]:
        where = quote(str(self._directory))
        cure = f"put a copy there, or let archiver rebuild {where} and archiver resume {where} fetch it again"
        if not Layout(self._directory).archive.is_dir():  # a crawl that another one has followed
            cure = "put a copy there"
        for name, row in self._before.items():
            file = self._file(name)
            if file is None:
                if row.committed or row.closed:
                    yield Fault(self._path, "warc-missing", f"archive/{name} is not there; {cure}")
                continue
            _, path, read_to = file
            if read_to < row.committed:
                yield Fault(path, "warc-length", f"it has {read_to} bytes, {row.committed} were committed")
            elif row.closed and read_to > row.committed:
                sentence = f"it is closed with {row.committed} bytes, and has {read_to}"
                yield Fault(path, "warc-length", sentence, row.committed)
            elif read_to > row.committed:
                sentence = f"{read_to - row.committed} bytes are not yet committed"
                yield Fault(path, "open-tail", sentence, row.committed)
        for name, (_, path, _) in self._files.items():
            if name.removesuffix(OPEN) not in self._before and name not in self._others:
                where = quote(str(self._directory))
                sentence = (
                    f"crawl.db does not know this file; if the crawl wrote it, archiver rebuild {where} takes it in"
                )
                yield Fault(path, "warc-unknown", sentence)

    def _capture(self, row: "_Row") -> Iterator[Fault]:
        file, before = self._file(row.warc), self._before.get(row.warc)
        if file is None or before is None or (not before.closed and row.end > before.committed):
            return  # named already, or written since
        number, path, _ = file
        found = self._inventory.execute(_RECORDS, (number, row.offset, row.end)).fetchall()
        there = [(kind, offset, length) for _, offset, length, kind, *_ in found]
        wanted = row.places()
        if there != wanted:
            sentence = f"crawl.db says {_listed(wanted)}; there is {_listed(there) or 'nothing whole'}"
            yield Fault(path, "capture-place", sentence, row.offset, url=row.url)
            return
        self._seen.append((found[0][0],))
        if len(self._seen) >= BATCH:
            self._mark()
        response, *others = found
        for what, theirs, ours in row.differences(response):
            sentence = f"the {what} is {theirs!r:.200}, crawl.db says {ours!r:.200}"
            yield Fault(path, "capture-mismatch", sentence, row.offset, response[3], row.url)
        for _, offset, _, kind, _, concurrent, url, date, *_ in others:
            if url != row.url or _micros(date) != row.timestamp or concurrent != response[4]:
                sentence = "it does not belong to the response before it"
                yield Fault(path, "capture-mismatch", sentence, offset, kind, row.url)

    def _mark(self) -> None:
        self._inventory.execute("BEGIN")
        self._inventory.executemany("UPDATE records SET captured = 1 WHERE rowid = ?", self._seen)
        self._inventory.execute("COMMIT")
        self._seen.clear()

    def _unknown(self) -> Iterator[Fault]:
        for name, row in self._before.items():
            file = self._file(name)
            if file is not None:
                for offset, kind, url in self._inventory.execute(_UNKNOWN, (file[0], row.committed)):
                    yield Fault(file[1], "capture-missing", "crawl.db knows of no capture here", offset, kind, url)


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

    @property
    def end(self) -> int:
        """Where it ends; a damaged row may say more than SQLite's integers hold."""
        return min(self.offset + self.response_length + self.request_length + self.metadata_length, _MOST)

    def places(self) -> list[tuple[str, int, int]]:
        """Type, offset and length of its three records, without those that were damaged when it was rebuilt."""
        request = self.offset + self.response_length
        places = [
            ("revisit" if self.revisit else "response", self.offset, self.response_length),
            ("request", request, self.request_length),
            ("metadata", request + self.request_length, self.metadata_length),
        ]
        return [place for place in places if place[2]]

    @property
    def _truncation(self) -> str:
        """What its record says: a revisit without the payload is cut, whatever was received."""
        return Truncation.LENGTH.value if self.revisit == Profile.IDENTICAL else self.truncated

    def differences(self, record: tuple[Any, ...]) -> Iterator[tuple[str, Any, Any]]:
        """In what the response *record* says something else: what, its word, and ours."""
        _, _, _, _, _, _, url, date, status, mime, digest, truncated = record
        pairs = [("URL", url, self.url), ("date", _micros(date), self.timestamp), ("digest", digest, self.digest)]
        pairs.append(("truncation", truncated, self._truncation))
        if self.revisit != Profile.NOT_MODIFIED:  # whose block is empty
            pairs += [("status", status, self.status), ("media type", mime, self.mime)]
        return (pair for pair in pairs if pair[1] != pair[2])


def _listed(places: list[tuple[str, int, int]]) -> str:
    return ", ".join(f"{kind} {offset}+{length}" for kind, offset, length in places)


def _micros(date: str) -> int | None:
    try:
        return parse_date(date)
    except ValueError:
        return None


def _held(db: sqlite3.Connection) -> dict[str, str]:
    """What the question for counts has in it besides, of a database that knows held URLs."""
    if not _has(db, "hosts", "held"):
        return {"held": "", "hosts_held": "", "counted_held": ""}
    return {
        "held": ", sum(state = 'held') AS held",
        "hosts_held": ", hosts.held",
        "counted_held": ", coalesce(counted.held, 0)",
    }
