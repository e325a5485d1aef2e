"""Read a well-formed page by splitting it at its tags. Most pieces occurred on other pages of the site and are cached.

A piece is a tag, a comment, or an element whose content is text. Its meaning depends on nothing else, so it is cached
by its text, limited in number and length. Only forms, bases and the like are processed again on each page. The result
is exact: every piece is read by `markup.Scanner`, and a page is rejected if any piece is.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from archiver.extract.collector import MOST_LINKS, USELESS, References
from archiver.extract.html import markup
from archiver.extract.html.elements import NAMES, Elements
from archiver.model import Hop

MOST = 1 << 20  # characters of a page: its pieces take more memory than the page itself
_LONGEST = 256  # characters of a cached piece
_REMEMBERED = 4096

SCANNER = markup.Scanner(NAMES)
ONCE = frozenset(("html", "head", "body"))  # whether such a tag counts depends on what precedes it
_STATEFUL = frozenset(("base", "button", "form", "input", "select", markup.COMMENT))  # these affect later tags

_S = r"[\t\n\f\r ]*+"


def _raw(name: str) -> str:
    """Return a pattern for an element *name* with text content, up to the end of the page if it is not closed."""
    return rf"{name}(?=[\t\n\f\r />])[^<>]*+>[^<]*+(?:<(?!/{name})[^<]*+)*+(?:</{name}{_S}>)?+"


# Elements and attributes without URLs. Most tags of a page consist only of these.
PLAIN = (
    *("abbr", "article", "aside", "b", "br", "code", "dd", "div", "dl", "dt", "em", "figcaption", "figure", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "label", "li", "main", "nav", "ol", "p", "pre"),
    *("section", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "time", "tr", "ul"),
)
_DULL = (
    r"(?:class|id|title|lang|dir|role|name|target|alt|width|height|loading|decoding|datetime)=\"[^\"<>]*+\""
    r"|rel=\"[^\"<>fF]*+\""  # not "nofollow"
    r"|data-(?:[a-rt-z-]|s(?!et))++=\"[^\"<>/.&({\[]*+\""  # a number or a word; not "set", where any value is a URL
)
# Descriptions differ on each page but hold no URL: they do not start like one, nor contain "nofollow".
_DESCRIPTION = (
    r"meta (?:name|property)=\"(?:(?:og|twitter):)?(?:title|description|author|keywords|date)\""
    r" content=\"(?!/|[hH][tT])[^\"<>&nN]*+(?:(?:[nN](?![oO][nNfF])|&(?!#))[^\"<>&nN]*+)*+\" ?/?>"
)
_BEFORE = rf"(?:[ \n]++(?:{_DULL}))*+[ \n]++"
_REST = rf"(?=\"(?:[ \n]++(?:{_DULL}))*+[ \n]*+/?>)"  # the rest of a tag without further URLs
_PIECE = re.compile(
    rf"<(?!/[a-z][a-z0-9]*+>|(?:{markup.alternatives((*PLAIN, 'body'))})(?: (?:{_DULL}))*+>|title>[^<]*+</title>"
    rf"|{_DESCRIPTION})"
    # Of the most common tags in their usual form only the URL is kept …
    rf"(?:a{_BEFORE}href=\"(?!(?i:javascript):)([^\"<>{{]++){_REST}"
    rf"|(?:img{_BEFORE}(?=src=\"[^\"<>]++{_REST}))?+((?<!<)src=\"[^\"<>]++"
    # … of all others the whole tag, and of torn tags nothing.
    r"|(?<=<)(?:(?=[st!i])"
    rf"(?:{'|'.join(map(_raw, ('script', 'style', 'title', 'textarea', 'iframe')))}"
    r"|!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?+)"
    r"|[^<>]*+>|)))"
)
_LINKED = "a/@href"


class TagReferences(NamedTuple):
    """The references of a tag, or the tags themselves if they must be processed on each page."""

    references: References
    tags: tuple[markup.Tag, ...] = ()


class NotWellFormedError(Exception):
    """The page is not well-formed, or a tag depends on those before it: it needs a parser."""


def read_elements(source: str) -> tuple[Elements, list[str]]:
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
        elif result := _read_piece_cached(piece) if len(piece) <= _LONGEST else _read_piece(piece):
            elements.found.add_all(result.references)
            for tag in result.tags:
                add_tag(tag, elements, hidden)
    if len(references) > MOST_LINKS:
        raise NotWellFormedError
    return elements, hidden


def _pieces(source: str) -> list[tuple[str, str]]:
    """Return the pieces of *source*: pairs of a link's URL and "", or of "" and another piece."""
    if "\0" in source or len(source) > MOST:
        raise NotWellFormedError
    return _PIECE.findall(source.replace("\r\n", "\n").replace("\r", "\n") if "\r" in source else source)


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
        or probe.found.full
        or probe.needs_context
    )
    if more or not _STATEFUL.isdisjoint(names):
        return TagReferences((), tuple(tags))
    return None if probe.found.empty else TagReferences(tuple(probe.found.references.items()))


_read_piece_cached = lru_cache(maxsize=_REMEMBERED)(_read_piece)
