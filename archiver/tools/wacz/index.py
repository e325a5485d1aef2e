"""The index of a package, read in order from all CDXJ files of a collection.

A small index is a plain `index.cdx`, which replayweb.page loads as a whole. A large one is a ZipNum index:
`index.cdx.gz` with gzip members of some thousand lines, and `index.idx` with the first key of each, so a look-up reads
one or two members. One block is in memory at a time. All lines are checked, and a wrong one refuses the whole index,
because the package would spread it.

Captures get milliseconds, which the index of a collection leaves out. replayweb.page looks for the capture that a
revisit names at its exact date or later. With whole seconds the right capture seems to be earlier, and a later one of
the same URL would be shown. So where a URL has several captures, the lines that are not revisits get the milliseconds
of their records. CDXJ 0.1.0 allows both forms.
"""

import heapq
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby, islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from archiver.collection.records import record_at
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import storage
from archiver.warc.cdxj import LONGEST_LINE, is_revisit, parse_line, timestamp14
from archiver.warc.records import parse_date

MAX_CAPTURES = 10_000  # captures of one URL in memory; with more, the lines stay as they are

_REVISIT = re.compile(rb'"mime": ?"warc/revisit"')
_SECOND = 14  # digits


def with_milliseconds(lines: Iterable[bytes], folder: Path, names: Collection[str]) -> Iterator[bytes]:
    """Yield the sorted *lines*, with milliseconds for the WARC files *names* in *folder*; still sorted."""
    for _, group in groupby(lines, _key):
        of_key = iter(group)
        held = list(islice(of_key, MAX_CAPTURES + 1))
        if 1 < len(held) <= MAX_CAPTURES:
            held = sorted(_with_milliseconds(line, folder, names) if _is_stored(line) else line for line in held)
        yield from held
        yield from of_key


def _key(line: bytes) -> bytes:
    return line[: line.find(b" ")]


def _is_stored(line: bytes) -> bool:
    """Return whether *line* is not a revisit."""
    return _REVISIT.search(line) is None


def _with_milliseconds(line: bytes, folder: Path, names: Collection[str]) -> bytes:
    """Return *line* with milliseconds if the record has them; unreadable records leave it unchanged."""
    entry = parse_line(line)
    if entry is None or entry.filename not in names or len(entry.timestamp) != _SECOND:
        return line
    try:
        with record_at(folder, entry.filename, entry.offset) as record:
            date = parse_date(record.first("WARC-Date") or "")
        if timestamp14(date) != entry.timestamp:
            return line
    except (ArchiveError, ValueError, OverflowError, OSError):
        return line
    key, second, rest = line.split(b" ", 2)
    return b"%b %b%03d %b" % (key, second, date // 1000 % 1000, rest)


BLOCK = 3000  # lines
PLAIN = 10_000  # lines in the largest plain index
INDEX, BLOCKS, KEYS = "indexes/index.cdx", "indexes/index.cdx.gz", "indexes/index.idx"

_LONGEST_BLOCK = 4 * BLOCK  # largest number of lines in a block without a good place to end
_HEADERS = (b"!", b" CDX ")  # the starts of lines that are not entries
_BEFORE_SLASH = re.compile(rb"[ -.]")  # characters that sort before it
_FILENAME = re.compile(rb'"filename": ?"([^"\\]{1,500})"\}\s*\Z')


@dataclass(slots=True)
class WarcTotals:
    """The totals of one WARC file in an index."""

    lines: int = 0
    size: int = 0  # bytes of its lines
    revisits: int = 0


class PackageIndex:
    """The merged lines of all *paths*, sorted and without repetition, while it is open."""

    def __init__(self, paths: Sequence[Path], rebuild_command: str = "archiver index DIR") -> None:
        self._paths = paths
        self._rebuild_command = rebuild_command  # the command that rebuilds the index
        self._stack = ExitStack()
        self._files: list[BinaryIO] = []
        self.lines_returned = 0  # lines returned by `of`

    def __enter__(self) -> Self:
        for path in self._paths:
            with storage(path):
                self._files.append(self._stack.enter_context(path.open("rb")))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def totals(self) -> dict[str, WarcTotals]:
        """Return the totals per WARC file. Checks every line and raises `ConfigError` for a wrong one."""
        totals: dict[str, WarcTotals] = {}
        last = b""
        for line in self._lines():
            if line < last:
                raise self._error("is not sorted")
            last = line
            entry = parse_line(line)
            if entry is None:
                raise self._error(f"has a line that is not CDXJ: {line[:80]!r}")
            total = totals.setdefault(entry.filename, WarcTotals())
            total.lines += 1
            total.size += len(line)
            total.revisits += is_revisit(entry)
        return totals

    def of(self, names: Collection[str], folder: Path | None = None) -> Iterator[bytes]:
        """Yield the lines of the WARC files *names*; with *folder*, where they are, with milliseconds."""
        lines = self._lines() if folder is None else with_milliseconds(self._lines(), folder, names)
        for line in lines:
            plain = _FILENAME.search(line)
            if plain:
                name = plain[1].decode("utf-8", "replace")
            else:
                entry = parse_line(line)
                name = entry.filename if entry is not None else ""
            if name in names:
                self.lines_returned += 1
                yield line

    def _lines(self) -> Iterator[bytes]:
        """Yield each entry once, with a line end."""
        last = b""
        sources = [self._entries(path, file) for path, file in zip(self._paths, self._files, strict=True)]
        for line in heapq.merge(*sources):
            if line != last:
                yield line
                last = line

    def _entries(self, path: Path, file: BinaryIO) -> Iterator[bytes]:
        with storage(path):
            file.seek(0)
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE:
                    raise self._error(f"has a line of more than {LONGEST_LINE} bytes")
                if line.strip() and not line.startswith(_HEADERS):
                    yield line.rstrip(b"\r\n") + b"\n"

    def _error(self, problem: str) -> ConfigError:
        folder = self._paths[0].parent
        return ConfigError(f"the index in {folder} {problem}; rebuild it with: {self._rebuild_command}")


class ZipNumBlocks:
    """Writes a ZipNum index: *write* gets the compressed blocks, `keys` has the lines of the key file."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._offset = 0
        self._held: list[bytes] = []
        self._known: set[bytes] = set()  # of the current block
        self.keys = [b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n']

    def add(self, lines: Iterable[bytes]) -> None:
        """Add all *lines*, which are sorted."""
        for line in lines:
            key = line.partition(b" ")[0]
            if len(self._held) >= BLOCK and (may_begin(self._known, key) or len(self._held) >= _LONGEST_BLOCK):
                self._end()
            self._held.append(line)
            self._known.add(key)
        if self._held:
            self._end()

    def _end(self) -> None:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)  # a gzip member without a time
        block = packer.compress(b"".join(self._held)) + packer.flush()
        said = {"offset": self._offset, "length": len(block), "digest": f"sha256:{sha256(block).hexdigest()}"}
        first = b" ".join(self._held[0].split(b" ", 2)[:2])
        self.keys.append(b"%b %b\n" % (first, json.dumps(said).encode()))
        self._write(block)
        self._offset += len(block)
        self._held, self._known = [], set()


def may_begin(known: Collection[bytes], key: bytes) -> bool:
    """Return whether *key* may be the first of a block after one with the keys *known*.

    replayweb.page looks up `/a/` with its slash, although the key is `/a`, and only in the last block that begins
    before it. So neither another `/a` nor a key between the two, such as `/a-b`, may begin a block.
    """
    return key not in known and not any(key[: found.start()] in known for found in _BEFORE_SLASH.finditer(key))
