"""The folder of an export, and which of its files belong to the export, so that an interrupted one can be repeated.

During the export it has a folder `.archiver-export` with a lock, the file being written, and a journal with the digest
of each file, which is written before the file gets its name. Unchanged files of the journal may be replaced or removed;
all others stay as they are. Each file appears as a whole. At the end everything is synced, and the marker folder is
removed.
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

MARKER = ".archiver-export"

_LINE = re.compile(rb"([0-9a-f]{64}) ([^\n]{1,4000})\n")
_LONGEST = 8192  # bytes of a line


def is_unfinished(folder: Path) -> bool:
    """Return whether an export to *folder* was started but not finished."""
    return (folder / MARKER).is_dir() and not (folder / MARKER).is_symlink()


class ExportFolder:
    """The folder during the export; use it with `with`. An unfinished export can be repeated."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marker = folder / MARKER
        self._draft = self._marker / "draft"
        self._written: set[str] = set()
        with storage(self._marker):
            self._marker.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self._marker / "lock")
        try:
            self._inside = folder.resolve()
            self._earlier, cut = self._read()  # files in the journal, and whether its last line is incomplete
            with storage(self._marker):
                self._journal = (self._marker / "journal").open("ab")
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

    def write(self, path: str, pieces: Iterable[bytes]) -> int:
        """Write *pieces* to *path*, with `/` between its parts, and return their size."""
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
        """Remove files of an earlier export that are not in this one, and the marker; then everything is on disk."""
        for path, digests in self._earlier.items():
            if path not in self._written:
                self._remove(path, digests)
        with storage(self._folder):
            if hasattr(os, "sync"):  # one call; syncing each file would cost more than writing it
                os.sync()
            self._close()
            for name in ("draft", "journal", "lock"):
                (self._marker / name).unlink(missing_ok=True)
            self._marker.rmdir()  # last, because the export is unfinished until then

    def _has(self, target: Path, path: str, digest: str) -> bool:
        """Return whether *target* is up to date. Raises `ConfigError` for a file that no export wrote."""
        if not target.parent.resolve().is_relative_to(self._inside):
            raise ConfigError(f"{target.parent} leads out of {self._folder}; choose another folder")
        if not os.path.lexists(target):
            return False
        found = _digest(target)
        if found != digest and found not in self._earlier.get(path, ()):
            raise ConfigError(f"{target} was not written by an export; remove it or choose another folder with --to")
        return found == digest

    def _close(self) -> None:
        if not self._journal.closed:
            with suppress(OSError):  # errors were reported already
                self._journal.close()
            self._lock.release()

    def _note(self, line: bytes) -> None:
        self._journal.write(line)
        self._journal.flush()

    def _read(self) -> tuple[dict[str, set[str]], bool]:
        """Return the files in the journal, and whether its last line is incomplete."""
        earlier: dict[str, set[str]] = {}
        line = b"\n"
        journal = self._marker / "journal"
        with storage(journal):
            if journal.exists():
                with journal.open("rb") as file:
                    while piece := file.readline(_LONGEST):
                        line = piece
                        if found := _LINE.fullmatch(line):
                            earlier.setdefault(found[2].decode("utf-8", "replace"), set()).add(found[1].decode())
        return earlier, not line.endswith(b"\n")

    def _remove(self, path: str, digests: set[str]) -> None:
        """Remove the file at *path* if an export wrote it, and folders that become empty."""
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
    """Return the digest of the file at *path*; empty if it is not a regular file."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
