"""Bytes in, links out: what a document or a header names, as canonical http(s) URLs.

`links` chooses the grammar and never raises, whatever the bytes are; each medium is a module of its own
with one function `read(document) -> Links`. Time and memory are linear in the size of the body, and all
sizes are bounded; a bound that was reached, or data that is broken, is said in the note. What a script names
is a guess, and says so by its hop; everywhere else a URL comes from a place where the format has one.

Readers of what many sites do not have are imported when the first of it comes: they take a tenth of the start.

The readers of what many sites do not have, by kind: one import brings them all, and the libraries they need.
"""

from collections.abc import Callable
from dataclasses import replace

from archiver.extract import css, feed, media, pdf, text, xml
from archiver.extract.collector import NOFOLLOW
from archiver.extract.document import Document
from archiver.extract.headers import from_fields, nofollow, redirect
from archiver.extract.html import lenient
from archiver.extract.script import document as program
from archiver.extract.script import search_indexes
from archiver.extract.sniff import Kind, kind_of, unwarned
from archiver.http.content_coding import decoded
from archiver.model import Links

READERS: dict[Kind, Callable[[Document], Links]] = {
    Kind.XML: xml.read_xml,
    Kind.SITEMAP: xml.read_text_sitemap,
    Kind.PLAYLIST: media.read_playlist,
    Kind.MANIFEST: feed.read_manifest,
    Kind.JSON_FEED: feed.read_feed,
    Kind.PDF: pdf.read_pdf,
    Kind.INDEX: search_indexes.read_index,
}

__all__ = ["NOFOLLOW", "Document", "decoded", "from_fields", "is_page", "links", "nofollow", "readable", "redirect"]


def _rare(document: Document) -> Links:

    return READERS[kind_of(document)](document)


_READERS: dict[Kind, Callable[[Document], Links]] = {
    Kind.HTML: lenient.read_html,
    Kind.CSS: css.read_css,
    Kind.SCRIPT: program.read_script,
    Kind.JSON: program.read_data,
    Kind.TEXT: text.read_text,
    **dict.fromkeys(
        (Kind.XML, Kind.SITEMAP, Kind.PLAYLIST, Kind.MANIFEST, Kind.JSON_FEED, Kind.PDF, Kind.INDEX), _rare
    ),
}


def readable(document: Document) -> bool:
    """Whether there is a grammar for *document*; its beginning is enough to tell."""
    return kind_of(document) in _READERS


def is_page(document: Document) -> bool:
    """Whether *document* is read as a page, whatever it was reached as."""
    return kind_of(document) is Kind.HTML


def links(document: Document) -> Links:
    """Everything that *document* names; nothing where there is no grammar for its kind."""
    kind = kind_of(document)
    if kind in (Kind.XML, Kind.SITEMAP) and (body := unwarned(document.body)) is not document.body:
        document = replace(document, body=body)
    reader = _READERS.get(kind)
    return reader(document) if reader else Links()
