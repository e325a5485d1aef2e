"""What an XML document names: XHTML and SVG as HTML does, sitemaps their entries, anything else its whole URLs.

In feeds and other vocabularies a text or an attribute that is, as a whole, an absolute http(s) URL is a
link; in feeds relative ones are as well. libxml2 reports what it meets without building a tree; it reads
no other file, expands no entity of the document and goes on after faults.
"""

import re
from contextlib import suppress

from lxml import etree

from archiver import url
from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.elements import Attributes, Elements
from archiver.extract.entries import LONGEST, ROOTS, Entries, as_written, plain
from archiver.extract.found import Found
from archiver.model import Hop, Links

MOST_BYTES = 50 << 20
_ROOT = re.compile(r"(?:[^<]|<(?![a-zA-Z_]))*+<(?:[\w.-]++:)?([\w.-]++)")
_WHOLE = re.compile(r"https?://[^\s<>\"]++", re.IGNORECASE)
_SHEET = re.compile(r"href\s*=\s*[\"']([^\"'<]*)[\"']")
_NAMES_ONLY = frozenset(("rel", "scheme", "type", "term", "domain", "about", "profile"))  # URLs that are but names
_FEED_ATTRIBUTES = (("link", "href"), ("content", "src"), ("enclosure", "url"))
_PREDEFINED = {"amp": "&#38;", "lt": "&#60;", "gt": "&#62;", "quot": "&#34;", "apos": "&#39;"}
_AMPERSAND = re.compile(
    r"<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+|<!--[^-]*+(?:-(?!->)[^-]*+)*+"  # where it is but a character
    r"|&(?:(amp|lt|gt|quot|apos);|(?!#(?:[0-9]++|x[0-9a-fA-F]++);|[a-zA-Z_][\w.-]*+;))"
)
_NAMESPACES = {"http://www.w3.org/1999/xlink": "xlink:"}


def read(document: Document) -> Links:
    """What the document names, by the vocabulary of its root."""
    encoding = charset.of_xml(document.body, document.charset)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return of_text(charset.text(document.body[:MOST_BYTES], encoding), document.url, encoding, note)


def of_text(text: str, address: str, encoding: str, note: str = "") -> Links:
    """As `read`, of a *text* that was found at *address*."""
    root = _ROOT.match(text, 0, 1 << 16)
    name = root[1].lower() if root else ""
    if name in ROOTS:
        found = plain(text)
        if found is None:
            entries = Entries()
            _tell(text, entries)
            found = entries.found
        return found.links(address, encoding, note, queries="utf-8")
    if name in ("html", "svg"):
        markup = _Markup()
        _tell(text, markup)
        base = (markup.elements.base and url.join(address, markup.elements.base)) or address
        return markup.elements.found.links(base, encoding, note)
    anything = _Anything(feed=name in ("rss", "feed", "rdf"))
    _tell(text, anything)
    return anything.found.links(address, encoding, note, queries="utf-8")


def _tell(text: str, target: object) -> None:
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
    if "&" in text:
        text = _AMPERSAND.sub(_by_number, text)
    with suppress(etree.LxmlError):  # past mending: what was told before stays
        etree.fromstring(text.lstrip().encode("utf-8", "replace"), parser)


def _by_number(found: re.Match[str]) -> str:
    """The character that *found* stands for, by its number: behind a fault libxml2 drops those that have names.

    A single ampersand is one, too: the commonest fault of all.
    """
    name = found[1]
    if name:
        return _PREDEFINED[name]
    return "&#38;" if found[0] == "&" else found[0]


class _Markup:
    """XHTML or SVG, told tag by tag."""

    def __init__(self) -> None:
        self.elements = Elements()
        self._style: list[str] | None = None  # the style element that is being read

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take in a start tag."""
        name = tag.rpartition("}")[2].lower()
        self.elements.start_any(name, {_plain(key): as_written(value) for key, value in attributes.items()})
        if name == "style":
            self._style = []

    def data(self, text: str) -> None:
        """Take in a piece of text."""
        if self._style is not None:
            self._style.append(text)

    def end(self, tag: str) -> None:
        """Take in an end tag."""
        if self._style is not None and tag.rpartition("}")[2].lower() == "style":
            self.elements.style("".join(self._style))
            self._style = None

    def pi(self, target: str, content: str | None = None) -> None:
        """Take in a processing instruction."""
        _sheet(self.elements.found, target, content)

    def close(self) -> None:
        """Nothing is left to do: everything was told as it came."""


class _Anything:
    """A vocabulary that is a feed's or unknown, told tag by tag."""

    def __init__(self, *, feed: bool) -> None:
        self.found = Found()
        self._feed = feed
        self._pieces: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take in a start tag."""
        name = tag.rpartition("}")[2]
        for key, escaped in attributes.items():
            value = as_written(escaped)
            plain = key.rpartition("}")[2]
            whole = plain not in _NAMES_ONLY and _WHOLE.fullmatch(value.strip())
            if whole or (self._feed and (name, plain) in _FEED_ATTRIBUTES):
                self.found.add(value, Hop.LINK, f"{name}/@{plain}")
        self._pieces, self._length = [], 0

    def data(self, text: str) -> None:
        """Take in a piece of text."""
        self._length += len(text)
        if self._length <= LONGEST:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        """Take in an end tag."""
        if self._pieces:
            name = tag.rpartition("}")[2]
            text = "".join(self._pieces).strip()
            if self._length <= LONGEST and (_WHOLE.fullmatch(text) or (self._feed and name == "link")):
                self.found.add(text, Hop.LINK, name)
            self._pieces, self._length = [], 0

    def pi(self, target: str, content: str | None = None) -> None:
        """Take in a processing instruction."""
        _sheet(self.found, target, content)

    def close(self) -> None:
        """Nothing is left to do: everything was told as it came."""


def _sheet(found: Found, target: str, content: str | None) -> None:
    """An xml-stylesheet instruction: what the document is shown by."""
    sheet = _SHEET.search(content or "") if target == "xml-stylesheet" else None
    if sheet:
        found.add(sheet[1].replace("&amp;", "&"), Hop.REQUISITE, "xml-stylesheet")


def _plain(name: str) -> str:
    space, _, local = name.rpartition("}")
    return _NAMESPACES.get(space[1:], "") + local if space else name
