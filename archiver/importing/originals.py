"""Files that were imported in another form, kept byte for byte below `imports/`, where replay does not look."""

import errno
import hashlib
import shutil
from pathlib import Path

from archiver.archive.layout import Layout, replace_file, storage, sync_folder
from archiver.importing.kept import FOLDER
from archiver.importing.names import safe

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
