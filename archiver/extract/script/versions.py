"""Versions of a manual, each in a folder of its own, that only data name: a script makes a menu of them.

mike, which publishes versions for MkDocs, writes `[{"version": "1.0", "aliases": ["latest"]}]` into the folder above
them. An alias is a copy, which the menu leaves out. Sphinx' themes write `[{"version": "1.0", "url": "https://…"}]`.
Documenter.jl writes a script, `var DOC_VERSIONS = ["stable", "v1.0"];`. Anything else names nothing. Linear and bounded
on any text.
"""

import json
import re
from collections.abc import Iterator
from itertools import islice

from archiver.config.expressions import compiled

MOST = 1000  # versions of one manual
_LONGEST = 1 << 20  # characters of a list
_LIST = re.compile(r"\s{0,100}\[\s{0,100}\{[^{}]{0,1000}\"version\"\s{0,10}:")
_NAME = re.compile(r"[\w.+~-]{1,100}", re.ASCII)
_OF_DOCUMENTER = compiled(r"var DOC_VERSIONS\s*+=\s*+\[((?:\s*+\"[\w.+~-]{1,100}\"\s*+,?+){1,1000})\s*+\]", re.ASCII)
_CONFIGURED = re.compile(r"\"version\"\s{0,10}:\s{0,10}\{[^{}]{0,500}\"provider\"\s{0,10}:\s{0,10}\"mike\"")
_BASE = re.compile(r"\"base\"\s{0,10}:\s{0,10}\"([^\"\\\s<>]{1,500})\"")
_OF_THEME = re.compile(r"\btheme_switcher_json_url\s{0,4}=\s{0,4}(?:'([^'\\\s<>]{1,500})'|\"([^\"\\\s<>]{1,500})\")")
_SELECTED = re.compile(r"BASE_URL\s?\+\s?\"/?\.\./versions\.json\"")


def list_of_page(config: str) -> Iterator[str]:
    """Yield the list of versions that the *config* of a page of MkDocs Material leads to."""
    if (base := _BASE.search(config)) and _CONFIGURED.search(config):
        yield f"{base[1].rstrip('/')}/../versions.json"


def list_of_theme(text: str) -> Iterator[str]:
    """Yield the list that the *text* of a script in a page of PyData's Sphinx theme leads to, relative to the host."""
    for found in _OF_THEME.finditer(text) if "theme_switcher_json_url" in text else ():
        address = found[1] or found[2]
        yield address if address.startswith(("/", "http:", "https:")) else f"/{address}"


def list_of_script(text: str) -> Iterator[str]:
    """Yield the list that mike's script *text* loads; the script is in a folder of each version."""
    if "versions.json" in text and _SELECTED.search(text):
        yield "../../versions.json"


def listed(text: str) -> Iterator[str]:
    """Yield the address of each version in the list *text*, relative to the list."""
    if found := _OF_DOCUMENTER.match(text):
        yield from (f"{name}/" for name in islice(_NAME.findall(found[1]), MOST))
    if _LIST.match(text) is None or len(text) > _LONGEST:
        return
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return
    for entry in islice(entries, MOST):
        version, address = (entry.get("version"), entry.get("url")) if isinstance(entry, dict) else (None, None)
        if isinstance(version, str) and isinstance(address, str) and address.startswith(("/", "http")):
            yield address
        elif isinstance(version, str) and _NAME.fullmatch(version) and isinstance(entry.get("aliases"), list):
            yield f"{version}/"
