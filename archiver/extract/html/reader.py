"""Read HTML, well-formed or not.

A well-formed page is split at its tags by one regular expression. A piece is a tag, a comment, or an element whose
content is text. Its meaning depends on nothing else, so it is cached by its text, limited in number and length: most
pieces occurred on other pages of the site. Only forms, bases and the like are processed again on each page. The result
is exact: every piece is read by `markup.Scanner`, and a page is rejected if any piece is.

All other markup is read by libxml2's parser, which reports tags, comments and text as it parses. No tree is built, so
that depth and number of attributes cost no more than their bytes. Markup that only some browsers or scripts process is
read too: conditional comments, noframes, templates in scripts, and srcdoc attributes; each three levels deep.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import unquote

from lxml import etree

from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.html import markup
from archiver.extract.html.elements import NAMES, Elements
from archiver.extract.html.tables import Attributes
from archiver.extract.references import MOST_LINKS, REFRESH, USELESS, References, UrlJoiner, base_of, without_own_path
from archiver.extract.script import generators, javascript, whole_page
from archiver.model import Hop, Link, Links

MOST_BYTES = 32 << 20
_DEEPEST = 3  # levels of documents in documents and comments in comments
_MOST_TABLES = 3  # tables of one page; each is compared with all its references
_MOST_PARTS = 1000  # parts of each level
DEEPEST_ELEMENT = 1000  # nested elements: libxml2 searches all of them at each end tag; browsers stop at 512
_CHUNK = 1 << 16  # bytes read at a time, and as a document of its own if the nesting is too deep
LONGEST_FAST = 1 << 20  # characters of a page: its pieces take more memory than the page itself
_LONGEST_PIECE = 256  # characters of a cached piece
_REMEMBERED = 4096

SCANNER = markup.Scanner(NAMES)
ONCE = frozenset(("html", "head", "body"))  # whether such a tag counts depends on what precedes it
_LINKED = "a/@href"
_STATEFUL = frozenset(("base", "button", "form", "input", "select", markup.COMMENT))  # these affect later tags

_TEXTS = re.compile(rb"<s(?:tyle|cript)|no(?:frames|embed)|<!--[\t\n\f\r ]{0,20}\[[\t\n\f\r ]{0,20}if\b")
_PLAIN_TEXT = ("style", "script", "noframes", "noembed")
_SHOWN = re.compile(r"[?&]file=([^&#]{1,2000})")  # the document that PDF.js shows in its page
_INERT = re.compile(r"<(?:(!--)|(script)|(template|noscript|svg|math))(?![\w-])", re.IGNORECASE | re.ASCII)
_BASE = re.compile(r"<base(?![\w-])[^<>]*+>?+", re.IGNORECASE | re.ASCII)
_BODY = re.compile(r"<body\s[^<>]{1,2000}>", re.IGNORECASE | re.ASCII)
_MOST_BODIES = 10  # of one page
_ENDS = {
    name: re.compile(f"</{name}", re.IGNORECASE | re.ASCII)
    for name in ("script", "template", "noscript", "svg", "math")
}
_HTML_AGAIN = re.compile(  # elements in SVG and MathML that contain HTML, and tags that end them
    r"<(?:foreignobject|desc|title|annotation-xml|b|big|blockquote|body|br|center|code|dd|div|dl|dt|em|embed|h[1-6]|head"
    r"|hr|i|img|li|listing|menu|meta|nobr|ol|p|pre|ruby|s|small|span|strong|strike|su[bp]|table|tt|u|ul|var)[\s/>]",
    re.IGNORECASE | re.ASCII,
)


def read_html(document: Document) -> Links:
    """Return what the page names, links and requisites, in document order."""
    encoding = charset.of_html(document.body, document.charset)
    pages = [(charset.text(document.body[:MOST_BYTES], encoding), document.url)]
    notes = {f"only the first {MOST_BYTES} bytes": None} if len(document.body) > MOST_BYTES else {}
    found: dict[tuple[str, Hop], Link] = {}
    nofollow: tuple[str, ...] = ()
    icon, policy = False, ""
    misread = encoding == "windows-1252" and charset.looks_like_utf8(document.body[:MOST_BYTES])
    for depth in range(_DEEPEST):
        framed: list[tuple[str, str]] = []
        for source, address in pages:
            elements = _elements(source)
            base = base_of(address, elements.base)
            if misread:
                elements.found.add_as_utf8(encoding)
            _add_of_page(elements, source, address)
            links = without_own_path(elements.found.links(base, encoding), address)
            if elements.early and base != address:
                links = replace(links, links=_with_early(elements, links.links, UrlJoiner(address, encoding)))
            if elements.refreshes and not depth:
                links = replace(links, links=(*links.links, Link(address, Hop.LINK, REFRESH)))
            nofollow = nofollow if depth else tuple(elements.nofollow)  # of the outermost document
            icon, policy = (icon, policy) if depth else (elements.icon, elements.referrer_policy)
            if not depth and not elements.framed:
                note = "; ".join(filter(None, (*notes, links.note)))
                return Links(links.links, encoding, note, nofollow, icon, referrer_policy=policy)
            for link in links.links:
                found.setdefault((link.url, link.hop), link)
            framed += ((inner, base) for inner in elements.framed)
            notes |= {links.note: None} if links.note else {}
        if len(framed) > _MOST_PARTS or len(found) > MOST_LINKS:
            notes["more documents in documents than are read"] = None
        pages = framed[:_MOST_PARTS] if len(found) < MOST_LINKS else []
    kept = tuple(found.values())[:MOST_LINKS]
    return Links(kept, encoding, "; ".join(notes), nofollow, icon, referrer_policy=policy)


def _add_of_page(elements: Elements, source: str, address: str) -> None:
    """Add the data that scripts of the page *source* load, which need all its references or its address."""
    if elements.tables:
        text = "\n".join(elements.tables[:_MOST_TABLES])
        for reference in list(generators.of_page(text, elements.found.references, address)):
            elements.found.add(reference, Hop.SPECULATIVE, generators.LOADED)
    marked = any(mark in source for mark in whole_page.MARKS)  # few pages are
    for reference, hop in whole_page.references(source, address) if marked else ():
        elements.found.add(reference, hop, generators.LOADED)
    if "/viewer.html?" in address and (shown := _SHOWN.search(address)):
        elements.found.add(unquote(shown[1]), Hop.REQUISITE, "viewer/file")


def _with_early(elements: Elements, links: tuple[Link, ...], joiner: UrlJoiner) -> tuple[Link, ...]:
    """Return *links* plus requisites before the base element, which browsers resolve against the page itself."""
    early = islice(elements.found.references.items(), elements.early)
    loaded = joiner.links({key: context for key, context in early if key[1] is not Hop.LINK})
    known = {(link.url, link.hop): link for link in (*links, *loaded)}
    return tuple(known.values())[:MOST_LINKS]


def _elements(source: str) -> Elements:
    """Return the elements of *source*, and of the markup in its comments, noframes and templates."""
    elements, hidden = _read_source(source)
    if elements.base and (live := without_inert_bases(source)) is not source:
        elements, hidden = _read_source(live)
    elements.base, policy = elements.base or "", elements.referrer_policy  # those in hidden markup do not count
    for _ in range(_DEEPEST - 1):
        parts, templates, hidden = hidden, elements.templates, []
        elements.templates = []
        for part in parts[:_MOST_PARTS]:
            _parse(part, elements, hidden)
        elements.found.in_template = True
        for template in templates[:_MOST_PARTS]:
            _parse(template, elements, hidden)
        elements.found.in_template = False
    elements.referrer_policy = policy
    for reference in javascript.page_urls(source) if "<script" in source else ():
        elements.found.add(reference, Hop.SPECULATIVE, javascript.JOINED)
    return elements


def _read_source(source: str) -> tuple[Elements, list[str]]:
    try:
        return _read_well_formed(source)
    except NotWellFormedError:
        elements, hidden = Elements(), list[str]()
        _parse(source, elements, hidden)
        return elements, hidden


def without_inert_bases(source: str) -> str:
    """Return *source* without base elements in templates, drawings and noscript."""
    live: list[str] = []
    position = kept = 0
    while start := _INERT.search(source, position):
        name = start[2] or start[3]
        end = source.find("-->", start.end()) if start[1] else _end_of(name, source, start.end())
        if end < 0:
            break
        if start[3]:
            live += (source[kept : start.end()], _BASE.sub("", source[start.end() : end]))
            kept = end
        position = end
    return "".join((*live, source[kept:])) if live else source


def _end_of(name: str, source: str, start: int) -> int:
    end = _ENDS[name.lower()].search(source, start)
    if name.lower() not in ("svg", "math"):
        return end.start() if end else -1
    stop = end.start() if end else len(source)
    again = _HTML_AGAIN.search(source, start, stop)
    return again.start() if again else stop


class TagReferences(NamedTuple):
    """The references of a tag, or the tags themselves if they must be processed on each page."""

    references: References
    tags: tuple[markup.Tag, ...] = ()


class NotWellFormedError(Exception):
    """The page is not well-formed, or a tag depends on those before it: it needs a parser."""


def _read_well_formed(source: str) -> tuple[Elements, list[str]]:
    """Return the elements of *source*, and the markup in its conditional comments."""
    elements, hidden = Elements(), list[str]()
    references, hop = elements.found.references, Hop.LINK
    for link, piece in _pieces(source):
        if link:
            address = markup.unescaped(link) if "&" in link else link
            if address is not link and (address[0] in "jJ" or "{" in address or "<" in address):
                elements.start_any("a", {"href": address})
            elif address[0] in "#dmt" and address.startswith(USELESS):  # quick check of the first character
                continue
            elif references.setdefault((address, hop), _LINKED) is not _LINKED:
                elements.found.add(address, hop, _LINKED)
        elif result := _read_piece_cached(piece) if len(piece) <= _LONGEST_PIECE else _read_piece(piece):
            elements.found.add_all(result.references)
            for tag in result.tags:
                add_tag(tag, elements, hidden)
    if len(references) > MOST_LINKS:
        raise NotWellFormedError
    return elements, hidden


def _pieces(source: str) -> list[tuple[str, str]]:
    """Return the pieces of *source*: pairs of a link's URL and "", or of "" and another piece."""
    if "\0" in source or len(source) > LONGEST_FAST:
        raise NotWellFormedError
    return markup.PIECE.findall(source.replace("\r\n", "\n").replace("\r", "\n") if "\r" in source else source)


def add_tag(tag: markup.Tag, elements: Elements, hidden: list[str]) -> None:
    """Add one *tag* to *elements*; markup that parsers treat as text goes to *hidden*."""
    name, attributes, text = tag
    if name == markup.COMMENT:
        hidden += markup.conditional(text)
        return
    elements.start_any(name, attributes)
    if name == "style":
        elements.style(text)
    elif text:
        elements.script(attributes, text)


def _read_piece(piece: str) -> TagReferences | None:
    """Return what *piece* names; None if it names nothing."""
    if piece.startswith('src="') and piece[-1] != ">":
        tags: list[markup.Tag] | None = [("img", {"src": markup.unescaped(piece[5:])}, "")]
    else:
        tags = SCANNER.tags(f"<{piece}")
    if tags is None:
        raise NotWellFormedError
    if not tags:
        return None
    probe, hidden = Elements(), list[str]()
    for tag in tags:
        add_tag(tag, probe, hidden)
    names = {name for name, _, _ in tags}
    if not probe.found.empty and not ONCE.isdisjoint(names):
        raise NotWellFormedError
    more = (
        probe.framed
        or probe.templates
        or probe.tables
        or probe.icon
        or probe.nofollow
        or probe.referrer_policy
        or probe.refreshes
        or probe.found.full
        or probe.needs_context
    )
    if more or not _STATEFUL.isdisjoint(names):
        return TagReferences((), tuple(tags))
    return None if probe.found.empty else TagReferences(tuple(probe.found.references.items()))


_read_piece_cached = lru_cache(maxsize=_REMEMBERED)(_read_piece)


def _parse(source: str, elements: Elements, hidden: list[str]) -> None:
    """Add each tag of *source* to *elements*; markup that parsers treat as text goes to *hidden*."""
    tags = SCANNER.tags(source)
    if tags is None or any(name in ONCE and _has_references(name, attributes) for name, attributes, _ in tags):
        _parse_with_libxml2(source, elements, hidden)
        return
    for tag in tags:
        add_tag(tag, elements, hidden)


def _has_references(name: str, attributes: Attributes) -> bool:
    probe = Elements()
    probe.start_any(name, attributes)
    return not probe.found.empty


def _parse_with_libxml2(source: str, elements: Elements, hidden: list[str]) -> None:
    """Do the same as `_parse` for any markup."""
    encoded = source.encode("utf-8", "replace")
    target: object = SimpleNamespace(start=elements.start_any, close=bool)
    if len(encoded) > _CHUNK or _TEXTS.search(encoded.lower()):
        target = _PageReader(elements, hidden)
    try:
        feed(encoded, target)
    except TooDeepError:
        for piece in _split(encoded):
            feed(piece, _PageReader(elements, hidden, piece=True))
    _add_late_bodies(source, elements)


def _add_late_bodies(source: str, elements: Elements) -> None:
    """Guess what body tags behind the beginning of the body name: browsers add their attributes to it."""
    for tag in islice(_BODY.finditer(source), _MOST_BODIES):
        for name, attributes, _ in SCANNER.tags(tag[0]) or ():
            probe = Elements()
            probe.start_any(name, attributes)
            for (reference, hop), context in probe.found.references.items():
                if (reference, hop) not in elements.found.references:
                    elements.found.add(reference, Hop.SPECULATIVE, context)


def feed(encoded: bytes, target: object) -> None:
    """Let libxml2 read *encoded* and call *target*. Raises what *target* raises, with the end of a chunk."""
    parser = etree.HTMLParser(target=target, encoding="utf-8", recover=True, huge_tree=True, no_network=True)
    with suppress(etree.LxmlError):  # raised for text without markup and for broken markup; what was read counts
        if len(encoded) <= _CHUNK:
            etree.fromstring(encoded, parser)
            return
        for start in range(0, len(encoded), _CHUNK):  # exceptions of the target take effect only between two calls
            parser.feed(encoded[start : start + _CHUNK])
        parser.close()


def _split(encoded: bytes) -> Iterator[bytes]:
    """Split *encoded* before tags into short pieces. A long tag, with an image in an attribute, stays whole."""
    start = 0
    while start < len(encoded):
        limit = start + _CHUNK
        end = encoded.rfind(b"<", start + 1, limit) if limit < len(encoded) else -1
        end = end if end > 0 else encoded.find(b"<", limit)
        end = end if end > 0 else len(encoded)
        yield encoded[start:end]
        start = end


class TooDeepError(Exception):
    """Elements are nested too deeply."""


class _PageReader:
    """Target of libxml2's parser for pages with texts and comments that matter: each callback costs time."""

    def __init__(self, elements: Elements, hidden: list[str], *, piece: bool = False) -> None:
        self._elements = elements
        self._hidden = hidden
        self._piece = piece  # the source is a short piece; its depth does not matter
        self._depth = 0
        self._pieces: list[str] | None = None  # of the current text element
        self._attributes: Attributes = {}  # of that element

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        self._depth += 1
        if self._depth > DEEPEST_ELEMENT and not self._piece:
            raise TooDeepError
        self._elements.start_any(tag, attributes)
        if tag in _PLAIN_TEXT:
            self._pieces = []
            self._attributes = dict(attributes)

    def data(self, text: str) -> None:
        """Process a piece of text."""
        if self._pieces is not None:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        """Process an end tag."""
        self._depth -= 1
        if tag in _PLAIN_TEXT and self._pieces is not None:
            text = "".join(self._pieces)
            self._pieces = None
            if tag == "style":
                self._elements.style(text)
            elif tag == "script":
                self._elements.script(self._attributes, text)
            else:
                self._hidden.append(text)

    def comment(self, text: str) -> None:
        """Process a comment: keep the markup in a conditional one."""
        self._hidden += markup.conditional(text)

    def close(self) -> None:
        """Do nothing: all tags have been processed."""
