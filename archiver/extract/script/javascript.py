"""Strings in scripts that are certainly files or pages. All are guesses, as JavaScript does not mark URLs.

A string counts if it is complete, its path is plain, and it has the extension of a web file, or code around it takes
a URL. Relative strings are resolved against the page that runs the script, except where the language uses the script
itself (`import`).
`ListedPages` selects the pages that a script lists. Linear and bounded on any text.
"""

import re
from bisect import bisect
from collections.abc import Iterator
from enum import Enum, auto
from functools import partial

from archiver.config.expressions import compiled
from archiver.extract.document import SCRIPT_TYPES
from archiver.extract.references import FILES, KNOWN_DOWNLOADS, URL_KEY, WHOLE_URL, a_download
from archiver.extract.script import bundles, composed, folders, loader_paths, strings
from archiver.extract.script.strings import ListedPages
from archiver.url import PAGE_ENDINGS

MOST_FILES = 100_000  # strings with a file extension: each check takes 20 µs
LONGEST = 1000  # characters of a string; longer ones are data
NEAR = 48  # characters around a string that show its use

IMPORT, FILE_URL, SOURCE_MAP, STRING, CHUNK, PAGE, JOINED = (
    f"script/{kind}" for kind in ("import", "url", "sourcemap", "string", "chunk", "page", "joined")
)
OF_ITSELF = frozenset((IMPORT, FILE_URL, SOURCE_MAP))  # relative to the script, wherever it runs
OF_PAGES = frozenset((PAGE, WHOLE_URL))

_PROGRAMS = SCRIPT_TYPES | {"", "module", "javascript"}  # type attributes of script elements

_SCRIPTS = frozenset(("js", "mjs", "cjs", "css", "json", "wasm"))
_FILES = FILES | frozenset(("csv", "geojson", "kml", "pdf", "topojson", "xml"))
_LOADED = _FILES | frozenset(  # data that is a file of the site only where a script surely loads it
    (
        *("arrow", "bin", "epub", "fbx", "glsl", "gpx", "hdr", "mtl", "obj", "opf", "parquet", "ply", "stl"),
        *("tsv", "txt", "usdz", "yaml", "yml"),
    )
)
_LOADED_BY_PATH = _LOADED | frozenset(("atlas", "exr", "fnt", "ktx2", "pcd", "tga", "vrm", "wrl"))
_BESIDE = _LOADED | PAGE_ENDINGS  # what a module may have beside itself
_DATA = _LOADED - _SCRIPTS
_NOT_OF_PAGE = _SCRIPTS - {"json", "wasm"}  # may be names of modules, also in a script of the page
_PICTURES = frozenset(("apng", "avif", "bmp", "gif", "ico", "jpeg", "jpg", "png", "svg", "webp"))
_FROM_ROOT = re.compile(r".(?:\\?/|https?:(?:\\?/){2})[\w~]")
_ENDING = re.compile(rf"\.(?:{'|'.join(sorted(_LOADED | PAGE_ENDINGS))})(?![\w.-])", re.IGNORECASE)
# Names and folders in programs that look for files on a disk, not on a site.
_NOT_SERVED = re.compile(
    r"/(?:node_modules|bower_components|Users|usr)/|/(?:package|package-lock|tsconfig|bower|composer)\.json\Z"
    r"|/index\.[mc]?js\Z|\A/__data\.json\Z"  # the last: what SvelteKit's program adds to the path of a page
)

# The name of a package, or a media type
_NAME_ONLY = re.compile(r"@|(?:application|audio|font|image|model|text|video)/(?:vnd\.|x-)")
_ESCAPE = re.compile(r"\\(?:([/'\"`.-])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,5})\})")
_STEP = r"(?:[\w~@+.-]|%[0-9A-Fa-f]{2})"
_SHAPE = compiled(
    r"(?P<base>(?:https?://(?:(?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63}|\[[0-9a-f:.]{2,45}\])"
    r"|//(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,20})(?::[0-9]{1,5})?/|/|\./|(?:\.\./)++|)"
    rf"(?P<path>(?:{_STEP}++/)*+[\w@]{_STEP}*+)"
    r"(?:\?(?:[\w~@+.,;:&/-]|=(?=[\w%/.-])|%[0-9A-Fa-f]{2})++)?(?:#[\w.-]*+)?",
    re.IGNORECASE,
)
_MAP = re.compile(r"//[#@][ \t]sourceMappingURL=([^\s'\"]{1,1000})\s*\Z")

_IMPORT = re.compile(r"(?:\A|[^\w$.])(?:import\s*(?:\.\s*meta\s*\.\s*resolve\s*)?\(|import|from)\Z")
_IMPORT_SCRIPTS = re.compile(r"(?:\A|[^\w$])importScripts\s*\(\Z")
_NEW_URL = re.compile(r"(?:\A|[^\w$.])new\s+URL\s*\(\Z")
_OF_PAGE = re.compile(  # the second argument of new URL(): what is below the root is there for each of them
    r"\s*,\s*(?:(?:window|document|self)\s*\.\s*)?(?:location(?:\s*\.\s*(?:href|origin))?|baseURI|URL)\s*[,)]"
)
_OF_MODULE = re.compile(r"\s*,\s*(?:(?:\"\"|''|``)\s*\+\s*)?import\.meta\.url\s*[,)]")
_OF_OPTIONS = compiled(r"[^{}()]{0,200}\}\s*+,\s*+import\.meta\.url\s*[,)]")  # load({path: "a.txt"}, import.meta.url)
_PLACE = re.compile(r"(?:\A|[^\w$.])[\"']?(?:path|file|url|href|src)[\"']?\s*:\Z")
_DOWNLOAD = re.compile(r"[\"'`][^\"'`]{0,500}/[^\"'`/]{0,200}\.(?:[a-zA-Z]\w{0,7}|7z)[\"'`?#]")
_FILED = re.compile(r"(?:\A|[^\w$.])[\"']?file[\"']?\s*:\Z")
_KNOWN_DOWNLOAD = re.compile(rf"[\"'`][^\"'`]{{0,500}}/[^\"'`/]{{0,200}}\.(?:{KNOWN_DOWNLOADS})[\"'`?#]", re.IGNORECASE)
_LINKED = re.compile(rf"(?:\A|[^\w$.])[\"']?{URL_KEY}[\"']?\s*:\Z")
_ASSIGNED = re.compile(
    r"(?:\.(?:src|href|poster)\s*=|\.(?:setAttribute|attr|prop)\s*\(\s*[\"'`](?:src|href|poster)[\"'`]\s*,"
    r"|(?:\A|[^\w$.])(?:fetch|new\s+(?:Worker|SharedWorker|Audio|Request))\s*\("
    r"|\.serviceWorker\.register\s*\(|\.(?:getJSON|getScript)\s*\(|(?:\.open|htmx\.ajax)\s*\(\s*[\"'`]GET[\"'`]\s*,"
    r"|(?:\.load|(?:\A|[^\w$])(?:fetch|load)[A-Z])\w{0,30}\s*\(|(?:\A|[^\w$.])[\"']?(?:url|href|src)[\"']?\s*:"
    r"|Src[\"']?\s*[:=]\s*\{\s*value\s*:"  # an option of PDF.js with its default
    r"|(?:\A|[^\w$])\w{0,30}(?:[wW]orker|[wW]asm)(?:Src|Ur[li]|UR[LI]|Path|File)?[\"']?\s*[:=]"
    rf"|{strings.REQUESTS}|(?:\$|jQuery|axios)\.get\s*\(|(?:\A|[^\w$.])ePub\s*\(|\.from(?:Url|URL)\s*\(|\bd3\.(?:json|csv|tsv|xml|text|image)\s*\("
    r"|(?:\A|[^\w$.])(?:const|let|var)\s+[\w$]{0,30}(?:[uU]rl|URL|[sS]rc|[hH]ref)\s*=)\Z"
)
# A string that is compared, searched for or joined is no URL, or only a part of one.
_IN_PART_BEFORE = re.compile(
    r"(?:\+|[!=]=|(?:\A|[^\w$.])case|(?:\A|[^\w$])(?:indexOf|lastIndexOf|includes|startsWith|endsWith|match|matches|split"
    r"|replace|replaceAll|search|test|require|define|resolve|concat|contains|has|log|info|warn|error|Error)\s*\("
    r"|(?:[uU]rl|URL)\s*\(\s*\{\s*[\w$]{1,30}\s*:"  # getUrl({asset: "a.png"}) puts the URL together
    r"|(?:_require__\(\s*/\*!|\A)[^*\"']{1,48}\*/"  # the name of a module in a development build of webpack
    r"|\btheme_switcher_json_url\s*="  # below the root of the manual, see `versions`
    r"|\.replace\s*\(\s*(?:\"[^\"]*\.[cm]?js\"|'[^']*\.[cm]?js'|`[^`]*\.[cm]?js`)\s*,)\Z"  # ("/a.js", "/min/a.js")
)
_IN_PART_AFTER = re.compile(r"\s*(?:[+.\[(]|[!=]=|/\*!\*)")  # the last: a heading that webpack puts after such a name
_QUERY_FOLLOWS = re.compile(r"\s*\+(?![+=])")
_BELOW_ELSEWHERE = compiled(  # names in an object after the URL of their folder: pictures of emojis on another host
    r"base(?:_?(?:url|path)|U(?:rl|RL)|Path)[\"']?\s*+:\s*+(?:\"https?://[^\"\s]{1,300}\"|'https?://[^'\s]{1,300}'"
    r"|`https?://[^`\s]{1,300}`)\s*+,\s*+[\"']?\w{1,40}[\"']?\s*+:\s*+\{[^{}]*+"
)
_KEYWORD = re.compile(r"(?:\A|[^\w$.])(?:return|from|import|default|of|in|yield|await|else|typeof)\Z")
_COMMA = re.compile(r"\s*,\s*")
_ASSET = re.compile(r"[\"'`](?:\./)?assets/")  # the folder of Angular: this.h.get("assets/a.json")


def is_program(kind: str) -> bool:
    """True if a script element with this type, in lower case, holds a program, not data or a template."""
    return kind in _PROGRAMS or kind.endswith(("/javascript", "/ecmascript", "/babel"))


def references(text: str, address: str = "", *, inline: bool = False, near: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each file and page that *text*, a script at *address*, names, and its context.

    *inline*: the script is part of its page. *near*: its page is known, so relative strings have a meaning in a
    separate script too.
    """
    yield from _chunks(text, address, inline=inline, near=near)
    source_map = ""
    listed = 0  # end of the last string of an importScripts
    left = MOST_FILES
    pages = ListedPages(own=inline)
    for start, end in _tokens(text):
        if text[start] == "/":
            found = _MAP.match(text, start, end)
            source_map = found[1] if found else source_map
            continue
        if end - start > LONGEST or not left:
            continue
        use = _Use.WORD
        if _ENDING.search(text, start, end) or (
            text[start - 2 : start].rstrip()[-1:] == ":" and _DOWNLOAD.match(text, start)
        ):
            left -= 1
            use = _use(text, start, end, listed)
            listed = end if use is _Use.SCRIPTS else listed
        elif not _FROM_ROOT.match(text, start, end) and not (inline and _follows_call(text, start)):
            continue
        value = _unescaped(text[start + 1 : end - 1])
        if _has_open_query(text, end):
            value = value.partition("?")[0]
        if use in _CONTEXTS and _is_url(value, use, inline=inline, near=near):
            whole = (
                use in {_Use.LINKED, _Use.ASSIGNED}
                and value.startswith("http")
                and not _is_file(value, _LOADED, relative=False)
            )
            yield value, WHOLE_URL if whole else _CONTEXTS[use]
        elif use in _MAY_BE_PAGES:
            before, after = text[max(0, start - strings.NEAR) : start], text[end : end + strings.AFTER]
            pages.add(value, before.rstrip(), after.lstrip(" \t"))
    yield from ((address, STRING) for address in pages.addresses)
    yield from ((address, WHOLE_URL) for address in pages.whole)
    yield from ((page, PAGE) for page in pages.selected(text))
    if source_map and not inline and not source_map.startswith("data:"):
        yield source_map, SOURCE_MAP


def _follows_call(text: str, start: int) -> bool:
    """True if the string at *start* may be an argument, or what is assigned."""
    return text[max(0, start - 2) : start].rstrip()[-1:] in {"(", ",", "="}


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """Return the strings and line comments in *text*, without the names of files on other hosts."""
    elsewhere = [found.span() for found in _BELOW_ELSEWHERE.finditer(text)] if "base" in text else []
    tokens = strings.tokens(text)
    if not elsewhere:
        return tokens
    return (token for token in tokens if not _is_within(token[0], elsewhere) or _FROM_ROOT.match(text, *token))


def _is_within(position: int, spans: list[tuple[int, int]]) -> bool:
    before = bisect(spans, (position,)) - 1
    return before >= 0 and position < spans[before][1]


def _chunks(text: str, address: str, *, inline: bool, near: bool) -> Iterator[tuple[str, str]]:
    for chunk, of_page in bundles.chunk_urls(text, address):
        own = chunk.startswith(".") and not of_page  # relative to the script, if it is a separate file
        if not (own and inline) and _is_file(chunk, _SCRIPTS, relative=own or inline or near):
            yield chunk, IMPORT if own else CHUNK


def asset_urls(text: str, address: str, *, near: bool) -> Iterator[tuple[str, bool]]:
    """Yield pictures, fonts and other files that the bundle at *address* loads from the folder of its chunks.

    True marks those that are relative to the page; *near*: that page is known.
    """
    for name, of_page in bundles.asset_urls(text, address):
        if _is_file(name, _FILES, relative=near or not of_page):
            yield name, of_page


def joined_urls(text: str, address: str = "", *, page: bool, worker: bool) -> Iterator[tuple[str, bool]]:
    """Yield each file that *text* joins to a variable, and True if it is relative to the script, not to its page."""
    is_file = partial(_is_file, endings=_FILES, relative=True)
    yield from folders.joined(text, address, is_file=is_file, page=page, worker=worker)
    if page:
        yield from ((name, False) for name in folders.pictures(text))
        yield from ((name, False) for name in composed.urls(text, is_file))
        is_loaded = partial(_is_file, endings=_LOADED_BY_PATH, relative=True)
        yield from ((name, False) for name in loader_paths.urls(text, is_loaded))


def page_urls(source: str) -> Iterator[str]:
    """Yield each URL that a script in the page *source* puts together from data in other scripts there."""
    yield from composed.page_urls(source, partial(_is_file, endings=_FILES, relative=True))


class _Use(Enum):
    """The use of a string."""

    PART = auto()  # no URL, or only a part of one
    KEY = auto()  # the name of a value
    WORD = auto()  # no recognizable use
    PLACED = auto()  # under a key for the place of a file, which may also be one on a disk
    LINKED = auto()  # under a key for a URL
    ASSIGNED = auto()  # to a URL property, or passed to a function that takes a URL
    MODULE = auto()  # imported
    SCRIPTS = auto()  # one of importScripts
    URL = auto()  # new URL("…", import.meta.url)


_CONTEXTS = {
    _Use.WORD: STRING,
    _Use.PLACED: STRING,
    _Use.LINKED: STRING,
    _Use.ASSIGNED: STRING,
    _Use.MODULE: IMPORT,
    _Use.SCRIPTS: IMPORT,
    _Use.URL: FILE_URL,
}


_MAY_BE_PAGES = frozenset((_Use.WORD, _Use.PLACED, _Use.LINKED, _Use.ASSIGNED, _Use.KEY))


def _use(text: str, start: int, end: int, listed: int) -> _Use:
    """Return the use of the string from *start* to *end*; *listed* is the end of the last one of importScripts."""
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
            if _OF_MODULE.match(after):
                return _Use.URL
            return _Use.ASSIGNED if _OF_PAGE.match(after) else _Use.PART
    if _IN_PART_BEFORE.search(before) or (_IN_PART_AFTER.match(after) and not _has_open_query(text, end)):
        return _Use.PART
    if last in {"{", ","} and after.lstrip()[:1] == ":":
        return _Use.KEY
    if text[start] == "`" and (last.isalnum() or last in {")", "]", "_", "$"}) and not _KEYWORD.search(before):
        return _Use.PART  # the argument of an unknown tag function
    return _of_value(before, text, start, end)


def _of_value(before: str, text: str, start: int, end: int) -> _Use:
    """Return the use of a string that is a value or an argument, by the code *before* it."""
    placed = before.endswith(":") and _PLACE.search(before) is not None
    if placed and _OF_OPTIONS.match(text, end):
        return _Use.URL
    if (before.endswith(".get(") and _ASSET.match(text, start)) or _ASSIGNED.search(before):
        return _Use.ASSIGNED
    if before.endswith(":") and _LINKED.search(before):
        return _Use.LINKED
    if placed and _FILED.search(before) and _KNOWN_DOWNLOAD.match(text, start):
        return _Use.LINKED
    return _Use.PLACED if placed else _Use.WORD


def _has_open_query(text: str, end: int) -> bool:
    """True if the string that stops at *end* is a URL up to the value in its query, which the script adds."""
    return text[end - 2] in "?=" and _QUERY_FOLLOWS.match(text, end) is not None


def _is_url(value: str, use: _Use, *, inline: bool, near: bool) -> bool:
    """True if *value*, with this *use*, is certainly the URL of a file."""
    match use:
        case _Use.MODULE:  # a bare name is resolved by the import map, if any
            return _is_file(value, _FILES, relative=value.startswith("."))
        case _Use.SCRIPTS:
            return _is_file(value, _SCRIPTS, relative=True)
        case _Use.URL:
            return _is_file(value, _BESIDE, relative=True)
        case _Use.ASSIGNED:
            known = _is_file(value, _LOADED, relative=(inline or near) and not value.startswith("@"))
            return known or _is_download(value, near=inline or near)
        case _Use.LINKED if _is_download(value, near=inline or near):
            return True
        case _Use.PLACED if value.startswith((".", "/")) and _is_file(value, _DATA, relative=inline or near):
            return True
    if _is_file(value, _FILES, relative=False):
        return True
    if _NAME_ONLY.match(value):
        return False
    if "/" in value:
        return (inline or near) and _is_file(value, _FILES - (_NOT_OF_PAGE if inline else _SCRIPTS), relative=True)
    return inline and _is_file(value, _PICTURES, relative=True)


def _is_download(value: str, *, near: bool) -> bool:
    return (near or value.startswith(("/", "http"))) and a_download(value)


def _is_file(value: str, endings: frozenset[str], *, relative: bool) -> bool:
    """True if *value* is the URL of a file with one of these *endings*; *relative* permits relative ones."""
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
    """Return *value* as the program sees it; "" if it contains characters that URLs do not have."""
    if "\\" not in value:
        return value
    plain = _ESCAPE.sub(_unescape, value)
    return "" if "\\" in plain else plain


def _unescape(escape: re.Match[str]) -> str:
    return escape[1] or chr(int(escape[2] or escape[3] or escape[4], 16))
