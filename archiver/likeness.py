"""Likeness: what a URL has in common with others, and whether it looks like one that a program makes. Pure.

All of it is told by the URL alone. What is said of a URL is remembered for a while, for the same links stand on many
pages; long ones are looked at anew, so the memory is bounded: four megabytes where URLs are as usual, ten at most.
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

REMEMBERED = 8192  # URLs …
LONGEST_REMEMBERED = 256  # … of up to so many characters
LONGEST_PATTERN = 400
DEEP = 8  # segments, from which on a path is suspect
OPAQUE = 12  # characters of letters and digits mixed, which nobody writes by hand

_VARIABLE = re.compile(r"%[0-9A-Fa-f]{2}|(?<![0-9A-Za-z])[A-Za-z]*+[0-9][0-9A-Za-z]*+")
_DIGITS = re.compile("[0-9]+")
_LONG_WORD = re.compile(f"[0-9A-Za-z]{{{OPAQUE}}}")
_WORD = re.compile("[a-z]{2,}|[a-z0-9]{6,}")
_CALENDAR = re.compile(
    r"cal[./?_-]|calend[aei]r|kalender|calendrier|agenda|events?\b|veranstalt|termin|diary|month|week|[?&]date="
)
_DATED = re.compile(
    r"(?<![0-9])[12][0-9]{3}(?:[-/_](?:0?[1-9]|1[0-2])(?![0-9])|(?:0[1-9]|1[0-2])(?:[0-3][0-9])?(?![0-9]))"
)


class Likeness(NamedTuple):
    """What is said of one URL."""

    pattern: str
    directory: str
    suspect: bool


def likeness(address: str) -> Likeness:
    """The pattern and the directory of *address*, and whether it is suspect."""
    return _remembered(address) if len(address) <= LONGEST_REMEMBERED else _likeness(address)


def _likeness(address: str) -> Likeness:
    return Likeness(pattern(address), directory(address), suspect(address))


_remembered = lru_cache(maxsize=REMEMBERED)(_likeness)


def pattern(address: str) -> str:
    """What *address* has in common with those like it: numbers are `N`, opaque words `H`, of a query the names."""
    page, _, query = address.partition("?")
    start = page.index("/", 8)
    shape = page[:start] + _shape(page[start:])
    if query:
        names = {_shape(part.partition("=")[0]) for part in query.split("&") if part}
        shape += "?" + "&".join(sorted(names))
    return shape[:LONGEST_PATTERN]


def _shape(text: str) -> str:
    if "%" not in text and _LONG_WORD.search(text) is None:  # the same as below, in short
        return _DIGITS.sub("N", text)
    return _VARIABLE.sub(_letter, text)


def _letter(found: "re.Match[str]") -> str:
    word = found[0]
    if word.startswith("%"):
        return word
    if len(word) >= OPAQUE and not word.isdigit():
        return "H"
    return _DIGITS.sub("N", word)


def directory(address: str) -> str:
    """The first directory of *address*, `http://example.org/news/*`; that of the whole site where it has none."""
    start = address.index("/", 8)
    first, slash, rest = address[start + 1 :].partition("?")[0].partition("/")
    return f"{address[:start]}/{first}/*" if slash and rest else f"{address[:start]}/*"


def suspect(address: str) -> bool:
    """Whether *address* looks like those of which a program makes any number: months, facets, opaque words, depth."""
    page, _, query = address.partition("?")
    segments = page.split("/")[3:]
    if len(segments) > DEEP or query.count("&") >= 1:
        return True
    if len(set(segments)) < len(segments) and any(
        one == other and _WORD.match(one) for one, other in pairwise(segments)
    ):
        return True
    return made_up(address)


def made_up(address: str) -> bool:
    """Whether *address* is one of a calendar, or holds an opaque word as session ids are."""
    if _DATED.search(address, 8) and is_calendar(address):
        return True
    start = address.index("/", 8)
    if _LONG_WORD.search(address, start) is None:
        return False
    words = _VARIABLE.findall(address, start)
    return any(len(word) >= OPAQUE and not word.isdigit() for word in words)


def of_dates(address: str) -> bool:
    """Whether *address* holds a date, or a word as calendars have."""
    return _DATED.search(address, 8) is not None or is_calendar(address)


def is_calendar(address: str) -> bool:
    """Whether *address* holds a word as calendars have."""
    return _CALENDAR.search(address.lower(), 8) is not None  # quicker than an expression that ignores case


def words(address: str) -> set[str]:
    """The words of the path and the query of *address*, without short ones."""
    return set(_WORD.findall(address.lower(), address.index("/", 8)))
