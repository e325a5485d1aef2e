"""Search indexes, menus and data of pages that site generators make for their own scripts.

Pages hold such data, and so do scripts. A complete URL is certain. A URL built from the page's address, or from
VitePress' table of lower-case names, is a guess.

Scripts of generated documentation are alike on all sites of one generator, so their meaning is known and not guessed.
Javadoc, MkDocs, Haddock and GitBook load their search from a folder that the script's own URL gives. A script in any
other form names nothing. Linear on any text.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, unquote, urljoin

from archiver import url
from archiver.config.expressions import compiled
from archiver.extract.script import (
    applications,
    docsify,
    doxygen,
    folders,
    frameworks,
    routes,
    rustdoc,
    versions,
    viewers,
)
from archiver.extract.script.doxygen import MANUAL, MENU
from archiver.model import Hop

LOADED = "script/loader"
_OF_PAGES = "data-root-path"  # of rustdoc
ATTRIBUTES = frozenset((_OF_PAGES, applications.ROOT))
HASHES = "__VP_HASH_MAP__"
_MARKS = (HASHES, doxygen.RESULTS_SHOWN, *frameworks.MARKS)
MOST_PAGES = 20_000  # pages of one table
_TABLE = compiled(rf"{HASHES}\s*+=\s*+(?:JSON\.parse\(\s*+[\"'`])?+\s*+\{{")
_HASH = re.compile(r"\s*+\\?\"([^\"\\/]{1,500}\.md)\\?\"\s*+:\s*+\\?\"([\w-]{1,40})\\?\"\s*+,?+")
_BASE = re.compile(r"__VP_SITE_DATA__\s*+=[^{]{0,40}\{[^{}]{0,2000}?\"base\\?\"\s*+:\s*+\\?\"(/[^\"\\]{0,300})")
_LEAN = re.compile(r"[^/]{1,500}\.md\.[\w-]{1,40}\.lean\.js")
_IN_VITEPRESS = re.compile(r"\.md\.[\w-]{1,40}(?:\.lean)?\.js\Z")
_SHOWN_PAGE = re.compile(rb"\"relativePath\\?\"\s*+:\s*+\\?\"([^\"\\:]{1,500})\.md\\?\"")
_PAGE = re.compile(r"(?:https?://[^/?#]++)?(/[^?#]*+)")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>*#\"{}|^\[\]`;?:&=+$,]")  # characters that Vite's file names do not contain

_WORKER = re.compile(r"\"search\"\s*+:\s*+\"([^\"\\\s<>]{1,500}\.js)\"")
_SEARCHED = re.compile(
    r"\"[\w-]{0,40}?(?:path|search|index|url)[\w-]{0,40}\"\s*+:\s*+\"(/(?!/)[^\"\\\s<>{}]{1,300}+)(?<=\.xml|\.txt)\"",
    re.IGNORECASE,
)
_BUNDLE_PATH = re.compile(
    r"bundlePath\s*+:\s*+(?:[\"'`]([^\"'`\\\s]{0,200})[\"'`]\.replace\(/\\/\$/,\s*+[\"'`]{2}\)\s*+\+\s*+)?"
    r"[\"'`]([^\"'`\\\s$]{0,200}/)[\"'`]"
)
_SEARCH_INDEX = re.compile(r"path_to_searchindex_js\s*+=\s*+[\"']([^\"'\\\s<>]{1,500})[\"']")


def by_attributes(attributes: Mapping[str, str]) -> Iterator[tuple[str, Hop]]:
    """Yield what an element with some of `ATTRIBUTES` names for scripts."""
    if _OF_PAGES in attributes:
        yield from rustdoc.page_files(attributes)
    if applications.ROOT in attributes:
        yield from ((name, Hop.SPECULATIVE) for name in applications.page_files(attributes))


def inline(text: str) -> Iterator[tuple[str, Hop]]:
    """Yield what the *text* of a script in a page names for search scripts."""
    if "path_to_searchindex_js" in text:
        yield from ((found[1], Hop.REQUISITE) for found in _SEARCH_INDEX.finditer(text))
    yield from ((name, Hop.REQUISITE) for name in versions.list_of_theme(text))
    if "new SearchBox(" in text and (box := doxygen.SEARCH_BOX.search(text)):  # of Doxygen up to 1.9.4
        yield from ((f"{box[1]}/{name}.html", Hop.SPECULATIVE) for name in ("all_0", "nomatches"))
    readers = (applications.of_page, pagefind, docsify.settings, frameworks.nuxt, viewers.of_script)
    named = itertools.chain.from_iterable(reader(text) for reader in readers)
    yield from ((name, Hop.SPECULATIVE) for name in named)


def needs_whole_page(name: str, text: str) -> bool:
    """True if a script with this id *name* and *text* can be read only with all references of its page."""
    return name == "__NEXT_DATA__" or any(mark in text for mark in _MARKS)


def pagefind(text: str) -> Iterator[str]:
    """Yield the search program in the folder that a script gives to Pagefind."""
    if "bundlePath" in text:
        yield from (
            f"{(found[1] or '').removesuffix('/')}{found[2]}pagefind.js" for found in _BUNDLE_PATH.finditer(text)
        )


def configured(name: str, text: str) -> Iterator[tuple[str, Hop]]:
    """Yield what the JSON *text* in a page, in an element with id *name*, says about the search.

    Material and Zensical name the search worker. Others, like Hexo's themes, name the text that is searched.
    """
    if name == "__config" and (worker := _WORKER.search(text)):
        yield worker[1], Hop.REQUISITE
        yield from ((name, Hop.REQUISITE) for name in versions.list_of_page(text))
    yield from ((found[1], Hop.SPECULATIVE) for found in _SEARCHED.finditer(text))


def of_page(text: str, references: Mapping[tuple[str, Hop], str], address: str) -> Iterator[str]:
    """Yield what scripts with this *text* load in the page at *address*, which has these *references*."""
    if HASHES in text:
        yield from vitepress(text, references)
    yield from frameworks.of_page(text, references, address)
    if doxygen.RESULTS_SHOWN in text:
        yield from doxygen.next_results(references, address)


def whole_page(lean: str) -> str:
    """Return the full script of the VitePress page whose lean script is *lean*; "" for other URLs."""
    return f"{lean[:-8]}.js" if _is_lean(lean) else ""


def vitepress(text: str, references: Iterable[tuple[str, Hop]]) -> Iterator[str]:
    """Yield the scripts of the pages in the table in *text*, in a page with these *references*.

    The table is in lower case, the files are not; links of the page show the real names. If one of them has capitals,
    or none is known, pages without a link are left out, as their names may have capitals too.
    """
    hashes = dict(_hashes(text))
    if not hashes:
        return
    base = _BASE.search(text)
    root = base[1].rstrip("/") + "/" if base else "/"
    folder, real_names = f"{root}assets/", dict[str, str]()
    for reference, hop in references:
        if hop is Hop.LINK:
            real_names |= {name.lower(): name for name in _page_names(reference, root)}
        elif _is_lean(reference):
            folder, _, script = reference.rpartition("/")
            folder += "/"
            name = script.rsplit(".", 3)[0]  # of the page itself
            real_names[name.lower()] = name
    written = {key: real_names.get(key, "") for key in hashes}
    plain = any(written.values()) and all(name == key for key, name in written.items() if name)
    for key, name in written.items():
        if name or plain:
            yield f"{folder}{name or key}.{hashes[key]}.js"


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


MOST_PARTS = 10_000  # of one model, of one index
SCRIPT_START = 65_536  # characters at the start of a script that show its kind; longer bundles are none of these
BEGINNING = 64  # bytes that identify search results and indexes

_INDEX_OF_JAVADOC = re.compile(r"(?:module|package|type|member|tag)SearchIndex\s?=\s?\[")
_OF_RUSTDOC = re.compile(r"\(function\(\) \{\s*+var (?:implementors|type_impls)\b")
_IN_RUSTDOC = re.compile(r"(.*/)(?:implementors|(?:trait|type)\.impl)/[^?#]+\.js\Z")
_OF_JAVADOC = re.compile(
    r"(?:createElem\(doc, tag, |pathtoroot \+ )(['\"])((?:[\w-]++/){0,8}[\w-]++(?:\.[\w-]++)*?\.(?:js|zip))\1"
)
_OTHER_END = re.compile(  # src.substr(0, src.length-9) + 'plus.png'
    r"\bsrc\.length ?- ?\d{1,2}\)(?: ?\+ ?['\"]|\})([\w-]{1,40}\.(?:png|gif|svg))['\"`]"
)
_OF_GITBOOK = re.compile(r"gitbook\.state\.(?:basePath|root)\s*+\+\s*+[\"'`]/?+([\w-]++\.json)[\"'`]")
_IN_GITBOOK = re.compile(r"(.*/)gitbook/(?:(?:@[^/]++/)?[^/]++/)?[^/]+\.js\Z")
_OF_DOCUSAURUS = re.compile(r"[\"']search-index\{dir\}((?:-[\w-]{1,40})?\.json(?:\?_=[\w-]{1,40})?)[\"']")
_OF_MKDOCS = re.compile(r"joinUrl\(base_url, \"(search/[\w-]++\.js)\"\)")

_INDEX_OF_SPHINX = "Search.setIndex("
_PAGES_OF_SPHINX = re.compile(r"[{,]\s{0,4}\"?docnames\"?\s{0,4}:\s{0,4}(?=\[)")
_SIDEBAR_OF_EXDOC = compiled(r"sidebarNodes\s{0,4}=\s{0,4}(?=\{)")
_OF_MDBOOK = re.compile(r"path_to_root \+ '(searchindex[\w.-]{0,80}\.js(?:on)?)'")
_IN_VUEPRESS = re.compile(r"/assets/[^/]{1,200}\.html-[\w-]{8}\.js\Z")
_OF_VUEPRESS = re.compile(r"\[[\"'`](/[^\"'`\\\s$]{0,500})[\"'`],\{\"?loader\"?:")
_BASE_PATH = r"[\"'`](/[\w./~-]{1,200})[\"'`]"
_ROUTER_BASE = re.compile(
    rf"\bbase(?:name|path)\s?:\s?{_BASE_PATH}|\bhistory\s?:\s?[\w$.]{{1,40}}\(\s?{_BASE_PATH}\s?\)"
)
_MATERIAL = re.compile(r"/assets/javascripts/bundle\.[\w-]{1,40}\.min\.js\Z")
_OF_MATERIAL = ("search/search_index.json", "search.json")
_MODEL_PART = re.compile(r"\"ur[il]\"\s{0,4}:\s{0,4}\"(?!data:)([^\"\\<>]{1,500})\"")
_OF_RSPRESS = re.compile(r"\"([\w.-]{0,40})###([\w-]{0,20})\"\s?:\s?\"([0-9a-f]{6,20})\"")  # version, language, hash
_PAGEFIND = re.compile(r"/pagefind-(?:modular-|component-)?ui\.js(?:\?[^/]*)?\Z")

_IN_OBSERVABLE = re.compile(r"/_(?:observablehq|npm)/[^?#]{0,500}[/.][0-9a-f]{8}\.js\Z")
_OF_OBSERVABLE = re.compile(r"(?:\.\./)+_npm/.{1,500}\.js|(?:\.\./)?\./stdlib/[\w-]{1,40}\.js")
_BUILT = re.compile(r"[/.][0-9a-f]{8}\.js\Z")


def is_left_out(reference: str, address: str) -> bool:
    """True if the *reference* in the script at *address* is a library of Observable Framework that the site has not.

    Its programs name all libraries. Those that some page uses are built and have a hash in their names.
    """
    if not reference.startswith(".") or not _OF_OBSERVABLE.fullmatch(reference) or _BUILT.search(reference):
        return False
    return _IN_OBSERVABLE.search(address) is not None


def base_of_routes(text: str, address: str) -> str:
    """Return what stands before the path of a page in the script *text* at *address*; "" if that is the host.

    Scripts of VuePress are in one folder below the base of the site, which their paths leave out. The routers of React
    and Vue state the base.
    """
    if _IN_VUEPRESS.search(address) or _OF_VUEPRESS.search(text):
        return ".."
    stated = {found[1] or found[2] or found[3] for found in _ROUTER_BASE.finditer(text)}
    return stated.pop().rstrip("/") if len(stated) == 1 else ""


def routed(text: str, address: str) -> Iterator[str]:
    """Yield the pages of the client-side router in the script *text* at *address*; "" if it is part of its page."""
    found = list(routes.pages(text))
    base = base_of_routes(text, address) if found else ""
    for path in found:
        own = path.startswith(".")  # below the folder of the script
        yield path if own and address else base + path.removeprefix(".")


def script_urls(text: str, address: str, page: str = "") -> Iterator[tuple[str, Hop, str]]:
    """Yield each URL that the script *text* at *address* names, its hop and context. *page*: the one that loads it."""
    head = text[:SCRIPT_START]
    yield from doxygen.script_urls(text, head, address)
    yield from ((name, Hop.SPECULATIVE, LOADED) for name in folders.modules(text))
    yield from ((name, Hop.REQUISITE, LOADED) for name in versions.list_of_script(text))
    yield from ((name, Hop.LINK, MENU) for name in versions.listed(text))
    yield from _searches(head)
    yield from _gitbook(head, address)
    yield from _books(text, head, address)
    yield from ((name, Hop.REQUISITE, LOADED) for name in _of_model(text, head, address))
    yield from ((name, Hop.SPECULATIVE, LOADED) for name in _rspress(text, url.path(address)))
    yield from (
        (name, Hop.SPECULATIVE, LOADED)
        for name in itertools.chain(_of_sphinx(text, page), _of_exdoc(text, address), applications.of_script(text))
    )


def own_base(body: bytes, address: str) -> str:
    """Return the base of URLs in the script *body* at *address*; "" if that is the page that runs it."""
    if root := doxygen.root(body[:SCRIPT_START].decode("utf-8", "replace"), address):
        return urljoin(address, root)
    head = body[:BEGINNING].decode("utf-8", "replace")
    if _INDEX_OF_JAVADOC.match(head) or folders.is_worker(body):
        return address
    if _OF_RUSTDOC.match(head) and (added := _IN_RUSTDOC.match(address)):
        return added[1]
    shown = _SHOWN_PAGE.search(body) if _IN_VITEPRESS.search(address) else None
    return urljoin(address, f"../{shown[1].decode('utf-8', 'replace')}") if shown else ""


def _searches(text: str) -> Iterator[tuple[str, Hop, str]]:
    """Yield the search indexes of Javadoc, MkDocs, Haddock and Docusaurus, and pictures of Sphinx and Doxygen."""
    if "search-index{dir}" in text:  # of a plugin: the script is two folders below the root
        yield from (
            (f"../../search-index{found[1]}", Hop.SPECULATIVE, MANUAL) for found in _OF_DOCUSAURUS.finditer(text)
        )
    if "pathtoroot" in text:
        for loaded in _OF_JAVADOC.finditer(text):
            yield loaded[2], Hop.SPECULATIVE, MANUAL
    if "joinUrl(base_url" in text:
        for loaded in _OF_MKDOCS.finditer(text):
            yield f"../{loaded[1]}", Hop.SPECULATIVE, MANUAL
    if 'baseUrl+"/doc-index.json"' in text:
        yield "doc-index.json", Hop.SPECULATIVE, MANUAL
    yield from ((picture[1], Hop.SPECULATIVE, MANUAL) for picture in _OTHER_END.finditer(text))
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
            yield loaded[1], Hop.REQUISITE, LOADED
    if head.startswith("rr_("):
        yield from ((name, Hop.REQUISITE, LOADED) for name in rustdoc.stringdex(text))
    if head.startswith("rn_("):
        yield from ((name, Hop.REQUISITE, LOADED) for name in rustdoc.branch_urls(text, address))
    if _MATERIAL.search(address):
        found = next((name for name in _OF_MATERIAL if f'new URL("{name}"' in text), "")
        yield from ((f"../../{name}", Hop.SPECULATIVE, LOADED) for name in ("sitemap.xml", found) if name)
    yield from ((name, Hop.SPECULATIVE, LOADED) for name in pagefind(text))
    if ",{loader:" in text or ',{"loader":' in text:  # VuePress: all pages, in a script one folder below the base
        yield from ((f"..{page[1]}", Hop.SPECULATIVE, LOADED) for page in _OF_VUEPRESS.finditer(text))
    if _PAGEFIND.search(address):
        yield "pagefind.js", Hop.REQUISITE, LOADED
    if "pagefind-entry.json" in head:
        yield "pagefind-entry.json", Hop.REQUISITE, LOADED
        if "pagefind-worker.js" in head:
            yield "pagefind-worker.js", Hop.REQUISITE, LOADED


def _of_model(text: str, head: str, address: str) -> Iterator[str]:
    """Yield the parts of a 3D model in glTF, and those of a set of 3D Tiles."""
    if address.endswith(".gltf") or '"geometricError"' in head:
        yield from (found[1] for found in itertools.islice(_MODEL_PART.finditer(text), MOST_PARTS))


def _rspress(text: str, path: str) -> Iterator[str]:
    """Yield the search index of each version and language in Rspress' table of hashes, in the folder of all files."""
    root, static, _ = path.rpartition("/static/")
    table = _OF_RSPRESS.finditer(text) if static and "###" in text else ()
    for version, language, hashed in (found.groups() for found in itertools.islice(table, MOST_PARTS)):
        named = (f".{version.replace('.', '_', 1)}" if version else "") + (f".{language}" if language else "")
        yield f"{root}/static/search_index{named}.{hashed}.json"


def _of_sphinx(text: str, page: str) -> Iterator[str]:
    """Yield the pages in the search index of Sphinx, which the *page* loads. Some of them are in no other list.

    Names are those of the sources. The builder `dirhtml` makes a folder of each page, also of that of the search.
    """
    found = _PAGES_OF_SPHINX.search(text) if text.startswith(_INDEX_OF_SPHINX) else None
    names = applications.json_at(text, found.end()) if found else None
    are_folders = page.partition("?")[0].endswith("/search/")
    for name in _file_names(names):
        folder = name[: -len("index")] if name == "index" or name.endswith("/index") else f"{name}/"
        yield f"./{folder}" if are_folders else f"./{name}.html"


def _of_exdoc(text: str, address: str) -> Iterator[str]:
    """Yield the pages that ExDoc's script at *address* lists in the sidebar of each page."""
    found = _SIDEBAR_OF_EXDOC.match(text)
    nodes = applications.json_at(text, found.end()) if found else None
    groups = [group for group in nodes.values() if isinstance(group, list)] if isinstance(nodes, dict) else []
    entries = (entry for group in groups for entry in group if isinstance(entry, dict) and "url" not in entry)
    root = "../" if "/dist/" in address else "./"
    yield from (f"{root}{name}.html" for name in _file_names([entry.get("id") for entry in entries]))


def _file_names(names: object) -> Iterator[str]:
    """Yield the strings in the list *names* as they are written in URLs."""
    listed = [name for name in names if isinstance(name, str) and name] if isinstance(names, list) else []
    yield from (quote(name, errors="replace") for name in listed[:MOST_PAGES])
