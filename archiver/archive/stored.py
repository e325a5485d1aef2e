"""One record of a collection, read from its place: what an index or the database points at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archiver.archive.layout import OPEN, storage
from archiver.errors import ArchiveError
from archiver.warc.reader import Record, Torn, read


@contextmanager
def record_at(folder: Path, name: str, offset: int) -> Iterator[Record]:
    """The record at *offset* of the WARC *name* in *folder*, whether the file has its final name yet or not.

    Its block is still to be read, and only inside the context. Raises `ArchiveError` where there is no such file or
    no record begins there; reading a damaged block raises `Torn`.
    """
    path = _path(folder, name.removesuffix(OPEN))
    with storage(path), path.open("rb") as file:
        try:
            record = next(read(file, offset), None)
        except Torn as torn:
            raise ArchiveError(f"{path}: {torn}") from None
        if record is None:
            raise ArchiveError(f"{path}: it ends before offset {offset}, where a record should begin")
        yield record


def is_stored(folder: Path, name: str) -> bool:
    """Whether there is a WARC *name* in *folder*, whether it has its final name yet or not."""
    name = name.removesuffix(OPEN)
    return bool(name) and ((folder / name).is_file() or (folder / (name + OPEN)).is_file())


def _path(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / (name + OPEN), folder / name):  # it may get its name in this very moment
        if path.exists():
            return path
    raise ArchiveError(f"{folder / name} is missing")
