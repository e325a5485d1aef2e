"""A WARC file whose gzip members end where they like, as bgzip makes them: told, and read.

`ends_inside` looks at the first member only, and at no more than a few MiB of it. `Joined` gives the uncompressed bytes
of all members in a row; it reads forward only, and can begin anew. Holds one member, of no more than `LONGEST` bytes.
"""

import io
from typing import IO, Any, BinaryIO, cast

from archiver.importing.forward import Forward
from archiver.warc.members import Source, Torn
from archiver.warc.reader import read

_BEGIN = b"WARC/"
LONGEST = 8 << 20  # bytes of a member that is held as a whole; a first one that is longer has room for records
_CUT = frozenset(("header-cut", "block-cut", "record-cut"))


def ends_inside(file: IO[bytes]) -> bool:
    """Whether the first gzip member of *file* ends inside a record, and the second goes on with something else."""
    source = Source(cast("BinaryIO", file), 0)
    try:
        source.advance()
        source.fill(LONGEST)
        if source.more() or not _is_cut(bytes(source.buffer)):
            return False
        source.take(len(source.buffer))
        source.advance()
        source.fill(len(_BEGIN))
    except Torn:
        return False
    begin = bytes(source.buffer[: len(_BEGIN)])
    return bool(begin) and begin.upper() != _BEGIN


def _is_cut(content: bytes) -> bool:
    try:
        for record in read(io.BytesIO(content)):
            for _ in record.pieces():
                pass
    except Torn as torn:
        return torn.word in _CUT
    return False


class Joined(Forward):
    """What the gzip members of *file* hold, each proven by its CRC first, unless it is longer than `LONGEST`.

    What is broken raises `Torn`: its offset counts the bytes given before.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._source = Source(cast("BinaryIO", file), 0)
        self.begin()

    def begin(self) -> None:
        """Go to the first byte."""
        self._source.reset(0)
        self._held = memoryview(b"")
        self._given = 0
        self._inside = False  # a member longer than what is held of one

    def readinto(self, buffer: Any) -> int:
        """As many bytes as there are in the next piece, 0 at the end."""
        while not self._held:
            try:
                if not self._next():
                    return 0
            except Torn as torn:
                raise Torn(self._given, torn.word, torn.reason) from None
        piece = self._held[: len(buffer)]
        buffer[: len(piece)] = piece
        self._held = self._held[len(piece) :]
        self._given += len(piece)
        return len(piece)

    def _next(self) -> bool:
        """Hold what comes next, maybe nothing; False where the file ends."""
        source = self._source
        if not self._inside:
            try:
                if not source.advance():
                    return False
            except Torn as torn:
                if torn.word != "member-empty":
                    raise
                return True  # there is nothing to be lost
        source.fill(LONGEST)
        self._inside = len(source.buffer) >= LONGEST
        self._held = memoryview(source.take(len(source.buffer)))
        return True
