"""Reads the part of YAML that a program writes when it saves plain data: nested maps and lists with scalars.

It yields one scalar at a time with the way to it, so a file of any size takes little memory. Anchors, aliases, tags and
flow collections with content are not resolved: the scalar is then their text. So nothing can grow. Pure.
Source: YAML 1.2 §7 and §8, as js-yaml writes it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

DEEPEST = 50  # nested maps and lists
LONGEST_BLOCK = 1 << 20  # characters of a scalar of several lines

_KEY = re.compile(
    r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s'"\-?:,\[\]{}#&*!|>%@`](?:[^:#]|:(?=\S)|(?<=\S)#)*?)):(?:\s+|$)"""
)
_BLOCK = re.compile(r"[|>][+-]?[1-9]?[+-]?\s*(?:#.*)?")
_COMMENT = re.compile(r"(?<!\s)\s++#.*")


class YamlError(ValueError):
    """The text is not of the kind that is read here."""


class Scalar(NamedTuple):
    """A scalar and the way to it: keys of maps, and "-" for an item of a list."""

    way: tuple[str, ...]
    text: str
    item: tuple[int, ...] = ()  # the numbers of the list items on the way


class _Level(NamedTuple):
    """An open map or list: where it is indented to, and its present key."""

    indent: int
    key: str
    number: int  # of the item


def scalars(lines: Iterable[str]) -> Iterator[Scalar]:
    """Yield the scalars of the document in *lines*. Raises `YamlError` if it is nested too deep."""
    levels: list[_Level] = []
    numbered = _PushBack(lines)
    for line in numbered:
        text = line.strip()
        if not text or text.startswith(("#", "---", "...", "%")):
            continue
        indent = len(line) - len(line.lstrip(" "))
        yield from _line(text, indent, levels, numbered)


class _PushBack:
    """Lines of which the last one can be put back."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._back: list[str] = []

    def __iter__(self) -> "_PushBack":
        return self

    def __next__(self) -> str:
        return self._back.pop() if self._back else next(self._lines).rstrip("\r\n")

    def back(self, line: str) -> None:
        self._back.append(line)


def _line(text: str, indent: int, levels: list[_Level], lines: _PushBack) -> Iterator[Scalar]:
    """Yield the scalar of one line, after its place in *levels* is found."""
    while text.startswith("- ") or text == "-":
        _enter(levels, indent, "-")
        rest = text[1:].lstrip(" ")
        indent += len(text) - len(rest)
        text = rest
    if found := _KEY.match(text):
        _enter(levels, indent, _key(found))
        text = text[found.end() :]
    if not text:
        return
    way, item = tuple(level.key for level in levels), tuple(level.number for level in levels if level.key == "-")
    if _BLOCK.fullmatch(text):
        yield Scalar(way, _block(lines, levels[-1].indent if levels else -1, folded=text.startswith(">")), item)
    elif text not in ("[]", "{}"):
        yield Scalar(way, _scalar(text), item)


def _enter(levels: list[_Level], indent: int, key: str) -> None:
    """Make *key* at *indent* the innermost level. Items of a list may stand as far left as the key above them."""
    while levels and (levels[-1].indent > indent or (levels[-1].indent == indent and not _holds(levels[-1], key))):
        last = levels.pop()
        if last.indent == indent and (last.key == "-") == (key == "-"):
            levels.append(_Level(indent, key, last.number + 1))
            return
    if len(levels) >= DEEPEST:
        raise YamlError(f"it is nested more than {DEEPEST} deep")
    levels.append(_Level(indent, key, 0))


def _holds(level: _Level, key: str) -> bool:
    return level.key != "-" and key == "-"


def _key(found: re.Match[str]) -> str:
    if found[1] is not None:
        return _double(f'"{found[1]}"')
    return (found[2] or "").replace("''", "'") if found[3] is None else found[3].strip()


def _block(lines: _PushBack, indent: int, *, folded: bool) -> str:
    """Return the text of the lines that are indented by more than *indent*."""
    parts: list[str] = []
    size = 0
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
            lines.back(line)
            break
        size += len(line)
        if size <= LONGEST_BLOCK:
            parts.append(line.strip())
    return (" " if folded else "\n").join(parts).strip()


def _scalar(text: str) -> str:
    if text.startswith("'") and (found := re.match(r"'((?:[^']|'')*)'", text)):
        return found[1].replace("''", "'")
    if text.startswith('"') and (found := re.match(r'"(?:[^"\\]|\\.)*"', text)):
        return _double(found[0])
    return _COMMENT.sub("", text)


def _double(text: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError:  # an escape that only YAML has
        return text[1:-1]
