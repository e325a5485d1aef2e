"""Convert a file that cannot be replayed as it is into a WARC with one gzip member per record.

From a WARC whose records share members or span them, or that zstd compressed: the same records in the same order,
header and block unchanged. From an ARC: one record per record with the same block, marked if it is truncated. Other
incomplete data are left out and reported; the caller keeps the original. The same input gives the same bytes.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, cast
from uuid import NAMESPACE_URL, uuid5

from archiver import __version__
from archiver.errors import ArchiveError
from archiver.storage import STEP, storage
from archiver.tools.ingest.names import safe, stem
from archiver.tools.ingest.sources import ArchiveFile, ArchiveFormat
from archiver.tools.ingest.streams import JoinedMembers, ZstdStream
from archiver.warc import arc
from archiver.warc.arc import ArcRecord
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, read_records, scan
from archiver.warc.records import FIELDS_TYPE, RESPONSE_TYPE, header, warc_fields
from archiver.warc.writer import SMALL, WarcFile

CHUNK = 1 << 20
MOST_NAMED = 10  # incomplete places that are reported

_ONLY_LINE_ENDS = frozenset(("record-end", "record-cut"))  # faults with a complete block
_BEHIND_IT = frozenset((*_ONLY_LINE_ENDS, "record-surplus"))
_ANY_TYPE = "application/octet-stream"

At = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """The converted file."""

    path: Path
    sha256: str
    size: int
    doubts: tuple[str, ...]  # what is missing from it


def convert_archive(source: ArchiveFile, original: Path, sha256: str, path: Path, at: At) -> ConvertedFile:
    """Convert *original*, the copy of *source* with this *sha256*, into *path*, and sync it to disk.

    *at* receives the number of bytes read now and then.
    """
    with storage(original), original.open("rb") as file:
        new_file = _NewFile(path, lambda: at(file.tell()))
        try:
            if source.form is ArchiveFormat.ARC:
                _of_arc(file, new_file, source, sha256)
            else:
                _of_warc(_records(file, source.form), new_file)
            new_file.file.seal()
        finally:
            new_file.file.abandon()
        comparable = not new_file.incomplete and source.form is not ArchiveFormat.ARC
        _check_copy(new_file, path, _sum(file, zstd=source.form is ArchiveFormat.ZSTD) if comparable else None)
    doubts = [f"{source.label}: {damage}" for damage in new_file.incomplete[:MOST_NAMED]]
    if len(new_file.incomplete) > MOST_NAMED:
        doubts.append(f"{source.label}: and {len(new_file.incomplete) - MOST_NAMED} more incomplete places")
    return ConvertedFile(path, new_file.file.digest.partition(":")[2], new_file.file.size, tuple(doubts))


class _NewFile:
    """The new file while it is written."""

    def __init__(self, path: Path, report: Callable[[], None]) -> None:
        self.file = WarcFile(path.parent, path.name, path.name)
        self.folder = path.parent
        self.incomplete: list[str] = []
        self.state = hashlib.sha256()  # of the uncompressed content
        self._report = report
        self._synced = 0

    def leave_out(self, damage: DamagedRecord) -> None:
        """Leave out the data at *damage*."""
        self.incomplete.append(f"{damage}; these bytes are only in the original")

    def add(self, head: bytes, block: IO[bytes], size: int) -> None:
        """Add a record with *head* and the first *size* bytes of *block*."""
        self.state.update(head)
        self.file.append(head, self._hashed(block), size)
        self.state.update(b"\r\n\r\n")
        if self.file.size - self._synced >= STEP:
            self.file.sync()
            self._synced = self.file.size
            self._report()

    def _hashed(self, block: IO[bytes]) -> Iterator[bytes]:
        block.seek(0)
        while piece := block.read(CHUNK):
            self.state.update(piece)
            yield piece


def _records(file: BinaryIO, form: ArchiveFormat) -> Iterator[Record | DamagedRecord]:
    """Yield the records of *file*. If it has no seekable members or frames, damage is raised and ends the iteration."""
    if form is ArchiveFormat.WARC:
        yield from scan(file)
    else:
        yield from read_records(
            cast("BinaryIO", ZstdStream(file) if form is ArchiveFormat.ZSTD else JoinedMembers(file))
        )


def _of_warc(records: Iterator[Record | DamagedRecord], new_file: _NewFile) -> None:
    repaired = False
    try:
        for record in records:
            if isinstance(record, Record):
                repaired = _add_whole(record, new_file)
            elif repaired:
                new_file.incomplete.append(f"{record}; line ends were added")
            elif record.word != "member-empty":  # nothing is lost
                new_file.leave_out(record)
    except DamagedRecord as damage:  # without seekable members nothing can be found after it
        new_file.leave_out(damage)


def _add_whole(record: Record, new_file: _NewFile) -> bool:
    """Add *record* if its block is complete. Return whether missing line ends after it were added."""
    with _spool(new_file) as block:
        repaired = False
        try:
            _fill(block, record.pieces())
        except DamagedRecord as damage:  # the iterator reports it next
            if damage.word not in _BEHIND_IT or block.tell() != record.size:
                return False
            repaired = damage.word in _ONLY_LINE_ENDS
        new_file.add(record.header, block, block.tell())
        return repaired


def _of_arc(file: BinaryIO, new_file: _NewFile, source: ArchiveFile, sha256: str) -> None:
    def new_id(what: str) -> str:
        return f"<urn:uuid:{uuid5(NAMESPACE_URL, f'arc:{sha256}#{what}')}>"

    file_id = new_id("file")
    begun = False
    for record in arc.records(file):
        if isinstance(record, DamagedRecord):
            if record.word == "block-cut":
                new_file.incomplete.append(f"{record}; it was imported as far as it goes")
            else:
                new_file.leave_out(record)
            continue
        with _spool(new_file) as block:
            try:
                _fill(block, record.pieces())
            except DamagedRecord:  # the iterator reports it next
                if not block.tell():
                    continue
            if not begun:
                _add_warcinfo(new_file, source, file_id, record.date, sha256)
                begun = True
            size = block.tell()
            new_file.add(_header(record, block, new_id(str(record.offset)), file_id), block, size)


def _add_warcinfo(new_file: _NewFile, source: ArchiveFile, file_id: str, date: str, sha256: str) -> None:
    """Add a warcinfo record. Its date is that of the first record, so that the result is reproducible."""
    text = warc_fields(
        [
            ("software", f"archiver {__version__}"),
            ("format", "WARC File Format 1.1"),
            ("description", f"Converted from the ARC file {source.name}, sha256:{sha256}; the blocks are unchanged"),
        ]
    )
    name = f"{safe(stem(source.name)) or 'import'}.warc.gz"
    fields = (("WARC-Record-ID", file_id), ("WARC-Date", date), ("WARC-Filename", name))
    with _spool(new_file) as block:
        block.write(text)
        new_file.add(header("warcinfo", (*fields, _digest(block)), FIELDS_TYPE, len(text)), block, len(text))


def _header(record: ArcRecord, block: IO[bytes], own_id: str, file_id: str) -> bytes:
    size = block.tell()
    fields = [("WARC-Record-ID", own_id), ("WARC-Date", record.date)]
    if size < record.size:
        fields.append(("WARC-Truncated", "unspecified"))
    mime = record.mime if "/" in record.mime and record.mime.isascii() and record.mime.isprintable() else _ANY_TYPE
    if record.is_description:
        fields += [("WARC-Filename", record.url.removeprefix(arc.DESCRIPTION)), _digest(block)]
        return header("warcinfo", fields, mime, size)
    fields += [("WARC-Target-URI", record.url), ("WARC-Warcinfo-ID", file_id)]
    if record.ip:
        fields.append(("WARC-IP-Address", record.ip))
    block.seek(0)
    answer = record.url.lower().startswith(("http:", "https:")) and block.read(5).upper() == b"HTTP/"
    fields.append(_digest(block))
    return header("response", fields, RESPONSE_TYPE, size) if answer else header("resource", fields, mime, size)


def _digest(block: IO[bytes]) -> tuple[str, str]:
    block.seek(0)
    state = hashlib.sha256()
    for piece in iter(lambda: block.read(CHUNK), b""):
        state.update(piece)
    return "WARC-Block-Digest", f"sha256:{state.hexdigest()}"


def _spool(new_file: _NewFile) -> SpooledTemporaryFile[bytes]:
    """Return a temporary file for a block, unnamed and on the disk of the new file if it is large."""
    return SpooledTemporaryFile(SMALL, dir=str(new_file.folder))


def _fill(block: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        block.write(piece)


def _check_copy(new_file: _NewFile, path: Path, original: str | None) -> None:
    """Check that the written file has the same content as the records, and as the *original*."""
    with path.open("rb") as file:
        there = _sum(file, zstd=False)
    if there != new_file.state.hexdigest() or original not in (None, there):
        raise ArchiveError(f"{path}: the converted records differ from the original; nothing was imported")


def _sum(file: BinaryIO, *, zstd: bool) -> str:
    """Return the digest of the uncompressed content of *file*; empty if it cannot be read to the end."""
    file.seek(0)
    state = hashlib.sha256()
    stream = ZstdStream(file) if zstd else gzip.GzipFile(fileobj=file)
    try:
        while piece := stream.read(CHUNK):
            state.update(piece)
    except (gzip.BadGzipFile, EOFError, zlib.error, DamagedRecord):
        return ""
    return state.hexdigest()
