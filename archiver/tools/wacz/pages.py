"""Which records of a WARC file are pages that a person could open, and what a list of pages says of them.

The hop path in the metadata record of a capture tells a page from a part of one, and a seed from what was found. Where
there is none, in archives of others, each HTML answer is a page, and each HTML resource, a file without an answer; the
first one of each host is taken for a seed. Text is read from what is stored, decoded; bounded for each page. A record
that is damaged is no page. What is remembered is bounded too.
Large pages are read in a process of their own, which is ended when one takes too long.

Lists of pages while they grow: compressed, in nameless files that are gone with the process, beside the package.

A package can have one member written at a time, and the pages are found while the WARC files are.
"""

import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from isal import isal_zlib

from archiver import extract
from archiver.collection.payload import stored_exchange
from archiver.extract import page_title
from archiver.extract.exchange import PAGES, charset, charset_of, payload
from archiver.fetch.spool import MemoryBlock
from archiver.http import beginning, read_beginning
from archiver.model import Framing, Hop
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record
from archiver.warc.records import parse_date, target_of
from archiver.warc.resources import mime_of

MOST_STORED = 4 << 20  # bytes of a stored answer of which text is read
WAITING = 8  # captures whose metadata record may still come: it follows at once, but for what two writers mix
REMEMBERED = 10_000  # titles by payload, for pages that came again unchanged; hosts; seeds
LONGEST_URL = 32 << 10

_NOTES = 64 << 10  # bytes of a metadata record in which the hop path stands
_NO_CONTENT = frozenset((204, 205, 206))  # a part is no page
_HOST = re.compile(r"(?i:https?)://[^/?#]*")
_PATH = re.compile(rb"^hopsFromSeed:[ \t]*([^\s]{0,2000})[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)

T = TypeVar("T")

log = logging.getLogger(__name__)


class DocumentReader(Protocol):
    """Reads one document at a time within bounded time and memory."""

    def apply(self, read: Callable[[extract.Document], T], document: extract.Document) -> tuple[T | None, str]:
        """Return what *read* makes of *document*; None and the reason if it was given up."""

    def close(self) -> None:
        """End the process that reads large documents, if there is one."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """One capture of a page."""

    url: str
    timestamp: int  # microseconds since the epoch
    status: int
    mime: str
    html: bool
    title: str = ""
    text: str = ""
    seed: bool = False

    @property
    def moment(self) -> str:
        """Its date, as lists of pages have it (RFC 3339)."""
        return moment(self.timestamp)

    def row(self, *, text: bool = True) -> bytes:
        """Its line in a list. ASCII: readers guess the charset, and some take more for a line end than there is."""
        name = sha256(f"{self.url} {self.timestamp}".encode("utf-8", "surrogatepass")).hexdigest()
        said: dict[str, Any] = {
            "id": f"page-{name[:20]}",
            "url": self.url,
            "ts": self.moment,
            "title": self.title or None,
        }
        said |= {"mime": self.mime or None, "status": self.status or None, "seed": self.seed or None}
        said |= {"text": self.text or None} if text else {}
        return json.dumps({key: value for key, value in said.items() if value is not None}).encode() + b"\n"


def moment(timestamp: int) -> str:
    """RFC 3339, with milliseconds, from microseconds since the epoch."""
    seconds, micros = divmod(timestamp, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros // 1000:03}Z"


class Finder:
    """Finds the pages in one WARC file after the other; *text* says whether their text is wanted.

    No page takes longer than *reader* allows, whatever it holds. `close` ends the process of the reader.
    """

    def __init__(self, *, text: bool, reader: DocumentReader) -> None:
        self._prose = partial(page_title.read_page_text, text=text)
        self._reader = reader
        self._waiting: dict[str, PageRow] = {}
        self._titles: dict[str, str] = {}
        self._hosts: set[str] = set()

    def take(self, record: Record) -> Iterator[PageRow]:
        """The pages that are known for certain by now. Reads of the block of *record* what it needs."""
        try:
            if record.type == "metadata":
                yield from self._told(record)
                return
            page = self._page(record)
        except (DamagedRecord, ValueError):  # damaged, which the scan tells; or a date that is none
            return
        if page is not None:
            self._waiting[record.first("WARC-Record-ID") or f"{len(self._waiting)} {record.offset}"] = page
            while len(self._waiting) > WAITING:
                yield from self._untold(next(iter(self._waiting)))

    def close(self) -> None:
        """End the process that reads large pages."""
        self._reader.close()

    def rest(self) -> Iterator[PageRow]:
        """The pages of which no metadata record has come; the file is over."""
        while self._waiting:
            yield from self._untold(next(iter(self._waiting)))

    def _told(self, record: Record) -> Iterator[PageRow]:
        named = (*record.all("WARC-Concurrent-To"), *record.all("WARC-Refers-To"))
        known = next((name for name in named if name in self._waiting), None)
        path = _PATH.search(beginning(record.pieces(), _NOTES)) if known is not None else None
        if known is not None and path is not None:
            page = self._waiting.pop(known)
            last = path[1].decode("latin-1").rstrip(Hop.REDIRECT)[-1:]
            if not last or (page.html and last in (Hop.LINK, Hop.MANIFEST)):
                yield replace(page, seed=not last)

    def _untold(self, known: str) -> Iterator[PageRow]:
        page = self._waiting.pop(known)
        if page.html:
            host = _HOST.match(page.url)
            first = host is not None and host[0] not in self._hosts and len(self._hosts) < REMEMBERED
            if host is not None and first:
                self._hosts.add(host[0])
            yield replace(page, seed=first)

    def _page(self, record: Record) -> PageRow | None:
        """The page in *record*, or what is none but may be a seed; None where it is neither."""
        address = target_of(record)
        if not address.lower().startswith(("http://", "https://")) or len(address) > LONGEST_URL:
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
        stored += beginning(record.pieces(), MOST_STORED)
        exchange = stored_exchange(MemoryBlock(stored), framing)
        body, _ = payload(exchange, page_title.MOST_BYTES)
        return self._read(record, page, extract.Document(address, framing.media_type, charset(framing), body))

    def _resource(self, record: Record, address: str) -> PageRow | None:
        said = record.first("Content-Type") or ""
        mime = mime_of(said)
        if mime not in PAGES:
            return None
        page = PageRow(address, parse_date(record.first("WARC-Date") or ""), 0, mime, html=True)
        body = beginning(record.pieces(), page_title.MOST_BYTES)
        return self._read(record, page, extract.Document(address, mime, charset_of(said) or None, body))

    def _read(self, record: Record, page: PageRow, document: extract.Document) -> PageRow:
        """*page* with what its *document* says."""
        if document.media_type != "application/xhtml+xml" and not extract.is_page(document):
            return replace(page, html=False)
        read, why = self._reader.apply(self._prose, document)
        if read is None:
            log.warning("the title and the text of %s are not read: %s", document.url, why or "a fault of archiver")
            read = page_title.PageText("", "")
        digest = record.first("WARC-Payload-Digest")
        if digest and read.title and len(self._titles) < REMEMBERED:
            self._titles[digest] = read.title
        return replace(page, html=True, title=read.title, text=read.text)

    def _revisit(self, record: Record, address: str) -> PageRow | None:
        page = _bare(record, address, read_beginning(record.pieces())[1])
        return replace(page, title=self._titles.get(record.first("WARC-Payload-Digest") or "", "")) if page else None


def _bare(record: Record, address: str, framing: Framing) -> PageRow | None:
    if not 200 <= framing.status < 300 or framing.status in _NO_CONTENT:
        return None
    date = parse_date(record.first("WARC-Date") or "")
    return PageRow(address, date, framing.status, framing.media_type, framing.media_type in PAGES)


PAGES_FILE, EXTRA = "pages/pages.jsonl", "pages/extraPages.jsonl"
_PIECE = 1 << 16


class _List:
    """One list."""

    def __init__(self, folder: Path, name: str, *, text: bool) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".archiver-")  # noqa: SIM115 - closed by `Rows`
        self._packer = isal_zlib.compressobj(1)
        self.packed = 0  # bytes; what a package makes of them, compressed harder, is smaller
        self.size = 0
        self.rows = 0
        header = {"format": "json-pages-1.0", "id": name, **({"hasText": True} if text else {})}
        self._write(json.dumps(header).encode() + b"\n")

    def add(self, row: bytes) -> None:
        self.rows += 1
        self._write(row)

    def _write(self, line: bytes) -> None:
        self.size += len(line)
        self._put(self._packer.compress(line))

    def _put(self, data: bytes) -> None:
        self.packed += len(data)
        self._file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """All lines; nothing can be added any more."""
        self._put(self._packer.flush())
        self._file.seek(0)
        opener = isal_zlib.decompressobj()
        while data := self._file.read(_PIECE):
            while data:
                yield opener.decompress(data, _PIECE)
                data = opener.unconsumed_tail
        yield opener.flush()

    def close(self) -> None:
        with suppress(OSError):  # what could not be written then is not wanted any more
            self._file.close()


class PageLists:
    """The lists of one package: seeds, and all other pages. Beyond *budget* bytes pages are listed without text."""

    def __init__(self, folder: Path, budget: int | None, *, text: bool) -> None:
        self.seeds = _List(folder, "pages", text=text)
        self.others = _List(folder, "extra-pages", text=text)
        self.without_text = 0  # pages for whose text there was no room
        self._budget = budget
        self._opened: dict[str, list[int]] = {}  # seeds by URL: the first and the last time

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seeds.close()
        self.others.close()

    def add(self, page: PageRow) -> None:
        """Take *page*."""
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
        """The seed that was captured first, and when it was captured last."""
        if not self._opened:
            return None
        address, times = min(self._opened.items(), key=lambda seed: (seed[1][0], seed[0]))
        return address, times[1]
