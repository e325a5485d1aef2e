"""Bytes in, links out: everything a document names, as canonical http(s) URLs.

`links` picks the reader for a document and never raises, whatever the bytes are. Each format has a module of its own.
`exchange` reads HTTP exchanges, with their headers. Time and memory are linear in the size of the body, and all sizes
are bounded. The note says if a bound was reached or the data is broken. URLs in scripts are guesses, marked by their
hop; everywhere else a URL comes from a place where the format has one.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from archiver.extract.document import Document, Kind, kind_of, unwarned
from archiver.extract.references import of_own_host
from archiver.extract.sitemap import EMPTY, ROOTS
from archiver.model import Hop, Links

__all__ = ["Document", "import_readers", "is_page", "links", "links_with_texts", "readable"]

_Reader = Callable[[Document], Links]
_SITEMAP = re.compile(rf"<(?:[\w-]{{1,50}}:)?(?:{'|'.join(ROOTS)})[\s/>]".encode())  # which may be empty
_BEGINNING = 4096  # bytes


@cache
def _reader_of(kind: Kind) -> _Reader:
    """Return the reader for documents of *kind*; it is imported now, so that the first request need not wait for it."""
    if kind in (Kind.HTML, Kind.CSS, Kind.SCRIPT, Kind.JSON, Kind.INDEX):
        from archiver.extract import css  # noqa: PLC0415 - see above
        from archiver.extract.html import reader  # noqa: PLC0415
        from archiver.extract.script import document as script  # noqa: PLC0415

        usual: dict[Kind, _Reader] = {
            Kind.HTML: reader.read_html,
            Kind.CSS: css.read_css,
            Kind.SCRIPT: script.read_script,
            Kind.JSON: script.read_data,
            Kind.INDEX: script.read_index,
        }
        return usual[kind]
    from archiver.extract import feed, media, office, pdf, sitemap, xml  # noqa: PLC0415 - many sites need none of them

    rare: dict[Kind, _Reader] = {
        Kind.TEXT: sitemap.read_text,
        Kind.XML: xml.read_xml,
        Kind.SITEMAP: xml.read_text_sitemap,
        Kind.PLAYLIST: media.read_playlist,
        Kind.MANIFEST: feed.read_manifest,
        Kind.JSON_FEED: feed.read_feed,
        Kind.PDF: pdf.read_pdf,
        Kind.OFFICE: office.read_office,
    }
    return rare[kind]


def import_readers() -> None:
    """Import the usual readers now: processes that are copied from this one then share them."""
    _reader_of(Kind.HTML)


def readable(document: Document) -> bool:
    """True if there is a reader for *document*; its first bytes are enough to decide."""
    return kind_of(document) is not Kind.OTHER


def is_page(document: Document) -> bool:
    """True if *document* is read as HTML, however it was reached."""
    return kind_of(document) is Kind.HTML


def links(document: Document) -> Links:
    """Return everything that *document* names; nothing if there is no reader for its kind."""
    kind = kind_of(document)
    if kind in (Kind.XML, Kind.SITEMAP) and (body := unwarned(document.body)) is not document.body:
        document = replace(document, body=body)
    if kind is Kind.OTHER:
        return Links()
    found = of_own_host(_reader_of(kind)(document), document.page or document.url)
    if document.hop is Hop.MANIFEST and not found.links and not _SITEMAP.search(document.body, 0, _BEGINNING):
        return replace(found, note=found.note or EMPTY)
    return found


def links_with_texts(document: Document) -> Links:
    """Do the same as `links`, and read the texts of the links of a page: for hooks."""
    from archiver.extract.html.link_texts import link_texts  # noqa: PLC0415 - few crawls need it

    return replace(links(document), texts=link_texts(document))
