"""Data that site generators put into pages for their own scripts: the search index, and the data of each page.

A complete URL is certain. A URL built from the page's address, or from VitePress' table of lower-case names, is a
guess. Linear on any text.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote, urlencode

from archiver import url
from archiver.extract.script import rustdoc_index
from archiver.model import Hop

LOADED = "script/loader"
HASHES = "__VP_HASH_MAP__"
_MARKS = (HASHES, "kit.start(", "window.pagePath", "__reactRouterContext", "__remixContext")
MOST_PAGES = 20_000  # pages of one table
_TABLE = re.compile(rf"{HASHES}\s*+=\s*+(?:JSON\.parse\(\s*+[\"'`])?+\s*+\{{")
_HASH = re.compile(r"\s*+\\?\"([^\"\\/]{1,500}\.md)\\?\"\s*+:\s*+\\?\"([\w-]{1,40})\\?\"\s*+,?+")
_BASE = re.compile(r"__VP_SITE_DATA__\s*+=[^{]{0,40}\{[^{}]{0,2000}?\"base\\?\"\s*+:\s*+\\?\"(/[^\"\\]{0,300})")
_LEAN = re.compile(r"[^/]{1,500}\.md\.[\w-]{1,40}\.lean\.js")
_PAGE = re.compile(r"(?:https?://[^/?#]++)?(/[^?#]*+)")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>*#\"{}|^\[\]`;?:&=+$,]")  # characters that Vite's file names do not contain

_PAGE_PATH = re.compile(r"window\.pagePath\s*+=\s*+[\"'](/[^\"'\\\s<>]{0,500})[\"']")
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
_WORKER = re.compile(r"\"search\"\s*+:\s*+\"([^\"\\\s<>]{1,500}\.js)\"")
_SEARCHED = re.compile(
    r"\"[\w-]{0,40}?(?:path|search|index|url)[\w-]{0,40}\"\s*+:\s*+\"(/(?!/)[^\"\\\s<>{}]{1,300}+)(?<=\.xml|\.txt)\"",
    re.IGNORECASE,
)
_BUNDLE_PATH = re.compile(
    r"bundlePath\s*+:\s*+(?:[\"']([^\"'\\\s]{0,200})[\"']\.replace\(/\\/\$/,\s*+[\"']{2}\)\s*+\+\s*+)?"
    r"[\"']([^\"'\\\s]{0,200}/)[\"']"
)
_DOCSIFY = re.compile(r"\b(?:load)?([Ss]idebar|[Nn]avbar|coverpage)\s{0,10}:\s{0,10}true")
_DOCSIFY_TEXT = re.compile(r"[\"']/?+([\w@./-]{4,300}+)(?<=\.md)[\"']", re.ASCII)
_SEARCH_INDEX = re.compile(r"path_to_searchindex_js\s*+=\s*+[\"']([^\"'\\\s<>]{1,500})[\"']")
_COLUMN = re.compile(r"\"(\w{1,60})\":\{((?:\"[A-Z]\":\"[^\"\\]*+\",?+)++)\}")
_FIELD = re.compile(r"\"([A-Z])\":\"([^\"]*+)\"")
_HASH_LENGTHS = range(4, 17)
_RESOURCE = re.compile(r"[\w./~@+-]{0,300}", re.ASCII)


def inline(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield what the *text* of a script in a page names for search scripts."""
    if "path_to_searchindex_js" in text:
        yield from ((found[1], Hop.REQUISITE) for found in _SEARCH_INDEX.finditer(text))
    yield from ((name, Hop.SPECULATIVE) for name in (*pagefind(text), *docsify(text), *nuxt(text)))


def needs_whole_page(name: str, text: str) -> bool:
    """True if a script with this id *name* and *text* can be read only with all references of its page."""
    return name == "__NEXT_DATA__" or any(mark in text for mark in _MARKS)


def docsify(text: str) -> Iterator[str]:
    """Yield the texts that Docsify makes the page from: the first one, and the enabled sidebars."""
    if "$docsify" in text:
        yield "README.md"
        yield from (f"_{name.lower()}.md" for name in _DOCSIFY.findall(text))
        yield from _DOCSIFY_TEXT.findall(text)


def pagefind(text: str) -> Iterator[str]:
    """Yield the search program in the folder that a script gives to Pagefind."""
    if "bundlePath" in text:
        yield from (
            f"{(found[1] or '').removesuffix('/')}{found[2]}pagefind.js" for found in _BUNDLE_PATH.finditer(text)
        )


def nuxt(text: str) -> Iterator[str]:
    """Yield the list of prerendered pages that Nuxt's configuration leads to; clicks load it."""
    if "buildAssetsDir" in text and (found := _NUXT_BUILD.search(text.replace("\\u002F", "/"))):
        root = (found[4] or found[1]).rstrip("/")
        yield f"{root}/{found[3].strip('/')}/builds/meta/{found[2]}.json"


def configured(name: str, text: str) -> Iterator[tuple[str, Hop]]:
    """Yield what the JSON *text* in a page, in an element with id *name*, says about the search.

    Material and Zensical name the search worker. Others, like Hexo's themes, name the text that is searched.
    """
    if name == "__config" and (worker := _WORKER.search(text)):
        yield worker[1], Hop.REQUISITE
    yield from ((found[1], Hop.SPECULATIVE) for found in _SEARCHED.finditer(text))


def of_page(text: str, named: Mapping[tuple[str, Hop], str], address: str) -> Iterator[str]:
    """Yield what scripts with this *text* load in the page at *address*, which has the references *named*."""
    if HASHES in text:
        yield from vitepress(text, named)
    if "kit.start(" in text and 'type:"data"' in text:  # SvelteKit: the data of this page, loaded by links to it
        path = url.path(address)
        yield f"{path}__data.json" if path.endswith(".html") else f"{path.removesuffix('/')}/__data.json"
    if page := _PAGE_PATH.search(text):
        path = unquote(url.path(address)).rstrip("/")
        prefix = path.removesuffix(unquote(page[1]).rstrip("/"))
        prefix = url.path(address)[: len(prefix)] if path.endswith(unquote(page[1]).rstrip("/")) else ""
        yield f"{prefix}/page-data/{page[1].strip('/') or 'index'}/page-data.json"
        yield f"{prefix}/page-data/app-data.json"
    if "buildId" in text and (build := _BUILD.search(text)) and _HAS_DATA.search(text):
        yield _next_data(text, build[1], named, address)
    if "streamController" in text and _HAS_LOADED.search(text):
        yield _route_data(text, address)


def _route_data(text: str, address: str) -> str:
    """Return the data of this page, which React Router and Remix load on links to it."""
    path, base = url.path(address).rstrip("/"), _BASENAME.search(text)
    return f"{path}/_root.data" if path == (base[1].rstrip("/") if base else "") else f"{path}.data"


def _next_data(text: str, build: str, named: Mapping[tuple[str, Hop], str], address: str) -> str:
    """Return the data of this page, which Next.js loads on links to it.

    The query holds the parts of the path that the route gives names to.
    """
    static = next((reference for reference, _ in named if "/_next/static/" in reference), "")
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


def whole_page(lean: str) -> str:
    """Return the full script of the VitePress page whose lean script is *lean*; "" for other URLs."""
    return f"{lean[:-8]}.js" if _is_lean(lean) else ""


def vitepress(text: str, named: Iterable[tuple[str, Hop]]) -> Iterator[str]:
    """Yield the scripts of the pages in the table in *text*, in a page with the references *named*.

    The table is in lower case, the files are not; links of the page show the real names. If one of them has capitals,
    pages without a link are left out, as their names may have capitals too.
    """
    hashes = dict(_hashes(text))
    if not hashes:
        return
    base = _BASE.search(text)
    root = base[1].rstrip("/") + "/" if base else "/"
    folder, real_names = f"{root}assets/", dict[str, str]()
    for reference, hop in named:
        if hop is Hop.LINK:
            real_names |= {name.lower(): name for name in _page_names(reference, root)}
        elif _is_lean(reference):
            folder = reference[: reference.rfind("/") + 1]
    written = {key: real_names.get(key, "") for key in hashes}
    plain = all(name == key for key, name in written.items() if name)
    for key, name in written.items():
        if name or plain:
            yield f"{folder}{name or key}.{hashes[key]}.js"


def rustdoc(attributes: Mapping[str, str]) -> Iterator[tuple[str, Hop]]:
    """Yield search, settings and themes that *attributes* of an element hold for rustdoc's scripts.

    Older versions have URLs, newer ones names of files in a folder of their own.
    """
    root, suffix = attributes.get("data-root-path", ""), attributes.get("data-resource-suffix", "")
    static = attributes.get("data-static-root-path", "")
    known = "data-resource-suffix" in attributes or "data-search-index-js" in attributes
    if not known or not _RESOURCE.fullmatch(root + suffix + static):
        return
    yield from ((reference, Hop.REQUISITE) for reference in _of_rustdoc(attributes, root, suffix, static))


def _of_rustdoc(attributes: Mapping[str, str], root: str, suffix: str, static: str) -> Iterator[str]:
    for name in ("search", "settings"):
        file = attributes.get(f"data-{name}-js")
        yield static + file if file else f"{root}{name}{suffix}.js"
    if stringdex := attributes.get("data-stringdex-js"):
        yield static + stringdex
        yield f"{root}search.index/root{suffix}.js"
    else:
        yield attributes.get("data-search-index-js") or f"{root}search-index{suffix}.js"
    themes = attributes.get("data-themes", "").split(",", 20)
    yield from (f"{root}{theme}.css" for theme in themes if theme and _RESOURCE.fullmatch(theme))


def stringdex(text: str) -> Iterator[str]:
    """Yield the files of rustdoc's search: columns, listed by hash in the root of its index, and branches of its trees.

    Each part of a column has a count and a hash; the length of hashes differs between versions.
    """
    for column in _COLUMN.finditer(text):
        fields = dict(_FIELD.findall(column[2]))
        parts = sum(sign >= "`" for sign in fields.get("N", ""))
        try:
            hashes = base64.b64decode(fields.get("H", ""))
        except ValueError:
            continue
        if parts and not len(hashes) % parts and len(hashes) // parts in _HASH_LENGTHS:
            width = len(hashes) // parts
            yield from (f"{column[1]}/{hashes[at : at + width].hex()}.js" for at in range(0, len(hashes), width))
            yield from rustdoc_index.tree_urls(fields.get("I", "")) if width == rustdoc_index.WIDTH else ()


def _is_lean(reference: str) -> bool:
    return reference.endswith(".lean.js") and _LEAN.fullmatch(reference, reference.rfind("/") + 1) is not None


def _hashes(text: str) -> Iterator[tuple[str, str]]:
    table = _TABLE.search(text)
    position = table.end() if table else len(text)
    for _ in range(MOST_PAGES):
        entry = _HASH.match(text, position)
        if entry is None:
            return
        yield entry[1], entry[2]
        position = entry.end()


def _page_names(reference: str, root: str) -> Iterator[str]:
    """Yield the possible names in the table of the page that *reference*, below *root*, may lead to."""
    address = _PAGE.match(reference)
    path = address[1] if address else ""
    if not path.startswith(root):
        return
    name = path.removeprefix(root).removesuffix(".html")
    if name.endswith("/") or not name:
        name += "index"
    name = _UNSAFE.sub("_", unquote(name).replace("/", "_")).lstrip("_")
    yield f"{name}.md"
    yield f"{name}_index.md"
