"""Read a package or a WARC file like a collection, without importing it.

The index of a package is unpacked into a temporary folder, and records are read inside the ZIP file. A WARC file has no
index, so it is read once as a whole to make one there. Nothing is written next to the file. If this is not possible,
the error says that importing is.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from shlex import quote
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import BinaryIO, cast

from archiver.collection.index import Index
from archiver.collection.layout import Layout
from archiver.collection.lookup import Holdings
from archiver.collection.records import record_at
from archiver.collection.reindex import add_file
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import storage
from archiver.tools.ingest.sources import ArchiveFile, ArchiveFormat, find_archives
from archiver.tools.ingest.wacz import PackedFile, ReceivedPackage, offset_of, open_archive, open_member
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, read_records

_LONG = 1 << 30  # bytes of a WARC file that takes so long to index that it is reported
_INDEXES = (".cdx", ".cdxj", ".idx", ".cdx.gz", ".cdxj.gz")


@dataclass(frozen=True, slots=True)
class OpenedArchive:
    """A package or a WARC file: a folder with its index, and the place of each of its WARC files by name.

    A place is a file, an offset in it, and a size.
    """

    indexes: Path
    places: Mapping[str, tuple[Path, int, int]]


@contextmanager
def open_view(path: Path, report: Callable[[str], None]) -> Iterator[Holdings]:
    """Open the file at *path* for look-ups. Raises `ConfigError` if it has to be imported first.

    *report* receives a message before long work.
    """
    source = _source(path)
    with _draft(path, source, report) as draft:
        package = source.package
        records = partial(record_at, path.parent)
        if package is not None:
            records = partial(_record_inside, _by_name(package), path)
        with Holdings.of_index(path, draft.indexes, records) as holdings:
            yield holdings


@contextmanager
def open_offsets(path: Path, report: Callable[[str], None]) -> Iterator[OpenedArchive]:
    """Open the file at *path* for a reader that needs offsets in files; compressed members are unpacked."""
    source = _source(path)
    with _draft(path, source, report) as draft:
        package = source.package
        if package is None:
            yield OpenedArchive(draft.indexes, {path.name: (path.resolve(), 0, source.size)})
            return
        places = {member: _place_of(package, member, draft.archive) for member in package.warcs}
        yield OpenedArchive(draft.indexes, {name: places[member] for name, member in _by_name(package).items()})


def _source(path: Path) -> ArchiveFile:
    found = find_archives([path])
    if found[0].path.resolve() != path.resolve() or any(source.form is not ArchiveFormat.WARC for source in found):
        raise _only_imported(path, f"it is {found[0].form.value}" if len(found) == 1 else "it is several packages")
    return found[0]


@contextmanager
def _draft(path: Path, source: ArchiveFile, report: Callable[[str], None]) -> Iterator[Layout]:
    """Yield a temporary collection with the index of *source*."""
    with TemporaryDirectory(prefix="archiver-view-") as name:
        draft = Layout(Path(name))
        try:
            with storage(draft.indexes):
                draft.indexes.mkdir()
            if source.package is not None:
                unpack_index(source.package, draft.indexes)
            else:
                if source.size > _LONG:
                    report(f"{path} has no index; reading all of it to make one")
                _make_index(source, draft.indexes)
            yield draft
        except ArchiveError as error:
            if name not in str(error):
                raise
            raise _only_imported(
                path, "its index cannot be used"
            ) from error  # a temporary path would not help the user


def _place_of(package: ReceivedPackage, member: PackedFile, folder: Path) -> tuple[Path, int, int]:
    """Return where the bytes of *member* can be read."""
    if member.place is not None:
        return package.path.resolve(), offset_of(package.path, member), member.size
    folder.mkdir(exist_ok=True)
    target = folder / str(len(list(folder.iterdir())))
    with storage(target, lambda: member.size), target.open("wb") as file, open_member(package.path, member) as stream:
        copyfileobj(stream, file)
    return target, 0, member.size


def unpack_index(package: ReceivedPackage, folder: Path) -> None:
    """Write the index files of *package* into *folder*. Raises `ConfigError` if it has none."""
    for member in package.others:
        place = PurePosixPath(member.name)
        if place.parts[0] == "indexes" and len(place.parts) == 2 and place.name.endswith(_INDEXES):
            target = folder / place.name
            with storage(target), target.open("wb") as file, open_member(package.path, member) as stream:
                copyfileobj(stream, file)
    if not any(folder.iterdir()):
        raise _only_imported(package.path, "it has no index")


def _by_name(package: ReceivedPackage) -> dict[str, PackedFile]:
    """Return the WARC files of *package* by the names that an index may use."""
    short = {PurePosixPath(each.name).name: each for each in package.warcs}
    return short | {each.name.partition("/")[2]: each for each in package.warcs}


def _make_index(source: ArchiveFile, folder: Path) -> None:
    index = Index(folder)
    add_file(index, source.path)
    index.finish()


@contextmanager
def _record_inside(members: dict[str, PackedFile], path: Path, name: str, offset: int) -> Iterator[Record]:
    """Yield the record at *offset* of the WARC *name* of *members*, in the package at *path*."""
    member = members.get(name.removeprefix("archive/"))
    if member is None or not 0 <= offset < member.size:
        raise ArchiveError(f"{path}: its index names offset {offset} of {name[:200]!r}, which does not exist")
    if member.place is None:
        raise _only_imported(path, f"{member.name} is compressed again in it")
    with storage(path), open_archive(path, member) as file:
        try:
            record = next(read_records(cast(BinaryIO, file), offset), None)
        except DamagedRecord as damage:
            raise ArchiveError(f"{path}: {member.name}: {damage}") from None
        if record is None:
            raise ArchiveError(f"{path}: {member.name}: it ends before offset {offset}, where a record should begin")
        yield record


def _only_imported(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path}: {why}; import it first: archiver import {quote(str(path))} -o DIR")
