"""What a person reads of an HTML page: its title, and the text that is shown, for lists of pages and for searching.

Markup, scripts, styles and what stands only where scripts do not run are no text. White space is one space. libxml2's
parser makes sense of any markup; no tree is built. Linear, and bounded in what is read and in what is given.
"""

from contextlib import suppress
from typing import NamedTuple

from lxml import etree

from archiver.extract import charset
from archiver.extract.document import Document

MOST_TEXT = 100 << 10  # characters of a page's text: a long book chapter; what people search for stands before
MOST_TITLE = 500
MOST_BYTES = 4 << 20  # of a page: longer ones are data in the shape of a page

_PIECE = 1 << 16  # bytes between two looks at whether it is enough
_DEEPEST = 2000  # elements in elements; libxml2 looks through all that are open for the one that a tag ends
_UNSEEN = frozenset(("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "noframes", "head"))
_INLINE = frozenset(  # stand in the middle of a word, if need be
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("ins", "kbd", "mark", "q", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time"),
        *("tt", "u", "var", "wbr"),
    )
)


class PageText(NamedTuple):
    """What is read of a page; "" where it has none."""

    title: str
    text: str


def read_page_text(document: Document, *, text: bool = True) -> PageText:
    """Title and, if wanted, text of the page. Never raises, whatever the bytes are."""
    encoding = charset.of_html(document.body, document.charset)
    source = charset.text(document.body[:MOST_BYTES], encoding).encode("utf-8", "replace")
    reader = _TextReader(wants_text=text)
    parser = etree.HTMLParser(target=reader, encoding="utf-8", recover=True, huge_tree=True, no_network=True)
    with suppress(etree.LxmlError):  # so libxml2 calls a text without markup: what came, came
        for start in range(0, len(source), _PIECE):
            parser.feed(source[start : start + _PIECE])
            if reader.satisfied:
                reader.stop()
                break
        parser.close()
    return PageText(_flowing(reader.title)[:MOST_TITLE].rstrip(), _flowing(reader.text)[:MOST_TEXT].rstrip())


def _flowing(pieces: list[str]) -> str:
    return " ".join("".join(pieces).split())


class _TextReader:
    """What libxml2's parser talks to."""

    def __init__(self, *, wants_text: bool) -> None:
        self.title: list[str] = []
        self.text: list[str] = []
        self._wants_text = wants_text
        self._depth = 0
        self._unseen = 0  # elements that are open of which nothing is shown
        self._drawn = 0  # drawings among them, in which a title is no page's
        self._in_title = False
        self._titled = False
        self._taken = 0

    @property
    def satisfied(self) -> bool:
        """Whether the rest of the page is of no use."""
        text_done = not self._wants_text or self._taken > 2 * MOST_TEXT  # with the white space that is left out
        return self._depth > _DEEPEST or (text_done and self._titled)

    def stop(self) -> None:
        """Take in nothing more: at its end the parser takes half a tag for text."""
        self._wants_text = self._in_title = False

    def start(self, tag: str, attributes: object) -> None:
        """Take in a start tag."""
        del attributes
        self._depth += 1
        if tag in _UNSEEN:
            self._unseen += 1
            self._drawn += tag in ("svg", "math")
        elif tag == "title":
            self._in_title = not (self._titled or self._drawn)
        elif tag not in _INLINE:
            self._say(" ")

    def end(self, tag: str) -> None:
        """Take in an end tag."""
        self._depth -= 1
        if tag in _UNSEEN:
            self._unseen -= 1
            self._drawn -= tag in ("svg", "math")
        elif tag == "title":
            self._titled = self._titled or self._in_title
            self._in_title = False
        elif tag not in _INLINE:
            self._say(" ")

    def data(self, text: str) -> None:
        """Take in a piece of text."""
        if self._in_title:
            if len(self.title) < MOST_TITLE:
                self.title.append(text[: 4 * MOST_TITLE])
        else:
            self._say(text)

    def _say(self, text: str) -> None:
        if self._wants_text and not self._unseen and self._taken <= 2 * MOST_TEXT:
            self.text.append(text)
            self._taken += len(text)

    def close(self) -> None:
        """Nothing is left to do: everything was told as it came."""
