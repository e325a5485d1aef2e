"""The lines of index files that are sorted bytewise: merged in order, or from a place that is found by halving.

A file of any size answers at once. One that is not sorted, as other programs may leave it, is sorted in memory where
it is small, and refused where it is not, with the command that makes it anew; so no line is silently passed by.
Files may be merged and removed by a crawl while they are read: all are opened together, and stay readable.
"""

import heapq
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from archiver.archive.layout import storage
from archiver.errors import ArchiveError
from archiver.warc.cdxj import LONGEST_LINE

SMALL = 16 << 20  # bytes of a file that is looked through before it is believed to be sorted
_OF_PYWB = frozenset((".cdx", ".idx", ".summary"))
_PROBES = 64  # lines of a larger file that are compared
_TRIES = 10  # times that the folder changes while its files are being opened


def only_for_pywb(folder: Path) -> list[str]:
    """The files in *folder* that pywb reads as an index, and nothing here does: CDX of old, and ZipNum."""
    with storage(folder):
        return sorted(path.name for path in folder.iterdir() if path.suffix in _OF_PYWB)


@contextmanager
def opened(folder: Path) -> Iterator["Lines"]:
    """The lines of all index files in *folder*, as they are at this moment."""
    with ExitStack() as stack:
        with storage(folder):
            files = _open_all(folder, stack)
        yield Lines([_Sorted(path, file) for path, file in files])


def _open_all(folder: Path, stack: ExitStack) -> list[tuple[Path, BinaryIO]]:
    for _ in range(_TRIES):
        with ExitStack() as attempt, suppress(FileNotFoundError):
            paths = sorted(folder.glob("*.cdxj"))
            files: list[tuple[Path, BinaryIO]] = [(path, attempt.enter_context(path.open("rb"))) for path in paths]
            if paths == sorted(folder.glob("*.cdxj")):
                stack.push(attempt.pop_all())
                return files
    raise ArchiveError(f"{folder}: its files change faster than they can be opened; try again")


class Lines:
    """The lines of several files as one."""

    def __init__(self, files: "list[_Sorted]") -> None:
        self._files = files

    def __len__(self) -> int:
        """How many files there are."""
        return len(self._files)

    def since(self, start: bytes) -> Iterator[bytes]:
        """Every line that is not before *start*, in order."""
        return heapq.merge(*(file.since(start) for file in self._files))

    def beginning(self, prefix: bytes) -> Iterator[bytes]:
        """Every line that begins with *prefix*, in order."""
        for line in self.since(prefix):
            if not line.startswith(prefix):
                return
            yield line


class _Sorted:
    """One file."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._reader: object = None  # who left the file where it stands
        with storage(path):
            self._size = file.seek(0, 2)
            if self._size <= SMALL:
                self._file.seek(0)
                if not _is_sorted(iter(self._line, b"")):
                    self._file.seek(0)
                    self._file = BytesIO(b"".join(sorted(_ended(line) for line in iter(self._line, b""))))
                    self._size = self._file.seek(0, 2)
            elif not _is_sorted(self._at_or_after(self._size * step // _PROBES)[1] for step in range(_PROBES)):
                raise self._unsorted()

    def since(self, start: bytes) -> Iterator[bytes]:
        """Every line that is not before *start*. Others may read the file between two of them."""
        with storage(self._path):
            position, last, reader = self._place_of(start), b"", object()
            while True:
                if self._reader is not reader:
                    self._file.seek(position)
                    self._reader = reader
                line = self._line()
                if not line:
                    return
                if line < last:
                    raise self._unsorted()
                last = line
                position += len(line)
                yield _ended(line)

    def _place_of(self, start: bytes) -> int:
        """Where the first line begins that is not before *start*."""
        self._reader = None
        low, high = 0, self._size  # it begins in here, or the file ends
        while low < high:
            middle = (low + high) // 2
            place, line = self._at_or_after(middle)
            if not line or line >= start:
                high = middle
            else:
                low = place + len(line)
        return self._at_or_after(low)[0]

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
                f"{self._path} has a line of more than {LONGEST_LINE} bytes, so it is no index; make it anew: "
                f"archiver index {self._path.parent.parent}"
            )
        return line

    def _unsorted(self) -> ArchiveError:
        return ArchiveError(
            f"{self._path} is not sorted bytewise, so nothing can be found in it; make it anew: "
            f"archiver index {self._path.parent.parent}"
        )


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _is_sorted(lines: Iterator[bytes]) -> bool:
    last = b""
    for line in lines:
        if line and line < last:
            return False
        last = line or last
    return True
