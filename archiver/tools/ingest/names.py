"""What an imported file is called: as at its source as far as that is safe, and as nothing that is there. Pure.

No name from outside leads out of a folder, hides a file, or collides where upper and lower case are one.

What a package tells of its archives beside them: kept as it is, below `imports/` in the collection.

Its list and digest (with a signature, if any), its pages and its logs. Its index is made anew and not kept.

Files that were imported in another form, kept byte for byte below `imports/`, where replay does not look.
"""

import errno
import hashlib
import re
import shutil
from collections.abc import Container
from contextlib import suppress
from pathlib import Path, PurePosixPath

from archiver.collection.layout import Layout
from archiver.errors import ConfigError
from archiver.storage import replace_file, storage, sync_folder
from archiver.tools.ingest.wacz import CHUNK, ReceivedPackage, open_member

LONGEST = 180  # characters, so that the suffixes of open files and runs still fit into a file system's 255 bytes
ENDINGS = (".warc.gz", ".warc.zst", ".arc.gz", ".warc", ".arc", ".wacz", ".gz", ".zst")

_UNSAFE = re.compile(r"[^A-Za-z0-9._~+=@,-]")
_UNFINISHED = re.compile(r"(?:\.open|\.tmp)+$", re.IGNORECASE)


def safe(name: str, longest: int = LONGEST) -> str:
    """*name* as a single harmless part of a path; "" where nothing is left of it."""
    return _UNSAFE.sub("_", name).strip("._")[-longest:].lstrip("._-")


def stem(name: str) -> str:
    """*name* without the ending that tells what it is."""
    name = _UNFINISHED.sub("", name)
    lower = name.lower()
    ending = next((ending for ending in ENDINGS if lower.endswith(ending)), "")
    return name[: len(name) - len(ending)]


def file_name(name: str, sha256: str, taken: Container[str], *, compressed: bool) -> str:
    """A name for what is called *name* at its source and has this digest; *taken*: names in lower case.

    The ending tells the truth: readers go by it.
    """
    ending = ".warc.gz" if compressed else ".warc"
    begin = safe(stem(name)) or "import"
    for mark in ("", f"-{sha256[:8]}", f"-{sha256}"):
        found = f"{begin}{mark}{ending}"
        if found.lower() not in taken:
            return found
    raise AssertionError("two files of one digest are one file")


def collection_name(path: Path) -> str:
    """What a collection is called into which *path* is the first to be imported."""
    whole = path.resolve()
    if whole.name in ("archive", ""):
        whole = whole.parent
    return safe(stem(whole.name), 100) or "imported"


FOLDER = "imports"


def keep_papers(layout: Layout, package: ReceivedPackage) -> str:
    """Keep the papers of *package*; the folder, below that of the collection, in which they lie. Again: the same."""
    name = f"{safe(stem(package.path.name), 100) or 'package'}-{package.mark}"
    folder = layout.directory / FOLDER / name
    for member in package.kept:
        parts = [safe(part) or "_" for part in PurePosixPath(member.name).parts]
        place = folder.joinpath(*parts)
        with storage(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        # What is damaged is told as a doubt, and is not kept.
        with suppress(ConfigError), open_member(package.path, member) as stream:
            replace_file(place, lambda file, stream=stream: shutil.copyfileobj(stream, file, CHUNK))  # type: ignore[misc]
    return f"{FOLDER}/{name}"


ORIGINALS = f"{FOLDER}/originals"


def place_for(layout: Layout, name: str, sha256: str, taken: set[str]) -> str:
    """Where the original called *name* is kept, below the directory: where it lies already, or where nothing does.

    *taken*: places that are given away, in lower case.
    """
    begin = safe(name) or "original"
    for found in (begin, f"{sha256[:8]}-{begin}", f"{sha256}-{begin}"):
        place = f"{ORIGINALS}/{found}"
        if place.lower() not in taken and _is_free(layout.directory / place, sha256):
            return place
    raise AssertionError("two files of one digest are one file")


def keep_original(draft: Path, layout: Layout, place: str) -> None:
    """Let *draft*, whose bytes are on disk, be the original at *place*, where nothing lies but the same bytes."""
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
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
