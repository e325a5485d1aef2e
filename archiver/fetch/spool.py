"""What came so far of one message: in memory while it is small, in a nameless file when it is not.

Large messages are hashed and written by a thread as they arrive; small ones are left to the archive's
thread. The file has no name, so a crash leaves nothing behind.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from archiver.errors import ArchiveError
from archiver.http import Digester
from archiver.model import Digests, Framing

IN_MEMORY = 256 << 10  # bytes; nine of ten pages and images are smaller
PIECE = 256 << 10


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


class FileBlock:
    """A block in a spool file; read by one reader at a time."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._length = length

    @property
    def length(self) -> int:
        """Size in bytes."""
        return self._length

    def pieces(self) -> Iterator[bytes]:
        """The block, in pieces of bounded size."""
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    def head(self, size: int) -> bytes:
        """The first *size* bytes."""
        self._file.seek(0)
        return self._file.read(size)

    def close(self) -> None:
        """Give the file back to the system."""
        self._file.close()


class Spool:
    """Collects one response block: `add` until the end, then `block` and `digests`; `discard` if it is not wanted."""

    def __init__(self, folder: Path, algorithm: str, writer: Executor) -> None:
        self.length = 0
        self._folder = folder
        self._algorithm = algorithm
        self._writer = writer
        self._pieces: list[bytes] = []
        self._held = 0
        self._file: BinaryIO | None = None
        self._digester: Digester | None = None
        self._writing: Future[None] | None = None  # what a thread is doing, even if nobody waits for it any more

    async def add(self, piece: bytes, framing: Framing | None) -> None:
        """Take the next *piece*; past the memory bound it is on disk when this returns."""
        self._pieces.append(piece)
        self._held += len(piece)
        self.length += len(piece)
        if self._held > IN_MEMORY and framing is not None:
            await self._flush(framing)

    async def finish(self, framing: Framing) -> None:
        """The message is over."""
        if self._file is not None and self._pieces:
            await self._flush(framing)

    def block(self) -> MemoryBlock | FileBlock:
        """The whole block; the spool is given away with it."""
        if self._file is not None:
            file, self._file = self._file, None
            return FileBlock(file, self.length)
        return MemoryBlock(b"".join(self._pieces))

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

    async def _flush(self, framing: Framing) -> None:
        pieces, self._pieces, self._held = self._pieces, [], 0
        self._writing = self._writer.submit(self._write, pieces, framing)
        await asyncio.wrap_future(self._writing)

    def _write(self, pieces: list[bytes], framing: Framing) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder, prefix="response-")  # noqa: SIM115  closed by its block
                self._digester = Digester(self._algorithm, framing)
            for piece in pieces:
                self._file.write(piece)
                if self._digester is not None:
                    self._digester.feed(piece)
            self._file.flush()
        except OSError as error:
            raise ArchiveError(f"cannot write to the spool {self._folder}: {error.strerror or error}") from error
