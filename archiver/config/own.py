"""The settings that one seed has for itself, as a person writes them behind its URL. Pure.

`https://example.org/blog/ scope=prefix max-depth=3 exclude=/tag/`: the keys are the options' names. `scope`,
`max-depth` and `max-hops` stand in the place of the crawl's; `include` and `exclude`, any number of each, go beside
the crawl's. A canonical URL holds no space, and neither does a value here, so what is written is read back the same.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from archiver.config.seeds import TooLongError, lines, seed
from archiver.config.values import NUMBER_OR_NONE, PATTERN, REACH, Kind
from archiver.errors import ConfigError

KEYS = {"scope": REACH, "max-depth": NUMBER_OR_NONE, "max-hops": NUMBER_OR_NONE, "include": PATTERN, "exclude": PATTERN}
MANY = frozenset(("include", "exclude"))
_BLANKS = re.compile(r"[ \t]+")
MAX_SHOWN = 60  # characters of what is wrong in a message, which is one line


@dataclass(frozen=True, slots=True)
class SeedSetting:
    """What holds for the seed `url` alone: keys of the settings and their values, in the order given."""

    url: str
    given: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join((self.url, *(written(key, value) for key, value in self.given)))

    def get(self, key: str, otherwise: Any = None) -> Any:
        """The value of *key*; *otherwise* where it is not given."""
        return next((value for name, value in self.given if name == key), otherwise)

    def has(self, key: str) -> bool:
        """Whether *key* is given."""
        return any(name == key for name, _ in self.given)

    def all(self, key: str) -> tuple[Any, ...]:
        """Each value of *key*."""
        return tuple(value for name, value in self.given if name == key)


def written(key: str, value: Any) -> str:
    """One setting of a seed, as a person writes it: `max-depth=3`."""
    return f"{key}={KEYS[key].write(value)}"


def read(text: str) -> tuple[str, SeedSetting | None]:
    """The seed that *text* names, and its own settings where it has any; `ConfigError` says what would be right."""
    first, *others = _BLANKS.split(text.strip())
    if first.partition("=")[0] in KEYS and "=" in first:
        raise ConfigError(f"{_shown(first)} has no URL before it; right would be https://example.org/ scope=prefix")
    address = seed(first)
    given: list[tuple[str, Any]] = []
    for word in others:
        key, value = _setting(word)
        if key not in MANY and any(key == known for known, _ in given):
            raise ConfigError(f"{key}: given twice; right would be {key}=… once")
        given.append((key, value))
    return address, SeedSetting(address, tuple(given)) if given else None


def listed(text: str, name: str) -> Iterator[tuple[str, str, SeedSetting | None]]:
    """The seeds of a list, one on each line: as written, canonical, and its own settings; *name* is the file's.

    Of a line that is too long for a URL the first is what is wrong with it, and the second is empty.
    """
    seen: dict[str, tuple[SeedSetting, int]] = {}
    for number, line in lines(text):
        try:
            address, own = read(line)
        except TooLongError as error:
            yield f"{name}:{number}: {error}", "", None
            continue
        except ConfigError as error:
            raise ConfigError(f"{name}:{number}: {error}") from None
        if own is not None:
            first, where = seen.setdefault(address, (own, number))
            if first != own:
                right = "right would be one line with all of them"
                raise ConfigError(f"{name}:{number}: {address} has other settings on line {where}; {right}")
        yield line.split()[0], address, own


def unknown(seeds: Iterable[str], own: Iterable[SeedSetting]) -> str:
    """What is wrong with *own* as settings of *seeds*, in words; "" where nothing is."""
    there, seen = set(seeds), set()
    for one in own:
        if one.url not in there:
            return f"seed-setting: {one.url} is no seed of this crawl; right would be the URL of one"
        if one.url in seen:
            return f"seed-setting: {one.url} stands there twice; right would be one entry with all of its settings"
        seen.add(one.url)
    return ""


def _setting(word: str) -> tuple[str, Any]:
    key, sign, value = word.partition("=")
    if not sign or key not in KEYS:
        near = get_close_matches(key[:MAX_SHOWN].lower().replace("_", "-").lstrip("-"), KEYS, n=1) if sign else []
        every = ", ".join(f"{key}=…" for key in KEYS)
        right = f"did you mean {near[0]}=…?" if near else f"right would be one of {every}"
        aside = "" if sign and near else "; give one URL at a time, and %20 for a space"
        raise ConfigError(f"{_shown(word)} behind the URL is no setting of a seed; {right}{aside}")
    if not value:
        raise ConfigError(f"{key}: there is no value; right would be {key}= and {KEYS[key].right}")
    try:
        return key, KEYS[key].parse(value)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


def _shown(word: str) -> str:
    shown = repr(word)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


def _kept(given: Any) -> SeedSetting:
    if isinstance(given, SeedSetting):
        return given
    if not isinstance(given, str):
        raise TypeError
    found = read(given)[1]
    if found is None:
        raise ValueError
    return found


SEED_SETTING = Kind(
    "'URL KEY=VALUE …'",
    "the URL of a seed and its own settings (https://example.org/blog/ scope=prefix max-depth=3)",
    _kept,
    str,
)
