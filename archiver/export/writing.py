"""Writes the files of a plan: those that hold references with them changed, all others as they were captured.

The page that leads to them comes last: where it is there, all of them are. Nothing is written outside the folder.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain

from archiver.errors import ArchiveError
from archiver.export import front, markup, sheets
from archiver.export.links import Page, Site
from archiver.export.names import FRONT
from archiver.export.plan import File, Plan
from archiver.export.target import Target
from archiver.export.views import view
from archiver.extract import Document
from archiver.extract.charset import of_css, of_html, of_xml
from archiver.extract.kind import TELLING, Kind, kind_of
from archiver.holdings import Answer, Holdings, read_answer
from archiver.http import beginning
from archiver.model import Hop
from archiver.reading import charset
from archiver.warc.reader import Torn

MOST_CHANGED = 32 << 20  # bytes of a document; links in a longer one stay as they are
_LARGE = 64 << 20  # what grows to more than this, and a thousandfold, is a bomb
_RATIO = 1100  # gzip cannot reach it
_MARKUP = frozenset(("image/svg+xml", "application/xhtml+xml"))


@dataclass
class Tally:
    """What was written."""

    files: int = 0
    size: int = 0  # bytes
    troubles: list[str] = field(default_factory=list)


def write(holdings: Holdings, plan: Plan, target: Target, site: Site, tell: Callable[[int], None]) -> Tally:
    """Write the files of *plan*, made of *holdings*, into *target*; *tell* is told how many there are."""
    tally = Tally(troubles=plan.troubles)
    for number, file in enumerate(sorted(plan.files, key=lambda file: (file.warc, file.offset))):
        tell(number)
        try:
            tally.size += _write(holdings, file, target, site, plan)
            tally.files += 1
        except Torn as torn:
            plan.trouble(f"{file.url}: {file.warc} {torn}")
        except _MissingError as missing:
            plan.trouble(f"{file.url}: {missing}")
    return tally


def finish(target: Target, plan: Plan, seeds: Iterable[str], site: Site) -> None:
    """Write the page that leads to the others."""
    target.put(FRONT, [front.page(plan, seeds, site).encode()])
    target.finish()


class _MissingError(Exception):
    """There is no such record."""


def _write(holdings: Holdings, file: File, target: Target, site: Site, plan: Plan) -> int:
    with ExitStack() as stack:
        try:
            record = stack.enter_context(holdings.record_at(file.warc, file.offset))
        except ArchiveError as error:
            raise _MissingError(str(error)) from None
        answer = read_answer(record)
        decoded = answer.decoded()
        pieces = _no_bomb(decoded, record.size or 0, lambda: plan.trouble(f"{file.url}: cut, for it is a bomb"))
        size = target.put(file.path, _changed(file, answer, pieces, site))
    for note in decoded.notes:
        plan.trouble(f"{file.url}: {note}")
    if answer.truncated:
        plan.trouble(f"{file.url}: it was cut when it was captured ({answer.truncated})")
    return size


def _no_bomb(pieces: Iterable[bytes], stored: int, tell: Callable[[], None]) -> Iterator[bytes]:
    most, size = max(_LARGE, stored * _RATIO), 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            tell()
            return
        yield piece


def _changed(file: File, answer: Answer, pieces: Iterator[bytes], site: Site) -> Iterator[bytes]:
    """The payload with its references changed, if it has any that can be."""
    begin = beginning(pieces, TELLING)
    document = Document(file.url, answer.framing.media_type, charset(answer.framing), begin, Hop.REQUISITE)
    kind = kind_of(document)
    if kind in (Kind.HTML, Kind.CSS) or (kind is Kind.XML and document.media_type in _MARKUP):
        for piece in pieces:
            begin += piece
            if len(begin) > MOST_CHANGED:
                break
        else:
            yield _rewritten(file, kind, begin, document.charset, site)
            return
    yield from chain((begin,), pieces)


def _rewritten(file: File, kind: Kind, body: bytes, header: str | None, site: Site) -> bytes:
    read = {Kind.HTML: of_html, Kind.CSS: of_css, Kind.XML: of_xml}[kind]
    encoding = read(body, header)
    seen = view(body, encoding)
    if seen is None:
        return body
    if kind is Kind.CSS:
        page = Page(site, file.url, file.path)
        text = sheets.rewritten(seen.text, page, seen.meaning)
        return seen.back(sheets.labelled(body, text, encoding) if header else text)
    page = Page(site, file.url, file.path, encoding=encoding)
    xml = kind is Kind.XML
    text = markup.rewritten(seen.text, page, seen.meaning, xml=xml)
    return seen.back(markup.labelled(body, text, encoding, xml=xml) if header else text)
