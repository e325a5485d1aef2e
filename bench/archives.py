"""Read what a crawl's WARC files hold, with independent code.

A figure counts only if the crawl was complete.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

BLOCK = 1 << 20
LEVEL = 6  # gzip level for the comparison of sizes


class Record(NamedTuple):
    """A record: its head, the length of its block, and the start of the block."""

    head: bytes
    length: int
    begins: bytes

    def field(self, name: bytes) -> str:
        """Return a field of the head, or "" if it is missing. wget puts addresses in angle brackets."""
        for line in self.head.split(b"\r\n"):
            found, _, value = line.partition(b":")
            if found.lower() == name.lower():
                return value.strip().decode("utf-8", "replace").strip("<>")
        return ""


def records(path: Path) -> Iterator[Record]:
    """Yield each whole record of a compressed WARC file; skip a torn end, as a stopped client leaves it."""
    with gzip.open(path, "rb") as file:
        try:
            while head := _head(file):
                record = Record(head, 0, b"")
                length = int(record.field(b"Content-Length"))
                begins = file.read(min(length, BLOCK))
                left = length - len(begins)
                while left and (block := file.read(min(left, BLOCK))):
                    left -= len(block)
                if left:
                    return
                yield Record(head, length, begins)
        except (EOFError, OSError, ValueError, zlib.error):
            return


def _head(file: gzip.GzipFile) -> bytes:
    lines: list[bytes] = []
    for line in file:
        if line == b"\r\n" and lines:
            return b"".join(lines)
        if line != b"\r\n":
            lines.append(line)
    return b""


def warcs(folder: Path) -> list[Path]:
    """Return all WARC files below *folder*, finished or not."""
    return sorted(path for path in folder.rglob("*.warc.gz*") if path.is_file())


def fetched(folder: Path) -> set[str]:
    """Return the URLs answered with 200; HTTrack writes no WARC, so its list is read from its cache."""
    found = set()
    for path in folder.glob("out/hts-cache/new.txt"):
        rows = (line.split("\t") for line in path.read_text(errors="replace").splitlines())
        found |= {row[7] for row in rows if row[3:4] == ["200"]}
    for path in warcs(folder):
        for record in records(path):
            answer = record.field(b"WARC-Type") in ("response", "revisit")
            if answer and record.begins.split(b" ", 2)[1:2] == [b"200"]:
                found.add(record.field(b"WARC-Target-URI"))
    return found


def missing(folder: Path, wanted: Sequence[str]) -> str:
    """Return why the crawl in *folder* was incomplete, or "" if it fetched all of *wanted* and nothing else."""
    found = fetched(folder)
    absent, more = sorted(set(wanted) - found), sorted(found - set(wanted))
    if absent:
        return f"void: {len(absent)} of {len(wanted)} URLs are not in its archive, {absent[0]} for one"
    return f"void: {len(more)} URLs too many are in its archive, {more[0]} for one" if more else ""


def megabytes(folder: Path) -> float:
    """Return the size of all WARC files."""
    return sum(path.stat().st_size for path in warcs(folder)) / 1e6


def by_gzip(folder: Path) -> float:
    """Return the size in megabytes of the same records compressed one by one with gzip."""
    total = 0
    for path in warcs(folder):
        with gzip.open(path, "rb") as file:
            while head := _head(file):
                compressor = zlib.compressobj(LEVEL, wbits=31)
                total += len(compressor.compress(head + b"\r\n"))
                left = int(Record(head, 0, b"").field(b"Content-Length"))
                while left and (block := file.read(min(left, BLOCK))):
                    left -= len(block)
                    total += len(compressor.compress(block))
                total += len(compressor.compress(b"\r\n\r\n")) + len(compressor.flush())
    return total / 1e6
