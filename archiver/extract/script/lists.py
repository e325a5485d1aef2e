"""Lists, objects and single values that the expressions of a script state: `["a", "b"]`, `Object.keys(pages)`."""

import re
from enum import Enum, auto
from typing import NamedTuple, Protocol

from archiver.config.expressions import compiled
from archiver.extract.script.blocks import Blocks
from archiver.extract.script.parts import NAME, NUMBER

MOST_VALUES = 500  # of one variable
_MOST_COLUMNS = 20  # items of a list in a list
_GAP = re.compile(r"\s{0,40}")
_DEEPEST = 30  # lists inside one another
_MOST_SPREAD = 50  # items of a list with lists in it
_STEPS = 12  # calls and names of one expression

_TEXT = r"'[^'\\\n]{0,200}+'|\"[^\"\\\n]{0,200}+\"|`[^`\\$\n]{0,200}+`"
_ITEMS = compiled(rf"\s*+(?:(?:{_TEXT}|[0-9]{{1,10}})\s*+,?+\s*+){{1,{MOST_VALUES}}}+")
_VALUE = re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"|`([^`\\\n]*)`|([0-9]+)")
_SINGLE = compiled(rf"(?:{_TEXT}|[0-9]{{1,10}}(?![\w.]))")
_ENTRY = compiled(rf"\s*+(?:\"([^\"\\\n]{{1,100}})\"|'([^'\\\n]{{1,100}})'|({NAME}|[0-9]{{1,10}}))\s*+:")
_ENDS = re.compile(r"\s{0,4}(?:[;,)}\]:]|\Z|//|/\*)|[ \t]{0,40}[\r\n]\s{0,200}(?![+.\s])")
_WORDS = re.compile(rf"(?:new\s{{1,4}})?(?:\.{{0,3}}{NAME})(?:\??\.{NAME}){{0,4}}|\.{NAME}")
_CALLED = re.compile(rf"(?:(?P<dot>\??\.)\s{{0,4}}|\bnew\s{{1,4}}|(?<![\w$]))(?P<name>{NAME})\s{{0,4}}\Z")
_KEYWORDS = frozenset(("await", "case", "in", "of", "return", "typeof", "yield"))
_WORD = re.compile(r"(?:\bnew\s{1,4})?[\w$]{1,40}\Z")
_AS_IT_IS = frozenset(("fill", "reverse", "slice", "sort", "values"))
_LENGTH = re.compile(rf"\s{{0,4}}\{{\s{{0,4}}length\s{{0,4}}:\s{{0,4}}({NUMBER})\s{{0,4}}\}}\s{{0,4}}")
_OF_NUMBER = re.compile(
    rf"\s{{0,4}}\(\s{{0,4}}{NAME}\s{{0,4}},\s{{0,4}}({NAME})\s{{0,4}}\)\s{{0,4}}=>\s{{0,4}}\(?\s{{0,4}}"
    rf"(?:\1(?:\s{{0,4}}\+\s{{0,4}}({NUMBER}))?|({NUMBER})\s{{0,4}}\+\s{{0,4}}\1)\s{{0,4}}\)?\s{{0,4}}"
)
_INLINE = re.compile(r"\s{0,4}(?:async\b\s{0,4})?(?:function\b|\(?[\w$,\s{}]{0,100}\)?\s{0,4}=>)")
_DEFAULT = re.compile(r"\s{0,4}(?:\|\||\?\?)\s{0,4}")
_SPLIT = re.compile(r"\s{0,4}[\"'`]([ ,;|/])[\"'`]\s{0,4}")


class Shape(Enum):
    """A kind of value."""

    ITEM = auto()  # one of the values
    LIST = auto()
    OBJECT = auto()  # its values are its keys


class Values(NamedTuple):
    """What an expression may be."""

    kind: Shape
    texts: tuple[str, ...] = ()
    span: tuple[int, int] | None = None  # code with objects
    length: int = 0  # of a list
    pairs: bool = False  # of a key and a value: the keys are in *texts*

    def numbers(self) -> "Values":
        """Return the numbers of the items of a list."""
        return Values(Shape.ITEM, tuple(map(str, range(self.length))))


class Variables(Protocol):
    """The variables of a script, its *text* and its blocks."""

    text: str
    blocks: Blocks
    nested: int  # lists inside one another that are being read

    def variable(self, name: str, at: int) -> Values | None:
        """Return the values of a variable at a position."""

    def in_list(self, key: str) -> Values | None:
        """Return the list under a key of an object."""

    def of_part(self, start: int) -> tuple[Values, int] | None:
        """Return the values of a part of a URL, and its end."""


def expression(script: Variables, start: int) -> Values | None:
    """Return what the expression at *start* may be."""
    text = script.text
    single = _SINGLE.match(text, start)
    if single is not None and _ENDS.match(text, single.end()):
        return Values(Shape.ITEM, _texts(single[0]))
    found = script.of_part(start)
    if found is not None and _ENDS.match(text, found[1]):
        return found[0]
    position = start
    for _ in range(_STEPS):
        if step := _WORDS.match(text, position) or _SINGLE.match(text, position):
            position = step.end()
        elif text[position : position + 1] in {"(", "[", "{"} and script.blocks.partner(position) > 0:
            position = script.blocks.partner(position) + 1
        else:
            break
    default = _DEFAULT.match(text, position) if position > start else None
    if default and (single := _SINGLE.match(text, default.end())) and _ENDS.match(text, single.end()):
        return Values(Shape.ITEM, _texts(single[0]))
    return listed(script, start, position) if position > start and _ENDS.match(text, position) else None


def begin(script: Variables, end: int) -> int:
    """Return where the expression begins that stops at *end*."""
    text, position = script.text, end
    for _ in range(_STEPS):
        before = text[max(0, position - 50) : position].rstrip()
        place = position - min(50, position) + len(before)
        if before.endswith("..."):
            return position
        word = _WORD.search(before)
        if before[-1:] in {")", "]"} and script.blocks.partner(place - 1) >= 0:
            position = script.blocks.partner(place - 1)
        elif before.endswith("."):
            position = place - (2 if before.endswith("?.") else 1)
        elif before[-1:] in {"'", '"'}:
            return max(0, text.rfind(before[-1], 0, place - 1))
        elif word is not None and word[0] not in _KEYWORDS:
            position = place - len(word[0])
        else:
            return position
    return position


def listed(script: Variables, start: int, end: int) -> Values | None:
    """Return the list or the object that is the code from *start* to *end*."""
    if script.nested == _DEEPEST:
        return None
    script.nested += 1
    try:
        return _listed(script, start, end)
    finally:
        script.nested -= 1


def _listed(script: Variables, start: int, end: int) -> Values | None:
    text = script.text
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start >= end:
        return None
    closing = script.blocks.partner(start) if text[start] in "[{" else -1
    if closing == end - 1:
        return _literal(script, start, closing)
    opening = script.blocks.partner(end - 1) if text[end - 1] == ")" else -1
    if opening >= start:
        return _called(script, start, opening, end - 1)
    names = text[start:end].replace("?.", ".").removeprefix("window.").split(".")
    if end - start > 200 or not all(re.fullmatch(NAME, name) for name in names):
        return None
    return script.variable(names[0], end - len(names[0])) if len(names) == 1 else script.in_list(names[-1])


def _literal(script: Variables, start: int, closing: int) -> Values | None:
    """Return the list or object between the brackets at *start* and *closing*."""
    text = script.text
    if text[start] == "{":
        keys = tuple(dict.fromkeys(_keys(script, start, closing)))
        return Values(Shape.OBJECT, keys, (start, closing))
    inner = start + 1
    if "..." in text[inner:closing] and (spread := _spread(script, inner, closing)) is not None:
        return spread
    if (items := _ITEMS.match(text, inner)) and items.end() == closing:
        texts = _texts(items[0])
        return Values(Shape.LIST, texts, None, len(texts))
    objects = sum(
        1 for mark in re.finditer(r"[\[{]", text[inner:closing]) if script.blocks.around(inner + mark.start()) == start
    )
    return Values(Shape.LIST, (), (start, closing), objects) if objects else None


def _spread(script: Variables, inner: int, closing: int) -> Values | None:
    """Return the list of the items from *inner* to *closing*, of which some are all items of other lists."""
    position, found = inner, list[Values]()
    while position < closing and len(found) < _MOST_SPREAD:
        comma = script.blocks.comma(position, closing)
        begin = comma - len(script.text[position:comma].lstrip())
        if script.text.startswith("...", begin):
            one = listed(script, begin + 3, comma)
            if one is None or one.kind is not Shape.LIST:
                return None
            found.append(one)
        elif items := _ITEMS.fullmatch(script.text, begin, comma):
            texts = _texts(items[0])
            found.append(Values(Shape.LIST, texts, None, len(texts)))
        elif begin < comma:
            return None
        position = comma + 1
    if len(found) == 1:
        return found[0]
    if any(one.span or one.pairs for one in found):
        return None
    joined = tuple(each for one in found for each in one.texts)[:MOST_VALUES]
    return Values(Shape.LIST, joined, None, sum(one.length for one in found))


def column(script: Variables, span: tuple[int, int] | None, number: int) -> Values | None:
    """Return what the lists inside of the one at *span* have at the place *number*."""
    position, end = (span[0] + 1, span[1]) if span and number < _MOST_COLUMNS else (0, 0)
    found = dict[str, None]()
    for _ in range(MOST_VALUES):
        if position >= end:
            break
        gap = _GAP.match(script.text, position)
        row = gap.end() if gap else position
        closing = script.blocks.partner(row) if script.text[row] == "[" else -1
        begin = row + 1
        for _ in range(number if closing > 0 else 0):
            begin = script.blocks.comma(begin, closing) + 1
        if begin < closing and (items := _ITEMS.fullmatch(script.text, begin, script.blocks.comma(begin, closing))):
            found.update(dict.fromkeys(_texts(items[0])))
        position = script.blocks.comma(position, end) + 1
    return Values(Shape.ITEM, tuple(found)) if found else None


def _keys(script: Variables, start: int, closing: int) -> list[str]:
    """Return the keys of the object between the braces at *start* and *closing*."""
    found = list[str]()
    position = start + 1
    for _ in range(MOST_VALUES):
        entry = _ENTRY.match(script.text, position, closing)
        if entry is None:
            break
        found.append(entry[1] or entry[2] or entry[3])
        position = script.blocks.comma(entry.end(), closing) + 1
    return found


def _called(script: Variables, start: int, opening: int, closing: int) -> Values | None:
    """Return the list that the call from *start* on makes, with its arguments between *opening* and *closing*."""
    text = script.text
    callee = text[start:opening].strip() if opening - start < 40 else ""
    if callee in {"Object.keys", "Object.entries", "Object.values"}:
        return _of_object(listed(script, opening + 1, closing), callee)
    if callee in {"new Set", "structuredClone"}:
        return listed(script, opening + 1, closing)
    if callee in {"Array", "new Array"}:
        items = _ITEMS.fullmatch(text, opening + 1, closing)
        texts = _texts(items[0]) if items else ()
        return (
            _first(int(texts[0])) if len(texts) == 1 else Values(Shape.LIST, texts, None, len(texts)) if texts else None
        )
    if callee == "Array.from":
        return _from(script, opening, closing)
    called = _CALLED.search(text, start, opening)
    if called is None or not called["dot"]:
        return None
    if called["name"] == "split":
        single, sign = _SINGLE.match(text, start, called.start()), _SPLIT.fullmatch(text, opening + 1, closing)
        texts = tuple(_texts(single[0])[0].split(sign[1])) if single and sign else ()
        return Values(Shape.LIST, texts, None, len(texts)) if texts else None
    before = listed(script, start, called.start())
    return _of_list(before, called["name"], text[opening + 1 : closing]) if before is not None else None


def _of_list(before: Values, name: str, arguments: str) -> Values | None:
    """Return the list that the method *name* makes of *before*."""
    if before.kind is not Shape.LIST:
        return None
    if name == "keys":
        return _first(before.length)
    if name == "map" and (shifted := _OF_NUMBER.fullmatch(arguments)):
        return _first(before.length, int(shifted[2] or shifted[3] or 0))
    if name == "filter" and _INLINE.match(arguments):
        return before  # which items pass may depend on the visitor
    return before if name in _AS_IT_IS else None


def _from(script: Variables, opening: int, closing: int) -> Values | None:
    """Return the list of an `Array.from` with its arguments between *opening* and *closing*."""
    comma = script.blocks.comma(opening + 1, closing)
    counted = _LENGTH.fullmatch(script.text, opening + 1, comma)
    base = _first(int(counted[1])) if counted else listed(script, opening + 1, comma)
    if base is None or comma == closing:
        return base
    shifted = _OF_NUMBER.fullmatch(script.text, comma + 1, closing)
    return _first(base.length, int(shifted[2] or shifted[3] or 0)) if shifted else None


def argument(script: Variables, opening: int, end: int) -> Values | None:
    """Return the list that is the first argument of the call at *opening*; *end* is the end of that argument."""
    counted = _LENGTH.fullmatch(script.text, opening + 1, end)
    return _first(int(counted[1])) if counted else listed(script, opening + 1, end)


def _of_object(value: Values | None, call: str) -> Values | None:
    if value is None or value.kind is not Shape.OBJECT:
        return None
    if call == "Object.values":
        return value._replace(kind=Shape.LIST, texts=(), length=len(value.texts))
    return Values(Shape.LIST, value.texts, value.span, len(value.texts), pairs=call == "Object.entries")


def _first(count: int, start: int = 0) -> Values:
    """Return the list of *count* numbers from *start* on."""
    count = min(count, MOST_VALUES)
    return Values(Shape.LIST, tuple(map(str, range(start, start + count))), None, count)


def _texts(items: str) -> tuple[str, ...]:
    return tuple(found[1] or found[2] or found[3] or found[4] or "" for found in _VALUE.finditer(items))
