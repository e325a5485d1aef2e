"""Folders of the names in a script: service workers, modules, and names that are joined to a variable.

A worker resolves URLs against its own script, not against a page. Workbox writes a list of all files that it keeps into
the worker, `[{url:"a.html",revision:"f0"}]`; a browser requests each of them. It loads its own code as a module,
`define(["./workbox-f0"], …)`, whose name lacks the extension, as names of AMD modules do. The list is exact, but still
only a script's word, so all are guesses.

`base + "a.js"` names a file if the script states what `base` is: a string, its own folder or that of the page. If it
does not, the name is tried in both folders, but only where a URL is expected. Linear on any text.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from archiver.config.expressions import compiled

MOST = 20_000  # files of one list, modules of one script

_CALLED = (b"skipWaiting(", b"precacheAndRoute(", b"addToCacheList(", b"clients.claim(")  # only in service workers
_LISTENS = re.compile(rb"addEventListener\(\s{0,4}[\"'`](?:install|fetch)[\"'`]")
_REVISION = r"[\"']?revision[\"']?\s*+:\s*+(?:\"[^\"\\\n]{0,100}+\"|'[^'\\\n]{0,100}+'|null)"
_KEPT = compiled(
    rf"\{{\s*+(?:{_REVISION}\s*+,\s*+)?+[\"']?url[\"']?\s*+:\s*+[\"']([^\"'\\\s<>]{{1,500}}+)[\"']\s*+"
    rf"(?:,\s*+{_REVISION}\s*+)?+[,}}]"
)
_PARTS = re.compile(r"\bmodulePathPrefix[\"']?\s{0,4}:\s{0,4}[\"']([\w./@:-]{1,300}?)/?[\"']")
_USED = re.compile(r"\bworkbox\.([a-z][A-Za-z]{2,30})\b")
_CAPITAL = re.compile(r"(?=[A-Z])")
_DEFINED = compiled(r"(?<![\w$.])define\(\[((?:\s*+[\"'][^\"'\\\s]{1,200}+[\"']\s*+,?+)++)\]")
_MODULE = re.compile(r"[\"'](\.{1,2}/[\w./@-]{1,200})[\"']", re.ASCII)

_JOINED = compiled(
    r"\+\s{0,4}([\"'`])((?:/|\./|(?:\.\./)++)?+(?:[\w~@.-]++/)*+[\w~@-][\w~@.-]*+)\1(?!\s{0,4}[+.\[(?])", re.ASCII
)
_URL_BEFORE = (
    r"(?:\.(?:src|href)\s{0,4}=|[\"']?\b(?:url|src|href)[\"']?\s{0,4}:|\.open\(\s{0,4}[\"']GET[\"']\s{0,4},"
    r"|\b(?:fetch|getScript|getJSON|importScripts|Worker|Audio|loadScript|load_script|loadCSS|loadStyle)\s{0,4}\()"
)
_BEFORE = re.compile(rf"(?:(?P<url>{_URL_BEFORE})\s{{0,4}})?(?<![\w$.])(?P<name>[A-Za-z_$][\w$]{{0,40}})\s{{0,4}}\Z")
_OWN_FOLDER = re.compile(r"currentScript|[\"']script[\"'\[]|import\.meta\.url")
_FOLDER_OF_PAGE = re.compile(
    r"location\.(?:pathname|href)\b.{0,80}?(?:split|slice|replace|lastIndexOf|substr)", re.DOTALL
)
_BEGINS_A_NAME = re.compile(r"\.{1,2}/|[A-Za-z0-9]")  # others, "-min.js", only end one
_LITERAL = re.compile(r"(?:\"([^\"\\]{0,200})\"|'([^'\\]{0,200})'|`([^`\\$]{0,200})`)\s*\Z")
_NEAR = 80  # characters before a name that show its use
_GAP = 8  # characters in which a plus sign before the name shows that more stands in front of it
MOST_NAMES = 50  # variables of one script that are looked up


def is_service_worker(body: bytes) -> bool:
    """True if the script *body* can run only as a service worker."""
    return any(called in body for called in _CALLED) or _LISTENS.search(body) is not None


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


def joined(text: str, *, is_file: Callable[[str], bool], page: bool, worker: bool) -> Iterator[tuple[str, bool]]:
    """Yield each file that the script *text* joins to a variable, and True if it is relative to the script.

    *page*: the page that runs the script is known. *worker*: no page runs it. A variable of one letter has many
    meanings in one script, except in a small worker.
    """
    found = dict[tuple[str, str], bool]()  # variable and name, and whether a URL is expected there
    for written in islice(_JOINED.finditer(text), MOST):
        before = _BEFORE.search(text, max(0, written.start() - _NEAR), written.start())
        if (
            before
            and is_file(written[2].lstrip("/"))
            and text[max(0, before.start("name") - _GAP) : before.start("name")].rstrip()[-1:] != "+"
        ):
            key = before["name"], written[2]
            found[key] = found.get(key, False) or before["url"] is not None
    stated = _stated(text, list(dict.fromkeys(variable for variable, _ in found))[:MOST_NAMES])
    for (variable, name), wanted in found.items():
        value = stated.get(variable, "") if worker or len(variable) > 1 else ""
        if literal := _LITERAL.match(value):
            whole = (literal[1] or literal[2] or literal[3] or "") + name
            if is_file(whole):
                yield whole, False
        elif _OWN_FOLDER.search(value):
            yield name.lstrip("/"), True
        elif _FOLDER_OF_PAGE.search(value):
            yield name.lstrip("/"), False
        elif wanted and _BEGINS_A_NAME.match(name):
            yield name, True
            if page:
                yield name, False


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
