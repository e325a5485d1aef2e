"""The tags and texts of an XML document, reported to a target as they come; no tree is built.

libxml2 reads what is well-formed. At the first fatal error it stops, because its recovery takes quadratic time: a
document of 2 kB, packed, would keep it busy for minutes. `_scan` then reads the text from its beginning. It is linear
in the length of the text, whatever stands there, and makes the same sense of broken markup as a person would.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from html.entities import html5
from typing import Protocol, TypeVar

from lxml import etree

from archiver.extract.html.elements import Attributes

DEEPEST = 10_000  # elements that are open at once in a broken text; one more is read as a sibling
_LONGEST_NAME = 256  # characters of a name with its namespace: libxml2 repeats a namespace for each element
_PIECE = 1 << 16

_PREDEFINED = {"amp": "&#38;", "lt": "&#60;", "gt": "&#62;", "quot": "&#34;", "apos": "&#39;"}
_AMPERSAND = re.compile(
    r"<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+|<!--[^-]*+(?:-(?!->)[^-]*+)*+"  # where it is but a character
    r"|&(?:(amp|lt|gt|quot|apos);|(?!#(?:[0-9]++|x[0-9a-fA-F]++);|[a-zA-Z_][\w.-]*+;))"
)
_START = re.compile(r"<([^\W\d][\w.-]*+(?::[\w.-]++)?+)")
_ATTRIBUTE = re.compile(
    r"[\s/]*+([^\s<>/=\"']++)(?:\s*+=\s*+(?:"
    r"\"([^\"<]*+)\"|'([^'<]*+)'|\"([^\"]*+)\"(?=\s|/?>)|'([^']*+)'(?=\s|/?>)|([^\s\"'<>]++)))?+"
)
_TAG_END = re.compile(r"[^<>]*+>?+")  # in a torn tag all up to the next one is passed over
_END = re.compile(r"</([^\s<>/]*+)[^<>]*+>?+")
_DOCTYPE = re.compile(
    r"[^\[<>]*+(?:\[(?:[^\]\"'<]++|\"[^\"]*+\"|'[^']*+'|<!--[^-]*+(?:-(?!->)[^-]*+)*+-->|<)*+\])?+[^<>]*+>?+"
)
_ENTITY = re.compile(r"<!ENTITY\s++([\w.-]++)\s++(?:\"([^\"&%<]{0,1000}+)\"|'([^'&%<]{0,1000}+)')\s*+>")
_REFERENCE = re.compile(r"&(?:#(?:([0-9]{1,7})|[xX]([0-9a-fA-F]{1,6}))|([\w.-]{1,100}));")
_MOST_EXPANDED = 1 << 20  # characters that entities of the document may become
_XML = "http://www.w3.org/XML/1998/namespace"


class XmlTarget(Protocol):
    """Who is told of what stands in a document. It may have a method `pi` for processing instructions."""

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take in a start tag."""

    def data(self, text: str) -> None:
        """Take in a piece of text."""

    def end(self, tag: str) -> None:
        """Take in an end tag."""

    def close(self) -> object:
        """The text is at its end."""


Pieces = Callable[[], Iterator[str]]
Told = TypeVar("Told", bound=XmlTarget)


def parse_xml(pieces: Pieces, make: Callable[[], Told]) -> tuple[Told, bool]:
    """The target that *make* makes, told of all that stands in *pieces*; and whether that is well-formed.

    A text in which single ampersands are the only fault, the commonest of all, counts as well-formed.
    """
    target = make()
    if _parse(pieces(), target):
        return target, True
    text = "".join(pieces())
    mended = _AMPERSAND.sub(_by_number, text) if "&" in text else text
    if mended != text:
        target = make()
        if _parse((mended[start : start + _PIECE] for start in range(0, len(mended), _PIECE)), target):
            return target, True
    target = make()
    with suppress(etree.LxmlError):  # the target has had enough
        _BrokenXml(text, target).run()
    return target, False


def _by_number(found: re.Match[str]) -> str:
    """The character that *found* stands for, by its number."""
    name = found[1]
    if name:
        return _PREDEFINED[name]
    return "&#38;" if found[0] == "&" else found[0]


class _Guard:
    """Tells a target of tags whose names are of a sane length, and refuses the document at the first that is not."""

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
    """Tell *target* of what is in *pieces* up to the first fatal error; whether there was none."""
    parser = etree.XMLParser(
        target=_Guard(target),
        encoding="utf-8",
        recover=False,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,  # bounds depth, and what entities expand to
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
    """One reading of a broken *text*. Each character is come to a bounded number of times."""

    def __init__(self, text: str, target: XmlTarget) -> None:
        self._text = text
        self._target = target
        self._instruction: Callable[[str, str], None] | None = getattr(target, "pi", None)
        self._open: list[tuple[str, str, list[tuple[str, str | None]]]] = []  # name, tag, and the prefixes it hides
        self._names: dict[str, int] = {}  # of the elements that are open
        self._spaces: dict[str, str] = {"xml": _XML}
        self._entities: dict[str, str] = {}
        self._expanded = 0  # characters that they have become
        self._missing: set[str] = set()  # ends of comments and the like that do not come any more
        self._over = False  # the root has ended

    def run(self) -> None:
        """Tell the target of everything."""
        text, position = self._text, 0
        while not self._over:
            start = text.find("<", position)
            self._say(text[position : start if start >= 0 else len(text)])
            if start < 0:
                break
            position = self._markup(start)
        self._target.close()

    def _say(self, text: str) -> None:
        if text and self._open:
            self._target.data(_REFERENCE.sub(self._meant, text) if "&" in text else text)

    def _markup(self, start: int) -> int:
        """Read what begins with the angle bracket at *start*; the place behind it."""
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
            self._missing.add("!")  # there is no second one
            return self._declare(start)
        self._say("<")
        return start + 1

    def _find(self, end: str, position: int) -> int:
        """Where *end* stands behind *position*; that it does not is found out once."""
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
            attributes.setdefault(found[1], _REFERENCE.sub(self._meant, value) if "&" in value else value)
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
        """Read an end tag. It ends all that is open within its element; where none is open it ends nothing."""
        found = _END.match(self._text, start)
        if found is None:
            return start + 2
        if self._names.get(found[1], 0):
            while self._close_last() != found[1]:
                pass
        return found.end()

    def _close_last(self) -> str:
        """End the innermost element; its name."""
        name, tag, hidden = self._open.pop()
        self._names[name] -= 1
        self._target.end(tag)
        for prefix, space in reversed(hidden):
            if space is None:
                self._spaces.pop(prefix, None)
            else:
                self._spaces[prefix] = space
        self._over = not self._open
        return name

    def _meant(self, reference: re.Match[str]) -> str:
        """The characters that a *reference* stands for: those of XML, of the document, and of HTML."""
        decimal, hexadecimal, name = reference.groups()
        if name:
            own = self._entities.get(name, "") if self._expanded < _MOST_EXPANDED else ""
            self._expanded += len(own)
            return own or html5.get(f"{name};", reference[0])
        number = int(decimal) if decimal else int(hexadecimal, 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
