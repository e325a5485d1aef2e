"""The index of a collection, read in order from all its CDXJ files, and as a package has it.

Few lines stand in a plain `index.cdx`, which replayweb.page loads whole. Many are a ZipNum index: `index.cdx.gz`, gzip
members of some thousand lines, and `index.idx` with the first key of each, so that a look-up reads one or two of them.
Nothing is kept in memory but a block. Readers look a key up (`holdings.lines`); here every line is read, and one
that is false refuses the whole, for it would be handed on.

The milliseconds of captures, which the index of a collection leaves out, for the index of a package.

replayweb.page looks for the capture that a revisit names at its exact date or after it. Where the index knows the
second only, the capture itself seems to be before that date, and a later one of the same URL would be shown in its
place: another version, or a revisit that was looked at before. So where there are several captures of a URL, the lines
of those that are no revisits have the milliseconds of their records; CDXJ 0.1.0 allows both forms.
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

MOST = 10_000  # captures of one URL that are held in memory; the lines of one that has more stay as they are

_REVISIT = re.compile(rb'"mime": ?"warc/revisit"')
_SECOND = 14  # digits


def with_moments(lines: Iterable[bytes], folder: Path, names: Collection[str]) -> Iterator[bytes]:
    """The sorted *lines*, sorted still, those that name one of the WARC files *names* in *folder* with milliseconds."""
    for _, group in groupby(lines, _key):
        of_key = iter(group)
        held = list(islice(of_key, MOST + 1))
        if 1 < len(held) <= MOST:
            held = sorted(_exact(line, folder, names) if _is_stored(line) else line for line in held)
        yield from held
        yield from of_key


def _key(line: bytes) -> bytes:
    return line[: line.find(b" ")]


def _is_stored(line: bytes) -> bool:
    """Whether *line* is that of a payload, and not of a revisit."""
    return _REVISIT.search(line) is None


def _exact(line: bytes, folder: Path, names: Collection[str]) -> bytes:
    """*line* with milliseconds, if it has none and the record says them; what cannot be read stays as it is."""
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
PLAIN = 10_000  # lines up to which an index is one plain file
INDEX, BLOCKS, KEYS = "indexes/index.cdx", "indexes/index.cdx.gz", "indexes/index.idx"

_STRETCH = 4 * BLOCK  # lines of a block at most, where no good place to end it comes
_HEADERS = (b"!", b" CDX ")  # how lines begin that are no entries
_BEFORE_SLASH = re.compile(rb"[ -.]")  # characters that are sorted before it
_FILENAME = re.compile(rb'"filename": ?"([^"\\]{1,500})"\}\s*\Z')


@dataclass(slots=True)
class WarcTotals:
    """What an index has of one WARC file."""

    lines: int = 0
    size: int = 0  # bytes of these lines
    revisits: int = 0


class PackageIndex:
    """The lines of all *paths* together, sorted, each once; read any number of times while it is open."""

    def __init__(self, paths: Sequence[Path], anew: str = "archiver index DIR") -> None:
        self._paths = paths
        self._anew = anew  # the command that makes the index anew
        self._stack = ExitStack()
        self._files: list[BinaryIO] = []
        self.given = 0  # lines, by `of`

    def __enter__(self) -> Self:
        for path in self._paths:
            with storage(path):
                self._files.append(self._stack.enter_context(path.open("rb")))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def tallies(self) -> dict[str, WarcTotals]:
        """What there is of each WARC file, by its name. Every line is looked at: `ConfigError` where one is false."""
        tallies: dict[str, WarcTotals] = {}
        last = b""
        for line in self._lines():
            if line < last:
                raise self._false("is not sorted")
            last = line
            entry = parse_line(line)
            if entry is None:
                raise self._false(f"has a line that is none of CDXJ: {line[:80]!r}")
            tally = tallies.setdefault(entry.filename, WarcTotals())
            tally.lines += 1
            tally.size += len(line)
            tally.revisits += is_revisit(entry)
        return tallies

    def of(self, names: Collection[str], folder: Path | None = None) -> Iterator[bytes]:
        """The lines that name one of the WARC files *names*; with *folder*, where those lie, with their moments."""
        lines = self._lines() if folder is None else with_moments(self._lines(), folder, names)
        for line in lines:
            plain = _FILENAME.search(line)
            if plain:
                name = plain[1].decode("utf-8", "replace")
            else:
                entry = parse_line(line)
                name = entry.filename if entry is not None else ""
            if name in names:
                self.given += 1
                yield line

    def _lines(self) -> Iterator[bytes]:
        """Every entry once, whole, with a line end."""
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
                    raise self._false(f"has a line of more than {LONGEST_LINE} bytes")
                if line.strip() and not line.startswith(_HEADERS):
                    yield line.rstrip(b"\r\n") + b"\n"

    def _false(self, what: str) -> ConfigError:
        folder = self._paths[0].parent
        return ConfigError(f"the index in {folder} {what}; make it anew with: {self._anew}")


class ZipNumBlocks:
    """A ZipNum index on its way: *write* gets its compressed blocks, `keys` is what stands in the file of keys."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._offset = 0
        self._held: list[bytes] = []
        self._known: set[bytes] = set()  # keys of the block
        self.keys = [b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n']

    def take(self, lines: Iterable[bytes]) -> None:
        """Take all *lines*, which are sorted."""
        for line in lines:
            key = line.partition(b" ")[0]
            if len(self._held) >= BLOCK and (may_begin(self._known, key) or len(self._held) >= _STRETCH):
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
    """Whether *key* may be the first of a block that follows one with the keys *known*.

    replayweb.page looks for `/a/` with a slash at the end, where the key is `/a`, and then only in the block that
    begins last before it: neither `/a` once more nor what stands between the two, `/a-b`, may begin a block.
    """
    return key not in known and not any(key[: found.start()] in known for found in _BEFORE_SLASH.finditer(key))
