"""Titles and texts of pages as a browser showed them, from the records of views in a collection.

A `urn:pageinfo` record says which capture was shown. The `urn:text` record with the same date has the text.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from archiver.browser.page_info import LARGEST_INFO, MICRO, PAGE_INFO, TEXT, PageInfo
from archiver.collection.lookup import Holdings
from archiver.errors import ArchiveError
from archiver.extract.page_title import MOST_TEXT, PageText
from archiver.http import beginning
from archiver.warc.cdxj import IndexEntry
from archiver.warc.members import DamagedRecord

MAX_VIEWS = 20  # of one page that are looked at, the newest ones
MOST_READ = 4 * MOST_TEXT  # bytes of a text


class _View(NamedTuple):
    entry: IndexEntry
    info: PageInfo


class RenderedPages:
    """The views in a collection."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._any = next(holdings.beginning(PAGE_INFO), None) is not None

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator["RenderedPages"]:
        """Open the views in *directory*."""
        with Holdings.open(directory) as holdings:
            yield cls(holdings)

    def of(self, address: str, timestamp: int) -> PageText | None:
        """Return what the page *address* captured at *timestamp* (microseconds since the epoch) showed.

        None if it was not shown. A part that no record has is "".
        """
        view = self._newest_view(address, timestamp // MICRO) if self._any else None
        if view is None:
            return None
        text = ""
        for entry in self._holdings.of_key(TEXT + address):
            if entry.url == TEXT + address and entry.timestamp == view.entry.timestamp:
                text = (self._block(entry, MOST_READ) or b"").decode("utf-8", "replace")
        return PageText(view.info.title, " ".join(text.split())[:MOST_TEXT].rstrip())

    def _newest_view(self, address: str, second: int) -> _View | None:
        """Return the newest view of the capture of *address* at *second*."""
        entries = (each for each in self._holdings.of_key(PAGE_INFO + address) if each.url == PAGE_INFO + address)
        for entry in reversed(deque(entries, MAX_VIEWS)):
            block = self._block(entry, LARGEST_INFO)
            info = PageInfo.parse(block) if block is not None else None
            if info is not None and info.second == second:
                return _View(entry, info)
        return None

    def _block(self, entry: IndexEntry, most: int) -> bytes | None:
        with suppress(ArchiveError, DamagedRecord, OSError), self._holdings.record(entry) as record:
            return beginning(record.pieces(), most)
        return None
