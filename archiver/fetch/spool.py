"""What came so far of one message: in memory while it is small, in a nameless file when it is not.

Large messages are hashed and written by a thread as they arrive; small ones are left to the archive's
thread. The file has no name, so a crash leaves nothing behind. An error of the disk names the folder.
"""

import asyncio
import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from archiver import storage
from archiver.errors import SHORTAGES, ArchiveError, ShortageError
from archiver.http import Digester
from archiver.model import Digests, Framing
from archiver.storage import allowed

IN_MEMORY = 256 << 10  # bytes; nine of ten pages and images are smaller
PIECE = 1 << 20  # read at a time: with each the threads take turns, which can cost some milliseconds
STEP = 2 * storage.STEP  # of a file until it is synced, or freed: most are smaller, and gone before they are written
SPARE = 128  # open files that are left to the archive and the database, which could not go on without …
SPARE_SHARE = 8  # … but never more than this part of all

NOT_TAKEN = "cannot be spooled"


class MemoryBlock:
    """A block held in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def length(self) -> int:
        """Size in bytes."""
        return len(self._data)

    def pieces(self) -> Iterator[bytes]:
        """The block, in one piece."""
        yield self._data

    def head(self, size: int) -> bytes:
        """The first *size* bytes."""
        return self._data if size >= len(self._data) else self._data[:size]

    def close(self) -> None:
        """Nothing to give back."""


class SpoolFolder:
    """Where large messages lie until they are archived, and how many bytes of them there are."""

    def __init__(self, path: Path, floor: int = 0) -> None:
        self.path = path
        self._floor = floor  # bytes of the disk that are to stay free
        self._names: dict[str, int] = {}  # URL: bytes of its response
        limit = allowed()
        self.ceiling = limit - min(SPARE, limit // SPARE_SHARE)  # the first descriptor that is not for large messages
        self._held = 0
        self._turn = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes in files that somebody still needs."""
        return self._held

    @property
    def largest(self) -> tuple[str, int]:
        """The URL of the largest response in a file, and its bytes; "" where there is none."""
        with self._turn:
            return max(self._names.items(), key=lambda named: named[1], default=("", 0))

    def hold(self, size: int, name: str = "") -> None:
        """*size* more bytes are in a file, of the response to URL *name*; fewer, where it is negative."""
        with self._turn:
            self._held += size
            self._names[name] = self._names.get(name, 0) + size
            if not name or self._names[name] <= 0:
                del self._names[name]

    def is_tight(self, size: int) -> bool:
        """Whether a response of *size* bytes should not grow: it will be written once more, into a WARC."""
        with self.trouble(NOT_TAKEN):
            return storage.free(self.path) - self._held - self._floor < size

    @contextmanager
    def trouble(self, what: str, wanted: int = 0, name: str = "") -> Iterator[None]:
        """An error of the disk becomes `ArchiveError`: that a response (of URL *name*) *what*, and what is missing."""
        try:
            yield
        except OSError as error:
            kind = ShortageError if error.errno in SHORTAGES else ArchiveError
            whose = f"the response of {name}" if name else "a response"
            raise kind(f"{self.path}: {whose} {what}: {storage.words(error, self.path, wanted)}") from error


class FileBlock:
    """A block in a spool file; read by one reader at a time."""

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
        """The block, in pieces of bounded size."""
        place = 0
        while piece := self._read(place, PIECE):
            yield piece
            place += len(piece)

    def head(self, size: int) -> bytes:
        """The first *size* bytes."""
        return self._read(0, size)

    def close(self) -> None:
        """Give the file back to the system, in steps: freeing gigabytes at once holds up the syncs of all others."""
        if not self._file.closed:
            with suppress(OSError):  # nobody needs it any more
                for left in range(self._length - STEP, 0, -STEP):
                    self._file.truncate(left)
                    storage.sync_data(self._file)
            self._file.close()
            self._folder.hold(-self._length, self._name)

    def _read(self, place: int, size: int) -> bytes:
        with self._folder.trouble("cannot be read back from the spool"):
            self._file.seek(place)
            return self._file.read(size)


def spooled(folder: Path, pieces: Iterable[bytes]) -> FileBlock:
    """*pieces* in a file of *folder*; what they raise passes."""
    place = SpoolFolder(folder)
    file, length = _nameless(place), 0
    try:
        for piece in pieces:
            length += len(piece)
            with place.trouble(NOT_TAKEN, len(piece)):
                file.write(piece)
        with place.trouble(NOT_TAKEN):
            file.flush()
    except BaseException:
        with suppress(OSError):  # as in Spool
            file.close()
        raise
    place.hold(length)
    return FileBlock(file, length, place)


def _nameless(folder: SpoolFolder, name: str = "") -> BinaryIO:
    with folder.trouble(NOT_TAKEN, name=name):
        file = tempfile.TemporaryFile(dir=folder.path, prefix="response-")  # noqa: SIM115 - its reader closes it
        if file.fileno() >= folder.ceiling:  # the lowest that is free: so many are open
            file.close()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return file


class Spool:
    """Collects one response block: `add` and `flush`, at the end `block` and `digests`; or `discard`."""

    def __init__(self, folder: SpoolFolder, algorithm: str, writer: Executor, name: str = "") -> None:
        self.length = 0
        self.tight = False  # the disk has no room for much more
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
        self._writing: Future[float] | None = None  # what a thread is doing, even if nobody waits for it any more

    def add(self, piece: bytes) -> bool:
        """Take the next *piece*; whether memory now holds as much as it may: then `flush`."""
        self._pieces.append(piece)
        self._held += len(piece)
        self.length += len(piece)
        return self._held > IN_MEMORY

    async def flush(self, framing: Framing) -> float:
        """Bring what memory holds to the disk; it is there when this returns. The seconds of a processor it took."""
        pieces, self._pieces, self._held = self._pieces, [], 0
        self._writing = self._writer.submit(self._write, pieces, framing)
        return await asyncio.wrap_future(self._writing)

    async def finish(self, framing: Framing) -> None:
        """The message is over."""
        if self._file is not None and self._pieces:
            await self.flush(framing)

    def block(self) -> MemoryBlock | FileBlock:
        """The whole block; the spool is given away with it."""
        if self._file is not None:
            file, self._file = self._file, None
            return FileBlock(file, self.length, self._folder, self._name)
        return MemoryBlock(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))

    def digests(self) -> Digests | None:
        """The digests, where they were computed on the way."""
        return self._digester.digests() if self._digester is not None else None

    def discard(self) -> None:
        """Give back what is held, as soon as no thread works on it."""
        self._pieces.clear()
        if self._writing is None:
            self._close()
        else:
            self._writing.add_done_callback(lambda _: self._close())

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk refuses the last buffer once more
                self._file.close()
            self._file = None
            self._folder.hold(-self._written, self._name)

    def _write(self, pieces: list[bytes], framing: Framing) -> float:
        began = time.thread_time()
        if self._file is None:
            self._file = _nameless(self._folder, self._name)
            self._digester = Digester(self._algorithm, framing)
        size = sum(map(len, pieces))
        with self._folder.trouble(NOT_TAKEN, size, self._name):
            for piece in pieces:
                self._file.write(piece)
                if self._digester is not None:
                    self._digester.feed(piece)
            self._file.flush()
        self._written += size
        self._folder.hold(size, self._name)
        self.tight = self._folder.is_tight(self._written)
        if self._written - self._synced >= STEP:
            with self._folder.trouble(NOT_TAKEN, name=self._name):
                storage.sync_data(self._file)
            self._synced = self._written
        return time.thread_time() - began
