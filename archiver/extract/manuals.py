"""What the scripts of generated manuals name: the pages of a menu that only a script writes, trees, and search indexes.

Such scripts are alike on all sites of one generator, so what they mean is known and not guessed from strings. Doxygen
keeps its menu, its tree and its search in data; only the menu and the tree lead to some pages. Javadoc, MkDocs, Haddock
and GitBook load their search from a place that the script's own address tells.
Text in any other form names nothing. Linear on any text.
"""

import itertools
import re
from collections.abc import Iterator

from archiver import url
from archiver.extract import generators, stringdex
from archiver.model import Hop

MOST_PARTS = 10_000  # of the index of one tree
TELLING = 65_536  # characters in which such a script shows what it is: bundles, which are longer, are none
BEGINNING = 64  # of them, by which results of a search are known

MENU, TREE, MANUAL = "script/menu", "script/tree", "script/manual"

_TEXT = r"\"(?:[^\"\\\n]++|\\.)*+\""
_ENTRY = re.compile(rf"\{{text:{_TEXT},url:\"\^?([^\"\\\n]++)\"")  # a caret: in a window of its own
_BEGINS = re.compile(r"var [\w$]++ =\n\[\n(?=  ++\[ \")")
_ROW = re.compile(rf"\[ {_TEXT}, (?:\"([^\"\\\n]++)\"|null), (?:\"([\w./-]++)\"|null|\[)")
_SUBFOLDER = re.compile(r"/d[0-9a-f]/d[0-9a-f]{2}/[^/]*\Z")  # where branches of large trees lie; they mean the root
_PARTS = re.compile(rf"var NAVTREEINDEX =\n\[\n((?:{_TEXT},?\n)*+)\]")
_SECTIONS = re.compile(r"var indexSection(?:sWithContent|Names)\s*+=\s*+\{")
_SECTION = re.compile(rf"\s*+(\d{{1,3}})\s*+:\s*+({_TEXT})\s*+,?+")
_RESULTS = re.compile(r"var searchData\s*+=\s*+\[")
_ESCAPE = re.compile(r"\\.")
_SEARCH_PICTURE = re.compile(r"'(search/[\w-]++\.svg)\"")
_TREE_PICTURE = re.compile(r"relpath\+['\"]([\w-]++\.(?:png|svg))\"")
_OF_JAVADOC = re.compile(
    r"(?:createElem\(doc, tag, |pathtoroot \+ )(['\"])((?:[\w-]++/){0,8}[\w-]++(?:\.[\w-]++)*?\.(?:js|zip))\1"
)
_OF_GITBOOK = re.compile(r"gitbook\.state\.(?:basePath|root)\s*+\+\s*+[\"']/?+([\w-]++\.json)[\"']")
_IN_GITBOOK = re.compile(r"(.*/)gitbook/(?:(?:@[^/]++/)?[^/]++/)?[^/]+\.js\Z")
_OF_MKDOCS = re.compile(r"joinUrl\(base_url, \"(search/[\w-]++\.js)\"\)")

_OF_MDBOOK = re.compile(r"path_to_root \+ '(searchindex[\w.-]{0,80}\.js(?:on)?)'")
_MATERIAL = re.compile(r"/assets/javascripts/bundle\.[\w-]{1,40}\.min\.js\Z")
_OF_MATERIAL = ("search/search_index.json", "search.json")
_PAGEFIND = re.compile(r"/pagefind-(?:modular-|component-)?ui\.js(?:\?[^/]*)?\Z")


def names(text: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    """Each address that *text* names, relative to the script at *address*, how it leads on, and by what."""
    head = text[:TELLING]
    yield from _of_doxygen(text, head, address)
    yield from _searches(head)
    yield from _gitbook(head, address)
    yield from _books(text, head, address)


def means_itself(text: str) -> bool:
    """Return whether addresses in the script *text* start at the script itself, not at the page that runs it."""
    return _RESULTS.match(text) is not None


def _of_doxygen(text: str, head: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    if "var menudata=" in head:
        for entry in _ENTRY.finditer(text):
            yield entry[1], Hop.LINK, MENU
    if " =\n[\n" in head and _BEGINS.search(head):
        yield from _doxygen_tree(text, "../../" if _SUBFOLDER.search(address) else "")
    if "var indexSectionsWithContent" in head:
        yield from ((name, Hop.REQUISITE, MANUAL) for name in _doxygen_search(text))
    if "function initMenu(" in head:
        for picture in _SEARCH_PICTURE.finditer(head):
            yield picture[1], Hop.SPECULATIVE, MANUAL
    if "NAVTREE" in head:
        for picture in _TREE_PICTURE.finditer(head):
            yield picture[1], Hop.REQUISITE, TREE


def _searches(text: str) -> Iterator[tuple[str, Hop, str]]:
    """What Javadoc, MkDocs and Haddock look names and words up in."""
    if "pathtoroot" in text:
        for loaded in _OF_JAVADOC.finditer(text):
            yield loaded[2], Hop.SPECULATIVE, MANUAL
    if "joinUrl(base_url" in text:
        for loaded in _OF_MKDOCS.finditer(text):
            yield f"../{loaded[1]}", Hop.SPECULATIVE, MANUAL
    if 'baseUrl+"/doc-index.json"' in text:
        yield "doc-index.json", Hop.SPECULATIVE, MANUAL
    if "base_path + '/search_index.json'" in text:
        yield from ((name, Hop.SPECULATIVE, MANUAL) for name in ("lunr.js", "search_index.json"))


def _gitbook(text: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    """The search index of GitBook and HonKit, which lies in the folder that holds the one of their own scripts."""
    if "gitbook.state." in text and (root := _IN_GITBOOK.fullmatch(url.path(address))):
        for loaded in _OF_GITBOOK.finditer(text):
            yield root[1] + loaded[1], Hop.REQUISITE, MANUAL


def _books(text: str, head: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    """What mdBook, rustdoc and Pagefind load from where the script itself lies."""
    if "path_to_root + 'searchindex" in head:
        for loaded in _OF_MDBOOK.finditer(head):
            yield loaded[1], Hop.REQUISITE, generators.LOADED
    if head.startswith("rr_("):
        yield from ((name, Hop.REQUISITE, generators.LOADED) for name in generators.stringdex(text))
    if head.startswith("rn_("):
        yield from ((name, Hop.REQUISITE, generators.LOADED) for name in stringdex.branches(text, address))
    if _MATERIAL.search(address):
        found = next((name for name in _OF_MATERIAL if f'new URL("{name}"' in text), "")
        yield from ((f"../../{name}", Hop.SPECULATIVE, generators.LOADED) for name in ("sitemap.xml", found) if name)
    yield from ((name, Hop.SPECULATIVE, generators.LOADED) for name in generators.pagefind(text))
    if _PAGEFIND.search(address):
        yield "pagefind.js", Hop.REQUISITE, generators.LOADED
    if "pagefind-entry.json" in head:
        yield "pagefind-entry.json", Hop.REQUISITE, generators.LOADED
        if "pagefind-worker.js" in head:
            yield "pagefind-worker.js", Hop.REQUISITE, generators.LOADED


def _doxygen_search(text: str) -> Iterator[str]:
    """The results for each first character in each section of Doxygen's search, numbered in hexadecimal."""
    tables: list[dict[str, str]] = []
    for start in itertools.islice(_SECTIONS.finditer(text), 2):
        table, position = dict[str, str](), start.end()
        while entry := _SECTION.match(text, position):
            table[entry[1]], position = entry[2][1:-1], entry.end()
        tables.append(table)
    if len(tables) < 2:
        return
    counts = {number: len(_ESCAPE.sub("x", characters)) for number, characters in tables[0].items()}
    files = ((tables[1].get(number, ""), part) for number, count in counts.items() for part in range(count))
    for section, part in itertools.islice(files, MOST_PARTS):
        if section.isalnum():
            yield f"{section}_{part:x}.js"


def _doxygen_tree(text: str, root: str) -> Iterator[tuple[str, Hop, str]]:
    """The branches that are kept in scripts of their own, below *root*, and of the trunk the pages too."""
    trunk = "var NAVTREE =" in text
    for row in _ROW.finditer(text):
        if trunk and row[1]:
            yield root + row[1], Hop.LINK, MENU
        if row[2]:
            yield f"{root}{row[2]}.js", Hop.REQUISITE, TREE
    if parts := _PARTS.search(text):
        for number in range(min(parts[1].count("\n"), MOST_PARTS)):
            yield f"navtreeindex{number}.js", Hop.REQUISITE, TREE
