"""One file of lines that are sorted bytewise, read from a place that is found by halving.

A file of any size answers at once. One that is not sorted, as other programs may leave it, is sorted in memory where
it is small, and refused where it is not, with the command that makes it anew; so no line is silently passed by.
"""

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from archiver.archive.layout import storage
from archiver.errors import ArchiveError
from archiver.warc.cdxj import LONGEST_LINE

SMALL = 16 << 20  # bytes of a file that is looked through before it is believed to be sorted
_PROBES = 64  # lines of a larger file that are compared


def _itself(line: bytes) -> bytes:
    return line


class Sorted:
    """The lines of *file*, which lies at *path*, by what *of* gives for each."""

    def __init__(self, path: Path, file: BinaryIO, of: Callable[[bytes], bytes] = _itself) -> None:
        self._path = path
        self._file = file
        self._of = of
        self._reader: object = None  # who left the file where it stands
        with storage(path):
            self._size = file.seek(0, 2)
            if self._size <= SMALL:
                self._file.seek(0)
                if not self._is_sorted(iter(self._line, b"")):
                    self._file.seek(0)
                    lines: list[bytes] = sorted(map(ended, iter(self._line, b"")), key=of)
                    self._file = BytesIO(b"".join(lines))
                    self._size = self._file.seek(0, 2)
            elif not self._is_sorted(self._at_or_after(self._size * step // _PROBES)[1] for step in range(_PROBES)):
                raise unsorted(path)

    def since(self, start: bytes, *, one_more: bool = False) -> Iterator[bytes]:
        """Every line that is not before *start*, and with *one_more* the last that is.

        Others may read the file between two of them.
        """
        with storage(self._path):
            before, position = self._place_of(start)
            if one_more:
                position = before
            last, reader = b"", object()
            while True:
                if self._reader is not reader:
                    self._file.seek(position)
                    self._reader = reader
                line = self._line()
                if not line:
                    return
                by = self._of(line)
                if by < last:
                    raise unsorted(self._path)
                last = by
                position += len(line)
                yield ended(line)

    def _place_of(self, start: bytes) -> tuple[int, int]:
        """Where the last line begins that is before *start*, and where the first that is not."""
        self._reader = None
        before = 0
        low, high = 0, self._size  # it begins in here, or the file ends
        while low < high:
            middle = (low + high) // 2
            place, line = self._at_or_after(middle)
            if not line or self._of(line) >= start:
                high = middle
            else:
                before, low = place, place + len(line)
        return before, self._at_or_after(low)[0]

    def _at_or_after(self, position: int) -> tuple[int, bytes]:
        """The first line that begins at *position* or behind it, and where."""
        if position:
            self._file.seek(position - 1)
            position += len(self._line()) - 1
        else:
            self._file.seek(0)
        return position, self._line()

    def _line(self) -> bytes:
        line = self._file.readline(LONGEST_LINE)
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise ArchiveError(
                f"{self._path} has a line of more than {LONGEST_LINE} bytes, so it is no index; {cure(self._path)}"
            )
        return line

    def _is_sorted(self, lines: Iterator[bytes]) -> bool:
        last = b""
        for line in lines:
            by = self._of(line)
            if line and by < last:
                return False
            last = by if line else last
        return True


def unsorted(path: Path) -> ArchiveError:
    """What is raised about an index that cannot be searched."""
    return ArchiveError(f"{path} is not sorted bytewise, so nothing can be found in it; {cure(path)}")


def cure(path: Path) -> str:
    """What is to be done about an index that cannot be used."""
    command = f"archiver index {quote(str(path.parent.parent))}"
    return f"make it anew: {command}" if path.suffix == ".cdxj" else f"take it away, and make one anew: {command}"


def ended(line: bytes) -> bytes:
    """*line* with its end."""
    return line if line.endswith(b"\n") else line + b"\n"
