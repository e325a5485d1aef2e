"""A well-written page cut at its tags, and what each piece says: most pieces stood on another page of the site before.

A piece is a tag, a comment, or a whole element whose content is text. What it says depends on nothing else, so it is
remembered by its spelling (bounded in number and in length); only forms, bases and the like are told anew on each page.
Exact, because each piece is read by `markup.Scanner`: a page of which it takes every piece is one that it takes whole.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from archiver.extract.collector import MOST_LINKS, USELESS, Kept
from archiver.extract.html import markup
from archiver.extract.html.elements import NAMES, Elements
from archiver.model import Hop

MOST = 1 << 20  # characters of a page that is cut: what it is cut into takes more memory than the page itself
_LONGEST = 256  # characters of a piece that is remembered
_REMEMBERED = 4096

SCANNER = markup.Scanner(NAMES)
ONCE = frozenset(("html", "head", "body"))  # whether such a tag counts depends on what stands before it
_IN_TURN = frozenset(("base", "button", "form", "input", "select", markup.COMMENT))  # these mean something to others

_S = r"[\t\n\f\r ]*+"


def _raw(name: str) -> str:
    """A whole element of this *name*, whose content is text; without an end, all that is left."""
    return rf"{name}(?=[\t\n\f\r />])[^<>]*+>[^<]*+(?:<(?!/{name})[^<]*+)*+(?:</{name}{_S}>)?+"


# Elements and attributes that say nothing, where there are no others: most tags of a page are these.
PLAIN = (
    *("abbr", "article", "aside", "b", "br", "code", "dd", "div", "dl", "dt", "em", "figcaption", "figure", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "label", "li", "main", "nav", "ol", "p", "pre"),
    *("section", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "time", "tr", "ul"),
)
_DULL = (
    r"(?:class|id|title|lang|dir|role|name|target|alt|width|height|loading|decoding|datetime)=\"[^\"<>]*+\""
    r"|rel=\"[^\"<>fF]*+\""  # not "nofollow"
    r"|data-(?:[a-rt-z-]|s(?!et))++=\"[^\"<>/.&({\[]*+\""  # a number or a word; without "set", where any is an address
)
# What is written anew for each page, and leads nowhere: it does not begin as an address, nor speaks of "nofollow".
_DESCRIPTION = (
    r"meta (?:name|property)=\"(?:(?:og|twitter):)?(?:title|description|author|keywords|date)\""
    r" content=\"(?!/|[hH][tT])[^\"<>&nN]*+(?:(?:[nN](?![oO][nNfF])|&(?!#))[^\"<>&nN]*+)*+\" ?/?>"
)
_BEFORE = rf"(?:[ \n]++(?:{_DULL}))*+[ \n]++"
_REST = rf"(?=\"(?:[ \n]++(?:{_DULL}))*+[ \n]*+/?>)"  # of a tag that says no more
_PIECE = re.compile(
    rf"<(?!/[a-z][a-z0-9]*+>|(?:{markup.alternatives((*PLAIN, 'body'))})(?: (?:{_DULL}))*+>|title>[^<]*+</title>"
    rf"|{_DESCRIPTION})"
    # Of the commonest tags, where they are written as most people do, the address is all that is taken …
    rf"(?:a{_BEFORE}href=\"(?!(?i:javascript):)([^\"<>{{]++){_REST}"
    rf"|(?:img{_BEFORE}(?=src=\"[^\"<>]++{_REST}))?+((?<!<)src=\"[^\"<>]++"
    # … of all others the whole; of what is torn, nothing.
    r"|(?<=<)(?:(?=[st!i])"
    rf"(?:{'|'.join(map(_raw, ('script', 'style', 'title', 'textarea', 'iframe')))}"
    r"|!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?+)"
    r"|[^<>]*+>|)))"
)
_LINKED = "a/@href"


class TagReferences(NamedTuple):
    """What a tag says: references, or the tags that must be told in their turn."""

    kept: Kept
    tags: tuple[markup.Tag, ...] = ()


class NotWellFormedError(Exception):
    """The page is not written as it should be, or what a tag says depends on those before it: a parser is needed."""


def read_elements(source: str) -> tuple[Elements, list[str]]:
    """The elements of *source*, and the markup in its conditional comments."""
    elements, hidden = Elements(), list[str]()
    references, link = elements.found.references, Hop.LINK
    for written, piece in _cut(source):
        if written:
            address = markup.unescaped(written) if "&" in written else written
            if address is not written and (address[0] in "jJ" or "{" in address or "<" in address):
                elements.start_any("a", {"href": address})
            elif address[0] in "#dmt" and address.startswith(USELESS):  # most begin otherwise
                continue
            elif references.setdefault((address, link), _LINKED) is not _LINKED:
                elements.found.add(address, link, _LINKED)
        elif said := _remembered(piece) if len(piece) <= _LONGEST else _said(piece):
            elements.found.take(said.kept)
            for tag in said.tags:
                add_tag(tag, elements, hidden)
    if len(references) > MOST_LINKS:
        raise NotWellFormedError
    return elements, hidden


def _cut(source: str) -> list[tuple[str, str]]:
    """The pieces of *source*, each the address of a link alone or, behind an empty one, another piece."""
    if "\0" in source or len(source) > MOST:
        raise NotWellFormedError
    return _PIECE.findall(source.replace("\r\n", "\n").replace("\r", "\n") if "\r" in source else source)


def add_tag(tag: markup.Tag, elements: Elements, hidden: list[str]) -> None:
    """Tell *elements* of one *tag*; markup that is text to a parser goes to *hidden*."""
    name, attributes, text = tag
    if name == markup.COMMENT:
        hidden += markup.conditional(text)
        return
    elements.start_any(name, attributes)
    if name == "style":
        elements.style(text)
    elif text:
        elements.script(attributes, text)


def _said(piece: str) -> TagReferences | None:
    """What *piece* says; None where it says nothing."""
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
        or probe.asks
    )
    if more or not _IN_TURN.isdisjoint(names):
        return TagReferences((), tuple(tags))
    return None if probe.found.empty else TagReferences(tuple(probe.found.references.items()))


_remembered = lru_cache(maxsize=_REMEMBERED)(_said)
