"""Documents that are scripts or data for scripts: their URLs, relative to the page that runs them.

JavaScript resolves strings against the page, not the script. `Document.page` is the page that named the script. Data
may also mean its own folder, so a relative path in JSON is read both ways. Markup in JSON is not: a script inserts it
into the page. A relative path that ends a whole URL of the same data is that file, and no guess. All are guesses,
except what scripts of site generators name.

The indexes of known form are Pagefind's and its results, those of MkDocs, Zensical and GitBook, pages of Gatsby, texts
of Docsify, stories of Storybook and images of IIIF. Most of their URLs are requisites. Guesses are the pages that a
search finds, MkDocs' languages, which two generators keep in different folders, Docsify's texts, and the URL of each
story. Linear; data in any other form names nothing.
"""

import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, zip_longest

from archiver import url
from archiver.extract import charset, deep_zoom
from archiver.extract.document import Document
from archiver.extract.html.elements import add_markup_in_strings
from archiver.extract.references import MOST_LINKS, LinkCollector
from archiver.extract.script import applications, docsify, folders, frameworks, generators, javascript, viewers
from archiver.extract.script.generators import LOADED
from archiver.extract.wordpress import read_rest
from archiver.http.content_coding import decoded
from archiver.model import Hop, Link, Links

MOST_BYTES = 16 << 20
MOST_FOLDERS = 8  # of a relative path in data that is compared with whole URLs
_OF_ITS_FOLDER = ("/doc-index.json", ".gltf")  # an index of Haddock and a 3D model name files beside themselves


def read_script(document: Document) -> Links:
    """Return what the script names."""
    own_base = generators.own_base(document.body[:MOST_BYTES], document.url)
    return _read(document, (own_base or document.page or document.url,))


def read_data(document: Document) -> Links:
    """Return what the JSON names."""
    if (listed := read_rest(document)) is not None:
        return listed
    page = "" if document.url.endswith(_OF_ITS_FOLDER) else document.page
    return _read(document, tuple(dict.fromkeys((page or document.url, document.url))), data=True)


def _read(document: Document, bases: tuple[str, ...], *, data: bool = False) -> Links:
    encoding = charset.of_xml(document.body, document.charset)
    text = charset.text(document.body[:MOST_BYTES], encoding)
    own, of_page, of_folder = LinkCollector(), LinkCollector(), LinkCollector()
    for reference, hop, context in generators.script_urls(text, document.url, document.page):
        own.add(reference, hop, context)
    near = len(bases) > 1 or bool(document.page)
    for reference, below_page in javascript.asset_urls(text, document.url, near=near):
        (of_page if below_page else own).add(reference, Hop.SPECULATIVE, javascript.CHUNK)
    add_markup_in_strings(of_page, text)
    _add_shown(text, own, of_page, data=data)
    own.add(frameworks.own_payload(text, document.page), Hop.SPECULATIVE, LOADED)
    relative = dict[str, str]()
    for reference, context in _relative_names(text, document.url, own, near=near):
        relative.setdefault(reference, context)
    named = _named_whole(relative, chain(own.references, of_page.references)) if data else frozenset[str]()
    for reference, context in relative.items():
        if reference in named:
            continue
        of_page.add(reference, Hop.SPECULATIVE, context)
        of_folder.add(reference, Hop.SPECULATIVE, context)
    for reference in () if data else generators.routed(text, document.url):
        own.add(reference, Hop.SPECULATIVE, javascript.PAGE)
    worker = bases[0] == document.url
    for name in folders.kept_files(text) if worker else ():
        own.add(name, Hop.SPECULATIVE, LOADED)
    for reference, of_script in javascript.joined_urls(text, document.url, page=bool(document.page), worker=worker):
        (own if of_script else of_page).add(reference, Hop.SPECULATIVE, javascript.JOINED)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    links = own.links(document.url, encoding, note, queries="utf-8")
    if of_page.empty:
        return links
    pairs = zip((of_page, of_folder), bases, strict=False)
    readings = [found.links(base, encoding, queries="utf-8") for found, base in pairs]
    return Links(_interleaved(links, readings), encoding, "; ".join(filter(None, (links.note, readings[0].note))))


def _add_shown(text: str, own: LinkCollector, of_page: LinkCollector, *, data: bool) -> None:
    """Add what viewers load that get the script or data *text*."""
    for reference in viewers.of_page(text) if data else viewers.of_script(text):
        of_page.add(reference, Hop.SPECULATIVE, deep_zoom.CONTEXT)
    for reference in viewers.beside(text) if data else ():
        own.add(reference, Hop.SPECULATIVE, deep_zoom.CONTEXT)


def _relative_names(text: str, address: str, own: LinkCollector, *, near: bool) -> Iterator[tuple[str, str]]:
    """Yield each relative URL in the script *text* at *address* and its context; add all others to *own*."""
    routes: str | None = None
    for reference, context in javascript.references(text, address, near=near):
        if generators.is_left_out(reference, address):
            continue
        if context in javascript.OF_ITSELF or not _is_relative(reference):
            if context == javascript.PAGE and reference[0] == "/" != reference[1:2]:
                routes = generators.base_of_routes(text, address) if routes is None else routes  # few scripts have any
                own.add(routes + reference, Hop.SPECULATIVE, context)
            else:
                own.add(reference, Hop.SPECULATIVE, context)
        else:
            yield reference, context


def _named_whole(relative: Collection[str], found: Iterable[tuple[str, Hop]]) -> frozenset[str]:
    """Return the *relative* paths that end a URL in *found*: `2020/05/a.jpg` beside `https://…/files/2020/05/a.jpg`.

    Such data, as of WordPress, names the path below a folder that only the server knows. A name without a folder says
    too little.
    """
    named = set[str]()
    for reference, _ in found if relative else ():
        parts = reference.partition("?")[0][-javascript.LONGEST :].rsplit("/", MOST_FOLDERS)
        ends = ("/".join(parts[start:]) for start in range(1, len(parts) - 1))
        named.update(end for end in ends if end in relative)
    return frozenset(named)


def _is_relative(reference: str) -> bool:
    return not reference.startswith(("/", "http:", "https:"))


def _interleaved(links: Links, readings: list[Links]) -> tuple[Link, ...]:
    """Return *links* and those of all *readings*, interleaved: the crawl soon sees which reading is right."""
    known = {link.url: link for link in links.links}  # the surest hop of each URL: guesses come last
    for row in zip_longest(*(reading.links for reading in readings)):
        for link in filter(None, row):
            known.setdefault(link.url, link)
    return tuple(known.values())[:MOST_LINKS]


MOST_ITEMS = 1_000_000  # CBOR items of one file
_SIGNATURE = b"pagefind_dcd"
_PAGES, _CHUNKS, _FILTERS = 1, 2, 3  # indexes of lists in the outer list
_FILES = {  # for each list: index of the hash in a row, and name of the file
    _PAGES: (0, "fragment/{}.pf_fragment"),
    _CHUNKS: (2, "index/{}.pf_index"),
    _FILTERS: (1, "filter/{}.pf_filter"),
}

_RESULT = re.compile(rb"pagefind_dcd\s{0,10}\{\s{0,10}\"url\"\s{0,10}:\s{0,10}\"([^\"\s<>]{1,2000})\"")
_BUNDLE = re.compile(r"(.{0,2000}/)_?pagefind/")
_SHARED = re.compile(rb"\"staticQueryHashes\"\s*+:\s*+\[([^\[\]]{0,100000})\]")
_SLICES = re.compile(rb"\"slicesMap\"\s*+:\s*+\{([^{}]{0,100000})\}")
_SLICE = re.compile(rb":\s*+\"([\w-]{1,100})\"")
_NAME = re.compile(rb"\"([\w-]{1,60})\"")
_LANGUAGES = re.compile(rb"\s*+\{\s*+\"config\"\s*+:\s*+\{[^{}]{0,1000}?\"lang\"\s*+:\s*+\[([^\[\]]{0,1000})\]")
_PREVIEW = "iframe.html?id=*&viewMode=story"  # Storybook's frame before a story is selected
_MOST_STORIES = 2000
_CUTTERS = {"ja": "tinyseg", "hi": "wordcut", "th": "wordcut"}  # word segmenters for languages without spaces
_BYTES, _TEXT, _LIST = 2, 3, 4  # CBOR types
_NUMBERS = frozenset((0, 1, 7))
_DEEPEST = 8


def read_index(document: Document) -> Links:
    """Return what the index names, relative to itself."""
    body, path = document.body[:MOST_BYTES], url.path(document.url)
    found = LinkCollector()
    if path.endswith("/info.json"):
        found, note = deep_zoom.collected(deep_zoom.iiif(body))
        return found.links(document.url, "utf-8", note)
    urls, hop = _of_index(document, body, path)
    for name in urls:
        found.add(name, hop, LOADED)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, "utf-8", note)


def _of_index(document: Document, body: bytes, path: str) -> tuple[Iterator[str], Hop]:
    if path.endswith(".pf_meta"):
        return _of_list(body), Hop.REQUISITE
    if path.endswith(".pf_fragment"):
        return _of_result(body, path), Hop.SPECULATIVE
    if path.endswith("/page-data.json"):
        return _of_page(body, path), Hop.REQUISITE
    if path.endswith("/pagefind-entry.json"):
        return _of_entry(body), Hop.REQUISITE
    if path.endswith((".md", ".txt")):
        return _of_text(document, body, path), Hop.SPECULATIVE
    if path.endswith(("/search_index.json", "/search.json")):
        return chain(_of_languages(body, path), _found_by_search(body)), Hop.SPECULATIVE
    if applications.is_data(path):
        return applications.of_data(body, path), Hop.SPECULATIVE
    if docc := frameworks.DOCC_DATA.match(path):
        return frameworks.docc_names(body, docc[1]), Hop.SPECULATIVE
    return _of_stories(body), Hop.SPECULATIVE


def _of_text(document: Document, body: bytes, path: str) -> Iterator[str]:
    """Return what a text of Docsify or a payload of Next.js names."""
    if path.endswith(".md"):
        return docsify.of_text(body, document.url, document.page or document.url)
    text = body.decode("utf-8", "replace")
    return frameworks.part_payload(text) if path.endswith(frameworks.TREE) else frameworks.payloads(text, document.url)


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


def _of_languages(body: bytes, path: str) -> Iterator[str]:
    """Yield what the search of MkDocs and of its Material theme loads for languages other than English.

    The theme has its own folder. Up to version 8 it used the index of MkDocs, which then does not show who reads it.
    """
    written = _LANGUAGES.match(body) if path.endswith("_index.json") else None  # Zensical loads nothing for them
    languages = [name.decode() for name in _NAME.findall(written[1])] if written else []
    others = [name for name in languages if name != "en"]
    names = [f"lunr.{name}" for name in others]
    names += ["lunr.stemmer.support"] if others else []
    names += ["lunr.multi"] if len(languages) > 1 else []
    if written and b'"indexing"' in written[0]:
        yield from (f"{name}.js" for name in names)
        yield from ("tinyseg.js" for name in others if name == "ja")
    folder = "../assets/javascripts/lunr"
    yield from (f"{folder}/min/{name}.min.js" for name in names)
    yield from (f"{folder}/{_CUTTERS[name]}.js" for name in others if name in _CUTTERS)


def _found_by_search(body: bytes) -> Iterator[str]:
    """Yield the pages in the search index of MkDocs, Zensical or GitBook, some of which no menu names.

    MkDocs keeps the index in a folder below its root. Up to version 2, GitBook lists pages only in the index of words.
    """
    try:
        index = json.loads(body)
    except (ValueError, RecursionError):
        return
    for root, key in (("../", "docs"), ("./", "items")):
        entries = _member(index, key)
        listed = entries if isinstance(entries, list) else ()
        yield from _pages_of(root, [_member(entry, "location") for entry in listed])
    words = _member(index, "index") or index
    if _member(words, "ref") == "url":
        pages = _member(index, "store") or _member(_member(words, "documentStore"), "store")
        yield from _pages_of("./", pages if isinstance(pages, dict) else ())


def _member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _pages_of(root: str, locations: Iterable[object]) -> Iterator[str]:
    """Yield each page in *locations*, whose headings are listed too, once: as seen from the index, below *root*."""
    pages = dict.fromkeys(where.partition("#")[0] for where in locations if isinstance(where, str))
    yield from (root + page for page in pages if not page.startswith("/") and ":" not in page)


def _of_result(body: bytes, path: str) -> Iterator[str]:
    """Yield the page that a result of Pagefind leads to: its path begins beside the folder of the search."""
    body, _ = (body, "") if body.startswith(_SIGNATURE) else decoded(body, ["gzip"], MOST_BYTES)
    shown = _RESULT.match(body)
    bundle = _BUNDLE.match(path)
    if shown:
        page = shown[1].decode("utf-8", "replace").replace("\\/", "/")
        whole = page.startswith(("http:", "https:", "//"))
        yield page if whole else f"{bundle[1] if bundle else '/'}{page.lstrip('/')}"


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
