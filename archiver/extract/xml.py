"""What an XML document names, by the vocabulary of its root; each has a module of its own.

XHTML and SVG are read as HTML is, an XSL style sheet as the HTML that it makes. libxml2 reports what it meets
without building a tree, and the text goes to it in pieces; it reads no other file, expands no entity of the
document and goes on after faults. XHTML that is not well-formed is read as HTML too: servers and pages lie.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lxml import etree

from archiver.extract import charset, dash, feeds, html, vocabularies
from archiver.extract.bases import plain
from archiver.extract.document import Document
from archiver.extract.elements import Attributes, Elements
from archiver.extract.entries import ROOTS, Entries, as_written, written_plainly
from archiver.extract.found import base_of
from archiver.model import Hop, Links

MOST_BYTES = 50 << 20
_MARKUP = frozenset(("html", "svg", "stylesheet", "transform"))
_ROOT = re.compile(r"(?:[^<]|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)|<(?![a-zA-Z_]))*+<(?:[\w.-]++:)?([\w.-]++)")
_XSL = "{http://www.w3.org/1999/XSL/Transform}"
_DOCUMENT = re.compile(r"\bdocument\(\s*+(?:'([^'{}]++)'|\"([^\"{}]++)\")")
_INCLUDE = "{http://www.w3.org/2001/XInclude}include"
_PREDEFINED = {"amp": "&#38;", "lt": "&#60;", "gt": "&#62;", "quot": "&#34;", "apos": "&#39;"}
_AMPERSAND = re.compile(
    r"<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+|<!--[^-]*+(?:-(?!->)[^-]*+)*+"  # where it is but a character
    r"|&(?:(amp|lt|gt|quot|apos);|(?!#(?:[0-9]++|x[0-9a-fA-F]++);|[a-zA-Z_][\w.-]*+;))"
)
_AT_ONCE = 8 << 20  # bytes of a sitemap that is read in one leap if it can be

Pieces = Callable[[], Iterator[str]]
Told = TypeVar("Told")


def read(document: Document) -> Links:
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
        return told(pieces, Entries)[0].links(document.url, encoding, note)
    if name in _MARKUP:
        return _markup(pieces, document, encoding, note)
    if name == "mpd":
        found, left_out = dash.read("".join(pieces()), document.url)
        return found.links(document.url, encoding, note or left_out, queries="utf-8")
    if name in feeds.ROOTS:
        feed, _ = told(pieces, partial(feeds.Feed, document.url))
        return feed.found.links(document.url, encoding, note, queries="utf-8")
    known = vocabularies.terms(name, document.hop)
    anything, _ = told(pieces, partial(vocabularies.Anything, document.url, known))
    return anything.found.links(document.url, encoding, note, queries="utf-8")


def _markup(pieces: Pieces, document: Document, encoding: str, note: str) -> Links:
    markup, whole = told(pieces, _Markup)
    elements = markup.elements
    links = elements.found.links(base_of(document.url, elements.base), encoding, note)
    links = replace(links, nofollow=tuple(elements.nofollow))
    if whole or not markup.page:
        return links
    mended = html.read(document)
    return links if len(links.links) > len(mended.links) else mended  # an empty script hides all behind it from HTML


def told(pieces: Pieces, make: Callable[[], Told]) -> tuple[Told, bool]:
    """What *make* makes, told of all that stands in *pieces*; and whether that is well-formed.

    Behind a fault libxml2 drops characters that have names, so a broken text is told anew with their numbers. A
    single ampersand, the commonest fault of all, gets one too.
    """
    target = make()
    if _parse(pieces(), target):
        return target, True
    text = "".join(pieces())
    if "&" not in text:
        return target, False
    target = make()
    return target, _parse(iter((_AMPERSAND.sub(_by_number, text),)), target)


def _parse(pieces: Iterator[str], target: object) -> bool:
    """Tell *target* of what is in *pieces*; whether that is well-formed."""
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=True,
    )
    with suppress(etree.LxmlError):  # past mending: what was told before stays
        parser.feed(next(pieces, "").lstrip().encode("utf-8", "replace"))
        for piece in pieces:
            parser.feed(piece.encode("utf-8", "replace"))
        parser.close()
        return not any(entry.level == etree.ErrorLevels.FATAL for entry in parser.feed_error_log)
    return False


def _by_number(found: re.Match[str]) -> str:
    """The character that *found* stands for, by its number."""
    name = found[1]
    if name:
        return _PREDEFINED[name]
    return "&#38;" if found[0] == "&" else found[0]


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
        vocabularies.sheet(self.elements.found, target, content)

    def close(self) -> None:
        """Nothing is left to do: everything was told as it came."""
