"""What scripts of a page load that only its whole source shows: chunks of Qwik, data of DocC, modules in an import map.

Qwik resumes from names in attributes and in its state, such as `on:click="q-abc.js#symbol"`, below the folder that the
container states: `<html q:base="/build/">`. The chunks import the others. Qwik City's links load `q-data.json` in the
folder of their page.

An import map gives names to folders (`"app/": "./js/app/"`), and modules of the page import what is below them. Linear
on any page.
"""

import json
import re
from collections.abc import Iterator

from archiver import url
from archiver.config.expressions import compiled
from archiver.extract.script import frameworks
from archiver.model import Hop

MARKS = _QWIK, _IMPORT_MAP, _DOCC = "q:container", "importmap", frameworks.DOCC
_MOST_CHUNKS = 2000  # of one page
_BASE = compiled(r"\sq:base=\"([^\"<>\s]{1,300})\"")
_CHUNK = compiled(
    r"(?:\\u[0-9a-f]{4}|(?<![\w./\\-]))((?:[\w-]{1,100}+/){0,4}+[\w.-]{1,100}\.m?js)#\w|\"(q-[\w-]{1,40}+\.js)\""
)
_ROUTED = ("q:link", "q:route=", "qcinit")  # marks of Qwik City

_MOST_FOLDERS = 500  # of one map
_MAP = compiled(r"<script\s[^>]{0,300}?importmap[^>]{0,300}>([^<]{1,100000}+)</script", re.IGNORECASE)
_IMPORTED = compiled(r"(?:import\s*+\(|import|from)\s*+[\"'](@?[\w-]{1,100}+/[\w@./-]{1,300}+)[\"']")


def references(source: str, address: str) -> Iterator[tuple[str, Hop]]:
    """Yield what scripts of the page *source* at *address* load."""
    if _QWIK in source:
        yield from _qwik(source, address)
    if _IMPORT_MAP in source:
        yield from ((name, Hop.REQUISITE) for name in _imported(source))
    if _DOCC in source:
        yield from ((name, Hop.REQUISITE) for name in frameworks.docc_page(source, address))


def _qwik(source: str, address: str) -> Iterator[tuple[str, Hop]]:
    base = _BASE.search(source)
    folder = base[1].rstrip("/") + "/" if base else ""
    names = dict[str, None]()
    for found in _CHUNK.finditer(source) if base else ():
        names[found[1] or found[2]] = None
        if len(names) == _MOST_CHUNKS:
            break
    yield from ((folder + name, Hop.REQUISITE) for name in names)
    path = url.path(address)
    if not path.endswith(".html") and any(mark in source for mark in _ROUTED):
        _, query, values = address.partition("?")
        yield f"{path.rstrip('/')}/q-data.json{query}{values}", Hop.SPECULATIVE


def _imported(source: str) -> Iterator[str]:
    """Yield each module that a script in the page *source* imports below a folder of its map."""
    found = _MAP.search(source)
    folders = _folders(found[1]) if found else {}
    for name in dict.fromkeys(_IMPORTED.findall(source)) if folders else ():
        folder = next((folder for folder in folders if name.startswith(folder)), "")
        if folder and not name.endswith("/"):
            yield folders[folder] + name.removeprefix(folder)


def _folders(text: str) -> dict[str, str]:
    """Return the folders in the import map *text*, the longest names first, as browsers choose them."""
    try:
        imports = json.loads(text)["imports"]
        folders = {name: imports[name] for name in list(imports)[:_MOST_FOLDERS] if name.endswith("/")}
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return {}
    kept = {name: where for name, where in folders.items() if isinstance(where, str) and where.endswith("/")}
    return dict(sorted(kept.items(), key=lambda pair: -len(pair[0])))
