"""Index formats of other programs: lines of CDX, the format before CDXJ, and ZipNum, compressed blocks of index lines.

The usual eleven fields have the header ` CDX N b a m s k r M S V g`: key, date, URL, media type, status, digest,
redirect, flags, length, offset, file. Ten fields omit the length, nine the flags too. Three more may follow, which
locate the original of a revisit; we ignore them. As in pywb, the number of fields says which ones they are. CDXJ lines
may be mixed with CDX lines.

A ZipNum index has a small sorted file with the first key and place of each block. `.idx` and `.summary` files of pywb
and OpenWayback have lines `key date<TAB>part<TAB>offset<TAB>length`; a `.loc` file beside them lists the files in which
a part may be. The `.idx` of a WACZ package has lines `key date {json}`. Only one block is in memory at a time. An index
may name only regular files in its own folder or below, and blocks have a maximum size.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import count, islice
from pathlib import Path, PurePath
from typing import NamedTuple

from archiver.errors import ArchiveError
from archiver.warc import cdxj
from archiver.warc.cdxj import LONGEST_LINE, IndexEntry

HEADER = b" CDX "
_HEADERS = frozenset(("N b a m s k r V g", "N b a m s k r M V g", "N b a m s k r M S V g"))
_RESOLVED = 3  # fields about the original of a revisit


class _Order(NamedTuple):
    """Positions of the fields that differ between the formats."""

    length: int | None
    offset: int
    filename: int


_ORDERS = {9: _Order(None, 7, 8), 10: _Order(None, 8, 9), 11: _Order(8, 9, 10)}
_ORDERS |= {count + _RESOLVED: order for count, order in _ORDERS.items()}


def parse_line(line: bytes) -> IndexEntry | None:
    """Return the entry in *line*, CDX or CDXJ; None for a header or a damaged line."""
    third = line.find(b" ", line.find(b" ") + 1) + 1
    if line.startswith(b"{", third):
        return cdxj.parse_line(line)
    fields = [field.decode("utf-8", "replace") for field in line.rstrip().split(b" ", max(_ORDERS))]
    order = _ORDERS.get(len(fields))
    if order is None or not _is_number(fields[1]) or not _is_number(fields[order.offset]):
        return None
    size = fields[order.length] if order.length is not None else "-"
    return IndexEntry(
        key=fields[0],
        timestamp=fields[1],
        url=fields[2],
        mime="unk" if fields[3] == "-" else fields[3],
        status=fields[4],
        digest="" if fields[5] == "-" else fields[5],
        length=int(size) if _is_number(size) else 0,
        offset=int(fields[order.offset]),
        filename=fields[order.filename],
    )


def is_known(header: bytes) -> bool:
    """Return True if `parse_line` reads the fields that *header* names."""
    return header.decode("latin-1").removeprefix(HEADER.decode()).strip() in _HEADERS


def has_other_key(entry: IndexEntry) -> bool:
    """Return True if *entry* has a key like `example.org/`, which no lookup finds, in place of `org,example)/`."""
    return entry.url.startswith(("http:", "https:")) and ")" not in entry.key.partition("/")[0]


def with_our_key(line: bytes) -> bytes:
    """Return *line* with the lookup key of its URL if it has another key."""
    entry = parse_line(line)
    if entry is None or not has_other_key(entry):
        return line
    return cdxj.lookup_key(entry.url).encode("utf-8", "replace") + line[line.index(b" ") :]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20


ZIPNUM_SUFFIXES = frozenset((".idx", ".summary"))
_META = b"!"  # begins a line of metadata
_LARGEST = 16 << 20  # bytes of a compressed block; blocks of some thousand lines have a fiftieth of it
_UNPACKED = 256 << 20
_LONGEST_LOC = 16 << 20  # bytes of a .loc file
_LONGEST_PART = 200  # characters of the name of a part
_FIELDS = 4  # the least number of fields in a line with tabs


class BlockLocation(NamedTuple):
    """The place of a block."""

    part: str
    offset: int
    length: int


def first_key(line: bytes) -> bytes:
    """Return the key and date in *line* of a key file, with which its block begins."""
    head, tab, _ = line.partition(b"\t")
    return head if tab else line.partition(b" {")[0].rstrip()


def zipnum_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield every line of the index with the key file *path*, and its place for `zipnum_line_at`."""
    offset = 0
    with path.open("rb") as file:
        for key, lines in Cluster(path).blocks(iter(lambda: file.readline(LONGEST_LINE), b"")):
            inside = 0
            for line in lines:
                yield offset * _UNPACKED + inside, line
                inside += len(line)
            offset += len(key)


def zipnum_line_at(path: Path, place: int) -> bytes:
    """Return the line at a *place* from `zipnum_lines`; b"" if no line begins there any more."""
    offset, wanted = divmod(place, _UNPACKED)
    with path.open("rb") as file:
        file.seek(offset)
        key = file.readline(LONGEST_LINE)
    inside = 0
    for _, lines in Cluster(path).blocks([key]):
        for line in lines:
            if inside >= wanted:
                return line if inside == wanted else b""
            inside += len(line)
    return b""


def is_zipnum(path: Path) -> bool:
    """Return True if the file at *path* begins like a key file."""
    cluster = Cluster(path)
    with path.open("rb") as file:
        try:
            first = [cluster.block(file.readline(LONGEST_LINE)) for _ in range(2)]  # one may be metadata
        except ArchiveError:
            return False
        return any(first) or not file.tell()


BLOCK = 3000  # lines in a block, as in the indexes of others


def write_blocks(lines: Iterable[bytes], write: Callable[[bytes], object], part: str) -> Iterator[bytes]:
    """Write the sorted index *lines* in compressed blocks, and yield the lines of the key file, as pywb reads them.

    *part* is the name by which the .loc file knows where the blocks are.
    """
    whole, offset = iter(lines), 0
    for number in count():
        block = list(islice(whole, BLOCK))
        if not block:
            return
        packed = gzip.compress(b"".join(block), 6, mtime=0)
        write(packed)
        first = b" ".join(block[0].split(b" ", 2)[:2])
        yield b"%b\t%b\t%d\t%d\t%d\n" % (first, part.encode(), offset, len(packed), number + 1)
        offset += len(packed)


class Cluster:
    """The blocks that the key file at *path* lists."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places = _places(path.with_suffix(".loc"))
        self._default = _default_part(path)

    def block(self, line: bytes) -> BlockLocation | None:
        """Return the block that *line* of the key file names; None if it has none; `ArchiveError` if it is damaged."""
        if not line.strip() or line.startswith(_META):
            return None
        fields = line.rstrip(b"\r\n").split(b"\t")
        try:
            if len(fields) >= _FIELDS:
                found = BlockLocation(fields[1].decode(), int(fields[2]), int(fields[3]))
            else:
                place = json.loads(line[line.index(b" {") :])
                found = BlockLocation(
                    str(place.get("filename") or self._default), int(place["offset"]), int(place["length"])
                )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise ArchiveError(f"{self._path} has a line that names no block: {line[:80]!r}") from None
        if not (0 <= found.offset < 1 << 63 and 0 < found.length <= _LARGEST):
            raise ArchiveError(f"{self._path} names a block that cannot be: {found.length} bytes at {found.offset}")
        return found

    def blocks(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Iterator[bytes]]]:
        """Yield each of the lines *keys*, and the lines of its block, with their ends. No byte is read twice.

        Raises `ArchiveError` if a block is missing, damaged, or overlaps another.
        """
        ends: dict[Path, int] = {}
        for key in keys:
            block = self.block(key)
            if block is None:
                yield key, iter(())
                continue
            path = self._file_of(block.part)
            if block.offset < ends.get(path, 0):
                raise ArchiveError(f"{self._path} names blocks of {path} that are not in order, or lie over each other")
            ends[path] = block.offset + block.length
            yield key, _lines(path, block)

    def _file_of(self, part: str) -> Path:
        """Return the first existing file of those in which *part* may be."""
        places = self._places.get(part)
        if places is None:
            places = [f"{part}{ending}" for ending in ("", ".cdx.gz", ".gz")] if len(part) <= _LONGEST_PART else []
        for place in places:
            path = self._path.parent / place
            if "://" not in place and _is_below(place) and path.is_file() and not path.is_symlink():
                return path
        named = f"{self._path.with_suffix('.loc').name} says" if part in self._places else "as its name says"
        raise ArchiveError(
            f"{self._path} names blocks in {part[:100]!r}, and there is no such file in its folder where {named}"
        )


def _is_below(place: str) -> bool:
    """Return True if the relative *place* stays in its folder or below; an index may name no other."""
    path = PurePath(place)
    outside = path.is_absolute() or path.drive or ".." in path.parts
    return bool(path.parts) and not outside and "\0" not in place


def _lines(path: Path, block: BlockLocation) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(block.offset)
        packed = file.read(block.length)
    where = f"{path}: the block at offset {block.offset}"
    if len(packed) < block.length:
        raise ArchiveError(f"{where} is cut: it should have {block.length} bytes")
    left = _UNPACKED
    try:
        with gzip.GzipFile(fileobj=BytesIO(packed)) as unpacked:
            while line := unpacked.readline(LONGEST_LINE):
                left -= len(line)
                if left < 0 or len(line) == LONGEST_LINE:
                    raise ArchiveError(f"{where} is too large, or has a line that is too long, to be of an index")
                yield line if line.endswith(b"\n") else line + b"\n"
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ArchiveError(f"{where} is damaged, or no block begins there") from None


def _places(loc: Path) -> dict[str, list[str]]:
    """Read the file *loc*: the files that each part may be in, relative to its folder."""
    if not loc.is_file():
        return {}
    with loc.open("rb") as file:
        text = file.read(_LONGEST_LOC + 1)
    if len(text) > _LONGEST_LOC:
        raise ArchiveError(f"{loc} has more than {_LONGEST_LOC} bytes, so it names no places of blocks")
    lines = (line.split("\t") for line in text.decode("utf-8", "replace").splitlines())
    return {part: places for part, *places in lines}


def _default_part(path: Path) -> str:
    """Return the file of blocks that the first line of *path* names, or else the one with the same stem."""
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE)
    if line.startswith(_META):
        try:
            return str(json.loads(line.split(b" ", 2)[2])["filename"])
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            pass
    return f"{path.stem}.cdx.gz"
