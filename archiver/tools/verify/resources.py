"""Compare the resource records in crawl.db, which belong to no visit, with those of the inventory."""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from archiver.frontier.connection import Reader
from archiver.storage import OPEN
from archiver.tools.verify.findings import VerifyFinding
from archiver.warc.records import parse_date

_ROWS = """
    SELECT warcs.name, offset, length, uri, timestamp, mime, resources.digest
    FROM resources JOIN warcs ON warcs.id = resources.warc ORDER BY resources.warc, offset
"""
_RECORD_AT = """
    SELECT length, type, url, date, mime, digest FROM records WHERE file = ? AND offset = ? AND inner = 0
"""
_OFFSETS = "SELECT offset FROM resources JOIN warcs ON warcs.id = resources.warc WHERE warcs.name = ?"
_RESOURCES = "SELECT offset, url FROM records WHERE file = ? AND offset < ? AND type = 'resource' ORDER BY offset"


class WarcExtent(NamedTuple):
    """A file of the inventory, and its length according to crawl.db before it was read."""

    number: int
    path: str
    committed: int


def resource_findings(
    db: Reader, inventory: sqlite3.Connection, files: Mapping[str, WarcExtent]
) -> Iterator[VerifyFinding]:
    """Yield the differences between *db* and the *inventory* of *files* (by final name) in resource records."""
    for name, offset, length, *ours in db.execute(_ROWS):
        file = files.get(name.removesuffix(OPEN))
        if file is None or offset >= file.committed:
            continue  # reported already, or written since
        found = inventory.execute(_RECORD_AT, (file.number, offset)).fetchone()
        if found is None or found[:2] != (length, "resource"):
            actual = f"{found[1]} {offset}+{found[0]}" if found else "no complete record"
            message = f"crawl.db says resource {offset}+{length}, but the file has {actual}"
            yield VerifyFinding(file.path, "capture-place", message, offset, url=ours[0])
            continue
        for field, actual, expected in _differences(found[2:], tuple(ours)):
            message = f"the {field} is {actual!r:.200}, but crawl.db says {expected!r:.200}"
            yield VerifyFinding(file.path, "capture-mismatch", message, offset, "resource", ours[0])
    for name, file in files.items():
        known = {row[0] for row in db.execute(_OFFSETS, (name,))}
        for offset, url in inventory.execute(_RESOURCES, (file.number, file.committed)):
            if offset not in known:
                yield VerifyFinding(file.path, "capture-missing", "no such record in crawl.db", offset, "resource", url)


def _differences(there: tuple[Any, ...], ours: tuple[Any, ...]) -> Iterator[tuple[str, Any, Any]]:
    url, date, mime, digest = there
    try:
        moment: int | None = parse_date(date)
    except ValueError:
        moment = None
    pairs = zip(("URL", "date", "media type", "digest"), (url, moment, mime, digest), ours, strict=True)
    return (pair for pair in pairs if pair[1] != pair[2])
