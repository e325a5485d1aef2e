"""All files read, by as many processes as there are cores: small ones one by one, a large one in several pieces.

Where a piece begins is only a guess: a place where a record seems to begin, which may as well lie inside another
record, such as a WARC file that was captured. So pieces must meet: each one reads on to the first record at or behind
the beginning of the next, and where that is another place, the next one is read again from there. Together they
find what one reading of the whole file finds.
"""

import hashlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archiver.errors import ArchiveError
from archiver.storage import OPEN
from archiver.tools.verify.file import STEP, FileResult, ReadJob, check_file, where_now
from archiver.warc.members import MAGIC, next_record

WORTH_A_POOL = 32 << 20  # bytes in all files: below this a pool starts slower than one process reads
PIECE = 32 << 20  # a file of twice this is read in pieces of at least this
BEAT = 0.25  # seconds between two looks at how far the pool is

Tell = Callable[[int, int], None]  # bytes and files that are done


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What came of one file: each piece with its inventory, in order, and the sum of its bytes if it was wanted."""

    pieces: tuple[tuple[Path, FileResult], ...]
    sum: str


def read_all(jobs: Sequence[ReadJob], sizes: Sequence[int], tell: Tell) -> Iterator[ReadFile]:
    """Carry out *jobs*, of files of *sizes* bytes; what came of each, in their order."""
    cut = (
        [_pieces(job, size) for job, size in zip(jobs, sizes, strict=True)] if _cores() > 1 else [[job] for job in jobs]
    )
    if sum(sizes) > WORTH_A_POOL and sum(map(len, cut)) > 1:
        yield from _Pool(cut, tell).run()
    else:
        yield from _one_by_one(jobs, sizes, tell)


def _cores() -> int:
    return os.cpu_count() or 1


def _pieces(job: ReadJob, size: int) -> list[ReadJob]:
    """*job* in pieces that begin where records seem to begin."""
    starts = [0]
    if size >= 2 * PIECE and not job.path.name.endswith(OPEN):
        with suppress(OSError):  # the reading will say so
            starts += _starts(job.path, size)
    stops = [*starts[1:], None]
    names = [job.inventory.with_suffix(f".{start}.db") for start in starts]
    return [replace(job, start=a, stop=b, inventory=c) for a, b, c in zip(starts, stops, names, strict=True)]


def _starts(path: Path, size: int) -> Iterator[int]:
    with path.open("rb") as file:
        compressed = file.read(len(MAGIC)) == MAGIC
        place: int | None = 0
        while compressed and place is not None and place + 2 * PIECE <= size:
            place = next_record(file, place + PIECE, compressed=True)
            if place is not None:
                yield place


def _sum(path: Path, at: Callable[[int], None]) -> str:
    """The sum of all bytes of *path*, as crawl.db keeps it; empty where it cannot be read."""
    state = hashlib.sha256()
    try:
        with where_now(path).open("rb") as file:
            while piece := file.read(STEP):
                state.update(piece)
                at(0)
    except OSError:
        return ""  # the reading says so
    return f"sha256:{state.hexdigest()}"


def _one_by_one(jobs: Sequence[ReadJob], sizes: Sequence[int], tell: Tell) -> Iterator[ReadFile]:
    done = 0
    for number, job in enumerate(jobs):
        outcome = check_file(job, lambda at, done=done, number=number: tell(done + at, number))  # type: ignore[misc]
        yield ReadFile(((job.inventory, outcome),), _sum(job.path, _deaf) if job.summed else "")
        done += sizes[number]
        tell(done, number + 1)


class _Pool:
    """One process for each core, and the pieces of all files for them to read."""

    def __init__(self, cut: Sequence[Sequence[ReadJob]], tell: Tell) -> None:
        self._cut = cut
        self._tell = tell
        context = multiprocessing.get_context("spawn")  # a fork would copy whatever threads the caller has
        pieces = sum(map(len, cut))
        self._places = context.Array("Q", pieces + 1, lock=False)  # how far each piece is; the last: that all must end
        self._pool = ProcessPoolExecutor(min(pieces, _cores()), context, _enter, (self._places,))

    def run(self) -> Iterator[ReadFile]:
        """What came of each file, in their order."""
        try:
            with self._pool:
                try:
                    yield from self._readings()
                except BaseException:
                    self._places[-1] = 1
                    self._pool.shutdown(wait=False, cancel_futures=True)
                    raise
        except BrokenProcessPool as error:
            raise ArchiveError("a process that was reading was killed; perhaps memory is short") from error

    def _readings(self) -> Iterator[ReadFile]:
        numbers = iter(range(len(self._places)))
        with _undisturbed():
            sums = [
                self._pool.submit(_sum, pieces[0].path, _heed) if pieces[0].summed else None for pieces in self._cut
            ]
            futures = [[self._pool.submit(_check, next(numbers), piece) for piece in pieces] for pieces in self._cut]
        self._await(futures, [found for found in sums if found is not None])
        for pieces, outcomes, found in zip(self._cut, futures, sums, strict=True):
            yield ReadFile(tuple(self._joined(pieces, outcomes)), found.result() if found else "")

    def _await(self, files: list[list[Future[FileResult]]], sums: list[Future[str]]) -> None:
        waiting: set[Future[Any]] = {future for file in files for future in file}.union(sums)
        starts = [piece.start for pieces in self._cut for piece in pieces]
        while waiting:
            _, waiting = wait(waiting, timeout=BEAT)
            done = sum(max(place - start, 0) for place, start in zip(self._places, starts, strict=False))
            self._tell(done, sum(all(future.done() for future in file) for file in files))

    def _joined(
        self, pieces: Sequence[ReadJob], outcomes: Sequence[Future[FileResult]]
    ) -> Iterator[tuple[Path, FileResult]]:
        """The pieces that meet; what does not begin where the one before it ended is read again from there."""
        reached = 0
        for piece, future in zip(pieces, outcomes, strict=True):
            if piece.stop is not None and piece.stop <= reached:
                continue
            outcome, inventory = future.result(), piece.inventory
            if piece.start != reached:
                inventory = inventory.with_suffix(".again")
                again = replace(piece, start=reached, inventory=inventory)
                outcome = self._pool.submit(check_file, again, _heed).result()
            yield inventory, outcome
            reached = outcome.ended


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No Ctrl+C now, nor ever in a process that is started here: it reaches the whole group, and the parent decides."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_places: Any = None  # in a process of the pool: how far each piece is read, shared with the process that started it


class _Stopped(Exception):  # noqa: N818  the parent wants no answer any more
    pass


def _enter(places: Any) -> None:
    global _places  # noqa: PLW0603  an initializer has no other way to hand something to the worker's calls
    _places = places
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # it was killed: nobody wants what is read here


def _check(number: int, job: ReadJob) -> FileResult:
    def at(place: int) -> None:
        _places[number] = place
        _heed(place)

    return check_file(job, at)


def _heed(_: int) -> None:
    """Stop where the parent wants no answer any more."""
    if _places[-1]:
        raise _Stopped


def _deaf(_: int) -> None:
    """Progress that nobody asks for."""
