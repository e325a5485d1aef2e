"""The list of archived pages for the start page of a replay: made in a process of its own, and read in parts.

The maker reads the index once, in its order, and writes a line for each page: seeds first, then host by host. Then it
reads the titles from the records and writes them in the same order. So the list is there after one look at the index,
titles follow, and the server of the replay neither waits for them nor holds them in memory. When the index changes,
because a crawl is running, the list is made again; titles that are known are kept.

Everything here comes from an archive that somebody else may have made. The number of pages, of dates and of URLs under
one key is limited, and so is what is read of a page.
"""

import json
import os
import shutil
import signal
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, BinaryIO

from archiver.collection.payload import read_answer
from archiver.collection.records import record_at
from archiver.errors import ArchiveError
from archiver.extract import Document, page_title
from archiver.extract.exchange import charset
from archiver.http import beginning
from archiver.tools.replay.sources import ReplaySource
from archiver.warc import cdx
from archiver.warc.cdxj import IndexEntry, is_plain, is_revisit
from archiver.warc.members import DamagedRecord

MOST_PAGES = 1_000_000  # in the list; all others are found by their URL
MOST_ALIKE = 1000  # URLs with one key
MOST_DATES = 50  # of one page: the newest
MOST_TITLES = 200_000  # kept in memory for the next list
TITLE_IN = 256 << 10  # bytes of a page in which its title is looked for
OFTEN = 2000  # pages after which the maker looks if it is still wanted
PAUSE = 3.0  # seconds between two looks at the index
CURRENT = "current.json"
PAGES = frozenset(("text/html", "application/xhtml+xml"))
LAST = b"\xff"  # after every key


@dataclass(slots=True)
class ListedPage:
    """A page with its captures."""

    url: str
    seed: bool
    captures: int = 0
    dates: list[str] = field(default_factory=list)  # 14 digits, newest first
    sources: list[int] = field(default_factory=list)  # numbers of the archives that hold it
    title: str = ""
    stored: tuple[int, str, int] | None = None  # source, file and offset of a capture with a payload

    def line(self) -> bytes:
        """Return the page as a line of the list."""
        row = [self.url, self.seed, self.captures, self.dates, self.sources, self.stored]
        return json.dumps(row).encode() + b"\n"

    @classmethod
    def of_line(cls, line: bytes, title: str = "") -> "ListedPage":
        """Return the page in *line*."""
        address, seed, captures, dates, sources, stored = json.loads(line)
        return cls(address, seed, captures, dates, sources, title, stored and tuple(stored))


@dataclass(frozen=True, slots=True)
class ListTotals:
    """What the list holds."""

    number: int = 0  # of the list; 0: there is none yet
    pages: int = 0
    captures: int = 0
    first: str = ""  # date
    last: str = ""
    sources: tuple[int, ...] = ()  # pages of each archive
    cut: bool = False  # there are more pages


def keep_list(sources: Sequence[ReplaySource], seeds: Sequence[str], folder: Path) -> None:
    """Make the list of the pages in *sources* in *folder*, and make it again when an index changes, for ever."""
    for end in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
        signal.signal(end, signal.SIG_IGN)  # the server ends this process
    maker, known, stamp = _ListMaker(sources, frozenset(seeds), folder), 0, object()
    parent = parent_process()
    while parent is not None and parent.is_alive():
        now = [source.stamp() for source in sources]
        if now != stamp:
            known += 1
            stamp = now
            with suppress(
                OSError, ArchiveError, DamagedRecord, ValueError
            ):  # of a crawl, or damaged: the list is short
                maker.make(known)
        wait([parent.sentinel], PAUSE)


class _ListMaker:
    def __init__(self, sources: Sequence[ReplaySource], seeds: frozenset[str], folder: Path) -> None:
        self._sources = sources
        self._seeds = seeds
        self._folder = folder
        self._titles: dict[tuple[int, str, int], str] = {}

    def make(self, number: int) -> None:
        """Write list *number*, then its titles, and forget the list before the last one."""
        pages, draft = self._folder / f"pages-{number}", self._folder / "draft"
        totals = _Counting(len(self._sources))
        seeds: list[bytes] = []
        with draft.open("w+b") as others, pages.open("wb") as file:
            for page in self._pages():
                if totals.pages == MOST_PAGES:
                    totals.cut = True
                    break
                totals.add(page)
                if page.seed:
                    seeds.append(page.line())
                else:
                    others.write(page.line())
            file.writelines(seeds)
            others.seek(0)
            shutil.copyfileobj(others, file)
        (self._folder / f"titles-{number}").touch()
        draft.write_text(json.dumps(totals.row(number)), encoding="ascii")
        draft.replace(self._folder / CURRENT)
        if number == 1 and hasattr(os, "nice"):
            os.nice(5)  # pages that somebody looks at go before titles
        self._write_titles(number)
        for name in ("pages", "titles"):
            (self._folder / f"{name}-{number - 2}").unlink(missing_ok=True)  # somebody may be reading the last one

    def _pages(self) -> Iterator[ListedPage]:
        lines = merge(*(self._of_source(number) for number in range(len(self._sources))), key=lambda pair: pair[0])
        for number, (_, group) in enumerate(groupby(lines, lambda pair: pair[1].key)):
            if number % OFTEN == 0 and not _is_wanted():
                return
            yield from self._of_key(group)

    def _of_source(self, number: int) -> Iterator[tuple[bytes, IndexEntry, int]]:
        for line in self._sources[number].lines(b"", LAST):
            entry = cdx.parse_line(line)
            if entry is not None and is_plain(entry) and entry.url.lower().startswith(("http://", "https://")):
                yield line, entry, number

    def _of_key(self, group: Iterator[tuple[bytes, IndexEntry, int]]) -> Iterator[ListedPage]:
        """Yield the pages among the captures of one key, which come by date."""
        found: dict[str, ListedPage] = {}
        shown: set[str] = set()  # URLs of pages and seeds
        for _, entry, number in group:
            page = found.get(entry.url)
            if page is None:
                if len(found) == MOST_ALIKE:
                    continue
                page = found[entry.url] = ListedPage(entry.url, entry.url in self._seeds)
            if not is_revisit(entry) and entry.mime in PAGES and entry.status in {"200", "-", ""}:
                shown.add(entry.url)
                page.stored = number, entry.filename, entry.offset
            elif page.seed and entry.status[:1] in {"2", "3"}:
                shown.add(entry.url)
            elif not (is_revisit(entry) and entry.status in {"200", "304", "-", ""}):
                continue
            page.captures += 1
            page.dates.insert(0, entry.timestamp[:14])
            del page.dates[MOST_DATES:]
            if number not in page.sources:
                page.sources.append(number)
        yield from (page for address, page in found.items() if address in shown)

    def _write_titles(self, number: int) -> None:
        pages, titles = self._folder / f"pages-{number}", self._folder / f"titles-{number}"
        with pages.open("rb") as lines, titles.open("ab") as file:
            for row, line in enumerate(lines):
                if row % 50 == 0:
                    file.flush()
                    if not _is_wanted():
                        return
                file.write(json.dumps(self._title(ListedPage.of_line(line))).encode() + b"\n")

    def _title(self, page: ListedPage) -> str:
        if page.stored is None:
            return ""
        known = self._titles.get(page.stored)
        if known is None:
            source, name, offset = page.stored
            known = title_at(self._sources[source].path(name), offset, page.url)
            if len(self._titles) < MOST_TITLES:
                self._titles[page.stored] = known
        return known


class _Counting:
    def __init__(self, sources: int) -> None:
        self.pages = self.captures = 0
        self.cut = False
        self._dates = ["", ""]
        self._sources = [0] * sources

    def add(self, page: ListedPage) -> None:
        self.pages += 1
        self.captures += page.captures
        self._dates = [min(self._dates[0] or page.dates[-1], page.dates[-1]), max(self._dates[1], page.dates[0])]
        for number in page.sources:
            self._sources[number] += 1

    def row(self, number: int) -> list[Any]:
        return [number, self.pages, self.captures, *self._dates, self._sources, self.cut]


def _is_wanted() -> bool:
    parent = parent_process()
    return parent is None or parent.is_alive()


def title_at(path: str | list[str] | None, offset: int, address: str) -> str:
    """Return the title of the page *address* in the record at *offset* of the file *path*; "" if it cannot be read.

    Files that are only in a store are not read for it.
    """
    if not isinstance(path, str):
        return ""
    with suppress(ArchiveError, DamagedRecord, OSError, ValueError):
        place = Path(path)
        with record_at(place.parent, place.name, offset) as record:
            answer = read_answer(record)
            body = beginning(iter(answer.decoded()), TITLE_IN)[:TITLE_IN]
            document = Document(address, answer.framing.media_type, charset(answer.framing), body)
            return page_title.read_page_text(document, text=False).title
    return ""


class PageList:
    """The newest list in *folder*, read in parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._totals = ListTotals()
        self._rows = array("Q")  # offset of each row in its file
        self._titles = array("Q", [0])  # and of each title that has been written, and the end of the last one

    def totals(self) -> ListTotals:
        """Return what the list holds now."""
        with suppress(OSError, ValueError):
            number, pages, captures, first, last, sources, cut = json.loads((self._folder / CURRENT).read_bytes())
            if number != self._totals.number:
                self._rows, self._titles = _offsets(self._folder / f"pages-{number}", array("Q", [0])), array("Q", [0])
                self._totals = ListTotals(number, pages, captures, first, last, tuple(sources), cut)
        return self._totals

    @property
    def titled(self) -> int:
        """The number of pages whose titles have been read."""
        _offsets(self._folder / f"titles-{self._totals.number}", self._titles)
        return len(self._titles) - 1

    def rows(self, first: int, most: int) -> list[ListedPage]:
        """Return at most *most* pages from row *first* on."""
        titled, rows = self.titled, range(first, min(first + most, len(self._rows) - 1))
        found = []
        with self._open("pages") as pages, self._open("titles") as titles:
            for row in rows:
                pages.seek(self._rows[row])
                titles.seek(self._titles[row] if row < titled else 0)
                title = json.loads(titles.readline()) if row < titled else ""
                found.append(ListedPage.of_line(pages.readline(), title))
        return found

    def every(self) -> Iterator[ListedPage]:
        """Yield all pages."""
        with self._open("pages") as pages, self._open("titles") as titles:
            for line in pages:
                title = titles.readline()
                yield ListedPage.of_line(line, json.loads(title) if title.endswith(b"\n") else "")

    def _open(self, name: str) -> BinaryIO:
        return (self._folder / f"{name}-{self._totals.number}").open("rb")


def _offsets(path: Path, known: "array[int]") -> "array[int]":
    """Add the offsets of the lines of *path* to *known*, which ends with the end of the last known line."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(known[-1])
        for line in file:
            if not line.endswith(b"\n"):
                break
            known.append(known[-1] + len(line))
    return known
