"""The CDXJ of a collection: complete at every stop, and good enough for a replay while the crawl runs.

While a WARC is open, its lines stand in sorted runs that name it as it is called on disk (NAME.open). A flush writes
only the newest, short run; full ones are merged in steps. When the WARC gets its final name, its runs become one;
when the crawl ends or is stopped, all of them become index.cdxj.
Every file appears whole or not at all. Everything here can be made again from the database or the WARCs, and
merging is idempotent: a line that stands in two files is written once.

A few sorted lines take their places in a large sorted file, most of whose lines nobody looks at.

The place of each is found by halving, and what lies between two places is copied as it is: a merge reads every line.
"""

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from archiver.model import Capture, Resource
from archiver.storage import OPEN, replace_file, storage
from archiver.warc import cdxj

STEP = 1 << 20  # bytes copied at once


def inserted(large: BinaryIO, lines: Iterable[bytes], target: BinaryIO) -> None:
    """Write *large* to *target*, with each of the sorted *lines* that does not stand in it."""
    size = large.seek(0, 2)
    done = 0
    for line in lines:
        place = _place(large, done, size, line)
        _copy(large, done, place, target)
        done = place
        if large.readline() != line:
            target.write(line)
    _copy(large, done, size, target)


def _place(file: BinaryIO, low: int, size: int, line: bytes) -> int:
    """Where the first line behind *low* begins, itself a beginning, that does not stand before *line*; or the end.

    The file stands there then.
    """
    high = size
    while low < high:
        middle = (low + high) // 2
        if _begin(file, middle) < size and file.readline() < line:
            low = middle + 1
        else:
            high = middle
    return _begin(file, low)


def _begin(file: BinaryIO, at: int) -> int:
    """Go to where the first line begins at *at* or behind it."""
    file.seek(max(0, at - 1))
    if at:
        file.readline()
    return file.tell()


def _copy(file: BinaryIO, start: int, end: int, target: BinaryIO) -> None:
    """Copy what lies between *start* and *end*; the file stands at *end* then."""
    file.seek(start)
    left = end - start
    while left and (piece := file.read(min(STEP, left))):
        target.write(piece)
        left -= len(piece)


INDEX = "index.cdxj"
RUN_LINES = 2_000  # lines kept in memory and written anew at each flush: some 0.6 MB
FOLD = 16  # runs of one size that become one of the next, so that a replay has few files to look into
FEW = 256  # times as long must the index be as what is to come into it, for places to be looked for
MERGE_WIDTH = 64  # files merged at once; bounded so that a long crawl does not run out of open files

_OPEN_END = (OPEN + '"}\n').encode()
_END = b'"}\n'


class _Runs:
    """The lines of one open WARC."""

    def __init__(self, folder: Path, warc: str) -> None:
        self.dirty = False  # whether a replay has not been told of everything
        self._folder = folder
        self._warc = warc
        self._full: list[tuple[int, Path]] = []  # how often it was merged, and the file; what is largest stands first
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
        self._fold()  # here, because a replay is told next that files are gone
        self.dirty = False

    def finish(self) -> None:
        self.flush()
        paths = [path for _, path in self._full]
        if self._lines:
            paths.append(self._newest)
        _merge(paths, self._folder / f"run-{self._warc}.cdxj", final=True)

    @property
    def _newest(self) -> Path:
        return self._folder / f"run-{self._warc}-{self._serial:05}.cdxj"

    def _write(self) -> None:
        self._lines.sort()
        replace_file(self._newest, lambda file: file.writelines(self._lines), lambda: sum(map(len, self._lines)))

    def _fold(self) -> None:
        """Merge what has come to be of one size: a line is written again only each time its run grows by `FOLD`."""
        while len(self._full) >= FOLD and self._full[-FOLD][0] == self._full[-1][0]:
            paths = [path for _, path in self._full[-FOLD:]]
            _merge(paths, paths[0], final=False)
            self._full[-FOLD:] = [(self._full[-1][0] + 1, paths[0])]


class Index:
    """Keeps the index of one collection. Its methods block, and are called by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _Runs] = {}
        self._told = 0  # the folder's time, in seconds, as it was last set

    @property
    def dirty(self) -> bool:
        """Whether a replay could not see all that was added."""
        return any(runs.dirty for runs in self._open.values())

    def add(self, captures: Iterable[Capture | Resource]) -> None:
        """Take the lines of *captures*; they are on disk after the next `flush`."""
        for capture in captures:
            self._runs_for(capture.warc).add(capture)

    def add_lines(self, warc: str, lines: Iterable[bytes]) -> int:
        """Take whole *lines*, which name *warc* as it is called on disk; how many they were."""
        count = 0
        for line in lines:
            count += 1
            self._runs_for(warc).add_line(line)
        return count

    def flush(self) -> None:
        """Write what is new."""
        if self.dirty:
            for runs in self._open.values():
                runs.flush()
            self._tell()

    def close_file(self, warc: str) -> None:
        """*warc* has its final name now."""
        runs = self._open.pop(warc, None)
        if runs is not None:
            runs.finish()
            self._tell()

    def finish(self, *, anew: bool = False) -> None:
        """One sorted index.cdxj of everything, or (*anew*) of what was added.

        While a file is open its name stays that of an open one.
        """
        self.flush()
        target = self._folder / INDEX
        paths = self._runs()
        _merge([*paths, target] if target.exists() and not anew else paths, target, final=not self._open)
        self._tell()

    def merge_in(self, warcs: Iterable[str]) -> None:
        """The lines of *warcs*, which are closed, become part of index.cdxj; no other run is touched.

        Where they are few, the lines that stand there are copied unread.
        """
        runs = [path for path in map(self._run_of, warcs) if path.exists()]
        target = self._folder / INDEX
        _merge([*runs, target] if target.exists() else runs, target, final=False)
        self._tell()

    def forget_runs(self) -> None:
        """The runs have become part of index.cdxj for certain, or are not wanted."""
        _remove(self._runs())
        self._tell()

    def _tell(self) -> None:
        """Let a running pywb see that the folder has changed.

        It looks again when the folder's time has changed, which it compares in whole seconds: a change in the second
        of its latest look would stay unseen, and it would go on with files that are gone. So each change sets a
        later time.
        """
        with storage(self._folder):
            known = self._folder.stat()
            self._told = max(self._told, int(known.st_mtime)) + 1
            os.utime(self._folder, (known.st_atime, self._told))

    def _runs_for(self, warc: str) -> _Runs:
        runs = self._open.get(warc)
        if runs is None:
            runs = self._open[warc] = _Runs(self._folder, warc)
        return runs

    def _run_of(self, warc: str) -> Path:
        return self._folder / f"run-{warc}.cdxj"

    def _runs(self) -> list[Path]:
        return sorted(self._folder.glob("run-*.cdxj"))


def _merge(paths: Sequence[Path], target: Path, *, final: bool) -> None:
    """One sorted file, *target*, in place of *paths*, with each line once; *final*: with the WARC's final name."""
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
            files = {path: stack.enter_context(path.open("rb")) for path in paths}
            whole = None if final or not _is_large(target, paths) else files.pop(target)
            lines = _once(heapq.merge(*files.values()), final=final)
            if whole is None:
                file.writelines(lines)
            else:
                inserted(whole, lines, file)

    replace_file(target, fill, lambda: sum(path.stat().st_size for path in paths))


def _is_large(target: Path, paths: Sequence[Path]) -> bool:
    """Whether *target* is one of *paths*, beside which all others are short."""
    others = sum(path.stat().st_size for path in paths if path != target)
    return target in paths and FEW * others < target.stat().st_size


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with storage(path):
            path.unlink()


def _once(lines: Iterable[bytes], *, final: bool) -> Iterator[bytes]:
    """Each of the sorted *lines* once; *final*: with the WARC's final name."""
    last = b""
    for line in lines:
        named = line[: -len(_OPEN_END)] + _END if final and line.endswith(_OPEN_END) else line
        if named != last:
            yield named
            last = named
