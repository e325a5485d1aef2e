"""The kinds of value a setting may have: how text and TOML become a value, how a value becomes TOML again.

Each kind says in words what would be right, and raises `ConfigError` with exactly these words for anything
else. Pure.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from archiver.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `starts` requests begun in any `interval` seconds; `starts` 0 means no limit."""

    starts: int
    interval: float = 1.0

    def __str__(self) -> str:
        return f"{self.starts}" if self.interval == 1 else f"{self.starts}/{self.interval:g}"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: its name in usage lines, what is right in words, and its reader."""

    metavar: str
    right: str
    read: Callable[[Any], Any]  # from text or from a TOML value; ValueError or TypeError where it is not right
    write: Callable[[Any], Any] = lambda value: value  # to a TOML value

    def parse(self, given: Any) -> Any:
        """The value; `ConfigError` says what would be right."""
        try:
            return self.read(given)
        except (ValueError, TypeError, OverflowError, re.error) as error:
            why = f" ({error})" if isinstance(error, re.error) else ""
            raise ConfigError(f"{given!r} is not {self.right}{why}") from None


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TypeError
    number = int(given)
    if number < 0:
        raise ValueError
    return number


def _at_least_one(given: Any) -> int:
    number = _whole(given)
    if number < 1:
        raise ValueError
    return number


def _seconds(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise TypeError
    number = float(given)
    if not 0 < number < math.inf:
        raise ValueError
    return number


def _size(given: Any) -> int:
    if isinstance(given, str):
        found = _SIZE.fullmatch(given.strip())
        if found is None:
            raise ValueError
        return int(float(found[1]) * _UNITS[found[2].lower()])
    return _whole(given)


def _rate(given: Any) -> Rate:
    if isinstance(given, Rate):
        return given
    starts, slash, interval = str(given).partition("/")
    if isinstance(given, bool):
        raise TypeError
    return Rate(_whole(starts.strip()), _seconds(interval.strip()) if slash else 1.0)


def _boolean(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TypeError
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str) or any(ord(char) < 32 or ord(char) == 127 for char in given):
        raise TypeError
    return given


def _pattern(given: Any) -> str:
    re.compile(_text(given))
    return str(given)


def _header(given: Any) -> str:
    found = _HEADER.fullmatch(_text(given))
    if found is None:
        raise ValueError
    return f"{found[1]}: {found[2].rstrip()}"


def _label(given: Any) -> str:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", _text(given)) is None:
        raise ValueError
    return str(given)


def _choice(words: tuple[str, ...]) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if given not in words:
            raise ValueError
        return str(given)

    return read



COUNT = Kind("N", "a whole number of 1 or more", _at_least_one)
NUMBER = Kind("N", "a whole number of 0 or more", _whole)
SECONDS = Kind("SECONDS", "a number of seconds above 0", _seconds)
SECONDS_OR_NONE = Kind(
    "SECONDS", "a number of seconds above 0, or 0 for no limit", lambda given: 0.0 if given in (0, "0") else _seconds(given)
)
SIZE = Kind("BYTES", "a number of bytes, with k, M, G or T if you like (500M)", _size)
RATE = Kind("N[/SECONDS]", "a number of requests, with /SECONDS if not per second (5, 30/60, 0 for no limit)", _rate, str)
BOOLEAN = Kind("", "true or false", _boolean)
TEXT = Kind("TEXT", "a line of text", _text)
PATTERN = Kind("REGEX", "a regular expression", _pattern)
HEADER = Kind("'NAME: VALUE'", "a header line, 'Name: value'", _header)
LABEL = Kind("NAME", "a name of letters, digits, '.', '_' and '-'", _label)


def choice(*words: str) -> Kind:
    """One of *words*."""
    return Kind("|".join(words), "one of " + ", ".join(words), _choice(words))
