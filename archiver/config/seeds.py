"""Parse seeds: one URL, or a list with comments and per-seed settings. Pure.

This is stricter than the URL standard, which reads `http:///x` as a URL of the host `x`: what no one can have meant is
refused, with an example of what to write. A name without a scheme gets `http://`, as in curl and wget.

In a list, settings follow the URL: `https://example.org/blog/ scope=prefix max-depth=3 exclude=/tag/`. The keys are
names of options. `scope`, `max-depth` and `max-hops` replace those of the crawl; `include` and `exclude`, which are
repeatable, add to them. Neither a canonical URL nor a value contains a space, so what is written can be read back.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from archiver import url
from archiver.config.option_types import NUMBER_OR_NONE, PATTERN, REACH, OptionType
from archiver.errors import ConfigError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_PORT = re.compile(r"[0-9]+(?:[/?#].*)?", re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#.*", re.DOTALL)
_OUTSIDE = re.compile(r"[\s\x00-\x20\x7f-\x9f\ud800-\udfff]")
_HERE = re.compile(r"127\.[0-9.]+|\[::1\]|(?:.+\.)?localhost")  # this machine: the user chose the port on purpose
MAX_SHOWN = 120  # characters of a bad seed in a message, which is one line


class TooLongError(ConfigError):
    """A seed is longer than a URL may be. In a list, only its line is skipped."""


def seed(text: str) -> str:
    """Return the canonical URL of *text*. Raises `ConfigError` with an example of a valid one."""
    whole = _with_scheme(text.strip())
    scheme, _, rest = whole.partition(":")
    if scheme.lower() not in {"http", "https"}:
        raise ConfigError(f"{_shown(text)}: {scheme}: is not supported; a seed starts with http:// or https://")
    if not rest.startswith("//"):
        raise ConfigError(f"{_shown(text)}: the two slashes are missing: {scheme}://…")
    authority = re.split(r"[/\\?#]", rest[2:], maxsplit=1)[0]
    if not authority or authority.startswith(":"):
        raise ConfigError(f"{_shown(text)} has no host; write it like http://example.org/")
    if "@" in authority:
        raise ConfigError(
            f"{_shown(authority.rpartition('@')[2])}: credentials in URLs are not supported, because they would be "
            "stored with each capture; give the URL without them, and if the site asks for them: "
            "--header 'Authorization: Basic …'"
        )
    if _OUTSIDE.search(whole):
        raise ConfigError(
            f"{_shown(text)} contains a space or control character; give one URL at a time, and %20 for a space"
        )
    found = url.canonical(whole)
    if found is None and 3 * len(whole.encode("utf-8", "replace")) > url.MAX_LENGTH:  # a byte may become an escape
        reason = f"it has {len(whole)} characters; {url.MAX_LENGTH} is the most, escapes included"
        raise TooLongError(f"{_shown(text)} is not a URL: {reason}")
    if found is None:
        raise ConfigError(f"{_shown(text)} is not a URL; write it like http://example.org/")
    if (port := url.blocked_port(found)) and not _HERE.fullmatch(url.host(found)):
        raise ConfigError(f"{_shown(text)}: port {port} belongs to another protocol, and browsers block it too")
    return found


def lacks_scheme(text: str) -> bool:
    """Return whether *text* has no scheme, so that `seed` adds `http://`."""
    return _with_scheme(text.strip()) != text.strip()


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line of a list of seeds, without comments (`#`) and empty lines."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if written := _COMMENT.sub("", line).strip():
            yield number, written


def _with_scheme(text: str) -> str:
    if text.startswith("//"):
        return f"http:{text}"
    found = _SCHEME.fullmatch(text)
    if found is not None and found[1].lower() != "mailto" and "@" in re.split(r"[/\\?#]", found[2], maxsplit=1)[0]:
        return f"http://{text}"  # `user:word@host`
    if found is None or _PORT.fullmatch(found[2]):  # `localhost:8000/x` is a host and its port
        return f"http://{text}"
    return text


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


KEYS = {"scope": REACH, "max-depth": NUMBER_OR_NONE, "max-hops": NUMBER_OR_NONE, "include": PATTERN, "exclude": PATTERN}
MANY = frozenset(("include", "exclude"))
_BLANKS = re.compile(r"[ \t]+")
MAX_SETTINGS_SHOWN = 60  # characters of what is wrong in a message, which is one line


@dataclass(frozen=True, slots=True)
class SeedSetting:
    """Settings that apply only to the seed `url`: keys and values in the order given."""

    url: str
    given: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join((self.url, *(written(key, value) for key, value in self.given)))

    def get(self, key: str, otherwise: Any = None) -> Any:
        """Return the value of *key*; *otherwise* if it is not given."""
        return next((value for name, value in self.given if name == key), otherwise)

    def has(self, key: str) -> bool:
        """Return whether *key* is given."""
        return any(name == key for name, _ in self.given)

    def all(self, key: str) -> tuple[Any, ...]:
        """Return all values of *key*."""
        return tuple(value for name, value in self.given if name == key)


def written(key: str, value: Any) -> str:
    """Return a per-seed setting as text: `max-depth=3`."""
    return f"{key}={KEYS[key].write(value)}"


def read_seed(text: str) -> tuple[str, SeedSetting | None]:
    """Return the seed in *text*, and its own settings if it has any. Raises `ConfigError` with a valid example."""
    first, *others = _BLANKS.split(text.strip())
    if first.partition("=")[0] in KEYS and "=" in first:
        raise ConfigError(
            f"{_shown_setting(first)} has no URL before it; write it like https://example.org/ scope=prefix"
        )
    address = seed(first)
    given: list[tuple[str, Any]] = []
    for word in others:
        key, value = _setting(word)
        if key not in MANY and any(key == known for known, _ in given):
            raise ConfigError(f"{key}: given twice; write {key}=… once")
        given.append((key, value))
    return address, SeedSetting(address, tuple(given)) if given else None


def listed(text: str, name: str) -> Iterator[tuple[str, str, SeedSetting | None]]:
    """Yield each seed of a list: as written, in canonical form, and its own settings. *name* is the name of the file.

    If a line is too long for a URL, the first value is an error message and the second is empty.
    """
    seen: dict[str, tuple[SeedSetting, int]] = {}
    for number, line in lines(text):
        try:
            address, own = read_seed(line)
        except TooLongError as error:
            yield f"{name}:{number}: {error}", "", None
            continue
        except ConfigError as error:
            raise ConfigError(f"{name}:{number}: {error}") from None
        if own is not None:
            first, where = seen.setdefault(address, (own, number))
            if first != own:
                hint = "write all of them on one line"
                raise ConfigError(f"{name}:{number}: {address} has other settings on line {where}; {hint}")
        yield line.split()[0], address, own


def unknown(seeds: Iterable[str], own: Iterable[SeedSetting]) -> str:
    """Return what is wrong with *own* as settings of *seeds*; "" if nothing is."""
    there, seen = set(seeds), set()
    for one in own:
        if one.url not in there:
            return f"seed-setting: {one.url} is not a seed of this crawl"
        if one.url in seen:
            return f"seed-setting: {one.url} occurs twice; write one entry with all of its settings"
        seen.add(one.url)
    return ""


def _setting(word: str) -> tuple[str, Any]:
    key, sign, value = word.partition("=")
    if not sign or key not in KEYS:
        near = (
            get_close_matches(key[:MAX_SETTINGS_SHOWN].lower().replace("_", "-").lstrip("-"), KEYS, n=1) if sign else []
        )
        every = ", ".join(f"{key}=…" for key in KEYS)
        hint = f"did you mean {near[0]}=…?" if near else f"the settings of a seed are {every}"
        aside = "" if sign and near else "; give one URL at a time, and %20 for a space"
        raise ConfigError(f"{_shown_setting(word)} after the URL is not a setting of a seed; {hint}{aside}")
    if not value:
        raise ConfigError(f"{key}: the value is missing; write {key}= and {KEYS[key].right}")
    try:
        return key, KEYS[key].parse(value)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


def _shown_setting(word: str) -> str:
    shown = repr(word)
    return shown if len(shown) <= MAX_SETTINGS_SHOWN else f"{shown[:MAX_SETTINGS_SHOWN]}…"


def _read_setting(given: Any) -> SeedSetting:
    if isinstance(given, SeedSetting):
        return given
    if not isinstance(given, str):
        raise TypeError
    found = read_seed(given)[1]
    if found is None:
        raise ValueError
    return found


SEED_SETTING = OptionType(
    "'URL KEY=VALUE …'",
    "the URL of a seed and its own settings (https://example.org/blog/ scope=prefix max-depth=3)",
    _read_setting,
    str,
)
