"""Read the bytes of a WARC file: gzip members, or one uncompressed run.

`MemberSource` gives decompressed bytes from any boundary on, and their place in the file. The CRC and length of a
member are always checked before its end is reported. `next_record` finds the next place where reading can continue
after damage. Pure; linear; holds a few hundred KiB, whatever the file contains.
"""

import re
from typing import BinaryIO, Protocol

from isal import isal_zlib
from isal.igzip_lib import IsalError

CHUNK = 64 << 10  # read and inflated at a time
SLICE = 8 << 10  # compressed bytes that inflating gets at a time
MAGIC = b"\x1f\x8b"
BROKEN: tuple[type[Exception], ...] = (IsalError, ValueError)  # type: ignore[assignment]  # the stub has an instance

_MEMBER = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]", re.DOTALL)
_EMPTY_MEMBER = re.compile(rb"\x1f\x8b\x08\x00.{6}(?:\x03\x00|\x01\x00\x00\xff\xff)\x00{8}", re.DOTALL)
_LONGEST_EMPTY = 23  # bytes that it matches
_MEMBER_HEADER = 10  # bytes before anything optional
_RESERVED_FLAGS = 0xE0  # RFC 1952 §2.3.1.2: must be zero; isal does not check
_BEGIN = b"WARC/"
_PLAIN_BEGIN = re.compile(rb"\nWARC/[0-9]", re.IGNORECASE)
_PROBE = 4 << 10  # compressed bytes that must suffice to show the first bytes of a record


class DamagedRecord(Exception):  # noqa: N818  it describes a place in a file, and is not always raised
    """Damage at `offset`; all before it is whole. `word` is a fixed code, `reason` a sentence."""

    def __init__(self, offset: int, word: str, reason: str) -> None:
        super().__init__(offset, word, reason)
        self.offset = offset
        self.word = word
        self.reason = reason

    def __str__(self) -> str:
        return f"at offset {self.offset}: {self.reason}"


class _Feed(Protocol):
    """The input of a `MemberSource`."""

    @property
    def position(self) -> int:
        """The place in the file of the first byte not yet returned; exact between members."""

    @property
    def ended(self) -> bool:
        """True if all bytes of a compressed member were returned, and it is undamaged."""

    def begin(self) -> bool:
        """Go to the next member; return False at the end of the file."""

    def more(self) -> bytes:
        """Return the next bytes of this member; b"" at its undamaged end."""

    def pass_empty(self) -> int:
        """Skip the empty members that follow, as far as their form is usual. Return their number."""


class _Plain:
    """An uncompressed file, read as one member."""

    ended = False

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file = file
        self.position = file.seek(offset)

    def begin(self) -> bool:
        return True

    def more(self) -> bytes:
        data = self._file.read(CHUNK)
        self.position += len(data)
        return data

    def pass_empty(self) -> int:
        return 0


class _Gzip:
    """A gzip file; the CRC and length of each member are checked at its end.

    Inflating returns what it did not use as a copy. So it gets little at a time: most members are small.
    """

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file = file
        self._input = memoryview(b"")  # read
        self._at = 0  # bytes of it that were used
        self._read_to = file.seek(offset)
        self._start = offset
        self._inflate = isal_zlib.decompressobj(31)
        self.ended = True

    @property
    def position(self) -> int:
        return self._read_to - len(self._input) + self._at

    def begin(self) -> bool:
        if len(self._input) - self._at >= _MEMBER_HEADER and _MEMBER.match(self._input, self._at):
            self._start = self._read_to - len(self._input) + self._at
        elif not self._begin():
            return False
        self._inflate = isal_zlib.decompressobj(31)
        self.ended = False
        return True

    def _begin(self) -> bool:
        """Go to the next member, also at the end of what was read; raise `DamagedRecord` if there is something else."""
        self._start = self.position
        while len(self._input) - self._at < _MEMBER_HEADER and self._read():
            pass
        begin = self._input[self._at : self._at + _MEMBER_HEADER].tobytes()
        if not begin:
            return False
        cut = len(begin) < _MEMBER_HEADER
        if not _MEMBER.match(begin) and not (cut and (MAGIC + b"\x08").startswith(begin[:3])):
            raise DamagedRecord(self._start, "not-gzip", "no gzip member begins here")
        if cut:
            raise DamagedRecord(self._start, "gzip-cut", "the file ends inside the header of a gzip member")
        return True

    def more(self) -> bytes:
        inflate = self._inflate
        while not self.ended:
            last = self._at == len(self._input) and not self._read()
            given = self._input[self._at : self._at + SLICE]
            try:
                data = inflate.decompress(given, CHUNK)
            except BROKEN as error:
                raise DamagedRecord(self._start, "gzip-broken", f"the gzip member is damaged ({error})") from error
            self.ended = inflate.eof
            self._at += len(given) - len(inflate.unused_data if self.ended else inflate.unconsumed_tail)
            if data:
                return data
            if last and not self.ended:
                raise DamagedRecord(self._start, "gzip-cut", "the file ends inside a gzip member")
        return b""

    def pass_empty(self) -> int:
        """Files may consist of a million of them. So they are not inflated: their bytes show that they are whole."""
        passed = 0
        while True:
            while found := _EMPTY_MEMBER.match(self._input, self._at):
                self._at = found.end()
                passed += 1
            if len(self._input) - self._at >= _LONGEST_EMPTY or not self._read():
                return passed

    def _read(self) -> bool:
        data = self._file.read(CHUNK)
        self._read_to += len(data)
        self._input = memoryview(self._input[self._at :].tobytes() + data)
        self._at = 0
        return bool(data)


class MemberSource:
    """The bytes of a file from a boundary on. `buffer` holds decompressed bytes that are not yet taken."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self.file = file
        self.reset(offset)

    def reset(self, offset: int) -> None:
        """Start again at the boundary *offset*."""
        self.file.seek(offset)
        self.compressed = self.file.read(1) == MAGIC[:1]
        self._feed: _Feed = (_Gzip if self.compressed else _Plain)(self.file, offset)
        self.buffer = bytearray()
        self.start = offset  # of the member, or of the record in an uncompressed file
        self.taken = 0  # bytes of the member before the buffer

    @property
    def position(self) -> int:
        """The place of the buffer in the file; in a gzip file valid only after the end of a member."""
        return self._feed.position - len(self.buffer)

    def advance(self) -> bool:
        """Go to the place where the next record must begin; return False if the file ends there."""
        if self.compressed and self.buffer:
            return True
        feed = self._feed
        self.start, self.taken = feed.position - len(self.buffer), 0
        if not feed.begin():
            return False
        self.buffer += feed.more()
        if self.buffer:
            return True
        if self.compressed:
            further = feed.pass_empty()
            reason = f"{further + 1} gzip members in a row hold nothing" if further else "the gzip member holds nothing"
            raise DamagedRecord(self.start, "member-empty", reason)
        return False

    def more(self) -> bool:
        """Add bytes to the buffer; return False at the end of the member."""
        data = self._feed.more()
        self.buffer += data
        return bool(data)

    def fill(self, size: int) -> None:
        """Read until the buffer has *size* bytes or the member ends."""
        while len(self.buffer) < size and self.more():
            pass

    def take(self, size: int) -> bytes:
        """Remove and return the first *size* bytes of the buffer."""
        piece = bytes(memoryview(self.buffer)[:size])
        del self.buffer[:size]
        self.taken += len(piece)
        return piece

    def drop(self, size: int) -> None:
        """Remove the first *size* bytes of the buffer, which has as many."""
        del self.buffer[:size]
        self.taken += size

    def take_last(self, size: int, ending: bytes) -> bytes | None:
        """Remove the rest of the member; return *size* bytes if *ending* follows them and it holds nothing else.

        Otherwise, or if not all of it was read, return None and leave it. Most members are small, so this is the usual
        way, and the quickest.
        """
        buffer = self.buffer
        if not self._feed.ended or len(buffer) != size + len(ending) or not buffer.endswith(ending):
            return None
        piece = bytes(memoryview(buffer)[:size])
        buffer.clear()
        return piece

    def at_boundary(self) -> bool:
        """Return True if a record may end here: at the end of its gzip member, or anywhere in an uncompressed file."""
        return not self.compressed or not (self.buffer or self.more())

    def skip_to(self, pattern: re.Pattern[bytes], longest: int) -> bool:
        """Skip to *pattern* (at most *longest* bytes); return False if this member does not contain it."""
        while not (found := pattern.search(self.buffer)):
            self.take(max(len(self.buffer) - longest, 0))
            if not self.more():
                self.take(len(self.buffer))
                return False
        self.take(found.start())
        return True


def next_record(file: BinaryIO, offset: int, *, compressed: bool, before: int | None = None) -> int | None:
    """Return the first place from *offset* to *before* where a record seems to begin; None without one."""
    pattern = _MEMBER if compressed else _PLAIN_BEGIN
    keep = _PROBE if compressed else len(b"\nWARC/1")
    base = file.seek(offset)
    buffer = b""
    while True:
        data = file.read(CHUNK)
        buffer += data
        for found in pattern.finditer(buffer):
            if data and found.start() > len(buffer) - keep:
                break  # decide when more bytes are there
            if not compressed:
                return base + found.start() + 1
            if _begins_record(buffer[found.start() : found.start() + _PROBE]):
                return base + found.start()
        if not data or (before is not None and base >= before):
            return None
        dropped = max(len(buffer) - keep, 0)
        base += dropped
        buffer = buffer[dropped:]


def _begins_record(data: bytes) -> bool:
    try:
        return isal_zlib.decompressobj(31).decompress(data, len(_BEGIN)).upper() == _BEGIN
    except BROKEN:
        return False
