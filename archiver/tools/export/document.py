"""Rewrite a document of an export: its references, and what only the headers of its response said. Pure.

A file has no headers, so its encoding and its refresh are declared in the document.
"""

import re

from archiver.config.expressions import compiled
from archiver.extract import charset
from archiver.extract.document import Kind
from archiver.extract.html.attribute_values import refresh_target
from archiver.tools.export import rewrite_html, rewrite_links
from archiver.tools.export.rewrite_html import escaped
from archiver.tools.export.rewrite_links import NOWHERE, ExportedPage, view

_MARKUP = frozenset(("image/svg+xml", "application/xhtml+xml"))
_LATE = 1 << 16  # bytes in which a document declares its encoding
_DOCTYPE = compiled(r"(?:[\t\n\f\r ]|<!--(?:[^-]|-(?!->))*+-->)*+<!doctype[^>]*+>", re.IGNORECASE)
_SCRIPT = re.compile(b"<script", re.IGNORECASE)  # it may be in the encoding of the page


def is_rewritten(kind: Kind, media_type: str) -> bool:
    """Return True if the references of such documents are changed."""
    return kind in (Kind.HTML, Kind.CSS) or (kind is Kind.XML and media_type in _MARKUP)


def rewrite_document(page: ExportedPage, kind: Kind, body: bytes, header: str | None, refresh: str = "") -> bytes:
    """Return *body*, of *page*, with its references changed. *header*: the charset in Content-Type."""
    read = {Kind.HTML: charset.of_html, Kind.CSS: charset.of_css, Kind.XML: charset.of_xml}[kind]
    encoding = read(body, header)
    seen = view(body, encoding)
    if seen is None:
        return body
    if kind is Kind.CSS:
        text = rewrite_links.rewrite_css(seen.text, page, seen.meaning)
        return seen.back(css_with_charset(body, text, encoding) if header else text)
    xml = kind is Kind.XML
    page = page.encoded(encoding)
    text = rewrite_html.rewrite_html(seen.text, page, seen.meaning, xml=xml)
    if refresh and not xml:
        text = with_refresh(text, page, refresh)
    return seen.back(html_with_charset(body, text, encoding, xml=xml) if header else text)


def html_with_charset(body: bytes, text: str, encoding: str, *, xml: bool) -> str:
    """Return *text* with its *encoding* declared, if only the response header declared it."""
    own = charset.of_xml(body, None) if xml else charset.of_html(body, None)
    silent = encoding == "windows-1252" and b"charset" not in body[:_LATE].lower()  # the default without a declaration
    needless = body.isascii() and (xml or _SCRIPT.search(body) is None) and not encoding.startswith("utf-16")
    if needless or charset.marked(body) or (own == encoding and not silent):
        return text
    if encoding.startswith("utf-"):
        return f"\ufeff{text}"
    return text if xml else _with_element(text, f'<meta charset="{encoding}">')


def css_with_charset(body: bytes, text: str, encoding: str) -> str:
    """Return the style sheet *text* with its *encoding* declared, if only the response header declared it."""
    if body.isascii() or charset.marked(body):
        return text
    if encoding == "utf-8":
        return f"\ufeff{text}"
    return text if charset.of_css(body, None) == encoding else f'@charset "{encoding}";{text}'


def with_refresh(text: str, page: ExportedPage, refresh: str) -> str:
    """Return the HTML *text* of *page* with the *refresh* of its header, if that leads to another file or page."""
    target = refresh_target(refresh)
    new = page.replacement(target) if target else None
    if new is None or new == NOWHERE:
        return text
    delay = re.split("[;,]", refresh, maxsplit=1)[0].strip()
    return _with_element(text, f'<meta http-equiv="refresh" content="{escaped(delay)};url={escaped(new)}">')


def _with_element(text: str, element: str) -> str:
    end = doctype.end() if (doctype := _DOCTYPE.match(text)) else 0
    return f"{text[:end]}{element}{text[end:]}"
