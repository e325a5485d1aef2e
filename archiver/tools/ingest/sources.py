"""Find the WARC files that the paths given to `import` mean: files, folders, collections or packages.

Everything is checked before anything is written, and what cannot be imported is refused with a message that names it.
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
from archiver.warc.members import DamagedRecord, MemberSource

_ZIP = b"PK\x03\x04"
_BEGIN = b"WARC/"
_ARC = DESCRIPTION.encode()
_BEGINNING = 64 << 10  # bytes of an archive in a package that are enough to recognize it
_MAGIC = 4  # bytes of the zstd magic number
_LARGEST_LIST = 16 << 20  # bytes of the JSON of a multi-WACZ
_MOST_PACKAGES = 10_000
_ENDINGS = (*ARCHIVE_ENDINGS, *(ending + OPEN for ending in WARC_ENDINGS))


class NotAnArchiveError(ConfigError):
    """The file does not begin like a file of records."""


class ArchiveFormat(Enum):
    """The format of a file of records."""

    WARC = "a WARC file"
    ARC = "an ARC file, the predecessor of WARC"
    ZSTD = "a WARC file compressed by zstd"
    JOINED = "a WARC file whose gzip members end inside records"


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One file of records, by itself or in a package."""

    path: Path  # of the file, or of its package
    size: int
    compressed: bool
    package: ReceivedPackage | None = None
    member: PackedFile | None = None
    form: ArchiveFormat = ArchiveFormat.WARC

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"{self.path}: {self.member.name}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """Its file name."""
        return PurePosixPath(self.member.name).name if self.member else self.path.name

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open it."""
        with storage(self.path):
            if self.member is not None:
                with open_archive(self.path, self.member) as file:
                    yield file
            else:
                with self.path.open("rb") as file:
                    yield file


def find_archives(paths: Sequence[Path]) -> list[ArchiveFile]:
    """Return every WARC file that *paths* mean, once. Raises `ConfigError` for what cannot be imported."""
    found: dict[tuple[Path, str], ArchiveFile] = {}
    for path in paths:
        for source in _of(path):
            found.setdefault((source.path.resolve(), source.member.name if source.member else ""), source)
    return list(found.values())


def _of(path: Path) -> Iterator[ArchiveFile]:
    if not path.exists():
        web = path.parts[:1] in (("http:",), ("https:",))
        raise ConfigError(
            f"{path}: no such file or directory{'; download it first, for example with curl -O' if web else ''}"
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
        raise ConfigError(f"{folder}: it has no WARC or WACZ file")
    for path in files:
        yield from _of_file(path)


def _of_file(path: Path) -> Iterator[ArchiveFile]:
    if path.name.endswith(OPEN) and path.with_name(path.name.removesuffix(OPEN)).exists():
        raise ConfigError(f"{path} was just finished by its crawl; run the command again")
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
    """Return the format of *file*, and whether gzip compressed it. Raises `NotAnArchiveError` for other files."""
    begin = file.read(_MAGIC)
    file.seek(0)
    if begin in MAGICS:
        return ArchiveFormat.ZSTD, False
    inside = MemberSource(file, 0)  # type: ignore[arg-type]  # asks for nothing beyond read and seek
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
    skipped: list[str] = []  # members without records, which do not prevent the import
    for member in package.warcs:
        try:
            with open_archive(path, member) as file:
                form, compressed = _form(io.BytesIO(file.read(_BEGINNING)), member.name)
        except NotAnArchiveError as reason:
            skipped.append(str(reason))
            continue
        if form is not ArchiveFormat.WARC:
            what, _, _ = form.value.partition(",")
            raise ConfigError(
                f"{path}: {member.name}: {what}, which a package must not contain; unpack it and import it separately"
            )
        held.append((member, compressed))
    if not held:
        raise ConfigError(f"{path}: {skipped[0]}")
    package = replace(package, doubts=(*package.doubts, *(f"{reason}; left out" for reason in skipped[:10])))
    for member, compressed in held:
        yield ArchiveFile(path, member.size, compressed, package, member)


def _of_list(path: Path) -> Iterator[ArchiveFile]:
    """Yield the files of the packages that a multi-WACZ names; they are in the same folder."""
    with path.open("rb") as file:
        text = file.read(_LARGEST_LIST)
    try:
        data = bounded_json(text)
        profile = data["profile"]
        names = [str(each.get("path") or each["name"]) for each in data["resources"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{path}: not a WARC or WACZ file, nor the JSON of a multi-WACZ") from None
    if profile not in ("multi-wacz-package", "wacz-package"):
        raise ConfigError(f"{path}: its profile is {str(profile)[:40]!r} instead of 'multi-wacz-package'")
    if not names:
        raise ConfigError(f"{path}: a multi-WACZ without packages")
    seen: set[PurePosixPath] = set()
    for name in dict.fromkeys(names):
        beside = PurePosixPath(name)
        if beside in seen:
            continue
        seen.add(beside)
        if len(seen) > _MOST_PACKAGES:
            raise ConfigError(f"{path}: it names more than {_MOST_PACKAGES} packages, the maximum")
        if "://" in name or beside.is_absolute() or ".." in beside.parts or "\\" in name:
            raise ConfigError(f"{path}: it names {name[:200]!r}, which is not in the same folder; download it first")
        place = path.parent / beside
        if not place.is_file():
            raise ConfigError(f"{path}: it names {name[:200]!r}, which is missing in the same folder")
        with place.open("rb") as file:
            if file.read(len(_ZIP)) != _ZIP:
                raise ConfigError(f"{place}: {path.name} names it as a WACZ, but it is not a ZIP file")
        yield from _of_package(place)
