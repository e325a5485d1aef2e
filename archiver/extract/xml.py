"""XML documents, read by the vocabulary of their root; also sitemap files, XML or text, plain or gzip.

XHTML and SVG are read as HTML, and an XSL style sheet as the HTML that it produces. `parse_xml` reports tags and text,
also of broken documents; it reads no other file. XHTML that is not well-formed is also read as HTML, because servers
and pages mislabel it. Only the bytes of a sitemap decide its format, not its name or type.

Of other XML there are tables for a few vocabularies. In these, relative URLs are read as well. Elsewhere, a text or
attribute that is entirely an absolute http(s) URL is a link, unless it is only a name; so is an XLink. A path or the
name of a file is a guess if its attribute or element has a name such as `href` or `image`: a script or a style sheet
makes a page of such data. XInclude and embedding XLinks are requisites. Templates (`{searchTerms}`) name nothing to
fetch. In SMIL, ASX and XSPF the media are requisites if the list itself was one, or if showing the document plays them.
References are resolved against the document's address, or `xml:base` of the elements around them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from archiver import url
from archiver.config.expressions import compiled
from archiver.extract import charset, css, deep_zoom, feed, media
from archiver.extract.document import Document
from archiver.extract.html import reader
from archiver.extract.html.elements import Elements
from archiver.extract.html.tables import Attributes
from archiver.extract.references import LinkCollector, a_file, base_of, like_a_url
from archiver.extract.sitemap import BROKEN, LONGEST, ROOTS, SitemapEntries, as_written, lines, written_plainly
from archiver.extract.xml_parser import WHOLE, XHTML, Pieces, ReferenceTarget, add_stylesheet, parse_xml, plain
from archiver.http import content_coding
from archiver.model import Hop, Links
from archiver.policy.speculative import FAULTY_SITEMAP

_MARKUP = frozenset(("html", "svg", "stylesheet", "transform"))
_ROOT = compiled(r"(?:[^<]|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)|<(?![a-zA-Z_]))*+<(?:[\w.-]++:)?([\w.-]++)")
_XSL = "{http://www.w3.org/1999/XSL/Transform}"
_DOCUMENT = re.compile(r"\bdocument\(\s*+(?:'([^'{}]++)'|\"([^\"{}]++)\")")
_NO_BASES = ("{http://www.w3.org/2000/svg}", "{http://www.w3.org/1998/Math/MathML}")  # whose `base` has no meaning
_INCLUDE = "{http://www.w3.org/2001/XInclude}include"
_AT_ONCE = 8 << 20  # bytes of a sitemap that is read by one regular expression if possible


def read_xml(document: Document) -> Links:
    """Return what the document names, by the vocabulary of its root."""
    encoding = charset.of_xml(document.body, document.charset)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return read_xml_text(partial(charset.pieces, document.body, encoding, MOST_BYTES), document, encoding, note)


def read_xml_text(pieces: Pieces, document: Document, encoding: str, note: str = "") -> Links:
    """Read the XML text in *pieces* like `read_xml`; the body of *document* itself is not used."""
    root = _ROOT.match(next(pieces(), "").lstrip())
    name = root[1].lower() if root else ""
    if name in ROOTS:
        found = written_plainly("".join(pieces())) if len(document.body) <= _AT_ONCE else None
        if found is not None:
            return found.links(document.url, encoding, note, queries="utf-8")
        entries, whole = parse_xml(pieces, SitemapEntries)
        return entries.links(document.url, encoding, note or ("" if whole else BROKEN))
    if name in _MARKUP:
        return _read_markup(pieces, document, encoding, note)
    if name == "mpd":
        found, left_out = media.read_dash(pieces, document.url)
        return found.links(document.url, encoding, note or left_out, queries="utf-8")
    if name in feed.ROOTS:
        feed_reader, _ = parse_xml(pieces, partial(feed.FeedReader, document.url))
        return feed_reader.found.links(document.url, encoding, note, queries="utf-8")
    if name in deep_zoom.ROOTS:
        description, _ = parse_xml(pieces, deep_zoom.Description)
        found, left_out = deep_zoom.collected(description.tiles(document.url))
        if not found.empty:
            return found.links(document.url, encoding, note or left_out)
    known = vocabulary_of(name, document.hop)
    target, _ = parse_xml(pieces, partial(AnyVocabulary, document.url, known))
    return target.found.links(document.url, encoding, note, queries="utf-8")


def _read_markup(pieces: Pieces, document: Document, encoding: str, note: str) -> Links:
    markup, whole = parse_xml(pieces, _Markup)
    elements = markup.elements
    links = elements.found.links(base_of(document.url, elements.base), encoding, note)
    links = replace(links, nofollow=tuple(elements.nofollow))
    if whole or not markup.page:
        return links
    repaired = reader.read_html(document)
    return links if len(links.links) > len(repaired.links) else repaired  # HTML ignores all after an empty script


class _Markup:
    """Reads XHTML, SVG or XSL, tag by tag."""

    def __init__(self) -> None:
        self.elements = Elements()
        self.page = False  # the root is XHTML
        self._has_root = False
        self._text: list[str] | None = None  # of the current style or script
        self._attributes: Attributes = {}  # of that style or script

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        name = tag.rpartition("}")[2].lower()
        if name == "base" and tag.startswith(_NO_BASES):
            return
        if not self._has_root:
            self._has_root, self.page = True, name == "html"
        if tag.startswith(_XSL):
            self._xsl_element(name, attributes)
            return
        if tag == _INCLUDE:
            self.elements.found.add(as_written(attributes.get("href", "")), Hop.REQUISITE, "include/@href")
        values = {plain(key): as_written(value) for key, value in attributes.items()}
        values = {key: value for key, value in values.items() if "{" not in value or key == "style"}
        self.elements.start_any(name, values)
        if name in ("style", "script"):
            self._text, self._attributes = [], values

    def _xsl_element(self, name: str, attributes: Attributes) -> None:
        """Process an element of XSL itself."""
        if name in ("import", "include"):
            self.elements.found.add(as_written(attributes.get("href", "")), Hop.REQUISITE, f"xsl:{name}/@href")
        for key in ("select", "match", "test"):
            for called in _DOCUMENT.finditer(as_written(attributes.get(key, ""))):
                self.elements.found.add(called[1] or called[2], Hop.REQUISITE, f"xsl:{name}/document()")

    def data(self, text: str) -> None:
        """Process a piece of text."""
        if self._text is not None:
            self._text.append(text)

    def end(self, tag: str) -> None:
        """Process an end tag."""
        name = tag.rpartition("}")[2].lower()
        if self._text is not None and name in ("style", "script"):
            text = "".join(self._text)
            self._text = None
            if name == "style":
                self.elements.style(text)
            else:
                self.elements.script(self._attributes, text)

    def pi(self, target: str, content: str | None = None) -> None:
        """Process a processing instruction."""
        add_stylesheet(self.elements.found, target, content)

    def close(self) -> None:
        """Do nothing: all tags have been processed."""


MOST_BYTES = 50 << 20  # limit of sitemaps.org


def read_text_sitemap(document: Document) -> Links:
    """Return the entries of the sitemap: pages as LINK, further sitemaps as MANIFEST."""
    body, note = document.body, ""
    if body.startswith(b"\x1f\x8b"):
        body, note = content_coding.decoded(body, ("gzip",), MOST_BYTES)
        note = f"{FAULTY_SITEMAP}{note}" if note else ""
    elif len(body) > MOST_BYTES:
        note = f"only the first {MOST_BYTES} bytes"
    encoding = charset.of_xml(body, document.charset)
    pieces = partial(charset.pieces, body, encoding, MOST_BYTES)
    if next(pieces(), "").lstrip().startswith("<"):
        return read_xml_text(pieces, replace(document, body=body), encoding, note)
    found = LinkCollector()
    for line in lines(pieces()):
        address = line.strip()
        if address[:8].lower().startswith(("http://", "https://")):
            found.add(address, Hop.LINK, "line")
        if found.full:
            break
    return found.links(document.url, encoding, note, queries="utf-8")


SVG = "{http://www.w3.org/2000/svg}"

_XLINK = "{http://www.w3.org/1999/xlink}"
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


_ADDRESS = compiled(  # the name of an attribute or an element that holds a URL in data of a site's own
    r"(?:\w*+[_.-])?+(?:(?:link|file|image|img|photo|picture|pic|thumb(?:nail)?|poster|icon|audio|video|page)s?+)"
    r"|\w*(?:href|src|ur[il])",
    re.IGNORECASE,
)
_OF_PAGES = ("href", "src", "url", "uri", "link", "page")
_KNOWN = {
    "browserconfig": XmlVocabulary({("polling-uri", "src"): None, ("*", "src"): E}),
    # Its image is shown in the list of search engines, not on a page.
    "opensearchdescription": XmlVocabulary(
        {("url", "template"): L}, {"image": L, "searchform": L, "updateurl": None, "iconupdateurl": None}
    ),
    "opml": XmlVocabulary({("outline", "htmlurl"): L, ("outline", "xmlurl"): L, ("outline", "url"): L}),
    "xbel": XmlVocabulary({("bookmark", "href"): L}),
    "kml": XmlVocabulary({}, {"href": L}),
    "container": XmlVocabulary({("rootfile", "full-path"): Hop.SPECULATIVE}),  # of an unpacked EPUB
    "package": XmlVocabulary({("item", "href"): Hop.SPECULATIVE}),
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
    played_hop = E if hop is Hop.REQUISITE else L
    return XmlVocabulary(
        {**known.attributes, **dict.fromkeys(played.attributes, played_hop)},
        {**known.texts, **dict.fromkeys(played.texts, played_hop)},
    )


class AnyVocabulary(ReferenceTarget):
    """Reads a document of any vocabulary tag by tag, including the HTML and SVG in it."""

    def __init__(self, address: str, known: XmlVocabulary) -> None:
        super().__init__(address)
        self._known = known

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        self._pieces, self._length = [], 0
        self.enter(attributes)
        name = tag.rpartition("}")[2].lower()
        if name == "base" or (name == "meta" and attributes.get("name") == "base"):  # ASX and SMIL
            attrs = {key.lower(): value for key, value in attributes.items()}
            self.move(as_written(attrs.get("href") or attrs.get("content") or ""))
        if attributes:
            if tag.startswith((XHTML, SVG)):
                self.embed(name, attributes)
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
                value = f"../{value}" if plain == "full-path" else value  # from the folder above META-INF
            elif plain in _NAMES_ONLY or not WHOLE.fullmatch(value):
                if name == "base" or not _is_guess(plain, value):
                    continue
                hop = Hop.SPECULATIVE
            if "{" not in value:
                self.add(value, hop, f"{name}/@{plain}")

    def end(self, tag: str) -> None:
        """Process an end tag."""
        if self._pieces and self._length <= LONGEST:
            name = tag.rpartition("}")[2].lower()
            text = "".join(self._pieces).strip()
            if tag in (XHTML + "style", SVG + "style"):
                for reference, context in css.references(text):
                    self.add(reference, E, f"style/{context}")
            elif name in self._known.texts or WHOLE.fullmatch(text):
                self.add(text, self._known.texts.get(name, L), name)
            elif _is_guess(name, text):
                self.add(text, Hop.SPECULATIVE, name)
        self._pieces, self._length = [], 0
        self.leave()


def _is_guess(name: str, value: str) -> bool:
    """Return whether *value*, of an attribute or element with this *name*, is a path, or the name of a file or page."""
    if not value or not _ADDRESS.fullmatch(name) or name in _NAMES_ONLY or not like_a_url(value) or WHOLE.match(value):
        return False
    path = value.partition("#")[0].partition("?")[0]
    if path.startswith("/") and "." not in path:
        return name.endswith(_OF_PAGES)
    return path.rpartition(".")[2].lower() in url.PAGE_ENDINGS or a_file(value, near=True)
