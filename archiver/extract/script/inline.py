"""Scripts inside pages: navigation, state of frameworks, files and pages. Also event handlers and `javascript:` URLs.

Navigation is `location = "…"`, `location.replace("…")`, `window.open("…")` and the like. Only a complete URL counts: a
string, or strings joined with each other and with parts of the page's own location. A URL with any other part is
unknown and names nothing. `strings.tokens` separates comments and strings from code. Linear on any text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from archiver.extract.script import embedded_json, generators, javascript, strings
from archiver.model import Hop

LOCATION, OPEN, MENU = "script/location", "script/open", "script/menu"

NEAR = 160  # characters before a string that show what it is assigned to
_LONGEST = 2000  # characters of a URL
_MOST_TERMS = 50
_HINT = re.compile(r"location|\bopen\s*\(|navigate\s*\(")
_HOLDER = r"(?:(?:window|document|self|top|parent|opener|this|content|frames\[[^\[\]]{1,30}\])\s*\.\s*){0,4}"
_GOES = (
    rf"(?<![\w$.])(?<!var\s)(?<!let\s)(?<!const\s){_HOLDER}"
    r"(?:(?:location|window\[.location.\])(?:\s*\.\s*href)?\s*=|location\s*\.\s*(?:assign|replace)\s*\(|navigate\s*\()"
)
_OPENS = r"(?<![\w$.])(?:(?:window|self|top|parent|opener)\s*\.\s*)?open\s*\("
_OWN = r"(?:(?:window|document|self)\s*\.\s*)?location\s*\.\s*(?P<part>protocol|origin|host|hostname)"
_BEGINS = re.compile(
    rf"(?:(?P<goes>{_GOES})|(?P<opens>{_OPENS}))\s*(?P<choice>[^;{{}}\"'`]{{1,80}}\?)?"
    rf"\s*(?P<own>(?:{_OWN.replace('?P<part>', '?:')}\s*\+\s*){{0,4}})\Z"
)
_STRING = re.compile(r"\"(?:[^\"\\\n\r]|\\[\s\S])*+\"|'(?:[^'\\\n\r]|\\[\s\S])*+'|`(?:[^`\\$]|\\[\s\S]|\$(?!\{))*+`")
_GAP = re.compile(r"\s*")
_LEADS_UP = frozenset("=(+?")  # a string after anything else does not start a URL
_OWN_PART = re.compile(_OWN)
_JOINED = re.compile(r"\s*\+\s*")
_OTHERWISE = re.compile(r"\s*:\s*")
_ENDS = re.compile(r"\s*(?:[;,)}\]]|//|/\*|\Z)|[ \t]*[\n\r]")
_ADDRESS = re.compile(r"[^\"'\\<>{}\s`|^]{1,2000}")
_OWN_VALUES = {  # parts of the page's location, in a URL resolved against the page
    "protocol": "",
    "origin": "//\0",
    "host": "\0",
    "hostname": "\0",
}
_OWN_HOST = re.compile(r"(?:https?:)?//\0(?=[/?#]|\Z)")


class ScriptTarget(NamedTuple):
    """A URL that a script navigates to, its hop, and the kind of navigation."""

    reference: str
    hop: Hop
    context: str


def targets(text: str, *, sure_opens: bool = False, nested: bool = True) -> Iterator[ScriptTarget]:
    """Yield each complete URL that *text* navigates to; with *sure_opens*, opened windows are links, not guesses."""
    if not _HINT.search(text):
        return
    done = 0
    for start, end in strings.strings(text):
        if start < done:
            continue
        window = max(0, start - NEAR)
        code = text[window:start].rstrip()
        before = _BEGINS.search(code) if code[-1:] in _LEADS_UP else None
        if before is None:
            if nested and end - start <= _LONGEST and _HINT.search(text, start, end):
                inner = strings.unescaped(text[start + 1 : end - 1])
                yield from targets(inner, sure_opens=sure_opens, nested=False)  # setTimeout("location = '…'", 100)
            continue
        found, done = _addresses(text, window + before.start("own"), choice=bool(before["choice"]))
        sure = not before["choice"] and (bool(before["goes"]) or sure_opens)
        for address in found:
            yield ScriptTarget(address, Hop.LINK if sure else Hop.SPECULATIVE, LOCATION if before["goes"] else OPEN)


def _addresses(text: str, position: int, *, choice: bool) -> tuple[list[str], int]:
    """Return the URLs of the expression at *position* (a *choice* has two), and its end."""
    found: list[str] = []
    for _ in range(2):
        value, position = _value(text, position)
        if value is None:
            break
        other = _OTHERWISE.match(text, position) if choice and not found else None
        if not other and not _ENDS.match(text, position):
            break
        if address := _address(value):
            found.append(address)
        if not other:
            break
        position = other.end()
    return found, position


def _value(text: str, position: int) -> tuple[str | None, int]:
    """Return the joined strings and location parts at *position*; None if there is anything else."""
    pieces: list[str] = []
    for _ in range(_MOST_TERMS):
        position = _after_gap(text, position)
        string = _STRING.match(text, position)
        own = None if string else _OWN_PART.match(text, position)
        term = string or own
        if term is None or term.end() - position > _LONGEST:
            return None, position
        pieces.append(_OWN_VALUES[own["part"]] if own else strings.unescaped(text[position + 1 : term.end() - 1]))
        position = term.end()
        joined = _JOINED.match(text, position)
        if joined is None:
            return "".join(pieces), position
        position = joined.end()
    return None, position


def _after_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position


def _address(value: str) -> str:
    """Return *value* as a reference, with NUL as the page's own host; "" if it is no URL."""
    value = (_OWN_HOST.sub("", value.strip(), count=1) or "/") if "\0" in value else value.strip()
    if not value or "\0" in value or not _ADDRESS.fullmatch(value):
        return ""
    return value


ScriptUrls = Iterator[tuple[str, Hop, str]]  # reference, hop, context

_QUOTE = re.compile("[\"'`]")
_SCHEME = re.compile(r"\s*javascript:", re.IGNORECASE)
_NAVIGATES = re.compile(r"location|open|jump|go\b|goto|navigate|redirect|href|submit", re.IGNORECASE)


def program(text: str) -> ScriptUrls:
    """Yield what the *text* of a script element names."""
    yield from _code(text)
    yield from ((reference, hop, "script/state") for reference, hop in embedded_json.assigned(text))
    yield from ((reference, hop, generators.LOADED) for reference, hop in generators.inline(text))


def _code(text: str, *, sure_opens: bool = False) -> ScriptUrls:
    known: set[str] = set()
    for target in targets(text, sure_opens=sure_opens):
        known.add(target.reference)
        yield target
    for reference, kind in javascript.references(text, inline=True):
        if reference not in known:
            yield reference, Hop.SPECULATIVE, kind


def handler(text: str) -> ScriptUrls:
    """Yield what an event handler names; windows that it opens are links."""
    if _QUOTE.search(text):
        yield from _code(text, sure_opens=True)


def is_script_url(reference: str) -> bool:
    """True if *reference* is a `javascript:` URL."""
    return reference[:1] in "jJ \t\n" and _SCHEME.match(reference) is not None


def script_url(reference: str) -> ScriptUrls:
    """Yield what a `javascript:` URL names."""
    code = reference.partition(":")[2]
    return handler(unquote(code) if "%" in code else code)


def navigates(text: str) -> bool:
    """True if the change handler *text* of a menu opens the selected option."""
    return bool(_NAVIGATES.search(text))
