"""Durable writes, safe opening of files, free space, and disk errors explained.

Error messages invent no numbers: the size of a failed write is given as a lower bound, and a quota is not called a full
disk. Large writes are synced every `STEP` bytes, even if they need not be durable yet. Otherwise the system's memory
fills with unwritten data, the syncs of all other files wait for it, and at some point every write stops.
A collection may come from someone else. So its files are opened here only if they are regular files and no links, and
names read from a file are checked here before they become paths.
"""

import errno
import hashlib
import math
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom, BufferedReader
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from archiver.errors import SHORTAGES, ArchiveError, ConfigError

_DEVICES = Path("/dev")
STEP = 8 << 20  # bytes; a disk with 150 MB/s writes them in a twentieth of a second

PATIENCE = 10.0  # seconds that a thread waits for a free descriptor, …
PAUSE = 0.05  # … and between its tries

LONGEST_NAME = 240  # bytes of a file's name, with room for `.open`

_UNITS = ((10**9, "GB"), (10**6, "MB"))
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for its other end


def free(path: Path) -> int:
    """Return the free bytes on the disk of *path*, which need not exist."""
    return shutil.disk_usage(_existing(path)).free


def sha256_of(file: BufferedReader | BufferedRandom) -> str:
    """Return the SHA-256 of *file*, from where it stands to its end, in hex."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def sync_data(file: BinaryIO) -> None:
    """Sync the data of *file* to disk."""
    file.flush()
    getattr(os, "fdatasync", os.fsync)(file.fileno())  # macOS and Windows have no fdatasync


def amount(count: int) -> str:
    """Format a number of bytes exactly, and rounded too if it is large: `1234567 bytes (1.2 MB)`."""
    for size, unit in _UNITS:
        if count >= size:
            return f"{count} bytes ({count / size:.1f} {unit})"
    return f"{count} bytes"


def words(error: OSError, path: Path, wanted: int = 0) -> str:
    """Explain *error* at *path*; *wanted*: the number of bytes not yet written, as far as known."""
    if error.errno == errno.ENOSPC:
        return full(path, wanted)
    if error.errno == getattr(errno, "EDQUOT", None):
        return f"the disk quota is used up: {_at_least(path, wanted)} more were to be written"
    if error.errno == errno.EFBIG:
        return f"a file may not grow beyond {_largest()}: {_at_least(path, wanted)} more were to be written"
    return error.strerror or str(error)


def full(path: Path, wanted: int = 0) -> str:
    """Say how many bytes are missing on the full disk of *path*; *wanted* as for `words`."""
    try:
        left = free(path)
    except OSError:
        return "the disk is full"
    if _no_files_left(path):
        return f"the disk is full: it can hold no more files (no inode is free), though {amount(left)} are"
    message = f"the disk is full: {_at_least(path, wanted)} more were to be written, {amount(left)} are free"
    missing = max(wanted, _block(path)) - left
    return f"{message}; at least {amount(missing)} are missing" if missing > 0 else message


def _at_least(path: Path, wanted: int) -> str:
    block = _block(path)
    return amount(wanted) if wanted >= block else f"at least {amount(block)}"


def _block(path: Path) -> int:
    """Return the smallest unit that the file system allocates."""
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
    """Return *path*, or its nearest parent folder that exists."""
    return next((place for place in (path, *path.absolute().parents) if place.exists()), path)


def kind(mode: int) -> str:
    """Describe the kind of a file with this *mode*."""
    return _KINDS.get(stat.S_IFMT(mode), "a regular file")


def regular(path: Path) -> None:
    """Refuse *path* unless it is a regular file and no link, or does not exist."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise _irregular(path, mode)


def open_file(path: Path, mode: str = "rb", buffering: int = -1, *, private: bool = False) -> BufferedRandom:
    """Open *path*, which must be a regular file and no link; otherwise raise `ArchiveError`.

    *private*: only the owner may read a new file.
    """
    regular(path)

    def opener(name: str, flags: int) -> int:
        handle = _open(name, flags | _CAREFULLY, 0o600 if private else 0o666)
        found = os.fstat(handle).st_mode
        if not stat.S_ISREG(found):
            os.close(handle)
            raise _irregular(path, found)
        return handle

    return cast("BufferedRandom", open(path, mode, buffering, opener=opener))


def _open(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """Open *path* and return its descriptor.

    If the process has none left, threads beside the main one wait for up to `PATIENCE` seconds: the main one runs the
    requests, whose connections give theirs back.
    """
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(path, flags, mode)
        except OSError as error:
            waits = error.errno in SHORTAGES and threading.current_thread() is not threading.main_thread()
            if not waits or time.monotonic() > ends:
                raise
        time.sleep(PAUSE)


def why_closed(path: Path) -> str:
    """Return why the regular file *path* cannot be opened; "" if it can."""
    try:
        open_file(path, buffering=0).close()
    except PermissionError as error:
        return words(error, path)
    return ""


def _irregular(path: Path, mode: int) -> ArchiveError:
    return ArchiveError(f"{path}: it is {kind(mode)}; archiver opens only regular files inside a collection")


def is_bare(name: str) -> bool:
    """Return True if *name* is a valid file name without folders."""
    try:
        return PurePath(name).name == name != ".." and "\0" not in name and 0 < len(name.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:
        return False


def bare(name: object, where: Path | str) -> str:
    """Return *name* if it is a valid file name; *where* is the file that has it."""
    if isinstance(name, str) and is_bare(name):
        return name
    raise ArchiveError(f"{where} gives a file the name {str(name)[:100]!r}; names with folders are not obeyed")


def allowed() -> float:
    """Return how many files and sockets this process may have open; infinity without a limit."""
    if sys.platform == "win32":
        return math.inf
    import resource  # noqa: PLC0415 - not on Windows

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


OPEN = ".open"  # the suffix of a WARC that is being written
DRAFT = ".tmp"  # the suffix of any other file that is being written


def _unknown() -> int:
    return 0


@contextmanager
def storage(path: Path, wanted: Callable[[], int] = _unknown) -> Iterator[None]:
    """Turn errors of the operating system about *path* into an `ArchiveError` that names it and the missing bytes.

    *wanted* returns the number of bytes not yet written, and is called only after an error.
    """
    try:
        yield
    except OSError as error:
        raise trouble(error, path, wanted()) from error


def trouble(error: OSError, path: Path, wanted: int) -> ArchiveError:
    """Return the error that `storage` raises, for places where a context manager per call would be too slow."""
    place = Path(error.filename) if isinstance(error.filename, str) else path
    return ArchiveError(f"{place}: {words(error, path, wanted)}")


def sync_folder(folder: Path) -> None:
    """Make created and renamed files in *folder* survive a power cut. Windows does this by itself."""
    if os.name == "nt":
        return
    handle = _open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def close_to_others(*paths: Path) -> None:
    """Let no one but their owner read the files *paths*, as far as they exist."""
    for path in paths:
        with storage(path), suppress(FileNotFoundError):
            path.chmod(0o600)


def is_private(path: Path) -> bool:
    """Return True if only its owner may read the file at *path*."""
    try:
        return path.lstat().st_mode & 0o077 == 0
    except FileNotFoundError:
        return False


def _refuse_devices(path: Path) -> None:
    """Raise `ConfigError` if *path* is no place for a file. As root, one would replace a device for all programs."""
    if path.parent == _DEVICES and path.is_symlink():  # such as /dev/stdout, whatever it leads to
        raise ConfigError(f"{path} is a link to an open file, which archiver does not replace; name another file")
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # it does not exist, or is reported when it is written
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ConfigError(f"{path} is {kind(mode)}, which archiver does not replace; name another file")


def replace_file(
    path: Path, fill: Callable[[BinaryIO], None], size: Callable[[], int] = _unknown, *, private: bool = False
) -> None:
    """Replace *path* atomically by what *fill* writes; after an error the old file is unchanged and no draft is left.

    *private*: only its owner may read it. A file that was private before stays private.

    *size* gives the full size of the file and is called only after an error. If it is unknown, the bytes written
    until then are a lower bound.
    """
    _refuse_devices(path)
    draft = path.with_name(path.name + DRAFT)
    taken = 0  # bytes that the file should have had when writing failed
    with storage(path, lambda: taken):
        try:
            with open_file(draft, "wb", private=private or is_private(path)) as file:
                try:
                    fill(file)
                    sync_data(file)
                except OSError:
                    taken = max(file.tell(), size())
                    raise
            draft.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            if error.filename == str(draft):
                error.filename = str(path)
            raise


def config_home() -> Path:
    """Return the folder of this user's settings (XDG Base Directory Specification). RuntimeError without a home."""
    named = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("APPDATA") if os.name == "nt" else None)
    if named and Path(named).is_absolute():  # the specification: a relative path is to be ignored
        return Path(named)
    return Path.home() / ".config"


_KEY_LENGTH = 32  # bytes


def user_key(*, make: bool) -> bytes:
    """Return this user's key; b"" if there is none and none can be stored."""
    with suppress(OSError, RuntimeError):  # there is no home folder, or it is read-only
        path = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "archiver/key"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"key.{os.getpid()}")
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(_KEY_LENGTH))
            try:
                os.link(draft, path)  # if two processes try, one succeeds
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        key = path.read_bytes()
        return key if len(key) == _KEY_LENGTH else b""
    return b""
