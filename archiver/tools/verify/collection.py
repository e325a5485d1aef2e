"""Verify paths: read each WARC file, then compare the files with each other, with the index and with crawl.db.

A directory with `archive/` is a collection. Any other directory means all WARC files below it. Nothing is written
except in a temporary directory.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from archiver.collection import safe_paths
from archiver.collection.imports import ImportedFile, imported_files
from archiver.collection.layout import NAME_A_COLLECTION, Layout, rounds
from archiver.collection.records import WARC_ENDINGS, is_below
from archiver.collection.store import Store, StoredFile, StoredFiles
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import count, printable
from archiver.storage import DRAFT, OPEN, sha256_of, storage
from archiver.storage.temporary import temporary_folder
from archiver.tools.verify.file import FileResult, ReadFile, ReadJob
from archiver.tools.verify.findings import FileRead, Findings, VerifyFinding, VerifyProgress, VerifyReport
from archiver.tools.verify.frontier import FrontierCheck, WarcRow, committed_files
from archiver.tools.verify.index import UNFINISHED, IndexCheck, unindexed_findings
from archiver.tools.verify.inventory import merged, relation_findings
from archiver.tools.verify.reading import read_all
from archiver.tools.verify.stored import read_stored, stored_name, stored_warcs

_SUFFIXES = tuple(ending + opened for ending in (*WARC_ENDINGS, ".arc", ".arc.gz") for opened in ("", OPEN))


@dataclass(frozen=True, slots=True)
class _Target:
    """One path from the command line: its WARC files, and its collection if it is one."""

    files: tuple[Path, ...]
    collection: Layout | None = None
    stored: Mapping[str, StoredFile] = field(default_factory=dict)  # files that are read in the store, by name


def verify(
    paths: Sequence[Path],
    progress: Callable[[VerifyProgress], None] = lambda _: None,
    store: Store | None = None,
    *,
    inspect: Callable[[sqlite3.Connection], None] = lambda _: None,
) -> VerifyReport:
    """Read everything and return all findings. Raises `ConfigError` if there is nothing to read.

    WARC files that were sent to *store* are read there. *inspect* gets the inventory of each directory.

    Raises `ArchiveError` if there is no room for the temporary inventory, some 500 bytes per record.
    """
    targets = _targets(paths) if store is None else [_stored_target(path, store) for path in paths]
    findings = Findings()
    read: list[FileRead] = []
    with temporary_folder("verify") as scratch, storage(scratch):
        for number, target in enumerate(targets):
            folder = scratch / str(number)
            folder.mkdir()
            try:
                read += _Run(target, folder, findings, progress, store).run(inspect)
            except sqlite3.Error as error:
                raise ArchiveError(f"{folder}: cannot write the temporary inventory: {error}") from error
    return VerifyReport(tuple(read), tuple(findings.kept), dict(findings.counts))


def _targets(paths: Sequence[Path]) -> list[_Target]:
    """Return one target per directory, and one for all single files, because they may refer to each other."""
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise ConfigError(f"{missing}: no such file or directory")
    other = next((path for path in paths if not (path.is_file() or path.is_dir())), None)
    if other is not None:
        raise ConfigError(f"{other} is neither a regular file nor a directory; name a WARC file or a directory")
    files = tuple(dict.fromkeys(path for path in paths if not path.is_dir()))
    folders = [_folder_target(path) for path in dict.fromkeys(paths) if path.is_dir()]
    return [_Target(files), *folders] if files else folders


def _stored_target(path: Path, store: Store) -> _Target:
    """Return the target for the collection *path* with the files that were sent to *store*, and those still to send."""
    layout = Layout(path)
    stored = {}
    if layout.archive.is_dir():
        safe_paths.check_files(path)
        stored = stored_warcs(StoredFiles(layout).read(store.address))
    if not stored:
        raise ConfigError(f"{path}: its stored.jsonl names no WARC file in {store.address}")
    here = {file.name for file in layout.archive.iterdir() if file.name.endswith(_SUFFIXES) and file.is_file()}
    names = sorted({name for name in stored if is_below(name)} | here)
    return _Target(tuple(layout.archive / name for name in names), layout, stored)


def _folder_target(path: Path) -> _Target:
    layout = Layout(path)
    collection = layout if layout.archive.is_dir() else None
    if collection is not None or layout.settings.exists():  # any other folder may hold what it likes
        safe_paths.check_files(path)
    below = layout.archive.iterdir() if collection else path.rglob("*")
    files = tuple(sorted(file for file in below if file.name.endswith(_SUFFIXES) and file.is_file()))
    if not files and not (collection and (layout.has_frontier() or StoredFiles(layout).absent())):
        drafts = collection is not None and any(layout.archive.glob(f"*{DRAFT}"))
        hint = ": an import was interrupted; run the same import again" if drafts else NAME_A_COLLECTION
        raise ConfigError(f"{path} has no WARC files{hint}")
    return _Target(files, collection)


class _Run:
    """The verification of one target."""

    def __init__(
        self,
        target: _Target,
        folder: Path,
        findings: Findings,
        progress: Callable[[VerifyProgress], None],
        store: Store | None,
    ) -> None:
        self._target = target
        self._store = store
        self._folder = folder
        self._findings = findings
        self._progress = progress
        self._sizes = [
            target.stored[path.name].size if path.name in target.stored else _size(path) for path in target.files
        ]
        self._earlier: list[tuple[Layout, dict[str, WarcRow]]] = []  # earlier crawls of the collection, and their files
        self._imported: dict[str, WarcRow] = {}
        self._adopted: set[str] = set()  # those of them that belong to a crawl
        self._away: set[str] = set()  # files that are in a store only, and are not read
        self._unfinished_imports: set[str] = set()  # files whose import was interrupted

    def run(self, inspect: Callable[[sqlite3.Connection], None]) -> list[FileRead]:
        self._find_earlier()
        self._away = self._only_stored()
        before = self._committed()
        every = self._with_earlier(before)
        self._imported = self._read_imports()
        jobs = [self._job(number, path, every) for number, path in enumerate(self._target.files)]
        read = []
        parts: list[tuple[int, Path]] = []
        results = self._read_each(jobs) if self._target.stored else read_all(jobs, self._sizes, self._report_progress)
        for number, (job, reading) in enumerate(zip(jobs, results, strict=True)):
            outcomes = [outcome for _, outcome in reading.pieces]
            for outcome in outcomes:
                self._findings.merge(outcome.counts, outcome.kept)
            self._check_whole_file(job.name, outcomes, reading.sum, self._row(every, job.path))
            read.append(FileRead(job.name, outcomes[-1].size, sum(outcome.records for outcome in outcomes)))
            parts += [(number + 1, inventory) for inventory, _ in reading.pieces]
        with closing(merged(self._folder / "all.db", parts)) as db:
            inspect(db)
            for finding in relation_findings(db):
                self._findings.add(finding)
            if self._target.collection is not None:
                self._compare(db, self._target.collection, before)
        return read

    def _read_each(self, jobs: Sequence[ReadJob]) -> Iterator[ReadFile]:
        """Yield the result of each job: of a file in the store, or of one that is only here."""
        done = 0
        for number, (job, size) in enumerate(zip(jobs, self._sizes, strict=True)):
            file = self._target.stored.get(job.path.name)
            if file is None or self._store is None:
                yield from read_all([job], [size], lambda _at, _files: None)
            else:
                yield read_stored(self._store, file, job, partial(self._report_part, done, number))
            done += size
            self._report_progress(done, number + 1)

    def _job(self, number: int, path: Path, before: dict[str, WarcRow] | None) -> ReadJob:
        row = self._row(before, path)
        inventory = self._folder / f"{number}.db"
        if self._store is not None and path.name in self._target.stored:
            return ReadJob(path, inventory, summed=True, shown=stored_name(self._store, path.name))
        if row is None or row.closed:
            return ReadJob(path, inventory, summed=row is not None and bool(row.digest))
        return ReadJob(path, inventory, row.committed)

    def _row(self, before: dict[str, WarcRow] | None, path: Path) -> WarcRow | None:
        row = before.get(path.name.removesuffix(OPEN)) if before else None
        return row or self._imported.get(path.name) or self._sent(path.name)

    def _sent(self, name: str) -> WarcRow | None:
        """Return what stored.jsonl says about a file in the store."""
        file = self._target.stored.get(name)
        return None if file is None else WarcRow(file.size, closed=True, digest=file.digest)

    def _check_whole_file(self, name: str, outcomes: list[FileResult], found: str, row: WarcRow | None) -> None:
        """Add the findings that need all pieces of a file."""
        if unhashed := sum(outcome.unhashed for outcome in outcomes):
            self._findings.add(
                VerifyFinding(name, "digest-missing", f"{count(unhashed, 'record')} without a block digest")
            )
        if found and row is not None and found != row.digest:
            who = "imports.json" if row in self._imported.values() else "crawl.db"
            if self._target.stored and row == self._sent(name.rpartition("/")[2]):
                who = "stored.jsonl"
            message = f"its bytes have changed: {found}, but {who} says {row.digest:.100}"
            self._findings.add(VerifyFinding(name, "file-changed", message))

    def _only_stored(self) -> set[str]:
        """Return the WARC files that are in stores only and are not read there, and note them."""
        collection, away = self._target.collection, set[str]()
        if collection is None:
            return away
        for file in StoredFiles(collection).absent():
            away.update(stored_warcs({file.key: file}).keys() - self._target.stored.keys())
        if away:
            command = f"archiver verify {quote(str(collection.directory))} --store STORE"
            message = f"{count(len(away), 'WARC file is', 'WARC files are')} in a store only; to check there: {command}"
            self._findings.add(VerifyFinding(str(collection.archive), "warc-stored", message))
        return away

    def _read_imports(self) -> dict[str, WarcRow]:
        """Return what imports.json says about the imported files."""
        collection = self._target.collection
        if collection is None:
            return {}
        try:
            entries = imported_files(collection)
        except ArchiveError as error:
            self._findings.add(VerifyFinding(str(collection.imports), "imports-unreadable", str(error)))
            return {}
        there = {path.name for path in self._target.files}
        self._unfinished_imports = {each.name for each in entries if not each.indexed and each.name in there}
        files = [each for each in entries if each.indexed or each.name in there]
        self._adopted = {each.name for each in files if each.adopted}
        self._check_originals(collection, files)
        for each in files:
            known = each.name in there or each.name in self._away
            if not known and not (collection.archive / each.name).exists():  # it may have been added since
                message = f"archive/{each.name} is missing; it was imported from {each.source}"
                self._findings.add(VerifyFinding(str(collection.imports), "import-missing", printable(message, 1000)))
        return {each.name: WarcRow(each.bytes, closed=True, digest=f"sha256:{each.sha256}") for each in files}

    def _check_originals(self, collection: Layout, files: Iterable[ImportedFile]) -> None:
        """Compare the kept originals of imported files with imports.json."""
        for original in (each.original for each in files if each.original is not None):
            path = collection.directory / original.name
            try:
                with path.open("rb") as file:
                    found = sha256_of(file)
            except FileNotFoundError:
                message = printable(f"{original.name} is missing; a file in archive/ was converted from it", 1000)
                self._findings.add(VerifyFinding(str(collection.imports), "import-missing", message))
                continue
            except OSError as error:
                self._findings.add(VerifyFinding(str(path), "unreadable", error.strerror or str(error)))
                continue
            if found != original.sha256:
                message = f"its bytes have changed: sha256:{found}, but imports.json says sha256:{original.sha256}"
                self._findings.add(VerifyFinding(str(path), "file-changed", message))

    def _committed(self) -> dict[str, WarcRow] | None:
        collection = self._target.collection
        if collection is None:
            return None
        path = str(collection.database)
        exists = collection.has_frontier()
        try:
            before = committed_files(collection.directory) if exists else None
        except ArchiveError as error:
            self._findings.add(VerifyFinding(path, "frontier-unreadable", f"{error}; {_rebuild_hint(collection)}"))
            return None
        except ConfigError as error:  # it has an unknown schema version
            self._findings.add(VerifyFinding(path, "frontier-unreadable", str(error)))
            return None
        if before is None:
            how = "it is empty" if exists else "it is missing"
            ours = exists or collection.settings.exists() or collection.log.exists()
            known = {name for _, files in self._earlier for name in files}
            if ours and any(file.name.removesuffix(OPEN) not in known for file in self._target.files):
                self._findings.add(VerifyFinding(path, "frontier-missing", f"{how}; {_rebuild_hint(collection)}"))
            else:
                self._findings.add(VerifyFinding(path, "no-frontier", how))
        return before

    def _find_earlier(self) -> None:
        for folder in rounds(self._target.collection) if self._target.collection is not None else ():
            try:
                self._earlier.append((folder, committed_files(folder.directory) or {}))
            except (ArchiveError, ConfigError) as error:
                self._findings.add(VerifyFinding(str(folder.database), "frontier-unreadable", str(error)))

    def _with_earlier(self, before: dict[str, WarcRow] | None) -> dict[str, WarcRow] | None:
        """Return the files in *before* and those of the collection's earlier crawls."""
        if not self._earlier:
            return before
        return {
            name: row for files in (*(files for _, files in self._earlier), before or {}) for name, row in files.items()
        }

    def _compare(self, db: Any, collection: Layout, before: dict[str, WarcRow] | None) -> None:
        running = any(path.name.endswith(OPEN) for path in self._target.files)
        if before is not None:  # a crawl that was interrupted while it wrote its index
            running = running or any(row.closed and not row.indexed for row in before.values())
        indexes = sorted(collection.indexes.glob("*.cdxj"))
        for path in indexes:
            for finding in IndexCheck(db, path, running=running, away=self._away).findings():
                self._findings.add(finding)
        missing = False
        for finding in unindexed_findings(db, running=running, unfinished=self._unfinished_imports):
            if indexes or running or finding.code == UNFINISHED:
                self._findings.add(finding)
            else:
                missing = True
        if missing:
            remedy = f"to build it: archiver index {quote(str(collection.directory))}"
            self._findings.add(
                VerifyFinding(str(collection.indexes), "index-missing", f"there is no .cdxj file; {remedy}")
            )
        crawls = [*self._earlier] if before is None else [*self._earlier, (collection, before)]
        others = {name for _, files in crawls for name in files} | self._imported.keys()
        for crawl, files in crawls:
            try:
                read = {name: row for name, row in files.items() if name not in self._away}
                for finding in FrontierCheck(db, crawl.directory, read, others, self._adopted).findings():
                    self._findings.add(finding)
            except (ArchiveError, ConfigError) as error:
                self._findings.add(VerifyFinding(str(crawl.database), "frontier-unreadable", str(error)))

    def _report_part(self, before: int, files_done: int, at: int) -> None:
        self._report_progress(before + at, files_done)

    def _report_progress(self, bytes_done: int, files_done: int) -> None:
        total = sum(self._sizes)
        self._progress(VerifyProgress(min(bytes_done, total), total, files_done, len(self._sizes)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _rebuild_hint(collection: Layout) -> str:
    return f"to make a new one from the WARC files: archiver rebuild {quote(str(collection.directory))}"
