"""rustdoc: the files of its search, in pages and in the branches of its trees, whose nodes name each other by hash.

The root of the index and each file hold nodes in base64, children before their parents. A node has its text, its
children and sets of numbers. None states its length, so all must be read to find the next one. A child is an earlier
node, or a hash of six bytes; if the first bit is set, these bytes are the child itself. A hash refers to another file
unless an earlier node has it. It is the SipHash of the node without its abbreviations. A file is named by its last
node. If that does not match, or if a tree does not end with its bytes, the format is that of another version, and names
nothing. Linear, bounded by the text.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from archiver import url
from archiver.config.expressions import compiled
from archiver.model import Hop

_BRANCH = re.compile(r"rn_\(\s*+[\"']([A-Za-z0-9+/=]++)[\"']\s*+\)")
_NAME = re.compile(r"/([0-9a-f]{12})\.js\Z")
WIDTH = 6  # bytes of a hash
MOST_WRITTEN = 4 << 20  # bytes of all nodes of one file; the largest in Rust's own documentation has a tenth of that
_PURE, _STACKED, _LONG, _SAME_TEXT = 1, 2, 4, 8  # bits of a node's first byte
_NO_LEAVES, _INLINE, _LENGTH = 0x80, 0x40, 0x3F  # bits of the byte with the length of its text
_WORD = (1 << 64) - 1
_COLUMN = compiled(r"\"(\w{1,60})\":\{((?:\"[A-Z]\":\"[^\"\\]*+\",?+)++)\}")
_PART = re.compile(r"\"([A-Z])\":\"([^\"]*+)\"")
_HASH_LENGTHS = range(4, 17)
_RESOURCE = re.compile(r"[\w./~@+-]{0,300}", re.ASCII)


def page_files(attributes: Mapping[str, str]) -> Iterator[tuple[str, Hop]]:
    """Yield search, settings and themes that *attributes* of an element hold for rustdoc's scripts.

    Older versions have URLs, newer ones names of files in a folder of their own.
    """
    root, suffix = attributes.get("data-root-path", ""), attributes.get("data-resource-suffix", "")
    static = attributes.get("data-static-root-path", "")
    known = "data-resource-suffix" in attributes or "data-search-index-js" in attributes
    if not known or not _RESOURCE.fullmatch(root + suffix + static):
        return
    yield from ((reference, Hop.REQUISITE) for reference in _named_in_page(attributes, root, suffix, static))


def _named_in_page(attributes: Mapping[str, str], root: str, suffix: str, static: str) -> Iterator[str]:
    for name in ("search", "settings"):
        file = attributes.get(f"data-{name}-js")
        yield static + file if file else f"{root}{name}{suffix}.js"
    if stringdex := attributes.get("data-stringdex-js"):
        yield static + stringdex
        yield f"{root}search.index/root{suffix}.js"
    else:
        yield attributes.get("data-search-index-js") or f"{root}search-index{suffix}.js"
    themes = attributes.get("data-themes", "").split(",", 20)
    yield from (f"{root}{theme}.css" for theme in themes if theme and _RESOURCE.fullmatch(theme))


def stringdex(text: str) -> Iterator[str]:
    """Yield the files of rustdoc's search: columns, listed by hash in the root of its index, and branches of its trees.

    Each part of a column has a count and a hash; the length of hashes differs between versions.
    """
    for column in _COLUMN.finditer(text):
        fields = dict(_PART.findall(column[2]))
        parts = sum(sign >= "`" for sign in fields.get("N", ""))
        try:
            hashes = base64.b64decode(fields.get("H", ""))
        except ValueError:
            continue
        if parts and not len(hashes) % parts and len(hashes) // parts in _HASH_LENGTHS:
            width = len(hashes) // parts
            yield from (f"{column[1]}/{hashes[at : at + width].hex()}.js" for at in range(0, len(hashes), width))
            yield from tree_urls(fields.get("I", "")) if width == WIDTH else ()


def branch_urls(text: str, address: str) -> list[str]:
    """Return the names of the branch files named by *text*, itself such a file at *address*."""
    found, own = _BRANCH.match(text), _NAME.search(url.path(address))
    return tree_urls(found[1], own[1]) if found and own else []


def tree_urls(packed: str, own: str = "") -> list[str]:
    """Return the names of the branch files in the base64 tree *packed*, whose own hash is *own*."""
    try:
        hashes, branches = _read_nodes(base64.b64decode(packed, validate=True))
    except (ValueError, IndexError):
        return []
    if own and (not hashes or hashes[-1].hex() != own):
        return []
    known = set(hashes)
    return [f"{name.hex()}.js" for name in branches if not name[0] & 0x80 and name not in known]


@dataclass
class _Nodes:
    """Nodes before the current one, which abbreviates its text and children by them."""

    hashes: list[bytes] = field(default_factory=list)
    used: list[bool] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    written: int = 0
    unused: list[int] = field(default_factory=list)  # a stack of node numbers; some may be used by now

    def child(self, back: int | None) -> bytes:
        """Return the hash of the node *back* nodes ago, or of the last node that is no child yet."""
        number = len(self.hashes) - 1 - back if back is not None else self.unused.pop()
        while back is None and self.used[number]:
            number = self.unused.pop()
        if number < 0:
            raise IndexError
        self.used[number] = True
        return self.hashes[number]

    def add(self, written: bytes, text: bytes) -> None:
        """Add the node *written* in full, without abbreviations."""
        self.written += len(written)
        if self.written > MOST_WRITTEN:
            raise ValueError("too much")
        name = _siphash(written)[2:]
        self.unused.append(len(self.hashes))
        self.hashes.append(bytes((name[0] & 0x7F,)) + name[1:])
        self.used.append(False)
        if text:
            self.texts.append(text)


def _read_nodes(data: bytes) -> tuple[list[bytes], dict[bytes, None]]:
    """Return the hashes of all nodes, and the hashes that they contain."""
    nodes, branches, position = _Nodes(), dict[bytes, None](), 0
    while position < len(data):
        position = _node(data, position, nodes, branches)
    if position != len(data):
        raise ValueError("the tree ends elsewhere")
    return nodes.hashes, branches


def _node(data: bytes, start: int, nodes: _Nodes, branches: dict[bytes, None]) -> int:
    """Add the node at *start* to *nodes*, and the hashes that it writes out to *branches*; return its end."""
    tag, position = data[start], start + 1
    if tag & _LONG:
        tag |= data[position] << 8
        position += 1
    sizes, text = _NO_LEAVES, b""
    if not (tag & _SAME_TEXT and tag & _PURE):
        sizes = data[position]
        position += 1
        if tag & _SAME_TEXT:
            text = nodes.texts[-1 - (sizes & _LENGTH)]
        elif not tag & _PURE:
            text = data[position : position + (sizes & _LENGTH)]
            position += len(text)
    flags = sizes & ~_LENGTH | (len(text) if not tag & _PURE else sizes & _LENGTH)
    begin = position
    if sizes & _INLINE:
        position = _after_neighbors(data, position, tag, sizes)
        head = bytes((data[start] & ~_SAME_TEXT, *data[start + 1 : start + 1 + bool(tag & _LONG)], flags))
        nodes.add(head + text + data[begin:position], text)
        return position
    hashes, position = _hashes(data, position, tag, nodes, branches)
    counts = data[begin : begin + (1 if tag & _PURE else 2)]
    end, position = position, position + _letters(counts)
    for _ in range(0 if sizes & _NO_LEAVES else len(counts)):
        position = _after_set(data, position)
    head = b"\x09" if tag & _PURE and tag & _SAME_TEXT else bytes((tag & _PURE, flags))
    nodes.add(head + text + counts + b"".join(hashes) + data[end:position], text)
    return position


def _after_neighbors(data: bytes, position: int, tag: int, sizes: int) -> int:
    """Return the end of a node with inline children that start at *position*."""
    count = (tag >> 8) + 1 if tag & _LONG else 0
    position += 2
    for _ in range(count):
        head = data[position]
        position += 1 + (0 if tag & _PURE else head & 0x0F)
        position += 2 if head & 0x80 else 2 * ((head >> 4) + 1)
    position += count
    if sizes & _NO_LEAVES:
        return position
    return position + (2 if tag & 0x80 else 2 * ((tag >> 4 & 7) + 1))


def _shape(counts: bytes) -> tuple[int, int, int]:
    """Return the numbers of children before and after, and the width of each part that lists their letters."""
    before, after = counts if len(counts) == 2 else (0, counts[0])
    if len(counts) == 2 and before == after == 0xFF:
        return 256, 0, 0
    both = after if len(counts) == 1 else min(before, after)
    if both < 0x80:
        return before, after, 0
    width, mask = (4, 0x3F) if both >= 0xC0 else (3, 0x7F)
    return before & mask, after & mask, width


def _letters(counts: bytes) -> int:
    """Return the number of bytes that hold the first letters of the children."""
    before, after, width = _shape(counts)
    return sum((width or count) if count else 0 for count in (before, after))


def _hashes(
    data: bytes, position: int, tag: int, nodes: _Nodes, branches: dict[bytes, None]
) -> tuple[list[bytes], int]:
    """Return the hashes of the children at *position*, and their end; add those written out to *branches*."""
    counts = data[position : position + (1 if tag & _PURE else 2)]
    before, after, _ = _shape(counts)
    position += len(counts)
    every = tag & 0xF0 == 0xF0 and not tag & _LONG
    hashes: list[bytes] = []
    for number in range(before + after):
        if not every and not 0x10 << number & tag:
            hashes.append(data[position : position + WIDTH])
            position += WIDTH
            branches[hashes[-1]] = None
        elif tag & _STACKED:
            hashes.append(nodes.child(None))
        else:
            hashes.append(nodes.child(data[position]))
            position += 1
    if position > len(data):
        raise IndexError
    return hashes, position


def _after_set(data: bytes, position: int) -> int:
    """Return the end of the set of numbers at *position*: a short form, or a Roaring bitmap."""
    kind = data[position]
    if kind < 0x3A:
        return position + 1 + 4 * kind
    if kind > 0xD0:
        count = kind & 0x0F
        return position + 5 + {0xF0: 2 * (count - 1), 0xE0: 0, 0xD0: count - 1}[kind & 0xF0]
    if kind > 0x3B:
        raise ValueError("no set")
    return _after_bitmap(data, position, runs=kind == 0x3B)


def _after_bitmap(data: bytes, position: int, *, runs: bool) -> int:
    size = _number(data, position + 2, 2) + 1 if runs else _number(data, position + 4, 4)
    position += 4 if runs else 8
    is_run = position
    position += (size + 7) >> 3 if runs else 0
    table = position
    position += 4 * size
    position += 4 * size if not runs or size >= 4 else 0
    for number in range(size):
        if runs and data[is_run + (number >> 3)] >> (number & 7) & 1:
            position += 2 + 4 * _number(data, position, 2)
        else:
            count = _number(data, table + 4 * number + 2, 2) + 1
            position += 2 * count if count < 4096 else 8192
    return position


def _number(data: bytes, position: int, width: int) -> int:
    if position + width > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + width], "little")


def _siphash(data: bytes) -> bytes:
    """Return the SipHash-1-3 of *data* without a key, highest byte first."""
    v0, v1, v2, v3 = 0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573
    whole = len(data) & ~7
    last = int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, whole, 8)]
    for word, times in (*((word, 1) for word in words), (last, 1), (0, 3)):
        v3 ^= word
        v2 ^= 0xFF if times == 3 else 0
        for _ in range(times):
            v0 = v0 + v1 & _WORD
            v1 = (v1 << 13 | v1 >> 51) & _WORD ^ v0
            v0 = (v0 << 32 | v0 >> 32) & _WORD
            v2 = v2 + v3 & _WORD
            v3 = (v3 << 16 | v3 >> 48) & _WORD ^ v2
            v0 = v0 + v3 & _WORD
            v3 = (v3 << 21 | v3 >> 43) & _WORD ^ v0
            v2 = v2 + v1 & _WORD
            v1 = (v1 << 17 | v1 >> 47) & _WORD ^ v2
            v2 = (v2 << 32 | v2 >> 32) & _WORD
        v0 ^= word
    return (v0 ^ v1 ^ v2 ^ v3).to_bytes(8, "big")
