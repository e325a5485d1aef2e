"""The broken pages of a crawl, each with the pages that link to it.

A page is broken if it answered 4xx or 5xx, or not at all. crawl.db keeps only the first link to a URL. The others are
in the metadata records of the pages, so the first `PAGES_READ` pages are searched. Links on other pages, or in records
that cannot be read here, are missing.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from archiver.collection.records import LARGEST_METADATA, links_at, open_warc
from archiver.errors import ArchiveError
from archiver.frontier import figures
from archiver.frontier.connection import Reader
from archiver.model import Hop
from archiver.tools.report.crawl_part import whole
from archiver.tools.report.tables import Cell, Row
from archiver.warc.members import BROKEN, DamagedRecord
from archiver.warc.reader import read_records
from archiver.warc.records import VisitMetadata

COLUMNS = ("url", "status", "linked_from", "failure")
PAGES_READ = 5000  # about a second
MAX_SEARCHED = 10_000  # broken pages for which more links are searched
LINKS_KEPT = 10  # per broken page

_UNCHANGED = b"\r\noutlinksOf: "  # of a page whose content did not change
_SIZE = re.compile(rb"\r\nContent-Length: ([0-9]{1,9})(?:\r\n|\Z)")
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
    wanted = {address.encode(): pages for address, pages in linked.items()}
    for name, captures in groupby(figures.pages_stored(db, PAGES_READ), lambda capture: capture[1]):
        with suppress(ArchiveError, OSError), open_warc(folder, name)[1] as file:
            for page, _, offset, length in captures:
                for target in wanted.keys() & _targets(folder, file, offset, length):
                    pages = wanted[target]
                    if len(pages) < LINKS_KEPT and page not in pages:
                        pages.append(page)


def _targets(folder: Path, file: BinaryIO, offset: int, length: int) -> set[bytes]:
    """Return the links in the metadata record of *length* stored bytes at *offset* of *file*; none if it is damaged."""
    with suppress(ArchiveError, DamagedRecord, OSError, ValueError, OverflowError):
        block = _usual(os.pread(file.fileno(), min(length, LARGEST_METADATA), offset))
        if block is None:
            record = next(read_records(file, offset), None)
            if record is None or record.type != "metadata" or (record.size or 0) > LARGEST_METADATA:
                return set()
            block = b"".join(record.pieces())
        found = set(_LINK.findall(block))
        links_of = VisitMetadata.parse(block).links_of if _UNCHANGED in block else None
        links = links_at(folder, *links_of) if links_of is not None else None
        found.update(address.encode() for address, hop, _ in (links.links if links else ()) if hop is Hop.LINK)
        return found
    return set()


def _usual(member: bytes) -> bytes | None:
    """Return the block of the metadata record that *member* is; None if it is anything else, or damaged."""
    inflate = isal_zlib.decompressobj(31)
    with suppress(*BROKEN):
        head, found, rest = inflate.decompress(member, LARGEST_METADATA).partition(b"\r\n\r\n")
        size = _SIZE.search(head)
        whole = inflate.eof and not inflate.unused_data and found and rest.endswith(b"\r\n\r\n")
        if whole and size and int(size[1]) == len(rest) - 4 and b"\r\nWARC-Type: metadata\r\n" in head:
            return rest[:-4]
    return None
