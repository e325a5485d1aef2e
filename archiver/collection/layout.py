"""Where everything lies in a collection, which is a pywb collection too, and how a file is replaced for certain."""

from dataclasses import dataclass
from pathlib import Path

from archiver.storage import DRAFT, storage, sync_folder


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
