"""Feeds and JSON manifests: RSS of all versions, Atom with its extensions, JSON Feed, and web app manifests.

Atom's extensions are Media RSS, OPDS and podcasts. Entries, comments, enclosures and further feeds are links; pictures
of the feed and its entries are requisites. HTML in entries, escaped or not, is read as a page. An identifier is a link
only if it says so, or if the entry has no other link. Relative URLs are resolved against xml:base or the feed.
Endpoints for programs that write (rssCloud, hubs, rel=edit) and templates name nothing to fetch.

In a manifest, pictures are requisites, and the start URLs of the app and its shortcuts are links. Its scope, its share
targets and related apps in stores name nothing to fetch.
"""

import html
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from lxml import etree

from archiver import url
from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.html import reader
from archiver.extract.html.tables import Attributes, relation_hop
from archiver.extract.references import like_a_url
from archiver.extract.sitemap import LONGEST, as_written
from archiver.extract.xml_parser import WHOLE, XHTML, ReferenceTarget, XmlBases, parse_xml
from archiver.model import Hop, Links

ROOTS = frozenset(("rss", "feed", "rdf", "entry"))
_DEEPEST = 100_000  # open elements, also in feeds that close none; each takes memory
_LONGEST_HTML = 1 << 20  # characters of one entry
_MOST_HTML = 20_000  # texts with tags; a feed of ten thousand entries is large
L, E = Hop.LINK, Hop.REQUISITE

_ATTRIBUTES: dict[tuple[str, str], Hop | None] = {
    ("enclosure", "url"): L,
    ("content", "url"): L,
    ("content", "src"): L,
    ("player", "url"): L,
    ("transcript", "url"): L,
    ("chapters", "url"): L,
    ("chapter", "href"): L,
    ("chapter", "image"): E,
    ("person", "img"): E,
    ("source", "url"): L,
    ("source", "uri"): L,
    ("thumbnail", "url"): E,
    ("image", "href"): E,
    ("category", "scheme"): None,
    ("category", "domain"): None,
    ("category", "term"): None,
    ("scheme", "uri"): None,
    ("generator", "url"): L,  # Atom 0.3
    ("generator", "uri"): L,
}
_NAMES = frozenset(("about", "base", "rel", "type", "scheme", "term", "domain", "version", "role"))
_TEXTS: dict[str, Hop | None] = {"link": L, "uri": L, "icon": E, "logo": E, "cloud": None, "generatoragent": None}
_ADDRESSES = frozenset(("comments", "commentrss", "url"))  # may also be the number of comments
_FOR_PROGRAMS = re.compile(
    r"edit|edit-media|hub|pingback|replies#post|service|service\.(?:edit|post|resume|upload|categories|subscribe)"
    r"|http://schemas\.google\.com/.*+"
)
_PICTURE = re.compile(
    r"icon|logo|image|(?:apple-touch-)?icon|http://opds-spec\.org/(?:image|cover|thumbnail).*+|x-stanza-cover-image.*+"
)
_HTML_TEXTS = frozenset(
    ("description", "encoded", "summary", "content", "subtitle", "title", "rights", "tagline", "info", "copyright")
)
_ENTRIES = frozenset(("item", "entry"))
_HTML_TYPES = frozenset(("html", "text/html"))
_NOT_HTML_TYPES = frozenset(("text", "text/plain", "plain", "xhtml"))
_TAGS = frozenset(
    ("a", "p", "div", "span", "img", "iframe", "figure", "table", "ul", "ol", "br", "blockquote", "video")
)


class FeedReader(ReferenceTarget):
    """Reads a feed, tag by tag."""

    longest_text = _LONGEST_HTML

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._open_names: list[str] = []  # names of the open elements
        self._pages = 0  # number of texts that were read as HTML
        self._entry_id = ""  # identifier of this entry, if it is a URL
        self._has_link = False  # true if this entry has a link
        self._type = ""  # type attribute of the current element

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        if len(self._open_names) >= _DEEPEST:
            raise etree.LxmlError(f"more than {_DEEPEST} elements are open")
        self._pieces, self._length = [], 0
        self.enter(attributes)
        name = tag.rpartition("}")[2].lower()
        self._open_names.append(name)
        self._type = ""
        if name in _ENTRIES:
            self._entry_id, self._has_link = "", False
        if not attributes:
            return
        if tag.startswith(XHTML) or name in _TAGS:
            self.embed(name, attributes)
            return
        plain = {key.rpartition("}")[2].lower(): as_written(value).strip() for key, value in attributes.items()}
        self._type = plain.get("ispermalink", plain.get("type", "")).lower()
        picture = plain.get("medium") == "image" or self._type.startswith("image/")
        if name == "link" and "href" in plain:
            self._has_link = True
            self.add(plain["href"], _relation_hop(plain.get("rel", ""), plain["href"], picture=picture), "link/@href")
            return
        for key, value in plain.items():
            hop = _ATTRIBUTES.get((name, key), L if key not in _NAMES and WHOLE.fullmatch(value) else None)
            self.add(value, E if hop and picture else hop, f"{name}/@{key}")

    def end(self, tag: str) -> None:
        """Process an end tag."""
        name = tag.rpartition("}")[2].lower()
        if self._open_names:
            self._open_names.pop()
        if self._pieces and self._length <= _LONGEST_HTML:
            self._text(name, "".join(self._pieces))
        self._pieces, self._length = [], 0
        if name in _ENTRIES and not self._has_link:
            self.add(self._entry_id, L, f"{name}/id")
        self.leave()

    def _text(self, name: str, text: str) -> None:
        if "<" in text:
            if self._type in _HTML_TYPES or (name in _HTML_TEXTS and self._type not in _NOT_HTML_TYPES):
                self._pages += 1
                if self._pages > _MOST_HTML or self.found.full:
                    return
                page = Document(self.current, "text/html", "utf-8", text.encode("utf-8", "replace"))
                self.add_links(reader.read_html(page), name)
            return
        text = text.strip()
        if len(text) > LONGEST:
            return
        whole = WHOLE.fullmatch(text)
        parent = self._open_names[-1] if self._open_names else ""
        if name == "id" or (name == "guid" and self._type == "false"):
            self._entry_id = text if whole else ""
        elif name == "guid":
            self.add(text, L if whole else None, name)
        elif name == "url" and parent == "image":
            self.add(text, E, "image/url")
        elif name in _TEXTS or whole or (name in _ADDRESSES and like_a_url(text)):
            self._has_link |= name == "link"
            self.add(text, E if name == "image" else _TEXTS.get(name, L), name)


def _relation_hop(relation: str, reference: str, *, picture: bool) -> Hop | None:
    """Return the hop of a link with this *relation*; a *picture* is shown with its entry."""
    relation = relation.strip().lower()
    if "{" in reference or _FOR_PROGRAMS.fullmatch(relation):
        return None
    if _PICTURE.fullmatch(relation) or (picture and relation in ("enclosure", "preview", "")):
        return E
    return relation_hop(relation)


MOST_TITLED = 50 << 20  # bytes of a feed whose titles are read
_LONGEST_TITLE = 4096  # characters
_MOST_LINKS = 3  # of one article
_TAG = re.compile(r"<[^<>]{0,200}>")


def article_titles(content: bytes) -> dict[str, str]:
    """Return the titles of the articles of the feed *content*, RSS or Atom, by their canonical URLs."""
    encoding = charset.of_xml(content, None)
    target, _ = parse_xml(partial(charset.pieces, content, encoding, MOST_TITLED), _ArticleTitles)
    return target.titles


class _ArticleTitles:
    """Reads the titles of a feed, tag by tag."""

    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self._depth = 0  # the article is 1, its title is 2; 0: outside of articles
        self._links: list[str] = []
        self._title = ""
        self._html = False
        self._pieces: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        name = tag.rpartition("}")[2].lower()
        if self._depth or name in _ENTRIES:
            self._depth += 1
        if self._depth == 1:
            self._links, self._title = [], ""
        elif self._depth == 2:
            self._pieces, self._length = [], 0
            self._html = as_written(attributes.get("type", "")) in _HTML_TYPES
            if name == "link" and as_written(attributes.get("rel", "alternate")) == "alternate":
                self._add(as_written(attributes.get("href", "")))

    def data(self, text: str) -> None:
        """Process a piece of text."""
        self._length += len(text)
        if self._depth >= 2 and self._length <= _LONGEST_TITLE:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        """Process an end tag."""
        name = tag.rpartition("}")[2].lower()
        text = "".join(self._pieces).strip() if self._depth == 2 and name in ("title", "link") else ""
        if text and name == "title" and not self._title:
            self._title = html.unescape(_TAG.sub("", text) if self._html else text)
        elif text and name == "link":
            self._add(text)
        if self._depth == 1 and self._title:
            for link in self._links:
                self.titles.setdefault(link, self._title)
        self._depth = max(0, self._depth - 1)

    def close(self) -> None:
        """Do nothing: all tags have been processed."""

    def _add(self, link: str) -> None:
        if len(self._links) < _MOST_LINKS and (address := url.canonical(link)):
            self._links.append(address)


MOST_BYTES = 16 << 20
_MOST_ITEMS = 20_000
_DEEPEST_MANIFEST = 20
_PICTURES = ("icons", "screenshots")  # of the app, its shortcuts and its file handlers
_FEED = {"home_page_url": L, "feed_url": L, "next_url": L, "icon": E, "favicon": E}
_ITEM = {"url": L, "external_url": L, "image": E, "banner_image": E}
_AUTHOR = {"url": L, "avatar": E}
_ATTACHMENT = {"url": L}


def read_manifest(document: Document) -> Links:
    """Return what the web app manifest names."""
    encoding, manifest, note = _loaded(document)
    bases = XmlBases(document.url)
    if isinstance(manifest, dict):
        _add_keys(bases, manifest, {"start_url": L}, "")
        for picture, where in _pictures(manifest, 0):
            _add_keys(bases, picture, {"src": E}, where)
        for shortcut in _objects(manifest.get("shortcuts")):
            _add_keys(bases, shortcut, {"url": L}, "shortcuts/")
        _add_keys(bases, manifest.get("note_taking"), {"new_note_url": L}, "note_taking/")
    return bases.found.links(document.url, encoding, note, queries="utf-8")


def read_feed(document: Document) -> Links:
    """Return what the JSON feed names."""
    encoding, feed, note = _loaded(document)
    bases = XmlBases(document.url)
    if isinstance(feed, dict):
        _add_keys(bases, feed, _FEED, "")
        _people(bases, feed)
        for item in _objects(feed.get("items"))[:_MOST_ITEMS]:
            _add_keys(bases, item, _ITEM, "items/")
            _people(bases, item)
            for attachment in _objects(item.get("attachments")):
                _add_keys(bases, attachment, _ATTACHMENT, "attachments/")
            content = item.get("content_html")
            if isinstance(content, str) and "<" in content:
                page = Document(document.url, "text/html", "utf-8", content.encode("utf-8", "replace"))
                bases.add_links(reader.read_html(page), "content_html")
    return bases.found.links(document.url, encoding, note, queries="utf-8")


def _loaded(document: Document) -> tuple[str, Any, str]:
    """Return the encoding, the parsed JSON value, and what was wrong with it."""
    encoding = charset.marked(document.body) or "utf-8"  # RFC 8259: always UTF-8, whatever the header says
    if len(document.body) > MOST_BYTES:
        return encoding, None, f"more than {MOST_BYTES} bytes of JSON"
    try:
        return encoding, json.loads(charset.text(document.body, encoding), parse_int=len, parse_float=len), ""
    except (ValueError, RecursionError):
        return encoding, None, "no JSON"


def _pictures(value: Any, depth: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each picture in *value* and the list that contains it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside if depth < _DEEPEST_MANIFEST else ():
        if key in _PICTURES:
            yield from ((picture, f"{key}/") for picture in _objects(inner))
        elif key != "related_applications":
            yield from _pictures(inner, depth + 1)


def _people(bases: XmlBases, value: dict[str, Any]) -> None:
    for author in (value.get("author"), *_objects(value.get("authors"))):
        _add_keys(bases, author, _AUTHOR, "authors/")


def _objects(value: Any) -> list[dict[str, Any]]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _add_keys(bases: XmlBases, value: Any, keys: dict[str, Hop], where: str) -> None:
    """Add the references under the *keys* of an object."""
    for key, hop in keys.items():
        reference = value.get(key) if isinstance(value, dict) else None
        if isinstance(reference, str):
            bases.add(reference, hop, f"{where}{key}")
