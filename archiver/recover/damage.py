"""Whether finished WARC files are what they were: by their size and time, and by their sum where the time has changed.

Cheap where nothing was touched. What is not as it was is named; nothing is changed.
"""

import hashlib
from itertools import takewhile
from pathlib import Path

from archiver.disk import opened
from archiver.frontier.port import FileRow
from archiver.model import FileState
from archiver.warc.reader import Torn, scan


def finished(path: Path, name: str) -> FileState:
    """The WARC at *path* as it is now, with its final name."""
    with opened(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    found = path.stat()
    return FileState(name, found.st_size, closed=True, digest=f"sha256:{digest}", modified=found.st_mtime_ns)


def changed(path: Path, row: FileRow) -> str | FileState | None:
    """What is wrong with the finished file of *row*, in words; its new state where only its time has changed."""
    if not path.exists():
        return "is missing; its captures cannot be replayed"
    found = path.stat()
    if found.st_size != row.committed:
        how = "shorter" if found.st_size < row.committed else "longer"
        return f"is {how} than it was: {found.st_size} bytes of {row.committed}"
    if not row.digest or found.st_mtime_ns == row.modified:
        return None
    state = finished(path, row.name)
    return state if state.digest == row.digest else f"was changed since it was written{broken(path, row.committed)}"


def broken(path: Path, until: int) -> str:
    """Where *path* is not whole before the offset *until*, in words; nothing where it is."""
    with opened(path) as file:
        before = takewhile(lambda item: item.offset < until, scan(file))
        places = [item for item in before if isinstance(item, Torn)]
    if not places:
        return ""
    more = f", and at {len(places) - 1} more" if len(places) > 1 else ""
    return f": at offset {places[0].offset} {places[0].reason}{more}"
