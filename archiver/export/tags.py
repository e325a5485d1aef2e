"""The start tags of a document and the places of their attributes, as browsers find them in markup of any quality.

By the tokenizer of the HTML standard, or, for XML, with its CDATA sections and without raw texts. Nothing is mended:
what a browser drops is passed over. Linear. Pure.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_S = r"[\t\n\f\r ]"
_OPEN = re.compile(r"<(?:(!--)|(!\[CDATA\[)|/([a-zA-Z][^\t\n\f\r />]*+)|([!?/])|([a-zA-Z][^\t\n\f\r />]*+))")
_ATTRIBUTE = re.compile(
    r"([\t\n\f\r /]*+)(?:(>)|([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rf"(?:{_S}*+={_S}*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)|(?=>)))?+)"
)
_COMMENT_END = re.compile(r"--!?>")
_RAW = ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes")
_ENDS = {name: re.compile(f"</{name}(?=[\t\n\f\r />])", re.IGNORECASE) for name in _RAW}
_FOREIGN = ("svg", "math")


class Attribute(NamedTuple):
    """One attribute: the places of its value, and of all of it with the space before."""

    value: tuple[int, int]  # empty where it has none
    whole: tuple[int, int]
    quoted: bool


class Tag(NamedTuple):
    """One start tag; names are in lower case, and of two attributes with one name there is the first."""

    name: str
    attributes: dict[str, Attribute]
    text: tuple[int, int]  # of a style or script: where its text lies


def tags(text: str, *, xml: bool) -> Iterator[Tag]:
    """Every start tag in *text*, in order."""
    position = foreign = 0
    while opening := _OPEN.search(text, position):
        comment, cdata, closing, _, name = opening.groups()
        if name is None:
            if closing is not None and closing.lower() in _FOREIGN:
                foreign = max(foreign - 1, 0)
            position = _behind(text, opening, comment, cdata if xml or foreign else None)
            if position < 0:
                return
            continue
        name = name.lower()
        attributes, end, empty = _attributes(text, opening.end())
        if end < 0 or name == "plaintext":
            return
        position, inside = end, (end, end)
        if name in _FOREIGN and not empty:
            foreign += 1
        if name in _ENDS and not (empty and (xml or foreign)) and (not xml or name in ("style", "script")):
            close = _ENDS[name].search(text, end)
            inside = (end, close.start() if close else len(text))
            position = inside[1]
        yield Tag(name, attributes, inside)


def _behind(text: str, opening: re.Match[str], comment: str | None, cdata: str | None) -> int:
    """Where what is no start tag ends; -1 where it never does."""
    start = opening.end()
    if comment is not None:
        if text.startswith((">", "->"), start):  # an empty one
            return text.index(">", start) + 1
        found = _COMMENT_END.search(text, start)
        return found.end() if found else -1
    end, mark = (text.find("]]>", start), 3) if cdata is not None else (text.find(">", start), 1)
    return end + mark if end >= 0 else -1


def _attributes(text: str, position: int) -> tuple[dict[str, Attribute], int, bool]:
    """The attributes of the tag whose name ends at *position*, where it ends (-1: never), and whether it is empty."""
    attributes: dict[str, Attribute] = {}
    while found := _ATTRIBUTE.match(text, position):
        gap, end, name = found.group(1, 2, 3)
        if end is not None:
            return attributes, found.end(), gap.endswith("/")
        position = found.end()
        group = next((number for number in (4, 5, 6) if found[number] is not None), 0)
        place = found.span(group) if group else (position, position)
        attributes.setdefault(name.lower(), Attribute(place, found.span(), group in (4, 5)))
    return {}, -1, False
