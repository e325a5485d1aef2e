"""Records that belong to no visit against the rows by which crawl.db knows them, both ways.

Only what was committed before the files were read is compared. A database of an older schema knows of none.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from archiver.archive.layout import OPEN
from archiver.verify.report import Fault
from archiver.warc.records import parse_date

_ROWS = """
    SELECT warcs.name, offset, length, uri, timestamp, mime, records.digest
    FROM records JOIN warcs ON warcs.id = records.warc ORDER BY records.warc, offset
"""
_THERE = """
    SELECT length, type, url, date, mime, digest FROM records WHERE file = ? AND offset = ? AND inner = 0
"""
_OFFSETS = "SELECT offset FROM records JOIN warcs ON warcs.id = records.warc WHERE warcs.name = ?"
_RESOURCES = "SELECT offset, url FROM records WHERE file = ? AND offset < ? AND type = 'resource' ORDER BY offset"


class Known(NamedTuple):
    """A file of the inventory, and how much of it crawl.db spoke of before it was read."""

    number: int
    path: str
    committed: int


def resource_faults(
    db: sqlite3.Connection, inventory: sqlite3.Connection, files: Mapping[str, Known]
) -> Iterator[Fault]:
    """Everything in which *db* and the *inventory* of *files*, by final name, say different things of such records."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'").fetchone():
        return
    for name, offset, length, *ours in db.execute(_ROWS):
        file = files.get(name.removesuffix(OPEN))
        if file is None or offset >= file.committed:
            continue  # named already, or written since
        found = inventory.execute(_THERE, (file.number, offset)).fetchone()
        if found is None or found[:2] != (length, "resource"):
            there = f"{found[1]} {offset}+{found[0]}" if found else "nothing whole"
            sentence = f"crawl.db says resource {offset}+{length}; there is {there}"
            yield Fault(file.path, "capture-place", sentence, offset, url=ours[0])
            continue
        for what, is_there, said in _differences(found[2:], tuple(ours)):
            sentence = f"the {what} is {is_there!r:.200}, crawl.db says {said!r:.200}"
            yield Fault(file.path, "capture-mismatch", sentence, offset, "resource", ours[0])
    for name, file in files.items():
        known = {row[0] for row in db.execute(_OFFSETS, (name,))}
        for offset, url in inventory.execute(_RESOURCES, (file.number, file.committed)):
            if offset not in known:
                yield Fault(file.path, "capture-missing", "crawl.db knows of no record here", offset, "resource", url)


def _differences(there: tuple[Any, ...], ours: tuple[Any, ...]) -> Iterator[tuple[str, Any, Any]]:
    url, date, mime, digest = there
    try:
        moment: int | None = parse_date(date)
    except ValueError:
        moment = None
    pairs = zip(("URL", "date", "media type", "digest"), (url, moment, mime, digest), ours, strict=True)
    return (pair for pair in pairs if pair[1] != pair[2])
