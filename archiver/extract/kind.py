"""Which grammar a document has: by its media type, and by its first bytes where that is missing or known to lie.

As careful as the MIME Sniffing standard: plain text stays plain text, unless it begins as no text does.
"""

import re
from enum import Enum, auto

from archiver import url
from archiver.extract import script, signs, text
from archiver.extract.document import Document
from archiver.model import Hop


class Kind(Enum):
    """The grammars that there are readers for, and the absence of one."""

    HTML = auto()
    XML = auto()
    CSS = auto()
    SITEMAP = auto()
    SCRIPT = auto()
    TEXT = auto()
    PLAYLIST = auto()
    MANIFEST = auto()
    JSON_FEED = auto()
    JSON = auto()
    PDF = auto()
    INDEX = auto()
    OTHER = auto()


TELLING = 1024  # bytes by which a document tells what it is
_UNKNOWN = frozenset(("", "*/*", "unknown/unknown", "application/unknown", "application/octet-stream"))
_XML_TYPES = frozenset(
    (
        *("application/xml", "text/xml", "application/xhtml+xml", "image/svg+xml", "text/xsl", "application/xslt"),
        *("text/x-opml", "application/x-rss", "application/smil", "application/x-asx", "application/x-ms-asx"),
        *("video/x-ms-asx", "audio/x-ms-wax", "video/x-ms-wvx"),
    )
)
_HTML_TYPES = frozenset(("text/html", "application/vnd.wap.xhtml+xml", "application/x-httpd-php"))
_BINARY = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"RIFF", b"OggS", b"wOF", b"ID3")
_XML_ROOT = re.compile(
    rb"<(?:svg|mpd|asx|smil|opml|xbel|playlist|browserconfig|opensearchdescription|xsl:stylesheet)[\s>]", re.IGNORECASE
)
_LEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:[\t\n\f\r ]|<!--(?:[^-]|-(?!->))*+-->)*+")
_DOCTYPE = b"<!doctype html"  # how most pages begin, and nothing else that calls itself a page
_SURELY_HTML = re.compile(rb"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_MARKUP = re.compile(
    rb"<!doctype\s+html|<(?:html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta|frameset|base|link)[\s/>]",
    re.IGNORECASE,
)
_FEED = re.compile(
    rb"(?:<\?xml[^>]*+>)?(?:\s|<!--(?:[^-]|-(?!->))*+-->)*+"
    rb"<(?:[\w-]++:)?(?:rss|feed|rdf|urlset|sitemapindex)[\s>]",
    re.IGNORECASE,
)


def kind_of(document: Document) -> Kind:
    """The grammar by which *document* is to be read."""
    media = document.media_type
    head = document.body[:TELLING]
    if media in _HTML_TYPES and head[: len(_DOCTYPE)].lower() == _DOCTYPE:
        return Kind.HTML
    xml = _is_xml(media)
    if xml or media in _HTML_TYPES or document.hop is Hop.MANIFEST:
        head = signs.unwarned(document.body)[:TELLING]
    if document.hop is Hop.MANIFEST:
        return Kind.HTML if _surely_html(head) else Kind.SITEMAP
    word = signs.word_of(document, head, loose=media in _UNKNOWN or media == "text/plain", page=media in _HTML_TYPES)
    if word:
        return Kind[word]
    if media in _HTML_TYPES:
        return _of_page(head)
    if xml:
        return Kind.XML
    if media == "text/css":
        return Kind.CSS
    if media in script.TYPES:
        return Kind.HTML if _surely_html(head) else Kind.SCRIPT
    if media == "text/plain":
        return _of_plain_text(document, head)
    return _of_unknown(document, head) if media in _UNKNOWN or "/" not in media else Kind.OTHER


def _is_xml(media: str) -> bool:
    return media in _XML_TYPES or media.endswith("+xml")


def _of_page(head: bytes) -> Kind:
    if head.startswith(_BINARY):
        return Kind.OTHER
    return Kind.XML if _FEED.match(head, _start(head)) else Kind.HTML


def _of_plain_text(document: Document, head: bytes) -> Kind:
    if _surely_html(head):
        return Kind.HTML
    return Kind.TEXT if text.begins_as_list(head) else _wanted(document)


def _of_unknown(document: Document, head: bytes) -> Kind:
    start = _start(head)
    if _MARKUP.match(head, start):
        return Kind.HTML
    if head.startswith(b"<?xml", start) or _FEED.match(head, start) or _XML_ROOT.match(head, start):
        return Kind.XML
    return _wanted(document)


def _wanted(document: Document) -> Kind:
    """What the name says of a document that a page needs."""
    if document.hop is Hop.REQUISITE or document.hop is Hop.SPECULATIVE:
        name = url.path(document.url).lower()
        if name.endswith(".css"):
            return Kind.CSS
        if name.endswith((".js", ".mjs")):
            return Kind.SCRIPT
        if name.endswith(".json"):
            return Kind.JSON
    return Kind.OTHER


def _surely_html(head: bytes) -> bool:
    return _SURELY_HTML.match(head, _start(head)) is not None


def _start(head: bytes) -> int:
    """Where the first thing stands that is neither space nor comment."""
    found = _LEAD.match(head)
    return found.end() if found else 0
