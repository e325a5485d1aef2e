"""Write the files of a plan: rewrite the documents with references, copy all others.

The start page with links to the others is written last, so if it exists, all files do. Nothing is written outside the
folder.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import escape
from itertools import chain

from archiver import url
from archiver.collection.lookup import Holdings
from archiver.collection.payload import StoredResponse, read_answer
from archiver.errors import ArchiveError
from archiver.extract import Document
from archiver.extract.charset import of_css, of_html, of_xml
from archiver.extract.exchange import charset
from archiver.extract.sniff import SNIFFED, Kind, kind_of
from archiver.http import beginning
from archiver.model import Hop
from archiver.tools.export import rewrite_html, rewrite_links
from archiver.tools.export.filenames import START_PAGE
from archiver.tools.export.plan import ExportPlan, PlannedFile
from archiver.tools.export.rewrite_links import ExportedPage, ExportedSite, relative, view
from archiver.tools.export.target import ExportFolder
from archiver.warc.members import DamagedRecord

_MOST_PAGES = 1000  # per host
_MOST_HOSTS = 1000

_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "li{overflow-wrap:anywhere}small{opacity:.7}"
)


def start_page(plan: ExportPlan, seeds: Iterable[str], site: ExportedSite) -> str:
    """Return the start page with links to *seeds* and to the pages of each host."""
    hosts: dict[str, list[PlannedFile]] = {}
    for file in plan.files:
        hosts.setdefault(url.authority(file.url), []).append(file)
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Archive</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Archive</h1>",
        f"<p>{len(plan.files)} files of {len(hosts)} host{'s' * (len(hosts) != 1)}</p>",
        *_list("Seeds", ((seed, site.file(seed), "") for seed in seeds)),
    ]
    for host, files in list(hosts.items())[:_MOST_HOSTS]:
        pages = [file for file in files if file.page] or files
        lines += _list(
            f"{host} ({len(files)})", ((file.url, file.path, file.timestamp) for file in pages[:_MOST_PAGES])
        )
        if len(pages) > _MOST_PAGES:
            lines.append(f"<p>and {len(pages) - _MOST_PAGES} more</p>")
    if len(hosts) > _MOST_HOSTS:
        lines.append(f"<p>and {len(hosts) - _MOST_HOSTS} more hosts</p>")
    return "\n".join((*lines, "</body></html>", ""))


def _list(title: str, entries: Iterable[tuple[str, str | None, str]]) -> Iterator[str]:
    items = [
        f'<li><a href="{relative(START_PAGE, file)}">{escape(address)}</a> <small>{escape(_day(date))}</small></li>'
        for address, file, date in entries
        if file is not None
    ]
    if items:
        yield f"<h2>{escape(title)}</h2>"
        yield f"<ul>{''.join(items)}</ul>"


def _day(timestamp: str) -> str:
    return "-".join(filter(None, (timestamp[:4], timestamp[4:6], timestamp[6:8])))


MOST_CHANGED = 32 << 20  # bytes; links in larger documents are not changed
_LARGE = 64 << 20  # bytes; what grows beyond this, and more than `_RATIO` times, is a decompression bomb
_RATIO = 1100  # gzip cannot reach it
_MARKUP = frozenset(("image/svg+xml", "application/xhtml+xml"))


@dataclass
class ExportCounts:
    """The counts of an export, and its problems."""

    files: int = 0
    size: int = 0  # bytes
    problems: list[str] = field(default_factory=list)


def write_export(
    holdings: Holdings, plan: ExportPlan, target: ExportFolder, site: ExportedSite, report: Callable[[int], None]
) -> ExportCounts:
    """Write the files of *plan* from *holdings* into *target*; *report* receives the number of files done."""
    counts = ExportCounts(problems=plan.problems)
    for number, file in enumerate(sorted(plan.files, key=lambda file: (file.warc, file.offset))):
        report(number)
        try:
            counts.size += _write(holdings, file, target, site, plan)
            counts.files += 1
        except DamagedRecord as damage:
            plan.add_problem(f"{file.url}: {file.warc} {damage}")
        except _MissingError as missing:
            plan.add_problem(f"{file.url}: {missing}")
    return counts


def finish(target: ExportFolder, plan: ExportPlan, seeds: Iterable[str], site: ExportedSite) -> None:
    """Write the start page and finish the export."""
    target.write(START_PAGE, [start_page(plan, seeds, site).encode()])
    target.finish()


class _MissingError(Exception):
    """The record does not exist."""


def _write(holdings: Holdings, file: PlannedFile, target: ExportFolder, site: ExportedSite, plan: ExportPlan) -> int:
    with ExitStack() as stack:
        try:
            record = stack.enter_context(holdings.record_at(file.warc, file.offset))
        except ArchiveError as error:
            raise _MissingError(str(error)) from None
        answer = read_answer(record)
        decoded = answer.decoded()
        pieces = _limited(
            decoded,
            record.size or 0,
            lambda: plan.add_problem(f"{file.url}: truncated: a decompression bomb"),
        )
        size = target.write(file.path, _rewrite_payload(file, answer, pieces, site))
    for note in decoded.notes:
        plan.add_problem(f"{file.url}: {note}")
    if answer.truncated:
        plan.add_problem(f"{file.url}: it was truncated when it was captured ({answer.truncated})")
    return size


def _limited(pieces: Iterable[bytes], stored: int, on_bomb: Callable[[], None]) -> Iterator[bytes]:
    most, size = max(_LARGE, stored * _RATIO), 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            on_bomb()
            return
        yield piece


def _rewrite_payload(
    file: PlannedFile, answer: StoredResponse, pieces: Iterator[bytes], site: ExportedSite
) -> Iterator[bytes]:
    """Yield the payload, with its references changed if it is a document."""
    begin = beginning(pieces, SNIFFED)
    document = Document(file.url, answer.framing.media_type, charset(answer.framing), begin, Hop.REQUISITE)
    kind = kind_of(document)
    if kind in (Kind.HTML, Kind.CSS) or (kind is Kind.XML and document.media_type in _MARKUP):
        for piece in pieces:
            begin += piece
            if len(begin) > MOST_CHANGED:
                break
        else:
            yield _rewrite_document(file, kind, begin, document.charset, site)
            return
    yield from chain((begin,), pieces)


def _rewrite_document(file: PlannedFile, kind: Kind, body: bytes, header: str | None, site: ExportedSite) -> bytes:
    read = {Kind.HTML: of_html, Kind.CSS: of_css, Kind.XML: of_xml}[kind]
    encoding = read(body, header)
    seen = view(body, encoding)
    if seen is None:
        return body
    if kind is Kind.CSS:
        page = ExportedPage(site, file.url, file.path)
        text = rewrite_links.rewrite_css(seen.text, page, seen.meaning)
        return seen.back(rewrite_links.with_charset(body, text, encoding) if header else text)
    page = ExportedPage(site, file.url, file.path, encoding=encoding)
    xml = kind is Kind.XML
    text = rewrite_html.rewrite_html(seen.text, page, seen.meaning, xml=xml)
    return seen.back(rewrite_html.with_charset(body, text, encoding, xml=xml) if header else text)
