"""HTML that is written as it should be, read by regular expressions: several times faster than by a parser.

Only what the HTML standard lets nobody read in two ways is taken: whole tags with plain attributes,
comments and raw texts that end. At the first thing that is anything else `Scanner.tags` gives up, and the
document goes to a parser, which knows how broken markup is mended. Linear: no expression here goes back
over what it has matched, and each place of the text is come to once.
"""

import re
from collections.abc import Iterable
from html import unescape
from html.entities import html5

COMMENT = "!--"  # stands for the name of a tag
MOST = (
    4 << 20
)  # characters of attributes, and 64 more for each tag: what is gathered here costs memory until it is told
_TOLD = frozenset(("style", "script"))  # their texts matter
HARD = frozenset(("xmp", "noembed", "noframes", "plaintext"))  # rare, and each with a rule of its own

_S = r"[\t\n\f\r ]"
_TAG = r"[a-zA-Z][a-zA-Z0-9:-]{0,60}+"
_APART = r"[\t\n\f\r /]*+"  # nothing at all will do behind a quote
_ENDS = r"(?=[\t\n\f\r />])"
_NAME = r"[!#-&(-.0-;?-~]++"  # ASCII that is seen, but for "'/<=>
_DOUBLE, _SINGLE, _BARE = r"[^\"]*+", r"[^']*+", r"[^\t\n\f\r \"'<=>`][^\t\n\f\r \"'<>]*+"
_VALUE = rf"(?:{_S}*+={_S}*+(?:\"{_DOUBLE}\"|'{_SINGLE}'|{_BARE}))?+"
_CLOSE = rf"{_APART}>"
_COMMENT = r"(?!-?>)[^-]*+(?:-(?!->|-!>)[^-]*+)*+"
_CONDITION = r"[\t\n\f\r ]{0,20}\[[\t\n\f\r ]{0,20}[iI][fF]\b"
# What has a meaning on any element, and no more than its first letters: which tags are told need not be exact, only
# enough. A paint is most often a colour, so its value is looked at. An anchor is told for what it leads to.
_PAINTED = rf"(?:[fF][iI]|[sS][tT][rR]|[mM][aA]|[cC](?:[lL][iI]|[uU]))[a-zA-Z-]++{_S}*+={_S}*+[\"']?+{_S}*+[uU]"
_EVERYWHERE = (
    r"(?=[bBcCdDfFlLmMoOsSuU])"  # most begin otherwise
    rf"(?:[sS][tT][yY]|[bB][aA]|[dD][aA][tT][aA]-|[cC](?:[oO][nN]|[iI])|[oO][nN]|[lL][oO]|[uU][sS]|{_PAINTED})"
)
_ELSEWHERE = r"[sS][rR][cC]|[hH][rR]|[xX][lL]|[pP][oO]"
_MOSTLY = r"class(?==)"  # and of those that do not, this is the most common
_LEADS = r"[hH](?i:ref)(?!=\"#)|[xX](?i:link)|[sS][rR][cC]"

_ATTRIBUTE = re.compile(rf"({_NAME})(?:{_S}*+={_S}*+(?:\"({_DOUBLE})\"|'({_SINGLE})'|({_BARE})))?{_APART}")
_REFERENCE = re.compile(r"&(?:([a-zA-Z][a-zA-Z0-9]*+)([;=]?+)|#(?:([0-9]++)|[xX]([0-9a-fA-F]++));?+)")
_CONDITIONAL = re.compile(rf"{_CONDITION}[^\]]{{0,200}}\]>")
_RAW = {
    name: re.compile(rf"([^<]*+(?:<(?!/{name})[^<]*+)*+)</{name}{_S}*+>", re.IGNORECASE | re.ASCII)
    for name in ("style", "title", "textarea", "iframe")
}
_RAW["script"] = re.compile(  # a script in a comment in a script ends neither of them: here are not both
    rf"([^<]*+(?:<(?!/script|!--)[^<]*+)*+(?=</)|[^<]*+(?:<(?!/?script)[^<]*+)*+)</script{_S}*+>",
    re.IGNORECASE | re.ASCII,
)


# A start tag: its name in lower case, its attributes (of two with one name the first), and the text of a style or
# script; or COMMENT, nothing, and the text of a conditional comment.
Tag = tuple[str, dict[str, str], str]


class Scanner:
    """Finds the start tags with these *names*, all whose attributes have a meaning on any element, and custom elements.

    Anchors that lead nowhere, or only within their page, are left out.
    """

    def __init__(self, names: Iterable[str]) -> None:
        told = alternatives({*names, *_RAW, *HARD})
        passed = (
            rf"/{_TAG}{_S}*+>",
            rf"(?!(?:{told}){_ENDS})[a-z][a-z0-9:]{{0,60}}+{_ENDS}{_dull(f'{_EVERYWHERE}|{_ELSEWHERE}')}{_CLOSE}",
            rf"a{_ENDS}{_dull(f'{_EVERYWHERE}|{_LEADS}')}{_CLOSE}",
            rf"!--(?!{_CONDITION}){_COMMENT}-->",
            r"(?:\?|!(?i:doctype|\[(?:if|endif)\b))[^<>]*+>",
            r"(?=[\t\n\f\r 0-9=])",  # only a character
        )
        self._next = re.compile(
            rf"[^<]*+(?:<(?:{'|'.join(passed)})[^<]*+)*+"
            rf"(?:<({_TAG}){_ENDS}{_APART}((?:{_NAME}{_VALUE}{_APART})*+)>|<!--({_COMMENT})-->|\Z)"
        )

    def tags(self, source: str) -> list[Tag] | None:
        """The tags, in order; None where *source* is not written as it should be."""
        if "\0" in source:
            return None
        if "\r" in source:
            source = source.replace("\r\n", "\n").replace("\r", "\n")
        tags: list[Tag] = []
        position = weight = 0
        while token := self._next.match(source, position):
            position = token.end()
            written, inside, text = token.groups()
            if written is None:
                if text is None:
                    return tags
                tags.append((COMMENT, {}, text))
                continue
            name = written.lower()
            weight += 64 + len(inside or "")
            if name in HARD or weight > MOST:
                return None
            if name in _RAW:
                raw = _RAW[name].match(source, position)
                if raw is None or source[position - 2] == "/":  # parsers differ on whether <script/> is empty
                    return None
                text = raw[1] if name in _TOLD else ""
                position = raw.end()
            tags.append((name, attributes(inside) if inside else {}, text or ""))
        return None


def conditional(comment: str) -> list[str]:
    """The markup in a conditional comment."""
    condition = _CONDITIONAL.match(comment)
    return [comment[condition.end() :]] if condition else []


def _dull(told: str) -> str:
    """A pattern for attributes of which none is *told* of."""
    return rf"(?:{_APART}(?:{_MOSTLY}|(?!{told}){_NAME}){_VALUE})*+"


def alternatives(names: Iterable[str]) -> str:
    """A pattern for *names* that is done with most other words at their first letter."""
    heads: dict[str, list[str]] = {}
    for name in sorted(names):
        heads.setdefault(name[0], []).append(re.escape(name[1:]))
    return "|".join(f"{head}(?:{'|'.join(tails)})" for head, tails in heads.items())


def attributes(inside: str) -> dict[str, str]:
    """The attributes in *inside*, of two with one name the first."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(inside):
        found.setdefault(name.lower(), double or single or bare)
    if "&" in inside:
        return {name: unescaped(value) for name, value in found.items()}
    return found


def unescaped(value: str) -> str:
    """What the *value* of an attribute means, in which there are character references."""
    if value.count("&") == value.count("&amp;"):
        return value.replace("&amp;", "&")
    return _REFERENCE.sub(_meant, value)


def _meant(reference: re.Match[str]) -> str:
    """The characters that a reference stands for, by the rules for attributes: `&copy=1` is part of a URL."""
    name, end, decimal, hexadecimal = reference.groups()
    if name:
        return reference[0] if end == "=" else html5.get(name + end, reference[0])
    digits = (decimal or hexadecimal).lstrip("0")
    number = int(digits or "0", 10 if decimal else 16) if len(digits) < 8 else 0
    return unescape(f"&#{number};") or chr(number)
