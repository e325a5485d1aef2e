"""Read ARC files, the format before WARC, in versions 1 and 2.

A record is a line `URL IP date type … length`, a block of that length, and an empty line; the first record describes
the file. `records` recovers as much as it can, for the import: gzip members may end anywhere, and damage is given as a
`DamagedRecord` before reading goes on at the next valid line. Linear; on any bytes, raises only `DamagedRecord`.
`check` reads a file with warcio, for verify: an independent reader shows what other programs will make of it.
Source: the ARC File Format of the Internet Archive, 1996.
"""

import re
from collections.abc import Iterator
from contextlib import redirect_stderr
from datetime import UTC, datetime
from io import StringIO
from ipaddress import ip_address
from typing import BinaryIO, NamedTuple
from urllib.parse import quote_from_bytes

from archiver.warc.members import CHUNK, DamagedRecord, MemberSource

DESCRIPTION = "filedesc://"  # the beginning of the first record's URL
MAX_LINE = 64 << 10

_ADDRESS_AND_DATE = re.compile(rb" ([0-9A-Fa-f:.]{1,45}|-) ([0-9]{12,18}) ")
_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\x00-\x1f\x7f]+")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_PLAIN = bytes(range(0x21, 0x7F)).decode()
_NOWHERE = frozenset(("0.0.0.0", "-", "::"))  # noqa: S104 - written in place of an unknown address
_SECOND_VERSION = b"2 "
_NEVER_RESUMED = frozenset(("gzip-broken", "gzip-cut", "not-gzip"))


class _ArcHeader:
    """The fields of the line before a block."""

    def __init__(self, url: bytes, ip: bytes, date: str, rest: bytes, size: int) -> None:
        self.url = _text(url)
        self.ip = _ip(ip.decode())
        self.date = date  # as a WARC-Date
        self.rest = rest  # the media type; in version 2 more fields
        self.size = size


class ArcRecord:
    """One record: the fields of its line, and a block that can be read once."""

    def __init__(self, stream: "_Stream", line: _ArcHeader, *, second_version: bool) -> None:
        self.offset = stream.start  # of its line in the uncompressed file
        self.url = line.url
        self.ip = line.ip  # "" if the line names none
        self.date = line.date
        self.size = line.size
        self.mime = (line.rest.split(b" ")[0] if second_version else line.rest).decode("latin-1").strip()
        self._stream = stream
        self._left = line.size

    @property
    def is_description(self) -> bool:
        """True if the record describes the file."""
        return self.url.startswith(DESCRIPTION)

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of the block. It is whole if this ends without `DamagedRecord`."""
        while self._left:
            piece = self._stream.take_any(self._left)
            if not piece:
                raise DamagedRecord(self.offset, "block-cut", f"the block ends {self._left} bytes before its length")
            self._left -= len(piece)
            yield piece


def records(file: BinaryIO) -> Iterator[ArcRecord | DamagedRecord]:
    """Yield each record of *file*, and read it to its end before the next; damage follows as a `DamagedRecord`."""
    stream = _Stream(file)
    second_version = False
    searching = False
    while True:
        try:
            line, length = stream.next_line()
            if not length:
                return
            found = _parse(line)
            if found is None:
                torn = DamagedRecord(stream.start, "not-arc", f"no ARC record begins here, but {line[:20]!r}")
                stream.take_any(length)
                if not searching:
                    yield torn
                searching = True
                continue
            searching = False
            stream.take_any(length)
            if found.url.startswith(DESCRIPTION):
                stream.fill(len(_SECOND_VERSION))
                second_version = stream.buffer.startswith(_SECOND_VERSION)
            record = ArcRecord(stream, found, second_version=second_version)
            yield record
            for _ in record.pieces():
                pass
        except DamagedRecord as torn:
            yield torn
            if torn.word in _NEVER_RESUMED:
                return


class ArcCheck(NamedTuple):
    """The result of reading an ARC file with warcio."""

    records: int
    faults: tuple[tuple[str, int | None], ...]  # a sentence, and the byte at which reading stopped


def check(file: BinaryIO) -> ArcCheck:
    """Read all records of *file* with warcio."""
    from warcio.archiveiterator import ArchiveIterator  # noqa: PLC0415 - slow to import, and ARC files are rare

    count = 0
    faults: list[tuple[str, int | None]] = []
    messages = StringIO()  # warcio reports the errors that it skips on stderr
    try:
        with redirect_stderr(messages):
            for record in ArchiveIterator(file, no_record_parse=True):
                count += 1
                while record.raw_stream.read(CHUNK):
                    pass
    except Exception as error:  # noqa: BLE001  warcio raises anything from UnicodeDecodeError to EOFError; it becomes a fault
        faults.append((f"reading stopped: {str(error) or type(error).__name__}", file.tell()))
    if messages.getvalue():
        faults.append((" ".join(messages.getvalue().split())[:300], None))
    return ArcCheck(count, tuple(faults))


class _Stream:
    """The uncompressed bytes of a file, across all its gzip members."""

    def __init__(self, file: BinaryIO) -> None:
        self._source = MemberSource(file, 0)
        self._inside = False  # a member
        self.buffer = bytearray()
        self.start = 0  # of the line that was read last
        self._taken = 0

    def fill(self, size: int) -> None:
        """Read until the buffer has *size* bytes or the file ends."""
        while len(self.buffer) < size and self._more():
            pass

    def take_any(self, most: int) -> bytes:
        """Return some bytes, at most *most*; none at the end of the file."""
        self.fill(1)
        piece = bytes(self.buffer[:most])
        del self.buffer[: len(piece)]
        self._taken += len(piece)
        return piece

    def next_line(self) -> tuple[bytes, int]:
        """Return the next non-empty line, which stays in the buffer, and its full length; 0 at the end of the file."""
        while True:
            self.fill(1)
            empty = len(self.buffer) - len(self.buffer.lstrip(b"\r\n"))
            if not empty:
                break
            self.take_any(empty)
        self.start = self._taken
        searched = 0
        while (end := self.buffer.find(b"\n", searched, MAX_LINE)) < 0:
            searched = len(self.buffer)
            if searched >= MAX_LINE or not self._more():
                end = min(searched, MAX_LINE) - 1
                break
        return bytes(self.buffer[: end + 1]), end + 1

    def _more(self) -> bool:
        while True:
            if self._inside and (self._source.buffer or self._source.more()):
                self.buffer += self._source.take(len(self._source.buffer))
                return True
            try:
                self._inside = self._source.advance()
            except DamagedRecord as torn:
                if torn.word != "member-empty":
                    raise
                continue
            if not self._inside:
                return False


def _parse(line: bytes) -> _ArcHeader | None:
    """Parse *line*; None if no record begins with it."""
    rest, _, length = line.rstrip(b"\r\n").rpartition(b" ")
    places = list(_ADDRESS_AND_DATE.finditer(rest + b" "))  # only the type follows the last of them
    if not places or not _LENGTH.fullmatch(length):
        return None
    url = rest[: places[-1].start()]
    date = _date(places[-1][2].decode())
    if not date or not _URL.fullmatch(url):
        return None
    return _ArcHeader(url, places[-1][1], date, rest[places[-1].end() :], int(length))


def _date(digits: str) -> str:
    """Convert *digits* to a WARC-Date of the same precision; "" if they are not a date."""
    try:
        moment = datetime.strptime(f"{digits[:14]:0<14}", "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return ""
    fraction = f".{digits[14:]}" if len(digits) == 17 else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z" if moment.year >= 1000 else ""


def _ip(address: str) -> str:
    try:
        return "" if address in _NOWHERE else str(ip_address(address))
    except ValueError:
        return ""


def _text(url: bytes) -> str:
    """Decode *url* and escape spaces; escape all special bytes if it is not UTF-8."""
    try:
        return url.decode().replace(" ", "%20")
    except UnicodeDecodeError:
        return quote_from_bytes(url, safe=_PLAIN)
