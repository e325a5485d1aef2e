"""Indexes that are data: of Pagefind's search, of MkDocs' languages, of a page of Gatsby, of Docsify's texts.

Their form is known, so what they name are requisites, but for the languages, which two generators write alike and keep
in two places, and for Docsify's. Linear; what has another form names nothing.
"""

import json
import re
from collections.abc import Iterator

from archiver import url
from archiver.extract.coding import decoded
from archiver.extract.document import Document
from archiver.extract.found import Found
from archiver.extract.generators import LOADED
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20
MOST_ITEMS = 1_000_000  # numbers, texts and lists of one file
_SIGNATURE = b"pagefind_dcd"
_PAGES, _CHUNKS, _FILTERS = 1, 2, 3  # the lists in the list that the file is
_FILES = {  # where a row of each of them has the hash, and which file that means
    _PAGES: (0, "fragment/{}.pf_fragment"),
    _CHUNKS: (2, "index/{}.pf_index"),
    _FILTERS: (1, "filter/{}.pf_filter"),
}

_SHARED = re.compile(rb"\"staticQueryHashes\"\s*+:\s*+\[([^\[\]]{0,100000})\]")
_NAME = re.compile(rb"\"([\w-]{1,60})\"")
_LANGUAGES = re.compile(rb"\s*+\{\s*+\"config\"\s*+:\s*+\{[^{}]{0,1000}?\"lang\"\s*+:\s*+\[([^\[\]]{0,1000})\]")
_MARKDOWN_LINK = re.compile(rb"\]\(([^\s()<>#?]{1,500})")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
_CUTTERS = {"ja": "tinyseg", "hi": "wordcut", "th": "wordcut"}  # of words, where no spaces are
_BYTES, _TEXT, _LIST = 2, 3, 4  # kinds of items in CBOR
_NUMBERS = frozenset((0, 1, 7))
_DEEPEST = 8


def read(document: Document) -> Links:
    """What the index names, relative to itself."""
    body = document.body[:MOST_BYTES]
    found = Found()
    path = url.path(document.url)
    if path.endswith(".pf_meta"):
        names, hop = _of_list(body), Hop.REQUISITE
    elif path.endswith("/page-data.json"):
        names, hop = _of_page(body, path), Hop.REQUISITE
    elif path.endswith(".md"):
        names, hop = _of_markdown(body), Hop.SPECULATIVE
    elif path.endswith("/search_index.json"):
        names, hop = _of_languages(body), Hop.SPECULATIVE
    else:
        names, hop = _of_entry(body), Hop.REQUISITE
    for name in names:
        found.add(name, hop, LOADED)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, "utf-8", note)


def _of_entry(body: bytes) -> Iterator[str]:
    """The list of each language, and the program that searches in it."""
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
    """The results of queries that a page of Gatsby shares with others."""
    root, _, _ = path.partition("/page-data/")
    hashes = _SHARED.search(body)
    for name in _NAME.findall(hashes[1]) if hashes else ():
        yield f"{root}/page-data/sq/d/{name.decode()}.json"


def _of_markdown(body: bytes) -> Iterator[str]:
    """The texts and files to which a text of Docsify leads: nothing but a script makes pages of them.

    An address from the root means the folder of the site, in which a list of its pages lies.
    """
    for written in _MARKDOWN_LINK.finditer(body):
        name = written[1].decode("utf-8", "replace").lstrip("/")
        if name.endswith((".md", *_PICTURES)) and ":" not in name:
            yield name


def _of_languages(body: bytes) -> Iterator[str]:
    """What the search of MkDocs' theme Material loads for languages other than English."""
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
    """The text of each page, the parts of the index, and the filters."""
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
    """Each text in the CBOR (RFC 8949) of lists at *position*, and where it stands: 0, and its place in each list.

    Nothing more is read where an item has no stated length, or is none that such a file has.
    """
    left, places = [1], [0]  # of each list that is open: how many items are to come, and the place of the next one
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
    """The kind of the item at *position*, its number or length, and where it goes on."""
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
