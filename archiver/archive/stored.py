"""What lies in `archive/`: its WARC files, and one record of them, read from where an index or the database points."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import BinaryIO

from archiver import disk
from archiver.archive.layout import OPEN, Layout, storage
from archiver.disk import is_bare
from archiver.errors import ArchiveError
from archiver.warc.reader import Record, Torn, read

WARC_ENDINGS = (".warc", ".warc.gz")
DEEPEST = 8  # folders in an archive
ARCHIVE_ENDINGS = (".wacz", ".arc", ".arc.gz", ".warc.zst", *WARC_ENDINGS)  # of whatever can be imported


def warc_files(layout: Layout) -> list[Path]:
    """The WARC files of a collection, whoever wrote them, open ones too, by name; none where it has no archive."""
    if not layout.archive.is_dir():
        return []
    with storage(layout.archive):
        return sorted(path for path in layout.archive.iterdir() if _is_warc(path.name) and path.is_file())


def maybe_ours(layout: Layout) -> list[Path]:
    """Those that this program may have written: it compresses all."""
    return [path for path in warc_files(layout) if path.name.removesuffix(OPEN).endswith(".gz")]


@contextmanager
def record_at(folder: Path, name: str, offset: int) -> Iterator[Record]:
    """The record at *offset* of the WARC *name* in *folder*, whether the file has its final name yet or not.

    Its block is still to be read, and only inside the context. Raises `ArchiveError` where there is no such file or
    no record begins there; reading a damaged block raises `Torn`.
    """
    path, found = opened(folder, name)
    with storage(path), found as file:
        try:
            record = next(read(file, offset), None)
        except Torn as torn:
            raise ArchiveError(f"{path}: {torn}") from None
        if record is None:
            raise ArchiveError(f"{path}: it ends before offset {offset}, where a record should begin")
        yield record


def opened(folder: Path, name: str) -> tuple[Path, BinaryIO]:
    """The WARC *name* in *folder*, whether it has its final name yet or not; raises `ArchiveError`."""
    name = name.removesuffix(OPEN)
    for path in _names(folder, name):
        with storage(path), suppress(FileNotFoundError):
            return path, disk.opened(path)
    raise ArchiveError(f"{folder / name} is missing")


def is_stored(folder: Path, name: str) -> bool:
    """Whether there is a WARC *name* in *folder*, whether it has its final name yet or not."""
    name = name.removesuffix(OPEN)
    return bool(name) and any(path.is_file() for path in _names(folder, name))


def is_below(name: str) -> bool:
    """Return whether *name* can be that of a file in a folder, or in one below it."""
    path = PurePath(name)
    outside = path.is_absolute() or path.drive or ".." in path.parts
    return not outside and 0 < len(path.parts) <= DEEPEST and all(is_bare(part) for part in path.parts)


def _names(folder: Path, name: str) -> tuple[Path, ...]:
    """Where the file may be found, looked at in this order: it may get its final name in this very moment.

    Names come from indexes and databases: one that leads out of *folder* is that of no file.
    """
    if not is_below(name):
        return ()
    return folder / name, folder / (name + OPEN), folder / name


def _is_warc(name: str) -> bool:
    return name.removesuffix(OPEN).endswith(WARC_ENDINGS)
