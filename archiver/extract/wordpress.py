"""What the REST interface of WordPress lists: pages to which a theme has no link, such as those of attachments.

Each page names the interface (`rel="https://api.w.org/"`). Its description has the address of each list. We take those
of posts, pages, media and types of the site's own, a hundred entries at once. The following parts of a list are in its
header `Link`. Of an entry only its page and its file are links: smaller versions of a picture are not, as a page names
those that it shows. A list that the site keeps to itself is a wrong request, so lists are guesses.

Linear and bounded; JSON in any other form names nothing.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from archiver.extract.document import Document
from archiver.extract.references import LinkCollector
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20
MOST_LISTS = 20
MOST_ROUTES = 5000
_SHOWN = 1 << 16  # bytes of a description before its routes, with room for a long text about the site
_ENTRIES = "per_page=100"  # the most that WordPress gives
_LIST = frozenset(("per_page", "slug", "status"))  # arguments of a list of posts, of whatever type
_INTERNAL = frozenset(  # types that only editors may list
    (
        "blocks",
        "menu-items",
        "navigation",
        "templates",
        "template-parts",
        "global-styles",
        "font-families",
        "font-faces",
    )
)


def read_rest(document: Document) -> Links | None:
    """Return what the *document*, which is JSON, names as an answer of WordPress; None if it is no such answer."""
    body = document.body
    if body.startswith(b'{"name":') and b'"wp\\/v2"' in body[:_SHOWN]:
        found, read = LinkCollector(), _lists
    elif body.startswith(b'[{"id":') and b'"_links":{' in body:
        found, read = LinkCollector(), _entries
    else:
        return None
    try:
        data = json.loads(body) if len(body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        return None
    names = list(read(data))
    for reference, hop, context in names:
        found.add(reference, hop, context)
    return found.links(document.url, "utf-8", queries="utf-8") if names else None


def _lists(data: Any) -> Iterator[tuple[str, Hop, str]]:
    """Yield the address of each list in the description *data* of the interface."""
    routes = data.get("routes") if isinstance(data, dict) else None
    known = routes.items() if isinstance(routes, dict) else ()
    found = (_address(name, route) for name, route in islice(known, MOST_ROUTES) if isinstance(route, dict))
    for address in islice(filter(None, found), MOST_LISTS):
        yield f"{address}{'&' if '?' in address else '?'}{_ENTRIES}", Hop.SPECULATIVE, "json/routes"


def _address(name: str, route: dict[str, Any]) -> str:
    """Return the address of the list that is the *route* with this *name*; "" if it is no list of posts."""
    start, _, kind = name.rpartition("/")
    if start != "/wp/v2" or kind in _INTERNAL or kind.startswith("wp_"):
        return ""
    endpoints = route.get("endpoints")
    if not isinstance(endpoints, list) or not any(map(_gives_posts, endpoints)):
        return ""
    try:
        address = route["_links"]["self"][0]["href"]
    except (KeyError, IndexError, TypeError):
        return ""
    return address if isinstance(address, str) else ""


def _gives_posts(endpoint: Any) -> bool:
    if not isinstance(endpoint, dict):
        return False
    methods, arguments = endpoint.get("methods"), endpoint.get("args")
    return isinstance(methods, list) and "GET" in methods and isinstance(arguments, dict) and arguments.keys() >= _LIST


def _entries(data: Any) -> Iterator[tuple[str, Hop, str]]:
    """Yield the page and the file of each entry in the list *data*."""
    for entry in data if isinstance(data, list) else ():
        if not isinstance(entry, dict) or "_links" not in entry:
            continue
        for key in ("link", "source_url"):
            address = entry.get(key)
            if isinstance(address, str) and address.startswith(("http://", "https://")):
                yield address, Hop.LINK, f"json/{key}"
