"""What the file system says of itself: how much is free, and in words why it took no more.

Knows paths, and no part of a collection: each edge names its own files. A number that the system does not give is
not made up: what was to be written is said as a lower bound, and a quota is not mistaken for the disk.
Who writes much syncs every `STEP` of it, be it needed on the disk or not: what piles up in the system's memory makes
every sync of every other file wait until it is written, and beyond a share of the memory stops all who write.

A collection may come from somebody else. So its files are opened here without following links, regular files only,
and names that stand in one of them are checked here before they become paths.
"""

import errno
import os
import shutil
import stat
import sys
from io import BufferedRandom
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from archiver.errors import ArchiveError

STEP = 8 << 20  # bytes; a disk of 150 MB/s needs a twentieth of a second for them

LONGEST_NAME = 240  # bytes of a file's name, which may have to end with `.open`

_UNITS = ((10**9, "GB"), (10**6, "MB"))
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for its other end


def free(path: Path) -> int:
    """Bytes that we may still write where *path* lies or would lie."""
    return shutil.disk_usage(_existing(path)).free


def sync_data(file: BinaryIO) -> None:
    """The bytes written to *file* are on disk."""
    file.flush()
    getattr(os, "fdatasync", os.fsync)(file.fileno())  # macOS and Windows have no fdatasync


def amount(count: int) -> str:
    """A number of bytes, exact, and rounded where it is long: `1234567 bytes (1.2 MB)`."""
    for size, unit in _UNITS:
        if count >= size:
            return f"{count} bytes ({count / size:.1f} {unit})"
    return f"{count} bytes"


def words(error: OSError, path: Path, wanted: int = 0) -> str:
    """Why *error* came about *path*; *wanted*: the bytes that were not written yet, as far as is known."""
    if error.errno == errno.ENOSPC:
        return full(path, wanted)
    if error.errno == getattr(errno, "EDQUOT", None):
        return f"the disk quota is used up: {_at_least(path, wanted)} more were to be written"
    if error.errno == errno.EFBIG:
        return f"a file may not grow beyond {_largest()}: {_at_least(path, wanted)} more were to be written"
    return error.strerror or str(error)


def full(path: Path, wanted: int = 0) -> str:
    """How much is missing on the full disk where *path* lies; *wanted* as for `words`."""
    try:
        left = free(path)
    except OSError:
        return "the disk is full"
    if _no_files_left(path):
        return f"the disk is full: it can hold no more files (no inode is free), though {amount(left)} are"
    said = f"the disk is full: {_at_least(path, wanted)} more were to be written, {amount(left)} are free"
    missing = max(wanted, _block(path)) - left
    return f"{said}; at least {amount(missing)} are missing" if missing > 0 else said


def _at_least(path: Path, wanted: int) -> str:
    block = _block(path)
    return amount(wanted) if wanted >= block else f"at least {amount(block)}"


def _block(path: Path) -> int:
    """The least that a file system gives away."""
    return os.statvfs(_existing(path)).f_frsize if sys.platform != "win32" else 4096


def _no_files_left(path: Path) -> bool:
    if sys.platform == "win32":
        return False
    there = os.statvfs(_existing(path))
    return there.f_files > 0 and there.f_favail == 0


def _largest() -> str:
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - not on Windows

        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit != resource.RLIM_INFINITY:
            return f"{amount(limit)} here (ulimit -f)"
    return "what its file system can hold"


def _existing(path: Path) -> Path:
    """*path*, or the nearest folder above it that is there."""
    return next((place for place in (path, *path.absolute().parents) if place.exists()), path)


def kind(mode: int) -> str:
    """What a file of this *mode* is, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "a regular file")


def regular(path: Path) -> None:
    """Refuse *path* unless it is a regular file and no link, or is not there."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise _irregular(path, mode)


def opened(path: Path, mode: str = "rb", buffering: int = -1, *, private: bool = False) -> BufferedRandom:
    """Open *path*, which must be a regular file and no link. `ArchiveError` if it is something else.

    *private*: a file that is made may be read by its owner alone.
    """
    regular(path)

    def opener(name: str, flags: int) -> int:
        handle = os.open(name, flags | _CAREFULLY, 0o600 if private else 0o666)
        found = os.fstat(handle).st_mode
        if not stat.S_ISREG(found):
            os.close(handle)
            raise _irregular(path, found)
        return handle

    return cast("BufferedRandom", open(path, mode, buffering, opener=opener))


def _irregular(path: Path, mode: int) -> ArchiveError:
    return ArchiveError(f"{path}: it is {kind(mode)}; archiver opens only regular files inside a collection")


def is_bare(name: str) -> bool:
    """Return whether *name* can be that of a file in a folder."""
    try:
        return PurePath(name).name == name != ".." and "\0" not in name and 0 < len(name.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:
        return False


def bare(name: object, where: Path) -> str:
    """Return *name* if it can be that of a file in a folder; *where* is the file that has it."""
    if isinstance(name, str) and is_bare(name):
        return name
    raise ArchiveError(f"{where} gives a file the name {str(name)[:100]!r}; names with folders are not obeyed")
