"""The CDXJ of a collection: complete at every stop, and good enough for replay during the crawl.

While a WARC is open, its lines are in sorted runs that use its current name on disk (NAME.open). A flush writes only
the newest, short run; full runs are merged in steps. When the WARC gets its final name, its runs become one. When the
crawl ends or is stopped, all runs become index.cdxj.
Every file appears whole or not at all. Everything can be rebuilt from the database or the WARCs. Merging is
idempotent: a line that is in two files is written once. A merge of a few lines into a large file does not read every
line: a binary search finds the place of each, and the bytes between two places are copied unread.
"""

import glob
import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO

from archiver.collection.index_search import GROWING, find_line, first_line
from archiver.model import Capture, Resource
from archiver.storage import OPEN, open_file, replace_file, storage
from archiver.warc import cdx, cdxj

COPY_SIZE = 1 << 20  # bytes copied at once


def insert_lines(large: BinaryIO, lines: Iterable[bytes], target: BinaryIO) -> None:
    """Write *large* to *target*, with each of the sorted *lines* that it lacks."""
    size = large.seek(0, 2)
    read = partial(first_line, large, readline=large.readline)
    done = 0
    for line in lines:
        _, place = find_line(read, line, done, size)
        _copy(large, done, place, target)
        done = place
        if large.readline() != line:
            target.write(line)
    _copy(large, done, size, target)


def _copy(file: BinaryIO, start: int, end: int, target: BinaryIO) -> None:
    """Copy the bytes from *start* to *end*, and leave *file* at *end*."""
    file.seek(start)
    left = end - start
    while left and (piece := file.read(min(COPY_SIZE, left))):
        target.write(piece)
        left -= len(piece)


INDEX = "index.cdxj"
KEYS, BLOCKS, PLACES, PART = "index.idx", "index.cdxj.gz", "index.loc", "index"  # of an index in blocks
RUN_LINES = 2_000  # lines kept in memory and written again at each flush: some 0.6 MB
FOLD = 16  # runs of one size that are merged into one of the next, so that a replay searches few files
FEW = 256  # an index at least this many times longer than the new lines is searched, not merged line by line
MERGE_WIDTH = 64  # files merged at once; bounded so that a long crawl does not run out of file descriptors

_END, _POST_END = b'"}\n', b'", "requestBody": '  # what follows the name of the WARC, the second after a POST
_OPEN_END, _OPEN_POST_END = OPEN.encode() + _END, OPEN.encode() + _POST_END


class _Runs:
    """The lines of one open WARC."""

    def __init__(self, folder: Path, warc: str) -> None:
        self.dirty = False  # True if a replay does not see all lines yet
        self._folder = folder
        self._warc = warc
        self._full: list[tuple[int, Path]] = []  # how often it was merged, and the file; largest first
        self._serial = 0
        self._lines: list[bytes] = []  # of the newest run

    def add(self, capture: Capture | Resource) -> None:
        self.add_line(cdxj.capture_line(capture, self._warc + OPEN))

    def add_line(self, line: bytes) -> None:
        self._lines.append(line)
        self.dirty = True
        if len(self._lines) >= RUN_LINES:
            self._write()
            self._full.append((0, self._newest))
            self._serial += 1
            self._lines = []

    def flush(self) -> None:
        if self.dirty and self._lines:
            self._write()
        self._fold()  # now, because the index notifies replays next, so they learn that files are gone
        self.dirty = False

    def finish(self) -> None:
        self.flush()
        paths = [path for _, path in self._full]
        if self._lines:
            paths.append(self._newest)
        _merge(paths, self._folder / f"{GROWING}{self._warc}.cdxj", final=True)

    @property
    def _newest(self) -> Path:
        return self._folder / f"{GROWING}{self._warc}-{self._serial:05}.cdxj"

    def _write(self) -> None:
        self._lines.sort()
        replace_file(self._newest, lambda file: file.writelines(self._lines), lambda: sum(map(len, self._lines)))

    def _fold(self) -> None:
        """Merge runs of the same size: a line is written again only when its run grows by a factor of `FOLD`."""
        while len(self._full) >= FOLD and self._full[-FOLD][0] == self._full[-1][0]:
            paths = [path for _, path in self._full[-FOLD:]]
            _merge(paths, paths[0], final=False)
            self._full[-FOLD:] = [(self._full[-1][0] + 1, paths[0])]


class Index:
    """The index of one collection, for writing. Its methods block; call them from one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _Runs] = {}
        self._last_mtime = 0  # the folder's time, in seconds, as we last set it

    @property
    def dirty(self) -> bool:
        """True if a replay could not see all added lines."""
        return any(runs.dirty for runs in self._open.values())

    def add(self, captures: Iterable[Capture | Resource]) -> None:
        """Add the lines of *captures*; they are on disk after the next `flush`."""
        for capture in filter(cdxj.is_shown, captures):
            self._runs_for(capture.warc).add(capture)

    def add_lines(self, warc: str, lines: Iterable[bytes]) -> int:
        """Add whole *lines*, which name *warc* as it is called on disk, and return their number."""
        count = 0
        for line in lines:
            count += 1
            self._runs_for(warc).add_line(line)
        return count

    def flush(self) -> None:
        """Write new lines to disk."""
        if self.dirty:
            for runs in self._open.values():
                runs.flush()
            self.notify_replays()

    def close_file(self, warc: str) -> None:
        """Merge the runs of *warc*, which has its final name now."""
        runs = self._open.pop(warc, None)
        if runs is not None:
            runs.finish()
            self.notify_replays()

    def finish(self, *, replace: bool = False) -> None:
        """Merge all runs into one sorted index.cdxj, or with *replace* write it from the runs only.

        Lines of a WARC that is still open keep its open name.
        """
        self.flush()
        target = self._folder / INDEX
        paths = self._runs()
        _merge([*paths, target] if target.exists() and not replace else paths, target, final=not self._open)
        self.notify_replays()

    def gather(self, files: Iterable[tuple[str, Iterable[Capture | Resource]]]) -> int:
        """Add all captures of *files*, which have their final names, and return the number of lines."""
        lines = 0
        for warc, captures in files:
            for capture in captures:
                self._runs_for(warc).add(capture)
                lines += 1
            self.close_file(warc)
        return lines

    def merge_in(self, warcs: Iterable[str]) -> None:
        """Merge the lines of *warcs*, which are closed, into index.cdxj; leave other runs alone.

        If they are few, the existing lines are copied unread.
        """
        runs = [path for path in map(self._run_of, warcs) if path.exists()]
        target = self._folder / INDEX
        _merge([*runs, target] if target.exists() else runs, target, final=False)
        self.notify_replays()

    def forget_runs(self) -> None:
        """Remove the runs, which are part of index.cdxj for certain or not wanted."""
        _remove(self._runs())
        self.notify_replays()

    def forget_runs_of(self, warc: str) -> None:
        """Remove the runs of *warc*, whose crawler has died; they are made again from the database."""
        _remove(self._folder.glob(f"{GROWING}{glob.escape(warc)}*.cdxj"))

    def notify_replays(self) -> None:
        """Set a later time on the folder, so that a running pywb looks at it again.

        pywb compares that time in whole seconds. A change in the second of its latest look would stay unseen, and
        pywb would go on with files that are gone.
        """
        with storage(self._folder):
            known = self._folder.stat()
            self._last_mtime = max(self._last_mtime, int(known.st_mtime)) + 1
            os.utime(self._folder, (known.st_atime, self._last_mtime))

    def _runs_for(self, warc: str) -> _Runs:
        runs = self._open.get(warc)
        if runs is None:
            runs = self._open[warc] = _Runs(self._folder, warc)
        return runs

    def _run_of(self, warc: str) -> Path:
        return self._folder / f"{GROWING}{warc}.cdxj"

    def _runs(self) -> list[Path]:
        return sorted(self._folder.glob(f"{GROWING}*.cdxj"))


def pack(folder: Path) -> None:
    """Replace the index in *folder* by one in compressed blocks (ZipNum), of which a search reads one or two."""
    remove_packed(folder)
    keys: list[bytes] = []

    def fill(file: BinaryIO) -> None:
        with (folder / INDEX).open("rb") as lines:
            keys.extend(cdx.write_blocks(lines, file.write, PART))

    replace_file(folder / BLOCKS, fill)
    replace_file(folder / PLACES, lambda file: file.writelines((f"{PART}\t{BLOCKS}\n".encode(),)))
    replace_file(folder / KEYS, lambda file: file.writelines(keys))
    _remove((folder / INDEX,))


def remove_packed(folder: Path) -> None:
    """Remove an index in blocks from *folder*."""
    _remove(path for path in (folder / KEYS, folder / PLACES, folder / BLOCKS) if path.exists())


def _merge(paths: Sequence[Path], target: Path, *, final: bool) -> None:
    """Replace *paths* by one sorted file, *target*, with each line once; *final*: with the WARC's final name."""
    paths = list(paths)
    while len(paths) > MERGE_WIDTH:
        first, paths = paths[:MERGE_WIDTH], paths[MERGE_WIDTH:]
        _write(first, first[0], final=final)
        _remove(first[1:])
        paths.append(first[0])
    _write(paths, target, final=final)
    _remove(path for path in paths if path != target)


def _write(paths: Sequence[Path], target: Path, *, final: bool) -> None:
    def fill(file: BinaryIO) -> None:
        with ExitStack() as stack:
            files = {path: stack.enter_context(open_file(path)) for path in paths}
            whole = None if final or not _is_large(target, paths) else files.pop(target)
            lines = _once(heapq.merge(*files.values()), final=final)
            if whole is None:
                file.writelines(lines)
            else:
                insert_lines(whole, lines, file)

    replace_file(target, fill, lambda: sum(path.stat().st_size for path in paths))


def _is_large(target: Path, paths: Sequence[Path]) -> bool:
    """Return True if *target* is one of *paths* and all others are short beside it."""
    others = sum(path.stat().st_size for path in paths if path != target)
    return target in paths and FEW * others < target.stat().st_size


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with storage(path):
            path.unlink()


def _once(lines: Iterable[bytes], *, final: bool) -> Iterator[bytes]:
    """Yield each of the sorted *lines* once; *final*: with the WARC's final name."""
    last = b""
    for line in lines:
        named = _closed(line) if final else line
        if named != last:
            yield named
            last = named


def _closed(line: bytes) -> bytes:
    """Return *line* with the WARC's final name; quotes within values are escaped, so none can look like an end."""
    if line.endswith(_OPEN_END):
        return line[: -len(_OPEN_END)] + _END
    return line.replace(_OPEN_POST_END, _POST_END, 1) if _OPEN_POST_END in line else line
