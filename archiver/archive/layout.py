"""Where everything lies in a collection, which is a pywb collection too, and how a file is replaced for certain."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from archiver import disk
from archiver.disk import sync_data
from archiver.errors import ArchiveError

OPEN = ".open"  # the suffix of a WARC that is being written
DRAFT = ".tmp"  # the suffix of any other file that is being written


@dataclass(frozen=True, slots=True)
class Layout:
    """The places in one collection's directory."""

    directory: Path

    @property
    def archive(self) -> Path:
        """WARC files, and nothing else: pywb looks here."""
        return self.directory / "archive"

    @property
    def indexes(self) -> Path:
        """CDXJ files, and nothing else: pywb reads all of them."""
        return self.directory / "indexes"

    @property
    def database(self) -> Path:
        """The frontier."""
        return self.directory / "crawl.db"

    @property
    def scratch(self) -> Path:
        """By which payloads of other archives are found; made anew where it is missing."""
        return self.directory / "dedup.db"

    @property
    def settings(self) -> Path:
        """The settings in force."""
        return self.directory / "crawl.toml"

    @property
    def lock(self) -> Path:
        """Held by the process that crawls."""
        return self.directory / "crawl.lock"

    @property
    def log(self) -> Path:
        """One line for each visit, in Heritrix's format."""
        return self.directory / "logs" / "crawl.log"

    @property
    def reports(self) -> Path:
        """What is written at the end of a crawl."""
        return self.directory / "reports"

    @property
    def spool(self) -> Path:
        """Large responses while they arrive; nameless files, so it looks empty."""
        return self.directory / "spool"

    @property
    def earlier(self) -> Path:
        """A folder for each earlier crawl of the same site: its crawl.db, crawl.toml, log and reports."""
        return self.directory / "crawls"

    @property
    def imports(self) -> Path:
        """Which files in `archive` were brought in from elsewhere."""
        return self.directory / "imports.json"

    @property
    def damaged(self) -> Path:
        """What a repair took out of the way."""
        return self.directory / "damaged"

    def make(self) -> None:
        """Make the folders that are not there."""
        with storage(self.directory):
            for folder in (self.archive, self.indexes, self.log.parent, self.spool):
                folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self.directory)

    def forget_drafts(self) -> None:
        """Remove what a crash left of files that were being written."""
        for folder in (self.directory, self.archive, self.indexes, self.reports, self.damaged):
            for draft in folder.glob(f"*{DRAFT}*"):  # with the write-ahead file of a draft of crawl.db
                with storage(draft):
                    draft.unlink()


def _unknown() -> int:
    return 0


@contextmanager
def storage(path: Path, wanted: Callable[[], int] = _unknown) -> Iterator[None]:
    """An error of the operating system about *path* becomes `ArchiveError`, which names it, and what is missing.

    *wanted* says how many bytes are not written yet, and is asked only after an error.
    """
    try:
        yield
    except OSError as error:
        raise trouble(error, path, wanted()) from error


def trouble(error: OSError, path: Path, wanted: int) -> ArchiveError:
    """What `storage` raises. Where a context for each call would cost too much, it is raised by hand."""
    place = Path(error.filename) if isinstance(error.filename, str) else path
    return ArchiveError(f"{place}: {disk.words(error, path, wanted)}")


def sync_folder(folder: Path) -> None:
    """A file created or renamed in *folder* is still there after a power cut. Windows does this by itself."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_private(path: Path) -> bool:
    """Return whether only its owner may read the file at *path*."""
    try:
        return path.lstat().st_mode & 0o077 == 0
    except FileNotFoundError:
        return False


def replace_file(
    path: Path, fill: Callable[[BinaryIO], None], size: Callable[[], int] = _unknown, *, private: bool = False
) -> None:
    """*path* holds what *fill* writes, or what it held before: never a part. What failed takes no room any more.

    *private*: only its owner may read it. A file that was private before stays private.

    *size* says how large the file was to be, and is asked only after an error; where it is not known, what was
    written until then is a lower bound.
    """
    draft = path.with_name(path.name + DRAFT)
    taken = 0  # bytes that were to be in it when it failed
    with storage(path, lambda: taken):
        try:
            with disk.opened(draft, "wb", private=private or _is_private(path)) as file:
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
