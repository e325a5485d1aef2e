"""Folders of the names in a script: service workers, modules, and names that are joined to a variable.

A worker resolves URLs against its own script, not against a page. Workbox writes a list of all files that it keeps into
the worker, `[{url:"a.html",revision:"f0"}]`; a browser requests each of them. It loads its own code as a module,
`define(["./workbox-f0"], …)`, whose name lacks the extension, as names of AMD modules do. The list is exact, but still
only a script's word, so all are guesses.

`base + "a.js"` and `${base}a.js` name a file if the script states what `base` is: a string, its own folder or that of
the page. If it does not, the name is tried in both folders, but only where a URL is expected. Of
`root + "/img/a.png"`, the first folder may be in the script's own URL, `/t/img/x/b.js`, which shows the root. Otherwise
it is tried beside the script's folder and below the host.

`picture.src = "images/" + names[i]` puts a folder before each picture in a list. The folder is in an assignment to a
source, or at the open end of markup or of a style: `h += "<img src='logos/"`. Linear on any text.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain, islice, product

from archiver import url
from archiver.config.expressions import compiled

MOST = 20_000  # files of one list, modules of one script

_CALLED = (b"skipWaiting(", b"precacheAndRoute(", b"addToCacheList(", b"clients.claim(")  # only in service workers
_LISTENS = re.compile(rb"addEventListener\(\s{0,4}[\"'`](?:install|fetch)[\"'`]")
_OF_PAGES = (b"document", b"window", b"parent", b"opener")
_ANSWERS = re.compile(  # messages
    rb"(?<![\w$.])(?:self\s{0,4}\.\s{0,4})?(?:onmessage|onconnect)\s{0,4}=(?!=)"
    rb"|(?<![\w$.])(?:self\.)?addEventListener\(\s{0,4}[\"'`](?:message|connect)[\"'`]"
)
_REVISION = r"[\"']?revision[\"']?\s*+:\s*+(?:\"[^\"\\\n]{0,100}+\"|'[^'\\\n]{0,100}+'|`[^`\\$\n]{0,100}+`|null)"
_KEPT = compiled(
    rf"\{{\s*+(?:{_REVISION}\s*+,\s*+)?+[\"']?url[\"']?\s*+:\s*+[\"'`]([^\"'`\\\s<>$]{{1,500}}+)[\"'`]\s*+"
    rf"(?:,\s*+{_REVISION}\s*+)?+[,}}]"
)
_PARTS = re.compile(r"\bmodulePathPrefix[\"']?\s{0,4}:\s{0,4}[\"']([\w./@:-]{1,300}?)/?[\"']")
_USED = re.compile(r"\bworkbox\.([a-z][A-Za-z]{2,30})\b")
_CAPITAL = re.compile(r"(?=[A-Z])")
_DEFINED = compiled(r"(?<![\w$.])define\(\[((?:\s*+[\"'`][^\"'`\\\s]{1,200}+[\"'`]\s*+,?+)++)\]")
_MODULE = re.compile(r"[\"'`](\.{1,2}/[\w./@-]{1,200})[\"'`]", re.ASCII)

_VARIABLE = r"(?:[A-Za-z_$][\w$]{0,40}\.){0,3}[A-Za-z_$][\w$]{0,40}"
_NAME_BELOW = r"(?:[\w~@.-]++/)*+[\w~@-][\w~@.-]*+"
_FRAGMENT = r"(?:#[\w.-]{0,100})?"
_JOINED = compiled(
    rf"\+\s{{0,4}}([\"'`])((?:/|\./|(?:\.\./)++)?+{_NAME_BELOW}){_FRAGMENT}\1(?!\s{{0,4}}[+.\[(?])", re.ASCII
)
_URL_BEFORE = (
    r"(?:\.(?:src|href)\s{0,4}=|[\"']?\b(?:url|src|href)[\"']?\s{0,4}:|\.open\(\s{0,4}[\"'`]GET[\"'`]\s{0,4},"
    r"|\bsetAttribute\(\s{0,4}[\"'`](?:xlink:)?(?:href|src)[\"'`]\s{0,4},"
    r"|\b(?:fetch|getScript|getJSON|Worker|Audio|Request|loadScript|load_script|loadCSS|loadStyle)\s{0,4}\()"
)
_FILLED = compiled(  # the same in a template: `${base}a.js`, or at the beginning of an attribute there
    rf"(?:({_URL_BEFORE}\s{{0,4}}`|src\s{{0,4}}=\s{{0,4}}[\"']?|url\([\"']?|[\"'`]src[\"'`]\s{{0,4}},\s{{0,4}}`)|`)"
    rf"\$\{{({_VARIABLE})\}}((?:/|\./)?+{_NAME_BELOW}){_FRAGMENT}(?=[\"'`)\s>])",
    re.ASCII,
)
_CONCATENATED = compiled(  # the same in older scripts: "".concat(base, "/a.js")
    rf"({_URL_BEFORE}\s{{0,4}})?(?:\"\"|'')\.concat\(\s{{0,4}}({_VARIABLE})\s{{0,4}},\s{{0,4}}[\"']((?:/|\./)?+{_NAME_BELOW})"
    rf"{_FRAGMENT}[\"']\s{{0,4}}\)",
    re.ASCII,
)
_BEFORE = re.compile(
    rf"(?:(?P<url>{_URL_BEFORE}|\bimportScripts\s{{0,4}}\()\s{{0,4}})?(?<![\w$.])(?P<name>{_VARIABLE})\s{{0,4}}\Z"
)
_OWN_FOLDER = re.compile(r"currentScript|[\"'`]script[\"'`\[]|import\.meta\.url")
_FOLDER_OF_PAGE = re.compile(
    r"location\.(?:pathname|href)\b.{0,80}?(?:split|slice|replace|lastIndexOf|substr)", re.DOTALL
)
_BEGINS_A_NAME = re.compile(r"\.{1,2}/|[A-Za-z0-9]")  # others, "-min.js", only end one
_ON_DISK = re.compile(r"dirname\Z")
_OF_HOST = re.compile(r"\blocation\.(?:origin|host)\Z")
_LITERAL = re.compile(r"(?:\"([^\"\\]{0,200})\"|'([^'\\]{0,200})'|`([^`\\$]{0,200})`)\s*\Z")
_NEAR = 80  # characters before a name that show its use
_GAP = 8  # characters in which a plus sign before the name shows that more stands in front of it
MOST_NAMES = 50  # variables of one script that are looked up


def is_worker(body: bytes) -> bool:
    """True if the script *body* can run only as a worker: a service worker, or one that knows no page."""
    if any(called in body for called in _CALLED) or _LISTENS.search(body) is not None:
        return True
    if b"importScripts(" not in body and (b"postMessage" not in body or _ANSWERS.search(body) is None):
        return False
    return not any(name in body for name in _OF_PAGES)


def kept_files(text: str) -> Iterator[str]:
    """Yield the files in the list that Workbox wrote into the worker *text*, relative to the worker.

    Up to version 4, the worker loads each part of Workbox that it uses from a folder.
    """
    if "modulePathPrefix" in text and (folder := _PARTS.search(text)):
        used = {"core", *_USED.findall(text)} - {"setConfig", "loadModule", "googleAnalytics"}
        yield from (f"{folder[1]}/workbox-{_CAPITAL.sub('-', part).lower()}.prod.js" for part in sorted(used))
    if "precache" in text and ("precacheAndRoute" in text or "addToCacheList" in text):
        yield from (found[1] for found in islice(_KEPT.finditer(text), MOST))


def modules(text: str) -> Iterator[str]:
    """Yield the scripts of the modules that the module *text* names by their place, relative to itself.

    A script that also works without a loader of modules (`define.amd`) names what its package has, not the site.
    """
    if "define([" not in text or "define.amd" in text:
        return
    for listed in islice(_DEFINED.finditer(text), MOST):
        yield from (f"{name[1].removesuffix('.js')}.js" for name in _MODULE.finditer(listed[1]))


def joined(
    text: str, address: str, *, is_file: Callable[[str], bool], page: bool, worker: bool
) -> Iterator[tuple[str, bool]]:
    """Yield each file that the script *text* at *address* joins to a variable, and if it is relative to the script.

    *page*: the page that runs the script is known. *worker*: no page runs it. A variable of one letter has many
    meanings in one script, except in a small worker.
    """
    found = _joined_names(text, is_file)
    stated = _stated(text, list(dict.fromkeys(variable for variable, _ in found))[:MOST_NAMES])
    for (variable, name), wanted in found.items():
        if _ON_DISK.search(variable):
            continue
        value = stated.get(variable, "") if worker or len(variable) > 1 else ""
        if literal := _LITERAL.match(value):
            whole = (literal[1] or literal[2] or literal[3] or "") + name
            if is_file(whole):
                yield whole, False
        elif _OWN_FOLDER.search(value):
            yield name.lstrip("/"), True
        elif _FOLDER_OF_PAGE.search(value):
            yield name.lstrip("/"), False
        elif wanted and "." not in variable and _BEGINS_A_NAME.match(name):
            yield name, True
            if page:
                yield name, False
        elif wanted and name.startswith("/") and "/" in name[1:]:
            yield from _below_roots(name, "" if _OF_HOST.search(variable) else address)


def _below_roots(name: str, address: str) -> Iterator[tuple[str, bool]]:
    """Yield where *name* may be, below the unknown folder that the script at *address* puts before it."""
    first = name[1:].partition("/")[0]
    folders = url.path(address).split("/")[:-1] if address else []
    if first in folders:
        above = len(folders) - 1 - folders[::-1].index(first)
        yield "/".join(folders[:above]) + name, False
        return
    if address:
        yield f"..{name}", True
    yield name, False


def _joined_names(text: str, is_file: Callable[[str], bool]) -> dict[tuple[str, str], bool]:
    """Return each variable and the name that is joined to it, and whether a URL is expected there."""
    found = dict[tuple[str, str], bool]()
    for written in islice(_JOINED.finditer(text), MOST):
        before = _BEFORE.search(text, max(0, written.start() - _NEAR), written.start())
        if (
            before
            and is_file(written[2].lstrip("/"))
            and text[max(0, before.start("name") - _GAP) : before.start("name")].rstrip()[-1:] != "+"
        ):
            key = before["name"], written[2]
            found[key] = found.get(key, False) or before["url"] is not None
    templates = _FILLED.finditer(text) if "${" in text else ()
    for filled in islice(chain(templates, _CONCATENATED.finditer(text) if ".concat(" in text else ()), MOST):
        if is_file(filled[3].lstrip("/")):
            found[filled[2], filled[3]] = found.get((filled[2], filled[3]), False) or filled[1] is not None
    return found


def _stated(text: str, variables: list[str]) -> dict[str, str]:
    """Return the expression that *text* assigns to each of the *variables* that it assigns once."""
    if not variables:
        return {}
    either = "|".join(map(re.escape, variables))
    assigned = re.compile(rf"(?<![\w$.])({either})\s{{0,4}}=(?![=>])\s{{0,4}}([^;,\n]{{1,200}})")
    values = dict[str, str]()
    for found in assigned.finditer(text):
        values[found[1]] = "" if found[1] in values else found[2]
    return values


_MOST_FOLDERS = 4  # of one script
_MOST_LISTED = 200  # of one script
_FOLDER_NAME = r"((?:https?:)?/{0,2}(?:[\w~@.-]{1,80}/){1,8})"
_GOES_ON = r"(?:[\"'`]\s{0,4}[+;,)]|\$\{)"
_BEFORE_NAMES = compiled(
    rf"(?:\.src\s{{0,4}}=\s{{0,4}}|\(\s{{0,4}}[\"'`]src[\"'`]\s{{0,4}},\s{{0,4}})[\"'`]{_FOLDER_NAME}(?:[\"'`]\s{{0,4}}\+|\$\{{)"
    rf"|(?:<img\b[^<>]{{0,200}}?\bsrc\s{{0,4}}=\s{{0,4}}|url\(\s{{0,4}})\\?[\"']?{_FOLDER_NAME}{_GOES_ON}",
    re.IGNORECASE | re.ASCII,
)
_PICTURE = compiled(r"[\"'`]([\w~@][\w~@+.-]{0,80}\.(?:apng|avif|bmp|gif|ico|jpe?g|png|svg|webp))[\"'`]", re.IGNORECASE)


def pictures(text: str) -> Iterator[str]:
    """Yield the pictures that the script *text* lists, each in each of its folders; relative to the page."""
    if "src" not in text and "url(" not in text:
        return
    folders = dict.fromkeys(found[1] or found[2] for found in islice(_BEFORE_NAMES.finditer(text), _MOST_LISTED))
    if folders:
        names = dict.fromkeys(found[1] for found in islice(_PICTURE.finditer(text), _MOST_LISTED))
        yield from (folder + name for folder, name in product(list(folders)[:_MOST_FOLDERS], names))
