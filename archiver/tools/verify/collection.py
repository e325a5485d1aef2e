"""Everything that the paths name, read back: each WARC file by itself, then all of them against each other.

A directory with `archive/` in it is a collection, and its index and crawl.db are compared with it; any other
directory stands for the WARC files below it. Nothing is written but in a temporary directory.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any

from archiver.collection import safe_paths
from archiver.collection.earlier_crawls import rounds
from archiver.collection.imports import ImportedFile, imported_files
from archiver.collection.layout import Layout
from archiver.collection.records import WARC_ENDINGS
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable
from archiver.storage import DRAFT, OPEN, storage
from archiver.tools.verify.file import FileResult, ReadJob
from archiver.tools.verify.findings import Fault, FileRead, Findings, VerifyProgress, VerifyReport
from archiver.tools.verify.frontier import FrontierCheck, WarcRow, committed_files
from archiver.tools.verify.index import UNFINISHED, IndexCheck, unindexed_faults
from archiver.tools.verify.inventory import connect, merge, relation_faults
from archiver.tools.verify.pool import read_all

_SUFFIXES = tuple(ending + opened for ending in (*WARC_ENDINGS, ".arc", ".arc.gz") for opened in ("", OPEN))


@dataclass(frozen=True, slots=True)
class _Target:
    """One path as it was given: the WARC files it stands for, and its collection where it is one."""

    files: tuple[Path, ...]
    collection: Layout | None = None


def verify(paths: Sequence[Path], progress: Callable[[VerifyProgress], None] = lambda _: None) -> VerifyReport:
    """Read everything back and name every fault. Raises `ConfigError` where there is nothing to read.

    `ArchiveError` only where there is no room for a temporary inventory, some 500 bytes for each record.
    """
    targets = _targets(paths)
    findings = Findings()
    read: list[FileRead] = []
    with TemporaryDirectory(prefix="archiver-verify-") as scratch, storage(Path(scratch)):
        for number, target in enumerate(targets):
            folder = Path(scratch, str(number))
            folder.mkdir()
            try:
                read += _Run(target, folder, findings, progress).run()
            except sqlite3.Error as error:
                raise ArchiveError(f"{folder}: the temporary inventory cannot be kept: {error}") from error
    return VerifyReport(tuple(read), tuple(findings.kept), dict(findings.counts))


def _targets(paths: Sequence[Path]) -> list[_Target]:
    """The directories, each by itself, and all single files together: they may refer to each other."""
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise ConfigError(f"{missing}: there is no such file or directory")
    strange = next((path for path in paths if not (path.is_file() or path.is_dir())), None)
    if strange is not None:
        raise ConfigError(f"{strange} is neither a regular file nor a directory; right would be a WARC file")
    files = tuple(dict.fromkeys(path for path in paths if not path.is_dir()))
    folders = [_folder(path) for path in dict.fromkeys(paths) if path.is_dir()]
    return [_Target(files), *folders] if files else folders


def _folder(path: Path) -> _Target:
    layout = Layout(path)
    collection = layout if layout.archive.is_dir() else None
    if collection is not None:
        safe_paths.check_files(path)
    below = layout.archive.iterdir() if collection else path.rglob("*")
    files = tuple(sorted(file for file in below if file.name.endswith(_SUFFIXES) and file.is_file()))
    if not files and not (collection and layout.database.exists()):
        drafts = collection is not None and any(layout.archive.glob(f"*{DRAFT}"))
        why = ": what was to be imported was not read to its end; run that import again" if drafts else ""
        raise ConfigError(f"{path}: there is no WARC file in it{why}")
    return _Target(files, collection)


class _Run:
    """The reading of one target."""

    def __init__(
        self, target: _Target, folder: Path, findings: Findings, progress: Callable[[VerifyProgress], None]
    ) -> None:
        self._target = target
        self._folder = folder
        self._findings = findings
        self._progress = progress
        self._sizes = [_size(path) for path in target.files]
        self._earlier: list[tuple[Layout, dict[str, WarcRow]]] = []  # crawls that came before, and their files
        self._imported: dict[str, WarcRow] = {}
        self._arriving: set[str] = set()  # files whose import has not come to its end

    def run(self) -> list[FileRead]:
        self._find_earlier()
        before = self._committed()
        every = self._with_earlier(before)
        self._imported = self._brought_in()
        jobs = [self._job(number, path, every) for number, path in enumerate(self._target.files)]
        read = []
        parts: list[tuple[int, Path]] = []
        for number, (job, reading) in enumerate(zip(jobs, read_all(jobs, self._sizes, self._tell), strict=True)):
            outcomes = [outcome for _, outcome in reading.pieces]
            for outcome in outcomes:
                self._findings.merge(outcome.counts, outcome.kept)
            self._whole_file(str(job.path), outcomes, reading.sum, self._row(every, job.path))
            read.append(FileRead(str(job.path), outcomes[-1].size, sum(outcome.records for outcome in outcomes)))
            parts += [(number + 1, inventory) for inventory, _ in reading.pieces]
        with closing(connect(self._folder / "all.db")) as db:
            merge(db, parts)
            for fault in relation_faults(db):
                self._findings.add(fault)
            if self._target.collection is not None:
                self._compare(db, self._target.collection, before)
        return read

    def _job(self, number: int, path: Path, before: dict[str, WarcRow] | None) -> ReadJob:
        row = self._row(before, path)
        inventory = self._folder / f"{number}.db"
        if row is None or row.closed:
            return ReadJob(path, inventory, summed=row is not None and bool(row.digest))
        return ReadJob(path, inventory, row.committed)

    def _row(self, before: dict[str, WarcRow] | None, path: Path) -> WarcRow | None:
        row = before.get(path.name.removesuffix(OPEN)) if before else None
        return row or self._imported.get(path.name)

    def _whole_file(self, name: str, outcomes: list[FileResult], found: str, row: WarcRow | None) -> None:
        """What can be said of a file only when all its pieces are read."""
        if unhashed := sum(outcome.unhashed for outcome in outcomes):
            self._findings.add(Fault(name, "digest-missing", f"{unhashed} records have no block digest"))
        if found and row is not None and found != row.digest:
            who = "imports.json" if row in self._imported.values() else "crawl.db"
            sentence = f"its bytes are not those that were written: they have {found}, {who} says {row.digest:.100}"
            self._findings.add(Fault(name, "file-changed", sentence))

    def _brought_in(self) -> dict[str, WarcRow]:
        """What imports.json says of the files that came from elsewhere."""
        collection = self._target.collection
        if collection is None:
            return {}
        try:
            told = imported_files(collection)
        except ArchiveError as error:
            self._findings.add(Fault(str(collection.imports), "imports-unreadable", str(error)))
            return {}
        there = {path.name for path in self._target.files}
        self._arriving = {each.name for each in told if not each.indexed and each.name in there}
        files = [each for each in told if each.indexed or each.name in there]
        self._originals(collection, files)
        for each in files:
            if each.name not in there and not (collection.archive / each.name).exists():  # it may have come since
                sentence = f"archive/{each.name} is not there; it was imported from {each.source}"
                self._findings.add(Fault(str(collection.imports), "import-missing", printable(sentence, 1000)))
        return {each.name: WarcRow(each.bytes, closed=True, digest=f"sha256:{each.sha256}") for each in files}

    def _originals(self, collection: Layout, files: Iterable[ImportedFile]) -> None:
        """Compare those that are kept of imported files with what imports.json says."""
        for original in (each.original for each in files if each.original is not None):
            path = collection.directory / original.name
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except FileNotFoundError:
                sentence = printable(f"{original.name} is not there, of which a file in archive/ was made", 1000)
                self._findings.add(Fault(str(collection.imports), "import-missing", sentence))
                continue
            except OSError as error:
                self._findings.add(Fault(str(path), "unreadable", error.strerror or str(error)))
                continue
            if found != original.sha256:
                sentence = f"its bytes are not those that came: they have sha256:{found}, imports.json says otherwise"
                self._findings.add(Fault(str(path), "file-changed", sentence))

    def _committed(self) -> dict[str, WarcRow] | None:
        collection = self._target.collection
        if collection is None:
            return None
        path = str(collection.database)
        there = collection.database.exists()
        try:
            before = committed_files(collection.directory) if there else None
        except ArchiveError as error:
            self._findings.add(Fault(path, "frontier-unreadable", f"{error}; {_rebuilds(collection)}"))
            return None
        except ConfigError as error:  # its schema is newer
            self._findings.add(Fault(path, "frontier-unreadable", str(error)))
            return None
        if before is None:
            how = "it is empty" if there else "it is not there"
            ours = there or collection.settings.exists() or collection.log.exists()
            known = {name for _, files in self._earlier for name in files}
            if ours and any(file.name.removesuffix(OPEN) not in known for file in self._target.files):
                self._findings.add(Fault(path, "frontier-missing", f"{how}; {_rebuilds(collection)}"))
            else:
                self._findings.add(Fault(path, "no-frontier", how))
        return before

    def _find_earlier(self) -> None:
        for folder in rounds(self._target.collection) if self._target.collection is not None else ():
            try:
                self._earlier.append((folder, committed_files(folder.directory) or {}))
            except (ArchiveError, ConfigError) as error:
                self._findings.add(Fault(str(folder.database), "frontier-unreadable", str(error)))

    def _with_earlier(self, before: dict[str, WarcRow] | None) -> dict[str, WarcRow] | None:
        """The files that *before* knows, and those of earlier crawls of the collection."""
        if not self._earlier:
            return before
        return {
            name: row for files in (*(files for _, files in self._earlier), before or {}) for name, row in files.items()
        }

    def _compare(self, db: Any, collection: Layout, before: dict[str, WarcRow] | None) -> None:
        running = any(path.name.endswith(OPEN) for path in self._target.files)
        if before is not None:  # a crawl that was cut off while its index was made
            running = running or any(row.closed and not row.indexed for row in before.values())
        indexes = sorted(collection.indexes.glob("*.cdxj"))
        for path in indexes:
            for fault in IndexCheck(db, path, running=running).faults():
                self._findings.add(fault)
        lost = False
        for fault in unindexed_faults(db, running=running, arriving=self._arriving):
            if indexes or running or fault.code == UNFINISHED:
                self._findings.add(fault)
            else:
                lost = True
        if lost:
            cure = f"archiver index {quote(str(collection.directory))} makes it"
            self._findings.add(Fault(str(collection.indexes), "index-missing", f"there is no .cdxj file here; {cure}"))
        crawls = [*self._earlier] if before is None else [*self._earlier, (collection, before)]
        others = {name for _, files in crawls for name in files} | self._imported.keys()
        for crawl, files in crawls:
            try:
                for fault in FrontierCheck(db, crawl.directory, files, others).faults():
                    self._findings.add(fault)
            except (ArchiveError, ConfigError) as error:
                self._findings.add(Fault(str(crawl.database), "frontier-unreadable", str(error)))

    def _tell(self, bytes_done: int, files_done: int) -> None:
        total = sum(self._sizes)
        self._progress(VerifyProgress(min(bytes_done, total), total, files_done, len(self._sizes)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _rebuilds(collection: Layout) -> str:
    return f"archiver rebuild {quote(str(collection.directory))} makes a new one from the WARC files"
