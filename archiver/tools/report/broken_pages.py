"""The broken pages of a crawl, each with the pages that link to it.

A page is broken if it answered 4xx or 5xx, or not at all. crawl.db keeps only the first link to a URL. The others are
in the metadata records of the pages, so the first `PAGES_READ` pages are searched. Links on other pages, or in records
that cannot be read here, are missing.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from archiver.collection.records import links_at, record_at
from archiver.errors import ArchiveError
from archiver.frontier import figures
from archiver.frontier.connection import Reader
from archiver.model import Hop
from archiver.tools.report.crawl_part import whole
from archiver.tools.report.tables import Cell, Row
from archiver.warc.members import DamagedRecord
from archiver.warc.records import VisitMetadata

COLUMNS = ("url", "status", "linked_from", "failure")
PAGES_READ = 5000  # about a second
MAX_SEARCHED = 10_000  # broken pages for which more links are searched
LINKS_KEPT = 10  # per broken page
LARGEST = 8 << 20  # bytes of a metadata record

_UNCHANGED = b"\r\noutlinksOf: "  # of a page whose content did not change
_LINK = re.compile(rb"^outlink: (\S+) L ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BrokenPage:
    """A page without a usable response, and pages that link to it."""

    url: str
    problem: str  # 404, or why there was no response
    linked_from: tuple[str, ...]


def grouped(rows: Iterable[tuple[Cell, ...]]) -> list[BrokenPage]:
    """Return the pages in the *rows* of the table, those with most links first."""
    pages = []
    for (address, status, failure), links in groupby(rows, lambda row: (row[0], row[1], row[3])):
        linked = tuple(str(row[2]) for row in links if row[2])
        pages.append(BrokenPage(str(address), str(failure or status), linked))
    return sorted(pages, key=lambda page: -len(page.linked_from))


def broken_page_rows(db: Reader, archive: Path | None) -> Iterator[Row]:
    """Yield the rows of the table, in order of discovery; *archive*: the WARC files, if they are within reach."""
    found = figures.broken_pages(db)
    pages: dict[str, figures.BrokenUrl] = {}
    linked: dict[str, list[str]] = {}
    for each in found:
        pages[each.url], linked[each.url] = each, [each.via]
        if len(linked) == MAX_SEARCHED:
            break
    if linked and archive is not None:
        _find_links(whole(db), archive, linked)
    for each in pages.values():
        for page in linked[each.url]:
            yield each.url, each.status, page, each.failure
    for each in found:
        yield each.url, each.status, each.via, each.failure


def _find_links(db: Reader, folder: Path, linked: dict[str, list[str]]) -> None:
    """Add the linking pages to *linked*."""
    for page, name, offset in figures.pages_stored(db, PAGES_READ):
        for target in _targets(folder, name, offset):
            pages = linked.get(target)
            if pages is not None and len(pages) < LINKS_KEPT and page not in pages:
                pages.append(page)


def _targets(folder: Path, name: str, offset: int) -> Iterator[str]:
    """Yield the links in the metadata record at *offset* of the WARC *name*; none if it cannot be read."""
    with suppress(ArchiveError, DamagedRecord, OSError, ValueError), record_at(folder, name, offset) as record:
        if record.type == "metadata" and (record.size or 0) <= LARGEST:
            block = b"".join(record.pieces())
            yield from (found[1].decode() for found in _LINK.finditer(block))
            links_of = VisitMetadata.parse(block).links_of if _UNCHANGED in block else None
            links = links_at(folder, *links_of) if links_of is not None else None
            yield from (address for address, hop, _ in (links.links if links is not None else ()) if hop is Hop.LINK)
