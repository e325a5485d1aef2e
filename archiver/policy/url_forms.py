"""Forms of a URL: the one that we request, its pattern, its family, and the URL of which it is a variant. Pure.

`odd` names the rule that a URL breaks by itself: it repeats, grows, or names a date far ahead.

Only the URL itself counts. Patterns are cached, because the same links are on many pages. Long URLs are not cached, so
memory is bounded: four megabytes with usual URLs, ten at most.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from archiver import url
from archiver.config.expressions import compiled
from archiver.config.presets import NONE, PRESETS, Preset
from archiver.config.scope_settings import TrapSettings

VARIANT = "#variant"  # ends the tally names of variants of other URLs; no URL here has a fragment
REMEMBERED = 8192  # URLs …
LONGEST_REMEMBERED = 256  # … of up to so many characters
LONGEST_PATTERN = 400
OPAQUE = 12  # characters of letters and digits mixed, which no one writes by hand
FARTHEST_PAGE = 100  # from the page of a list that names it; lists count pages or entries
SESSION = 16  # … and the shortest session id

_VARIABLE = re.compile(r"%[0-9A-Fa-f]{2}|(?<![0-9A-Za-z])[A-Za-z]*+[0-9][0-9A-Za-z]*+")
_WILD = re.compile(r"[*?\[]")
_DIGITS = re.compile("[0-9]+")
_PAGE_NUMBER = re.compile("[0-9]{1,6}")
_SEPARATOR = re.compile(r"&|;(?=[^=;&]{1,40}=)")  # a few programs put a semicolon in place of &
_PLAIN_SEPARATOR = re.compile("[&;]")
_CHOOSING = frozenset(  # names of parameters …
    ("a", "act", "action", "area", "cmd", "do", "func", "mode", "module", "op", "option", "task", "view")
)
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{1,23}")  # … and a value that chooses
_LONG_WORD = re.compile(f"[0-9A-Za-z]{{{OPAQUE}}}")
_SESSION = compiled(
    rf"(?<![0-9A-Za-z])(?=[0-9]*+[A-Za-z])(?=[A-Za-z]*+[0-9])[0-9A-Za-z]{{{SESSION},}}+(?:-[0-9A-Za-z]++)*+"
)
# X509EncodedKeySpec: words in capitals and numbers, as people name things
_WRITTEN = compiled(r"[a-z]*+(?:[A-Z]++(?:[a-z]{2,}+|(?![a-z]))|[0-9]{1,3}+(?![a-z]))*+")
MOST_WRITTEN_DIGITS = 3
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])")

_ESCAPED_AGAIN = "%2525"  # a URL within a URL within a URL: it grows with each step
_MONTH_OF_YEAR = re.compile(
    r"(?<![0-9])([2-9][0-9]{3})[-/_](?:0?[1-9]|1[0-2])(?![0-9])|[?&](?:y|yr|year|jahr)=([2-9][0-9]{3})(?![0-9])"
)
_DAY = re.compile(r"(?<![0-9])([2-9][0-9]{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
_CALENDAR = re.compile(
    r"cal[./?_-]|calend[aei]r|kalender|calendrier|agenda|events?\b|veranstalt|termin|diary|month|week|[?&]date="
)


class UrlShape(NamedTuple):
    """The pattern and the family of a URL."""

    pattern: str  # http://example.org/calendar/N/N
    family: str  # http://example.org/calendar/*, http://example.org/calendar/*?*


def likeness(address: str) -> UrlShape:
    """Return the pattern and the family of *address*."""
    return _remembered(address) if len(address) <= LONGEST_REMEMBERED else _likeness(address)


def _likeness(address: str) -> UrlShape:
    return UrlShape(pattern(address), family(address))


_remembered = lru_cache(maxsize=REMEMBERED)(_likeness)


def pattern(address: str) -> str:
    """Return the pattern of *address*: numbers become `N`, opaque words `H`.

    A query keeps only its names, and the words that choose what a program shows: `?action=history&title`.
    """
    page, _, query = address.partition("?")
    start = page.index("/", 8)
    shape = page[:start] + _shape(page[start:])
    if query:
        parts = query.split("&") if ";" not in query else _SEPARATOR.split(query)
        shape += "?" + "&".join(sorted({_parameter(part) for part in parts if part}))
    return shape[:LONGEST_PATTERN]


def _parameter(part: str) -> str:
    name, _, value = part.partition("=")
    if name.lower() in _CHOOSING and _WORD.fullmatch(value):
        return f"{name}={value.lower()}"
    return _shape(name)


def _shape(text: str) -> str:
    if "%" not in text and _LONG_WORD.search(text) is None:  # a faster way to the same result
        return _DIGITS.sub("N", text)
    return _VARIABLE.sub(_letter, text)


def _letter(found: "re.Match[str]") -> str:
    word = found[0]
    if word.startswith("%"):
        return word.upper()
    if len(word) >= OPAQUE and not word.isdigit() and not _is_written(word):
        return "H"
    return _DIGITS.sub("N", word)


def family(address: str) -> str:
    """Return the family of *address*, by its first path segment: `…/calendar/*`, or `…/shop*?*` if it has a query."""
    page, mark, _ = address.partition("?")
    start = page.index("/", 8)
    first, slash, _ = page[start + 1 :].partition("/")
    return f"{page[:start]}/{_shape(first)[:LONGEST_PATTERN]}{slash}*{'?*' if mark else ''}"


def page_of(shape: str) -> str:
    """Return the part of a pattern that names the page, without the query."""
    return shape.partition("?")[0]


def values_of_query(address: str) -> list[str]:
    """Return the values in the query of *address*, decoded."""
    parts = _PLAIN_SEPARATOR.split(address.partition("?")[2])
    return [value for part in parts if (value := unquote(part.partition("=")[2]))]


def values_in(address: str) -> list[str]:
    """Return the values in the query of *address* and the segments of its path."""
    return [*values_of_query(address), *filter(None, url.path(address).split("/"))]


def spelling(address: str) -> str:
    """Return what two spellings of one URL have in common: scheme, `www.` and a slash at the end do not matter."""
    page, mark, query = address.partition("://")[2].removeprefix("www.").partition("?")
    return page.rstrip("/") + mark + query


def list_of(address: str, via: str) -> str:
    """Return the list that *address* and *via* are pages of, not far from each other; "" if they are not.

    `?cat=a&page=3` on `?cat=a&page=2` is a page of `?cat=a`. The number of a comment is mostly too far away.
    """
    page, mark, query = address.partition("?")
    if not mark or not via.startswith(page):
        return ""
    other, _, before = via.partition("?")
    mine, theirs = query.split("&"), set(before.split("&") if before else ())
    added, left = [part for part in mine if part not in theirs], theirs.difference(mine)
    if page != other or len(added) != 1 or len(left) > 1:
        return ""
    name, _, number = added[0].partition("=")
    same, _, last = next(iter(left), f"{name}=0").partition("=")
    numbers = _PAGE_NUMBER.fullmatch(number) and _PAGE_NUMBER.fullmatch(last)
    if same != name or not numbers or abs(int(number) - int(last)) > FARTHEST_PAGE:
        return ""
    rest = "&".join(part for part in mine if part in theirs)
    return f"{page}?{rest}" if rest else page


def is_entry(address: str, via: str) -> bool:
    """Return True if *via* is a folder, and *address* a file right in it.

    Without a slash at its end, a folder has no ending, and a file has one. So a file is no folder of others.
    """
    folder, _, name = address.rpartition("/")
    if "?" in address or folder != via.removesuffix("/"):
        return False
    return via.endswith("/") or ("." in name and "." not in via.rpartition("/")[2])


def is_session(address: str) -> bool:
    """Return True if *address* contains what looks like a session id."""
    session = any(not _is_written(found[0]) for found in _SESSION.finditer(address, 8))
    return session or _UUID.search(address, 8) is not None


def _is_written(word: str) -> bool:
    """Return True if a person most likely wrote *word*: `X509EncodedKeySpec`."""
    return sum(map(str.isdigit, word)) <= MOST_WRITTEN_DIGITS and _WRITTEN.fullmatch(word) is not None


def _session(found: "re.Match[str]") -> str:
    return found[0] if _is_written(found[0]) else "H"


def variant(address: str) -> str:
    """Return *address* without session ids and with its query sorted, or "" if it can have no variants."""
    several = "&" in address
    if not several and _LONG_WORD.search(address, 8) is None:  # session ids and UUIDs have one
        return ""
    common = _SESSION.sub(_session, _UUID.sub("H", address))
    if several:
        page, _, query = common.partition("?")
        common = f"{page}?{'&'.join(sorted(query.split('&')))}"
    elif common == address:
        return ""
    return common


def ids_in(address: str) -> list[str]:
    """Return what looks like session ids in *address*; it may be names of content, too."""
    if _LONG_WORD.search(address, 8) is None:  # session ids and UUIDs have one
        return []
    words = [word for word in _SESSION.findall(_UUID.sub("-", address), 8) if not _is_written(word)]
    return words + _UUID.findall(address, 8)


def is_varied(address: str, new: Iterable[str]) -> bool:
    """Return True if the page may have variants: another query or session, a print view, a reply form."""
    return "?" in address or bool(variant(address)) or any(lead.startswith(address) for lead in new)


def directory_of(family: str) -> str:
    """Return the directory of a *family*, whatever the queries of its URLs."""
    return family if family.endswith(VARIANT) else page_of(family)


def odd(address: str, settings: TrapSettings, year: int) -> str:
    """Return the rule of *settings* for URLs alone that *address* breaks, or ""."""
    slashes = address.count("/")
    if slashes - 2 > settings.max_segments and address.partition("?")[0].count("/") - 2 > settings.max_segments:
        return f"max-segments: {settings.max_segments}"
    if slashes - 2 > settings.max_repeats and _repeats(address, settings.max_repeats):
        return f"max-repeats: {settings.max_repeats}"
    if len(address) > settings.max_url_length:
        return f"max-url-length: {settings.max_url_length}"
    if (
        address.count("&") >= settings.max_repeats
        and _most(address.partition("?")[2].split("&")) > settings.max_repeats
    ):
        return f"max-repeats: {settings.max_repeats}"
    if _ESCAPED_AGAIN in address or address.count("?") > settings.max_repeats:
        return "traps: on: an address within an address within an address"
    if _MONTH_OF_YEAR.search(address) and _year(address) > year + settings.max_years_ahead:
        return f"max-years-ahead: {settings.max_years_ahead}"
    return ""


def _repeats(address: str, most: int) -> bool:
    """Return True if a path segment occurs more than *most* times. Numbers and single letters do not count."""
    words = [word for word in address.partition("?")[0].split("/")[3:] if len(word) > 1 and not word.isdigit()]
    return len(words) - len(set(words)) >= most and _most(words) > most


def _most(words: Sequence[str]) -> int:
    """Return how often the most frequent of *words* occurs."""
    return max(Counter(words).values(), default=0)


def _year(address: str) -> int:
    """Return the latest year of a date in *address*, or 0. A year with a month counts only in a calendar."""
    found = _DAY.findall(address)
    if _CALENDAR.search(address.lower(), 8):  # faster than an expression that ignores case
        found += [path or query for path, query in _MONTH_OF_YEAR.findall(address)]
    return max(map(int, found), default=0)


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
