"""The contents of a package: finished WARC files, their index lines, and logs.

Everything that would make a package wrong is refused here, before a byte is written: unfinished files, an index that
names missing files, or one that lacks records. Each message says what to do.

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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby, islice
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import BinaryIO, Self

from zlib_ng import zlib_ng

from archiver.collection import safe_paths
from archiver.collection.imports import imported_files
from archiver.collection.layout import NAME_A_COLLECTION, Layout, rounds
from archiver.collection.records import WARC_ENDINGS, record_at
from archiver.collection.reindex import lines
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import OPEN, storage
from archiver.tools.wacz.zip import LEVEL
from archiver.warc.cdxj import LONGEST_LINE, is_revisit, parse_line, timestamp14
from archiver.warc.records import parse_date

MAX_CAPTURES = 10_000  # captures of one URL in memory; with more, the lines stay as they are
BLOCK = 3000  # lines
PLAIN = 10_000  # lines in the largest plain index
INDEX, BLOCKS, KEYS = "indexes/index.cdx", "indexes/index.cdx.gz", "indexes/index.idx"
NO_WARC = "it is not a WARC file"
UNFINISHED_IMPORT = "its import was interrupted, so the index lacks some of it; run the same import again"

_REVISIT = re.compile(rb'"mime": ?"warc/revisit"')
_SECOND = 14  # digits
_LONGEST_BLOCK = 4 * BLOCK  # largest number of lines in a block without a good place to end
_HEADERS = (b"!", b" CDX ")  # the starts of lines that are not entries
_BEFORE_SLASH = re.compile(rb"[ -.]")  # characters that sort before it
_FILENAME = re.compile(rb'"filename": ?"([^"\\]{1,500})"\}\s*\Z')
_IMPORTED = "imports"  # other files of imported packages are below it
_LOGS = (".log", ".txt")


def with_milliseconds(lines: Iterable[bytes], folder: Path, names: Collection[str]) -> Iterator[bytes]:
    """Yield the sorted *lines*, with milliseconds for the WARC files *names* in *folder*; still sorted."""
    for _, group in groupby(lines, _key):
        of_key = iter(group)
        held = list(islice(of_key, MAX_CAPTURES + 1))
        if 1 < len(held) <= MAX_CAPTURES:
            held = sorted(line if _REVISIT.search(line) else _with_milliseconds(line, folder, names) for line in held)
        yield from held
        yield from of_key


def _key(line: bytes) -> bytes:
    return line[: line.find(b" ")]


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
        packer = zlib_ng.compressobj(LEVEL, zlib_ng.DEFLATED, 31)  # a gzip member without a time
        block = packer.compress(b"".join(self._held)) + packer.flush()
        fields = {"offset": self._offset, "length": len(block), "digest": f"sha256:{sha256(block).hexdigest()}"}
        first = b" ".join(self._held[0].split(b" ", 2)[:2])
        self.keys.append(b"%b %b\n" % (first, json.dumps(fields).encode()))
        self._write(block)
        self._offset += len(block)
        self._held, self._known = [], set()


def may_begin(known: Collection[bytes], key: bytes) -> bool:
    """Return whether *key* may be the first of a block after one with the keys *known*.

    replayweb.page looks up `/a/` with its slash, although the key is `/a`, and only in the last block that begins
    before it. So neither another `/a` nor a key between the two, such as `/a-b`, may begin a block.
    """
    return key not in known and not any(key[: found.start()] in known for found in _BEFORE_SLASH.finditer(key))


@dataclass(frozen=True, slots=True)
class PackedWarc:
    """A WARC file, and its totals in the index."""

    path: Path
    size: int
    lines: int = 0
    line_bytes: int = 0
    revisits: int = 0

    @property
    def place(self) -> str:
        """Its path in a package."""
        return f"archive/{self.path.name}"


@dataclass(frozen=True, slots=True)
class PackContents:
    """The parts of a collection that go into packages."""

    directory: Path
    warcs: tuple[PackedWarc, ...]  # by name
    indexes: tuple[Path, ...]
    logs: tuple[tuple[str, Path], ...]  # path in the package, and file
    left_out: tuple[tuple[str, str], ...] = ()  # names in archive/, and the reason for each


def read_contents(directory: Path) -> PackContents:
    """Return the parts of the collection in *directory*. Raises `ConfigError` if it cannot be packed as it is."""
    layout = Layout(directory)
    rebuild_index = f"archiver index {quote(str(directory))}"
    safe_paths.check_files(directory)
    if not layout.archive.is_dir():
        raise ConfigError(f"{directory} holds no archive: it has no archive/ folder{NAME_A_COLLECTION}")
    with storage(layout.archive):
        files = sorted(path for path in layout.archive.iterdir() if path.is_file())
    _refuse_unfinished(files, directory)
    paths = [path for path in files if path.name.endswith(WARC_ENDINGS)]
    if not paths:
        raise ConfigError(f"{layout.archive} has no WARC file to pack")
    for path in paths:
        _check_name(path)
    indexes = tuple(sorted(layout.indexes.glob("*.cdxj")))
    if not indexes:
        raise ConfigError(f"{layout.indexes} has no index; make it with: {rebuild_index}")
    with PackageIndex(indexes, rebuild_index) as index:
        totals = index.totals()
    _refuse_missing_files(totals, {path.name for path in paths}, layout, rebuild_index)
    unfinished = _unfinished(layout, totals)
    paths = [path for path in paths if path.name not in unfinished]
    if not paths:
        raise ConfigError(f"{layout.archive} has only {min(unfinished)}: {UNFINISHED_IMPORT}")
    with storage(layout.archive):
        warcs = tuple(_warc(path, totals.get(path.name)) for path in paths)
    for warc in warcs:
        if not warc.lines and _holds_captures(warc.path):
            raise ConfigError(f"{warc.path}: the index has none of its records; rebuild it with: {rebuild_index}")
    left_out = tuple(
        (path.name, UNFINISHED_IMPORT if path.name in unfinished else NO_WARC) for path in files if path not in paths
    )
    logs = dict(_logs(layout))
    logs |= dict(_logs_of_others(layout, logs))
    return PackContents(directory, warcs, indexes, tuple(logs.items()), left_out)


def _refuse_unfinished(files: Iterable[Path], directory: Path) -> None:
    unfinished = next((path for path in files if path.name.endswith(OPEN)), None)
    if unfinished is not None:
        where = quote(str(directory))
        raise ConfigError(
            f"{unfinished} is not finished: its crawl was interrupted; continue it with: archiver resume {where}, or "
            f"close the file with: archiver rebuild {where}"
        )


def _check_name(path: Path) -> None:
    try:
        path.name.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{path}: its name is not UTF-8, which WACZ requires; rename it") from None
    if not path.name.isprintable() or "\\" in path.name:
        raise ConfigError(f"{path}: its name has characters that WACZ does not allow; rename it")


def _refuse_missing_files(totals: dict[str, WarcTotals], known: set[str], layout: Layout, rebuild_index: str) -> None:
    missing = next((name for name in totals if name not in known), None)
    if missing is not None:
        raise ConfigError(
            f"{layout.indexes} names {missing!r}, which is missing in {layout.archive}; restore it, or "
            f"rebuild the index with: {rebuild_index}"
        )


def _warc(path: Path, total: WarcTotals | None) -> PackedWarc:
    total = total or WarcTotals()
    return PackedWarc(path, path.stat().st_size, total.lines, total.size, total.revisits)


def _holds_captures(path: Path) -> bool:
    """Return whether a new index would have a line for it."""
    with storage(path), path.open("rb") as file:
        return next(lines(file, path.name), None) is not None


def _unfinished(layout: Layout, totals: dict[str, WarcTotals]) -> set[str]:
    """Return the files whose import was interrupted before the index had all their records."""
    found: set[str] = set()
    try:
        entries = imported_files(layout)
    except ArchiveError:  # reported by `verify`
        return found
    for each in entries:
        path = layout.archive / each.name
        if not each.indexed and path.is_file():
            with storage(path), path.open("rb") as file:
                count = sum(1 for _ in lines(file, path.name))
            if totals.get(each.name, WarcTotals()).lines < count:
                found.add(each.name)
    return found


def _logs(layout: Layout) -> Iterable[tuple[str, Path]]:
    """Yield the logs of this crawl and of earlier ones, with names that are unique in one folder."""
    if layout.log.is_file():
        yield "logs/crawl.log", layout.log
    for earlier in reversed(rounds(layout)):
        if earlier.log.is_file():
            yield f"logs/crawl-{earlier.directory.name}.log", earlier.log


def _logs_of_others(layout: Layout, taken: Collection[str]) -> Iterable[tuple[str, Path]]:
    """Yield the logs of imported packages, with names that are not *taken*.

    JSON and CSV files are left out: an irregular one would fail the reference validator.
    """
    names = {place.lower() for place in taken}
    for log in sorted((layout.directory / _IMPORTED).glob("*/logs/*")):
        if log.suffix in _LOGS and log.is_file():
            plain, marked = f"logs/{log.name}", f"logs/{log.parent.parent.name}-{log.name}"
            place = marked if plain.lower() in names else plain
            if place.lower() not in names:
                names.add(place.lower())
                yield place, log
