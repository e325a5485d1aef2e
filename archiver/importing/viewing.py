"""A package or a WARC file read as a collection, without importing it: records where they lie, its index in a draft.

Of a package the index is unpacked into a temporary folder, and a record is read inside the ZIP file; of a WARC file,
which has none, an index is made there, for which it is read whole once. Nothing is written beside the file. What this
cannot do, importing can, and the line that refuses it says so.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from shlex import quote
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import BinaryIO, cast

from archiver.archive.index import Index
from archiver.archive.layout import Layout, storage
from archiver.archive.reindex import add_file
from archiver.archive.stored import record_at
from archiver.errors import ArchiveError, ConfigError
from archiver.holdings import Holdings
from archiver.importing.packages import Member, Package, open_archive, open_member
from archiver.importing.sources import Form, Source, sources
from archiver.warc.reader import Record, Torn, read

_LONG = 1 << 30  # bytes of a WARC file whose reading takes so long that it is said
_INDEXES = (".cdx", ".cdxj", ".idx", ".cdx.gz", ".cdxj.gz")


@contextmanager
def viewed(path: Path, told: Callable[[str], None]) -> Iterator[Holdings]:
    """What the file at *path* holds at this moment. `ConfigError` where it has to be imported first.

    What takes long is *told* before.
    """
    found = sources([path])
    if found[0].path.resolve() != path.resolve() or any(source.form is not Form.WARC for source in found):
        raise _only_imported(path, f"it is {found[0].form.value}" if len(found) == 1 else "it is several packages")
    with TemporaryDirectory(prefix="archiver-view-") as name:
        draft = Layout(Path(name))
        try:
            with storage(draft.indexes):
                draft.indexes.mkdir()
            package = found[0].package
            if package is not None:
                _unpack_index(package, draft.indexes)
                records = partial(_record_inside, _by_name(package), path)
            else:
                if found[0].size > _LONG:
                    told(f"{path} has no index, and is read whole for one")
                _make_index(found[0], draft.indexes)
                records = partial(record_at, path.parent)
            with Holdings.of_index(path, draft.indexes, records) as holdings:
                yield holdings
        except ArchiveError as error:
            if name not in str(error):
                raise
            raise _only_imported(path, "its index cannot be used") from error  # whose place would tell nobody anything


def _unpack_index(package: Package, folder: Path) -> None:
    for member in package.others:
        place = PurePosixPath(member.name)
        if place.parts[0] == "indexes" and len(place.parts) == 2 and place.name.endswith(_INDEXES):
            target = folder / place.name
            with storage(target), target.open("wb") as file, open_member(package.path, member) as stream:
                copyfileobj(stream, file)
    if not any(folder.iterdir()):
        raise _only_imported(package.path, "it has no index")


def _by_name(package: Package) -> dict[str, Member]:
    """The WARC files of *package* by the names that an index may have for them."""
    short = {PurePosixPath(each.name).name: each for each in package.warcs}
    return short | {each.name.partition("/")[2]: each for each in package.warcs}


def _make_index(source: Source, folder: Path) -> None:
    index = Index(folder)
    add_file(index, source.path)
    index.finish()


@contextmanager
def _record_inside(members: dict[str, Member], path: Path, name: str, offset: int) -> Iterator[Record]:
    """The record at *offset* of the WARC *name*, one of *members* of the package at *path*."""
    member = members.get(name.removeprefix("archive/"))
    if member is None or not 0 <= offset < member.size:
        raise ArchiveError(f"{path}: its index names offset {offset} of {name[:200]!r}, and there is no such place")
    if member.place is None:
        raise _only_imported(path, f"{member.name} is compressed in it once more")
    with storage(path), open_archive(path, member) as file:
        try:
            record = next(read(cast(BinaryIO, file), offset), None)
        except Torn as torn:
            raise ArchiveError(f"{path}: {member.name}: {torn}") from None
        if record is None:
            raise ArchiveError(f"{path}: {member.name}: it ends before offset {offset}, where a record should begin")
        yield record


def _only_imported(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path}: {why}; bring it into a collection: archiver import {quote(str(path))} -o DIR")
