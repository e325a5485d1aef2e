"""One WARC file, or a piece of one, read from its first byte to its last: structure, fields, digests, an inventory.

Reads on behind damage where a further record can be found. Memory does not grow with records or their number.
"""

import re
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
from archiver.verify.report import Fault, Findings
from archiver.verify.uncovered import begins_as_written, uncovered_findings
from archiver.warc.reader import Record, Torn, read, scan
from archiver.warc.records import says_all
from archiver.warc.warcinfo import Strays

STEP = 1 << 20  # bytes of blocks between two signs of life

_CUT = frozenset({"gzip-cut", "header-cut", "block-cut", "record-cut"})
_OURS = re.compile(rb"^software: archiver/", re.MULTILINE)
_VISIT_ENDS = ("metadata", "warcinfo", "resource")  # the types of record after which a file of this program may end


@dataclass(frozen=True, slots=True)
class Job:
    """What to read of one file: all of it, or the records that begin at `start` and before `stop`.

    `committed` is how much of it crawl.db speaks of, None where there is no such word. `summed`: that crawl.db knows
    the sum of all its bytes, so that a byte that no checksum of gzip covers need not be looked for.
    """

    path: Path
    inventory: Path
    committed: int | None = None
    summed: bool = False
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What reading one file, or a piece of it, gave; its records are in the inventory."""

    size: int
    records: int
    ended: int  # where the first record begins that was left to the next piece, or where the file ends
    unhashed: int  # records without a block digest
    counts: Mapping[str, int]
    kept: tuple[Fault, ...]


def check_file(job: Job, at: Callable[[int], None]) -> Outcome:
    """Read the file of *job*; *at* hears now and then at which byte the reading is. Never raises for what is in it."""
    findings = Findings()
    name = str(job.path)
    size = 0
    with closing(connect(job.inventory)) as db:
        reading = _Reading(job, findings, Shelf(db), at)
        try:
            with where_now(job.path).open("rb") as file, where_now(job.path).open("rb") as again:
                size = fstat(file.fileno()).st_size
                reading.run(file, again)
        except OSError as error:
            findings.add(Fault(name, "unreadable", error.strerror or str(error)))
        db.execute("INSERT INTO files VALUES (1, ?, ?, ?, ?)", (name, job.path.name, size, reading.whole_to))
    ended = size if reading.ended is None else reading.ended
    return Outcome(size, reading.records, ended, reading.unhashed, dict(findings.counts), tuple(findings.kept))


def where_now(path: Path) -> Path:
    """Where the file is now: a crawl that runs may have finished it since its folder was listed."""
    final = path.with_name(path.name.removesuffix(OPEN))
    return final if not path.exists() and final.exists() else path


def _is_ours(file: BinaryIO) -> bool:
    """Whether *file* is as this program wrote it, by what its warcinfo says and by how its members begin.

    One of the first two is enough: a byte of the other may have changed. Who compresses anew writes other ones.
    """
    try:
        for record in read(file):
            said = sum(_OURS.search(piece) is not None for piece in record.pieces())
            begin = (0, record.length or 0)
            return record.type == "warcinfo" and said > 0 and any(begins_as_written(file, place) for place in begin)
    except Torn:
        pass  # the scan will name it
    return False


class _Reading:
    """One file on its way through the checks."""

    def __init__(self, job: Job, findings: Findings, shelf: Shelf, at: Callable[[int], None]) -> None:
        self._job = job
        self._name = str(job.path)
        self._findings = findings
        self._shelf = shelf
        self._at = at
        self._pending: Torn | None = None  # not yet reported: what it means depends on whether anything follows it
        self._shared = -1
        self._ours = False
        self._last = ""  # the type of the last whole record, if more of its visit must follow
        self._says_all = ""  # the Record-ID of the last revisit whose visit has no metadata record
        self.records = 0
        self.unhashed = 0
        self.whole_to = 0
        self.ended: int | None = None

    def run(self, file: BinaryIO, again: BinaryIO) -> None:
        """Read *file*; *again* is the same file, for a second look at what was read."""
        self._ours = _is_ours(again)
        self._scan(file, again, Strays(again))
        if self.records == 0 and self._pending is not None and self._pending.word == "arc":
            self._findings.add(Fault(self._name, "arc", "an ARC file, the format before WARC"))
            file.seek(0)
            self.records = read_arc(file, self._name, self._findings)
            return
        if self.records == 0 and self._pending is None and self._job.start == 0:
            self._findings.add(Fault(self._name, "no-record", "the file holds no record"))
        self._end()
        self._shelf.flush()

    def _scan(self, file: BinaryIO, again: BinaryIO, strays: Strays) -> None:
        for item in scan(file, self._job.start):
            if self._job.stop is not None and item.offset >= self._job.stop:
                self.ended = item.offset
                return
            self._report_torn(last=False)
            stray = strays.is_stray(item)
            if isinstance(item, Torn):
                self._pending = item
                if item.word == "arc" and self.records == 0:
                    return
                continue
            if stray:
                self._add(item, "record-foreign", "its WARC-Warcinfo-ID is not that of this file")
                continue
            self.records += 1
            if self.records == 1 and self._job.start == 0 and item.type != "warcinfo":
                self._add(item, "no-warcinfo", f"the first record is a {text(item.type) or 'record'}")
            self._check(item, file)
            if self._ours and not self._job.summed and item.length is not None:
                for code, sentence in uncovered_findings(again, item.offset, item.length):
                    self._add(item, code, sentence)

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
        if says_all(record):
            self._says_all = record.first("WARC-Record-ID") or ""
        is_last = record.type == "request" and record.first("WARC-Concurrent-To") == self._says_all
        self._last = "" if is_last or record.type in _VISIT_ENDS else record.type
        self.whole_to = record.offset + (record.length or 0)
        self.unhashed += record.first("WARC-Block-Digest") is None
        self._shelf.add(record, check.framing)

    def _end(self) -> None:
        alone = not (self._name.endswith(OPEN) or self._job.summed)  # else crawl.db knows where it ends
        if self.ended is None and alone and self._ours and self._pending is None and self._last:
            sentence = f"the file ends with a {text(self._last)[:40]}: the rest of its visit is missing"
            self._findings.add(Fault(self._name, "visit-cut", sentence, self.whole_to))
        self._report_torn(last=True)

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
