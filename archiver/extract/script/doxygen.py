"""Doxygen: the menu, tree and search of its manuals.

They are scripts, and some pages are linked only from the menu and the tree. Scripts of the menu and the tree name files
from the root of the manual, no matter which page runs them. They are in the root; branches of the tree may be two
folders below it, as the pages of a manual with many files are. Results of a search are relative to themselves. A script
in any other form names nothing. Linear on any text.
"""

import itertools
import re
from collections.abc import Iterator, Mapping

from archiver import url
from archiver.config.expressions import compiled
from archiver.model import Hop

MENU, TREE, MANUAL = "script/menu", "script/tree", "script/manual"
RESULTS_SHOWN = 'new SearchResults("searchResults")'
MOST_PARTS = 10_000  # of the index of one tree, of the results of one search

_MANUAL_TEXT = r"\"(?:[^\"\\\n]++|\\.)*+\""
_ENTRY = compiled(rf"\{{text:{_MANUAL_TEXT},url:\"\^?([^\"\\\n]++)\"")  # a caret opens the page in a new window
_TREE_BEGINS = re.compile(r"var [\w$]++ =\n\[\n(?=  ++\[ \")")
_ROW = compiled(rf"\[ {_MANUAL_TEXT}, (?:\"\^?([^\"\\\n]++)\"|null), (?:\"([\w./-]++)\"|null|\[)")
_SUBFOLDER = re.compile(r"/d[0-9a-f]/d[0-9a-f]{2}/[^/]*\Z")  # of a manual with many files
_TREE_PARTS = compiled(rf"var NAVTREEINDEX =\n\[\n((?:{_MANUAL_TEXT},?\n)*+)\]")
_SECTIONS = re.compile(r"var indexSection(?:sWithContent|Names)\s*+=\s*+\{")
_SECTION = compiled(rf"\s*+(\d{{1,3}})\s*+:\s*+({_MANUAL_TEXT})\s*+,?+")
_RESULTS = re.compile(r"var searchData\s*+=\s*+\[")
_RESULT = re.compile(r"\['(\.\./[^'\\\n]++)',[01],")  # its page, and whether that opens in the same window
_IN_ROOT = ("\nvar NAVTREE =", "\nvar menudata=", "\nfunction initMenu(relPath,", "\nfunction initNavTree(toroot,")
_ESCAPED = re.compile(r"\\.")
_BITS = re.compile(r"[01]{128,}+")  # one for each character code
_SEARCH_PICTURE = re.compile(r"'(search/[\w-]++\.svg)\"")
_TREE_PICTURE = re.compile(r"relpath\+['\"]([\w-]++\.(?:png|svg))\"")
SEARCH_BOX = re.compile(r"new SearchBox\(\"searchBox\", \"((?:\.\./){0,9}search)\",")
_RESULTS_PAGE = re.compile(r"([a-z]++)_([0-9a-f]{1,4}+)\.html")
RESULT_SECTIONS = (  # all that Doxygen has, besides "all"
    *("classes", "interfaces", "structs", "exceptions", "namespaces", "files", "functions", "variables", "typedefs"),
    *("enums", "enumvalues", "properties", "events", "related", "defines", "groups", "pages", "concepts"),
)


def root(head: str, address: str) -> str:
    """Return the path from the script at *address*, which begins with *head*, to the folder its URLs start from.

    "" if the script is none of these.
    """
    lines = f"\n{head}"
    if _RESULTS.match(head) or any(line in lines for line in _IN_ROOT):
        return "./"
    if " =\n[\n" in head and _TREE_BEGINS.search(head):
        return "../../" if _SUBFOLDER.search(url.path(address)) else "./"
    return ""


def script_urls(text: str, head: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    """Yield each URL that the script *text* at *address*, which begins with *head*, names."""
    if "var menudata=" in head:
        for entry in _ENTRY.finditer(text):
            yield entry[1], Hop.LINK, MENU
    if " =\n[\n" in head and _TREE_BEGINS.search(head):
        yield from _tree(text, root(head, address).removeprefix("./"))
    if "var indexSectionsWithContent" in head:
        yield from ((name, Hop.REQUISITE, MANUAL) for name in _search_results(text))
    if _RESULTS.match(text):
        yield from ((found[1], Hop.LINK, MANUAL) for found in _RESULT.finditer(text))
    if "function initMenu(" in head:
        for picture in _SEARCH_PICTURE.finditer(head):
            yield picture[1], Hop.SPECULATIVE, MANUAL
    if "NAVTREE" in head:
        for picture in _TREE_PICTURE.finditer(head):
            yield picture[1], Hop.REQUISITE, TREE


def next_results(references: Mapping[tuple[str, Hop], str], address: str) -> Iterator[str]:
    """Yield the results that may follow those at *address* in Doxygen's search, each a page with a script of its name.

    Only the script that searches knows how many there are. It is in another document, as later versions have it too,
    in which these pages do not exist.
    """
    found = _RESULTS_PAGE.fullmatch(url.path(address).rpartition("/")[2])
    if found is None or (f"{found[0][:-5]}.js", Hop.REQUISITE) not in references:
        return
    yield f"{found[1]}_{int(found[2], 16) + 1:x}.html"
    if found[0] == "all_0.html":
        yield from (f"{section}_0.html" for section in RESULT_SECTIONS)


def _search_results(text: str) -> Iterator[str]:
    """Yield the result files for each first character in each section of Doxygen's search, numbered in hexadecimal.

    They are scripts, or in the oldest form, which has a bit for each character code, pages.
    """
    tables: list[dict[str, str]] = []
    for start in itertools.islice(_SECTIONS.finditer(text), 2):
        table, position = dict[str, str](), start.end()
        while entry := _SECTION.match(text, position):
            table[entry[1]], position = entry[2][1:-1], entry.end()
        tables.append(table)
    if len(tables) < 2:
        return
    sections, names = tables
    old = any(map(_BITS.fullmatch, sections.values()))
    if old:
        yield "nomatches.html"
    files = (
        f"{names[number]}_{part:02x}.html" if old else f"{names[number]}_{part:x}.js"
        for number, listed in sections.items()
        if names.get(number, "").isalnum()
        for part in (_codes(listed) if old else range(len(_ESCAPED.sub("x", listed))))
    )
    yield from itertools.islice(files, MOST_PARTS)


def _codes(bits: str) -> Iterator[int]:
    """Return the character codes whose bits are set."""
    return (code for code, bit in enumerate(bits) if bit == "1")


def _tree(text: str, folder: str) -> Iterator[tuple[str, Hop, str]]:
    """Yield the pages of a trunk or branch, and the branches in scripts of their own, all below *folder*."""
    for row in _ROW.finditer(text):
        if row[1]:
            yield row[1] if ":" in row[1] else folder + row[1], Hop.LINK, MENU
        if row[2]:
            yield f"{folder}{row[2]}.js", Hop.REQUISITE, TREE
    if parts := _TREE_PARTS.search(text):
        for number in range(min(parts[1].count("\n"), MOST_PARTS)):
            yield f"navtreeindex{number}.js", Hop.REQUISITE, TREE
