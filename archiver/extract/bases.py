"""Where the references of an XML document start: its address, or what `xml:base` says, element by element."""

from archiver import url
from archiver.extract.elements import Attributes, Elements
from archiver.extract.entries import as_written
from archiver.extract.found import Found
from archiver.model import Hop, Links

_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_LONGEST = 2048  # characters of a base; a hundred thousand elements may add to it
_NAMESPACES = {"http://www.w3.org/1999/xlink": "xlink:"}


class Bases:
    """The base that holds now, told of each element's beginning and end; it finds what is added against it."""

    def __init__(self, address: str) -> None:
        self.found = Found()
        self.current = address
        self._address = address
        self._depth = 0
        self._outer: list[tuple[int, str]] = []  # the depth of an element that says a base, and what held outside

    def enter(self, attributes: Attributes) -> None:
        """An element begins."""
        self._depth += 1
        if attributes and _BASE in attributes:
            self._outer.append((self._depth, self.current))
            self.move(as_written(attributes[_BASE]))

    def move(self, base: str) -> None:
        """The *base* that holds from here on, as it stands there."""
        if len(base) + len(self.current) <= _LONGEST:
            self.current = url.join(self.current, base.strip()) or self.current

    def leave(self) -> None:
        """An element ends."""
        while self._outer and self._outer[-1][0] >= self._depth:
            self.current = self._outer.pop()[1]
        self._depth -= 1

    def embed(self, name: str, attributes: Attributes) -> None:
        """Read an element of HTML or SVG, whose local *name* this is."""
        elements = Elements()
        elements.start_any(name, {plain(key): as_written(value) for key, value in attributes.items()})
        if not elements.found.empty:
            self.take(elements.found.links(self.current, "utf-8"))

    def take(self, links: Links, where: str = "") -> None:
        """Keep *links*, which were found in a part of the document, in an element named *where*."""
        for link in links.links:
            self.found.add(link.url, link.hop, f"{where}/{link.context}" if where else link.context)

    def add(self, reference: str, hop: Hop | None, context: str) -> None:
        """Keep *reference* if it may name something to fetch."""
        if hop and reference:
            moved = self.current != self._address
            self.found.add(url.join(self.current, reference.strip()) if moved else reference, hop, context)


def plain(name: str) -> str:
    """The *name* of an attribute as HTML has it: without its namespace, but for that of XLink."""
    space, _, local = name.rpartition("}")
    return _NAMESPACES.get(space[1:], "") + local if space else name
