"""JSON inside pages: linked data, import maps, speculation rules, and the state of frameworks.

It is read as tokens, not as a tree: depth costs nothing, and broken JSON or JSON inside a script is read as far as
possible. In linked data the key gives the meaning of a string. State is only searched for strings that are certainly
files, so those are guesses. Linear; at most `MOST_FILES` guesses per text.
"""

import re
from collections.abc import Iterator

from archiver.extract.html.tables import ITEM_FILES, ITEM_PAGES
from archiver.extract.url_guess import a_file, like_a_url, surely_a_url
from archiver.model import Hop

MOST_FILES = 500
_DEEPEST = 64  # nested objects and arrays whose keys are kept
_NESTED = 3  # levels of JSON in strings

# An unclosed string ends with the text, so that no position is visited twice.
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:(")|\\?\Z)|([{}\[\]:,])', re.DOTALL)
_STRING = re.compile(r"\"((?:[^\"\\]++|\\.)*+)(?:\"|\\?\Z)|'((?:[^'\\\n]++|\\.)*+)'?+", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ASSIGNED = re.compile(
    r"(?<![\w$])(?:__\w++|_sharedData|ytInitial\w++|(?:INITIAL|PRELOADED)_STATE|initialState|Fusion\.\w++)"
    r"[\"']?\]?\s*+(?:=(?![=>])|\.push\s*+\(|\()"
)
_HINTS = ("__", "State", "STATE", "_sharedData", "ytInitial", "Fusion")
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


def modules(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield the modules of an import map: a script loads them by name."""
    for _, _, value in _pairs(text):
        if _MODULE.fullmatch(value):
            yield value, Hop.REQUISITE


def next_pages(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield the pages in speculation rules, which a person will probably open."""
    for key, _, value in _pairs(text):
        if key == "urls":
            yield value, Hop.LINK


def files(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield the strings in *text*, and in JSON inside its strings, that are certainly files."""
    seen: dict[str, None] = {}
    texts = [text]
    for _ in range(_NESTED):
        nested: list[str] = []
        for part in texts:
            for string in _STRING.finditer(part):
                value = _unescaped(string[1] or string[2] or "")
                if a_file(value) and value not in seen:
                    if len(seen) == MOST_FILES:
                        return
                    seen[value] = None
                    yield value, Hop.SPECULATIVE
                elif '"' in value:
                    nested.append(value)
        texts = nested


def assigned(script: str) -> Iterator[tuple[str, Hop]]:
    """Yield the files in the state that a *script* gives to its framework (`window.__INITIAL_STATE__ = {…}`)."""
    start = _ASSIGNED.search(script) if any(hint in script for hint in _HINTS) else None
    return files(script[start.end() :]) if start else iter(())


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
