"""A WARC file with a gzip member for each record, made of a file that nobody can replay as it is.

Of a WARC whose records share members or go on in the next one, or that zstd has compressed: the same records, header
and block to the byte, in the same order. Of an ARC: a record for each of its records, with the same block, marked where
that is cut. What else is not whole is left out and named; whoever calls keeps the original. The same file becomes the
same bytes each time.
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
MOST_NAMED = 10  # places that are not whole

_ONLY_LINE_ENDS = frozenset(("record-end", "record-cut"))  # what is missing where a block is whole
_BEHIND_IT = frozenset((*_ONLY_LINE_ENDS, "record-surplus"))
_ANY_TYPE = "application/octet-stream"

At = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """What was made."""

    path: Path
    sha256: str
    size: int
    doubts: tuple[str, ...]  # what of the original did not come into it


def remake(source: ArchiveFile, original: Path, sha256: str, path: Path, at: At) -> ConvertedFile:
    """Make *path* of *original*, the copy of *source* that has this *sha256*; all of it is on disk then.

    *at* hears now and then how many bytes of the original were read.
    """
    with storage(original), original.open("rb") as file:
        made = _Made(path, lambda: at(file.tell()))
        try:
            if source.form is ArchiveFormat.ARC:
                _of_arc(file, made, source, sha256)
            else:
                _of_warc(_records(file, source.form), made)
            made.file.seal()
        finally:
            made.file.abandon()
        comparable = not made.torn and source.form is not ArchiveFormat.ARC
        _prove(made, path, _sum(file, zstd=source.form is ArchiveFormat.ZSTD) if comparable else None)
    doubts = [f"{source.label}: {torn}" for torn in made.torn[:MOST_NAMED]]
    if len(made.torn) > MOST_NAMED:
        doubts.append(f"{source.label}: and {len(made.torn) - MOST_NAMED} more places that are not whole")
    return ConvertedFile(path, made.file.digest.partition(":")[2], made.file.size, tuple(doubts))


class _Made:
    """The new file on its way."""

    def __init__(self, path: Path, tell: Callable[[], None]) -> None:
        self.file = WarcFile(path.parent, path.name, path.name)
        self.folder = path.parent
        self.torn: list[str] = []
        self.state = hashlib.sha256()  # of all that is in it, uncompressed
        self._tell = tell
        self._synced = 0

    def leave_out(self, torn: DamagedRecord) -> None:
        """What lies at *torn* does not come into the file."""
        self.torn.append(f"{torn}; what lies there is in the original only")

    def add(self, head: bytes, block: IO[bytes], size: int) -> None:
        """A record of *head* and the first *size* bytes of *block*."""
        self.state.update(head)
        self.file.append(head, self._hashed(block), size)
        self.state.update(b"\r\n\r\n")
        if self.file.size - self._synced >= STEP:
            self.file.sync()
            self._synced = self.file.size
            self._tell()

    def _hashed(self, block: IO[bytes]) -> Iterator[bytes]:
        block.seek(0)
        while piece := block.read(CHUNK):
            self.state.update(piece)
            yield piece


def _records(file: BinaryIO, form: ArchiveFormat) -> Iterator[Record | DamagedRecord]:
    """Those in *file*. Where members or frames are no places in it, what is not whole is raised, and ends it."""
    if form is ArchiveFormat.WARC:
        yield from scan(file)
    else:
        yield from read_records(
            cast("BinaryIO", ZstdStream(file) if form is ArchiveFormat.ZSTD else JoinedMembers(file))
        )


def _of_warc(records: Iterator[Record | DamagedRecord], made: _Made) -> None:
    mended = False
    try:
        for record in records:
            if isinstance(record, Record):
                mended = _add_whole(record, made)
            elif mended:
                made.torn.append(f"{record}; they were added")
            elif record.word != "member-empty":  # there is nothing to be lost
                made.leave_out(record)
    except DamagedRecord as torn:  # of what has no places in its file, behind which nothing can be found
        made.leave_out(torn)


def _add_whole(record: Record, made: _Made) -> bool:
    """Add *record* if its block is whole; whether only the line ends behind it are missing, which it then gets."""
    with _spool(made) as block:
        mended = False
        try:
            _fill(block, record.pieces())
        except DamagedRecord as torn:  # whoever reads the records hears of it next
            if torn.word not in _BEHIND_IT or block.tell() != record.size:
                return False
            mended = torn.word in _ONLY_LINE_ENDS
        made.add(record.header, block, block.tell())
        return mended


def _of_arc(file: BinaryIO, made: _Made, source: ArchiveFile, sha256: str) -> None:
    def new_id(what: str) -> str:
        return f"<urn:uuid:{uuid5(NAMESPACE_URL, f'arc:{sha256}#{what}')}>"

    file_id = new_id("file")
    begun = False
    for record in arc.records(file):
        if isinstance(record, DamagedRecord):
            if record.word == "block-cut":
                made.torn.append(f"{record}; it came in as far as it goes")
            else:
                made.leave_out(record)
            continue
        with _spool(made) as block:
            try:
                _fill(block, record.pieces())
            except DamagedRecord:  # it is given next
                if not block.tell():
                    continue
            if not begun:
                _add_warcinfo(made, source, file_id, record.date, sha256)
                begun = True
            size = block.tell()
            made.add(_header(record, block, new_id(str(record.offset)), file_id), block, size)


def _add_warcinfo(made: _Made, source: ArchiveFile, file_id: str, date: str, sha256: str) -> None:
    """What the new file is; its date is that of the first record, so that it is the same each time."""
    text = warc_fields(
        [
            ("software", f"archiver {__version__}"),
            ("format", "WARC File Format 1.1"),
            ("description", f"Made of an ARC file, {source.name}, sha256:{sha256}; each block is as it was there"),
        ]
    )
    name = f"{safe(stem(source.name)) or 'import'}.warc.gz"
    fields = (("WARC-Record-ID", file_id), ("WARC-Date", date), ("WARC-Filename", name))
    with _spool(made) as block:
        block.write(text)
        made.add(header("warcinfo", (*fields, _digest(block)), FIELDS_TYPE, len(text)), block, len(text))


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


def _spool(made: _Made) -> SpooledTemporaryFile[bytes]:
    """A place for a block until it is known to be whole: nameless, on the disk of the new file where it is large."""
    return SpooledTemporaryFile(SMALL, dir=str(made.folder))


def _fill(block: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        block.write(piece)


def _prove(made: _Made, path: Path, original: str | None) -> None:
    """What was written, read back by other code than wrote it, is what the records were; and all of the *original*."""
    with path.open("rb") as file:
        there = _sum(file, zstd=False)
    if there != made.state.hexdigest() or original not in (None, there):
        raise ArchiveError(f"{path}: the records that were written are not those that were read; nothing was imported")


def _sum(file: BinaryIO, *, zstd: bool) -> str:
    """The digest of all that is in *file*, uncompressed; "" where it cannot be read to its end."""
    file.seek(0)
    state = hashlib.sha256()
    stream = ZstdStream(file) if zstd else gzip.GzipFile(fileobj=file)
    try:
        while piece := stream.read(CHUNK):
            state.update(piece)
    except (gzip.BadGzipFile, EOFError, zlib.error, DamagedRecord):
        return ""
    return state.hexdigest()
