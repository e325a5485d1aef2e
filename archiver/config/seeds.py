"""Seeds as a person writes them: one URL, or a list with comments. Pure.

Stricter than the URL standard, which reads `http:///x` as a URL of the host `x`: what nobody can have meant is
refused with the words that would be right. A name without a scheme gets `http://`, as in curl and wget.

The settings that one seed has for itself, as a person writes them behind its URL. Pure.

`https://example.org/blog/ scope=prefix max-depth=3 exclude=/tag/`: the keys are the options' names. `scope`,
`max-depth` and `max-hops` stand in the place of the crawl's; `include` and `exclude`, any number of each, go beside
the crawl's. A canonical URL holds no space, and neither does a value here, so what is written is read back the same.
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
_HERE = re.compile(r"127\.[0-9.]+|\[::1\]|(?:.+\.)?localhost")  # this machine: whoever writes a port of it knows why
MAX_SHOWN = 120  # characters of a bad seed in a message, which is one line


class TooLongError(ConfigError):
    """A seed is longer than a URL may be: a mistake of one line, not of a list."""


def seed(text: str) -> str:
    """The canonical URL that *text* means; `ConfigError` says what would be right."""
    whole = _with_scheme(text.strip())
    scheme, _, rest = whole.partition(":")
    if scheme.lower() not in {"http", "https"}:
        raise ConfigError(f"{_shown(text)}: {scheme}: is not crawled; a seed begins with http:// or https://")
    if not rest.startswith("//"):
        raise ConfigError(f"{_shown(text)}: two slashes are missing: {scheme}://…")
    authority = re.split(r"[/\\?#]", rest[2:], maxsplit=1)[0]
    if not authority or authority.startswith(":"):
        raise ConfigError(f"{_shown(text)} has no host; right would be http://example.org/")
    if "@" in authority:
        raise ConfigError(
            f"{_shown(authority.rpartition('@')[2])}: credentials in URLs are not supported, because they would be "
            "stored with each capture; give the URL without them, and if the site asks for them: "
            "--header 'Authorization: Basic …'"
        )
    if _OUTSIDE.search(whole):
        raise ConfigError(
            f"{_shown(text)} holds a space or a control character; give one URL at a time, and %20 for a space"
        )
    found = url.canonical(whole)
    if found is None and 3 * len(whole.encode("utf-8", "replace")) > url.MAX_LENGTH:  # a byte may become an escape
        told = f"it has {len(whole)} characters; {url.MAX_LENGTH} is the most, escapes included"
        raise TooLongError(f"{_shown(text)} is not a URL: {told}")
    if found is None:
        raise ConfigError(f"{_shown(text)} is not a URL; right would be http://example.org/")
    if (port := url.blocked_port(found)) and not _HERE.fullmatch(url.host(found)):
        raise ConfigError(f"{_shown(text)}: port {port} is for another protocol, and browsers do not ask it either")
    return found


def lacks_scheme(text: str) -> bool:
    """Whether `seed` had to add `http://`, which a person may want to know."""
    return _with_scheme(text.strip()) != text.strip()


def lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a list of seeds that say something, with their numbers; `#` begins a comment."""
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


def read_seed(text: str) -> tuple[str, SeedSetting | None]:
    """The seed that *text* names, and its own settings where it has any; `ConfigError` says what would be right."""
    first, *others = _BLANKS.split(text.strip())
    if first.partition("=")[0] in KEYS and "=" in first:
        raise ConfigError(
            f"{_shown_setting(first)} has no URL before it; right would be https://example.org/ scope=prefix"
        )
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
            address, own = read_seed(line)
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
        near = (
            get_close_matches(key[:MAX_SETTINGS_SHOWN].lower().replace("_", "-").lstrip("-"), KEYS, n=1) if sign else []
        )
        every = ", ".join(f"{key}=…" for key in KEYS)
        right = f"did you mean {near[0]}=…?" if near else f"right would be one of {every}"
        aside = "" if sign and near else "; give one URL at a time, and %20 for a space"
        raise ConfigError(f"{_shown_setting(word)} behind the URL is no setting of a seed; {right}{aside}")
    if not value:
        raise ConfigError(f"{key}: there is no value; right would be {key}= and {KEYS[key].right}")
    try:
        return key, KEYS[key].parse(value)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


def _shown_setting(word: str) -> str:
    shown = repr(word)
    return shown if len(shown) <= MAX_SETTINGS_SHOWN else f"{shown[:MAX_SETTINGS_SHOWN]}…"


def _kept(given: Any) -> SeedSetting:
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
    _kept,
    str,
)
