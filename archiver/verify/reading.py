"""Everything that the paths name, read back: each WARC file by itself, then all of them against each other.

A directory with `archive/` in it is a collection, and its index and crawl.db are compared with it; any other
directory stands for the WARC files below it. Nothing is written but in a temporary directory.
"""

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from archiver.archive.layout import OPEN, Layout, storage
from archiver.errors import ArchiveError, ConfigError
from archiver.verify.file import Job, Outcome, check_file
from archiver.verify.frontier import FrontierCheck, WarcRow, committed_files
from archiver.verify.index import IndexCheck, unindexed_faults
from archiver.verify.inventory import connect, merge
from archiver.verify.relations import relation_faults
from archiver.verify.report import Fault, FileRead, Findings, Progress, Report

WORTH_A_POOL = 32 << 20  # bytes in all files: below this a pool starts slower than one process reads
BEAT = 0.25  # seconds between two looks at how far the pool is

_SUFFIXES = tuple(ending + opened for ending in (".warc", ".warc.gz", ".arc", ".arc.gz") for opened in ("", OPEN))


@dataclass(frozen=True, slots=True)
class _Target:
    """One path as it was given: the WARC files it stands for, and its collection where it is one."""

    files: tuple[Path, ...]
    collection: Layout | None = None


def run(paths: Sequence[Path], progress: Callable[[Progress], None] = lambda _: None) -> Report:
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
    return Report(tuple(read), tuple(findings.kept), dict(findings.counts))


def _targets(paths: Sequence[Path]) -> list[_Target]:
    """The directories, each by itself, and all single files together: they may refer to each other."""
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise ConfigError(f"{missing}: there is no such file or directory")
    files = tuple(dict.fromkeys(path for path in paths if not path.is_dir()))
    folders = [_folder(path) for path in dict.fromkeys(paths) if path.is_dir()]
    return [_Target(files), *folders] if files else folders


def _folder(path: Path) -> _Target:
    layout = Layout(path)
    collection = layout if layout.archive.is_dir() else None
    below = layout.archive.iterdir() if collection else path.rglob("*")
    files = tuple(sorted(file for file in below if file.name.endswith(_SUFFIXES) and file.is_file()))
    if not files and not (collection and layout.database.exists()):
        raise ConfigError(f"{path}: there is no WARC file in it")
    return _Target(files, collection)


class _Run:
    """The reading of one target."""

    def __init__(self, target: _Target, folder: Path, findings: Findings, progress: Callable[[Progress], None]) -> None:
        self._target = target
        self._folder = folder
        self._findings = findings
        self._progress = progress
        self._sizes = [_size(path) for path in target.files]

    def run(self) -> list[FileRead]:
        before = self._committed()
        files = enumerate(self._target.files)
        jobs = [Job(path, self._folder / f"{number}.db", _committed(before, path)) for number, path in files]
        pool = len(jobs) > 1 and sum(self._sizes) > WORTH_A_POOL
        read = []
        for outcome in self._pooled(jobs) if pool else self._one_by_one(jobs):
            read.append(outcome.read)
            self._findings.merge(outcome.counts, outcome.kept)
        with closing(connect(self._folder / "all.db")) as db:
            merge(db, (job.inventory for job in jobs))
            for fault in relation_faults(db):
                self._findings.add(fault)
            if self._target.collection is not None:
                self._compare(db, self._target.collection, before)
        return read

    def _committed(self) -> dict[str, WarcRow] | None:
        collection = self._target.collection
        if collection is None:
            return None
        if not collection.database.exists():
            self._findings.add(Fault(str(collection.directory), "no-frontier", "there is no crawl.db here"))
            return None
        try:
            return committed_files(collection.directory)
        except (ArchiveError, ConfigError) as error:
            self._findings.add(Fault(str(collection.database), "frontier-unreadable", str(error)))
            return None

    def _compare(self, db: Any, collection: Layout, before: dict[str, WarcRow] | None) -> None:
        running = any(path.name.endswith(OPEN) for path in self._target.files)
        indexes = sorted(collection.indexes.glob("*.cdxj"))
        for path in indexes:
            for fault in IndexCheck(db, path, running=running).faults():
                self._findings.add(fault)
        if indexes or running:
            for fault in unindexed_faults(db, running=running):
                self._findings.add(fault)
        elif any(True for _ in unindexed_faults(db, running=False)):
            self._findings.add(Fault(str(collection.indexes), "index-missing", "there is no .cdxj file here"))
        if before is None:
            return
        try:
            for fault in FrontierCheck(db, collection.directory, before).faults():
                self._findings.add(fault)
        except (ArchiveError, ConfigError) as error:
            self._findings.add(Fault(str(collection.database), "frontier-unreadable", str(error)))

    def _one_by_one(self, jobs: list[Job]) -> Iterator[Outcome]:
        done = 0
        for number, job in enumerate(jobs):
            yield check_file(job, lambda at, done=done, number=number: self._tell(done + at, number))  # type: ignore[misc]
            done += self._sizes[number]
            self._tell(done, number + 1)

    def _pooled(self, jobs: list[Job]) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")  # a fork would copy whatever threads the caller has
        places = context.Array("Q", len(jobs), lock=False)
        workers = min(len(jobs), os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, context, _enter, (places,)) as pool:
            try:
                futures = [pool.submit(_check_numbered, number, job) for number, job in enumerate(jobs)]
                waiting: set[Future[Outcome]] = set(futures)
                while waiting:
                    done, waiting = wait(waiting, timeout=BEAT)
                    self._tell(sum(places), len(futures) - len(waiting))
                    yield from (future.result() for future in done)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _tell(self, bytes_done: int, files_done: int) -> None:
        total = sum(self._sizes)
        self._progress(Progress(min(bytes_done, total), total, files_done, len(self._sizes)))


_places: Any = None  # in a worker of the pool: how far each file is read, shared with the process that started it


def _enter(places: Any) -> None:
    global _places  # noqa: PLW0603  an initializer has no other way to hand something to the worker's calls
    _places = places
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C reaches the whole group: end without a traceback from each


def _check_numbered(number: int, job: Job) -> Outcome:
    def at(place: int) -> None:
        _places[number] = place

    return check_file(job, at)


def _committed(before: dict[str, WarcRow] | None, path: Path) -> int | None:
    row = before.get(path.name.removesuffix(OPEN)) if before else None
    return None if row is None or row.closed else row.committed


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
