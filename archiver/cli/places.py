"""Where a link stands in the page that names it: element and attribute, from the page's metadata record.

The database does not keep it, the archive does. Nothing is said where the record cannot be had: the WARC file was
moved away, is damaged, or another crawl wrote it.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from archiver.archive.layout import Layout
from archiver.archive.stored import opened
from archiver.disk import is_bare
from archiver.errors import ArchiveError
from archiver.frontier import answers
from archiver.model import Link, Links
from archiver.warc.members import Torn
from archiver.warc.reader import read
from archiver.warc.records import VisitNotes

LONGEST_NOTES = 64 << 20  # bytes of a metadata record: 50,000 links of more than a thousand characters
RECORDS = 8  # of a visit, the metadata record included, and some of the next ones where two lanes wrote


def context(db: sqlite3.Connection, layout: Layout, page: str, named: Callable[[Link], bool]) -> str:
    """Element and attribute of the first link on *page* that is *named*; "" where that cannot be told."""
    row = answers.known(db, page)
    for capture in answers.captures(db, row) if row is not None else ():
        for link in _links(layout.archive, capture.file, capture.offset).links:
            if named(link):
                return link.context
    return ""


def _links(folder: Path, name: str, offset: int, *, follow: bool = True) -> Links:
    """What the visit named whose response lies at *offset* of the WARC *name*.

    Of an answer that says that nothing has changed, what the stored one named, which is there with *follow*.
    """
    with suppress(ArchiveError, OSError, Torn, ValueError), opened(folder, name)[1] as file:
        target = ""
        for record in islice(read(file, offset), RECORDS):
            notes = VisitNotes.of_revisit(record) if not target else None
            target = target or record.first("WARC-Record-ID") or ""
            if notes is None and record.type == "metadata" and (record.size or 0) <= LONGEST_NOTES:
                block = b"".join(record.pieces())
                if target in (record.first("WARC-Refers-To"), record.first("WARC-Concurrent-To")):
                    notes = VisitNotes.read(block)
            if notes is not None:
                if notes.links_of is None:
                    return notes.links
                stored, place = notes.links_of
                return _links(folder, stored, place, follow=False) if follow and is_bare(stored) else Links()
    return Links()
