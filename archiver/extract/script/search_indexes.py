"""Scripts and data of generated documentation: menus, trees and search indexes of known form.

Such scripts are alike on all sites of one generator, so their meaning is known and not guessed. Doxygen keeps its menu,
tree and search in data; some pages are linked only from the menu and the tree. Javadoc, MkDocs, Haddock and GitBook
load their search from a folder that the script's own URL gives. The data files are Pagefind's index, MkDocs' languages,
pages of Gatsby, texts of Docsify and stories of Storybook.

Most URLs are requisites. Guesses are MkDocs' languages, which two generators keep in different folders, Docsify's
texts, and the URL of each story. Linear; text in any other form urls nothing.
"""

import itertools
import json
import re
from collections.abc import Iterator
from urllib.parse import urljoin

from archiver import url
from archiver.extract.document import Document
from archiver.extract.references import LinkCollector
from archiver.extract.script import generators, rustdoc_index
from archiver.extract.script.generators import LOADED
from archiver.http.content_coding import decoded
from archiver.model import Hop, Links

MOST_PARTS = 10_000  # parts of the index of one tree
SCRIPT_START = 65_536  # characters at the start of a script that show its kind; longer bundles are none of these
BEGINNING = 64  # characters that identify search results

MENU, TREE, MANUAL = "script/menu", "script/tree", "script/manual"

_MANUAL_TEXT = r"\"(?:[^\"\\\n]++|\\.)*+\""
_ENTRY = re.compile(rf"\{{text:{_MANUAL_TEXT},url:\"\^?([^\"\\\n]++)\"")  # a caret opens the page in a new window
_BEGINS = re.compile(r"var [\w$]++ =\n\[\n(?=  ++\[ \")")
_ROW = re.compile(rf"\[ {_MANUAL_TEXT}, (?:\"([^\"\\\n]++)\"|null), (?:\"([\w./-]++)\"|null|\[)")
_SUBFOLDER = re.compile(r"/d[0-9a-f]/d[0-9a-f]{2}/[^/]*\Z")  # branches of large trees; their URLs start at the root
_PARTS = re.compile(rf"var NAVTREEINDEX =\n\[\n((?:{_MANUAL_TEXT},?\n)*+)\]")
_SECTIONS = re.compile(r"var indexSection(?:sWithContent|Names)\s*+=\s*+\{")
_SECTION = re.compile(rf"\s*+(\d{{1,3}})\s*+:\s*+({_MANUAL_TEXT})\s*+,?+")
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


def urls(text: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    """Yield each URL that the script *text* at *address* names, its hop and context."""
    head = text[:SCRIPT_START]
    yield from _of_doxygen(text, head, address)
    yield from _searches(head)
    yield from _gitbook(head, address)
    yield from _books(text, head, address)


def is_own_base(text: str) -> bool:
    """True if URLs in the script *text* are relative to the script, not to the page that runs it."""
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
    """Yield the search indexes of Javadoc, MkDocs and Haddock."""
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
    """Yield the search index of GitBook and HonKit, in the folder above that of their own scripts."""
    if "gitbook.state." in text and (root := _IN_GITBOOK.fullmatch(url.path(address))):
        for loaded in _OF_GITBOOK.finditer(text):
            yield root[1] + loaded[1], Hop.REQUISITE, MANUAL


def _books(text: str, head: str, address: str) -> Iterator[tuple[str, Hop, str]]:
    """Yield what mdBook, rustdoc and Pagefind load from the folder of the script."""
    if "path_to_root + 'searchindex" in head:
        for loaded in _OF_MDBOOK.finditer(head):
            yield loaded[1], Hop.REQUISITE, generators.LOADED
    if head.startswith("rr_("):
        yield from ((name, Hop.REQUISITE, generators.LOADED) for name in generators.stringdex(text))
    if head.startswith("rn_("):
        yield from ((name, Hop.REQUISITE, generators.LOADED) for name in rustdoc_index.branch_urls(text, address))
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
    """Yield the result files for each first character in each section of Doxygen's search, numbered in hexadecimal."""
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
    """Yield the branches in scripts of their own, below *root*; for the trunk, the pages as well."""
    trunk = "var NAVTREE =" in text
    for row in _ROW.finditer(text):
        if trunk and row[1]:
            yield root + row[1], Hop.LINK, MENU
        if row[2]:
            yield f"{root}{row[2]}.js", Hop.REQUISITE, TREE
    if parts := _PARTS.search(text):
        for number in range(min(parts[1].count("\n"), MOST_PARTS)):
            yield f"navtreeindex{number}.js", Hop.REQUISITE, TREE


MOST_BYTES = 16 << 20
MOST_ITEMS = 1_000_000  # CBOR items of one file
_SIGNATURE = b"pagefind_dcd"
_PAGES, _CHUNKS, _FILTERS = 1, 2, 3  # indexes of lists in the outer list
_FILES = {  # for each list: index of the hash in a row, and name of the file
    _PAGES: (0, "fragment/{}.pf_fragment"),
    _CHUNKS: (2, "index/{}.pf_index"),
    _FILTERS: (1, "filter/{}.pf_filter"),
}

_SHARED = re.compile(rb"\"staticQueryHashes\"\s*+:\s*+\[([^\[\]]{0,100000})\]")
_SLICES = re.compile(rb"\"slicesMap\"\s*+:\s*+\{([^{}]{0,100000})\}")
_SLICE = re.compile(rb":\s*+\"([\w-]{1,100})\"")
_NAME = re.compile(rb"\"([\w-]{1,60})\"")
_LANGUAGES = re.compile(rb"\s*+\{\s*+\"config\"\s*+:\s*+\{[^{}]{0,1000}?\"lang\"\s*+:\s*+\[([^\[\]]{0,1000})\]")
_PREVIEW = "iframe.html?id=*&viewMode=story"  # Storybook's frame before a story is selected
_MOST_STORIES = 2000
_MARKDOWN_LINK = re.compile(rb"\]\(([^\s()<>#?]{1,500})")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
_LISTS = ("_sidebar.md", "_navbar.md")
_CUTTERS = {"ja": "tinyseg", "hi": "wordcut", "th": "wordcut"}  # word segmenters for languages without spaces
_BYTES, _TEXT, _LIST = 2, 3, 4  # CBOR types
_NUMBERS = frozenset((0, 1, 7))
_DEEPEST = 8


def read_index(document: Document) -> Links:
    """Return what the index names, relative to itself."""
    body = document.body[:MOST_BYTES]
    found = LinkCollector()
    path = url.path(document.url)
    if path.endswith(".pf_meta"):
        urls, hop = _of_list(body), Hop.REQUISITE
    elif path.endswith("/page-data.json"):
        urls, hop = _of_page(body, path), Hop.REQUISITE
    elif path.endswith(".md"):
        urls, hop = _of_markdown(body, document.url, document.page or document.url), Hop.SPECULATIVE
    elif path.endswith("/search_index.json"):
        urls, hop = _of_languages(body), Hop.SPECULATIVE
    elif path.endswith("/pagefind-entry.json"):
        urls, hop = _of_entry(body), Hop.REQUISITE
    else:
        urls, hop = _of_stories(body), Hop.SPECULATIVE
    for name in urls:
        found.add(name, hop, LOADED)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, "utf-8", note)


def _of_entry(body: bytes) -> Iterator[str]:
    """Yield the page list of each language, and the search program."""
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return
    languages = entry.get("languages") if isinstance(entry, dict) else None
    for language in languages.values() if isinstance(languages, dict) else ():
        if isinstance(language, dict) and _is_plain(language.get("hash")):
            yield f"pagefind.{language['hash']}.pf_meta"
            program = language.get("wasm")
            yield f"wasm.{program if _is_plain(program) else 'unknown'}.pagefind"


def _of_page(body: bytes, path: str) -> Iterator[str]:
    """Yield the query results and slices that a Gatsby page shares with others."""
    root, _, _ = path.partition("/page-data/")
    hashes = _SHARED.search(body)
    for name in _NAME.findall(hashes[1]) if hashes else ():
        yield f"{root}/page-data/sq/d/{name.decode()}.json"
    slices = _SLICES.search(body)
    for name in _SLICE.findall(slices[1]) if slices else ():
        yield f"{root}/slice-data/{name.decode()}.json"


def _of_stories(body: bytes) -> Iterator[str]:
    """Yield the URL of each Storybook story and text, and of its frame."""
    try:
        index = json.loads(body)
    except (ValueError, RecursionError):
        return
    index = index if isinstance(index, dict) else {}
    entries = index.get("entries", index.get("stories"))
    stories = entries.items() if isinstance(entries, dict) else ()
    for name, story in itertools.islice(stories, _MOST_STORIES):
        if _is_plain(name) and isinstance(story, dict) and story.get("id") == name:
            view = "docs" if story.get("type") == "docs" else "story"
            yield _PREVIEW
            yield f"iframe.html?id={name}&viewMode={view}"
            yield f"./?path=/{view}/{name}"


def _of_markdown(body: bytes, address: str, page: str) -> Iterator[str]:
    """Yield the texts and pictures that a Docsify text at *address* links to: only a script makes pages of them.

    A link is relative to the folder of *page*, even with a leading slash, or to the text if the site is set up so. A
    link without an extension is a text, and one to a folder is its README.md. Folders may have their own sidebar.
    """
    folders = dict[str, None]()
    for written in _MARKDOWN_LINK.finditer(body):
        name = written[1].decode("utf-8", "replace")
        if ":" in name or name.startswith(("//", "<")):
            continue
        rooted, name = name.startswith("/"), name.lstrip("/")
        last = name.rpartition("/")[2]
        if not last:
            name += "README.md"
        elif "." not in last:
            name += ".md"
        if name.endswith((".md", *_PICTURES)):
            yield urljoin(page, name)
            if not rooted:
                yield name
            folders[name.rpartition("/")[0]] = None
    own = url.path(address).rpartition("/")[2]
    if own in _LISTS and urljoin(page, own) == address:
        yield from (urljoin(page, f"{folder}/{own}") for folder in folders if folder and ".." not in folder)


def _of_languages(body: bytes) -> Iterator[str]:
    """Yield what the search of MkDocs' Material theme loads for languages other than English."""
    written = _LANGUAGES.match(body)
    languages = [name.decode() for name in _NAME.findall(written[1])] if written else []
    others = [name for name in languages if name != "en"]
    folder = "../assets/javascripts/lunr"
    yield from (f"{folder}/min/lunr.{name}.min.js" for name in others)
    yield from (f"{folder}/{_CUTTERS[name]}.js" for name in others if name in _CUTTERS)
    if others:
        yield f"{folder}/min/lunr.stemmer.support.min.js"
    if len(languages) > 1:
        yield f"{folder}/min/lunr.multi.min.js"


def _of_list(body: bytes) -> Iterator[str]:
    """Yield the text of each page, the parts of the index, and the filters."""
    if not body.startswith(_SIGNATURE):
        body, _ = decoded(body, ["gzip"], MOST_BYTES)
    if not body.startswith(_SIGNATURE):
        return
    for where, value in _texts(body, len(_SIGNATURE)):
        place, name = _FILES.get(where[1], (0, "")) if len(where) == 4 else (0, "")
        if name and where[3] == place and _is_plain(value):
            yield name.format(value)


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100 and value.replace("-", "").replace("_", "").isalnum()


def _texts(body: bytes, position: int) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield each text in the CBOR (RFC 8949) lists at *position*, and its path: 0, then its index in each list.

    Reading stops at an item without a stated length, or of a type that such a file does not have.
    """
    left, places = [1], [0]  # for each open list: items still to come, and index of the next one
    for _ in range(MOST_ITEMS):
        head = _head(body, position)
        if head is None:
            return
        kind, number, position = head
        if kind == _TEXT:
            yield tuple(places), body[position : position + number].decode("utf-8", "replace")
        position += number if kind in {_BYTES, _TEXT} else 0
        left[-1] -= 1
        if kind == _LIST and number:
            if len(left) > _DEEPEST:
                return
            left.append(number)
            places.append(0)
            continue
        places[-1] += 1
        while not left[-1]:
            left.pop()
            places.pop()
            if not left:
                return
            places[-1] += 1


def _head(body: bytes, position: int) -> tuple[int, int, int] | None:
    """Return type, number or length, and end of the item header at *position*."""
    if position >= len(body):
        return None
    kind, short = body[position] >> 5, body[position] & 31
    if kind not in _NUMBERS and kind not in {_BYTES, _TEXT, _LIST}:
        return None
    if short < 24:
        return kind, short, position + 1
    if short > 27:
        return None
    end = position + 1 + (1 << (short - 24))
    return kind, int.from_bytes(body[position + 1 : end]), end
