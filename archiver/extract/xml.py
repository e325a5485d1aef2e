"""What an XML document names, by the vocabulary of its root; each has a module of its own.

XHTML and SVG are read as HTML is, an XSL style sheet as the HTML that it makes. `xml_events` reports the tags and
texts, of broken documents too; it reads no other file. XHTML that is not well-formed is also read as HTML, because
servers and pages lie.

What a sitemap names: XML (also feeds) or a list of addresses, plain or packed with gzip.

How it is named and what type it is said to have does not count; its bytes do.
"""

import re
from dataclasses import replace
from functools import partial

from archiver.extract import charset, media, xml_vocabularies
from archiver.extract import feed as feeds
from archiver.extract.collector import LinkCollector, base_of
from archiver.extract.document import Document
from archiver.extract.html import lenient
from archiver.extract.html.elements import Attributes, Elements
from archiver.extract.sitemap import ROOTS, SitemapEntries, as_written, written_plainly
from archiver.extract.text import lines
from archiver.extract.xml_parser import Pieces, parse_xml
from archiver.extract.xml_vocabularies import plain
from archiver.http import content_coding
from archiver.model import Hop, Links

_MARKUP = frozenset(("html", "svg", "stylesheet", "transform"))
_ROOT = re.compile(r"(?:[^<]|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)|<(?![a-zA-Z_]))*+<(?:[\w.-]++:)?([\w.-]++)")
_XSL = "{http://www.w3.org/1999/XSL/Transform}"
_DOCUMENT = re.compile(r"\bdocument\(\s*+(?:'([^'{}]++)'|\"([^\"{}]++)\")")
_NO_BASES = ("{http://www.w3.org/2000/svg}", "{http://www.w3.org/1998/Math/MathML}")  # where `base` means nothing
_INCLUDE = "{http://www.w3.org/2001/XInclude}include"
_AT_ONCE = 8 << 20  # bytes of a sitemap that is read in one leap if it can be


def read_xml(document: Document) -> Links:
    """What the document names, by the vocabulary of its root."""
    encoding = charset.of_xml(document.body, document.charset)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return of_text(partial(charset.pieces, document.body, encoding, MOST_BYTES), document, encoding, note)


def of_text(pieces: Pieces, document: Document, encoding: str, note: str = "") -> Links:
    """As `read`, of a text that comes in *pieces*: the *document*'s, whatever its own body is."""
    root = _ROOT.match(next(pieces(), "").lstrip())
    name = root[1].lower() if root else ""
    if name in ROOTS:
        found = written_plainly("".join(pieces())) if len(document.body) <= _AT_ONCE else None
        if found is not None:
            return found.links(document.url, encoding, note, queries="utf-8")
        return parse_xml(pieces, SitemapEntries)[0].links(document.url, encoding, note)
    if name in _MARKUP:
        return _markup(pieces, document, encoding, note)
    if name == "mpd":
        found, left_out = media.read_dash(pieces, document.url)
        return found.links(document.url, encoding, note or left_out, queries="utf-8")
    if name in feeds.ROOTS:
        feed, _ = parse_xml(pieces, partial(feeds.FeedReader, document.url))
        return feed.found.links(document.url, encoding, note, queries="utf-8")
    known = xml_vocabularies.terms(name, document.hop)
    anything, _ = parse_xml(pieces, partial(xml_vocabularies.AnyVocabulary, document.url, known))
    return anything.found.links(document.url, encoding, note, queries="utf-8")


def _markup(pieces: Pieces, document: Document, encoding: str, note: str) -> Links:
    markup, whole = parse_xml(pieces, _Markup)
    elements = markup.elements
    links = elements.found.links(base_of(document.url, elements.base), encoding, note)
    links = replace(links, nofollow=tuple(elements.nofollow))
    if whole or not markup.page:
        return links
    mended = lenient.read_html(document)
    return links if len(links.links) > len(mended.links) else mended  # an empty script hides all behind it from HTML


class _Markup:
    """XHTML, SVG or XSL, told tag by tag."""

    def __init__(self) -> None:
        self.elements = Elements()
        self.page = False  # a root of XHTML
        self._begun = False
        self._text: list[str] | None = None  # of the style or script that is being read
        self._attributes: Attributes = {}  # of that element

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take in a start tag."""
        name = tag.rpartition("}")[2].lower()
        if name == "base" and tag.startswith(_NO_BASES):
            return
        if not self._begun:
            self._begun, self.page = True, name == "html"
        if tag.startswith(_XSL):
            self._instruction(name, attributes)
            return
        if tag == _INCLUDE:
            self.elements.found.add(as_written(attributes.get("href", "")), Hop.REQUISITE, "include/@href")
        values = {plain(key): as_written(value) for key, value in attributes.items()}
        values = {key: value for key, value in values.items() if "{" not in value or key == "style"}
        self.elements.start_any(name, values)
        if name in ("style", "script"):
            self._text, self._attributes = [], values

    def _instruction(self, name: str, attributes: Attributes) -> None:
        """Take in an element of XSL itself."""
        if name in ("import", "include"):
            self.elements.found.add(as_written(attributes.get("href", "")), Hop.REQUISITE, f"xsl:{name}/@href")
        for key in ("select", "match", "test"):
            for called in _DOCUMENT.finditer(as_written(attributes.get(key, ""))):
                self.elements.found.add(called[1] or called[2], Hop.REQUISITE, f"xsl:{name}/document()")

    def data(self, text: str) -> None:
        """Take in a piece of text."""
        if self._text is not None:
            self._text.append(text)

    def end(self, tag: str) -> None:
        """Take in an end tag."""
        name = tag.rpartition("}")[2].lower()
        if self._text is not None and name in ("style", "script"):
            text = "".join(self._text)
            self._text = None
            if name == "style":
                self.elements.style(text)
            else:
                self.elements.script(self._attributes, text)

    def pi(self, target: str, content: str | None = None) -> None:
        """Take in a processing instruction."""
        xml_vocabularies.sheet(self.elements.found, target, content)

    def close(self) -> None:
        """Nothing is left to do: everything was told as it came."""


MOST_BYTES = 50 << 20  # sitemaps.org's own bound


def read_text_sitemap(document: Document) -> Links:
    """The entries of the sitemap: pages as LINK, further sitemaps as MANIFEST."""
    body, note = document.body, ""
    if body.startswith(b"\x1f\x8b"):
        body, note = content_coding.decoded(body, ("gzip",), MOST_BYTES)
    elif len(body) > MOST_BYTES:
        note = f"only the first {MOST_BYTES} bytes"
    encoding = charset.of_xml(body, document.charset)
    pieces = partial(charset.pieces, body, encoding, MOST_BYTES)
    if next(pieces(), "").lstrip().startswith("<"):
        return of_text(pieces, replace(document, body=body), encoding, note)
    found = LinkCollector()
    for line in lines(pieces()):
        address = line.strip()
        if address[:8].lower().startswith(("http://", "https://")):
            found.add(address, Hop.LINK, "line")
        if found.full:
            break
    return found.links(document.url, encoding, note, queries="utf-8")
