"""Pages that answered 4xx or 5xx, each with the pages that link to it.

crawl.db keeps the page that named a URL first. The others are in the metadata records of the pages, so the first
`PAGES_READ` pages are looked through; what lies beyond, or cannot be read, costs nothing but completeness.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from archiver.archive.layout import Layout
from archiver.archive.originals import links_at
from archiver.archive.stored import record_at
from archiver.errors import ArchiveError
from archiver.frontier import figures
from archiver.model import Hop
from archiver.warc.members import Torn
from archiver.warc.records import VisitNotes

HEAD = ("url", "status", "linked_from")
PAGES_READ = 5000  # about a second
MOST = 10_000  # broken pages for which more than the first link is looked for
LINKS_KEPT = 10  # for each broken page
LARGEST = 8 << 20  # bytes of a metadata record

_ELSEWHERE = b"\r\noutlinksOf: "  # of a page that came again as it was
_LINK = re.compile(rb"^outlink: (\S+) L ", re.MULTILINE)


def rows(db: sqlite3.Connection, directory: Path) -> Iterator[tuple[str, int, str]]:
    """Yield (URL, status, a page that links to it) of the crawl in *directory*, in order of discovery."""
    found = figures.broken_pages(db)
    statuses: dict[str, int] = {}
    linked: dict[str, list[str]] = {}
    for url, status, via in found:
        statuses[url], linked[url] = status, [via]
        if len(linked) == MOST:
            break
    if linked:
        _look_through(db, Layout(directory).archive, linked)
    for url, pages in linked.items():
        for page in pages:
            yield url, statuses[url], page
    yield from found


def _look_through(db: sqlite3.Connection, folder: Path, linked: dict[str, list[str]]) -> None:
    """Add to *linked* the pages that link to its URLs."""
    for page, name, offset in figures.pages_stored(db, PAGES_READ):
        for target in _targets(folder, name, offset):
            pages = linked.get(target)
            if pages is not None and len(pages) < LINKS_KEPT and page not in pages:
                pages.append(page)


def _targets(folder: Path, name: str, offset: int) -> Iterator[str]:
    """Yield the links in the metadata record at *offset* of the WARC *name*; none where it cannot be read."""
    with suppress(ArchiveError, Torn, OSError, ValueError), record_at(folder, name, offset) as record:
        if record.type == "metadata" and (record.size or 0) <= LARGEST:
            block = b"".join(record.pieces())
            yield from (found[1].decode() for found in _LINK.finditer(block))
            links_of = VisitNotes.read(block).links_of if _ELSEWHERE in block else None
            links = links_at(folder, *links_of) if links_of is not None else None
            yield from (address for address, hop, _ in (links.links if links is not None else ()) if hop is Hop.LINK)
