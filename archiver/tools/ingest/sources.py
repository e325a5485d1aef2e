"""What the paths given to `import` stand for: WARC files, by themselves, in a folder, a collection or a package.

Everything is looked at before anything is written: what cannot be imported is refused here, in a line that names it.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import IO

from archiver.collection.records import ARCHIVE_ENDINGS, WARC_ENDINGS
from archiver.errors import ConfigError
from archiver.storage import OPEN, storage
from archiver.tools.ingest.streams import MAGICS, ends_inside
from archiver.tools.ingest.wacz import PackedFile, ReceivedPackage, bounded_json, open_archive, read_package
from archiver.warc.arc import DESCRIPTION
from archiver.warc.members import DamagedRecord
from archiver.warc.members import MemberSource as Bytes

_ZIP = b"PK\x03\x04"
_BEGIN = b"WARC/"
_ARC = DESCRIPTION.encode()
_BEGINNING = 64 << 10  # bytes of an archive in a package by which it is known
_MAGIC = 4  # bytes by which zstd is known
_LARGEST_LIST = 16 << 20  # bytes of the JSON of a package of several packages
_MOST_PACKAGES = 10_000
_ENDINGS = (*ARCHIVE_ENDINGS, *(ending + OPEN for ending in WARC_ENDINGS))


class NotAnArchiveError(ConfigError):
    """What begins as no file of records does."""


class ArchiveFormat(Enum):
    """How a file holds its records."""

    WARC = "a WARC file"
    ARC = "an ARC file, the format before WARC"
    ZSTD = "a WARC file compressed by zstd"
    JOINED = "a WARC file whose gzip members end inside records"


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One file of records, wherever it is."""

    path: Path  # of the file, or of the package that holds it
    size: int
    compressed: bool
    package: ReceivedPackage | None = None
    member: PackedFile | None = None
    form: ArchiveFormat = ArchiveFormat.WARC

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.path}: {self.member.name}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """What it is called at its place."""
        return PurePosixPath(self.member.name).name if self.member else self.path.name

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Its bytes."""
        with storage(self.path):
            if self.member is not None:
                with open_archive(self.path, self.member) as file:
                    yield file
            else:
                with self.path.open("rb") as file:
                    yield file


def find_archives(paths: Sequence[Path]) -> list[ArchiveFile]:
    """Every WARC file that *paths* stand for, each once. Raises `ConfigError` for what cannot be imported."""
    found: dict[tuple[Path, str], ArchiveFile] = {}
    for path in paths:
        for source in _of(path):
            found.setdefault((source.path.resolve(), source.member.name if source.member else ""), source)
    return list(found.values())


def _of(path: Path) -> Iterator[ArchiveFile]:
    if not path.exists():
        web = path.parts[:1] in (("http:",), ("https:",))
        raise ConfigError(
            f"{path}: there is no such file or directory{'; fetch it first, with curl -O' if web else ''}"
        )
    with storage(path):
        if path.is_dir():
            yield from _of_folder(path)
        elif path.is_file():
            yield from _of_file(path)
        else:
            raise ConfigError(f"{path} is neither a file nor a directory")


def _of_folder(folder: Path) -> Iterator[ArchiveFile]:
    archive = folder / "archive"
    below = archive.iterdir() if archive.is_dir() else folder.rglob("*")
    files = sorted(path for path in below if path.name.lower().endswith(_ENDINGS) and path.is_file())
    if not files:
        raise ConfigError(f"{folder}: there is no WARC or WACZ file in it")
    for path in files:
        yield from _of_file(path)


def _of_file(path: Path) -> Iterator[ArchiveFile]:
    if path.name.endswith(OPEN) and path.with_name(path.name.removesuffix(OPEN)).exists():
        raise ConfigError(f"{path} is being finished in this moment; call again")
    with path.open("rb") as file:
        begin = file.read(len(_ARC))
        file.seek(0)
        if begin.startswith(_ZIP):
            yield from _of_package(path)
        elif begin.lstrip()[:1] == b"{":
            yield from _of_list(path)
        else:
            form, compressed = _form(file, str(path))
            if form is ArchiveFormat.WARC and compressed and ends_inside(file):
                form = ArchiveFormat.JOINED
            yield ArchiveFile(path, path.stat().st_size, compressed, form=form)


def _form(file: IO[bytes], label: str) -> tuple[ArchiveFormat, bool]:
    """How the records lie in this file, and whether gzip has compressed it; refuses what holds none."""
    begin = file.read(_MAGIC)
    file.seek(0)
    if begin in MAGICS:
        return ArchiveFormat.ZSTD, False
    inside = Bytes(file, 0)  # type: ignore[arg-type]  # asks for nothing beyond read and seek
    if inside.compressed:
        try:
            inside.advance()
            inside.fill(len(_ARC))
        except DamagedRecord:
            return (
                ArchiveFormat.WARC,
                True,
            )  # damaged at its very beginning: reading it through shows whether there is anything
    else:
        inside.fill(len(_ARC))
    begin = bytes(inside.buffer[: len(_ARC)])
    if begin == _ARC:
        return ArchiveFormat.ARC, inside.compressed
    _check_begin(begin, label)
    return ArchiveFormat.WARC, inside.compressed


def _check_begin(begin: bytes, label: str) -> None:
    if begin[: len(_BEGIN)].upper() != _BEGIN:
        what = "it is empty" if not begin else f"it begins with {begin!r}"
        raise NotAnArchiveError(f"{label}: not a WARC or WACZ file: {what}")


def _of_package(path: Path) -> Iterator[ArchiveFile]:
    package = read_package(path)
    held: list[tuple[PackedFile, bool]] = []
    idle: list[str] = []  # what of it holds nothing, and keeps nothing else out
    for member in package.warcs:
        try:
            with open_archive(path, member) as file:
                form, compressed = _form(io.BytesIO(file.read(_BEGINNING)), member.name)
        except NotAnArchiveError as reason:
            idle.append(str(reason))
            continue
        if form is not ArchiveFormat.WARC:
            what, _, _ = form.value.partition(",")
            raise ConfigError(
                f"{path}: {member.name}: {what}, which no package may hold; unpack it, and import it by itself"
            )
        held.append((member, compressed))
    if not held:
        raise ConfigError(f"{path}: {idle[0]}")
    package = replace(package, doubts=(*package.doubts, *(f"{reason}; left out" for reason in idle[:10])))
    for member, compressed in held:
        yield ArchiveFile(path, member.size, compressed, package, member)


def _of_list(path: Path) -> Iterator[ArchiveFile]:
    """The packages that a multi-WACZ names, which lie beside it."""
    with path.open("rb") as file:
        text = file.read(_LARGEST_LIST)
    try:
        told = bounded_json(text)
        profile = told["profile"]
        names = [str(each.get("path") or each["name"]) for each in told["resources"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{path}: not a WARC or WACZ file, nor the JSON of a multi-WACZ") from None
    if profile not in ("multi-wacz-package", "wacz-package"):
        raise ConfigError(f"{path}: its profile is {str(profile)[:40]!r}, that of a multi-WACZ is 'multi-wacz-package'")
    if not names:
        raise ConfigError(f"{path}: a multi-WACZ that names no package")
    seen: set[PurePosixPath] = set()
    for name in dict.fromkeys(names):
        beside = PurePosixPath(name)
        if beside in seen:
            continue
        seen.add(beside)
        if len(seen) > _MOST_PACKAGES:
            raise ConfigError(f"{path}: it names more than {_MOST_PACKAGES} packages, the most that a list may have")
        if "://" in name or beside.is_absolute() or ".." in beside.parts or "\\" in name:
            raise ConfigError(f"{path}: it names {name[:200]!r}, which does not lie beside it; fetch that first")
        place = path.parent / beside
        if not place.is_file():
            raise ConfigError(f"{path}: it names {name[:200]!r}, and there is no such file beside it")
        with place.open("rb") as file:
            if file.read(len(_ZIP)) != _ZIP:
                raise ConfigError(f"{place}: {path.name} names it as a WACZ, and it is none")
        yield from _of_package(place)
