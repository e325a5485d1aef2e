"""Files loaded by bundlers: the chunks of webpack, Rspack and Parcel, and the list of files that Vite preloads.

webpack writes a function from chunk id to file name, `e => "js/" + ({1:"a"}[e]||e) + "." + {1:"f0"}[e] + ".js"`, and
the folder of all files. This module joins both for every id in the tables and, if no table is needed, for every id that
the script loads. Pictures and fonts are written as `r.p + "a.png"`, where `r.p` is the folder. Anything else names
nothing. Linear and bounded on any text.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from archiver import url
from archiver.config.expressions import compiled

MOST = 1000  # files of one script
MOST_FUNCTIONS = 20  # functions examined; a loader has two
MOST_TERMS = 40
_MOST_FOLDERS = 50
LONGEST = 1000  # characters of a file name

_HINT = re.compile(r"(?:web|rs)pack(?:Chunk|Jsonp|_require__|_esm_)")
_HINTS = ("webpack", "rspack")
_FUNCTION = re.compile(
    r"\.(?:u|miniCssF)\s*=\s*(?:function\s*\(\s*(?P<old>[\w$]{1,40})\s*\)\s*\{|\(?\s*(?P<new>[\w$]{1,40})\s*\)?\s*=>\s*\{?)"
    r"|function\s*[\w$]{0,40}\(\s*(?P<older>[\w$]{1,40})\s*\)\s*\{(?=\s*return\s+[\w$]{1,40}\.p\s*\+)"
)
_GAP = r"(?:\s|//[^\n\r]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+"
_LEAD = compiled(rf"{_GAP}(?:return\b)?{_GAP}(?:[\w$]{{1,40}}\.p\s*\+)?(?:\((?=\s*(?:[\"']|[\w$]{{1,40}}\s*\+)))?")
_STRING = r"\"[^\"\\\n\r]*+\"|'[^'\\\n\r]*+'"
_ID = rf"[0-9]{{1,9}}|{_STRING}"
_CHOICE = compiled(rf"{_GAP}(?:\"?[\w$]{{1,40}}\"?\s*={{2,3}}\s*\"?[\w$]{{1,40}}\"?)\s*\?\s*({_STRING})\s*:")
_ENTRY = rf"\s*+(?:[\w$]++|{_STRING})\s*+:\s*+(?:{_STRING})\s*+,?"
_TERM = compiled(
    rf"{_GAP}(?:(?P<text>{_STRING})|\({{0,2}}\s*+\{{(?P<table>(?:{_ENTRY})*+)\s*+\}}\)?\s*\[\s*[\w$]+\s*\]"
    rf"(?P<otherwise>\s*\|\|\s*[\w$]+\s*)?\)?"
    rf"|\(\s*(?:(?P<one>{_ID})\s*={{2,3}}\s*[\w$]{{1,40}}|[\w$]{{1,40}}\s*={{2,3}}\s*(?P<same>{_ID}))\s*\?"
    rf"\s*(?P<name>{_STRING})\s*:\s*[\w$]{{1,40}}\s*\)"
    rf"|(?P<number>[\w$]{{1,40}}))\s*(?P<more>\+)?"
)
_PAIR = re.compile(rf"([\w$]++|{_STRING})\s*+:\s*+({_STRING})")
_FOLDER = re.compile(r"\.p\s*=\s*(?:\"([^\"\\\n\r]{0,300})\"|'([^'\\\n\r]{0,300})')\s*(?:[;,})\n]|\Z)")
_FOLDER_OF_SCRIPT = re.compile(
    r"\.p\s*=\s*(?:[\w$]{1,40}|\(?(?:[\w$]{1,40}\s*=\s*)?[\w$]{1,40}(?:\s*\.replace\([^()\n]{1,40}\)){1,5}\s*\)?)\s*"
    r"(?:\+\s*[\"']((?:\.\./){0,20})[\"']\s*)?(?:[;,})\n]|\Z)"
)
_OF_ITSELF = re.compile(r"currentScript|importScripts|import\.meta\.url")
_FOLDER_OF_PAGE = re.compile(r"\.p\s*=\s*([\"'])((?:\.{0,2}/)?(?:[\w~@.-]{1,80}/){0,8})\1")
_NAME_BEFORE = re.compile(r"[\w$]{1,40}\Z")
_CALLED = re.compile(  # chunks that the script loads; development builds keep each module in a string
    rf"\.[eu]\(\s*(?:/\*[^*]{{0,300}}\*/\s*)?(?:({_ID})|\\\"([\w$@./-]{{1,200}})\\\")\s*\)"
)
_STYLED = compiled(  # chunks with style sheets
    rf"&&\s*+\(?\{{((?:\s*+(?:[\w$]++|{_STRING})\s*+:\s*+1\s*+,?)++)\}}\)?\s*\["
)
_SHORT = re.compile(r"([1-9]\d{0,8})e([1-9])")
_KEY = re.compile(rf"([\w$]++|{_STRING})\s*+:")
_ASSET = re.compile(rf"\.p\s*\+\s*({_STRING})(?!\s*[+(\[])")
_OF_SCRIPTS = compiled(
    r"(?:(?:js|javascripts?|scripts?|chunks?|static)/)++\Z"
)  # folders that the chunk_urls in loaders start with

_OF_NEXT = re.compile(r"\"(static/(?:chunks|css|media)/[^\"\\\s]{1,300})\"")
_PARCEL = re.compile(
    r"[{,]\s*+(?:\\?\"[\w$]{5,6}\\?\"|[\w$]{5,6})\s*+:\s*+\\?\"([\w~@+.-]{1,200}\.[0-9a-f]{8}\.[a-z]{2,5})\\?\""
)
_VITE = re.compile(r"__vite__mapDeps\s*=\s*\(.{0,200}?=\s*\[", re.DOTALL)
_LISTED = re.compile(rf"\s*+({_STRING})\s*+,?")


class _Folder(NamedTuple):
    """The folder of all files, as a path from the root, or relative to the script or the page that runs it."""

    path: str
    of_page: bool = False


def chunk_urls(text: str, address: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the URLs of at most `MOST` chunks, and True for those that are relative to the page.

    The others are relative to the script (at *address*, if known) or its host.
    """
    found, of_page = dict[str, None](), False
    if _is_packed(text) and (folder := _public_path(text)):
        _webpack(text, folder.path, found)
        of_page = folder.of_page
    yield from ((name, of_page) for name in found)
    found.clear()
    if "__vite__mapDeps" in text:
        _vite(text, url.path(address) if address else "", found)
    if "parcelRequire" in text:
        for written in _PARCEL.finditer(text):  # the loader's manifest, relative to the script
            if len(found) < MOST:
                found[f"./{written[1]}"] = None
    yield from ((name, False) for name in found)


def asset_urls(text: str, address: str) -> Iterator[tuple[str, bool]]:
    """Yield the files that the bundle at *address* names below the folder of all files, as `chunk_urls` does."""
    found = dict[str, None]()
    root, below, _ = url.path(address).partition("/_next/")
    if below:  # Next.js with Turbopack: chunks and the scripts of each page
        found |= {f"{root}{below}{name[1]}": None for name in islice(_OF_NEXT.finditer(text), MOST)}
    yield from ((name, False) for name in found)
    if ".p" in text and _is_packed(text):
        yield from _assets(text, address)


def _assets(text: str, address: str) -> Iterator[tuple[str, bool]]:
    folder, found = _public_path(text), dict[str, None]()
    for written in _ASSET.finditer(text):
        name = _bare(written[1])
        if len(found) < MOST and 0 < len(name) <= LONGEST:
            found[(folder.path if folder else _probable_folder(address, name)) + name] = None
    yield from ((name, folder is not None and folder.of_page) for name in found)


def _probable_folder(address: str, name: str) -> str:
    """Return a guess at the folder of all files, as a path; only the loader in another script states it.

    The script and *name* are below it. So it ends before a folder name that both share, or else before the folders of
    scripts. A further script is beside this one, because the same setting names both.
    """
    own_folder = url.path(address).rpartition("/")[0] + "/"
    if name.endswith((".js", ".mjs")) and "/" not in name:
        return own_folder
    first, slash, _ = name.partition("/")
    before, shared, _ = own_folder.rpartition(f"/{first}/") if slash else ("", "", "")
    return f"{before}/" if shared else _OF_SCRIPTS.sub("", own_folder)


def _is_packed(text: str) -> bool:
    return any(hint in text for hint in _HINTS) and _HINT.search(text) is not None


def _webpack(text: str, folder: str, found: dict[str, None]) -> None:
    for number, function in enumerate(_FUNCTION.finditer(text)):
        if number >= MOST_FUNCTIONS or len(found) >= MOST:
            return
        lead = _LEAD.match(text, function.end())
        position = lead.end() if lead else function.end()
        while (choice := _CHOICE.match(text, position)) and len(found) < MOST:
            found[folder + choice[1][1:-1]] = None
            position = choice.end()
        _add_chunks(_terms(text, position), text, folder, found)


def _public_path(text: str) -> _Folder | None:
    """Return the folder of all chunks; None if it depends on more than the script says."""
    for assigned in _FOLDER.finditer(text):
        folder = assigned[1] or assigned[2] or ""
        if folder.startswith(("/", "http:", "https:")):
            return _Folder(folder)
    own = list(islice(_FOLDER_OF_SCRIPT.finditer(text), _MOST_FOLDERS)) if _OF_ITSELF.search(text) else []
    surely = next((found for found in own if found[1] or "replace" in found[0]), None)
    if surely is None:  # others have a property of this name too, but take nothing from an address
        for assigned in islice(_FOLDER_OF_PAGE.finditer(text), _MOST_FOLDERS):
            loader = _NAME_BEFORE.search(text, max(0, assigned.start() - 40), assigned.start())
            if loader and re.search(rf"(?<![\w$.]){re.escape(loader[0])}\.(?:u\s*=|p\s*\+)", text):
                return _Folder(assigned[2], of_page=True)
    return _Folder((surely and surely[1]) or "./") if own else None


Term = (
    str | tuple[dict[str, str], bool] | None
)  # a string; a table, and whether missing ids are used as they are; None: the id


def _terms(text: str, position: int) -> list[Term]:
    """Return the terms of the sum at *position*; none if any term is not understood."""
    terms: list[Term] = []
    while len(terms) < MOST_TERMS and (term := _TERM.match(text, position)):
        position = term.end()
        if term["text"]:
            terms.append(term["text"][1:-1])
        elif term["name"]:  # a choice: one chunk has a name
            terms.append(({_bare(term["one"] or term["same"]): _bare(term["name"])}, True))
        elif term["table"] is not None:
            pairs = {_bare(key): _bare(value) for key, value in _PAIR.findall(term["table"])}
            terms.append((pairs, term["otherwise"] is not None))
        else:
            terms.append(None)
        if not term["more"]:
            return terms
    return []


def _add_chunks(terms: list[Term], text: str, folder: str, found: dict[str, None]) -> None:
    """Add to *found* the files that the sum of *terms* gives for every id with an entry."""
    tables = [term for term in terms if isinstance(term, tuple)]
    strict = next((table for table, otherwise in tables if not otherwise), None)
    numbers = dict.fromkeys(strict if strict is not None else (key for table, _ in tables for key in table))
    if strict is None and (tables or None in terms):
        numbers |= _loaded_ids(text, styles=str(terms[-1]).endswith(".css"))
    if terms and not tables and None not in terms:
        numbers = {"": None}  # a single chunk with its complete name
    for key in numbers:
        parts = [
            term if isinstance(term, str) else key if term is None else term[0].get(key, key if term[1] else None)
            for term in terms
        ]
        if None not in parts and len(found) < MOST:
            name = folder + "".join(part for part in parts if part)
            if len(name) <= LONGEST:
                found[name] = None


def _loaded_ids(text: str, *, styles: bool) -> dict[str, None]:
    """Return the ids of the chunks that the script loads; *styles*: of those with a style sheet."""
    called = () if styles else islice(_CALLED.finditer(text), MOST)
    numbers = dict.fromkeys(_bare(each[1] or each[2]) for each in called)
    if not numbers and (table := _STYLED.search(text)):  # a loader apart from the rest knows only these
        numbers = dict.fromkeys(_bare(key[1]) for key in _KEY.finditer(table[1]))
    return numbers


def _vite(text: str, path: str, found: dict[str, None]) -> None:
    """Add the files in Vite's list to *found*, relative to the script if its base is relative, else to the base.

    The base is above the folder that the script at *path* shares with a file. If there is none, the script is as deep
    below the base as the file.
    """
    start = _VITE.search(text)
    position = start.end() if start else len(text)
    while len(found) < MOST and (listed := _LISTED.match(text, position)):
        position = listed.end()
        name = _bare(listed[1])
        if not 0 < len(name) <= LONGEST or name.startswith(("/", "http")):
            continue
        if not name.startswith(("./", "../")):
            shared = path.rfind(f"/{name.partition('/')[0]}/") if "/" in name else -1
            name = "../" * (name if shared < 0 else path[shared + 1 :]).count("/") + name
        found[name] = None


def _bare(word: str) -> str:
    """Return *word* without its quotes, and a number in full: minifiers write 6000 as `6e3`."""
    if word[:1] in {'"', "'"}:
        return word[1:-1]
    short = _SHORT.fullmatch(word)
    return short[1] + "0" * int(short[2]) if short else word
