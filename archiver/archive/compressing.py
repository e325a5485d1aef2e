"""One gzip member for each record, and how hard it is compressed: by its size, and by what a sample of it gains.

isal is the quickest by far, but it looks for repetitions only in small tables: what it loses grows with a page. So
short records go to isal, long ones to zlib-ng, and to isal again where they cannot be made smaller: pictures, films,
answers with a coding. docs/performance.md has the figures.
Every member has the same header and zeros behind its data, whoever compressed it: `verify` counts on both.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from isal import isal_zlib
from zlib_ng import zlib_ng

HEADER = bytes.fromhex("1f8b08000000000000ff")  # no name, no time, no hints, no system: what isal writes

VAIN = 1  # isal's level where trying hard is in vain
SHORT = 2  # isal's level for short records
LONG = 5  # zlib-ng's level for long ones
LIMIT = 24 << 10  # bytes from which on a record is long

_SAMPLE = 1 << 10  # bytes in each of three places
_GAIN = 0.95  # a sample that stays larger than this part of itself gains nothing
_RAW = -15  # deflate without a frame, largest window
_GZIP = 31


def member(record: bytes) -> bytes:
    """The gzip member of *record*."""
    if len(record) < LIMIT:
        return isal_zlib.compress(record, SHORT, _GZIP)
    if _in_vain(record):
        return isal_zlib.compress(record, VAIN, _GZIP)
    return HEADER + zlib_ng.compress(record, LONG, _RAW) + _trailer(isal_zlib.crc32(record), len(record))


def member_in_pieces(first: bytes, others: Iterable[bytes]) -> Iterator[bytes]:
    """The gzip member of a record that is too long to be held, in pieces. How it begins says how it is compressed."""
    compressor = (
        isal_zlib.compressobj(VAIN, isal_zlib.DEFLATED, _RAW)
        if _in_vain(first)
        else zlib_ng.compressobj(LONG, zlib_ng.DEFLATED, _RAW)
    )
    crc = length = 0
    yield HEADER
    for piece in chain((first,), others):
        crc = isal_zlib.crc32(piece, crc)
        length += len(piece)
        yield compressor.compress(piece)
    yield compressor.flush() + _trailer(crc, length)


def _in_vain(data: bytes) -> bool:
    """Whether *data* seems to be compressed already."""
    step = len(data) // 4
    sample = b"".join(data[place : place + _SAMPLE] for place in (step, 2 * step, 3 * step))
    return len(isal_zlib.compress(sample, VAIN, _RAW)) > _GAIN * len(sample)


def _trailer(crc: int, length: int) -> bytes:
    return crc.to_bytes(4, "little") + (length & 0xFFFFFFFF).to_bytes(4, "little")
