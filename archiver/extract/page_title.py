"""Title and visible text of an HTML page, for page lists and full-text search.

Markup, scripts, styles and noscript content are not text. White space is collapsed. A well-formed page is split at its
tags by a regular expression, in a third of the time that libxml2 needs. At markup that parsers may read in different
ways, the page goes to libxml2, which builds no tree. Linear, with bounded input and output.
"""

from contextlib import suppress
from html import unescape
from itertools import chain, pairwise
from typing import NamedTuple

from lxml import etree

from archiver.config.expressions import compiled
from archiver.extract import charset
from archiver.extract.document import Document

MOST_TEXT = 100 << 10  # characters of text: a long book chapter; what people search for comes earlier
MOST_TITLE = 500
MOST_BYTES = 4 << 20  # bytes of a page; longer pages are mostly data

_MOST_SPLIT = 1 << 19  # characters of a page that is split: all its pieces are in memory
_PIECE = 1 << 16  # bytes between two checks if there is enough text
_HEAD = 4 << 10  # bytes that have the title of most pages
_DEEPEST = 2000  # nested elements; libxml2 searches all open elements at each end tag
_UNSEEN = frozenset(("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "noframes", "head"))
_INLINE = frozenset(  # may occur inside a word
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("ins", "kbd", "mark", "q", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time"),
        *("tt", "u", "var", "wbr"),
    )
)
_RAW = ("title", "textarea", "plaintext", "xmp", "noembed")  # tags in them are text

_S = r"[\t\n\f\r ]"
_ENDS = r"(?=[\t\n\f\r />])"
_VALUE = r"\"[^\"]*+\"|'[^']*+'|[^\t\n\f\r \"'<>=`]++"
_ATTRIBUTES = rf"(?:{_S}++(?:[^\t\n\f\r \"'<>/=]++(?:=(?:{_VALUE}))?+)?+)*+/?+>"
_NAME = r"[a-zA-Z][a-zA-Z0-9-]*+"


def _whole(name: str) -> str:
    """Return a pattern for an element *name* that is not shown, up to its end."""
    no = rf"/?{name}{_ENDS}" + ("|!--" if name == "script" else "")  # such a script may go on after its end tag
    return rf"{name}{_ENDS}{_ATTRIBUTES}(?<!/>)[^<]*+(?:<(?!{no})[^<]*+)*+</{name}{_S}*+>"


_HIDDEN = sorted(_UNSEEN - {"head"})
_SECOND = "".join(sorted({name[1] for name in _HIDDEN}))
_NOT_SHOWN = (
    rf"(?=[a-z][{_SECOND}])(?:{'|'.join(map(_whole, _HIDDEN))})"
    r"|!--(?!-?>)[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?+|(?:\?|![dD])[^<>]*+>"
)
_OTHER = rf"/?(?!(?:{'|'.join((*_HIDDEN, *_RAW))}){_ENDS}){_NAME}{_ATTRIBUTES}"
_TITLE = rf"title{_ENDS}{_ATTRIBUTES}"
_UP_TO_TITLE = compiled(rf"[^<]*+(?:<(?:{_NOT_SHOWN}|{_OTHER})[^<]*+)*+<{_TITLE}([^<]*+)</title{_S}*+>")
_MARKUP = compiled(rf"<(?:{_NOT_SHOWN}|{_TITLE}[^<]*+</title{_S}*+>|(/?{_NAME}){_ATTRIBUTES})")


class PageText(NamedTuple):
    """Title and text of a page; "" if it has none."""

    title: str
    text: str


def read_page_text(document: Document, *, text: bool = True) -> PageText:
    """Return the title and, if wanted, the text of the page. Never raises."""
    encoding = charset.of_html(document.body, document.charset)
    source = charset.text(document.body[:MOST_BYTES], encoding)
    found = split_page(source, wants_text=text) or parse_page(source.encode("utf-8", "replace"), wants_text=text)
    return PageText(_collapsed(found.title)[:MOST_TITLE].rstrip(), _collapsed(found.text)[:MOST_TEXT].rstrip())


def _collapsed(text: str) -> str:
    return " ".join(text.split())


class _Separators(dict[str | None, str]):
    """What separates the texts around a tag, by its name; "<" if the page must be parsed."""

    def __missing__(self, name: str | None) -> str:
        return self.get((name or "").lower(), " ")


_SEPARATORS = _Separators()
_SEPARATORS |= {slash + name: "" for name in _INLINE for slash in ("", "/")}
_SEPARATORS |= {slash + name: "<" for name in (*_HIDDEN, *_RAW) for slash in ("", "/")}
_SEPARATORS |= {slash + name: " " for name in ("div", "li", "p", "section", "td", "tr", "ul") for slash in ("", "/")}
_SEPARATORS[None] = ""  # what is not shown


def split_page(source: str, *, wants_text: bool) -> PageText | None:
    """Return title and text as they stand in *source*; None if it has no title, or is not certainly well-formed."""
    if "\0" in source or len(source) > _MOST_SPLIT:
        return None
    titled = _UP_TO_TITLE.match(source)
    if not titled:
        return None
    text = ""
    if wants_text:
        pieces = _MARKUP.split(source)  # texts, and between them the names of tags
        pieces[1::2] = map(_SEPARATORS.__getitem__, pieces[1::2])
        text = "".join(pieces)
        if "<" in text:
            return None
    return PageText(unescape(titled[1]), unescape(text))


def parse_page(source: bytes, *, wants_text: bool) -> PageText:
    """Return title and text as libxml2 finds them in *source* (UTF-8)."""
    reader = _TextReader(wants_text=wants_text)
    parser = etree.HTMLParser(target=reader, encoding="utf-8", recover=True, huge_tree=True, no_network=True)
    with suppress(etree.LxmlError):  # raised for a text without markup; what was read counts
        first = _PIECE if wants_text else _HEAD
        for start, end in pairwise(chain((0,), range(first, len(source), _PIECE), (len(source),))):
            parser.feed(source[start:end])
            if reader.satisfied:
                reader.stop()
                break
        parser.close()
    return PageText("".join(reader.title), "".join(reader.text))


class _TextReader:
    """Target of libxml2's parser."""

    def __init__(self, *, wants_text: bool) -> None:
        self.title: list[str] = []
        self.text: list[str] = []
        self._wants_text = wants_text
        self._depth = 0
        self._unseen = 0  # open elements that are not shown
        self._drawn = 0  # open svg and math elements, whose title is not the page's
        self._in_title = False
        self._titled = False
        self._length = 0

    @property
    def satisfied(self) -> bool:
        """True if the rest of the page is not needed."""
        text_done = not self._wants_text or self._length > 2 * MOST_TEXT  # before white space is collapsed
        return self._depth > _DEEPEST or (text_done and self._titled)

    def stop(self) -> None:
        """Ignore everything from now on: at its end the parser takes half a tag for text."""
        self._wants_text = self._in_title = False

    def start(self, tag: str, attributes: object) -> None:
        """Process a start tag."""
        del attributes
        self._depth += 1
        if tag in _UNSEEN:
            self._unseen += 1
            self._drawn += tag in ("svg", "math")
        elif tag == "title":
            self._in_title = not (self._titled or self._drawn)
        elif tag not in _INLINE:
            self._add_text(" ")

    def end(self, tag: str) -> None:
        """Process an end tag."""
        self._depth -= 1
        if tag in _UNSEEN:
            self._unseen -= 1
            self._drawn -= tag in ("svg", "math")
        elif tag == "title":
            self._titled = self._titled or self._in_title
            self._in_title = False
        elif tag not in _INLINE:
            self._add_text(" ")

    def data(self, text: str) -> None:
        """Process a piece of text."""
        if self._in_title:
            if len(self.title) < MOST_TITLE:
                self.title.append(text[: 4 * MOST_TITLE])
        else:
            self._add_text(text)

    def _add_text(self, text: str) -> None:
        if self._wants_text and not self._unseen and self._length <= 2 * MOST_TEXT:
            self.text.append(text)
            self._length += len(text)

    def close(self) -> None:
        """Do nothing: all tags have been processed."""
