"""Markup in strings of scripts: `innerHTML = '<a href="…">'`, `document.write("<img …>")`, templates with tags.

Only complete strings count. Strings joined by `+` are read as one text; any other operand leaves a hole in it, and an
attribute with a hole names nothing. Linear and bounded on any text.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from archiver.config.expressions import compiled
from archiver.extract.html import markup
from archiver.extract.references import like_a_url
from archiver.extract.script import strings
from archiver.model import Hop

HOLE = "\ufffc"
MOST_TERMS = 2000  # joined strings
_TEXT = -1
_DEEPEST = 3  # levels of templates in templates
_NAMES = (  # elements with URLs
    "a(?:rea|udio|pplet)?|body|embed|frame|i?frame|image|img|link|object|script|source|svg|table|td|track|use|video"
)
_ESCAPED = r"\\x3[cC]|\\u003[cC]|%3[cC]"
_TORN = r"<s(?:c(?:r(?:ip?)?)?)?[\"']"  # "<scr" + "ipt>", or the browser would take it for the page's own
_HINT = re.compile(rf"<(?:{_NAMES})(?=[\s/\\\"'])|{_TORN}|{_ESCAPED}", re.IGNORECASE)
_HINT_OF_STYLES = re.compile(rf"<[a-z]|{_ESCAPED}", re.IGNORECASE)  # for scripts with url() in a style
_OPENS = re.compile(r"<[a-zA-Z]")
_JOINED = re.compile(r"\s*+\+\s*+")
_STRING = compiled(
    r"\"(?:[^\"\\\n\r]|\\(?:\r\n|[\s\S]))*+\"|'(?:[^'\\\n\r]|\\(?:\r\n|[\s\S]))*+'|`(?:[^`\\$]|\\[\s\S]|\$(?!\{))*+`"
)
_OPERAND = compiled(  # an operand between two strings: a name, a call, an expression in brackets
    r"(?:[\w$.!]++|\((?:[^()\"'`;]|\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|`[^`$\n]{0,80}`|\([^()\"'`;]{0,80}\)){0,200}+\)"
    r"|\[[^\[\]\"'`;]{0,80}\])++\s*+\+\s*+(?=[\"'`])"
)
_ESCAPED_MARKUP = re.compile(r"(?:unescape|decodeURI(?:Component)?)\s*\(\s*\Z")
_TEMPLATE = compiled(r"((?:[^`\\$]++|\\[\s\S]|\$(?!\{))*+)(`|\$\{|\\?\Z)")
_IN_HOLE = compiled(r"[^\"'`{}]*+(?:\"(?:[^\"\\\n]|\\[\s\S])*+\"?|'(?:[^'\\\n]|\\[\s\S])*+'?|([{}`])|\Z)")
_ATTRIBUTE = r"[^\s\"'<>/=]{1,60}+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'<>=`]++(?=[\s>])))?+"
_TAG = compiled(rf"<([a-zA-Z][a-zA-Z0-9:-]{{0,30}}+)(?=[\s/>])((?:[\s/]*+{_ATTRIBUTE})*+)")
_SKIPPED = frozenset(("base", "button", "form", "input", "meta"))  # have no URL, or none that is fetched as written
_STYLED = re.compile(r"url\(", re.IGNORECASE)
_STYLE_URL = compiled(
    r"(?<![\w-])url\(\s{0,9}(?:\"([^\"]{1,2000}+)\"|'([^']{1,2000}+)'|([^\"'()\s]{1,2000}+))\s{0,9}\)", re.IGNORECASE
)
_ADDRESS = re.compile(r"(?!%s|[./]*\w?\Z)(?:[^\s<>\"'{}|\\^`$*\[\]%]|%[0-9A-Fa-f]{2})+")


def tags(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the tags in the strings of *text* that name something, with their complete attributes."""
    hint = _HINT_OF_STYLES if "url(" in text else _HINT
    if not hint.search(text):
        return
    for fragment in _fragments(text, hint):
        for tag in _TAG.finditer(fragment):
            name = tag[1].lower()
            if tag[2] and name not in _SKIPPED:
                attributes = markup.attributes(tag[2])
                yield name, {key: value for key, value in attributes.items() if HOLE not in value and HOLE not in key}


def style_urls(text: str) -> Iterator[str]:
    """Yield the complete URLs of styles in the strings of *text*: `style.background = "url(a.png)"`."""
    if _STYLED.search(text):
        for fragment in _fragments(text, _STYLED, _STYLED):
            for found in _STYLE_URL.finditer(fragment):
                value = found[1] or found[2] or found[3]
                if HOLE not in value and is_sure(value, Hop.REQUISITE):
                    yield value


def is_sure(reference: str, hop: Hop) -> bool:
    """True if *reference*, from markup in a string, is a URL as written and not an example of one."""
    return bool(_ADDRESS.fullmatch(reference)) and (like_a_url(reference) or (hop is Hop.LINK and reference[0] == "?"))


def _fragments(text: str, hint: re.Pattern[str], wanted: re.Pattern[str] = _OPENS) -> Iterator[str]:
    """Yield the texts with tags, or what else is *wanted*, that the strings of *text* form."""
    done = 0
    for start, end in strings.tokens(text, every=True):
        if start < done or text[start] == "/":
            continue
        if end < 0:
            value = _filled(text, start) if -end <= _DEEPEST else ""
        elif hint.search(text, start, end):
            value, done = _joined(text, start, end)
            if "%3" in value and _ESCAPED_MARKUP.search(text[max(0, start - 40) : start]):
                value = unquote(value)
        else:
            continue
        if wanted.search(value):
            yield value


def _joined(text: str, start: int, end: int) -> tuple[str, int]:
    """Return the string from *start* to *end* with those joined to it, and the end of the last one."""
    pieces = [strings.unescaped(text[start + 1 : end - 1])]
    for _ in range(MOST_TERMS):
        joined = _JOINED.match(text, end)
        if joined is None:
            return "".join(pieces), end
        operand = _OPERAND.match(text, joined.end())
        string = _STRING.match(text, operand.end() if operand else joined.end())
        if operand or not string:
            pieces.append(HOLE)
        if string is None:
            break
        pieces.append(strings.unescaped(string[0][1:-1]))
        end = string.end()
    return "".join(pieces), end


def _filled(text: str, start: int) -> str:
    """Return the template at *start*, with `HOLE` for each of its substitutions."""
    pieces: list[str] = []
    inside = [_TEXT]  # for each nested template: `_TEXT`, or the number of open braces in its substitution
    position = start + 1
    while inside and len(inside) <= strings.DEEPEST:
        part = (_TEMPLATE if inside[-1] == _TEXT else _IN_HOLE).match(text, position)
        if part is None or part.end() == position:
            break
        position = part.end()
        if inside[-1] == _TEXT and len(inside) == 1:
            pieces += (strings.unescaped(part[1]), HOLE if part[2] == "${" else "")
        _step(inside, part[2] if inside[-1] == _TEXT else part[1])
    return "".join(pieces)


def _step(inside: list[int], sign: str | None) -> None:
    """Process a *sign* that ends template text or a piece of code in a substitution."""
    if inside[-1] == _TEXT:
        if sign == "${":
            inside[-1] = 0
        else:
            inside.pop()
    elif sign == "`":
        inside.append(_TEXT)
    elif sign:
        inside[-1] += 1 if sign == "{" else -1  # after the last brace the template text continues
