"""Verify a package: its WARC files and index like those of a collection, and each file against the package's list.

Everything is unpacked into a temporary collection, which `verify` reads. `wacz` limits what a hostile ZIP file can
cost; the unpacked files must fit on the disk.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from archiver.collection import index_search
from archiver.collection.layout import Layout
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import storage
from archiver.tools import verify
from archiver.tools.ingest.view import unpack_index
from archiver.tools.ingest.wacz import (
    CHUNK,
    PackedFile,
    ReceivedPackage,
    disagreement,
    hash_for,
    mismatches,
    open_archive,
    read_package,
)
from archiver.tools.verify import Fault, FileRead, Findings, VerifyProgress, VerifyReport


def verify_package(path: Path, progress: Callable[[VerifyProgress], None] = lambda _: None) -> VerifyReport:
    """Read the package at *path* and return all findings. Raises `ArchiveError` if there is no room to unpack it."""
    findings = Findings()
    try:
        package = read_package(path)
    except ConfigError as error:
        findings.add(Fault(str(path), "unreadable", str(error).removeprefix(f"{path}: ")))
        return VerifyReport((), tuple(findings.kept), dict(findings.counts))
    with TemporaryDirectory(prefix="archiver-verify-") as name:
        folder = Layout(Path(name, "package"))
        _check_room(package, Path(name))
        with storage(folder.directory):
            folder.archive.mkdir(parents=True)
            folder.indexes.mkdir()
        for doubt in package.doubts:
            findings.add(Fault(str(path), "package-list", doubt))
        for fault in chain(_archives(package, folder.archive), _others(package)):
            findings.add(fault)
        index_fault = _index(package, Path(name, "indexes"), folder.indexes)
        if index_fault is not None:
            findings.add(index_fault)
        read: tuple[FileRead, ...] = ()
        if any(folder.archive.iterdir()):
            read = _inside(path, folder, findings, progress, indexed=index_fault is None)
    return VerifyReport(read, tuple(findings.kept), dict(findings.counts))


def _check_room(package: ReceivedPackage, folder: Path) -> None:
    wanted = sum(member.size for member in (*package.warcs, *package.others))
    free = shutil.disk_usage(folder).free
    if wanted > free:
        raise ArchiveError(
            f"{package.path}: verifying it needs {wanted} bytes in {folder.parent}, but {free} are free; "
            "set TMPDIR to another folder"
        )


def _archives(package: ReceivedPackage, folder: Path) -> Iterator[Fault]:
    """Unpack the WARC files of *package* into *folder*, and yield what is wrong with them as files."""
    for member in package.warcs:
        if not member.size:
            yield Fault(f"{package.path}/{member.name}", "no-record", "it is empty")
            continue
        target = folder / PurePosixPath(member.name).name
        if target.exists():
            yield _fault(package, member, "it was not read, because another file in archive/ has the same name")
            continue
        state = hash_for(member.stated)
        try:
            with storage(target), target.open("wb") as file, open_archive(package.path, member) as stream:
                while piece := stream.read(CHUNK):
                    file.write(piece)
                    if state is not None:
                        state.update(piece)
        except ConfigError as error:
            yield _fault(package, member, str(error).removeprefix(f"{package.path}: "))
            continue
        if state is not None and (wrong := disagreement(member, state)):
            yield _fault(package, member, wrong)


def _others(package: ReceivedPackage) -> Iterator[Fault]:
    for member, wrong in mismatches(package.path, (*package.kept, *package.others)):
        if wrong:
            yield _fault(package, member, wrong)


def _index(package: ReceivedPackage, unpacked: Path, folder: Path) -> Fault | None:
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
        return Fault(str(package.path), "package-index", why)
    return None


def _fault(package: ReceivedPackage, member: PackedFile, message: str) -> Fault:
    return Fault(f"{package.path}/{member.name}", "package-file", message)


def _inside(
    path: Path, folder: Layout, findings: Findings, progress: Callable[[VerifyProgress], None], *, indexed: bool
) -> tuple[FileRead, ...]:
    """Verify the temporary collection in *folder*, and report its findings for the package at *path*."""
    without = {"no-frontier"} if indexed else {"no-frontier", "index-missing"}  # a package never has a crawl.db
    found = verify.verify([folder.directory], progress)

    def rename(text: str) -> str:
        return text.replace(str(folder.directory), str(path))

    findings.merge(
        {code: count for code, count in found.counts.items() if code not in without},
        (
            replace(each, file=rename(each.file), message=rename(each.message))
            for each in found.faults
            if each.code not in without
        ),
    )
    return tuple(replace(each, file=rename(each.file)) for each in found.files)
