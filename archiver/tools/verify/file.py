"""One WARC file, or a piece of one, read from its first byte to its last: structure, fields, digests, an inventory.

Reads on behind damage where a further record can be found. Memory does not grow with records or their number.

The bits of a gzip member that neither its CRC nor its length covers, in the files that this program wrote.

Its header is a constant there, and the bits behind the end of the deflate data are zero. What stays unseen
is a change after which the same data come out, such as another distance inside a run of one byte.

ARC files, the format before WARC: recognised and read through by warcio. They hold no digests to check.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib
from isal.igzip_lib import IsalError
from warcio.archiveiterator import ArchiveIterator

from archiver.storage import OPEN
from archiver.tools.verify.findings import Fault, Findings
from archiver.tools.verify.inventory import InventoryWriter, connect, text
from archiver.tools.verify.record_checks import BlockCheck, Finding, field_findings
from archiver.warc import writer
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, read_records, scan
from archiver.warc.records import says_all
from archiver.warc.warcinfo import ForgedRecords

HEADER = writer.HEADER
TRAILER = 8  # CRC and length

_BROKEN: tuple[type[Exception], ...] = (IsalError, ValueError)  # type: ignore[assignment]  # the stub has an instance


def begins_as_written(file: BinaryIO, offset: int) -> bool:
    """Whether a gzip member as this program writes them begins at *offset* of *file*."""
    file.seek(offset)
    return file.read(len(HEADER)) == HEADER


def uncovered_findings(file: BinaryIO, offset: int, length: int) -> Iterator[Finding]:
    """What is not as this program writes it in the sound member of *length* bytes at *offset* of *file*."""
    file.seek(offset)
    header = file.read(len(HEADER))
    if header != HEADER:
        yield "gzip-altered", f"the header of the gzip member is {header.hex()}, it was written as {HEADER.hex()}"
    file.seek(offset + length - TRAILER - 1)
    last = file.read(1)[0]
    if last and _is_padding(file, offset, length, last):
        yield "gzip-altered", "the bits behind the gzip member's data are not zero, as they were written"


def _is_padding(file: BinaryIO, offset: int, length: int, last: int) -> bool:
    """Whether the highest set bit of the last byte of data means nothing.

    That bit cleared must decode. It could still be the last bit of a distance whose other place holds the same bytes,
    with an end of nothing but zeros behind it: so the bits from there on, all set, must decode as well.
    """
    top = last.bit_length() - 1
    readings = (last & ~(1 << top), last | (0xFF << top) & 0xFF)
    return all(reading == last or _decodes(file, offset, length, reading) for reading in readings)


def _decodes(file: BinaryIO, offset: int, length: int, last: int) -> bool:
    """Whether the member is sound with *last* as the last byte of its data."""
    file.seek(offset)
    changed = length - TRAILER - 1
    inflate = isal_zlib.decompressobj(31)
    given = 0
    try:
        while given < length and not inflate.eof:
            piece = bytearray(file.read(min(CHUNK, length - given)))
            if not piece:
                return False
            if given <= changed < given + len(piece):
                piece[changed - given] = last
            given += len(piece)
            _inflate(inflate, bytes(piece))
    except _BROKEN:
        return False
    return inflate.eof and given == length and not inflate.unused_data


def _inflate(inflate: Any, piece: bytes) -> None:
    """Decode *piece* to its end, and forget what comes out."""
    while not inflate.eof:
        data = inflate.decompress(piece, CHUNK)
        piece = inflate.unconsumed_tail
        if not piece and not data:
            return


CHUNK = 64 << 10


def read_arc(file: BinaryIO, name: str, findings: Findings) -> int:
    """Read all records of an ARC *file*; how many there are. Where it is broken, *findings* hears of it."""
    records = 0
    said = StringIO()  # warcio names what it can read over on stderr
    try:
        with redirect_stderr(said):
            for record in ArchiveIterator(file, no_record_parse=True):
                records += 1
                while record.raw_stream.read(CHUNK):
                    pass
    except Exception as error:  # noqa: BLE001  warcio raises anything from UnicodeDecodeError to EOFError; it becomes a finding
        findings.add(
            Fault(name, "arc-broken", f"it cannot be read on: {str(error) or type(error).__name__}", file.tell())
        )
    if said.getvalue():
        findings.add(Fault(name, "arc-broken", " ".join(said.getvalue().split())[:300]))
    return records


STEP = 1 << 20  # bytes of blocks between two signs of life

_CUT = frozenset({"gzip-cut", "header-cut", "block-cut", "record-cut"})
_OURS = re.compile(rb"^software: archiver/", re.MULTILINE)
_VISIT_ENDS = ("metadata", "warcinfo", "resource")  # the types of record after which a file of this program may end


@dataclass(frozen=True, slots=True)
class ReadJob:
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
class FileResult:
    """What reading one file, or a piece of it, gave; its records are in the inventory."""

    size: int
    records: int
    ended: int  # where the first record begins that was left to the next piece, or where the file ends
    unhashed: int  # records without a block digest
    counts: Mapping[str, int]
    kept: tuple[Fault, ...]


def check_file(job: ReadJob, at: Callable[[int], None]) -> FileResult:
    """Read the file of *job*; *at* hears now and then at which byte the reading is. Never raises for what is in it."""
    findings = Findings()
    name = str(job.path)
    size = 0
    with closing(connect(job.inventory)) as db:
        reading = _Reading(job, findings, InventoryWriter(db), at)
        try:
            with where_now(job.path).open("rb") as file, where_now(job.path).open("rb") as again:
                size = fstat(file.fileno()).st_size
                reading.run(file, again)
        except OSError as error:
            findings.add(Fault(name, "unreadable", error.strerror or str(error)))
        db.execute("INSERT INTO files VALUES (1, ?, ?, ?, ?)", (name, job.path.name, size, reading.whole_to))
    ended = size if reading.ended is None else reading.ended
    return FileResult(size, reading.records, ended, reading.unhashed, dict(findings.counts), tuple(findings.kept))


def where_now(path: Path) -> Path:
    """Where the file is now: a crawl that runs may have finished it since its folder was listed."""
    final = path.with_name(path.name.removesuffix(OPEN))
    return final if not path.exists() and final.exists() else path


def _is_ours(file: BinaryIO) -> bool:
    """Whether *file* is as this program wrote it, by what its warcinfo says and by how its members begin.

    One of the first two is enough: a byte of the other may have changed. Who compresses anew writes other ones.
    """
    try:
        for record in read_records(file):
            said = sum(_OURS.search(piece) is not None for piece in record.pieces())
            begin = (0, record.length or 0)
            return record.type == "warcinfo" and said > 0 and any(begins_as_written(file, place) for place in begin)
    except DamagedRecord:
        pass  # the scan will name it
    return False


class _Reading:
    """One file on its way through the checks."""

    def __init__(self, job: ReadJob, findings: Findings, shelf: InventoryWriter, at: Callable[[int], None]) -> None:
        self._job = job
        self._name = str(job.path)
        self._findings = findings
        self._shelf = shelf
        self._at = at
        self._pending: DamagedRecord | None = (
            None  # not yet reported: what it means depends on whether anything follows it
        )
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
        self._scan(file, again, ForgedRecords(again))
        if self.records == 0 and self._pending is not None and self._pending.word == "arc":
            self._findings.add(Fault(self._name, "arc", "an ARC file, the format before WARC"))
            file.seek(0)
            self.records = read_arc(file, self._name, self._findings)
            return
        if self.records == 0 and self._pending is None and self._job.start == 0:
            self._findings.add(Fault(self._name, "no-record", "the file holds no record"))
        self._end()
        self._shelf.flush()

    def _scan(self, file: BinaryIO, again: BinaryIO, strays: ForgedRecords) -> None:
        for item in scan(file, self._job.start):
            if self._job.stop is not None and item.offset >= self._job.stop:
                self.ended = item.offset
                return
            self._report_torn(last=False)
            stray = strays.is_stray(item)
            if isinstance(item, DamagedRecord):
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
        except DamagedRecord:
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
