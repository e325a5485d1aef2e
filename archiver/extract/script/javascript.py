"""What a script names that is surely a file or a page: guesses, as nothing in the language says what is an address.

A string counts where it is whole, its path is plain and ends as files of pages do. Relative ones start at the page that
runs the script, unless the language resolves them against the script itself (`import`). Pages that the script lists are
chosen by `listed`. Linear, and bounded, on any text.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from archiver.extract.script import bundles, strings
from archiver.extract.script.strings import ListedPages
from archiver.extract.url_guess import FILES
from archiver.url import PAGE_ENDINGS

MOST_FILES = 100_000  # strings that end as files do: each is looked at from all sides, which takes 20 µs
LONGEST = 1000  # characters of a string that is looked at; one that is longer is data
NEAR = 48  # characters around a string that say what is done with it

IMPORT, FILE_URL, SOURCE_MAP, STRING, CHUNK, PAGE = (
    f"script/{kind}" for kind in ("import", "url", "sourcemap", "string", "chunk", "page")
)
OF_ITSELF = frozenset((IMPORT, FILE_URL, SOURCE_MAP))  # these are relative to the script, wherever it runs

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
_PICTURES = frozenset(("apng", "avif", "bmp", "gif", "ico", "jpeg", "jpg", "png", "svg", "webp"))
_ENDING = re.compile(rf"\.(?:{'|'.join(sorted(_FILES | PAGE_ENDINGS))})(?![\w.-])", re.IGNORECASE)
_FROM_ROOT = re.compile(r".(?:/|https?://)[\w~]")
# Names and places that stand in programs which look for files on a disk, not on a site.
_NOT_SERVED = re.compile(
    r"/(?:node_modules|bower_components|Users|usr)/|/(?:package|package-lock|tsconfig|bower|composer)\.json\Z"
    r"|/index\.[mc]?js\Z",
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
_OF_MODULE = re.compile(r"\s*,\s*(?:(?:\"\"|''|``)\s*\+\s*)?import\.meta\.url\s*[,)]")
_ASSIGNED = re.compile(
    r"(?:\.(?:src|href|poster)\s*=|(?:\A|[^\w$.])(?:fetch|new\s+(?:Worker|SharedWorker|Audio))\s*\("
    r"|\.serviceWorker\.register\s*\(|\.(?:getJSON|getScript|load)\s*\(|\.open\s*\(\s*[\"']GET[\"']\s*,"
    r"|(?:\$|jQuery|axios)\.get\s*\(|\bd3\.(?:json|csv|tsv|xml|text|image)\s*\()\Z"
)
# What is compared, searched for, or joined with something else is no address, or not a whole one.
_IN_PART_BEFORE = re.compile(
    r"(?:\+|[!=]=|(?:\A|[^\w$.])case|(?:\A|[^\w$])(?:indexOf|lastIndexOf|includes|startsWith|endsWith|match|matches|split"
    r"|replace|replaceAll|search|test|require|define|resolve|concat|contains|has|log|info|warn|error|Error)\s*\()\Z"
)
_IN_PART_AFTER = re.compile(r"\s*(?:[+.\[(]|[!=]=)")
_KEYWORD = re.compile(r"(?:\A|[^\w$.])(?:return|from|import|default|of|in|yield|await|else|typeof)\Z")
_COMMA = re.compile(r"\s*,\s*")


def is_program(kind: str) -> bool:
    """Whether a script element of this type, in lower case, holds a program, and not data or a template."""
    return kind in _PROGRAMS or kind.endswith(("/javascript", "/ecmascript", "/babel"))


def references(text: str, *, inline: bool = False, near: bool = False) -> Iterator[tuple[str, str]]:
    """Each file and page that *text* names, and by what; *inline*: it stands in the page that runs it.

    *near*: that page is known, so relative strings have a meaning in a script of its own too.
    """
    yield from _chunks(text, inline=inline)
    source_map = ""
    listed = 0  # where the latest string of an importScripts ends
    left = MOST_FILES
    pages = ListedPages(own=inline)
    for start, end in strings.tokens(text):
        if text[start] == "/":
            found = _MAP.match(text, start, end)
            source_map = found[1] if found else source_map
            continue
        if end - start > LONGEST or not left:
            continue
        use = _Use.WORD
        if _ENDING.search(text, start, end):
            left -= 1
            use = _use(text, start, end, listed)
            listed = end if use is _Use.SCRIPTS else listed
        elif not _FROM_ROOT.match(text, start, end):
            continue
        value = _unescaped(text[start + 1 : end - 1])
        if use in _CONTEXTS and _is_meant(value, use, inline=inline, near=near):
            yield value, _CONTEXTS[use]
        elif use in _MAY_BE_PAGES:
            pages.take(value, text[max(0, start - NEAR) : start].rstrip(), text[end : end + NEAR].lstrip(" \t"))
    yield from ((page, PAGE) for page in pages.chosen())
    if source_map and not inline and not source_map.startswith("data:"):
        yield source_map, SOURCE_MAP


def _chunks(text: str, *, inline: bool) -> Iterator[tuple[str, str]]:
    for chunk in bundles.names(text):
        own = chunk.startswith(".")  # relative to the script, if that stands in a file
        if not (own and inline) and _is_file(chunk, _SCRIPTS, relative=own):
            yield chunk, IMPORT if own else CHUNK


def assets(text: str, address: str) -> Iterator[str]:
    """Yield the pictures, fonts and other files that the packed script at *address* loads from where its chunks lie."""
    for name in bundles.assets(text, address):
        if _is_file(name, _FILES, relative=True):
            yield name


class _Use(Enum):
    """What is done with a string."""

    PART = auto()  # no address, or not a whole one
    KEY = auto()  # the name of a value
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


_MAY_BE_PAGES = frozenset((_Use.WORD, _Use.ASSIGNED, _Use.KEY))


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
        return _Use.KEY
    if text[start] == "`" and (last.isalnum() or last in {")", "]", "_", "$"}) and not _KEYWORD.search(before):
        return _Use.PART  # what a function makes of it, nobody knows
    return _Use.ASSIGNED if _ASSIGNED.search(before) else _Use.WORD


def _is_meant(value: str, use: _Use, *, inline: bool, near: bool) -> bool:
    """Whether *value* is surely the address of a file, its *use* being what it is."""
    match use:
        case _Use.MODULE:  # a bare name means what the page's map, or nobody, says
            return _is_file(value, _SCRIPTS, relative=value.startswith("."))
        case _Use.SCRIPTS:
            return _is_file(value, _SCRIPTS, relative=True)
        case _Use.URL:
            return _is_file(value, _FILES, relative=True)
        case _Use.ASSIGNED:
            return _is_file(value, _FILES, relative=inline or near)
    if _is_file(value, _FILES, relative=False):
        return True
    if "/" in value:
        return (inline or near) and _is_file(value, _FILES - _SCRIPTS, relative=True)
    return inline and _is_file(value, _PICTURES, relative=True)


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
