"""Bytes in, links out: everything a document names, as canonical http(s) URLs.

`links` picks the reader for a document and never raises, whatever the bytes are. Each format has a module of its own.
`exchange` reads HTTP exchanges, with their headers. Time and memory are linear in the size of the body, and all sizes
are bounded. The note says if a bound was reached or the data is broken. URLs in scripts are guesses, marked by their
hop; everywhere else a URL comes from a place where the format has one.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from archiver.extract import css, sitemap
from archiver.extract.document import Document, Kind, kind_of, unwarned
from archiver.extract.html import reader
from archiver.extract.script.document import read_data, read_index, read_script
from archiver.model import Links

__all__ = ["Document", "is_page", "links", "readable"]

_READERS: dict[Kind, Callable[[Document], Links]] = {
    Kind.HTML: reader.read_html,
    Kind.CSS: css.read_css,
    Kind.SCRIPT: read_script,
    Kind.JSON: read_data,
    Kind.TEXT: sitemap.read_text,
}
_RARE = frozenset(
    (Kind.XML, Kind.SITEMAP, Kind.PLAYLIST, Kind.MANIFEST, Kind.JSON_FEED, Kind.PDF, Kind.OFFICE, Kind.INDEX)
)


@cache
def _rare_readers() -> dict[Kind, Callable[[Document], Links]]:
    """Import the readers that many sites never need; a crawl starts faster without them."""
    from archiver.extract import feed, media, office, pdf, xml  # noqa: PLC0415 - many sites need none of them

    return {
        Kind.XML: xml.read_xml,
        Kind.SITEMAP: xml.read_text_sitemap,
        Kind.PLAYLIST: media.read_playlist,
        Kind.MANIFEST: feed.read_manifest,
        Kind.JSON_FEED: feed.read_feed,
        Kind.PDF: pdf.read_pdf,
        Kind.OFFICE: office.read_office,
        Kind.INDEX: read_index,
    }


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
    reader = (_rare_readers() if kind in _RARE else _READERS).get(kind)
    return reader(document) if reader else Links()
