"""Data that the scripts of a framework load when a person clicks a link to a page. Pure.

The page itself says enough to put the address of its data together: SvelteKit, Gatsby, Next.js, React Router and
Remix, Nuxt. A page in any other form names nothing. Linear on any text.
"""

import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlencode

from archiver import url
from archiver.model import Hop

MARKS = ("kit.start(", "window.pagePath", "___chunkMapping", "__reactRouterContext", "__remixContext")
_PAGE_PATH = re.compile(r"window\.pagePath\s*+=\s*+[\"'](/[^\"'\\\s<>]{0,500})[\"']")
_GATSBY_CHUNK = re.compile(r"\\?\"(/[\w~@./-]{1,300}\.(?:js|css))\\?\"")
_BUILD = re.compile(r"\"buildId\"\s*+:\s*+\"([\w.~-]{1,100})\"")
_HAS_DATA = re.compile(r"\"gs{1,2}p\"\s*+:\s*+true")
_QUERY = re.compile(r"\"query\"\s*+:\s*+(\{[^{}]{1,2000}\})")
_HAS_LOADED = re.compile(r"Context\.streamController\.enqueue\(\"\[\{[^{}]{1,200}\},\\\"loaderData\\\",\{\\\"_")
_BASENAME = re.compile(r"__(?:reactRouter|remix)Context\s*+=\s*+\{\"basename\":\"(/[^\"\\\s<>]{0,300})\"")
_NUXT_BUILD = re.compile(
    r"baseURL:\"([^\"\\\s<>]{1,300})\",buildId:\"([\w-]{1,100})\",buildAssetsDir:\"([^\"\\\s<>]{1,300})\""
    r"(?:,cdnURL:\"([^\"\\\s<>]{0,300})\")?"
)
_LOCALE = re.compile(r"\"locale\"\s*+:\s*+\"([\w-]{1,20})\"")


def of_page(text: str, references: Mapping[tuple[str, Hop], str], address: str) -> Iterator[str]:
    """Yield what scripts with this *text* load in the page at *address*, which has these *references*."""
    if "kit.start(" in text and 'type:"data"' in text:  # SvelteKit
        path = url.path(address)
        yield f"{path}__data.json" if path.endswith(".html") else f"{path.removesuffix('/')}/__data.json"
    if page := _PAGE_PATH.search(text):
        yield from _gatsby(text, page[1], url.path(address))
    if "buildId" in text and (build := _BUILD.search(text)) and _HAS_DATA.search(text):
        yield _next_data(text, build[1], references, address)
    if "streamController" in text and _HAS_LOADED.search(text):
        yield _route_data(text, address)


def nuxt(text: str) -> Iterator[str]:
    """Yield the list of prerendered pages that Nuxt's configuration leads to; clicks load it."""
    if "buildAssetsDir" in text and (found := _NUXT_BUILD.search(text.replace("\\u002F", "/"))):
        root = (found[4] or found[1]).rstrip("/")
        yield f"{root}/{found[3].strip('/')}/builds/meta/{found[2]}.json"


def _gatsby(text: str, page: str, path: str) -> Iterator[str]:
    """Yield the data of *page*, which is at *path* below the site's prefix, and the chunks that the page lists."""
    ends = unquote(path).removesuffix("/index.html").rstrip("/"), unquote(page).rstrip("/")
    prefix = path[: len(ends[0]) - len(ends[1])] if ends[0].endswith(ends[1]) else ""
    yield f"{prefix}/page-data/{page.strip('/') or 'index'}/page-data.json"
    yield f"{prefix}/page-data/app-data.json"
    listed = text.find("___chunkMapping=")
    yield from (prefix + name for name in _GATSBY_CHUNK.findall(text, listed if listed >= 0 else len(text)))


def _route_data(text: str, address: str) -> str:
    """Return the data of this page, which React Router and Remix load on links to it."""
    path, base = url.path(address).rstrip("/"), _BASENAME.search(text)
    return f"{path}/_root.data" if path == (base[1].rstrip("/") if base else "") else f"{path}.data"


def _next_data(text: str, build: str, references: Mapping[tuple[str, Hop], str], address: str) -> str:
    """Return the data of this page, which Next.js loads on links to it.

    The query holds the parts of the path that the route gives names to.
    """
    static = next((reference for reference, _ in references if "/_next/static/" in reference), "")
    prefix = url.path(static) if static.startswith("http") else static
    prefix = prefix[: prefix.find("/_next/static/")] if static.startswith(("/", "http")) else ""
    path = url.path(address).removeprefix(prefix).rstrip("/").removesuffix(".html").removesuffix("/index")
    locale = _LOCALE.search(text)
    if locale and not f"{path}/".startswith(f"/{locale[1]}/"):
        path = f"/{locale[1]}{path}"
    return f"{prefix}/_next/data/{build}{path or '/index'}.json{_next_query(text)}"


def _next_query(text: str) -> str:
    written = _QUERY.search(text)
    try:
        query = json.loads(written[1]) if written else {}
    except (ValueError, RecursionError):
        return ""
    return f"?{urlencode(query, doseq=True, errors='replace')}" if query else ""
