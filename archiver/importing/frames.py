"""A .warc.zst file as the uncompressed bytes in it: zstd frames one after the other, with a dictionary or without.

Reads forward only, and can begin anew. Memory is bounded by what the specification makes readers bear: windows and
dictionaries of 8 MiB. Source: Zstandard Compression for WARC Files 1.0 (proposed), of the IIPC.
"""

from typing import IO, Any

from archiver.importing.forward import Forward
from archiver.warc.members import Torn

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


class Unpacked(Forward):
    """What the frames of *file* hold. What is broken raises `Torn`: its offset counts the bytes given before."""

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
        """As many bytes as there are in the next piece, 0 at the end."""
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
        """Go to the next frame that holds data; False where there is none."""
        while self._have(_FRAME_HEADER) and self._input[1:4] == _SKIPPABLE:
            self._skip(int.from_bytes(self._input[4:_FRAME_HEADER], "little"))
        if not self._input:
            return False
        if not self._input.startswith(MAGICS[0]):
            raise self._broken(f"no frame begins where there is {self._input[:4]!r}")
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
        """Whether there are *size* bytes of input; then they are at hand."""
        pieces = [self._input]
        held = len(self._input)
        while held < size and (data := self._file.read(_CHUNK)):
            pieces.append(data)
            held += len(data)
        self._input = b"".join(pieces)
        return held >= size

    def _broken(self, reason: str) -> Torn:
        return Torn(self._given, "zstd-broken", f"the zstd data is damaged: {reason}")
