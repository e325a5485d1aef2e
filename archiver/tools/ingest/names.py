"""Names for imported files, and the side files of packages and originals of converted files below `imports/`.

A name stays as close to that at the source as is safe. No name leads out of a folder, hides a file, or collides where
case does not matter.

Of a package, its list and digest (with a signature, if any), its pages and its logs are kept unchanged; its index is
rebuilt. Originals are kept byte for byte where replay does not look.
"""

import errno
import re
import shutil
from collections.abc import Container
from contextlib import suppress
from os.path import realpath
from pathlib import Path, PurePosixPath

from archiver.collection.layout import Layout
from archiver.errors import ConfigError
from archiver.storage import DRAFT, replace_file, sha256_of, storage, sync_folder
from archiver.tools.ingest.wacz import CHUNK, ReceivedPackage, open_member

LONGEST = 180  # characters, so that suffixes fit into the 255 bytes of a file system
ENDINGS = (".warc.gz", ".warc.zst", ".arc.gz", ".warc", ".arc", ".wacz", ".gz", ".zst")

_UNSAFE = re.compile(r"[^A-Za-z0-9._~+=@,-]")
_UNFINISHED = re.compile(r"(?:\.open|\.tmp)+$", re.IGNORECASE)


def safe(name: str, longest: int = LONGEST) -> str:
    """Return *name* as one harmless part of a path; empty if nothing remains."""
    return _UNSAFE.sub("_", name).strip("._")[-longest:].lstrip("._-")


def stem(name: str) -> str:
    """Return *name* without its file extension."""
    name = _UNFINISHED.sub("", name)
    lower = name.lower()
    ending = next((ending for ending in ENDINGS if lower.endswith(ending)), "")
    return name[: len(name) - len(ending)]


def file_name(name: str, sha256: str, taken: Container[str], *, compressed: bool) -> str:
    """Return a name for the file called *name* at its source; *taken*: lower-case names in use.

    The extension matches the content, because readers go by it.
    """
    ending = ".warc.gz" if compressed else ".warc"
    begin = safe(stem(name)) or "import"
    for mark in ("", f"-{sha256[:8]}", f"-{sha256}"):
        found = f"{begin}{mark}{ending}"
        if found.lower() not in taken:
            return found
    raise AssertionError("two files of one digest are one file")


def collection_name(path: Path) -> str:
    """Return the name of a new collection for the import of *path*."""
    folder = Path(realpath(path))  # links may be in a circle
    if folder.name in ("archive", ""):
        folder = folder.parent
    return safe(stem(folder.name), 100) or "imported"


FOLDER = "imports"


def keep_side_files(layout: Layout, package: ReceivedPackage) -> str:
    """Keep the side files of *package*, and return their folder relative to the collection. Can be repeated."""
    name = f"{safe(stem(package.path.name), 100) or 'package'}-{package.mark}"
    folder = layout.directory / FOLDER / name
    for member in package.kept:
        parts = [safe(part) or "_" for part in PurePosixPath(member.name).parts]
        place = folder.joinpath(*parts)
        with storage(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        # damage is reported as a doubt
        with suppress(ConfigError), open_member(package.path, member) as stream:
            replace_file(place, lambda file, stream=stream: shutil.copyfileobj(stream, file, CHUNK))  # type: ignore[misc]
    return f"{FOLDER}/{name}"


ORIGINALS = f"{FOLDER}/originals"


def place_for(layout: Layout, name: str, sha256: str, taken: set[str]) -> str:
    """Return the path for the original called *name*, relative to the collection: an existing copy, or a free name.

    *taken*: paths in use, in lower case.
    """
    begin = safe(name) or "original"
    for found in (begin, f"{sha256[:8]}-{begin}", f"{sha256}-{begin}"):
        place = f"{ORIGINALS}/{found}"
        if place.lower() not in taken and _is_free(layout.directory / place, sha256):
            return place
    raise AssertionError("two files of one digest are one file")


def keep_original(draft: Path, layout: Layout, place: str) -> None:
    """Rename *draft*, which is synced, to *place*; an existing file there has the same bytes."""
    path = layout.directory / place
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            draft.unlink()
            return
        try:
            draft.rename(path)
        except OSError as error:
            if error.errno != errno.EXDEV:  # archive/ is a link to another disk
                raise
            with draft.open("rb") as file:
                replace_file(path, lambda copy: shutil.copyfileobj(file, copy))
            draft.unlink()
        for folder in (path.parent, path.parent.parent, layout.directory):
            sync_folder(folder)


def _is_free(path: Path, sha256: str) -> bool:
    with storage(path):
        if not path.exists():
            return True
        with path.open("rb") as file:
            return sha256_of(file) == sha256


class ExistingFiles:
    """The files in archive/ before the import, by size and digest."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._by_size: dict[int, list[str]] = {}
        self._digests: dict[str, str] = {}
        with storage(archive):
            for path in sorted(archive.iterdir()):
                if path.is_file() and not path.name.endswith(DRAFT):
                    self._by_size.setdefault(path.stat().st_size, []).append(path.name)

    def names(self) -> set[str]:
        """Return all names in lower case."""
        return {name.lower() for names in self._by_size.values() for name in names}

    def may_hold(self, size: int) -> bool:
        """Return whether a file has *size* bytes."""
        return size in self._by_size

    def holder(self, size: int, sha256: str) -> str:
        """Return the name of the file with these bytes; empty if none."""
        for name in self._by_size.get(size, ()):
            if name not in self._digests:
                with storage(self._archive / name), (self._archive / name).open("rb") as file:
                    self._digests[name] = sha256_of(file)
            if self._digests[name] == sha256:
                return name
        return ""
