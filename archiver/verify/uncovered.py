"""The bits of a gzip member that neither its CRC nor its length covers, in the files that this program wrote.

Its header is a constant there, and the bits behind the end of the deflate data are zero. What stays unseen
is a change after which the same data come out, such as another distance inside a run of one byte.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from isal import isal_zlib
from isal.igzip_lib import IsalError

from archiver.archive import compressing
from archiver.verify.digests import Finding

HEADER = compressing.HEADER
TRAILER = 8  # CRC and length
CHUNK = 64 << 10

_BROKEN: tuple[type[Exception], ...] = (IsalError, ValueError)  # type: ignore[assignment]  # the stub has an instance


def begins_as_written(file: BinaryIO, offset: int) -> bool:
    """Whether a gzip member as this program writes them begins at *offset* of *file*."""
    file.seek(offset)
    return file.read(len(HEADER)) == HEADER


def uncovered_findings(file: BinaryIO, offset: int, length: int) -> Iterator[Finding]:
    """What is not as this program writes it in the sound member of *length* bytes at *offset* of *file*."""
    file.seek(offset)
    header = file.read(len(HEADER))
    if header != HEADER:
        yield "gzip-altered", f"the header of the gzip member is {header.hex()}, it was written as {HEADER.hex()}"
    file.seek(offset + length - TRAILER - 1)
    last = file.read(1)[0]
    if last and _is_padding(file, offset, length, last):
        yield "gzip-altered", "the bits behind the gzip member's data are not zero, as they were written"


def _is_padding(file: BinaryIO, offset: int, length: int, last: int) -> bool:
    """Whether the highest set bit of the last byte of data means nothing.

    That bit cleared must decode. It could still be the last bit of a distance whose other place holds the same bytes,
    with an end of nothing but zeros behind it: so the bits from there on, all set, must decode as well.
    """
    top = last.bit_length() - 1
    readings = (last & ~(1 << top), last | (0xFF << top) & 0xFF)
    return all(reading == last or _decodes(file, offset, length, reading) for reading in readings)


def _decodes(file: BinaryIO, offset: int, length: int, last: int) -> bool:
    """Whether the member is sound with *last* as the last byte of its data."""
    file.seek(offset)
    changed = length - TRAILER - 1
    inflate = isal_zlib.decompressobj(31)
    given = 0
    try:
        while given < length and not inflate.eof:
            piece = bytearray(file.read(min(CHUNK, length - given)))
            if not piece:
                return False
            if given <= changed < given + len(piece):
                piece[changed - given] = last
            given += len(piece)
            _inflate(inflate, bytes(piece))
    except _BROKEN:
        return False
    return inflate.eof and given == length and not inflate.unused_data


def _inflate(inflate: Any, piece: bytes) -> None:
    """Decode *piece* to its end, and forget what comes out."""
    while not inflate.eof:
        data = inflate.decompress(piece, CHUNK)
        piece = inflate.unconsumed_tail
        if not piece and not data:
            return
