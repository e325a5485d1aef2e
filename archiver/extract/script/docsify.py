"""Texts of a Docsify site: its script makes the pages from Markdown, so no document but these texts names them. Pure.

All are guesses. Linear on any text.
"""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

from archiver import url
from archiver.config.expressions import compiled

_ENABLED = re.compile(r"\b(?:load)?([Ss]idebar|[Nn]avbar|coverpage|notFoundPage)\s{0,10}:\s{0,10}true")
_NAMES = {"notfoundpage": "_404.md"}
_HOME = re.compile(r"\bhomepage\s{0,10}:\s{0,10}[\"'`]")
_TEXT = re.compile(r"[\"'`]/?+([\w@./-]{4,300}+)(?<=\.md)[\"'`]", re.ASCII)

_LINK = compiled(rb"\]\(\s*+<?([^\s()<>#?\"']{1,500}+)([^()\n]{0,200}+)")
_ROUTE = re.compile(rb"[\"'(]#/([^\s()<>#?\"']{1,500}+)")
_SOURCE = compiled(rb"<(?:img|source|video|audio|embed)\s[^<>]{0,500}?\bsrc\s*+=\s*+[\"']?+([^\s\"'<>#]{1,500}+)")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif")
_LISTS = ("_sidebar.md", "_navbar.md")


def settings(text: str) -> Iterator[str]:
    """Yield the texts that the settings in the script *text* name: the first one, and the enabled sidebars."""
    if "$docsify" in text:
        if not _HOME.search(text):
            yield "README.md"
        for found in _ENABLED.finditer(text):
            name = found[1].lower()
            yield _NAMES.get(name, f"_{name}.md")
        yield from _TEXT.findall(text)


def of_text(body: bytes, address: str, page: str) -> Iterator[str]:
    """Yield the texts, pictures and files that the text at *address* links to.

    A link is relative to the folder of *page*, even with a leading slash, or to the text if the site is set up so. A
    link without an extension is a text, and one to a folder is its README.md. Folders may have their own sidebar. A
    link with `:ignore` is left as it is, and so is markup.
    """
    folders = dict[str, None]()
    own_folder = urljoin(address, ".").removeprefix(urljoin(page, "."))
    for written, file in _written(body):
        if ":" in written or written.startswith("//"):
            continue
        name = written if file else _text_name(written.lstrip("/"))
        if file or name.endswith((".md", *_PICTURES)):
            yield urljoin(page, name)
        if not file and name.endswith((".md", *_PICTURES)):
            if not written.startswith(("/", own_folder or "/")):
                yield name
            folders[name.rpartition("/")[0]] = None
    own = url.path(address).rpartition("/")[2]
    if own in _LISTS and urljoin(page, own) == address:
        yield from (urljoin(page, f"{folder}/{own}") for folder in folders if folder and ".." not in folder)


def _text_name(name: str) -> str:
    last = name.rpartition("/")[2]
    return name if "." in last else f"{name}.md" if last else f"{name}README.md"


def _written(body: bytes) -> Iterator[tuple[str, bool]]:
    """Yield each link in *body* as written, and whether it names a file and not a text."""
    for link in _LINK.finditer(body):
        yield link[1].decode("utf-8", "replace"), b":ignore" in link[2]
    for route in _ROUTE.finditer(body):
        yield "/" + route[1].decode("utf-8", "replace"), False
    for source in _SOURCE.finditer(body):
        yield source[1].decode("utf-8", "replace"), True
