"""One WARC file while it is being written: members appended, synced, sealed, and the final name given at the end.

Each record is a gzip member of its own. A file is called NAME.open until it is whole; nothing here ever
reads, shortens or overwrites what was written.
"""

import os
from collections.abc import Iterable
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from archiver.archive.compressing import member, member_in_pieces
from archiver.archive.layout import OPEN, storage, sync_folder, trouble
from archiver.disk import STEP, opened, sync_data
from archiver.model import Span

SMALL = 1 << 20  # a record below this is compressed in one call
BUFFER = 1 << 18  # bytes handed to the system at once: the records of some forty pages

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
            self._file: BinaryIO = opened(self._path, "xb", BUFFER, private=private)
            sync_folder(folder)

    def append(self, header: bytes, block: Iterable[bytes], length: int) -> Span:
        """Write one record as one member; where it lies. It is on disk only after `sync`."""
        start = self.size
        try:
            if length < SMALL:
                self._write(member(b"".join((header, *block, _END))))
            else:
                pieces = iter(block)
                self._stream(member_in_pieces(header + next(pieces, b""), chain(pieces, (_END,))))
        except OSError as error:  # of a spool file too
            raise trouble(error, self._path, self._missing()) from error
        return Span(start, self.size - start)

    def _stream(self, pieces: Iterable[bytes]) -> None:
        """A record piece by piece, and to the disk in steps: others sync their files meanwhile."""
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
        """Bytes that should be in the file and are not."""
        return max(0, self.size - os.fstat(self._file.fileno()).st_size)

    @property
    def digest(self) -> str:
        """Of all bytes so far, by which a later change is seen: `sha256:hex`."""
        return f"sha256:{self._sum.hexdigest()}"

    def sync(self) -> None:
        """Every record appended so far is on disk when this returns."""
        with storage(self._path, self._missing):
            sync_data(self._file)

    def seal(self) -> None:
        """No more records; every one of them is on disk when this returns."""
        with storage(self._path, self._missing):
            sync_data(self._file)
            self.modified = os.fstat(self._file.fileno()).st_mtime_ns
            self._file.close()

    def publish(self) -> None:
        """Let the sealed draft be called NAME.open, as a file that holds whole records."""
        with storage(self._path):
            self._path = self._path.rename(self._folder / (self.name + OPEN))
            sync_folder(self._folder)

    def give_name(self) -> None:
        """Let the sealed file have its final name."""
        with storage(self._path):
            self._path.rename(self._folder / self.name)
            sync_folder(self._folder)

    def abandon(self) -> None:
        """Close without a word: something failed, and recovery will read what is there."""
        try:
            self._file.close()
        except OSError:  # a full disk refuses the last buffer too; recovery cuts where wholeness ends
            return
