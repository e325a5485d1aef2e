"""Write one WARC file: append and sync gzip members, seal the file, and give it its final name at the end.

Each record is a gzip member of its own. A file is called NAME.open until it is complete; nothing here ever reads,
shortens or overwrites written bytes.
The size of a record, and the gain of a sample, decide how it is compressed. isal is the fastest by far, but it searches
for repetitions only in small tables, so it loses more on longer pages. So isal compresses short records, zlib-ng long
ones, and isal again those that do not shrink: images, video, encoded responses. docs/explanation/performance.md has
the figures. Every member has the same header, and zeros after its data, from either library: `verify` relies on both.
"""

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib
from zlib_ng import zlib_ng

from archiver.model import Span
from archiver.storage import OPEN, STEP, open_file, storage, sync_data, sync_folder, trouble

HEADER = bytes.fromhex("1f8b08000000000000ff")  # no name, no time, no hints, no system, as isal writes it

VAIN = 1  # isal's level for records that do not shrink
SHORT = 2  # isal's level for short records
LONG = 5  # zlib-ng's level for long records
LIMIT = 24 << 10  # bytes; a record of this size is long

_SAMPLE = 1 << 10  # bytes in each of three places
_GAIN = 0.95  # a sample that does not shrink below this share gains nothing
_RAW = -15  # deflate without a frame, largest window
_GZIP = 31


def member(record: bytes) -> bytes:
    """Return the gzip member of *record*."""
    if len(record) < LIMIT:
        return isal_zlib.compress(record, SHORT, _GZIP)
    if _in_vain(record):
        return isal_zlib.compress(record, VAIN, _GZIP)
    return HEADER + zlib_ng.compress(record, LONG, _RAW) + _trailer(isal_zlib.crc32(record), len(record))


def member_in_pieces(first: bytes, others: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the gzip member of a record too long for memory; its first piece decides how it is compressed."""
    compressor = (
        isal_zlib.compressobj(VAIN, isal_zlib.DEFLATED, _RAW)
        if _in_vain(first)
        else zlib_ng.compressobj(LONG, zlib_ng.DEFLATED, _RAW)
    )
    crc = length = 0
    yield HEADER
    for piece in chain((first,), others):
        crc = isal_zlib.crc32(piece, crc)
        length += len(piece)
        yield compressor.compress(piece)
    yield compressor.flush() + _trailer(crc, length)


def _in_vain(data: bytes) -> bool:
    """Return True if *data* seems to be compressed already."""
    step = len(data) // 4
    sample = b"".join(data[place : place + _SAMPLE] for place in (step, 2 * step, 3 * step))
    return len(isal_zlib.compress(sample, VAIN, _RAW)) > _GAIN * len(sample)


def _trailer(crc: int, length: int) -> bytes:
    return crc.to_bytes(4, "little") + (length & 0xFFFFFFFF).to_bytes(4, "little")


SMALL = 1 << 20  # a record below this is compressed in one call
BUFFER = 1 << 18  # bytes written at once: the records of some forty pages

_END = b"\r\n\r\n"


class WarcFile:
    """Appends records to *folder*/*name*.open, or to *folder*/*draft* until it is published."""

    def __init__(self, folder: Path, name: str, draft: str = "", *, private: bool = False) -> None:
        self.name = name
        self.size = 0
        self.modified = 0  # nanoseconds since the epoch, when it was sealed
        self._sum = sha256()
        self._folder = folder
        self._path = folder / (draft or name + OPEN)
        with storage(self._path):
            self._file: BinaryIO = open_file(self._path, "xb", BUFFER, private=private)
            sync_folder(folder)

    def append(self, header: bytes, block: Iterable[bytes], length: int) -> Span:
        """Write one record as one member, and return its place. It is on disk only after `sync`."""
        start = self.size
        try:
            if length < SMALL:
                self._write(member(b"".join((header, *block, _END))))
            else:
                pieces = iter(block)
                self._stream(member_in_pieces(header + next(pieces, b""), chain(pieces, (_END,))))
        except OSError as error:  # also from reading a spool file
            raise trouble(error, self._path, self._missing()) from error
        return Span(start, self.size - start)

    def _stream(self, pieces: Iterable[bytes]) -> None:
        """Write a record piece by piece, and sync it in steps, because others sync their files meanwhile."""
        synced = self.size
        for piece in pieces:
            self._write(piece)
            if self.size - synced >= STEP:
                sync_data(self._file)
                synced = self.size

    def _write(self, data: bytes) -> None:
        self.size += len(data)
        self._file.write(data)
        self._sum.update(data)

    def _missing(self) -> int:
        """Return the number of bytes that should be in the file and are not."""
        return max(0, self.size - os.fstat(self._file.fileno()).st_size)

    @property
    def digest(self) -> str:
        """The digest of all bytes so far, `sha256:hex`, to detect later changes."""
        return f"sha256:{self._sum.hexdigest()}"

    def sync(self) -> None:
        """Sync all appended records to disk."""
        with storage(self._path, self._missing):
            sync_data(self._file)

    def seal(self) -> None:
        """Sync all records to disk and close the file."""
        with storage(self._path, self._missing):
            sync_data(self._file)
            self.modified = os.fstat(self._file.fileno()).st_mtime_ns
            self._file.close()

    def publish(self) -> None:
        """Rename the sealed draft to NAME.open."""
        with storage(self._path):
            self._path = self._path.rename(self._folder / (self.name + OPEN))
            sync_folder(self._folder)

    def give_name(self) -> None:
        """Rename the sealed file to its final name."""
        with storage(self._path):
            self._path.rename(self._folder / self.name)
            sync_folder(self._folder)

    def abandon(self) -> None:
        """Close the file and ignore errors, because something failed and recovery will read the file."""
        try:
            self._file.close()
        except OSError:  # a full disk refuses the last buffer too; recovery cuts the file after the last whole record
            return
