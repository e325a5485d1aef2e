"""Temporary folders and files, in the folder that TMPDIR names. What a killed process leaves is removed later.

A process that is killed cannot remove its folder. So each folder has a lock file, which the process locks for as long
as it lives, and the next command that needs such a folder removes all folders of this user whose lock is free.
"""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

from archiver.errors import ArchiveError
from archiver.storage import open_file, storage

if sys.platform != "win32":
    import fcntl

_PREFIX, _ALIVE = "archiver-", "alive.lock"  # of a folder, and the file in it


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Yield a new folder, named after *purpose*. Raises `ArchiveError` if none can be made.

    The folder contains nothing but the lock file, whose name no caller uses. What cannot be removed at the end, because
    another process still writes it, is left to the next command.
    """
    place = _place()
    _remove_leftovers(place)
    with storage(place):
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-", dir=place))
    try:
        with _marked_alive(folder):
            yield folder
    finally:
        _remove(folder)


@contextmanager
def temporary_file() -> Iterator[BinaryIO]:
    """Yield a new file that has no name. Raises `ArchiveError` if none can be made."""
    place = _place()
    with storage(place):
        file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115 - closed below
    with file:
        yield file


def _place() -> Path:
    """Return the folder for temporary files."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # Python tries to write in several folders, and in the current one
        raise ArchiveError(
            "no folder for temporary files is writable, neither that of TMPDIR nor /tmp, /var/tmp or the current "
            "directory; set TMPDIR to one with free space"
        ) from None


@contextmanager
def _marked_alive(folder: Path) -> Iterator[None]:
    """Hold the lock in *folder*. It gets its name once it is held, so that no other process takes it before."""
    draft = folder / f"{_ALIVE}.draft"
    with storage(draft):
        file = draft.open("wb")
    with file:
        if sys.platform != "win32":
            with suppress(OSError):  # a file system without locks: no one removes the folder after a kill
                fcntl.flock(file, fcntl.LOCK_EX)
                draft.rename(folder / _ALIVE)
        yield


@cache  # once for a process, because some make a folder for each of many hosts
def _remove_leftovers(place: Path) -> None:
    """Remove the folders in *place* that killed processes of this user have left: those whose lock is free."""
    if sys.platform == "win32":
        return
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError, ArchiveError):  # it is another's, or another process has just removed it
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            with open_file(folder / _ALIVE) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove *folder*, its lock file last, so that the next command goes on if this one is killed."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                rmtree(path, ignore_errors=True)  # follows no links
            elif path.name != _ALIVE:
                path.unlink()
    rmtree(folder, ignore_errors=True)
