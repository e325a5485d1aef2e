"""One WARC file read from its first byte to its last: structure, fields, digests, and an inventory of its records.

Reads on behind damage where a further record can be found. Memory does not grow with records or their number.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from os import fstat
from pathlib import Path
from typing import BinaryIO

from archiver.archive.layout import OPEN
from archiver.verify.arc import read_arc
from archiver.verify.digests import BlockCheck
from archiver.verify.fields import field_findings
from archiver.verify.inventory import Shelf, connect, text
from archiver.verify.report import Fault, FileRead, Findings
from archiver.warc.reader import Record, Torn, scan

STEP = 1 << 20  # bytes of blocks between two signs of life

_CUT = frozenset({"gzip-cut", "header-cut", "block-cut", "record-cut"})


@dataclass(frozen=True, slots=True)
class Job:
    """One file to read: `committed` is how much of it crawl.db speaks of, None where there is no such word."""

    path: Path
    inventory: Path
    committed: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What reading one file gave; its records are in the inventory."""

    read: FileRead
    counts: Mapping[str, int]
    kept: tuple[Fault, ...]


def check_file(job: Job, at: Callable[[int], None]) -> Outcome:
    """Read the file of *job*; *at* hears now and then at which byte the reading is. Never raises for what is in it."""
    findings = Findings()
    name = str(job.path)
    size = records = 0
    with closing(connect(job.inventory)) as db:
        reading = _Reading(job, findings, Shelf(db), at)
        try:
            with _now(job.path).open("rb") as file:
                size = fstat(file.fileno()).st_size
                records = reading.run(file)
        except OSError as error:
            findings.add(Fault(name, "unreadable", error.strerror or str(error)))
        db.execute("INSERT INTO files VALUES (1, ?, ?, ?, ?)", (name, job.path.name, size, reading.whole_to))
    return Outcome(FileRead(name, size, records), dict(findings.counts), tuple(findings.kept))


def _now(path: Path) -> Path:
    """Where the file is now: a crawl that runs may have finished it since its folder was listed."""
    final = path.with_name(path.name.removesuffix(OPEN))
    return final if not path.exists() and final.exists() else path


class _Reading:
    """One file on its way through the checks."""

    def __init__(self, job: Job, findings: Findings, shelf: Shelf, at: Callable[[int], None]) -> None:
        self._job = job
        self._name = str(job.path)
        self._findings = findings
        self._shelf = shelf
        self._at = at
        self._pending: Torn | None = None  # not yet reported: what it means depends on whether anything follows it
        self._unhashed = 0
        self._shared = -1
        self.whole_to = 0

    def run(self, file: BinaryIO) -> int:
        records = 0
        for item in scan(file):
            self._report_torn(last=False)
            if isinstance(item, Torn):
                self._pending = item
                continue
            records += 1
            if records == 1 and item.type != "warcinfo":
                self._add(item, "no-warcinfo", f"the first record is a {text(item.type) or 'record'}")
            self._check(item, file)
        if records == 0 and self._pending is not None and self._pending.word == "arc":
            self._findings.add(Fault(self._name, "arc", "an ARC file, the format before WARC"))
            file.seek(0)
            return read_arc(file, self._name, self._findings)
        if records == 0 and self._pending is None:
            self._findings.add(Fault(self._name, "no-record", "the file holds no record"))
        self._report_torn(last=True)
        self._shelf.flush()
        if self._unhashed:
            self._findings.add(Fault(self._name, "digest-missing", f"{self._unhashed} records have no block digest"))
        return records

    def _check(self, record: Record, file: BinaryIO) -> None:
        for code, sentence in field_findings(record):
            self._add(record, code, sentence)
        check = BlockCheck(record)
        since = 0
        self._at(file.tell())
        try:
            for piece in record.pieces():
                check.feed(piece)
                if (since := since + len(piece)) >= STEP:
                    since = 0
                    self._at(file.tell())
        except Torn:
            return  # the scan gives it next
        check.finish()
        for code, sentence in check.findings():
            self._add(record, code, sentence)
        if record.length is None and self._shared != record.offset:
            self._shared = record.offset
            self._add(record, "member-shared", "several records share the gzip member that begins here")
        self.whole_to = record.offset + (record.length or 0)
        self._unhashed += record.first("WARC-Block-Digest") is None
        self._shelf.add(record, check.framing)

    def _report_torn(self, *, last: bool) -> None:
        torn, self._pending = self._pending, None
        if torn is None:
            return
        committed = self._job.committed
        open_end = committed is None and last and torn.word in _CUT and self._name.endswith(OPEN)
        if open_end or (committed is not None and torn.offset >= committed):
            self._findings.add(Fault(self._name, "open-tail", f"not whole from here on: {torn.reason}", torn.offset))
        else:
            self._findings.add(Fault(self._name, torn.word, torn.reason, torn.offset))

    def _add(self, record: Record, code: str, sentence: str) -> None:
        url = text(record.first("WARC-Target-URI"))[:2000]
        self._findings.add(Fault(self._name, code, text(sentence), record.offset, text(record.type)[:40], url))
