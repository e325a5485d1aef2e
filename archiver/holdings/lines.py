"""The lines of all index files of a collection, merged in order, or from a place that is found by halving.

The files are those that pywb reads: CDXJ, CDX of old (9 to 11 fields), and ZipNum, whose blocks are read one at a
time. Files may be merged and removed by a crawl while they are read: all are opened together, and stay readable.
"""

import heapq
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from archiver import zipnum
from archiver.archive.layout import storage
from archiver.archive.others import index_files
from archiver.errors import ArchiveError
from archiver.holdings import halving
from archiver.holdings.halving import Sorted, cure, ended, unsorted
from archiver.warc import cdx
from archiver.warc.cdxj import LONGEST_LINE

_CDXJ = ".cdxj"
_PROBES = 100  # lines at the beginning of a large file that tell what keys it has
_TRIES = 10  # times that the folder changes while its files are being opened


def besides_cdxj(folder: Path) -> list[str]:
    """The index files in *folder* that are not CDXJ: what `archiver index` makes is no part of them."""
    with storage(folder):
        return [path.name for path in index_files(folder) if path.suffix != _CDXJ]


@contextmanager
def opened(folder: Path) -> Iterator["Lines"]:
    """The lines of all index files in *folder*, as they are at this moment."""
    with ExitStack() as stack:
        with storage(folder):
            files = _open_all(folder, stack)
        yield Lines([source(path, file) for path, file in files])


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
    return Sorted(path, file if path.suffix == _CDXJ else _with_keys(path, file))


class Lines:
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
        self._keys = Sorted(path, file, zipnum.first_key)
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


Source = Sorted | _Blocks


def _with_keys(path: Path, file: BinaryIO) -> BinaryIO:
    """*file*, or its lines with the keys by which URLs are looked up, where it has others and is small."""
    with storage(path):
        header = file.readline(LONGEST_LINE)
        if header.startswith(cdx.HEADER) and not cdx.is_known(header):
            raise ArchiveError(f"{path} has fields in an order that nobody reads, {header[:60]!r}; {cure(path)}")
        small = file.seek(0, 2) <= halving.SMALL
        file.seek(0)
        lines = iter(lambda: file.readline(LONGEST_LINE), b"")
        found = map(cdx.read_line, lines if small else islice(lines, _PROBES))
        if not any(entry is not None and cdx.is_keyed_otherwise(entry) for entry in found):
            return file
        if not small:
            raise ArchiveError(f"{path} has keys as example.org/, so nothing can be found in it; {cure(path)}")
        file.seek(0)
        return BytesIO(b"".join(sorted(cdx.keyed(ended(line)) for line in lines)))
