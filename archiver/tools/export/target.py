"""The folder of an export: whose files those in it are, so that one that was stopped can be done again.

While it is written, `.archiver-export` lies in it: a lock, the file that is being written, and a journal with the
digest of each file before that gets its name. What stands there unchanged is ours, and may be replaced or removed;
whatever else is there stays as it is. Each file appears whole. At the end all of it is on disk, and the sign goes.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from archiver.collection.lock import Lock
from archiver.errors import ConfigError
from archiver.storage import storage

SIGN = ".archiver-export"

_LINE = re.compile(rb"([0-9a-f]{64}) ([^\n]{1,4000})\n")
_LONGEST = 8192  # bytes of a line


def is_unfinished(folder: Path) -> bool:
    """Whether an export to *folder* was begun, and did not come to its end."""
    return (folder / SIGN).is_dir() and not (folder / SIGN).is_symlink()


class ExportFolder:
    """The folder while it is written; give it back with `with`, which leaves it to be gone on with, finished or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sign = folder / SIGN
        self._draft = self._sign / "draft"
        self._written: set[str] = set()
        with storage(self._sign):
            self._sign.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self._sign / "lock")
        try:
            self._inside = folder.resolve()
            self._earlier, cut = self._read()  # what a journal names, and whether it ends inside a line
            with storage(self._sign):
                self._journal = (self._sign / "journal").open("ab")
            if cut:
                self._note(b"\n")
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def put(self, path: str, pieces: Iterable[bytes]) -> int:
        """Write *pieces* to *path*, with `/` between its parts; how many bytes they are."""
        target = self._folder.joinpath(*path.split("/"))
        state = hashlib.sha256()
        size = 0
        with storage(target):
            with self._draft.open("wb") as output:
                for piece in pieces:
                    output.write(piece)
                    state.update(piece)
                    size += len(piece)
            digest = state.hexdigest()
            self._written.add(path)
            if self._has(target, path, digest):
                return size
            target.parent.mkdir(parents=True, exist_ok=True)
            self._note(f"{digest} {path}\n".encode())
            self._draft.replace(target)
        return size

    def finish(self) -> None:
        """Remove what an earlier export left that is not of this one, and the sign; all is on disk then."""
        for path, digests in self._earlier.items():
            if path not in self._written:
                self._remove(path, digests)
        with storage(self._folder):
            if hasattr(os, "sync"):  # one call: to sync each file would cost more than to write it
                os.sync()
            self._close()
            for name in ("draft", "journal", "lock"):
                (self._sign / name).unlink(missing_ok=True)
            self._sign.rmdir()  # the last step: before it, the export is not finished

    def _has(self, target: Path, path: str, digest: str) -> bool:
        """Whether *target* is what is to be there already; refuses what no export wrote."""
        if not target.parent.resolve().is_relative_to(self._inside):
            raise ConfigError(f"{target.parent} leads out of {self._folder}; name another folder")
        if not os.path.lexists(target):
            return False
        found = _digest(target)
        if found != digest and found not in self._earlier.get(path, ()):
            raise ConfigError(f"{target} is not as an export wrote it; take it away, or name another folder with --to")
        return found == digest

    def _close(self) -> None:
        if not self._journal.closed:
            with suppress(OSError):  # what could not be written was told already
                self._journal.close()
            self._lock.release()

    def _note(self, line: bytes) -> None:
        self._journal.write(line)
        self._journal.flush()

    def _read(self) -> tuple[dict[str, set[str]], bool]:
        """What exports before this one have written or were about to write, and whether the last line is cut."""
        earlier: dict[str, set[str]] = {}
        line = b"\n"
        journal = self._sign / "journal"
        with storage(journal):
            if journal.exists():
                with journal.open("rb") as file:
                    while piece := file.readline(_LONGEST):
                        line = piece
                        if found := _LINE.fullmatch(line):
                            earlier.setdefault(found[2].decode("utf-8", "replace"), set()).add(found[1].decode())
        return earlier, not line.endswith(b"\n")

    def _remove(self, path: str, digests: set[str]) -> None:
        """Remove what is at *path* if it is what an export wrote, and the folders that are empty then."""
        target = self._folder / path
        with storage(target):
            if not target.parent.resolve().is_relative_to(self._inside) or _digest(target) not in digests:
                return
            target.unlink()
            for folder in target.parents:
                if folder == self._folder or any(folder.iterdir()):
                    return
                folder.rmdir()


def _digest(path: Path) -> str:
    """Of the file at *path*; "" where there is none, or something else."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
