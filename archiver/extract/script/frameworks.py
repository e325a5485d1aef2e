"""Data that the scripts of a framework load when a person clicks a link to a page. Pure.

The page itself says enough to put the address of its data together: SvelteKit, Gatsby, Next.js, React Router and
Remix, Nuxt, DocC. A page in any other form names nothing. Linear on any text.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from urllib.parse import unquote, urlencode

from archiver import url
from archiver.config.expressions import compiled
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
_NODES = re.compile(r"\bdata\s{0,4}[:=]\s{0,4}\[(?=null|\{type:)")
_SIGN = compiled(r"\"(?:[^\"\\]|\\.)*+\"|[\[\](){},]", re.DOTALL)
_MOST_SIGNS = 1_000_000
_WITH_DATA = '{type:"data"'
_OF_URL = re.compile(r"\buses:\{[^{}]{0,500}\burl\"?:1[^{}]{0,500}\}\}\Z")  # loaded again for each page
_SLASHED, _LACKING = "x-sveltekit-trailing-slash=1&", "x-sveltekit-invalidated="
DOCC = "var baseUrl = "
_DOCC = compiled(rf"<script>{DOCC}\"(/[^\"\\\s<>]{{0,300}})\"")
_OF_DOCC = re.compile(r"(?:documentation|tutorials)(?:/.{0,1000})?\Z")
DOCC_DATA = re.compile(r"(.*?/)(?:data/(?:documentation|tutorials)(?:/.*)?|index/index)\.json\Z")
DOCC_SIGN = re.compile(rb"\"(?:interfaceLanguages|includedArchiveIdentifiers|schemaVersion)\"|\"doc:(?:\\?/){2}")
_DOCC_PATH = re.compile(rb"\"(?:url|path)\"\s{0,4}:\s{0,4}\"\\?/([^\"]{1,1000})\"")
_LOCALE = re.compile(r"\"locale\"\s*+:\s*+\"([\w-]{1,20})\"")


def of_page(text: str, references: Mapping[tuple[str, Hop], str], address: str) -> Iterator[str]:
    """Yield what scripts with this *text* load in the page at *address*, which has these *references*."""
    if "kit.start(" in text and 'type:"data"' in text:
        yield from _sveltekit(text, address)
    if page := _PAGE_PATH.search(text):
        yield from _gatsby(text, page[1], url.path(address))
    if "buildId" in text and (build := _BUILD.search(text)) and _HAS_DATA.search(text):
        yield _next_data(text, build[1], references, address)
    if "streamController" in text and _HAS_LOADED.search(text):
        yield _route_data(text, address)


def _sveltekit(text: str, address: str) -> Iterator[str]:
    """Yield the data of the page at *address*, which SvelteKit loads on links to it.

    A page has a node for each layout around it, outermost first, and one for itself. The query marks the nodes whose
    data the browser lacks: with a link from elsewhere all but the outermost, which every page shares, and with a link
    from a neighbour only the last.
    """
    nodes = _server_nodes(text)
    loaded = [node.startswith(_WITH_DATA) for node in nodes]
    path, _, query = address.partition("?")
    path = url.path(path)
    file = f"{path}__data.json" if path.endswith(".html") else f"{path.removesuffix('/')}/__data.json"
    if True not in loaded[1:]:
        yield file
        return
    begin = f"{file}?{query}{'&' if query else ''}{_SLASHED if path.endswith('/') else ''}{_LACKING}"
    last = len(loaded) - 1 - loaded[::-1].index(True)
    of_url = [has and _OF_URL.search(node) is not None for has, node in zip(loaded, nodes, strict=True)]
    elsewhere = (of_url[0], *loaded[1:])
    neighbour = (place == last or again for place, again in enumerate(of_url))
    for lacking in dict.fromkeys((elsewhere, tuple(neighbour))):
        yield begin + "".join("1" if each else "0" for each in lacking)


def _server_nodes(text: str) -> list[str]:
    """Return the code of each node in SvelteKit's list of data."""
    begins = _NODES.search(text)
    if begins is None:
        return []
    nodes, start, depth = list[str](), begins.end(), 0
    for sign in islice(_SIGN.finditer(text, start), _MOST_SIGNS):
        depth += 1 if sign[0] in {"[", "{", "("} else -1 if sign[0] in {"]", "}", ")"} else 0
        if depth < 0 or (not depth and sign[0] == ","):
            nodes.append(text[start : sign.start()])
            start = sign.end()
        if depth < 0:
            return nodes
    return []


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


_ROUTER = re.compile(r"\.pathname\s?\+=\s?[\"']index\.txt[\"']")
_LINK = re.compile(
    r"\[\"\$\",\"\$L[0-9a-f]{1,4}\",(?:null|\"[^\"\\]{0,200}\"),\{[^{}\[\]]{0,500}?\"href\":\"(/(?!/)[^\"\\?#]{0,500})[\"?#]"
)
_OWN = re.compile(r"\"c\":\[((?:\"[^\"\\]{0,300}\",?){1,50})\]")
_MOST_LINKS = 2000
TREE = "/__next._tree.txt"
_IN_PARTS = '"t":{"t":{"s":'  # in payloads from Next.js 16 on
_LAYOUTS = re.compile(r"^([0-9a-f]{1,4}):(\[\[[^\n]{0,2000})$", re.MULTILINE)
_FIRST_LAYOUTS = re.compile(r"\"s\":\"\",[^{}]{0,100}?\"c\":\"\$Q([0-9a-f]{1,4})\"")
_REFERENCE = re.compile(r"\$Q([0-9a-f]{1,4})")  # to another row
_MOST_LAYOUTS = 50
_SAFE = re.compile(r"[A-Za-z0-9_@-]+", re.ASCII)
_TRIED = 2  # links tried in both forms


def own_payload(script: str, page: str) -> str:
    """Return what links load in place of *page*, which runs the *script*; "" if this is no Next.js site of files.

    Only the router's script shows that a site is of this kind (app router, `output: "export"`).
    """
    if not page or "index.txt" not in script or not _ROUTER.search(script):
        return ""
    path = url.path(page)
    return "" if path.endswith(".html") else _payload(path)


def part_payload(tree: str) -> Iterator[str]:
    """Yield the payloads of the pages in this *tree* of layouts: Next.js 16 loads them apart from those of the layouts.

    Each row holds the layouts inside another one: that of the page, and those in slots beside it (`@modal`).
    """
    rows = {int(row[1], 16): row[2] for row in islice(_LAYOUTS.finditer(tree), _MOST_LAYOUTS)}
    first = _FIRST_LAYOUTS.search(tree)
    waiting = [("__next", int(first[1], 16))] if first else []
    while waiting:
        outer, number = waiting.pop()
        for slot, layout in _layouts(rows.pop(number, "")):
            name = f"{outer}.{slot}{_part(layout.get('s'))}"
            inner = layout.get("c")
            if inner is None:
                yield f"{name}.txt"
            elif isinstance(inner, str) and (reference := _REFERENCE.fullmatch(inner)):
                waiting.append((name, int(reference[1], 16)))


def _layouts(row: str) -> list[tuple[str, dict[str, object]]]:
    """Return each layout in the *row* of a tree, and what stands before its name."""
    try:
        found = json.loads(row) if row else []
    except (ValueError, RecursionError):
        return []
    return [
        ("" if pair[0] == "children" else f"@{_safe(pair[0])}.", pair[1])
        for pair in found
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], dict)
    ]


def _part(segment: object) -> str:
    """Return the name of the *segment* of a path in a file name: a text, or the name and type of a parameter."""
    if isinstance(segment, dict):
        return f"${segment.get('t')}${_safe(str(segment.get('n')))}"
    return _safe(str(segment))


def _safe(name: str) -> str:
    """Return the *name* of a layout as it is in a file name."""
    if _SAFE.fullmatch(name):
        return name
    return f"!{base64.urlsafe_b64encode(name.encode('utf-8', 'replace')).decode().rstrip('=')}"


def payloads(text: str, address: str) -> Iterator[str]:
    """Yield the payloads of the pages to which the payload *text* at *address* links.

    The first one does not show whether addresses end with a slash, so a few of its links are tried in both forms.
    """
    path, own = url.path(address), _OWN.search(text)
    if "/__next." in path:  # only a part of a page, which does not state its path
        return
    folder = path.endswith("/index.txt")
    page = path[: -len("index.txt")] if folder else path[: -len(".txt")]
    shown = "/".join(part.strip('"') for part in own[1].split(",")) if own else page
    base = page.removesuffix(shown if shown.startswith("/") else f"/{shown}")
    first = folder and page.rstrip("/") == base.rstrip("/")
    if _IN_PARTS in text:
        yield f"{page.rstrip('/')}{TREE}"
    links = dict.fromkeys(found[1] for found in islice(_LINK.finditer(text), _MOST_LINKS))
    pages = [link for link in links if "." not in link.rpartition("/")[2]]
    for number, link in enumerate(pages):
        plain = base + link.rstrip("/")
        if link == "/" or (folder and not first):
            yield _payload(f"{plain}/")
        elif not first:
            yield _payload(plain)
        elif number <= _TRIED:
            yield from (_payload(plain), _payload(f"{plain}/"))


def _payload(path: str) -> str:
    return f"{path}index.txt" if path.endswith("/") else f"{path}.txt"


def docc_page(source: str, address: str) -> Iterator[str]:
    """Yield the data of the DocC page *source* at *address*: its text, which the page lacks, and the list of pages."""
    if (found := _DOCC.search(source)) is None:
        return
    base = found[1].rstrip("/") + "/"
    path = url.path(address)
    below = path.removeprefix(base).rstrip("/") if path.startswith(base) else ""
    if _OF_DOCC.match(below):
        yield f"{base}data/{below}.json"
    yield f"{base}index/index.json"


def docc_names(body: bytes, root: str) -> Iterator[str]:
    """Yield the pages, images and files that data of DocC names, below the *root* of its site."""
    for found in _DOCC_PATH.finditer(body):
        name = found[1].decode("utf-8", "replace").replace("\\/", "/")
        if "\\" not in name and not name.startswith("/"):
            yield root + name
