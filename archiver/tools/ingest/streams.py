"""Streams that unpack a file for a reader of records. They are read forward only, and can restart.

`ZstdStream` unpacks .warc.zst files: zstd frames, with or without a dictionary. Memory is limited to the windows and
dictionaries of 8 MiB that the specification requires. Source: Zstandard Compression for WARC Files 1.0 (proposed), of
the IIPC.

`JoinedMembers` unpacks WARC files whose gzip members end anywhere, as bgzip writes them. It holds one member of at most
`LONGEST` bytes. `ends_inside` recognizes such files by a few MiB of the first member.
"""

import io
from abc import abstractmethod
from typing import IO, Any, BinaryIO, cast

from archiver.warc.members import DamagedRecord, MemberSource
from archiver.warc.reader import read_records


class ForwardStream(io.RawIOBase):
    """A stream that can only seek to its start."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True: it can seek to its start."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Restart."""
        if (offset, whence) != (0, 0):
            raise io.UnsupportedOperation("it can only seek to its start")
        self.begin()
        return 0

    @abstractmethod
    def begin(self) -> None:
        """Go to the first byte."""


try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

MAGICS = (b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18")  # of a frame, of a dictionary

_CHUNK = 64 << 10
_SKIPPABLE = b"\x2a\x4d\x18"  # ends the magic number of a frame that holds none of the data
_FRAME_HEADER = 8  # bytes of a skippable one
_WINDOW = 23  # bits
_LARGEST_DICTIONARY = 1 << _WINDOW


class ZstdStream(ForwardStream):
    """The uncompressed content of *file*. Damage raises `DamagedRecord`; its offset counts uncompressed bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.begin()

    def begin(self) -> None:
        """Go to the first byte."""
        self._file.seek(0)
        self._given = 0
        self._input = b""
        self._ended = True  # between two frames
        self._dictionary = None
        self._have(_FRAME_HEADER)
        if self._input[:4] == MAGICS[1]:
            self._dictionary = self._read_dictionary()

    def readinto(self, buffer: Any) -> int:
        """Read the next piece; 0 at the end."""
        while len(buffer):
            if self._ended and not self._next_frame():
                return 0
            try:
                data = self._engine.decompress(self._input, len(buffer))
            except zstd.ZstdError as error:
                raise self._broken(str(error)) from None
            self._ended = self._engine.eof
            self._input = self._engine.unused_data if self._ended else b""
            if data:
                buffer[: len(data)] = data
                self._given += len(data)
                return len(data)
            if not self._ended and self._engine.needs_input and not self._have(1):
                raise self._broken("it ends inside a frame")
        return 0

    def _next_frame(self) -> bool:
        """Go to the next frame with data; False if there is none."""
        while self._have(_FRAME_HEADER) and self._input[1:4] == _SKIPPABLE:
            self._skip(int.from_bytes(self._input[4:_FRAME_HEADER], "little"))
        if not self._input:
            return False
        if not self._input.startswith(MAGICS[0]):
            raise self._broken(f"no frame begins at {self._input[:4]!r}")
        options = {zstd.DecompressionParameter.window_log_max: _WINDOW}
        self._engine = zstd.ZstdDecompressor(self._dictionary, options)
        return True

    def _skip(self, size: int) -> None:
        size += _FRAME_HEADER
        while size:
            if not self._have(1):
                raise self._broken("it ends inside a frame")
            dropped = min(size, len(self._input))
            self._input = self._input[dropped:]
            size -= dropped

    def _read_dictionary(self) -> Any:
        size = int.from_bytes(self._input[4:_FRAME_HEADER], "little")
        if size > _LARGEST_DICTIONARY:
            raise self._broken(f"its dictionary has {size} bytes; {_LARGEST_DICTIONARY} is the most")
        if not self._have(_FRAME_HEADER + size):
            raise self._broken("it ends inside its dictionary")
        held = self._input[_FRAME_HEADER : _FRAME_HEADER + size]
        self._input = self._input[_FRAME_HEADER + size :]
        try:
            if held.startswith(MAGICS[0]):
                engine = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW})
                held = engine.decompress(held, _LARGEST_DICTIONARY + 1)
                if not engine.eof or len(held) > _LARGEST_DICTIONARY:
                    raise self._broken(f"its dictionary is cut, or larger than {_LARGEST_DICTIONARY} bytes")
            return zstd.ZstdDict(held)
        except (zstd.ZstdError, ValueError) as error:
            raise self._broken(f"its dictionary cannot be used: {error}") from None

    def _have(self, size: int) -> bool:
        """Return whether *size* bytes of input are available, and read them."""
        pieces = [self._input]
        held = len(self._input)
        while held < size and (data := self._file.read(_CHUNK)):
            pieces.append(data)
            held += len(data)
        self._input = b"".join(pieces)
        return held >= size

    def _broken(self, reason: str) -> DamagedRecord:
        return DamagedRecord(self._given, "zstd-broken", f"the zstd data is damaged: {reason}")


_BEGIN = b"WARC/"
LONGEST = 8 << 20  # bytes of a member held as a whole; a longer first one has room for records
_CUT = frozenset(("header-cut", "block-cut", "record-cut"))


def ends_inside(file: IO[bytes]) -> bool:
    """Return whether the first gzip member of *file* ends inside a record that continues in the second."""
    source = MemberSource(cast("BinaryIO", file), 0)
    try:
        source.advance()
        source.fill(LONGEST)
        if source.more() or not _is_truncated(bytes(source.buffer)):
            return False
        source.take(len(source.buffer))
        source.advance()
        source.fill(len(_BEGIN))
    except DamagedRecord:
        return False
    begin = bytes(source.buffer[: len(_BEGIN)])
    return bool(begin) and begin.upper() != _BEGIN


def _is_truncated(content: bytes) -> bool:
    try:
        for record in read_records(io.BytesIO(content)):
            for _ in record.pieces():
                pass
    except DamagedRecord as damage:
        return damage.word in _CUT
    return False


class JoinedMembers(ForwardStream):
    """The uncompressed content of the gzip members of *file*. The CRC of members up to `LONGEST` is checked first.

    Damage raises `DamagedRecord`; its offset counts uncompressed bytes.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._source = MemberSource(cast("BinaryIO", file), 0)
        self.begin()

    def begin(self) -> None:
        """Go to the first byte."""
        self._source.reset(0)
        self._held = memoryview(b"")
        self._given = 0
        self._inside = False  # inside a member longer than `LONGEST`

    def readinto(self, buffer: Any) -> int:
        """Read the next piece; 0 at the end."""
        while not self._held:
            try:
                if not self._next():
                    return 0
            except DamagedRecord as damage:
                raise DamagedRecord(self._given, damage.word, damage.reason) from None
        piece = self._held[: len(buffer)]
        buffer[: len(piece)] = piece
        self._held = self._held[len(piece) :]
        self._given += len(piece)
        return len(piece)

    def _next(self) -> bool:
        """Hold the next piece, which may be empty; False at the end of the file."""
        source = self._source
        if not self._inside:
            try:
                if not source.advance():
                    return False
            except DamagedRecord as damage:
                if damage.word != "member-empty":
                    raise
                return True  # nothing is lost
        source.fill(LONGEST)
        self._inside = len(source.buffer) >= LONGEST
        self._held = memoryview(source.take(len(source.buffer)))
        return True
