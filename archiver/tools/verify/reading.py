"""Read all files, one after another or in a pool of processes, which reads large files in several pieces.

The start of a piece is a guess: something that looks like a record, which may be inside another record, such as a
captured WARC file. So each piece is read up to the first record at or after the start of the next piece. If that is
another offset, the next piece is read again from there. The pieces together give the same findings as one pass over the
whole file.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from archiver.storage import OPEN
from archiver.tools.verify.file import ReadFile, ReadJob, check_file, file_sum
from archiver.warc.members import MAGIC, next_record

WORTH_A_POOL = 128 << 20  # bytes in all files; below this, one process is faster than starting a pool
PIECE = 32 << 20  # a file of at least twice this is read in pieces of at least this

Progress = Callable[[int, int], None]  # bytes and files done


def read_all(jobs: Sequence[ReadJob], sizes: Sequence[int], progress: Progress) -> Iterator[ReadFile]:
    """Run *jobs*, for files of *sizes* bytes, and yield their results in order."""
    cut = (
        [_pieces(job, size) for job, size in zip(jobs, sizes, strict=True)] if _cores() > 1 else [[job] for job in jobs]
    )
    if sum(sizes) > WORTH_A_POOL and sum(map(len, cut)) > 1:
        from archiver.tools.verify.pool import Pool  # noqa: PLC0415 - slow to import; few archives need it

        yield from Pool(cut, progress).run()
    else:
        yield from _one_by_one(jobs, sizes, progress)


def _cores() -> int:
    return os.cpu_count() or 1


def _pieces(job: ReadJob, size: int) -> list[ReadJob]:
    """Split *job* at offsets where records seem to begin."""
    starts = [0]
    if size >= 2 * PIECE and not job.path.name.endswith(OPEN):
        with suppress(OSError):  # reported when the file is read
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


def _one_by_one(jobs: Sequence[ReadJob], sizes: Sequence[int], progress: Progress) -> Iterator[ReadFile]:
    done = 0
    for number, job in enumerate(jobs):
        outcome = check_file(job, partial(_report, progress, done, number))
        yield ReadFile(((job.inventory, outcome),), file_sum(job.path, lambda _: None) if job.summed else "")
        done += sizes[number]
        progress(done, number + 1)


def _report(progress: Progress, done: int, files: int, at: int) -> None:
    progress(done + at, files)
