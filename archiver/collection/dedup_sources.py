"""Archives for `--dedup-from`, whose payloads count as stored: their index files and the places of their WARC files.

`crawl.toml` lists these archives. A collection received from someone else could name any archive on this machine, and
we would read it, refer to it and replay it. So `named_files` keeps a mark of each archive that this user named.
"""

from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from archiver.collection.records import ARCHIVE_ENDINGS
from archiver.errors import ConfigError
from archiver.warc import cdx
from archiver.warc.cdx import parse_line
from archiver.warc.cdxj import LONGEST_LINE

_SUFFIXES = frozenset((".cdxj", ".cdx")) | cdx.ZIPNUM_SUFFIXES
_GZIP = b"\x1f\x8b"
_PROBED_LINES = 20  # one of the first lines must be an entry; some files begin with a header


class OtherIndex(NamedTuple):
    """One index of another archive."""

    cdxj: Path
    folders: tuple[Path, ...]  # where the WARC files that it names may be


def indexes_of(given: Iterable[str], own: Path) -> tuple[OtherIndex, ...]:
    """Return the indexes in the *given* directories and files; ConfigError if one cannot be used.

    *own* is the directory of the crawl itself.
    """
    return tuple(one for path in dict.fromkeys(map(Path, given)) for one in _indexes_of(path, own))


def _indexes_of(path: Path, own: Path) -> list[OtherIndex]:
    try:
        if not path.exists():
            raise ConfigError(f"{path}: there is no such file or directory; name an archive, or the index of one")
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
    """Return the files in *folder* whose names end like those of an index."""
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())


def _check(index: Path) -> None:
    """Refuse *index* if it is not an index; an empty file is accepted."""
    if index.suffix in cdx.ZIPNUM_SUFFIXES:
        if not cdx.is_zipnum(index):
            raise ConfigError(
                f"{index} is not a ZipNum index, whose lines are `key timestamp` and the place of a block"
            )
        return
    with index.open("rb") as file:
        lines = [file.readline(LONGEST_LINE) for _ in range(_PROBED_LINES)]
    if any(lines) and not any(map(parse_line, lines)):
        if index.name.lower().endswith(ARCHIVE_ENDINGS):
            how = f"archiver import {quote(str(index))} -o OTHER"
            raise ConfigError(f"{index} is not an index; import it into a collection and name that: {how}")
        packed = "; name the .idx beside it" if lines[0].startswith(_GZIP) else ""
        raise ConfigError(f"{index} is not a CDXJ index, whose lines are `key timestamp {{json}}`{packed}")
