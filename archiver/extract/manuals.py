"""What the scripts of generated manuals name: the pages of a menu that only a script writes, trees, and search indexes.

Such scripts are alike on all sites of one generator, so what they mean is known and not guessed from strings. Doxygen
keeps its menu and its tree in data from which the pages are reached by nothing else; Javadoc, MkDocs and
Haddock load their search from where the script itself lies. What is not written so names nothing. Linear on any text.
"""

import re
from collections.abc import Iterator

from archiver.extract import generators
from archiver.model import Hop

MOST_PARTS = 10_000  # of the index of one tree
TELLING = 65_536  # characters in which such a script shows what it is: bundles, which are longer, are none

MENU, TREE, MANUAL = "script/menu", "script/tree", "script/manual"

_TEXT = r"\"(?:[^\"\\\n]++|\\.)*+\""
_ENTRY = re.compile(rf"\{{text:{_TEXT},url:\"\^?([^\"\\\n]++)\"")  # a caret: in a window of its own
_BEGINS = re.compile(r"var [\w$]++ =\n\[\n(?=  ++\[ \")")
_ROW = re.compile(rf"\[ {_TEXT}, (?:\"([^\"\\\n]++)\"|null), (?:\"([\w./-]++)\"|null|\[)")
_SUBFOLDER = re.compile(r"/d[0-9a-f]/d[0-9a-f]{2}/[^/]*\Z")  # where branches of large trees lie; they mean the root
_PARTS = re.compile(rf"var NAVTREEINDEX =\n\[\n((?:{_TEXT},?\n)*+)\]")
_TREE_PICTURE = re.compile(r"relpath\+['\"]([\w-]++\.(?:png|svg))\"")
_OF_JAVADOC = re.compile(
    r"(?:createElem\(doc, tag, |pathtoroot \+ )(['\"])((?:[\w-]++/){0,8}[\w-]++(?:\.[\w-]++)*?\.(?:js|zip))\1"
)
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
    yield from _books(text, head, address)


def _of_doxygen(text: str, head: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    if "var menudata=" in head:
        for entry in _ENTRY.finditer(text):
            yield entry[1], Hop.LINK, MENU
    if " =\n[\n" in head and _BEGINS.search(head):
        yield from _doxygen_tree(text, "../../" if _SUBFOLDER.search(address) else "")
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


def _books(text: str, head: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    """What mdBook, rustdoc and Pagefind load from where the script itself lies."""
    if "path_to_root + 'searchindex" in head:
        for loaded in _OF_MDBOOK.finditer(head):
            yield loaded[1], Hop.REQUISITE, generators.LOADED
    if head.startswith("rr_("):
        yield from ((name, Hop.REQUISITE, generators.LOADED) for name in generators.stringdex(text))
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
