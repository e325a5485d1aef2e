"""Archives for `--dedup-from`, whose payloads count as stored: their index files and the places of their WARC files.

`crawl.toml` lists these archives. A collection received from someone else could name any archive on this machine, and
we would read it, refer to it and replay it. So a collection also holds a signature for each archive that this user
named. The key of the signatures never leaves the user's own folder.
"""

import hmac
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from archiver.collection.layout import Layout
from archiver.collection.records import ARCHIVE_ENDINGS
from archiver.errors import ConfigError
from archiver.storage import open_file, replace_file
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


NAME = "dedup-from.known"  # in the collection: one signature per line
LARGEST = 1 << 20  # bytes of it
_LENGTH = 32  # bytes of the key


def vouch(layout: Layout, paths: Sequence[str]) -> None:
    """Sign *paths*, which this user named, if a key can be stored."""
    key = _key(make=True) if paths else b""
    marks = _marks(layout)
    wanted = {_mark(key, path) for path in paths} if key else set()
    if wanted <= marks:
        return
    text = "".join(f"{mark}\n" for mark in sorted(marks | wanted)).encode()
    replace_file(layout.directory / NAME, lambda file: file.writelines((text,)))


def strangers(layout: Layout, paths: Iterable[str]) -> list[str]:
    """Return those of *paths* that this user did not name for this collection."""
    key, marks = _key(make=False), _marks(layout)
    return [path for path in paths if not key or _mark(key, path) not in marks]


def _mark(key: bytes, path: str) -> str:
    return hmac.digest(key, str(Path(path).resolve()).encode(errors="surrogateescape"), "sha256").hex()


def _marks(layout: Layout) -> set[str]:
    with suppress(FileNotFoundError), open_file(layout.directory / NAME) as file:
        return set(file.read(LARGEST).decode("ascii", "replace").split())
    return set()


def _key(*, make: bool) -> bytes:
    """Return this user's key; b"" if there is none and none can be stored."""
    with suppress(OSError, RuntimeError):  # there is no home folder, or it is read-only
        path = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "archiver/key"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"key.{os.getpid()}")
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(_LENGTH))
            try:
                os.link(draft, path)  # if two processes try, one succeeds
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        key = path.read_bytes()
        return key if len(key) == _LENGTH else b""
    return b""
