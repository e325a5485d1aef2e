"""Other archives whose payloads count as stored: their index files, and where their WARC files may lie. Only looks."""

from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from archiver import zipnum
from archiver.archive.stored import ARCHIVE_ENDINGS
from archiver.errors import ConfigError
from archiver.warc.cdx import read_line
from archiver.warc.cdxj import LONGEST_LINE

_SUFFIXES = frozenset((".cdxj", ".cdx")) | zipnum.SUFFIXES
_GZIP = b"\x1f\x8b"
_LOOK = 20  # lines of a file that may come before the first one of an index: some begin with a header


class OtherIndex(NamedTuple):
    """One index of an archive."""

    cdxj: Path
    folders: tuple[Path, ...]  # in one of which a WARC file lies that it names, if it is there at all


def indexes_of(given: Iterable[str], own: Path) -> tuple[OtherIndex, ...]:
    """The indexes that *given* directories and files stand for; ConfigError where one cannot be used.

    *own* is the directory of the crawl itself.
    """
    return tuple(one for path in dict.fromkeys(map(Path, given)) for one in _indexes_of(path, own))


def _indexes_of(path: Path, own: Path) -> list[OtherIndex]:
    try:
        if not path.exists():
            raise ConfigError(
                f"{path}: there is no such file or directory; right would be an archive, or an index of one"
            )
        if own.resolve() in (path.resolve(), *path.resolve().parents):
            raise ConfigError(f"{path} belongs to this crawl itself, which knows its own payloads; name another one")
        if not path.is_dir():
            _check(path)
            beside = path.absolute().parent
            return [OtherIndex(path.absolute(), (beside, beside.parent / "archive"))]
        folder = path.absolute()
        inside = folder / "indexes"
        found = (index_files(inside) if inside.is_dir() else []) or index_files(folder)
        for index in found:
            _check(index)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not found:
        how = f"archiver index {quote(str(path))} makes it" if (path / "archive").is_dir() else "name a CDXJ file"
        raise ConfigError(f"{path} holds no index, indexes/*.cdxj; {how}")
    return [OtherIndex(index, (folder / "archive", folder)) for index in found]


def index_files(folder: Path) -> list[Path]:
    """The files in *folder* that are indexes by their names, of every kind that is read here."""
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())


def _check(index: Path) -> None:
    """Refuse what is no index; an empty one is."""
    if index.suffix in zipnum.SUFFIXES:
        if not zipnum.is_keys(index):
            raise ConfigError(f"{index} is no ZipNum index: a line of one is `key timestamp`, and where a block lies")
        return
    with index.open("rb") as file:
        lines = [file.readline(LONGEST_LINE) for _ in range(_LOOK)]
    if any(lines) and not any(map(read_line, lines)):
        if index.name.lower().endswith(ARCHIVE_ENDINGS):
            how = f"archiver import {quote(str(index))} -o OTHER"
            raise ConfigError(f"{index} is no index; make a collection of it, and name that: {how}")
        packed = "; name the .idx beside it" if lines[0].startswith(_GZIP) else ""
        raise ConfigError(f"{index} is no CDXJ index: a line of one is `key timestamp {{json}}`{packed}")
