"""What a script that stands in its page names: where it takes its reader, its framework's state, files and pages.

The same is read of event handlers (`onload="…"`) and of `javascript:` URLs.

Where a script of a page takes its reader: `location = "…"`, `location.replace("…")`, `window.open("…")` …

Only a whole address counts: a string, or strings joined with each other and with parts of the page's own location.
What a script adds from anywhere else makes an address that no one knows, so it names nothing. Comments and strings
are told apart from code by the `tokens`. Linear on any text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from archiver.extract.script import embedded_json, generators, javascript, strings
from archiver.model import Hop

LOCATION, OPEN, MENU = "script/location", "script/open", "script/menu"

NEAR = 160  # characters before a string that say what it is assigned to
_LONGEST = 2000  # characters of an address
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
_LEADS_UP = frozenset("=(+?")  # a string behind anything else begins no address
_OWN_PART = re.compile(_OWN)
_JOINED = re.compile(r"\s*\+\s*")
_OTHERWISE = re.compile(r"\s*:\s*")
_ENDS = re.compile(r"\s*(?:[;,)}\]]|//|/\*|\Z)|[ \t]*[\n\r]")
_ADDRESS = re.compile(r"[^\"'\\<>{}\s`|^]{1,2000}")
_STANDS_FOR = {  # in an address that is resolved against the page
    "protocol": "",
    "origin": "//\0",
    "host": "\0",
    "hostname": "\0",
}
_OWN_HOST = re.compile(r"(?:https?:)?//\0(?=[/?#]|\Z)")


class ScriptTarget(NamedTuple):
    """An address to which a script leads, how sure that is, and by what."""

    reference: str
    hop: Hop
    context: str


def goals(text: str, *, sure_opens: bool = False, nested: bool = True) -> Iterator[ScriptTarget]:
    """Each whole address that *text* leads to; *sure_opens*: a window that it opens is what a click is for."""
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
                yield from goals(inner, sure_opens=sure_opens, nested=False)  # setTimeout("location = '…'", 100)
            continue
        found, done = _addresses(text, window + before.start("own"), choice=bool(before["choice"]))
        sure = not before["choice"] and (bool(before["goes"]) or sure_opens)
        for address in found:
            yield ScriptTarget(address, Hop.LINK if sure else Hop.SPECULATIVE, LOCATION if before["goes"] else OPEN)


def _addresses(text: str, position: int, *, choice: bool) -> tuple[list[str], int]:
    """The addresses that the expression at *position* may have, a *choice* two of them, and where it ends."""
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
    """What the strings and parts of the location at *position* make together; None where there is anything else."""
    pieces: list[str] = []
    for _ in range(_MOST_TERMS):
        position = _after_gap(text, position)
        string = _STRING.match(text, position)
        own = None if string else _OWN_PART.match(text, position)
        term = string or own
        if term is None or term.end() - position > _LONGEST:
            return None, position
        pieces.append(_STANDS_FOR[own["part"]] if own else strings.unescaped(text[position + 1 : term.end() - 1]))
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
    """The reference that *value* is, in which a zero stands for the page's own host; "" where it is none."""
    value = (_OWN_HOST.sub("", value.strip(), count=1) or "/") if "\0" in value else value.strip()
    if not value or "\0" in value or not _ADDRESS.fullmatch(value):
        return ""
    return value


Named = Iterator[tuple[str, Hop, str]]  # a reference, how it leads on, and by what

_QUOTE = re.compile("[\"'`]")
_SCHEME = re.compile(r"\s*javascript:", re.IGNORECASE)
_NAVIGATES = re.compile(r"location|open|jump|go\b|goto|navigate|redirect|href|submit", re.IGNORECASE)


def program(text: str) -> Named:
    """What the *text* of a script element names."""
    yield from _code(text)
    yield from ((reference, hop, "script/state") for reference, hop in embedded_json.assigned(text))
    yield from ((reference, hop, generators.LOADED) for reference, hop in generators.inline(text))


def _code(text: str, *, sure_opens: bool = False) -> Named:
    known: set[str] = set()
    for goal in goals(text, sure_opens=sure_opens):
        known.add(goal.reference)
        yield goal
    for reference, kind in javascript.references(text, inline=True):
        if reference not in known:
            yield reference, Hop.SPECULATIVE, kind


def handler(text: str) -> Named:
    """What the value of an event handler names: what it opens is what a click is for."""
    if _QUOTE.search(text):
        yield from _code(text, sure_opens=True)


def is_script(reference: str) -> bool:
    """Whether *reference* is a script instead of an address."""
    return reference[:1] in "jJ \t\n" and _SCHEME.match(reference) is not None


def script_url(reference: str) -> Named:
    """What a `javascript:` URL names."""
    code = reference.partition(":")[2]
    return handler(unquote(code) if "%" in code else code)


def navigates(text: str) -> bool:
    """Whether a handler, which is called when another choice of a menu is made, opens what the choice names."""
    return bool(_NAVIGATES.search(text))
