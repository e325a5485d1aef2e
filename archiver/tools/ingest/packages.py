"""Read a package or a WARC file like a collection, without importing it: for look-ups, replay and `verify`.

The index of a package is unpacked into a temporary folder, and records are read inside the ZIP file. A WARC file has no
index, so it is read once as a whole to make one there. Nothing is written next to the file. If this is not possible,
the error says that importing is.

To verify a package, everything is unpacked into a temporary collection, which `verify` reads; each file is compared
with the package's list too. `wacz` limits what a hostile ZIP file can cost; the unpacked files must fit on the disk.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from shlex import quote
from shutil import copyfileobj
from typing import BinaryIO, cast

from archiver.collection import index_search
from archiver.collection.index import Index
from archiver.collection.layout import Layout
from archiver.collection.lookup import Holdings
from archiver.collection.records import record_at
from archiver.collection.reindex import add_file
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import storage
from archiver.storage.temporary import temporary_folder
from archiver.tools.ingest.sources import ArchiveFile, ArchiveFormat, find_archives
from archiver.tools.ingest.wacz import (
    CHUNK,
    PackedFile,
    ReceivedPackage,
    disagreement,
    hash_for,
    mismatches,
    offset_of,
    open_archive,
    open_member,
    read_package,
)
from archiver.tools.verify.collection import verify
from archiver.tools.verify.findings import FileRead, Findings, VerifyFinding, VerifyProgress, VerifyReport
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
    with temporary_folder("view") as folder:
        draft = Layout(folder)
        try:
            with storage(draft.indexes):
                draft.indexes.mkdir()
            if source.package is not None:
                unpack_index(source.package, draft.indexes)
            else:
                if source.size > _LONG:
                    report(f"{path} has no index; reading all of it to make one")
                index = Index(draft.indexes)
                add_file(index, source.path)
                index.finish()
            yield draft
        except ArchiveError as error:
            if str(folder) not in str(error):
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


def verify_package(path: Path, progress: Callable[[VerifyProgress], None] = lambda _: None) -> VerifyReport:
    """Read the package at *path* and return all findings. Raises `ArchiveError` if there is no room to unpack it."""
    findings = Findings()
    try:
        package = read_package(path)
    except ConfigError as error:
        findings.add(VerifyFinding(str(path), "unreadable", str(error).removeprefix(f"{path}: ")))
        return VerifyReport((), tuple(findings.kept), dict(findings.counts))
    with temporary_folder("verify") as scratch:
        folder = Layout(scratch / "package")
        _check_room(package, scratch)
        with storage(folder.directory):
            folder.archive.mkdir(parents=True)
            folder.indexes.mkdir()
        for doubt in package.doubts:
            findings.add(VerifyFinding(str(path), "package-list", doubt))
        for finding in chain(_archives(package, folder.archive), _others(package)):
            findings.add(finding)
        index_finding = _index(package, scratch / "indexes", folder.indexes)
        if index_finding is not None:
            findings.add(index_finding)
        read: tuple[FileRead, ...] = ()
        if any(folder.archive.iterdir()):
            read = _inside(path, folder, findings, progress, indexed=index_finding is None)
    return VerifyReport(read, tuple(findings.kept), dict(findings.counts))


def _check_room(package: ReceivedPackage, folder: Path) -> None:
    wanted = sum(member.size for member in (*package.warcs, *package.others))
    free = shutil.disk_usage(folder).free
    if wanted > free:
        raise ArchiveError(
            f"{package.path}: verifying it needs {wanted} bytes in {folder.parent}, but {free} are free; "
            "set TMPDIR to another folder"
        )


def _archives(package: ReceivedPackage, folder: Path) -> Iterator[VerifyFinding]:
    """Unpack the WARC files of *package* into *folder*, and yield what is wrong with them as files."""
    for member in package.warcs:
        if not member.size:
            yield VerifyFinding(f"{package.path}/{member.name}", "no-record", "it is empty")
            continue
        target = folder / PurePosixPath(member.name).name
        if target.exists():
            yield _finding(package, member, "it was not read, because another file in archive/ has the same name")
            continue
        state = hash_for(member.stated)
        try:
            with storage(target), target.open("wb") as file, open_archive(package.path, member) as stream:
                while piece := stream.read(CHUNK):
                    file.write(piece)
                    if state is not None:
                        state.update(piece)
        except ConfigError as error:
            yield _finding(package, member, str(error).removeprefix(f"{package.path}: "))
            continue
        if state is not None and (wrong := disagreement(member, state)):
            yield _finding(package, member, wrong)


def _others(package: ReceivedPackage) -> Iterator[VerifyFinding]:
    for member, wrong in mismatches(package.path, (*package.kept, *package.others)):
        if wrong:
            yield _finding(package, member, wrong)


def _index(package: ReceivedPackage, unpacked: Path, folder: Path) -> VerifyFinding | None:
    """Write the index of *package* into *folder* as one CDXJ file. Return a finding if that fails."""
    target = folder / "index.cdxj"
    try:
        with storage(unpacked):
            unpacked.mkdir()
        unpack_index(package, unpacked)
        with ExitStack() as stack, storage(target):
            found = stack.enter_context(index_search.open_index_files(unpacked))
            stack.enter_context(target.open("wb")).writelines(found.since(b""))
    except (ArchiveError, ConfigError) as error:
        target.unlink(missing_ok=True)
        why = str(error).replace(f"{unpacked}/", "").partition("; ")[0].removeprefix(f"{package.path}: ")
        return VerifyFinding(str(package.path), "package-index", why)
    return None


def _finding(package: ReceivedPackage, member: PackedFile, message: str) -> VerifyFinding:
    return VerifyFinding(f"{package.path}/{member.name}", "package-file", message)


def _inside(
    path: Path, folder: Layout, findings: Findings, progress: Callable[[VerifyProgress], None], *, indexed: bool
) -> tuple[FileRead, ...]:
    """Verify the temporary collection in *folder*, and report its findings for the package at *path*."""
    without = {"no-frontier"} if indexed else {"no-frontier", "index-missing"}  # a package never has a crawl.db
    found = verify([folder.directory], progress)

    def rename(text: str) -> str:
        return text.replace(str(folder.directory), str(path))

    findings.merge(
        {code: count for code, count in found.counts.items() if code not in without},
        (
            replace(each, file=rename(each.file), message=rename(each.message))
            for each in found.findings
            if each.code not in without
        ),
    )
    return tuple(replace(each, file=rename(each.file)) for each in found.files)
