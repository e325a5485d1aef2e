"""The visible texts of a page's links, for hooks: a pass of its own, so that crawls without hooks do not pay for it.

The text of an `a` element is what it shows, with the alternative texts of its pictures; `area` and `img` have their
alternative texts. White space is collapsed. Markup is read by libxml2, and no tree is built. Linear, with bounded input
and output.
"""

from collections.abc import Mapping
from contextlib import suppress

from archiver.extract import charset
from archiver.extract.document import Document, Kind, kind_of
from archiver.extract.html.reader import DEEPEST_ELEMENT, TooDeepError, feed, without_inert_bases
from archiver.extract.html.tables import Attributes
from archiver.extract.references import MOST_LINKS, USELESS, UrlJoiner, base_of
from archiver.model import Hop

LONGEST_TEXT = 300  # characters of a text
MOST_BYTES = 8 << 20  # bytes of a page
_UNSEEN = frozenset(("script", "style", "template"))
_INLINE = frozenset(  # do not separate words
    ("abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "mark", "s", "small", "span", "strong", "u")
)


def link_texts(document: Document) -> Mapping[tuple[str, Hop], str]:
    """Return the texts of the links in *document*, by URL and hop; nothing if it is no page.

    If a page names a URL more than once, the first text counts. Links without a text are left out.
    """
    if document.media_type != "application/xhtml+xml" and kind_of(document) is not Kind.HTML:
        return {}
    encoding = charset.of_html(document.body, document.charset)
    source = without_inert_bases(charset.text(document.body[:MOST_BYTES], encoding))
    reader = _LinkReader()
    with suppress(TooDeepError):  # what was read counts
        feed(source.encode("utf-8", "replace"), reader)
    joiner = UrlJoiner(base_of(document.url, reader.base), encoding)
    found: dict[tuple[str, Hop], str] = {}
    for (reference, hop), text in reader.texts.items():
        if text and (address := joiner.join(reference)):
            found.setdefault((address, hop), text)
    return found


class _LinkReader:
    """Target of libxml2's parser."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, Hop], str] = {}  # by reference as written
        self.base: str | None = None
        self._depth = 0
        self._reference = ""  # of the open link
        self._pieces: list[str] = []  # of its text
        self._unseen = 0  # open elements that are not shown

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        self._depth += 1
        if self._depth > DEEPEST_ELEMENT:
            raise TooDeepError
        if tag == "a":
            self._end_link()
            self._reference = attributes.get("href", "")
        elif tag == "img":
            text = attributes.get("alt", "")
            self._add(attributes.get("src", ""), Hop.REQUISITE, text)
            self._show(f" {text} ")
        elif tag == "area":
            self._add(attributes.get("href", ""), Hop.LINK, attributes.get("alt", ""))
        elif tag == "base":
            self.base = attributes.get("href") if self.base is None else self.base
        elif tag in _UNSEEN:
            self._unseen += 1
        elif tag not in _INLINE:
            self._show(" ")

    def end(self, tag: str) -> None:
        """Process an end tag."""
        self._depth -= 1
        if tag == "a":
            self._end_link()
        elif tag in _UNSEEN:
            self._unseen -= 1
        elif tag not in _INLINE:
            self._show(" ")

    def data(self, text: str) -> None:
        """Process a piece of text."""
        self._show(text)

    def _show(self, text: str) -> None:
        if self._reference and not self._unseen:
            self._pieces.append(text)

    def _end_link(self) -> None:
        if self._reference:
            self._add(self._reference, Hop.LINK, "".join(self._pieces))
        self._reference = ""
        self._pieces.clear()

    def _add(self, reference: str, hop: Hop, text: str) -> None:
        reference = reference.strip("\t\n\f\r ")
        useless = not reference or reference.startswith(USELESS) or len(self.texts) >= MOST_LINKS
        if not useless and not self.texts.get((reference, hop)):
            self.texts[reference, hop] = " ".join(text.split())[:LONGEST_TEXT].rstrip()

    def close(self) -> None:
        """Process the link that is still open."""
        self._end_link()
