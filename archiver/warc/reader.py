"""Read WARC records forward from a binary file, with the exact place of each, and locate damage.

A record is whole if its header is complete, its block has Content-Length bytes, two CRLF follow, and (in a
compressed file) its gzip member is undamaged and ends right there. `read_records` stops at the first damage and gives
its offset; `scan` reports it and continues at the next record it can find. Memory does not grow with the size of a
record. Several records in one gzip member are read too, but have no place of their own. Pure: reads only the given
file; on any bytes, raises only `DamagedRecord`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO

from archiver.http.head import head_end
from archiver.warc.members import DamagedRecord, MemberSource, next_record

MAX_HEADER = 1 << 20  # the longest real ones have some 20 KiB: a long URL, and one field with page metadata
MAX_REREAD = 1 << 30  # bytes in all that are read again after wrong lengths; beyond it, what those hid stays unread

_LINE_END = re.compile(rb"\r?\n")
_LONE_LF = re.compile(rb"(?<!\r)\n")
_VERSION = re.compile(rb"WARC/([0-9]{1,4}\.[0-9]{1,4})", re.IGNORECASE)  # ABNF strings have no case
_LENGTH = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TRAILER = b"\r\n\r\n"
_BEGIN = b"WARC/"
_AT_HEADER = frozenset({"not-warc", "header-cut", "header-large", "arc"})  # faults found before any byte was taken
_NEXT = re.compile(rb"WARC/[0-9]", re.IGNORECASE)
_PRINTABLE = bytes(range(0x20, 0x7F))
_LINE_ENDS = b"\r\n" * 500  # of a usual header
_MOST_KNOWN = 2 * 64  # names and values of a header whose names are remembered
_USUAL_BEGIN = (b"WARC/1.1\r\n", b"WARC/1.0\r\n")
LOOKED_UP = frozenset(  # fields that this program reads or checks
    (
        *("WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Target-URI", "WARC-Warcinfo-ID", "WARC-Concurrent-To"),
        *("WARC-IP-Address", "WARC-Protocol", "WARC-Cipher-Suite", "WARC-Block-Digest", "WARC-Payload-Digest"),
        *("WARC-Refers-To", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date", "WARC-Profile", "WARC-Truncated"),
        *("WARC-Segment-Number", "WARC-Segment-Origin-ID", "WARC-Segment-Total-Length", "WARC-Filename"),
        *("WARC-Identified-Payload-Type", "Content-Type", "Content-Length"),
    )
)
_SPELLINGS = {name.lower(): name for name in LOOKED_UP}

Values = dict[str, str]  # the first value of each field; names are as in `LOOKED_UP`, others in lower case


class Record:
    """One record: its header is parsed, its block can be read once.

    It is known to be whole only when `pieces` has ended, or if it has a `length`: its number of bytes in the file, of
    its whole gzip member. After that, `length` is None if it shares the member with other records.
    """

    __slots__ = (
        *("offset", "inner", "compressed", "header_length", "length", "header", "version", "faults", "values"),
        *("_fields", "is_usual", "type", "size", "_source", "_left", "_ended", "_torn", "_block"),
    )

    def __init__(self, source: MemberSource, header: bytes, parsed: "_Header") -> None:
        self.offset = source.start  # of the record, or of the gzip member that holds it
        self.inner = source.taken - len(header)  # bytes of the member before this record; 0 for the first
        self.compressed = source.compressed
        self.header_length = len(header)
        self.length: int | None = None
        self.header = header  # as stored, with its empty line
        # `is_usual`: no fault, no empty value, known names in their usual case
        self.version, self.faults, self.values, self._fields, self.is_usual = parsed
        self.type = self.values.get("WARC-Type", "").lower()
        size = self.values.get("Content-Length", "")
        self.size = int(size) if _LENGTH.fullmatch(size) else None  # of the block; None if the header does not say
        self._source = source
        self._torn: DamagedRecord | None = None
        self._left = self.size or 0
        self._block = None if self.size is None else source.take_last(self._left, _TRAILER)
        self._ended = self._block is not None
        if self._ended:
            if self.inner == 0:
                self.length = source.position - self.offset
        elif self.size is None:
            self._torn = DamagedRecord(
                self.offset, "content-length", f"no usable Content-Length in the header ({size[:40]!r})"
            )

    def __repr__(self) -> str:
        return f"<{self.type or 'record'} at {self.offset}>"

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Every field with its value, in order."""
        return tuple(self.values.items()) if self._fields is None else self._fields

    @property
    def has_known_fields(self) -> bool:
        """True if each field is one of `LOOKED_UP`, once, in its usual case, and nothing is wrong with the header."""
        return self._fields is None

    def first(self, name: str) -> str | None:
        """Return the first value of the field *name*, in any case."""
        return self.values.get(name if name in LOOKED_UP else _key(name))

    def all(self, name: str) -> list[str]:
        """Return every value of the field *name*, in any case, in order."""
        key = _key(name)
        if self._fields is None:
            return [self.values[key]] if key in self.values else []
        return [value for given, value in self._fields if _key(given) == key]

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of the block. The record is whole if this ends without `DamagedRecord`."""
        if block := self.take_block():
            yield block
        while not self._ended:
            piece = self._next()
            if piece:
                yield piece

    def take_block(self) -> bytes | None:
        """Return the whole block if it is in memory and was not read yet. Most are; `pieces` reads any other."""
        block, self._block = self._block, None
        return block

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
            if record.length is not None:  # it was read to its end
                continue
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
    if record.length is None:  # else it was read to its end
        for _ in record.pieces():
            pass


def _next_record(source: MemberSource) -> Record | None:
    if not source.advance():
        return None
    buffer, start = source.buffer, source.start
    if (end := buffer.find(_TRAILER) + len(_TRAILER)) >= len(_TRAILER):
        header = bytes(buffer[:end])
        if (usual := _parse_usual(header)) is not None:
            source.drop(end)
            return Record(source, header, usual)
    searched = 0
    while (end := head_end(buffer, searched)) < 0:
        if buffer[: len(_BEGIN)].upper() != _BEGIN[: len(buffer)]:
            raise _not_a_record(source)
        if len(buffer) > MAX_HEADER:
            raise DamagedRecord(start, "header-large", f"a record's header does not end within {MAX_HEADER} bytes")
        searched = max(len(buffer) - len(_TRAILER), 0)
        if not source.more():
            raise DamagedRecord(start, "header-cut", "it ends inside a record's header")
    if not buffer.startswith(_USUAL_BEGIN) and not _VERSION.match(buffer):
        raise _not_a_record(source)
    header = source.take(end)
    return Record(source, header, _parse_usual(header) or _parse(header))


def _not_a_record(source: MemberSource) -> DamagedRecord:
    if source.buffer.startswith(b"filedesc://"):
        return DamagedRecord(source.start, "arc", "this is an ARC file, the format before WARC")
    begin = bytes(source.buffer[:20])
    return DamagedRecord(source.start, "not-warc", f"no WARC record begins here, but {begin!r}")


def _resume(source: MemberSource, fault: DamagedRecord, offset: int) -> bool:
    """Set *source* to the next record: inside the same gzip member if that is undamaged, else from *offset* on."""
    compressed = source.compressed
    if fault.word == "member-empty":
        return True
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


def _key(name: str) -> str:
    """Return the key of *name* in `Values`."""
    lower = name.lower()
    return _SPELLINGS.get(lower, lower)


_Header = tuple[str, tuple[str, ...], Values, tuple[tuple[str, str], ...] | None, bool]
"""Version, faults in fixed words, first values, fields (None: those of the values), and whether it is usual."""


def _parse_usual(header: bytes) -> _Header | None:
    """Parse a header as most writers make it; None if it needs `_parse`. Both give the same record."""
    if not header.startswith(_USUAL_BEGIN) or not header.endswith(_TRAILER) or b":  " in header or b" \r" in header:
        return None
    ends = header.translate(None, _PRINTABLE)
    if ends != _LINE_ENDS[: len(ends)]:  # control characters, such as a lone CR
        return None
    text, count = header[10:-4].decode("latin-1"), len(ends) // 2 - 2
    parts = text.replace("\r\n", ": \n").split(": ")  # one split for all lines; each name but the first begins with LF
    names = _known_names(tuple(parts[::2])) if len(parts) == 2 * count <= _MOST_KNOWN else None
    if names is None:
        return _parse_lines(header, text)
    return header[5:8].decode(), (), dict(zip(names, parts[1::2], strict=True)), None, True


@lru_cache(maxsize=256)
def _known_names(marked: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of fields, all but the first *marked* by LF; None unless all are known and different."""
    first, *others = marked
    names = (first, *[name[1:] for name in others if name[0] == "\n"])
    known = len(names) == len(marked) == len(set(names)) and LOOKED_UP.issuperset(names)
    return names if known else None


def _parse_lines(header: bytes, text: str) -> _Header | None:
    """Parse the lines of a *header* without control characters, which is *text* but for the version."""
    pairs = [part.split(": ", 1) for part in text.split("\r\n")]
    try:
        values: Values = dict(pairs)
    except ValueError:  # a line without a colon
        return None
    version = header[5:8].decode()
    if len(values) == len(pairs) and LOOKED_UP.issuperset(values):
        return version, (), values, None, True
    others = values.keys() - LOOKED_UP
    if not all(map(_NAME.fullmatch, others)) or not _SPELLINGS.keys().isdisjoint(map(str.lower, others)):
        return None
    fields = tuple([(name, value) for name, value in pairs])
    return version, (), {_key(name): value for name, value in reversed(fields)}, fields, True


def _parse(header: bytes) -> _Header:
    """Parse any complete header: version, faults in fixed words, first values, and all fields."""
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
    values: Values = {}
    for name, value in joined:
        values.setdefault(_key(name), value)
    return version[1].decode() if version else "", tuple(faults), values, joined, False


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
