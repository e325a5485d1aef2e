"""What a script names that is surely a file: guesses, for nothing in the language says which string is an address.

A string counts where it is whole, its path is plain and ends as files of pages do, and it is known what it is relative
to. A script that stands in a file is not told which page runs it, so relative strings count there only where the
language resolves them against the script. One pass by tokens knows strings, templates, comments and regular
expressions well enough not to take one for another. Linear, and bounded, on any text.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from archiver.extract import charset, chunks, manuals
from archiver.extract.document import Document
from archiver.extract.found import Found
from archiver.extract.guess import FILES
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20
MOST_TOKENS = 2_000_000  # strings, comments and slashes of one script; a bundle of 5 MB has a tenth of them …
MOST_FILES = 100_000  # … and of strings that end as files do: each is looked at from all sides, which takes 20 µs
LONGEST = 1000  # characters of a string that is looked at; one that is longer is data
DEEPEST = 500  # templates in templates; real code has two or three
NEAR = 48  # characters around a string that say what is done with it

IMPORT, FILE_URL, SOURCE_MAP, STRING, CHUNK = (
    f"script/{kind}" for kind in ("import", "url", "sourcemap", "string", "chunk")
)

TYPES = frozenset(
    (
        *("text/javascript", "application/javascript", "application/x-javascript", "text/x-javascript"),
        *("application/ecmascript", "application/x-ecmascript", "text/ecmascript", "text/x-ecmascript"),
        *(f"text/javascript1.{version}" for version in range(6)),
        *("text/jscript", "text/livescript"),
    )
)

_PROGRAMS = TYPES | {"", "module", "javascript"}  # types of script elements

_SCRIPTS = frozenset(("js", "mjs", "cjs", "css", "json", "wasm"))
_FILES = FILES | frozenset(("csv", "geojson", "kml", "pdf", "topojson", "xml"))
_ENDING = re.compile(rf"\.(?:{'|'.join(sorted(_FILES))})(?![\w.-])", re.IGNORECASE)
# Names and places that stand in programs which look for files on a disk, not on a site.
_NOT_SERVED = re.compile(
    r"/(?:node_modules|bower_components|Users|usr)/|/(?:package|package-lock|tsconfig|bower|composer)\.json\Z"
    r"|/index\.[mc]?js\Z",
)

_DULL = r"\"[^\"\\\n\r/.]*+\"|'[^'\\\n\r/.]*+'"  # a string that cannot be a file
_REST = (
    r"(?P<double>\"[^\"\\\n\r]*+(?:\\(?:\r\n|[\s\S])[^\"\\\n\r]*+)*+(?:\"|\\?))"
    r"|(?P<single>'[^'\\\n\r]*+(?:\\(?:\r\n|[\s\S])[^'\\\n\r]*+)*+(?:'|\\?))"
    r"|(?P<template>`)"
    r"|(?P<line>//[^\n\r\u2028\u2029]*+)"
    r"|(?P<block>/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?)"
    r"|(?P<slash>/)"
)
_CODE = re.compile(rf"(?:[^\"'`/]++|{_DULL})*+(?:{_REST})")
_IN_TEMPLATE = re.compile(rf"(?:[^\"'`/{{}}]++|{_DULL})*+(?:{_REST}|(?P<open>\{{)|(?P<close>\}}))")
_TEMPLATE = re.compile(r"[^`\\$]*+(?:(?:\\[\s\S]|\$(?!\{))[^`\\$]*+)*+(?:(?P<end>`)|(?P<hole>\$\{)|\\?)")
_REGEX = re.compile(r"/(?:[^/\\\[\n\r]++|\\[^\n\r]|\[(?:[^\]\\\n\r]++|\\[^\n\r])*+\]?)*+/?")
_OPERATORS = frozenset("(,=:[!&|?{};+-*%~^<>")  # behind which an operand stands, so a slash begins a regular expression
_SPACES = frozenset("\t\n\v\f\r \xa0")
_BEFORE_OPERAND = re.compile(
    r"(?:\A|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|else|do|yield|await|instanceof)\Z"
)

_ESCAPE = re.compile(r"\\(?:([/'\"`.-])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,5})\})")
_STEP = r"(?:[\w~@+.-]|%[0-9A-Fa-f]{2})"
_SHAPE = re.compile(
    r"(?P<base>(?:https?:)?//(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,20}(?::[0-9]{1,5})?/|/|\./|(?:\.\./)++|)"
    rf"(?P<path>(?:{_STEP}++/)*+[\w@]{_STEP}*+)"
    r"(?:\?(?:[\w~@+.,;:&/-]|=(?=[\w%/.-])|%[0-9A-Fa-f]{2})++)?(?:#[\w.-]*+)?",
    re.IGNORECASE,
)
_MAP = re.compile(r"//[#@][ \t]sourceMappingURL=([^\s'\"]{1,1000})\s*\Z")

_IMPORT = re.compile(r"(?:\A|[^\w$.])(?:import\s*\(|import|from)\Z")
_IMPORT_SCRIPTS = re.compile(r"(?:\A|[^\w$])importScripts\s*\(\Z")
_NEW_URL = re.compile(r"(?:\A|[^\w$.])new\s+URL\s*\(\Z")
_OF_MODULE = re.compile(r"\s*,\s*(?:(?:\"\"|'')\s*\+\s*)?import\.meta\.url\s*[,)]")
_ASSIGNED = re.compile(
    r"(?:\.(?:src|href|poster)\s*=|(?:\A|[^\w$.])(?:fetch|new\s+(?:Worker|SharedWorker|Audio))\s*\("
    r"|\.serviceWorker\.register\s*\()\Z"
)
# What is compared, searched for, or joined with something else is no address, or not a whole one.
_IN_PART_BEFORE = re.compile(
    r"(?:\+|[!=]=|(?:\A|[^\w$.])case|(?:\A|[^\w$])(?:indexOf|lastIndexOf|includes|startsWith|endsWith|match|matches|split"
    r"|replace|replaceAll|search|test|require|define|resolve|concat|contains|has|log|info|warn|error|Error)\s*\()\Z"
)
_IN_PART_AFTER = re.compile(r"\s*(?:[+.\[(]|[!=]=)")
_KEYWORD = re.compile(r"(?:\A|[^\w$.])(?:return|from|import|default|of|in|yield|await|else|typeof)\Z")
_COMMA = re.compile(r"\s*,\s*")


def read(document: Document) -> Links:
    """The files that the script names: guesses, but for what the data of a generated manual surely name."""
    encoding = charset.of_xml(document.body, document.charset)
    found = Found()
    text = charset.text(document.body[:MOST_BYTES], encoding)
    for reference, hop, context in manuals.names(text, document.url):
        found.add(reference, hop, context)
    for reference, context in references(text):
        found.add(reference, Hop.SPECULATIVE, context)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, encoding, note, queries="utf-8")


def is_program(kind: str) -> bool:
    """Whether a script element of this type, in lower case, holds a program, and not data or a template."""
    return kind in _PROGRAMS or kind.endswith(("/javascript", "/ecmascript", "/babel"))


def references(text: str, *, inline: bool = False) -> Iterator[tuple[str, str]]:
    """Each file that *text* names, and by what; *inline*: it stands in its page, so relative strings mean that page."""
    for chunk in chunks.names(text):
        own = chunk.startswith(".")  # relative to the script, if that stands in a file
        if not (own and inline) and _is_file(chunk, _SCRIPTS, relative=own):
            yield chunk, IMPORT if own else CHUNK
    source_map = ""
    listed = 0  # where the latest string of an importScripts ends
    left = MOST_FILES
    for start, end in _tokens(text):
        if text[start] == "/":
            found = _MAP.match(text, start, end)
            source_map = found[1] if found else source_map
        elif end - start <= LONGEST and _ENDING.search(text, start, end) and left:
            left -= 1
            value = _unescaped(text[start + 1 : end - 1])
            use = _use(text, start, end, listed)
            if use is _Use.SCRIPTS:
                listed = end
            if value and use in _CONTEXTS and _is_meant(value, use, inline=inline):
                yield value, _CONTEXTS[use]
    if source_map and not inline and not source_map.startswith("data:"):
        yield source_map, SOURCE_MAP


class _Use(Enum):
    """What is done with a string."""

    PART = auto()  # no address, or not a whole one
    WORD = auto()  # nothing that says what it is
    ASSIGNED = auto()  # to what holds an address, or given to a function that wants one
    MODULE = auto()  # imported
    SCRIPTS = auto()  # one of importScripts
    URL = auto()  # new URL("…", import.meta.url)


_CONTEXTS = {
    _Use.WORD: STRING,
    _Use.ASSIGNED: STRING,
    _Use.MODULE: IMPORT,
    _Use.SCRIPTS: IMPORT,
    _Use.URL: FILE_URL,
}


def _use(text: str, start: int, end: int, listed: int) -> _Use:
    """What is done with the string from *start* to *end*; *listed* is where the latest one of importScripts ends."""
    if listed and start - listed < NEAR and _COMMA.fullmatch(text, listed, start):
        return _Use.SCRIPTS
    before, after = text[max(0, start - NEAR) : start].rstrip(), text[end : end + NEAR]
    last = before[-1:]
    if last in {"(", "t", "m"}:
        if _IMPORT.search(before):
            return _Use.MODULE
        if _IMPORT_SCRIPTS.search(before):
            return _Use.SCRIPTS
        if _NEW_URL.search(before):
            return _Use.URL if _OF_MODULE.match(after) else _Use.PART
    if _IN_PART_BEFORE.search(before) or _IN_PART_AFTER.match(after):
        return _Use.PART
    if last in {"{", ","} and after.lstrip()[:1] == ":":
        return _Use.PART  # a key
    if text[start] == "`" and (last.isalnum() or last in {")", "]", "_", "$"}) and not _KEYWORD.search(before):
        return _Use.PART  # what a function makes of it, nobody knows
    return _Use.ASSIGNED if _ASSIGNED.search(before) else _Use.WORD


def _is_meant(value: str, use: _Use, *, inline: bool) -> bool:
    """Whether *value* is surely the address of a file, its *use* being what it is."""
    match use:
        case _Use.MODULE:  # a bare name means what the page's map, or nobody, says
            return _is_file(value, _SCRIPTS, relative=value.startswith("."))
        case _Use.SCRIPTS:
            return _is_file(value, _SCRIPTS, relative=True)
        case _Use.URL:
            return _is_file(value, _FILES, relative=True)
        case _Use.ASSIGNED:
            return _is_file(value, _FILES, relative=inline)
    return _is_file(value, _FILES, relative=False) or (
        inline and "/" in value and _is_file(value, _FILES - _SCRIPTS, relative=True)
    )


def _is_file(value: str, endings: frozenset[str], *, relative: bool) -> bool:
    """Whether *value* is the address of a file with one of these *endings*; *relative*: it may be a relative one."""
    shape = _SHAPE.fullmatch(value)
    if shape is None or ".." in shape["path"]:
        return False
    base, path = shape["base"], shape["path"]
    if base.endswith("/") and not base.startswith("."):
        if _NOT_SERVED.search(f"/{path}"):
            return False
    elif not relative:
        return False
    name, dot, ending = path.rpartition(".")
    return name != "" and dot != "" and ending.lower() in endings


def _unescaped(value: str) -> str:
    """*value* as the program sees it; "" where it holds what no address has."""
    if "\\" not in value:
        return value
    plain = _ESCAPE.sub(_unescape, value)
    return "" if "\\" in plain else plain


def _unescape(escape: re.Match[str]) -> str:
    return escape[1] or chr(int(escape[2] or escape[3] or escape[4], 16))


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """Where the strings of *text* stand that may be files, quotes included, and the comments to the end of a line."""
    position = behind = 0
    templates = _Templates(text)
    for _ in range(MOST_TOKENS):
        token = (_IN_TEMPLATE if templates.holes else _CODE).match(text, position)
        if token is None or len(templates.holes) > DEEPEST:
            return
        kind, position = token.lastgroup or "", token.end()
        start = token.start(kind)
        whole = kind == "line"
        if kind in {"double", "single"}:
            whole = position - start > 1 and text[position - 1] == text[start]
        elif kind == "slash" and _begins_operand(text, start, behind):
            expression = _REGEX.match(text, start)
            position = expression.end() if expression else position
        elif kind in {"template", "open", "close"}:
            position, whole = templates.step(kind, position)
        if whole:
            yield start, position
        behind = position if kind not in {"line", "block"} else behind


class _Templates:
    """The templates that are open at a place of *text*: strings with holes, in which code stands."""

    def __init__(self, text: str) -> None:
        self.holes: list[int] = []  # for each, the braces that are open in its hole
        self._text = text

    def step(self, kind: str, position: int) -> tuple[int, bool]:
        """Behind a back quote or a brace: where code goes on, and whether a whole template without a hole is past."""
        if kind == "open":
            self.holes[-1] += 1
            return position, False
        if kind == "close":
            if self.holes[-1]:
                self.holes[-1] -= 1
                return position, False
            self.holes.pop()
        rest = _TEMPLATE.match(self._text, position)
        if rest is None:
            return len(self._text), False
        if rest["hole"]:
            self.holes.append(0)
        return rest.end(), kind == "template" and rest["end"] is not None


def _begins_operand(text: str, slash: int, behind: int) -> bool:
    """Whether a regular expression begins at *slash*, which stands *behind* a token, or divides."""
    place = slash
    while place > behind and text[place - 1] in _SPACES:
        place -= 1
    if not place:
        return True
    last = text[place - 1]
    if last in "+-" and text[place - 2 : place - 1] == last:
        return False
    return last in _OPERATORS or bool(_BEFORE_OPERAND.search(text[max(0, place - 12) : place]))
