"""A few sorted lines take their places in a large sorted file, most of whose lines nobody looks at.

The place of each is found by halving, and what lies between two places is copied as it is: a merge reads every line.
"""

from collections.abc import Iterable
from typing import BinaryIO

STEP = 1 << 20  # bytes copied at once


def inserted(large: BinaryIO, lines: Iterable[bytes], target: BinaryIO) -> None:
    """Write *large* to *target*, with each of the sorted *lines* that does not stand in it."""
    size = large.seek(0, 2)
    done = 0
    for line in lines:
        place = _place(large, done, size, line)
        _copy(large, done, place, target)
        done = place
        if large.readline() != line:
            target.write(line)
    _copy(large, done, size, target)


def _place(file: BinaryIO, low: int, size: int, line: bytes) -> int:
    """Where the first line behind *low* begins, itself a beginning, that does not stand before *line*; or the end.

    The file stands there then.
    """
    high = size
    while low < high:
        middle = (low + high) // 2
        if _begin(file, middle) < size and file.readline() < line:
            low = middle + 1
        else:
            high = middle
    return _begin(file, low)


def _begin(file: BinaryIO, at: int) -> int:
    """Go to where the first line begins at *at* or behind it."""
    file.seek(max(0, at - 1))
    if at:
        file.readline()
    return file.tell()


def _copy(file: BinaryIO, start: int, end: int, target: BinaryIO) -> None:
    """Copy what lies between *start* and *end*; the file stands at *end* then."""
    file.seek(start)
    left = end - start
    while left and (piece := file.read(min(STEP, left))):
        target.write(piece)
        left -= len(piece)
