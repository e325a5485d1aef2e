"""The lock of a collection: one process crawls at a time. The lock ends with its holder, and names it."""

import json
import math
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO, BinaryIO, Self

from archiver.collection.layout import Layout
from archiver.errors import ConfigError
from archiver.storage import open_file, storage

TRIES, PAUSE = 5, 0.02  # seconds
QUIET = 3.0  # seconds without the lock after which a process is done with the directory
SIGNING_TRIES = 50  # one second, in which a new holder writes its name

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # Windows keeps others from reading locked bytes, so we lock one that no one reads

    def _take(file: IO[str]) -> None:
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open_lock(path: Path) -> tuple[IO[str], bool]:
    """Open the lock file at *path* and return whether it is writable; a read-only file can be locked too."""
    try:
        return _text(open_file(path, "a+b")), True
    except PermissionError:
        return _text(open_file(path)), False


def _text(file: BinaryIO) -> IO[str]:
    return TextIOWrapper(file, encoding="utf-8", errors="replace")


def _is_alive(pid: int) -> bool:
    """Return True if process *pid* runs here; always true on Windows, which has no such test."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


class Lock:
    """Holds the lock file *path* until it is released. The operating system releases it when the process ends.

    Raises `ConfigError` if another process holds it.
    """

    def __init__(self, path: Path) -> None:
        with storage(path):
            self._file, writable = _open_lock(path)
        try:
            self._try()
        except OSError:
            holder = self._holder()
            self._file.close()
            message = f"{path.parent}: {holder} is working in it; wait until it ends, or stop it"
            raise ConfigError(message) from None
        if writable:
            try:
                self._sign(path)
            except BaseException:
                self.release()
                raise

    def _sign(self, path: Path) -> None:
        text = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        with storage(path, lambda: len(text)):
            self._file.seek(0)
            self._file.truncate()
            self._file.write(text)
            self._file.flush()

    def _try(self) -> None:
        """Take the lock; try for a moment, because `status` holds it for an instant."""
        for _ in range(TRIES - 1):
            try:
                _take(self._file)
            except OSError:
                time.sleep(PAUSE)
            else:
                return
        _take(self._file)

    def _holder(self) -> str:
        """Name the process that holds the lock; one that has just taken it may not have written its name yet."""
        for _ in range(SIGNING_TRIES):
            with suppress(OSError, OverflowError):
                self._file.seek(0)
                found = _parse_holder(self._file.read())
                if found.pid and (found.host != socket.gethostname() or _is_alive(found.pid)):
                    return str(found)
            time.sleep(PAUSE)
        return str(Holder())

    @property
    def fileno(self) -> int:
        """The open file. A process that inherits it holds the lock too."""
        return self._file.fileno()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock, and ignore disk errors: the lock is the open file, its text is only for people."""
        with suppress(OSError):  # the file may be read-only
            self._file.seek(0)
            self._file.truncate()
        with suppress(OSError):
            self._file.close()


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that works in a directory; pid 0 if it has not written its name."""

    pid: int = 0
    host: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.pid else "another process"


def holder(directory: Path) -> Holder | None:
    """Return the process that works in *directory* now; None if there is none or this system cannot tell."""
    try:
        with open_file(Layout(directory).lock) as file, _free(file) as free:
            return None if free else _parse_holder(file.read(4096).decode(errors="replace"))
    except OSError:
        return None


class HolderWatch:
    """Watches the process that works in *directory* now, until it has ended.

    A process that crawls releases the lock before it ends, and takes it again to store what describes the crawl and to
    deliver events. So we wait for the process, or, if it may live on or cannot be seen from here, until others have not
    seen the lock held for a while.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._holder = holder(directory)
        self._process = -1 if self._holder is None else _open_process(self._holder)
        self._free_since = 0.0 if self._holder is None else math.inf

    def has_ended(self, now: float) -> bool:
        """Return True if the process has ended by the time *now* of a clock that never goes back; look often."""
        if self._holder is None or (self._process >= 0 and select.select([self._process], [], [], 0)[0]):
            return True
        if holder(self._directory) == self._holder:
            self._free_since = math.inf
        else:
            self._free_since = min(self._free_since, now)
        return now - self._free_since >= QUIET

    def close(self) -> None:
        """Stop watching."""
        if self._process >= 0:
            os.close(self._process)
            self._process = -1


def _open_process(found: Holder) -> int:
    """Return an open file that can be read when the process *found* has ended; -1 if there is no such thing here."""
    if sys.platform == "linux" and found.pid and found.host == socket.gethostname():
        with suppress(OSError):  # it has just ended, or is in another container
            return os.pidfd_open(found.pid)
    return -1


@contextmanager
def _free(file: BinaryIO) -> Iterator[bool]:
    """Give True if no process holds the lock on *file*."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield True
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _parse_holder(text: str) -> Holder:
    with suppress(ValueError, TypeError, KeyError):
        found = json.loads(text)
        return Holder(int(found["pid"]), str(found["host"]))
    return Holder()
