"""One archived page as one file: HTML with all that it loads inside, or a PDF as a browser prints it.

The HTML file holds style sheets, pictures, scripts and frames as data: URLs (RFC 2397). Its documents are changed as in
an export of a whole site; links lead to the live web. Nesting and size are bounded.
"""

import asyncio
import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from archiver import url
from archiver.browser.answers import Asked, Told
from archiver.browser.chromium import Chromium
from archiver.browser.devtools import connected
from archiver.browser.tab import ViewLimits
from archiver.browser.view import FLAGS, BrowserViews, Viewed
from archiver.collection.browser_answers import ArchiveAnswers, second_of
from archiver.collection.dates import DateRange
from archiver.collection.lookup import Holdings
from archiver.collection.payload import StoredResponse, read_answer
from archiver.errors import ArchiveError, ConfigError
from archiver.extract import Document
from archiver.extract.document import SNIFFED, Kind, kind_of
from archiver.extract.exchange import charset
from archiver.model import Hop
from archiver.tools.export.document import is_rewritten, rewrite_document
from archiver.tools.export.rewrite_links import ExportedPage
from archiver.warc.cdxj import IndexEntry
from archiver.warc.members import DamagedRecord

DEEPEST = 8  # documents in documents
LARGEST = 64 << 20  # bytes of one part
MOST = 256 << 20  # bytes of the file
_PROBLEMS = 1000
_REDIRECTS = 20


@dataclass(frozen=True, slots=True)
class EmbeddedPart:
    """A part of the page as a data: URL, None if it is left out."""

    data: str | None
    lacks_from: int = 0  # at this depth it lacks documents that there is room for at a lesser one; 0: it lacks none


@dataclass(slots=True)
class SinglePage:
    """The parts of one page, from the archive as of *at*."""

    holdings: Holdings
    at: DateRange
    live: bool  # links lead to the live address …
    loads: bool  # … and what is missing is loaded from it
    problems: list[str] = field(default_factory=list)  # what is not in the file, and why
    size: int = 0  # characters of data: URLs, each time that one is used: many pictures may be one large one
    _known: dict[str, EmbeddedPart] = field(default_factory=dict)
    _lacks: bool = False  # the document that is being changed lacks documents because of where it is
    _open: list[str] = field(default_factory=list)  # the documents that are being changed, the outermost first

    def html(self, entry: IndexEntry) -> bytes:
        """Return the page captured as *entry*, with all that it loads. Raises `ConfigError` if it is no page."""
        self._open = [entry.url]
        media_type, body = self._part(entry)
        if kind_of(Document(entry.url, media_type, None, body[:SNIFFED])) is not Kind.HTML:
            raise ConfigError(
                f"{entry.url} is no page, but {media_type or 'of no known type'}; to save it: archiver get"
            )
        return body

    def reference(self, target: str, here: str, mark: str, *, loaded: bool) -> str | None:
        """Return *target* as a data: URL if a browser loads it for the document at *here*; None if it stays outside."""
        if target == here and mark:
            return ""
        data = self._data(target) if loaded else None
        if data is not None and self.size + len(data) > MOST:
            self._leave_out(target, f"the file has {MOST >> 20} MiB")
            return None
        self.size += len(data or "")
        return data

    def _data(self, target: str) -> str | None:
        """Return *target* as a data: URL; one that lacks documents is made again where it is nested less deep."""
        if target in self._open:
            self._lacks = True
            return None
        depth, part = len(self._open), self._known.get(target)
        if part is None or depth < part.lacks_from:
            outer, self._lacks = self._lacks, False
            data = self._made(target)
            part = self._known[target] = EmbeddedPart(data, depth if self._lacks else 0)
            self._lacks = outer
        self._lacks = self._lacks or part.lacks_from > 0
        return part.data

    def _made(self, target: str) -> str | None:
        try:
            entry = self._final(target)
            if entry is None:
                self._leave_out(target, "not archived")
            elif len(self._open) > DEEPEST:
                self._leave_out(target, f"more than {DEEPEST} documents in each other")
                self._lacks = True
            else:
                return self._inside(target, entry)
        except (ArchiveError, DamagedRecord) as error:
            self._leave_out(target, str(error))
        return None

    def _inside(self, target: str, entry: IndexEntry) -> str:
        self._open.append(target)
        try:
            media_type, body = self._part(entry)
        finally:
            self._open.pop()
        return f"data:{media_type};base64,{base64.b64encode(body).decode()}"

    def _final(self, target: str) -> IndexEntry | None:
        """Return the capture of *target*, or of where it redirects to; None if there is none."""
        for _ in range(_REDIRECTS):
            entry = self.holdings.closest(target, self.at)
            if entry is None or entry.status[:1] in ("4", "5"):
                return None
            moved = self.holdings.location(entry) if entry.status[:1] == "3" else None
            if moved is None:
                return entry
            target = moved
        return None

    def _part(self, entry: IndexEntry) -> tuple[str, bytes]:
        """Return media type and body of a capture; a document with its references changed."""
        address = url.canonical(entry.url) or entry.url
        original = self.holdings.original(entry)
        if original is None:
            raise ArchiveError("its payload is in another collection; this one has only a revisit")
        with self.holdings.record(original) as record:
            answer = read_answer(record)
            body = self._body(answer)
            media_type = answer.framing.media_type
            header = charset(answer.framing)
        kind = kind_of(Document(address, media_type, header, body[:SNIFFED], Hop.REQUISITE))
        if is_rewritten(kind, media_type):
            return media_type, rewrite_document(ExportedPage(self, address, address), kind, body, header)
        return (media_type or "application/octet-stream") + (f";charset={header}" if header else ""), body

    def _body(self, answer: StoredResponse) -> bytes:
        body = bytearray()
        for piece in answer.decoded():
            body += piece
            if len(body) > LARGEST:
                raise ArchiveError(f"it is larger than {LARGEST >> 20} MiB")
        return bytes(body)

    def _leave_out(self, target: str, why: str) -> None:
        text = f"{target}: {why}"
        if len(self.problems) < _PROBLEMS and text not in self.problems:
            self.problems.append(text)


async def printed(holdings: Holdings, entry: IndexEntry, browser: Sequence[str]) -> Viewed:
    """Return the page captured as *entry* as a PDF, shown in *browser*, which has no network.

    Raises `DevToolsError` and `BrowserGoneError`.
    """
    answers, at = ArchiveAnswers((holdings,)), DateRange(entry.timestamp, entry.timestamp)

    with ThreadPoolExecutor(1) as thread:  # one, because the methods of an archive block and must not run at once

        async def answer(asked: Asked) -> Told | None:
            return await asyncio.get_running_loop().run_in_executor(thread, answers.answer, asked, at)

        limits = ViewLimits(dense=False)
        async with (
            connected(Chromium([*browser, *FLAGS], network=False)) as devtools,
            BrowserViews.open(devtools) as views,
        ):
            return await views.view(entry.url, second_of(entry.timestamp), answer, limits, picture="pdf")
