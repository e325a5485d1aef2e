"""Read pieces of files in parallel, in one process per core."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from archiver.errors import ArchiveError
from archiver.tools.verify.file import FileResult, ReadFile, ReadJob, check_file, file_sum

BEAT = 0.25  # seconds between two progress updates


class Pool:
    """One process per core, and the pieces of all files."""

    def __init__(self, cut: Sequence[Sequence[ReadJob]], progress: Callable[[int, int], None]) -> None:
        self._cut = cut
        self._progress = progress
        context = multiprocessing.get_context("spawn")  # a fork would copy the caller's threads
        pieces = sum(map(len, cut))
        self._offsets = context.Array("Q", pieces + 1, lock=False)  # per piece; the last one: stop
        workers = min(pieces, (os.cpu_count() or 1))
        with _without_interrupts():  # multiprocessing's tracker starts here
            self._pool = ProcessPoolExecutor(workers, context, _start_worker, (self._offsets,))

    def run(self) -> Iterator[ReadFile]:
        """Yield the result of each file, in order."""
        try:
            with self._pool:
                try:
                    yield from self._readings()
                except BaseException:
                    self._offsets[-1] = 1
                    self._pool.shutdown(wait=False, cancel_futures=True)
                    raise
        except BrokenProcessPool as error:
            raise ArchiveError("a reading process was killed; perhaps memory ran out") from error

    def _readings(self) -> Iterator[ReadFile]:
        numbers = iter(range(len(self._offsets)))
        with _without_interrupts():
            sums = [
                self._pool.submit(file_sum, pieces[0].path, _stop_if_asked) if pieces[0].summed else None
                for pieces in self._cut
            ]
            futures = [[self._pool.submit(_check, next(numbers), piece) for piece in pieces] for pieces in self._cut]
        self._await(futures, [found for found in sums if found is not None])
        for pieces, outcomes, found in zip(self._cut, futures, sums, strict=True):
            yield ReadFile(tuple(self._join(pieces, outcomes)), found.result() if found else "")

    def _await(self, files: list[list[Future[FileResult]]], sums: list[Future[str]]) -> None:
        waiting: set[Future[Any]] = {future for file in files for future in file}.union(sums)
        starts = [piece.start for pieces in self._cut for piece in pieces]
        while waiting:
            _, waiting = wait(waiting, timeout=BEAT)
            done = sum(max(place - start, 0) for place, start in zip(self._offsets, starts, strict=False))
            self._progress(done, sum(all(future.done() for future in file) for file in files))

    def _join(
        self, pieces: Sequence[ReadJob], outcomes: Sequence[Future[FileResult]]
    ) -> Iterator[tuple[Path, FileResult]]:
        """Yield the pieces that meet; read a piece again that does not begin where the one before it ended."""
        reached = 0
        for piece, future in zip(pieces, outcomes, strict=True):
            if piece.stop is not None and piece.stop <= reached:
                continue
            outcome, inventory = future.result(), piece.inventory
            if piece.start != reached:
                inventory = inventory.with_suffix(".again")
                again = replace(piece, start=reached, inventory=inventory)
                outcome = self._pool.submit(check_file, again, _stop_if_asked).result()
            yield inventory, outcome
            reached = outcome.ended


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT and SIGHUP here and in processes started here: a terminal signals all, and the parent decides."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_offsets: Any = None  # in a pool process: the offset reached in each piece, shared with the parent


class _Stopped(Exception):  # noqa: N818  the parent no longer needs the result
    pass


def _start_worker(places: Any) -> None:
    global _offsets  # noqa: PLW0603  an initializer has no other way to hand something to the worker's calls
    _offsets = places
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # the parent was killed, so no one needs the result


def _check(number: int, job: ReadJob) -> FileResult:
    def at(place: int) -> None:
        _offsets[number] = place
        _stop_if_asked(place)

    return check_file(job, at)


def _stop_if_asked(_: int) -> None:
    """Stop if the parent no longer needs the result."""
    if _offsets[-1]:
        raise _Stopped
