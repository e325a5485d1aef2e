"""The paths in a collection's directory, which is a pywb collection too."""

import re
from dataclasses import dataclass
from pathlib import Path

from archiver.frontier.address import file_of, is_there
from archiver.storage import DRAFT, storage, sync_folder

NAME_A_COLLECTION = "; name a collection, for example collections/example.org"  # the end of a message
STAMP = re.compile(r"[0-9]{14}")  # names the folder of an earlier crawl
PRUNED = ".pruned"  # at the end of that name after `archiver prune`; the crawl's log and reports stay
NEXT = "next.toml"  # in the folder of the newest earlier crawl: the next crawl.toml


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths in one collection's directory."""

    directory: Path

    @property
    def archive(self) -> Path:
        """The folder of WARC files, and nothing else, because pywb looks here."""
        return self.directory / "archive"

    @property
    def indexes(self) -> Path:
        """The folder of CDXJ files, and nothing else, because pywb reads all of them."""
        return self.directory / "indexes"

    @property
    def database(self) -> Path:
        """The database of the frontier."""
        return self.directory / "crawl.db"

    @property
    def address(self) -> Path:
        """The file with the address of a frontier in PostgreSQL, in place of `database`."""
        return file_of(self.database)

    def has_frontier(self) -> bool:
        """Return True if there is a database, or the address of one."""
        return is_there(self.database)

    @property
    def scratch(self) -> Path:
        """The database of payloads in other archives; rebuilt if it is missing."""
        return self.directory / "dedup.db"

    @property
    def settings(self) -> Path:
        """The current settings."""
        return self.directory / "crawl.toml"

    @property
    def origins(self) -> Path:
        """Where the values of `settings` came from, for `archiver config`."""
        return self.directory / "crawl-origins.json"

    @property
    def lock(self) -> Path:
        """The lock file, held by the process that crawls."""
        return self.directory / "crawl.lock"

    @property
    def log(self) -> Path:
        """The crawl log, one line per visit in Heritrix's format."""
        return self.directory / "logs" / "crawl.log"

    @property
    def reports(self) -> Path:
        """The folder of reports written at the end of a crawl."""
        return self.directory / "reports"

    @property
    def spool(self) -> Path:
        """The folder of large responses while they arrive; its files have no names, so it looks empty."""
        return self.directory / "spool"

    @property
    def earlier(self) -> Path:
        """The folder with a folder for each earlier crawl: its crawl.db, crawl.toml, log and reports."""
        return self.directory / "crawls"

    @property
    def imports(self) -> Path:
        """The list of imported files in `archive`."""
        return self.directory / "imports.json"

    @property
    def pruning(self) -> Path:
        """What `archiver prune` is deleting, until that is done."""
        return self.directory / "prune.json"

    @property
    def private(self) -> Path:
        """The folder of WARC files with logins, for the owner alone; nothing reads or packs them."""
        return self.directory / "private"

    @property
    def live(self) -> Path:
        """The figures of the running crawl, replaced once a second."""
        return self.directory / "live.json"

    @property
    def loaded_cookies(self) -> Path:
        """The cookies that the user has given to the next run, until the database holds them."""
        return self.directory / "loaded-cookies.json"

    @property
    def damaged(self) -> Path:
        """The folder to which repairs move damaged parts."""
        return self.directory / "damaged"

    def database_files(self) -> tuple[Path, ...]:
        """Return the paths of the database, and of the files beside it while it is open or was not closed."""
        return tuple(self.database.with_name(self.database.name + end) for end in ("", "-wal", "-shm", "-journal"))

    def make(self) -> None:
        """Create missing folders."""
        with storage(self.directory):
            for folder in (self.archive, self.indexes, self.log.parent, self.spool):
                folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self.directory)

    def forget_drafts(self) -> None:
        """Remove unfinished files that a crash left."""
        for folder in (self.directory, self.archive, self.indexes, self.reports, self.damaged):
            for draft in folder.glob(f"*{DRAFT}*"):  # includes the write-ahead file of a draft of crawl.db
                with storage(draft):
                    draft.unlink()


def holds_crawl(directory: Path) -> bool:
    """Return whether *directory* holds a crawl."""
    return Layout(directory).has_frontier() or Layout(directory).settings.exists()


def rounds(layout: Layout) -> list[Layout]:
    """Return the layouts of the earlier crawls in the collection of *layout*, newest first."""
    if not layout.earlier.is_dir():
        return []
    with storage(layout.earlier):
        folders = [Layout(path) for path in layout.earlier.iterdir() if STAMP.fullmatch(path.name)]
    found = [folder for folder in folders if folder.has_frontier()]
    return sorted(found, key=lambda folder: folder.directory.name, reverse=True)
