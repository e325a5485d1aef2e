"""Read one WARC file, or a piece of one, and check its structure, fields and digests.

Reading continues after damage if another record can be found. Memory does not grow with the size or number of records.
ARC files are read with warcio; they have no digests to check.

In files that this program wrote, the bits that neither CRC nor length of a gzip member cover are checked too. The
header is a constant, and the bits after the deflate data are zero. A change that leaves the data unchanged stays
undetected, such as another distance inside a run of one byte.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib

from archiver.storage import OPEN
from archiver.tools.verify.digests import RecordFinding
from archiver.tools.verify.findings import Findings, VerifyFinding
from archiver.tools.verify.inventory import InventoryWriter, connect, text
from archiver.tools.verify.record_checks import BlockCheck, field_findings
from archiver.tools.verify.usual_blocks import summary_of, usual_summary
from archiver.warc import arc, writer
from archiver.warc.members import BROKEN, DamagedRecord
from archiver.warc.reader import Record, scan
from archiver.warc.records import says_all
from archiver.warc.warcinfo import ForgedRecords

HEADER = writer.HEADER
TRAILER = 8  # CRC and length


def begins_as_written(file: BinaryIO, offset: int) -> bool:
    """Return whether a gzip member with this program's header begins at *offset* of *file*."""
    file.seek(offset)
    return file.read(len(HEADER)) == HEADER


def uncovered_findings(file: BinaryIO, offset: int, length: int) -> Iterator[RecordFinding]:
    """Return how the intact member of *length* bytes at *offset* differs from what this program writes."""
    file.seek(offset)
    header = file.read(len(HEADER))
    if header != HEADER:
        yield "gzip-altered", f"the gzip header is {header.hex()}, but this program writes {HEADER.hex()}"
    file.seek(offset + length - TRAILER - 1)
    last = file.read(1)[0]
    if last and _is_padding(file, offset, length, last):
        yield "gzip-altered", "the bits after the gzip member's data are not zero, as this program writes them"


def _is_padding(file: BinaryIO, offset: int, length: int, last: int) -> bool:
    """Return whether the highest set bit of the last data byte is padding.

    With that bit cleared the data must still decode. The bit could also be the last bit of a distance, where another
    place holds the same bytes and only zeros follow. So the data must also decode with all bits from there on set.
    """
    top = last.bit_length() - 1
    readings = (last & ~(1 << top), last | (0xFF << top) & 0xFF)
    return all(reading == last or _decodes(file, offset, length, reading) for reading in readings)


def _decodes(file: BinaryIO, offset: int, length: int, last: int) -> bool:
    """Return whether the member decodes with *last* as the last byte of its data."""
    file.seek(offset)
    changed = length - TRAILER - 1
    engine = isal_zlib.decompressobj(31)
    given = 0
    try:
        while given < length and not engine.eof:
            piece = bytearray(file.read(min(CHUNK, length - given)))
            if not piece:
                return False
            if given <= changed < given + len(piece):
                piece[changed - given] = last
            given += len(piece)
            _inflate(engine, bytes(piece))
    except BROKEN:
        return False
    return engine.eof and given == length and not engine.unused_data


def _inflate(engine: Any, piece: bytes) -> None:
    """Decode *piece* to its end and discard the output."""
    while not engine.eof:
        data = engine.decompress(piece, CHUNK)
        piece = engine.unconsumed_tail
        if not piece and not data:
            return


CHUNK = 64 << 10
STEP = 1 << 20  # bytes between two progress reports

_CUT = frozenset({"gzip-cut", "header-cut", "block-cut", "record-cut"})
_VISIT_ENDS = ("metadata", "warcinfo", "resource")  # the record types after which a file of this program may end


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A file to read, or those of its records that begin in `start` to `stop`.

    `committed` is the committed length in crawl.db, None if unknown. With `summed`, crawl.db has a checksum of the
    whole file, so bytes that no gzip checksum covers need no check.
    """

    path: Path
    inventory: Path
    committed: int | None = None
    summed: bool = False
    start: int = 0
    stop: int | None = None
    shown: str = ""  # the name in findings, if it is not the path

    @property
    def name(self) -> str:
        """The name in findings."""
        return self.shown or str(self.path)


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result for one file or piece; its records are in the inventory."""

    size: int
    records: int
    ended: int  # offset of the first record of the next piece, or the end of the file
    unhashed: int  # records without a block digest
    counts: Mapping[str, int]
    kept: tuple[VerifyFinding, ...]


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The result of one file: each piece with its inventory, in order, and the file's checksum if it was requested."""

    pieces: tuple[tuple[Path, FileResult], ...]
    sum: str


def check_file(job: ReadJob, at: Callable[[int], None]) -> FileResult:
    """Read the file of *job*. *at* receives the current offset now and then. Never raises for the file's content."""
    findings = Findings()
    name = job.name
    size = 0
    with closing(connect(job.inventory)) as db:
        reading = _Reading(job, findings, InventoryWriter(db), at)
        try:
            with current_path(job.path).open("rb") as file, current_path(job.path).open("rb") as again:
                size = fstat(file.fileno()).st_size
                reading.run(file, again)
        except OSError as error:
            findings.add(VerifyFinding(name, "unreadable", error.strerror or str(error)))
        names = _as_utf8(name), _as_utf8(job.path.name)
        db.execute("INSERT INTO files VALUES (1, ?, ?, ?, ?)", (*names, size, reading.whole_to))
    ended = size if reading.ended is None else reading.ended
    return FileResult(size, reading.records, ended, reading.unhashed, dict(findings.counts), tuple(findings.kept))


def _as_utf8(name: str) -> str:
    """Return *name* with bytes that are not UTF-8 as escapes; SQLite cannot hold them."""
    return name.encode("utf-8", "backslashreplace").decode()


def current_path(path: Path) -> Path:
    """Return the current path: a running crawl may have renamed the file since the folder was listed."""
    final = path.with_name(path.name.removesuffix(OPEN))
    return final if not path.exists() and final.exists() else path


def file_sum(path: Path, at: Callable[[int], None]) -> str:
    """Return the checksum of all bytes of *path*, in the form of crawl.db; empty if it cannot be read."""
    state = hashlib.sha256()
    try:
        with current_path(path).open("rb") as file:
            while piece := file.read(STEP):
                state.update(piece)
                at(0)
    except OSError:
        return ""  # reported when the file is read
    return f"sha256:{state.hexdigest()}"


def _has_own_gzip_headers(file: BinaryIO) -> bool:
    """Return True if the gzip headers of *file* are those that this program writes; other compressors write others.

    One of the first two is enough, because a byte of the other may have changed.
    """
    offsets = [item.offset for item in islice(scan(file), 2)]
    return any(begins_as_written(file, offset) for offset in offsets)


def _answers_head(file: BinaryIO, record: Record) -> bool:
    """Return True if the record behind *record*, a response, is a request for its head alone."""
    if record.length is None:
        return False
    item = next(scan(file, record.offset + record.length), None)
    if not isinstance(item, Record) or record.first("WARC-Record-ID") not in item.all("WARC-Concurrent-To"):
        return False
    with suppress(DamagedRecord):
        return item.type == "request" and next(iter(item.pieces()), b"").startswith(b"HEAD ")
    return False


class _Reading:
    """The checks of one file."""

    def __init__(self, job: ReadJob, findings: Findings, inventory: InventoryWriter, at: Callable[[int], None]) -> None:
        self._job = job
        self._name = job.name
        self._findings = findings
        self._inventory = inventory
        self._at = at
        self._pending: DamagedRecord | None = (
            None  # not yet reported: what it means depends on whether anything follows it
        )
        self._since = 0  # bytes since the last progress report
        self._shared = -1
        self._ours = False
        self._last = ""  # type of the last whole record, if its visit needs more records
        self._says_all = ""  # Record-ID of the last revisit whose visit has no metadata record
        self.records = 0
        self.unhashed = 0
        self.whole_to = 0
        self.ended: int | None = None

    def run(self, file: BinaryIO, again: BinaryIO) -> None:
        """Read *file*; *again* is the same file, opened a second time."""
        forged = ForgedRecords(again)
        self._ours = forged.ours and _has_own_gzip_headers(again)
        self._scan(file, again, forged)
        self._at(file.tell())
        if self.records == 0 and self._pending is not None and self._pending.word == "arc":
            self._findings.add(VerifyFinding(self._name, "arc", "an ARC file, the predecessor of WARC"))
            file.seek(0)
            result = arc.check(file)
            for sentence, offset in result.faults:
                self._findings.add(VerifyFinding(self._name, "arc-broken", sentence, offset))
            self.records = result.records
            return
        if self.records == 0 and self._pending is None and self._job.start == 0:
            self._findings.add(VerifyFinding(self._name, "no-record", "the file has no records"))
        self._end()
        self._inventory.flush()

    def _scan(self, file: BinaryIO, again: BinaryIO, forged: ForgedRecords) -> None:
        for item in scan(file, self._job.start):
            if self._job.stop is not None and item.offset >= self._job.stop:
                self.ended = item.offset
                return
            if self._pending is not None:
                self._report_pending(last=False)
            is_forged = forged.is_forged(item)
            if isinstance(item, DamagedRecord):
                self._pending = item
                if item.word == "arc" and self.records == 0:
                    return
                continue
            if is_forged:
                self._add(item, "record-foreign", "its WARC-Warcinfo-ID does not name this file")
                continue
            self.records += 1
            if self.records == 1 and self._job.start == 0 and item.type != "warcinfo":
                self._add(item, "no-warcinfo", f"the first record has type {text(item.type) or 'unknown'}")
            self._check(item, file, again)
            if self._ours and not self._job.summed and item.length is not None:
                for code, message in uncovered_findings(again, item.offset, item.length):
                    self._add(item, code, message)

    def _check(self, record: Record, file: BinaryIO, again: BinaryIO) -> None:
        for code, message in field_findings(record):
            self._add(record, code, message)
        self._since += record.header_length
        block = record.take_block()
        summary = None if block is None else usual_summary(record, block)
        if summary is None:
            check = BlockCheck(record)
            try:
                for piece in record.pieces() if block is None else (block,):
                    check.feed(piece)
                    self._tell(len(piece), file)
            except DamagedRecord:
                return  # the scan returns it next
            check.finish()
            for code, message in check.findings():
                if code != "truncation-unmarked" or not _answers_head(again, record):
                    self._add(record, code, message)
            summary = summary_of(check)
        else:
            self._tell(record.size or 0, file)
        if record.length is None and self._shared != record.offset:
            self._shared = record.offset
            self._add(record, "member-shared", "the gzip member at this offset has several records")
        if says_all(record):
            self._says_all = record.first("WARC-Record-ID") or ""
        is_last = record.type == "request" and record.first("WARC-Concurrent-To") == self._says_all
        self._last = "" if is_last or record.type in _VISIT_ENDS else record.type
        self.whole_to = record.offset + (record.length or 0)
        self.unhashed += "WARC-Block-Digest" not in record.values
        self._inventory.add(record, summary)

    def _tell(self, size: int, file: BinaryIO) -> None:
        """Report the place in *file* now and then; *size* more bytes were read."""
        self._since += size
        if self._since >= STEP:
            self._since = 0
            self._at(file.tell())

    def _end(self) -> None:
        alone = not (self._name.endswith(OPEN) or self._job.summed)  # else crawl.db says where it ends
        if self.ended is None and alone and self._ours and self._pending is None and self._last:
            message = f"the file ends after a {text(self._last)[:40]} record: the rest of its visit is missing"
            self._findings.add(VerifyFinding(self._name, "visit-cut", message, self.whole_to))
        self._report_pending(last=True)

    def _report_pending(self, *, last: bool) -> None:
        damage, self._pending = self._pending, None
        if damage is None:
            return
        committed = self._job.committed
        open_end = committed is None and last and damage.word in _CUT and self._name.endswith(OPEN)
        if open_end or (committed is not None and damage.offset >= committed):
            self._findings.add(
                VerifyFinding(self._name, "open-tail", f"incomplete from here: {damage.reason}", damage.offset)
            )
        else:
            self._findings.add(VerifyFinding(self._name, damage.word, damage.reason, damage.offset))

    def _add(self, record: Record, code: str, message: str) -> None:
        url = text(record.first("WARC-Target-URI"))[:2000]
        self._findings.add(VerifyFinding(self._name, code, text(message), record.offset, text(record.type)[:40], url))
