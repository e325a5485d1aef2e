"""The received part of one message: in memory while it is small, in an unnamed file when it is large.

A thread hashes and writes large messages as they arrive. Small ones are left to the archive's thread. The file has no
name, so a crash leaves nothing behind. Disk errors name the folder.
"""

import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from archiver import storage
from archiver.errors import SHORTAGES, ArchiveError, ShortageError
from archiver.http import Digester
from archiver.model import Digests, Framing
from archiver.storage import allowed

IN_MEMORY = 256 << 10  # bytes; nine of ten pages and images are smaller
PIECE = 1 << 20  # bytes read at a time: after each, threads switch, which can take milliseconds
STEP = (
    2 * storage.STEP
)  # bytes between syncs or frees of a file: most files are smaller and deleted before they reach the disk
SPARE = 128  # open files reserved for the archive and the database …
SPARE_SHARE = 8  # … but never more than one in this many

NOT_TAKEN = "cannot be spooled"


class MemoryBlock:
    """A response block in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def length(self) -> int:
        """Size in bytes."""
        return len(self._data)

    def pieces(self) -> Iterator[bytes]:
        """Yield the block in one piece."""
        yield self._data

    def head(self, size: int) -> bytes:
        """Return the first *size* bytes."""
        return self._data if size >= len(self._data) else self._data[:size]

    def close(self) -> None:
        """Do nothing: there is no resource to free."""


class SpoolFolder:
    """The folder of large responses until they are archived, and their total size."""

    def __init__(self, path: Path, floor: int = 0) -> None:
        self.path = path
        self._floor = floor  # bytes of disk space to keep free
        self._names: dict[str, int] = {}  # URL: bytes of its response
        limit = allowed()
        self.ceiling = limit - min(SPARE, limit // SPARE_SHARE)  # descriptors from this one on are reserved
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes in files that are still needed."""
        return self._held

    @property
    def largest(self) -> tuple[str, int]:
        """URL and size in bytes of the largest response in a file; "" if there is none."""
        with self._lock:
            return max(self._names.items(), key=lambda named: named[1], default=("", 0))

    def hold(self, size: int, name: str = "") -> None:
        """Count *size* more bytes (fewer if negative) for the response to URL *name*."""
        with self._lock:
            self._held += size
            self._names[name] = self._names.get(name, 0) + size
            if not name or self._names[name] <= 0:
                del self._names[name]

    def is_tight(self, size: int) -> bool:
        """True if a response of *size* bytes should not grow: it will be written again, to a WARC file."""
        with self.disk_errors(NOT_TAKEN):
            return storage.free(self.path) - self._held - self._floor < size

    @contextmanager
    def disk_errors(self, what: str, wanted: int = 0, name: str = "") -> Iterator[None]:
        """Raise `ArchiveError` for disk errors. The message says that a response (to URL *name*) *what*, and why."""
        try:
            yield
        except OSError as error:
            kind = ShortageError if error.errno in SHORTAGES else ArchiveError
            whose = f"the response of {name}" if name else "a response"
            raise kind(f"{self.path}: {whose} {what}: {storage.words(error, self.path, wanted)}") from error


class FileBlock:
    """A response block in a spool file; one reader at a time."""

    def __init__(self, file: BinaryIO, length: int, folder: SpoolFolder, name: str = "") -> None:
        self._file = file
        self._name = name
        self._length = length
        self._folder = folder

    @property
    def length(self) -> int:
        """Size in bytes."""
        return self._length

    def pieces(self) -> Iterator[bytes]:
        """Yield the block in pieces of limited size."""
        place = 0
        while piece := self._read(place, PIECE):
            yield piece
            place += len(piece)

    def head(self, size: int) -> bytes:
        """Return the first *size* bytes."""
        return self._read(0, size)

    def close(self) -> None:
        """Free the file in steps: freeing gigabytes at once delays all other syncs."""
        if not self._file.closed:
            with suppress(OSError):  # no one needs it any more
                for left in range(self._length - STEP, 0, -STEP):
                    self._file.truncate(left)
                    storage.sync_data(self._file)
            self._file.close()
            self._folder.hold(-self._length, self._name)

    def _read(self, place: int, size: int) -> bytes:
        with self._folder.disk_errors("cannot be read back from the spool"):
            self._file.seek(place)
            return self._file.read(size)


def spool_pieces(folder: Path, pieces: Iterable[bytes]) -> FileBlock:
    """Write *pieces* to a file in *folder*; errors raised by *pieces* pass through."""
    place = SpoolFolder(folder)
    file, length = _nameless(place), 0
    try:
        for piece in pieces:
            length += len(piece)
            with place.disk_errors(NOT_TAKEN, len(piece)):
                file.write(piece)
        with place.disk_errors(NOT_TAKEN):
            file.flush()
    except BaseException:
        with suppress(OSError):  # as in Spool
            file.close()
        raise
    place.hold(length)
    return FileBlock(file, length, place)


def _nameless(folder: SpoolFolder, name: str = "") -> BinaryIO:
    with folder.disk_errors(NOT_TAKEN, name=name):
        file = tempfile.TemporaryFile(dir=folder.path, prefix="response-")  # noqa: SIM115 - its reader closes it
        if file.fileno() >= folder.ceiling:  # the lowest that is free: so many are open
            file.close()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return file


class Spooling(NamedTuple):
    """Where responses are kept until they are archived."""

    folder: SpoolFolder
    algorithm: str  # of digests
    writer: ThreadPoolExecutor  # which writes large responses


class Spool:
    """Collects one response block with `add` and `flush`; then either `block` and `digests`, or `discard`."""

    def __init__(self, folder: SpoolFolder, algorithm: str, writer: Executor, name: str = "") -> None:
        self.length = 0
        self.tight = False  # the disk is almost full
        self._name = name
        self._written = 0
        self._synced = 0
        self._folder = folder
        self._algorithm = algorithm
        self._writer = writer
        self._pieces: list[bytes] = []
        self._held = 0
        self._file: BinaryIO | None = None
        self._digester: Digester | None = None
        self._writing: Future[float] | None = None  # the write in progress, even if its caller was cancelled

    def add(self, piece: bytes) -> bool:
        """Add the next *piece*; return True if memory is full, so that `flush` is needed."""
        self._pieces.append(piece)
        self._held += len(piece)
        self.length += len(piece)
        return self._held > IN_MEMORY

    async def flush(self, framing: Framing) -> float:
        """Write the buffered pieces to disk; return the seconds of CPU time this took."""
        pieces, self._pieces, self._held = self._pieces, [], 0
        self._writing = self._writer.submit(self._write, pieces, framing)
        from asyncio import wrap_future  # noqa: PLC0415 - slow to import; commands that only read do not need it

        return await wrap_future(self._writing)

    async def finish(self, framing: Framing) -> None:
        """Write what is left, at the end of the message."""
        if self._file is not None and self._pieces:
            await self.flush(framing)

    def block(self) -> MemoryBlock | FileBlock:
        """Return the complete block; the caller owns it."""
        if self._file is not None:
            file, self._file = self._file, None
            return FileBlock(file, self.length, self._folder, self._name)
        return MemoryBlock(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))

    def digests(self) -> Digests | None:
        """Return the digests, if they were computed while writing."""
        return self._digester.digests() if self._digester is not None else None

    def discard(self) -> None:
        """Free the buffers and the file, as soon as no thread works on them."""
        self._pieces.clear()
        if self._writing is None:
            self._close()
        else:
            self._writing.add_done_callback(lambda _: self._close())

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # on a full disk closing fails again
                self._file.close()
            self._file = None
            self._folder.hold(-self._written, self._name)

    def _write(self, pieces: list[bytes], framing: Framing) -> float:
        began = time.thread_time()
        if self._file is None:
            self._file = _nameless(self._folder, self._name)
            self._digester = Digester(self._algorithm, framing)
        size = sum(map(len, pieces))
        with self._folder.disk_errors(NOT_TAKEN, size, self._name):
            for piece in pieces:
                self._file.write(piece)
                if self._digester is not None:
                    self._digester.feed(piece)
            self._file.flush()
        self._written += size
        self._folder.hold(size, self._name)
        self.tight = self._folder.is_tight(self._written)
        if self._written - self._synced >= STEP:
            with self._folder.disk_errors(NOT_TAKEN, name=self._name):
                storage.sync_data(self._file)
            self._synced = self._written
        return time.thread_time() - began
