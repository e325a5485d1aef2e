"""What JSON documents of known form name: the manifest of a web application, and JSON Feed.

Of a manifest the pictures are requisites, where the application and its shortcuts start are links; its scope,
its share targets and the applications of shops beside it name nothing to fetch. Of a feed, entries and
attachments are links, pictures are requisites, and the HTML of entries is read as a page is.
"""

import json
from collections.abc import Iterator
from typing import Any

from archiver.extract import charset, html
from archiver.extract.bases import Bases
from archiver.extract.document import Document
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20
_MOST_ITEMS = 20_000
_DEEPEST = 20
_PICTURES = ("icons", "screenshots")  # wherever they stand: of the application, of shortcuts, of file handlers
L, E = Hop.LINK, Hop.REQUISITE
_FEED = {"home_page_url": L, "feed_url": L, "next_url": L, "icon": E, "favicon": E}
_ITEM = {"url": L, "external_url": L, "image": E, "banner_image": E}
_AUTHOR = {"url": L, "avatar": E}
_ATTACHMENT = {"url": L}


def read(document: Document) -> Links:
    """What the manifest names."""
    encoding, manifest, note = _loaded(document)
    bases = Bases(document.url)
    if isinstance(manifest, dict):
        _name(bases, manifest, {"start_url": L}, "")
        for picture, where in _pictures(manifest, 0):
            _name(bases, picture, {"src": E}, where)
        for shortcut in _objects(manifest.get("shortcuts")):
            _name(bases, shortcut, {"url": L}, "shortcuts/")
        _name(bases, manifest.get("note_taking"), {"new_note_url": L}, "note_taking/")
    return bases.found.links(document.url, encoding, note, queries="utf-8")


def read_feed(document: Document) -> Links:
    """What the feed names."""
    encoding, feed, note = _loaded(document)
    bases = Bases(document.url)
    if isinstance(feed, dict):
        _name(bases, feed, _FEED, "")
        _people(bases, feed)
        for item in _objects(feed.get("items"))[:_MOST_ITEMS]:
            _name(bases, item, _ITEM, "items/")
            _people(bases, item)
            for attachment in _objects(item.get("attachments")):
                _name(bases, attachment, _ATTACHMENT, "attachments/")
            content = item.get("content_html")
            if isinstance(content, str) and "<" in content:
                page = Document(document.url, "text/html", "utf-8", content.encode("utf-8", "replace"))
                bases.take(html.read(page), "content_html")
    return bases.found.links(document.url, encoding, note, queries="utf-8")


def _loaded(document: Document) -> tuple[str, Any, str]:
    """By what it was read, the value that the document is, and what was wrong with it."""
    encoding = charset.marked(document.body) or "utf-8"  # RFC 8259: no other will do, whatever the header says
    if len(document.body) > MOST_BYTES:
        return encoding, None, f"more than {MOST_BYTES} bytes of JSON"
    try:
        return encoding, json.loads(charset.text(document.body, encoding), parse_int=len, parse_float=len), ""
    except (ValueError, RecursionError):
        return encoding, None, "no JSON"


def _pictures(value: Any, depth: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Each picture in *value*, and the list it stands in."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside if depth < _DEEPEST else ():
        if key in _PICTURES:
            yield from ((picture, f"{key}/") for picture in _objects(inner))
        elif key != "related_applications":
            yield from _pictures(inner, depth + 1)


def _people(bases: Bases, value: dict[str, Any]) -> None:
    for author in (value.get("author"), *_objects(value.get("authors"))):
        _name(bases, author, _AUTHOR, "authors/")


def _objects(value: Any) -> list[dict[str, Any]]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _name(bases: Bases, value: Any, keys: dict[str, Hop], where: str) -> None:
    """Keep what the *keys* of an object name."""
    for key, hop in keys.items():
        reference = value.get(key) if isinstance(value, dict) else None
        if isinstance(reference, str):
            bases.add(reference, hop, f"{where}{key}")
