"""The lines of all index files of a collection, merged in order, or from a place that is found by halving.

The files are those that pywb reads: CDXJ, CDX of old (9 to 11 fields), and ZipNum, whose blocks are read one at a
time. Files may be merged and removed by a crawl while they are read: all are opened together, and stay readable.

One file of lines that are sorted bytewise, read from a place that is found by halving.

A file of any size answers at once. One that is not sorted, as other programs may leave it, is sorted in memory where
it is small, and refused where it is not, with the command that makes it anew; so no line is silently passed by.
"""

import heapq
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from archiver.collection.dedup_sources import index_files
from archiver.errors import ArchiveError
from archiver.storage import storage
from archiver.warc import cdx, zipnum
from archiver.warc.cdxj import LONGEST_LINE

SMALL = 16 << 20  # bytes of a file that is looked through before it is believed to be sorted
_HALVING_PROBES = 64  # lines of a larger file that are compared


def _itself(line: bytes) -> bytes:
    return line


class SortedFile:
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
            elif not self._is_sorted(
                self._at_or_after(self._size * step // _HALVING_PROBES)[1] for step in range(_HALVING_PROBES)
            ):
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


_CDXJ = ".cdxj"
_PROBES = 100  # lines at the beginning of a large file that tell what keys it has
_TRIES = 10  # times that the folder changes while its files are being opened


def besides_cdxj(folder: Path) -> list[str]:
    """The index files in *folder* that are not CDXJ: what `archiver index` makes is no part of them."""
    with storage(folder):
        return [path.name for path in index_files(folder) if path.suffix != _CDXJ]


@contextmanager
def open_index_files(folder: Path) -> Iterator["IndexLines"]:
    """The lines of all index files in *folder*, as they are at this moment."""
    with ExitStack() as stack:
        with storage(folder):
            files = _open_all(folder, stack)
        yield IndexLines([source(path, file) for path, file in files])


def _open_all(folder: Path, stack: ExitStack) -> list[tuple[Path, BinaryIO]]:
    for _ in range(_TRIES):
        with ExitStack() as attempt, suppress(FileNotFoundError):
            paths = index_files(folder)
            files: list[tuple[Path, BinaryIO]] = [(path, attempt.enter_context(path.open("rb"))) for path in paths]
            if paths == index_files(folder):
                stack.push(attempt.pop_all())
                return files
    raise ArchiveError(f"{folder}: its files change faster than they can be opened; try again")


def source(path: Path, file: BinaryIO) -> "Source":
    """The lines of *file*, the index at *path*, of whatever kind."""
    if path.suffix in zipnum.SUFFIXES:
        return _Blocks(path, file)
    return SortedFile(path, file if path.suffix == _CDXJ else _with_keys(path, file))


class IndexLines:
    """The lines of several files as one."""

    def __init__(self, files: "list[Source]") -> None:
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


class _Blocks:
    """One index in blocks."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._keys = SortedFile(path, file, zipnum.first_key)
        with storage(path):
            self._cluster = zipnum.Cluster(path)

    def since(self, start: bytes) -> Iterator[bytes]:
        """Every line that is not before *start*; the first may stand in the block that begins before it."""
        last = b""
        with storage(self._path):
            for line in self._from_block(start):
                if line < last:
                    raise unsorted(self._path)
                last = line
                if line >= start:
                    yield line

    def _from_block(self, start: bytes) -> Iterator[bytes]:
        try:
            for _, found in self._cluster.blocks(self._keys.since(start, one_more=True)):
                yield from found
        except ArchiveError as error:
            raise ArchiveError(f"{error}; {cure(self._path)}") from None


Source = SortedFile | _Blocks


def _with_keys(path: Path, file: BinaryIO) -> BinaryIO:
    """*file*, or its lines with the keys by which URLs are looked up, where it has others and is small."""
    with storage(path):
        header = file.readline(LONGEST_LINE)
        if header.startswith(cdx.HEADER) and not cdx.is_known(header):
            raise ArchiveError(f"{path} has fields in an order that nobody reads, {header[:60]!r}; {cure(path)}")
        small = file.seek(0, 2) <= SMALL
        file.seek(0)
        lines = iter(lambda: file.readline(LONGEST_LINE), b"")
        found = map(cdx.parse_line, lines if small else islice(lines, _PROBES))
        if not any(entry is not None and cdx.is_keyed_otherwise(entry) for entry in found):
            return file
        if not small:
            raise ArchiveError(f"{path} has keys as example.org/, so nothing can be found in it; {cure(path)}")
        file.seek(0)
        return BytesIO(b"".join(sorted(cdx.keyed(ended(line)) for line in lines)))
