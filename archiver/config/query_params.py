"""Drop and sort query parameters of links before they are requested. Pure.

The preset `sessions` drops exactly what the index of a replay also drops, so replay still finds each link of a page. If
you drop more, replay looks for the URL as it is on the page.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate

from archiver import url

NONE = "none"
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Preset:
    """A named group of parameters to drop."""

    why: str
    names: tuple[str, ...] = ()  # of query parameters, `*` for any letters
    values: str = ""  # only if the value matches this expression
    path: str = ""  # what is removed from the path
    replayed: bool = False  # only if replay looks up both spellings under one key


PRESETS = {
    "sessions": Preset(
        "Session IDs that replay ignores too",
        ("PHPSESSID", "jsessionid", "sid"),
        r"[0-9a-zA-Z]{32}",
        r"/\([a-z]\([0-9a-z]{24}\)\)(?=/[^?]+\.aspx)",
        replayed=True,
    ),
    "session-paths": Preset(
        "Session IDs in paths, as Java servers write them", (), "", r";jsessionid=[0-9A-Za-z._!-]+"
    ),
    "trackers": Preset(
        "Where a visitor came from; the page is the same without it",
        (
            "utm_*",
            "fbclid",
            "gclid",
            "gclsrc",
            "dclid",
            "gbraid",
            "wbraid",
            "msclkid",
            "yclid",
            "twclid",
            "ttclid",
            "igshid",
            "mc_cid",
            "mc_eid",
            "_ga",
            "_gl",
            "_hsenc",
            "_hsmi",
            "mkt_tok",
            "oly_anon_id",
            "oly_enc_id",
            "vero_id",
            "wickedid",
            "__s",
            "ref_src",
            "ref_url",
            "s_cid",
        ),
    ),
}


class Respelling:
    """Rewrites URLs for the request. *query* is `keep` or `sort`; *drops* are presets and names of parameters."""

    def __init__(self, query: str, drops: Iterable[str]) -> None:
        self._sort = query == "sort"
        named = [drop for listed in drops for drop in listed.split(",") if drop != NONE]
        presets = [PRESETS.get(drop) or Preset("", (drop,)) for drop in named]
        self._safe = [_Drop(preset) for preset in presets if preset.replayed]
        self._others = [_Drop(preset) for preset in presets if not preset.replayed]

    def __call__(self, address: str) -> str:
        """Return the URL to request for the canonical URL *address*: canonical too, and on the same host."""
        if "?" not in address and ";" not in address and "(" not in address:
            return address
        asked = address
        for drop in self._safe:
            without = drop(asked)
            if without != asked and url.surt(without) == url.surt(asked):
                asked = without
        for drop in self._others:
            asked = drop(asked)
        if self._sort and "&" in asked:
            page, _, query = asked.partition("?")
            asked = f"{page}?{'&'.join(sorted(query.split('&')))}" if query else asked
        return asked


class _Drop:
    """Removes from a URL what one preset names."""

    def __init__(self, preset: Preset) -> None:
        wild = [name for name in preset.names if _WILD.search(name)]
        self._plain = frozenset(name.lower() for name in preset.names if name not in wild)
        self._wild = re.compile("|".join(map(translate, wild)), re.IGNORECASE) if wild else None
        self._values = re.compile(preset.values) if preset.values else None
        self._path = re.compile(preset.path, re.IGNORECASE) if preset.path else None

    def __call__(self, address: str) -> str:
        page, mark, query = address.partition("?")
        if self._path is not None and (";" in page or "(" in page):  # everything that is dropped contains one of them
            start = page.index("/", 8)
            page = page[:start] + self._path.sub("", page[start:])
        if query and (self._plain or self._wild is not None):
            query = "&".join([pair for pair in query.split("&") if not self._names_it(pair)])
            mark = "?" if query else ""
        return f"{page}{mark}{query}"

    def _names_it(self, pair: str) -> bool:
        name, _, value = pair.partition("=")
        if name.lower() not in self._plain and (self._wild is None or self._wild.fullmatch(name) is None):
            return False
        return self._values is None or self._values.fullmatch(value) is not None
