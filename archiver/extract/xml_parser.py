"""Parse XML: report tags and text to a target as they are read, and resolve references against xml:base.

No tree is built. libxml2 reads well-formed documents. It stops at the first fatal error, because its recovery takes
quadratic time: a compressed document of 2 kB could keep it busy for minutes. `_BrokenXml` then reads the text again
from its start. It is linear in the length of any text, and interprets broken markup as a person would.
"""

import html
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from html.entities import html5
from typing import Protocol, TypeVar

from lxml import etree

from archiver import url
from archiver.config.expressions import compiled
from archiver.extract.html.elements import Elements
from archiver.extract.html.tables import Attributes
from archiver.extract.references import LinkCollector
from archiver.extract.sitemap import LONGEST, as_written
from archiver.model import Hop, Links

DEEPEST = 10_000  # open elements in a broken text; a deeper one is read as a sibling
_LONGEST_NAME = 256  # characters of a name with its namespace, which libxml2 repeats for each element
_PIECE = 1 << 16

_PREDEFINED = {"amp": "&#38;", "lt": "&#60;", "gt": "&#62;", "quot": "&#34;", "apos": "&#39;"}
_AMPERSAND = compiled(
    r"<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+|<!--[^-]*+(?:-(?!->)[^-]*+)*+"  # places where & is an ordinary character
    r"|&(?:(amp|lt|gt|quot|apos);|(?!#(?:[0-9]++|x[0-9a-fA-F]++);|[a-zA-Z_][\w.-]*+;))"
)
_START = compiled(r"<([^\W\d][\w.-]*+(?::[\w.-]++)?+)")
_ATTRIBUTE = compiled(
    r"[\s/]*+([^\s<>/=\"']++)(?:\s*+=\s*+(?:"
    r"\"([^\"<]*+)\"|'([^'<]*+)'|\"([^\"]*+)\"(?=\s|/?>)|'([^']*+)'(?=\s|/?>)|([^\s\"'<>]++)))?+"
)
_TAG_END = re.compile(r"[^<>]*+>?+")  # a torn tag is skipped up to the next tag
_END = re.compile(r"</([^\s<>/]*+)[^<>]*+>?+")
_DOCTYPE = compiled(
    r"[^\[<>]*+(?:\[(?:[^\]\"'<]++|\"[^\"]*+\"|'[^']*+'|<!--[^-]*+(?:-(?!->)[^-]*+)*+-->|<)*+\])?+[^<>]*+>?+"
)
_ENTITY = re.compile(r"<!ENTITY\s++([\w.-]++)\s++(?:\"([^\"&%<]{0,1000}+)\"|'([^'&%<]{0,1000}+)')\s*+>")
_REFERENCE = re.compile(r"&(?:#(?:([0-9]{1,7})|[xX]([0-9a-fA-F]{1,6}))|([\w.-]{1,100}));")
_MOST_EXPANDED = 1 << 20  # characters from entities of the document
_XML = "http://www.w3.org/XML/1998/namespace"


class XmlTarget(Protocol):
    """Receives the parts of a document. May have a method `pi` for processing instructions."""

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""

    def data(self, text: str) -> None:
        """Process a piece of text."""

    def end(self, tag: str) -> None:
        """Process an end tag."""

    def close(self) -> object:
        """Finish the document."""


Pieces = Callable[[], Iterator[str]]
Target = TypeVar("Target", bound=XmlTarget)


def parse_xml(pieces: Pieces, make: Callable[[], Target]) -> tuple[Target, bool]:
    """Report the XML in *pieces* to a target built by *make*; return the target, and whether the XML is well-formed.

    Bare ampersands, the most common fault, are corrected; a text without other faults counts as well-formed.
    """
    target = make()
    if _parse(pieces(), target):
        return target, True
    text = "".join(pieces())
    mended = _AMPERSAND.sub(_escape_ampersand, text) if "&" in text else text
    if mended != text:
        target = make()
        if _parse((mended[start : start + _PIECE] for start in range(0, len(mended), _PIECE)), target):
            return target, True
    target = make()
    with suppress(etree.LxmlError):  # raised by the target to stop
        _BrokenXml(text, target).run()
    return target, False


def _escape_ampersand(found: re.Match[str]) -> str:
    """Return the ampersand or predefined entity *found* as a numeric reference."""
    name = found[1]
    if name:
        return _PREDEFINED[name]
    return "&#38;" if found[0] == "&" else found[0]


class _Guard:
    """Passes tags to a target, and rejects the document at the first overlong name."""

    def __init__(self, target: XmlTarget) -> None:
        self._start = target.start
        self.end = target.end
        self.data = target.data
        self.close = target.close
        instruction = getattr(target, "pi", None)
        if instruction is not None:
            self.pi = instruction

    def start(self, tag: str, attributes: Attributes) -> None:
        if len(tag) > _LONGEST_NAME or (attributes and max(map(len, attributes)) > _LONGEST_NAME):
            raise etree.LxmlError("a name is too long")
        self._start(tag, attributes)


def _parse(pieces: Iterator[str], target: XmlTarget) -> bool:
    """Report *pieces* to *target* up to the first fatal error; return True if there was none."""
    parser = etree.XMLParser(
        target=_Guard(target),
        encoding="utf-8",
        recover=False,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,  # limits depth and entity expansion
    )
    try:
        parser.feed(next(pieces, "").lstrip().encode("utf-8", "replace"))
        for piece in pieces:
            parser.feed(piece.encode("utf-8", "replace"))
        parser.close()
    except etree.LxmlError:
        return False
    return True


class _BrokenXml:
    """One reading of a broken *text*. Each character is visited a bounded number of times."""

    def __init__(self, text: str, target: XmlTarget) -> None:
        self._text = text
        self._target = target
        self._instruction: Callable[[str, str], None] | None = getattr(target, "pi", None)
        self._open: list[tuple[str, str, list[tuple[str, str | None]]]] = []  # name, tag, and the prefixes it redefines
        self._names: dict[str, int] = {}  # number of open elements by name
        self._spaces: dict[str, str] = {"xml": _XML}
        self._entities: dict[str, str] = {}
        self._expanded = 0  # characters from entities so far
        self._missing: set[str] = set()  # end marks that do not occur any more
        self._ended = False  # the root element has ended

    def run(self) -> None:
        """Report everything to the target."""
        text, position = self._text, 0
        while not self._ended:
            start = text.find("<", position)
            self._add_text(text[position : start if start >= 0 else len(text)])
            if start < 0:
                break
            position = self._markup(start)
        self._target.close()

    def _add_text(self, text: str) -> None:
        if text and self._open:
            self._target.data(_REFERENCE.sub(self._resolve, text) if "&" in text else text)

    def _markup(self, start: int) -> int:
        """Process the markup at *start*, an angle bracket; return its end."""
        text = self._text
        if tag := _START.match(text, start):
            return self._start(tag)
        if text.startswith("</", start):
            return self._end(start)
        if text.startswith("<!--", start) and (end := self._find("-->", start + 4)) >= 0:
            return end + 3
        if text.startswith("<![CDATA[", start):
            end = self._find("]]>", start + 9)
            if self._open:
                self._target.data(text[start + 9 : end if end >= 0 else len(text)])
            return end + 3 if end >= 0 else len(text)
        if text.startswith("<?", start) and (end := self._find("?>", start + 2)) >= 0:
            name, _, content = text[start + 2 : end].partition(" ")
            if self._instruction is not None and name.lower() != "xml":
                self._instruction(name, content)
            return end + 2
        if text.startswith("<!DOCTYPE", start) and "!" not in self._missing:
            self._missing.add("!")  # only the first counts
            return self._declare(start)
        self._add_text("<")
        return start + 1

    def _find(self, end: str, position: int) -> int:
        """Return the position of *end* after *position*, or -1; a missing mark is searched for only once."""
        found = -1 if end in self._missing else self._text.find(end, position)
        if found < 0:
            self._missing.add(end)
        return found

    def _declare(self, start: int) -> int:
        found = _DOCTYPE.match(self._text, start + 9)
        end = found.end() if found else start + 9
        for name, double, single in _ENTITY.findall(self._text, start, end):
            self._entities.setdefault(name, double or single)
        return end

    def _start(self, tag: re.Match[str]) -> int:
        attributes: dict[str, str] = {}
        position = tag.end()
        while found := _ATTRIBUTE.match(self._text, position):
            position = found.end()
            value = found[2] or found[3] or found[4] or found[5] or found[6] or ""
            attributes.setdefault(found[1], _REFERENCE.sub(self._resolve, value) if "&" in value else value)
        rest = _TAG_END.match(self._text, position)
        end = rest.end() if rest else position
        if len(self._open) >= DEEPEST:
            self._close_last()
        self._enter(tag[1], attributes)
        if self._text.endswith("/>", position, end):
            self._close_last()
        return end

    def _enter(self, name: str, attributes: dict[str, str]) -> None:
        hidden: list[tuple[str, str | None]] = []
        for key in [key for key in attributes if key.startswith("xmlns")]:
            if key == "xmlns" or key.startswith("xmlns:"):
                prefix = key[6:]
                hidden.append((prefix, self._spaces.get(prefix)))
                self._spaces[prefix] = attributes.pop(key)[:_LONGEST_NAME]
        tag = self._qualified(name, self._spaces.get("", ""))
        self._open.append((name, tag, hidden))
        self._names[name] = self._names.get(name, 0) + 1
        self._target.start(tag, {self._qualified(key, ""): value for key, value in attributes.items()})

    def _qualified(self, name: str, default: str) -> str:
        prefix, colon, local = name.partition(":")
        space = self._spaces.get(prefix, "") if colon else default
        return f"{{{space}}}{local if colon else name}" if space else name

    def _end(self, start: int) -> int:
        """Process an end tag. It closes everything open inside its element; without an open one it does nothing."""
        found = _END.match(self._text, start)
        if found is None:
            return start + 2
        if self._names.get(found[1], 0):
            while self._close_last() != found[1]:
                pass
        return found.end()

    def _close_last(self) -> str:
        """Close the innermost element; return its name."""
        name, tag, hidden = self._open.pop()
        self._names[name] -= 1
        self._target.end(tag)
        for prefix, space in reversed(hidden):
            if space is None:
                self._spaces.pop(prefix, None)
            else:
                self._spaces[prefix] = space
        self._ended = not self._open
        return name

    def _resolve(self, reference: re.Match[str]) -> str:
        """Return the characters that a *reference* means: those of XML, of the document, and of HTML."""
        decimal, hexadecimal, name = reference.groups()
        if name:
            own = self._entities.get(name, "") if self._expanded < _MOST_EXPANDED else ""
            self._expanded += len(own)
            return own or html5.get(f"{name};", reference[0])
        number = int(decimal) if decimal else int(hexadecimal, 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"


_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_LONGEST_BASE = 2048  # characters of a base; each of many nested elements may extend it
_NAMESPACES = {"http://www.w3.org/1999/xlink": "xlink:"}
_SHEET = re.compile(r"\bhref\s*+=\s*+([\"'])([^\"'<]*+)\1")
XHTML = "{http://www.w3.org/1999/xhtml}"
WHOLE = re.compile(r"https?://[^\s<>\"{}]++", re.IGNORECASE)


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
        if len(base) + len(self.current) <= _LONGEST_BASE:
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


class ReferenceTarget(XmlBases):
    """A target of `parse_xml` that adds references, and keeps the text of the current element."""

    longest_text = LONGEST

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._pieces: list[str] = []
        self._length = 0

    def data(self, text: str) -> None:
        """Process a piece of text."""
        self._length += len(text)
        if self._length <= self.longest_text:
            self._pieces.append(text)

    def pi(self, target: str, content: str | None = None) -> None:
        """Process a processing instruction."""
        add_stylesheet(self.found, target, content)

    def close(self) -> None:
        """Do nothing: all tags have been processed."""


def plain(name: str) -> str:
    """Return the attribute *name* as in HTML: without its namespace, except that of XLink."""
    space, _, local = name.rpartition("}")
    return _NAMESPACES.get(space[1:], "") + local if space else name


def add_stylesheet(found: LinkCollector, target: str, content: str | None) -> None:
    """Add the style sheet that an xml-stylesheet instruction names."""
    sheet = _SHEET.search(content or "") if target == "xml-stylesheet" else None
    if sheet:
        found.add(html.unescape(sheet[2]), Hop.REQUISITE, "xml-stylesheet")
