"""Search the index files of a collection: binary search in each sorted file, then a merge of their lines.

The files are those that pywb reads: CDXJ, the older CDX (9 to 11 fields), and ZipNum, whose blocks are read one at a
time. A crawl may merge and remove files during a search: all are opened together, so they stay readable.
A file of any size answers at once. A file that is not sorted, as other programs may leave it, is sorted in memory if it
is small. Otherwise it is refused, and the error names the command that rebuilds it; so no line is silently skipped.
A file with zero bytes is refused too, as a power cut or a full disk leaves them, and `check_ends` refuses a cut one.
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
from archiver.warc import cdx
from archiver.warc.cdxj import LONGEST_LINE

_CDXJ = ".cdxj"
GROWING = "run-"  # begins the name of a file that a crawl writes, so its last line may not be complete yet
SMALL = 16 << 20  # bytes; up to this size all lines are checked for their order
_ORDER_PROBES = 64  # lines compared in a larger file


_Readline = Callable[[], bytes]
_Key = Callable[[bytes], bytes]


def _whole_line(line: bytes) -> bytes:
    return line


def first_line(file: BinaryIO, position: int, readline: _Readline) -> tuple[int, bytes]:
    """Return where the first line begins that starts at *position* or later, and that line."""
    if position:
        file.seek(position - 1)
        position += len(readline()) - 1
    else:
        file.seek(0)
    return position, readline()


def find_line(
    read: Callable[[int], tuple[int, bytes]], start: bytes, low: int, high: int, key: _Key = _whole_line
) -> tuple[int, int]:
    """Return where the last line before *start* begins, and where the first other line begins, by binary search.

    *read* is `first_line` of one file; *low* is the beginning of a line, *high* the size of the file.
    """
    before = 0
    while low < high:
        middle = (low + high) // 2
        place, line = read(middle)
        if not line or key(line) >= start:
            high = middle
        else:
            before, low = place, place + len(line)
    return before, read(low)[0]


class SortedFile:
    """The lines of *file*, which lies at *path*, sorted by *key*."""

    def __init__(self, path: Path, file: BinaryIO, key: _Key = _whole_line) -> None:
        self._path = path
        self._file = file
        self._key = key
        self._reader: object = None  # the iterator that moved the file last
        with storage(path):
            self._size = file.seek(0, 2)
            self._torn = self._torn_line()  # lines that are sorted in memory all get a line end
            if self._size <= SMALL:
                self._file.seek(0)
                if not self._is_sorted(iter(self._line, b"")):
                    self._file.seek(0)
                    lines: list[bytes] = sorted(map(with_line_end, iter(self._line, b"")), key=key)
                    self._file = BytesIO(b"".join(lines))
                    self._size = self._file.seek(0, 2)
            elif not self._is_sorted(
                self._read(self._size * step // _ORDER_PROBES)[1] for step in range(_ORDER_PROBES)
            ):
                raise unsorted(path)

    def check_end(self) -> None:
        """Raise `ArchiveError` if the last line has no line end and is no entry: the file was cut."""
        if self._torn and not self._path.name.startswith(GROWING) and cdx.parse_line(self._torn) is None:
            raise ArchiveError(f"{self._path} ends within a line, {self._torn[:60]!r}; {rebuild_advice(self._path)}")

    def since(self, start: bytes, *, one_more: bool = False) -> Iterator[bytes]:
        """Yield every line from *start* on, and with *one_more* first the last line before it.

        Several iterators may take turns on the same file.
        """
        with storage(self._path):
            self._reader = None
            before, position = find_line(self._read, start, 0, self._size, self._key)
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
                by = self._key(line)
                if by < last:
                    raise unsorted(self._path)
                last = by
                position += len(line)
                yield with_line_end(line)

    def _read(self, position: int) -> tuple[int, bytes]:
        return first_line(self._file, position, self._line)

    def _torn_line(self) -> bytes:
        """Return the last line if it has no line end."""
        self._file.seek(max(0, self._size - 1))
        if self._file.read(1) in (b"", b"\n"):
            return b""
        self._file.seek(max(0, self._size - LONGEST_LINE))
        return self._file.read().rpartition(b"\n")[2]

    def _line(self) -> bytes:
        line = self._file.readline(LONGEST_LINE)
        if b"\0" in line and self._path.suffix not in cdx.ZIPNUM_SUFFIXES:  # `Cluster` names what is wrong in those
            raise ArchiveError(f"{self._path} is damaged: it has zero bytes; {rebuild_advice(self._path)}")
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise ArchiveError(
                f"{self._path} has a line of more than {LONGEST_LINE} bytes, so it is not an index; "
                f"{rebuild_advice(self._path)}"
            )
        return line

    def _is_sorted(self, lines: Iterator[bytes]) -> bool:
        last = b""
        for line in lines:
            by = self._key(line)
            if line and by < last:
                return False
            last = by if line else last
        return True


def unsorted(path: Path) -> ArchiveError:
    """Return the error for an index that cannot be searched."""
    return ArchiveError(f"{path} is not sorted bytewise, so it cannot be searched; {rebuild_advice(path)}")


def rebuild_advice(path: Path) -> str:
    """Return what to do about an index that cannot be used."""
    command = f"archiver index {quote(str(path.parent.parent))}"
    return f"rebuild it: {command}" if path.suffix == _CDXJ else f"remove it and build a new one: {command}"


def with_line_end(line: bytes) -> bytes:
    """Return *line* with a line feed at its end."""
    return line if line.endswith(b"\n") else line + b"\n"


_KEY_PROBES = 100  # lines at the beginning of a large file that are checked for the form of its keys
_TRIES = 10  # attempts to open all files of a folder that keeps changing


def besides_cdxj(folder: Path) -> list[str]:
    """Return the names of the index files in *folder* that are not CDXJ; `archiver index` does not rebuild them."""
    with storage(folder):
        return [path.name for path in index_files(folder) if path.suffix != _CDXJ]


@contextmanager
def open_index_files(folder: Path) -> Iterator["IndexLines"]:
    """Open all index files in *folder* as they are now."""
    with ExitStack() as stack:
        with storage(folder):
            files = _open_all(folder, stack)
        yield IndexLines([open_source(path, file) for path, file in files])


def _open_all(folder: Path, stack: ExitStack) -> list[tuple[Path, BinaryIO]]:
    for _ in range(_TRIES):
        with ExitStack() as attempt, suppress(FileNotFoundError):
            paths = index_files(folder)
            files: list[tuple[Path, BinaryIO]] = [(path, attempt.enter_context(path.open("rb"))) for path in paths]
            if paths == index_files(folder):
                stack.push(attempt.pop_all())
                return files
    raise ArchiveError(f"{folder}: its files change faster than they can be opened; try again")


def open_source(path: Path, file: BinaryIO) -> "Source":
    """Return the searchable lines of *file*, the index of any kind at *path*."""
    if path.suffix in cdx.ZIPNUM_SUFFIXES:
        return _ZipNumIndex(path, file)
    return SortedFile(path, file if path.suffix == _CDXJ else _with_keys(path, file))


class IndexLines:
    """The lines of several index files, merged."""

    def __init__(self, files: "list[Source]") -> None:
        self._files = files

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._files)

    def check_ends(self) -> None:
        """Raise `ArchiveError` if one of the files was cut within a line."""
        for file in self._files:
            file.check_end()

    def since(self, start: bytes) -> Iterator[bytes]:
        """Yield every line from *start* on, in order."""
        return heapq.merge(*(file.since(start) for file in self._files))

    def beginning(self, prefix: bytes) -> Iterator[bytes]:
        """Yield every line that begins with *prefix*, in order."""
        for line in self.since(prefix):
            if not line.startswith(prefix):
                return
            yield line


class _ZipNumIndex:
    """An index in compressed blocks, with a sorted file of the first key of each."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._keys = SortedFile(path, file, cdx.first_key)
        with storage(path):
            self._cluster = cdx.Cluster(path)

    def check_end(self) -> None:
        """As that of `SortedFile`. A cut file of keys fails here; a cut block is named when it is read."""
        self._keys.check_end()

    def since(self, start: bytes) -> Iterator[bytes]:
        """Yield every line from *start* on; the first may be in the block that begins before it."""
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
            raise ArchiveError(f"{error}; {rebuild_advice(self._path)}") from None


Source = SortedFile | _ZipNumIndex


def _with_keys(path: Path, file: BinaryIO) -> BinaryIO:
    """Return *file*, or a copy in memory with our lookup keys if it is small and has keys of another form."""
    with storage(path):
        header = file.readline(LONGEST_LINE)
        if header.startswith(cdx.HEADER) and not cdx.is_known(header):
            raise ArchiveError(f"{path} has its fields in an unknown order, {header[:60]!r}; {rebuild_advice(path)}")
        small = file.seek(0, 2) <= SMALL
        file.seek(0)
        lines = iter(lambda: file.readline(LONGEST_LINE), b"")
        found = map(cdx.parse_line, lines if small else islice(lines, _KEY_PROBES))
        if not any(entry is not None and cdx.has_other_key(entry) for entry in found):
            return file
        if not small:
            raise ArchiveError(f"{path} has keys like example.org/, so it cannot be searched; {rebuild_advice(path)}")
        file.seek(0)
        return BytesIO(b"".join(sorted(cdx.with_our_key(with_line_end(line)) for line in lines)))
