"""Read WARC records forward from a binary file, with the exact place of each, and locate damage.

A record is whole if its header is complete, its block has Content-Length bytes, two CRLF follow, and (in a
compressed file) its gzip member is undamaged and ends right there. `read_records` stops at the first damage and gives
its offset; `scan` reports it and continues at the next record it can find. Memory does not grow with the size of a
record. Several records in one gzip member are read too, but have no place of their own. Pure: reads only the given
file; on any bytes, raises only `DamagedRecord`.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from archiver.warc.members import DamagedRecord, MemberSource, next_record

MAX_HEADER = 1 << 20  # the longest real ones have some 20 KiB: a long URL, and one field with page metadata
MAX_REREAD = 1 << 30  # bytes in all that are read again after wrong lengths; beyond it, what those hid stays unread

_END = re.compile(rb"\n\r?\n")  # of a header; a CR may stand before it
_LINE_END = re.compile(rb"\r?\n")
_LONE_LF = re.compile(rb"(?<!\r)\n")
_VERSION = re.compile(rb"WARC/([0-9]{1,4}\.[0-9]{1,4})", re.IGNORECASE)  # ABNF strings have no case
_LENGTH = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TRAILER = b"\r\n\r\n"
_BEGIN = b"WARC/"
_AT_HEADER = frozenset({"not-warc", "header-cut", "header-large", "arc"})  # faults found before any byte was taken
_NEXT = re.compile(rb"WARC/[0-9]", re.IGNORECASE)


class Record:
    """One record: its header is parsed, its block can be read once.

    It is known to be whole only when `pieces` has ended. `length` is then its number of bytes in the file, of its whole
    gzip member; None if it shares the member with other records.
    """

    def __init__(self, source: MemberSource, header: bytes) -> None:
        self.offset = source.start  # of the record, or of the gzip member that holds it
        self.inner = source.taken - len(header)  # bytes of the member before this record; 0 for the first
        self.compressed = source.compressed
        self.header_length = len(header)
        self.length: int | None = None
        self.header = header  # as stored, with its empty line
        self.version, self.fields, self.faults = _parse(header)
        self._values: dict[str, list[str]] = {}
        for name, value in self.fields:
            self._values.setdefault(name.lower(), []).append(value)
        self.type = (self.first("WARC-Type") or "").lower()
        size = self.first("Content-Length") or ""
        self.size = int(size) if _LENGTH.fullmatch(size) else None  # of the block; None if the header does not say
        self._source = source
        self._left = self.size or 0
        self._ended = False
        self._torn: DamagedRecord | None = None
        if self.size is None:
            self._torn = DamagedRecord(
                self.offset, "content-length", f"no usable Content-Length in the header ({size[:40]!r})"
            )

    def __repr__(self) -> str:
        return f"<{self.type or 'record'} at {self.offset}>"

    def first(self, name: str) -> str | None:
        """Return the first value of the field *name*, in any case."""
        return next(iter(self._values.get(name.lower(), ())), None)

    def all(self, name: str) -> list[str]:
        """Return every value of the field *name*, in any case, in order."""
        return list(self._values.get(name.lower(), ()))

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of the block. The record is whole if this ends without `DamagedRecord`."""
        while not self._ended:
            piece = self._next()
            if piece:
                yield piece

    def _next(self) -> bytes:
        if self._torn is not None:
            raise self._torn
        try:
            if self._left:
                return self._piece()
            self._end()
        except DamagedRecord as torn:
            self._torn = torn
            raise
        return b""

    def _piece(self) -> bytes:
        source = self._source
        if not source.buffer and not source.more():
            raise DamagedRecord(
                self.offset, "block-cut", f"the block ends {self._left} bytes before its Content-Length"
            )
        piece = source.take(min(self._left, len(source.buffer)))
        self._left -= len(piece)
        return piece

    def _end(self) -> None:
        source = self._source
        source.fill(len(_TRAILER))
        if not source.buffer.startswith(_TRAILER):
            if _TRAILER.startswith(source.buffer):
                raise DamagedRecord(self.offset, "record-cut", "it ends before the two CRLF that must follow the block")
            raise DamagedRecord(
                self.offset,
                "record-end",
                "the block is not followed by two CRLF: Content-Length is wrong, or they are missing",
            )
        source.take(len(_TRAILER))
        if source.at_boundary():
            self.length = source.position - self.offset if self.inner == 0 else None
        else:
            source.fill(len(_BEGIN))
            if source.buffer[: len(_BEGIN)].upper() != _BEGIN:
                raise DamagedRecord(
                    self.offset,
                    "record-surplus",
                    "its gzip member goes on after the record with something that is no record",
                )
        self._ended = True


def read_records(file: BinaryIO, offset: int = 0) -> Iterator[Record]:
    """Yield the records from the boundary *offset* on, and read each to its end before the next.

    Raises `DamagedRecord` at the first damage; all before its offset is whole.
    """
    source = MemberSource(file, offset)
    while (record := _next_record(source)) is not None:
        yield record
        _drain(record)


def scan(file: BinaryIO, offset: int = 0) -> Iterator[Record | DamagedRecord]:
    """Yield records like `read_records`, but yield damage as a `DamagedRecord` after its record, and continue."""
    source = MemberSource(file, offset)
    reread = 0
    while True:
        try:
            record = _next_record(source)
        except DamagedRecord as torn:
            fault = torn
        else:
            if record is None:
                return
            yield record
            try:
                _drain(record)
                continue
            except DamagedRecord as torn:
                fault = torn
        yield fault
        if fault.word in _AT_HEADER:
            reread += len(source.buffer)  # searched for the end of a header, and again from the next place on
            source.take(1 if reread <= MAX_REREAD else len(source.buffer))
        else:
            reread += source.position - fault.offset
        again = fault.offset + 1
        if not _resume(source, fault, again if reread <= MAX_REREAD else max(source.position, again)):
            return


def _drain(record: Record) -> None:
    for _ in record.pieces():
        pass


def _next_record(source: MemberSource) -> Record | None:
    if not source.advance():
        return None
    buffer, start = source.buffer, source.start
    searched = 0
    while not (found := _END.search(buffer, searched)):
        if buffer[: len(_BEGIN)].upper() != _BEGIN[: len(buffer)]:
            raise _not_a_record(source)
        if len(buffer) > MAX_HEADER:
            raise DamagedRecord(start, "header-large", f"a record's header does not end within {MAX_HEADER} bytes")
        searched = max(len(buffer) - len(_TRAILER), 0)
        if not source.more():
            raise DamagedRecord(start, "header-cut", "it ends inside a record's header")
    if not _VERSION.match(buffer):
        raise _not_a_record(source)
    return Record(source, source.take(found.end()))


def _not_a_record(source: MemberSource) -> DamagedRecord:
    if source.buffer.startswith(b"filedesc://"):
        return DamagedRecord(source.start, "arc", "this is an ARC file, the format before WARC")
    begin = bytes(source.buffer[:20])
    return DamagedRecord(source.start, "not-warc", f"no WARC record begins here, but {begin!r}")


def _resume(source: MemberSource, fault: DamagedRecord, offset: int) -> bool:
    """Set *source* to the next record: inside the same gzip member if that is undamaged, else from *offset* on."""
    compressed = source.compressed
    if compressed and fault.word not in ("not-gzip", "gzip-cut", "gzip-broken"):
        try:
            if source.skip_to(_NEXT, len(b"WARC/1")) or source.at_boundary():
                return True
        except DamagedRecord:
            pass  # the member is damaged too, so search after it
    place = next_record(source.file, offset, compressed=compressed)
    if fault.word == "not-warc" and not compressed:
        # Either text precedes a record, or the magic number of a gzip member is damaged: take what comes first.
        zipped = next_record(source.file, offset, compressed=True, before=place)
        place = min((found for found in (place, zipped) if found is not None), default=None)
    if place is None:
        return False
    source.reset(place)
    return True


def _parse(header: bytes) -> tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Parse a complete header: its version, its fields, and its faults in fixed words."""
    version = _VERSION.match(header)
    first, *lines = _LINE_END.split(header.rstrip(b"\r\n"))
    fields: list[tuple[str, list[str]]] = []
    faults: dict[str, None] = {}
    if version is None or version.end() != len(first):
        faults["version-line"] = None
    if _LONE_LF.search(header):
        faults["lone-lf"] = None
    for line in lines:
        text = line.decode(errors="surrogateescape")
        if not text.isascii() and not _is_utf8(line):
            faults["not-utf8"] = None
        if text[:1] in (" ", "\t"):
            faults["folded-field"] = None
            if fields:
                fields[-1][1].append(text.strip(" \t"))
            continue
        name, colon, value = text.partition(":")
        if not colon or not _NAME.fullmatch(name):
            faults["field-syntax"] = None
        if colon:
            fields.append((name.strip(), [value.strip(" \t")]))
    joined = tuple((name, " ".join(parts).strip()) for name, parts in fields)
    return version[1].decode() if version else "", joined, tuple(faults)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
