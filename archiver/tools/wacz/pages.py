"""Find the pages in WARC files, and write the page lists of a package.

The hop path in the metadata record of a capture shows whether it is a page, and whether it is a seed. Archives of other
tools have none: there each HTML response is a page, and so is each HTML resource; the first of each host counts as a
seed. Title and text are read from the decoded payload, limited per page. A damaged record is not a page. Memory is
limited too. Large pages are read in a separate process, which is killed if one takes too long.

The lists grow in compressed, unnamed files next to the package, because a package is written one member at a time and
the pages are found while the WARC files are copied.
"""

import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from isal import isal_zlib

from archiver import extract
from archiver.browser.page_info import page_id
from archiver.collection.payload import stored_exchange
from archiver.config.seeds import NO_ABOUT, SeedAbout
from archiver.extract import page_title
from archiver.extract.exchange import PAGES, charset, charset_of, payload
from archiver.fetch.spool import MemoryBlock
from archiver.http import beginning, read_beginning
from archiver.model import Framing, Hop
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record
from archiver.warc.records import ACCEPT_LANGUAGE, parse_date, target_of
from archiver.warc.resources import mime_of

MAX_STORED = 4 << 20  # bytes of a stored response from which text is read
WAITING = 8  # captures that wait for their metadata record: it follows directly, unless two writers mix
REMEMBERED = 10_000  # titles by payload, for revisits; hosts; seeds
LONGEST_URL = 32 << 10

_NOTES = 64 << 10  # bytes of a metadata record that are searched for the hop path
_NO_CONTENT = frozenset((204, 205, 206))  # a part is not a page
_HOST = re.compile(r"(?i:https?)://[^/?#]*")
_PATH = re.compile(rb"^hopsFromSeed:[ \t]*([^\s]{0,2000})[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_SEED = re.compile(rb"^seed:[ \t]*(https?://[^\s]{1,20000})[ \t]*\r?$", re.MULTILINE)

T = TypeVar("T")
Shown = Callable[[str, int], page_title.PageText | None]  # a page (URL, timestamp) as a browser showed it
NOTHING = page_title.PageText("", "")
NOT_SHOWN: Shown = lambda _url, _timestamp: None  # noqa: E731 - as the default of an option

log = logging.getLogger(__name__)


class DocumentReader(Protocol):
    """Reads one document at a time within bounded time and memory."""

    def apply(self, read: Callable[[extract.Document], T], document: extract.Document) -> tuple[T | None, str]:
        """Return what *read* makes of *document*; None and the reason if it was given up."""

    def close(self) -> None:
        """End the process that reads large documents, if there is one."""


class PageRow(NamedTuple):
    """One capture of a page."""

    url: str
    timestamp: int  # microseconds since the epoch
    status: int
    mime: str
    html: bool
    title: str = ""
    text: str = ""
    seed: bool = False
    found_from: str = ""  # the seed that has led here, if that is known
    about: SeedAbout = NO_ABOUT  # of that seed

    @property
    def date(self) -> str:
        """Its date as in page lists (RFC 3339)."""
        return format_date(self.timestamp)

    def row(self, *, text: bool = True) -> bytes:
        """Return its line in a list. ASCII, because some readers guess the encoding or split at unusual line ends."""
        fields: dict[str, Any] = {
            "id": page_id(self.url, self.timestamp),
            "url": self.url,
            "ts": self.date,
            "title": self.title or self.about.title or None,
        }
        fields |= {"mime": self.mime or None, "status": self.status or None, "seed": self.seed or None}
        also = self.about.title if self.title and self.about.title != self.title else ""
        fields |= {"seedTitle": also or None, "note": self.about.note or None}
        fields |= {"collection": self.about.collection or None}
        fields |= {"text": self.text or None} if text else {}
        return json.dumps({key: value for key, value in fields.items() if value is not None}).encode() + b"\n"


def format_date(timestamp: int) -> str:
    """Format microseconds since the epoch as RFC 3339 with milliseconds."""
    seconds, micros = divmod(timestamp, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros // 1000:03}Z"


class PageFinder:
    """Finds the pages of one WARC file after another; *text* says whether their text is wanted.

    *reader* limits the time per page. `close` closes the reader. *shown* replaces what the documents say.
    """

    def __init__(self, *, text: bool, reader: DocumentReader, shown: Shown = NOT_SHOWN) -> None:
        self._text = text
        self._read_text = partial(page_title.read_page_text, text=text)
        self._reader = reader
        self._shown = shown
        self._waiting: dict[str, PageRow] = {}
        self._titles: dict[str, str] = {}
        self._hosts: set[str] = set()

    def add(self, record: Record) -> Iterator[PageRow]:
        """Add *record* and yield the pages that are certain by now. Reads as much of its block as needed."""
        try:
            if record.type == "metadata":
                yield from self._with_metadata(record)
                return
            page = self._page(record)
        except (DamagedRecord, ValueError):  # damage is reported by the scan; or the date is invalid
            return
        if page is not None:
            self._waiting[record.first("WARC-Record-ID") or f"{len(self._waiting)} {record.offset}"] = page
            while len(self._waiting) > WAITING:
                yield from self._without_metadata(next(iter(self._waiting)))

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def finish(self) -> Iterator[PageRow]:
        """Yield the remaining pages without a metadata record, at the end of a file."""
        while self._waiting:
            yield from self._without_metadata(next(iter(self._waiting)))

    def _with_metadata(self, record: Record) -> Iterator[PageRow]:
        named = (*record.all("WARC-Concurrent-To"), *record.all("WARC-Refers-To"))
        known = next((name for name in named if name in self._waiting), None)
        notes = beginning(record.pieces(), _NOTES) if known is not None else b""
        path = _PATH.search(notes)
        if known is not None and path is not None:
            page = self._waiting.pop(known)
            last = path[1].decode("latin-1").rstrip(Hop.REDIRECT)[-1:]
            if not last or (page.html and last in (Hop.LINK, Hop.MANIFEST)):
                seed = _SEED.search(notes) if not last else None
                yield page._replace(seed=not last, found_from=seed[1].decode("utf-8", "replace") if seed else "")

    def _without_metadata(self, known: str) -> Iterator[PageRow]:
        page = self._waiting.pop(known)
        if page.html:
            host = _HOST.match(page.url)
            first = host is not None and host[0] not in self._hosts and len(self._hosts) < REMEMBERED
            if host is not None and first:
                self._hosts.add(host[0])
            yield page._replace(seed=first)

    def _page(self, record: Record) -> PageRow | None:
        """Return the page in *record*, or another capture that may be a seed, or None."""
        address = target_of(record)
        if not address.lower().startswith(("http://", "https://")) or len(address) > LONGEST_URL:
            return None
        if record.first(ACCEPT_LANGUAGE) is not None:  # the viewer would show the first version under its title
            return None
        if record.type == "response":
            return self._response(record, address)
        if record.type == "revisit":
            return self._revisit(record, address)
        return self._resource(record, address) if record.type == "resource" else None

    def _response(self, record: Record, address: str) -> PageRow | None:
        stored, framing = read_beginning(record.pieces())
        page = _bare(record, address, framing)
        if page is None or not (page.html or not framing.media_type):
            return page
        stored += beginning(record.pieces(), MAX_STORED)
        exchange = stored_exchange(MemoryBlock(stored), framing)
        body, _ = payload(exchange, page_title.MOST_BYTES)
        return self._read(record, page, extract.Document(address, framing.media_type, charset(framing), body))

    def _resource(self, record: Record, address: str) -> PageRow | None:
        content_type = record.first("Content-Type") or ""
        mime = mime_of(content_type)
        if mime not in PAGES:
            return None
        page = PageRow(address, parse_date(record.first("WARC-Date") or ""), 0, mime, html=True)
        body = beginning(record.pieces(), page_title.MOST_BYTES)
        return self._read(record, page, extract.Document(address, mime, charset_of(content_type) or None, body))

    def _read(self, record: Record, page: PageRow, document: extract.Document) -> PageRow:
        """Return *page* with title and text of its *document*."""
        if document.media_type != "application/xhtml+xml" and not extract.is_page(document):
            return page._replace(html=False)
        shown = self._shown(page.url, page.timestamp) or NOTHING
        read = NOTHING
        if not (shown.title and (shown.text or not self._text)):
            found, why = self._reader.apply(self._read_text, document)
            read = found or NOTHING
            if found is None:
                log.warning("cannot read title and text of %s: %s", document.url, why or "internal error")
        title, text = shown.title or read.title, (shown.text or read.text) if self._text else ""
        digest = record.first("WARC-Payload-Digest")
        if digest and title and len(self._titles) < REMEMBERED:
            self._titles[digest] = title
        return page._replace(html=True, title=title, text=text)

    def _revisit(self, record: Record, address: str) -> PageRow | None:
        page = _bare(record, address, read_beginning(record.pieces())[1])
        if page is None:
            return None
        shown = self._shown(page.url, page.timestamp) or NOTHING
        title = shown.title or self._titles.get(record.first("WARC-Payload-Digest") or "", "")
        return page._replace(title=title, text=shown.text if self._text else "")


def _bare(record: Record, address: str, framing: Framing) -> PageRow | None:
    if not 200 <= framing.status < 300 or framing.status in _NO_CONTENT:
        return None
    date = parse_date(record.first("WARC-Date") or "")
    return PageRow(address, date, framing.status, framing.media_type, framing.media_type in PAGES)


PAGES_FILE, EXTRA_PAGES_FILE = "pages/pages.jsonl", "pages/extraPages.jsonl"
_PIECE = 1 << 16


class _PageList:
    """One list."""

    def __init__(self, folder: Path, name: str, *, text: bool) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".archiver-")  # noqa: SIM115 - closed by `PageLists`
        self._compressor = isal_zlib.compressobj(1)
        self.packed = 0  # bytes; smaller in the package, which compresses harder
        self.size = 0
        self.rows = 0
        header = {"format": "json-pages-1.0", "id": name, **({"hasText": True} if text else {})}
        self._write(json.dumps(header).encode() + b"\n")

    def add(self, row: bytes) -> None:
        self.rows += 1
        self._write(row)

    def _write(self, line: bytes) -> None:
        self.size += len(line)
        self._put(self._compressor.compress(line))

    def _put(self, data: bytes) -> None:
        self.packed += len(data)
        self._file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """Yield all lines; nothing can be added after this."""
        self._put(self._compressor.flush())
        self._file.seek(0)
        decompressor = isal_zlib.decompressobj()
        while data := self._file.read(_PIECE):
            while data:
                yield decompressor.decompress(data, _PIECE)
                data = decompressor.unconsumed_tail
        yield decompressor.flush()

    def close(self) -> None:
        with suppress(OSError):  # the file is discarded anyway
            self._file.close()


class PageLists:
    """The lists of one package: seeds and other pages. Beyond *budget* bytes pages are listed without text."""

    def __init__(self, folder: Path, budget: int | None, *, text: bool) -> None:
        self.seeds = _PageList(folder, "pages", text=text)
        self.others = _PageList(folder, "extra-pages", text=text)
        self.without_text = 0  # pages without text for lack of space
        self._budget = budget
        self._opened: dict[str, list[int]] = {}  # seeds by URL: first and last timestamp

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seeds.close()
        self.others.close()

    def add(self, page: PageRow) -> None:
        """Add *page*."""
        row = page.row()
        if self._budget is not None and page.text:
            taken = self.seeds.packed + self.others.packed
            if taken + len(row) > self._budget:
                row = page.row(text=False)
                self.without_text += 1
        (self.seeds if page.seed else self.others).add(row)
        if page.seed and (page.url in self._opened or len(self._opened) < REMEMBERED):
            times = self._opened.setdefault(page.url, [page.timestamp, page.timestamp])
            times[:] = min(times[0], page.timestamp), max(times[1], page.timestamp)

    def main(self) -> tuple[str, int] | None:
        """Return the seed with the first capture, and the time of its last capture."""
        if not self._opened:
            return None
        address, times = min(self._opened.items(), key=lambda seed: (seed[1][0], seed[0]))
        return address, times[1]
