"""The files that bundlers' loaders put together from tables: webpack's chunks, and what Vite loads before a chunk.

webpack writes a function from a chunk's number to its file, `e => "js/" + ({1:"a"}[e]||e) + "." + {1:"f0"}[e] + ".js"`,
and what all of them stand below; both are read here, and put together for every number that the tables hold. What is
not written so names nothing. Linear, and bounded, on any text.
"""

import re
from collections.abc import Iterator

MOST = 1000  # files of one script
MOST_FUNCTIONS = 20  # that are looked at; a loader has two
MOST_TERMS = 40
LONGEST = 1000  # characters of a file's name

_HINT = re.compile(r"webpack(?:Chunk|Jsonp|_require__)")
_FUNCTION = re.compile(
    r"\.(?:u|miniCssF)\s*=\s*(?:function\s*\(\s*(?P<old>[\w$]{1,40})\s*\)\s*\{|\(?\s*(?P<new>[\w$]{1,40})\s*\)?\s*=>\s*\{?)"
    r"|function\s*[\w$]{0,40}\(\s*(?P<older>[\w$]{1,40})\s*\)\s*\{(?=\s*return\s+[\w$]{1,40}\.p\s*\+)"
)
_GAP = r"(?:\s|//[^\n\r]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+"
_LEAD = re.compile(rf"{_GAP}(?:return\b)?{_GAP}(?:[\w$]{{1,40}}\.p\s*\+)?")
_STRING = r"\"[^\"\\\n\r]*+\"|'[^'\\\n\r]*+'"
_CHOICE = re.compile(rf"{_GAP}(?:\"?[\w$]{{1,40}}\"?\s*={{2,3}}\s*\"?[\w$]{{1,40}}\"?)\s*\?\s*({_STRING})\s*:")
_ENTRY = rf"\s*+(?:[\w$]++|{_STRING})\s*+:\s*+(?:{_STRING})\s*+,?"
_TERM = re.compile(
    rf"{_GAP}(?:(?P<text>{_STRING})|\({{0,2}}\s*+\{{(?P<table>(?:{_ENTRY})*+)\s*+\}}\)?\s*\[\s*[\w$]+\s*\]"
    rf"(?P<otherwise>\s*\|\|\s*[\w$]+\s*)?\)?|(?P<number>[\w$]{{1,40}}))\s*(?P<more>\+)?"
)
_PAIR = re.compile(rf"([\w$]++|{_STRING})\s*+:\s*+({_STRING})")
_PLACE = re.compile(r"\.p\s*=\s*(?:\"([^\"\\\n\r]{0,300})\"|'([^'\\\n\r]{0,300})')\s*(?:[;,})\n]|\Z)")
_PLACE_OF_SCRIPT = re.compile(r"\.p\s*=\s*[\w$]{1,40}\s*(?:\+\s*[\"']((?:\.\./){0,20})[\"']\s*)?(?:[;,})\n]|\Z)")

_VITE = re.compile(r"__vite__mapDeps\s*=\s*\(.{0,200}?=\s*\[", re.DOTALL)
_LISTED = re.compile(rf"\s*+({_STRING})\s*+,?")


def names(text: str) -> Iterator[str]:
    """The files, as the script's own address, or its host, leads to them; at most `MOST`."""
    found: dict[str, None] = {}
    if "webpack" in text and _HINT.search(text):
        _webpack(text, found)
    if "__vite__mapDeps" in text:
        _vite(text, found)
    yield from found


def _webpack(text: str, found: dict[str, None]) -> None:
    place = _place(text)
    if place is None:
        return
    for number, function in enumerate(_FUNCTION.finditer(text)):
        if number >= MOST_FUNCTIONS or len(found) >= MOST:
            return
        lead = _LEAD.match(text, function.end())
        position = lead.end() if lead else function.end()
        while (choice := _CHOICE.match(text, position)) and len(found) < MOST:
            found[place + choice[1][1:-1]] = None
            position = choice.end()
        _tabled(_terms(text, position), place, found)


def _place(text: str) -> str | None:
    """What all chunks stand below; None where that depends on more than the script says."""
    for given in _PLACE.finditer(text):
        folder = given[1] or given[2] or ""
        if folder.startswith(("/", "http:", "https:")):
            return folder
    if "currentScript" in text or "importScripts" in text:
        own = _PLACE_OF_SCRIPT.search(text)
        if own:
            return own[1] or "./"
    return None


Term = (
    str | tuple[dict[str, str], bool] | None
)  # a text; a table, and whether it has a word for all numbers; the number


def _terms(text: str, position: int) -> list[Term]:
    """The terms of the sum that stands at *position*; none where it is no sum of what is understood."""
    terms: list[Term] = []
    while len(terms) < MOST_TERMS and (term := _TERM.match(text, position)):
        position = term.end()
        if term["text"]:
            terms.append(term["text"][1:-1])
        elif term["table"] is not None:
            pairs = {_bare(key): _bare(value) for key, value in _PAIR.findall(term["table"])}
            terms.append((pairs, term["otherwise"] is not None))
        else:
            terms.append(None)
        if not term["more"]:
            return terms
    return []


def _tabled(terms: list[Term], place: str, found: dict[str, None]) -> None:
    """Add to *found* the files that the sum of *terms* makes of every number in its tables."""
    tables = [term for term in terms if isinstance(term, tuple)]
    strict = [table for table, otherwise in tables if not otherwise]
    for key in strict[0] if strict else {key: None for table, _ in tables for key in table}:
        parts = [
            term if isinstance(term, str) else key if term is None else term[0].get(key, key if term[1] else None)
            for term in terms
        ]
        if None not in parts and len(found) < MOST:
            name = place + "".join(part for part in parts if part)
            if len(name) <= LONGEST:
                found[name] = None


def _vite(text: str, found: dict[str, None]) -> None:
    """Vite keeps the list of files below its base; a script that has it lies as deep below the base as they do."""
    start = _VITE.search(text)
    position = start.end() if start else len(text)
    while len(found) < MOST and (listed := _LISTED.match(text, position)):
        position = listed.end()
        name = _bare(listed[1])
        if 0 < len(name) <= LONGEST and not name.startswith(("/", ".", "http")):
            found["../" * name.count("/") + name] = None


def _bare(word: str) -> str:
    return word[1:-1] if word[:1] in {'"', "'"} else word
