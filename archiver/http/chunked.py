"""Decode chunked transfer coding as its bytes arrive (RFC 9112 §7.1). Pure; linear; buffers at most one line.

Lenient where servers err and the meaning is clear: bare LF, spaces around the size, any extension. A body whose first
line is no chunk size was never chunked, and is passed on unchanged (`unframed`). A body whose framing breaks later ends
there (`failed`).
"""

import re

CHUNK_FAULT = "chunk"  # fault word for a body whose chunked framing breaks
EASY_LINE = 64  # bytes of a line that warcio and pywb read
MAX_LINE = 16 << 10  # of one size line with its extensions
MAX_TRAILER = 64 << 10  # of all trailer lines together

_NEXT = re.compile(rb"\r\n([0-9A-Fa-f]{1,16})\r\n")  # nearly always all that is between two chunks
_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?", re.DOTALL)


class Dechunker:
    """Yields the decoded parts of a chunked body, and finds the end of the last chunk and trailer."""

    def __init__(self) -> None:
        self.done = False
        self.failed = False
        self.unframed = False
        self.nul_in_trailer = False
        self.irregular = False  # long line, bare LF or trailer: some readers fail on these
        self.consumed = 0  # bytes of the last feed that belong to the body
        self._line = bytearray()
        self._left = 0  # bytes of this chunk still to come
        self._expect = self._size_line
        self._between = False  # a chunk has just ended
        self._first = True
        self._trailer = 0

    @property
    def broken(self) -> bool:
        """True if the framing cannot be followed (any more): only the end of the connection ends the body."""
        return self.failed or self.unframed

    def feed(self, data: bytes) -> list[memoryview]:
        """Return the decoded parts of *data* in order. After `done` or `failed`, `consumed` is the end of the body."""
        entity: list[memoryview] = []
        view = memoryview(data)
        at = 0
        while at < len(data) and not (self.done or self.failed):
            if self.unframed:
                entity.append(view[at:])
                at = len(data)
            elif self._left:
                take = min(self._left, len(data) - at)
                entity.append(view[at : at + take])
                self._left -= take
                at += take
                self._between = not self._left
            elif self._between and (found := _NEXT.match(data, at)):
                self._open(int(found[1], 16))
                at = found.end()
            else:
                self._between = False
                at = self._read_line(data, at, entity)
        self.consumed = at
        return entity

    def finish(self) -> list[memoryview]:
        """Return what was buffered when the connection ends, if the body was never chunked."""
        if self._first and self._line and not self.unframed:
            self.unframed = True
            return [memoryview(bytes(self._line))]
        return []

    def _read_line(self, data: bytes, at: int, entity: list[memoryview]) -> int:
        end = data.find(b"\n", at, at + MAX_LINE)
        if end < 0:
            stop = min(len(data), at + MAX_LINE)
            self._line += data[at:stop]
            if len(self._line) >= MAX_LINE:
                self._break(entity)
            return stop
        self._line += data[at : end + 1]
        if len(self._line) > MAX_LINE:
            self._break(entity)
            return end + 1
        whole = bytes(self._line)
        self.irregular |= not whole.endswith(b"\r\n") or len(whole) > EASY_LINE
        if not self._expect(whole):
            self._break(entity)
        self._line.clear()
        return end + 1

    def _break(self, entity: list[memoryview]) -> None:
        if self._first:
            self.unframed = True
            entity.append(memoryview(bytes(self._line)))
            self._line.clear()
        else:
            self.failed = True

    def _size_line(self, line: bytes) -> bool:
        found = _SIZE.fullmatch(line.rstrip(b"\r\n"))
        if found is None:
            return False
        self._first = False
        self._open(int(found[1], 16))
        return True

    def _open(self, size: int) -> None:
        """Start a chunk of *size* bytes, or the trailer."""
        self._left = size
        self._between = False
        self._expect = self._after_chunk if size else self._trailer_line

    def _after_chunk(self, line: bytes) -> bool:
        self._expect = self._size_line
        return line in (b"\r\n", b"\n")

    def _trailer_line(self, line: bytes) -> bool:
        self._trailer += len(line)
        self.nul_in_trailer |= b"\0" in line
        self.done = line in (b"\r\n", b"\n")
        self.irregular |= not self.done
        return self.done or self._trailer <= MAX_TRAILER
