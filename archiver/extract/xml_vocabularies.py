"""XML without a reader of its own: tables for a few vocabularies, and absolute URLs in all others.

A text or attribute that is entirely an absolute http(s) URL is a link, unless it is only a name; so is an XLink.
XInclude and embedding XLinks are requisites. In the known vocabularies relative URLs are read as well. Templates
(`{searchTerms}`) name nothing to fetch. In SMIL, ASX and XSPF the media are requisites if the list itself was one, or
if showing the document plays them.

References are resolved against the document's address, or `xml:base` of the elements around them.
"""

import html
import re
from collections.abc import Mapping
from typing import NamedTuple

from archiver import url
from archiver.extract import css
from archiver.extract.html.elements import Attributes, Elements
from archiver.extract.references import LinkCollector
from archiver.extract.sitemap import LONGEST, as_written
from archiver.model import Hop, Links

_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_LONGEST = 2048  # characters of a base; each of many nested elements may extend it
_NAMESPACES = {"http://www.w3.org/1999/xlink": "xlink:"}


class XmlBases:
    """Tracks the base URL by start and end tags; references are added against the current base."""

    def __init__(self, address: str) -> None:
        self.found = LinkCollector()
        self.current = address
        self._address = address
        self._depth = 0
        self._outer: list[tuple[int, str]] = []  # depth of each element with a base, and the base around it

    def enter(self, attributes: Attributes) -> None:
        """Process the start of an element."""
        self._depth += 1
        if attributes and _BASE in attributes:
            self._outer.append((self._depth, self.current))
            self.move(as_written(attributes[_BASE]))

    def move(self, base: str) -> None:
        """Set the current base to *base*, as written."""
        if len(base) + len(self.current) <= _LONGEST:
            self.current = url.join(self.current, base.strip()) or self.current

    def leave(self) -> None:
        """Process the end of an element."""
        while self._outer and self._outer[-1][0] >= self._depth:
            self.current = self._outer.pop()[1]
        self._depth -= 1

    def embed(self, name: str, attributes: Attributes) -> None:
        """Read an element of HTML or SVG with this local *name*."""
        elements = Elements()
        elements.start_any(name, {plain(key): as_written(value) for key, value in attributes.items()})
        if not elements.found.empty:
            self.add_links(elements.found.links(self.current, "utf-8"))

    def add_links(self, links: Links, where: str = "") -> None:
        """Add *links* found in a part of the document, in an element named *where*."""
        for link in links.links:
            self.found.add(link.url, link.hop, f"{where}/{link.context}" if where else link.context)

    def add(self, reference: str, hop: Hop | None, context: str) -> None:
        """Add *reference* if it may name something to fetch."""
        if hop and reference:
            moved = self.current != self._address
            self.found.add(url.join(self.current, reference.strip()) if moved else reference, hop, context)


def plain(name: str) -> str:
    """Return the attribute *name* as in HTML: without its namespace, except that of XLink."""
    space, _, local = name.rpartition("}")
    return _NAMESPACES.get(space[1:], "") + local if space else name


XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
WHOLE = re.compile(r"https?://[^\s<>\"{}]++", re.IGNORECASE)

_XLINK = "{http://www.w3.org/1999/xlink}"
_INCLUDE = "{http://www.w3.org/2001/XInclude}include"
_SHEET = re.compile(r"\bhref\s*+=\s*+([\"'])([^\"'<]*+)\1")
_NAMES_ONLY = frozenset(  # attributes whose URLs are only names
    (
        *("base", "rel", "scheme", "type", "term", "domain", "about", "profile", "role", "arcrole", "datatype"),
        *(
            "namespace",
            "targetnamespace",
            "nonamespaceschemalocation",
            "schemaiduri",
            "apilink",
            "publicid",
            "systemid",
        ),
    )
)
L, E = Hop.LINK, Hop.REQUISITE


class XmlVocabulary(NamedTuple):
    """The URLs of the elements of one vocabulary, in lower case; None: a URL that is not fetched."""

    attributes: Mapping[tuple[str, str], Hop | None] = {}  # "*" matches any element
    texts: Mapping[str, Hop | None] = {}


_KNOWN = {
    "browserconfig": XmlVocabulary({("polling-uri", "src"): None, ("*", "src"): E}),
    # Its image is shown in the list of search engines, not on a page.
    "opensearchdescription": XmlVocabulary(
        {("url", "template"): L}, {"image": L, "searchform": L, "updateurl": None, "iconupdateurl": None}
    ),
    "opml": XmlVocabulary({("outline", "htmlurl"): L, ("outline", "xmlurl"): L, ("outline", "url"): L}),
    "xbel": XmlVocabulary({("bookmark", "href"): L}),
    "kml": XmlVocabulary({}, {"href": L}),
    "smil": XmlVocabulary({("a", "href"): L, ("area", "href"): L, ("*", "src"): E}),
    "asx": XmlVocabulary({("moreinfo", "href"): L, ("logurl", "href"): None}),
    "playlist": XmlVocabulary({}, {"image": E, "info": L, "identifier": None, "license": L, "link": L}),
}
_PLAYED = {
    "asx": XmlVocabulary({(name, "href"): L for name in ("ref", "entryref", "banner", "logo")}),
    "playlist": XmlVocabulary({}, {"location": L}),
}


def vocabulary_of(root: str, hop: Hop) -> XmlVocabulary:
    """Return the vocabulary of a document with this *root* that was reached by *hop*."""
    known, played = _KNOWN.get(root, XmlVocabulary()), _PLAYED.get(root, XmlVocabulary())
    by = E if hop is Hop.REQUISITE else L
    return XmlVocabulary(
        {**known.attributes, **dict.fromkeys(played.attributes, by)}, {**known.texts, **dict.fromkeys(played.texts, by)}
    )


class AnyVocabulary:
    """Reads a document of any vocabulary tag by tag, including the HTML and SVG in it."""

    def __init__(self, address: str, known: XmlVocabulary) -> None:
        self.bases = XmlBases(address)
        self._known = known
        self._pieces: list[str] = []
        self._length = 0

    @property
    def found(self) -> LinkCollector:
        """The references found so far."""
        return self.bases.found

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        self._pieces, self._length = [], 0
        self.bases.enter(attributes)
        name = tag.rpartition("}")[2].lower()
        if name == "base" or (name == "meta" and attributes.get("name") == "base"):  # ASX and SMIL
            attrs = {key.lower(): value for key, value in attributes.items()}
            self.bases.move(as_written(attrs.get("href") or attrs.get("content") or ""))
        if attributes:
            if tag.startswith((XHTML, SVG)):
                self.bases.embed(name, attributes)
            else:
                self._read(tag, name, attributes)

    def _read(self, tag: str, name: str, attributes: Attributes) -> None:
        known = self._known.attributes
        for key, escaped in attributes.items():
            value = as_written(escaped).strip()
            plain = key.rpartition("}")[2].lower()
            hop: Hop | None = L
            if tag == _INCLUDE and plain == "href":
                hop = E
            elif key == _XLINK + "href":
                hop = E if attributes.get(_XLINK + "show") == "embed" else L
            elif (name, plain) in known or ("*", plain) in known:
                hop = known.get((name, plain), known.get(("*", plain)))
            elif plain in _NAMES_ONLY or not WHOLE.fullmatch(value):
                continue
            if "{" not in value:
                self.bases.add(value, hop, f"{name}/@{plain}")

    def data(self, text: str) -> None:
        """Process a piece of text."""
        self._length += len(text)
        if self._length <= LONGEST:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        """Process an end tag."""
        if self._pieces and self._length <= LONGEST:
            name = tag.rpartition("}")[2].lower()
            text = "".join(self._pieces).strip()
            if tag in (XHTML + "style", SVG + "style"):
                for reference, context in css.references(text):
                    self.bases.add(reference, E, f"style/{context}")
            elif name in self._known.texts or WHOLE.fullmatch(text):
                self.bases.add(text, self._known.texts.get(name, L), name)
        self._pieces, self._length = [], 0
        self.bases.leave()

    def pi(self, target: str, content: str | None = None) -> None:
        """Process a processing instruction."""
        add_stylesheet(self.found, target, content)

    def close(self) -> None:
        """Do nothing: all tags have been processed."""


def add_stylesheet(found: LinkCollector, target: str, content: str | None) -> None:
    """Add the style sheet that an xml-stylesheet instruction names."""
    by = _SHEET.search(content or "") if target == "xml-stylesheet" else None
    if by:
        found.add(html.unescape(by[2]), E, "xml-stylesheet")
