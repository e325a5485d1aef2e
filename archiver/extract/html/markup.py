"""Read well-formed HTML by regular expressions, several times faster than a parser.

Only markup that the HTML standard lets everyone read in the same way is accepted: complete tags with plain attributes,
and comments and raw texts that end. At anything else `Scanner.tags` gives up, and the document goes to a parser, which
can handle broken markup. Linear: no expression backtracks over what it matched, and each position is visited once.
"""

import re
from collections.abc import Iterable
from html import unescape
from html.entities import html5

from archiver.config.expressions import compiled

COMMENT = "!--"  # used as the name of a tag
MOST = 4 << 20  # characters of attributes plus 64 for each tag: all tags of a page are in memory
_WITH_TEXT = frozenset(("style", "script"))  # elements whose text is kept
HARD = frozenset(("xmp", "noembed", "noframes", "plaintext"))  # rare, each with special parsing rules

_S = r"[\t\n\f\r ]"
_TAG = r"[a-zA-Z][a-zA-Z0-9:-]{0,60}+"
_APART = r"[\t\n\f\r /]*+"  # may be empty after a quote
_ENDS = r"(?=[\t\n\f\r />])"
_NAME = r"[!#-&(-.0-;?-~]++"  # visible ASCII except "'/<=>
_DOUBLE, _SINGLE, _BARE = r"[^\"]*+", r"[^']*+", r"[^\t\n\f\r \"'<=>`][^\t\n\f\r \"'<>]*+"
_VALUE = rf"(?:{_S}*+={_S}*+(?:\"{_DOUBLE}\"|'{_SINGLE}'|{_BARE}))?+"
_CLOSE = rf"{_APART}>"
_COMMENT = r"(?!-?>)[^-]*+(?:-(?!->|-!>)[^-]*+)*+"
_CONDITION = r"[\t\n\f\r ]{0,20}\[[\t\n\f\r ]{0,20}[iI][fF]\b"
# First letters of attributes with a meaning on any element. The selection of tags need not be exact, only
# complete. A paint attribute is usually a colour, so its value is checked. Anchors are selected by their href.
_PAINTED = rf"(?:[fF][iI]|[sS][tT][rR]|[mM][aA]|[cC](?:[lL][iI]|[uU]))[a-zA-Z-]++{_S}*+={_S}*+[\"']?+{_S}*+[uU]"
_EVERYWHERE = (
    r"(?=[bBcCdDfFhHiIlLmMoOsSuUwW])"  # quick check: most attributes start with other letters
    rf"(?:[sS][tT][yY]|[bB][aA]|[dD][aA][tT][aA]-|[cC](?:[oO][nN]|[iI])|[hH][xX]-|[oO][nN]|[lL][oO]|[uU][sS]|[wW]3-|[iI][nN][cC]|{_PAINTED})"
)
_ELSEWHERE = r"[sS][rR][cC]|[hH][rR]|[xX][lL]|[pP][oO]"
_MOSTLY = r"class(?==)"  # the most common attribute among the rest
_LEADS = r"[hH](?i:ref)(?!=\"#)|[xX](?i:link)|[sS][rR][cC]"

_ATTRIBUTE = re.compile(rf"({_NAME})(?:{_S}*+={_S}*+(?:\"({_DOUBLE})\"|'({_SINGLE})'|({_BARE})))?{_APART}")
_REFERENCE = re.compile(r"&(?:([a-zA-Z][a-zA-Z0-9]*+)([;=]?+)|#(?:([0-9]++)|[xX]([0-9a-fA-F]++));?+)")
_CONDITIONAL = re.compile(rf"{_CONDITION}[^\]]{{0,200}}\]>")
_RAW = {
    name: compiled(rf"([^<]*+(?:<(?!/{name})[^<]*+)*+)</{name}{_S}*+>", re.IGNORECASE | re.ASCII)
    for name in ("style", "title", "textarea", "iframe")
}
_RAW["script"] = compiled(  # reject "<!--" together with "<script": special rules apply
    rf"([^<]*+(?:<(?!/script|!--)[^<]*+)*+(?=</)|[^<]*+(?:<(?!/?script)[^<]*+)*+)</script{_S}*+>",
    re.IGNORECASE | re.ASCII,
)


# A start tag: name in lower case, attributes (the first of duplicates), and the text of a style or script;
# or COMMENT, no attributes, and the text of a conditional comment.
Tag = tuple[str, dict[str, str], str]


class Scanner:
    """Finds start tags: these *names*, custom elements, and tags with attributes that matter on any element.

    Anchors without a href, or with one inside their page, are left out.
    """

    def __init__(self, names: Iterable[str]) -> None:
        excluded = alternatives({*names, *_RAW, *HARD})
        passed = (
            rf"/{_TAG}{_S}*+>",
            rf"(?!(?:{excluded}){_ENDS})[a-z][a-z0-9:]{{0,60}}+{_ENDS}{_attributes_without(f'{_EVERYWHERE}|{_ELSEWHERE}')}{_CLOSE}",
            rf"a{_ENDS}{_attributes_without(f'{_EVERYWHERE}|{_LEADS}')}{_CLOSE}",
            rf"!--(?!{_CONDITION}){_COMMENT}-->",
            r"(?:\?|!(?i:doctype|\[(?:if|endif)\b))[^<>]*+>",
            r"(?=[\t\n\f\r 0-9=])",  # an ordinary "<"
        )
        self._next = compiled(
            rf"[^<]*+(?:<(?:{'|'.join(passed)})[^<]*+)*+"
            rf"(?:<({_TAG}){_ENDS}{_APART}((?:{_NAME}{_VALUE}{_APART})*+)>|<!--({_COMMENT})-->|\Z)"
        )

    def tags(self, source: str) -> list[Tag] | None:
        """Return the tags in order; None if *source* is not well-formed."""
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
                if raw is None or source[position - 2] == "/":  # parsers disagree on <script/>
                    return None
                text = raw[1] if name in _WITH_TEXT else ""
                position = raw.end()
            tags.append((name, attributes(inside) if inside else {}, text or ""))
        return None


def conditional(comment: str) -> list[str]:
    """Return the markup in a conditional comment, if there is any, without the end of the condition.

    That has no bracket of its own in the comment, so it would make the markup not well-formed.
    """
    condition = _CONDITIONAL.match(comment)
    markup = comment[condition.end() :].removesuffix("<!").removesuffix("<![endif]") if condition else ""
    return [markup] if markup and not markup.isspace() else []


def _attributes_without(excluded: str) -> str:
    """Return a pattern for attributes none of which matches *excluded*."""
    return rf"(?:{_APART}(?:{_MOSTLY}|(?!{excluded}){_NAME}){_VALUE})*+"


def alternatives(names: Iterable[str]) -> str:
    """Return a pattern for *names* that rejects most other words at their first letter."""
    heads: dict[str, list[str]] = {}
    for name in sorted(names):
        heads.setdefault(name[0], []).append(re.escape(name[1:]))
    return "|".join(f"{head}(?:{'|'.join(tails)})" for head, tails in heads.items())


def attributes(inside: str) -> dict[str, str]:
    """Return the attributes in *inside*; the first of duplicates counts."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(inside):
        found.setdefault(name.lower(), double or single or bare)
    if "&" in inside:
        return {name: unescaped(value) for name, value in found.items()}
    return found


def unescaped(value: str) -> str:
    """Return the *value* of an attribute with character references replaced."""
    if value.count("&") == value.count("&amp;"):
        return value.replace("&amp;", "&")
    return _REFERENCE.sub(_resolve, value)


def _resolve(reference: re.Match[str]) -> str:
    """Return the character of a *reference*, by the rules for attributes: `&copy=1` is part of a URL."""
    name, end, decimal, hexadecimal = reference.groups()
    if name:
        return reference[0] if end == "=" else html5.get(name + end, reference[0])
    digits = (decimal or hexadecimal).lstrip("0")
    number = int(digits or "0", 10 if decimal else 16) if len(digits) < 8 else 0
    return unescape(f"&#{number};") or chr(number)


def _raw_element(name: str) -> str:
    """Return a pattern for an element *name* with text content, up to the end of the page if it is not closed."""
    return rf"{name}(?=[\t\n\f\r />])[^<>]*+>[^<]*+(?:<(?!/{name})[^<]*+)*+(?:</{name}{_S}*+>)?+"


# Elements and attributes without URLs. Most tags of a page consist only of these.
PLAIN = (
    *("abbr", "article", "aside", "b", "br", "code", "dd", "div", "dl", "dt", "em", "figcaption", "figure", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "label", "li", "main", "nav", "ol", "p", "pre"),
    *("section", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "time", "tr", "ul"),
)
_NO_URL = (
    r"(?:class|id|title|lang|dir|role|name|target|alt|width|height|loading|decoding|datetime)=\"[^\"<>]*+\""
    r"|rel=\"[^\"<>fF]*+\""  # not "nofollow"
    # a number or a word; not "set", where any value is a URL, and not the method that a link is sent by
    r"|data-(?!(?:turbo-)?method=)(?:[a-rt-z-]|s(?!et))++=\"[^\"<>/.&({\[]*+\""
)
# Descriptions differ on each page but hold no URL: they do not start like one, nor contain "nofollow".
_DESCRIPTION = (
    r"meta (?:name|property)=\"(?:(?:og|twitter):)?(?:title|description|author|keywords|date)\""
    r" content=\"(?!/|[hH][tT])[^\"<>&nN]*+(?:(?:[nN](?![oO][nNfF])|&(?!#))[^\"<>&nN]*+)*+\" ?/?>"
)
_BEFORE_URL = rf"(?:[ \n]++(?:{_NO_URL}))*+[ \n]++"
_REST_OF_TAG = rf"(?=\"(?:[ \n]++(?:{_NO_URL}))*+[ \n]*+/?>)"  # the rest of a tag without further URLs
PIECE = compiled(
    rf"<(?!/[a-z][a-z0-9]*+>|(?:{alternatives((*PLAIN, 'body'))})(?: (?:{_NO_URL}))*+>|title>[^<]*+</title>"
    rf"|{_DESCRIPTION})"
    # Of the most common tags in their usual form only the URL is kept …
    rf"(?:a{_BEFORE_URL}href=\"(?!(?i:javascript):)([^\"<>{{]++){_REST_OF_TAG}"
    rf"|(?:img{_BEFORE_URL}(?=src=\"[^\"<>]++{_REST_OF_TAG}))?+((?<!<)src=\"[^\"<>]++"
    # … of all others the whole tag, and of torn tags nothing.
    r"|(?<=<)(?:(?=[st!i])"
    rf"(?:{'|'.join(map(_raw_element, ('script', 'style', 'title', 'textarea', 'iframe')))}"
    r"|!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?+)"
    r"|[^<>]*+>|)))"
)
