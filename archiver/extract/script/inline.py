"""Scripts and JSON inside pages: navigation, files and pages, linked data, import maps, and the state of frameworks.

Navigation is `location = "…"`, `location.replace("…")`, `window.open("…")` and the like, also in event handlers and
`javascript:` URLs. Only a complete URL counts: a string, or strings joined with each other and with parts of the page's
own location. A URL with any other part is unknown and names nothing. `strings.tokens` separates comments and strings
from code.

JSON is read as tokens, not as a tree: depth costs nothing, and broken JSON or JSON inside a script is read as far as
possible. In linked data the key gives the meaning of a string. State is only searched for strings that are certainly
files, so those are guesses. Linear on any text; at most `MOST_FILES` guesses per text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from archiver.config.expressions import compiled
from archiver.extract.html.tables import ITEM_FILES, ITEM_PAGES
from archiver.extract.references import URL_KEY, a_download, a_file, a_known_download, like_a_url, surely_a_url
from archiver.extract.script import generators, javascript, strings
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
_STRING = compiled(r"\"(?:[^\"\\\n\r]|\\[\s\S])*+\"|'(?:[^'\\\n\r]|\\[\s\S])*+'|`(?:[^`\\$]|\\[\s\S]|\$(?!\{))*+`")
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
_ARGUMENT = compiled(r"[(,]\s*+(?:'([^'\\\n]{2,300}+)'|\"([^\"\\\n]{2,300}+)\")(?=\s*[,)])")
_ACTS = re.compile(  # on what the page shows, or on the server
    r"add|create|delete|like|post|remove|save|send|submit|toggle|track|update|upload|vote|\bga\b|gtag", re.IGNORECASE
)
_NAVIGATES = re.compile(r"location|open|jump|go\b|goto|navigate|redirect|href|submit", re.IGNORECASE)


def program(text: str) -> ScriptUrls:
    """Yield what the *text* of a script element names."""
    yield from _code(text)
    yield from ((reference, hop, "script/state") for reference, hop in state_files(text))
    yield from ((reference, hop, generators.LOADED) for reference, hop in generators.inline(text))


def data(text: str) -> ScriptUrls:
    """Yield what the JSON *text* of a script element names: files, and pages that it lists."""
    yield from ((reference, hop, "script/json") for reference, hop in json_files(text))
    yield from ((reference, hop, "script/json") for reference, hop in _keyed_files(text) if "/" in reference)
    for reference, kind in javascript.references(text, inline=True):
        if kind in javascript.OF_PAGES:
            yield reference, Hop.SPECULATIVE, kind


def _code(text: str, *, sure_opens: bool = False) -> ScriptUrls:
    known: set[str] = set()
    for target in targets(text, sure_opens=sure_opens):
        known.add(target.reference)
        yield target
    for reference, kind in javascript.references(text, inline=True):
        if reference not in known:
            yield reference, Hop.SPECULATIVE, kind
    for reference in generators.routed(text, ""):
        if reference not in known:
            yield reference, Hop.SPECULATIVE, javascript.PAGE
    for reference, of_script in javascript.joined_urls(text, page=True, worker=False):
        if not of_script:
            yield reference, Hop.SPECULATIVE, javascript.JOINED


def handler(text: str) -> ScriptUrls:
    """Yield what an event handler names; windows that it opens are links."""
    if not _QUOTE.search(text):
        return
    found = list(_code(text, sure_opens=True))
    yield from found
    if not _ACTS.search(text):  # what a click hands over is where it leads: onclick="show('/about')"
        known = {reference for reference, _, _ in found}
        for single, double in _ARGUMENT.findall(text):
            address = single or double
            if address[0] == "/" and address not in known and strings.is_path(address):
                yield address, Hop.SPECULATIVE, javascript.PAGE


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


MOST_FILES = 500
_DEEPEST = 64  # nested objects and arrays whose keys are kept
_NESTED = 3  # levels of JSON in strings

# An unclosed string ends with the text, so that no position is visited twice.
_TOKEN = compiled(r'"((?:[^"\\]++|\\.)*+)(?:(")|\\?\Z)|([{}\[\]:,])', re.DOTALL)
_JSON_STRING = compiled(r"\"((?:[^\"\\]++|\\.)*+)(?:\"|\\?\Z)|'((?:[^'\\\n]++|\\.)*+)'?+", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ASSIGNED = re.compile(
    r"(?<![\w$])(?!___chunkMapping)(?:__\w++|_sharedData|ytInitial\w++|(?:INITIAL|PRELOADED)_STATE|initialState|Fusion\.\w++)"
    r"[\"']?\]?\s*+(?:=(?![=>])|\.push\s*+\(|\()"
)
_STATE_HINTS = ("__", "State", "STATE", "_sharedData", "ytInitial", "Fusion")
_MODULE = re.compile(r"(?:https?://|\.{0,2}/)\S*[^\s/]")


def linked_data(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield pictures and other files described by JSON-LD, and pages about the subject."""
    for key, parent, value in _pairs(text):
        name, above = key.lower(), parent.lower()
        if name in ITEM_FILES or (name == "url" and above in ITEM_FILES):
            if like_a_url(value):
                yield value, Hop.REQUISITE
        elif name in ITEM_PAGES and surely_a_url(value):
            yield value, Hop.LINK


def import_map(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield the modules of an import map: a script loads them by name."""
    for _, _, value in _pairs(text):
        if _MODULE.fullmatch(value):
            yield value, Hop.REQUISITE


def speculation_rules(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield the pages in speculation rules, which a person will probably open."""
    for key, _, value in _pairs(text):
        if key == "urls":
            yield value, Hop.LINK


def json_files(text: str, *, near: bool = False) -> Iterator[tuple[str, Hop]]:
    """Yield the strings in *text*, and in JSON inside its strings, that are certainly files.

    *near*: relative paths with a folder count as well.
    """
    seen: dict[str, None] = {}
    texts = [text]
    for _ in range(_NESTED):
        nested: list[str] = []
        for part in texts:
            for string in _JSON_STRING.finditer(part):
                value = _unescaped(string[1] or string[2] or "")
                if a_file(value, near=near and "/" in value) and value not in seen:
                    if len(seen) == MOST_FILES:
                        return
                    seen[value] = None
                    yield value, Hop.SPECULATIVE
                elif '"' in value:
                    nested.append(value)
        texts = nested


_OF_FILE = re.compile(
    r"\w{0,30}?(?:src(?:set|t)?|ur[li]|href|file|path|image|img|pic(?:ture)?|photo|poster|thumb(?:nail)?|panorama|video|audio)",
    re.IGNORECASE,
)


_OF_DOWNLOAD = re.compile(rf"file|{URL_KEY}")


def settings_files(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield the files in the JSON settings of an element: also in its own folder, under a key for a file."""
    yield from json_files(text, near=True)
    yield from _keyed_files(text)


def _keyed_files(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield the files under keys for one in JSON, also relative ones."""
    for key, _, value in _pairs(text):
        if (_OF_FILE.fullmatch(key) and a_file(value, near=True)) or _is_download(key, value):
            yield value, Hop.SPECULATIVE


def _is_download(key: str, value: str) -> bool:
    if value[:4] == "http" or not _OF_DOWNLOAD.fullmatch(key):
        return False
    return a_known_download(value) if key == "file" else a_download(value)


def state_files(script: str) -> Iterator[tuple[str, Hop]]:
    """Yield the files in the state that a *script* gives to its framework (`window.__INITIAL_STATE__ = {…}`)."""
    start = _ASSIGNED.search(script) if any(hint in script for hint in _STATE_HINTS) else None
    return json_files(script[start.end() :]) if start else iter(())


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (key, key of the enclosing object, value) for each string value."""
    enclosing = _KeyStack()
    key = ""
    string: str | None = None
    for token in _TOKEN.finditer(text):
        sign = token[3]
        if sign is None:
            string = token[1] if token[2] else None  # the end of an unclosed string is unknown
            continue
        if string is not None and sign == ":":
            key = _unescaped(string)
        elif string is not None:
            yield key, enclosing.key, _unescaped(string)
        string = None
        if sign in "{[":
            enclosing.enter(key)
        elif sign in "}]":
            key = enclosing.leave(key)
    if string is not None:
        yield key, enclosing.key, _unescaped(string)


class _KeyStack:
    """The keys of the enclosing objects and arrays, at most the `_DEEPEST` outermost."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._depth = 0

    @property
    def key(self) -> str:
        """The key of the innermost known object."""
        return self._keys[-1] if self._keys else ""

    def enter(self, key: str) -> None:
        """Start an object or array under *key*."""
        self._depth += 1
        if self._depth <= _DEEPEST:
            self._keys.append(key)

    def leave(self, key: str) -> str:
        """End an object or array; return the key that holds after it."""
        if self._depth == 0:
            return key
        self._depth -= 1
        return self._keys.pop() if self._depth < _DEEPEST else key


def _unescaped(string: str) -> str:
    if "\\" not in string:
        return string
    plain = _ESCAPE.sub(
        lambda escape: chr(int(escape[1], 16)) if escape[1] else _SHORT.get(escape[2], escape[2]), string
    )
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_SHORT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
