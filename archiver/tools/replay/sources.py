"""The archives of a replay: index lines with known fields, and the paths of WARC files inside the archive.

pywb and the start page get nothing else of an archive: see `server`.
"""

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import merge
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Protocol

from archiver.collection.dedup_sources import index_files
from archiver.collection.index_search import Source, open_source
from archiver.collection.layout import Layout
from archiver.collection.records import is_below
from archiver.storage import OPEN
from archiver.warc import cdx
from archiver.warc.cdxj import IndexEntry

_TRIES = 10  # retries if index files disappear while they are being opened
_LONGEST_STAMP = 20
IN_STORE = "archiver-store"  # the scheme of files that our loader reads in a store


class ReplaySource(Protocol):
    """One archive that is served.

    With `originals_only`, a payload is shown only to a revisit elsewhere with the same digest: a received crawl.toml
    can name any archive of the reader as `dedup-from`, but cannot know its content.
    """

    originals_only: bool

    def lines(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """Yield the index lines from *start* up to *end*, as CDXJ."""

    def path(self, name: str) -> str | list[str] | None:
        """Return the path of the WARC file that the index calls *name*, or several that are tried in turn."""

    def stamp(self) -> object:
        """Return a value that changes with the index."""

    def close(self) -> None:
        """Close the index."""


class FolderSource:
    """A collection in a directory, whose crawl may be running."""

    def __init__(self, directory: Path, stores: Sequence[str] = (), *, originals_only: bool = False) -> None:
        """*stores*: the addresses of stores that have files which are not in the directory."""
        self.originals_only = originals_only
        layout = Layout(directory.resolve())  # pywb works in another directory
        self._index = _Index(layout.indexes)
        self._archive = layout.archive.resolve()
        self._stores = stores

    def lines(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """See `ReplaySource`."""
        return (_line(entry, entry.filename, entry.offset) for entry in self._index.entries(start, end))

    def path(self, name: str) -> str | list[str] | None:
        """See `ReplaySource`. A file that is being written has another name, and may be renamed at any time."""
        name = name.removesuffix(OPEN)
        found = (_regular(self._archive, each) for each in (name, name + OPEN, name))
        return next((str(path) for path in found if path is not None), self._stored(name))

    def stamp(self) -> object:
        """See `ReplaySource`."""
        return self._index.stamp()

    def close(self) -> None:
        """See `ReplaySource`."""
        self._index.close()

    def _stored(self, name: str) -> list[str] | None:
        """Return addresses by which our loader finds the file *name* in a store, whose address has no question mark."""
        if not (is_below(name) and name.isprintable()):
            return None
        return [f"{IN_STORE}://{store}?archive/{name}" for store in self._stores] or None


class PackedSource:
    """An archive whose WARC files are inside other files: *places* has the file, offset and size of each."""

    originals_only = False

    def __init__(self, indexes: Path, places: Mapping[str, tuple[Path, int, int]]) -> None:
        self._index = _Index(indexes)
        self._places = places

    def lines(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """See `ReplaySource`."""
        for entry in self._index.entries(start, end):
            name = entry.filename.removeprefix("archive/")
            place = self._places.get(name)
            if place is not None and 0 <= entry.offset < place[2]:
                yield _line(entry, name, place[1] + entry.offset)

    def path(self, name: str) -> str | None:
        """See `ReplaySource`."""
        place = self._places.get(name)
        return None if place is None else str(place[0])

    def stamp(self) -> object:
        """See `ReplaySource`."""
        return self._index.stamp()

    def close(self) -> None:
        """See `ReplaySource`."""
        self._index.close()


class _Index:
    """The index files in *folder*, reopened when they change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[Path, tuple[tuple[int, ...], Source, BinaryIO]] = {}

    def entries(self, start: bytes, end: bytes) -> Iterator[IndexEntry]:
        """Yield every capture between two keys, merged from all files."""
        lines = merge(*(each.since(start) for each in self._sources()))
        found = map(cdx.parse_line, takewhile(lambda line: line < end, lines))
        return (entry for entry in found if entry is not None and _is_valid(entry))

    def close(self) -> None:
        """Close the files."""
        for _, _, file in self._opened.values():
            file.close()
        self._opened = {}

    def stamp(self) -> list[tuple[str, int, int]]:
        """Return the files with their sizes and dates."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                found = [(path, path.stat()) for path in index_files(self._folder)]
                return [(path.name, status.st_size, status.st_mtime_ns) for path, status in found]
        return []

    def _sources(self) -> list[Source]:
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                folder = self._folder.resolve()
                paths = [path for path in index_files(self._folder) if _regular(folder, path.name)]
                opened = {path: self._one(path) for path in paths}
                self._opened = opened
                return [each for _, each, _ in opened.values()]
        return []

    def _one(self, path: Path) -> tuple[tuple[int, ...], Source, BinaryIO]:
        known = self._opened.get(path)
        status = path.stat()
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if known is not None and known[0] == stamp:
            return known
        file = path.open("rb")
        return stamp, open_source(path, file), file


def _is_valid(entry: IndexEntry) -> bool:
    return entry.timestamp.isdigit() and entry.timestamp.isascii() and len(entry.timestamp) <= _LONGEST_STAMP


def _line(entry: IndexEntry, name: str, offset: int) -> bytes:
    """Return *entry* as a line of CDXJ with known fields only."""
    fields = {"url": entry.url, "mime": entry.mime, "status": entry.status, "digest": entry.digest}
    fields |= {"length": str(entry.length or "-"), "offset": str(offset), "filename": name}
    text = json.dumps({key: value for key, value in fields.items() if value})
    return f"{entry.key} {entry.timestamp} {text}".encode("utf-8", "replace")


def _regular(folder: Path, name: str) -> Path | None:
    """Return the regular file *name* in or below *folder*, a real path; None if it is not one."""
    with suppress(OSError, ValueError, RuntimeError):
        path = (folder / name).resolve(strict=True)
        if path.is_relative_to(folder) and stat.S_ISREG(path.stat().st_mode):
            return path
    return None
