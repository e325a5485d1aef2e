"""Parse seeds: one URL, or a list with comments and per-seed settings. Pure.

This is stricter than the URL standard, which reads `http:///x` as a URL of the host `x`: what no one can have meant is
refused, with an example of what to write. A name without a scheme gets `http://`, as in curl and wget.

In a list, settings follow the URL: `https://example.org/blog/ scope=prefix max-depth=3 exclude=/tag/`. The keys are
names of options. `scope`, `max-depth` and `max-hops` replace those of the crawl; `include` and `exclude`, which are
repeatable, add to them. All settings of hosts apply to the host of the seed. A value with blanks is quoted:
`header='Accept-Language: fr'`. In crawl.toml, a seed with settings is a table `[[seed]]`.

`title`, `note` and `collection` describe a seed for readers of reports and packages. They change nothing in the crawl.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from archiver import url
from archiver.config import host_rules
from archiver.config.option_types import NUMBER_OR_NONE, PATTERN, REACH, TEXT, OptionType
from archiver.errors import ConfigError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_PORT = re.compile(r"[0-9]+(?:[/?#].*)?", re.DOTALL)
_WORD = re.compile(r"""[^\s='"]+=(?:'[^']*'|"[^"]*")+(?!\S)|\S+""")  # a value in quotes may have blanks
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
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
        end = next((word.start() for word in _WORD.finditer(line) if word[0][0] == "#"), None) if "#" in line else None
        if written := line[:end].strip():
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


URL = "url"
SCOPE_KEYS = {
    "scope": REACH,
    "max-depth": NUMBER_OR_NONE,
    "max-hops": NUMBER_OR_NONE,
    "include": PATTERN,
    "exclude": PATTERN,
}
LONGEST_ABOUT = {"title": 300, "note": 2000, "collection": 100}  # characters


def _about(most: int) -> OptionType:
    """Return the type of a line of text that describes a seed."""

    def read(given: Any) -> str:
        text = str(TEXT.read(given)).strip()
        if len(text) > most:
            raise ValueError
        return text

    return OptionType("TEXT", f"a line of text of at most {most} characters", read)


ABOUT_KEYS = {key: _about(most) for key, most in LONGEST_ABOUT.items()}
KEYS = SCOPE_KEYS | host_rules.KEYS | ABOUT_KEYS
MANY = frozenset(("include", "exclude")) | host_rules.MANY
MAX_SETTINGS_SHOWN = 60  # characters of what is wrong in a message, which is one line


@dataclass(frozen=True, slots=True)
class SeedAbout:
    """The description of a seed by the user. An empty text means that there is none."""

    title: str = ""
    note: str = ""
    collection: str = ""

    def __bool__(self) -> bool:
        """Return True if there is any description."""
        return bool(self.title or self.note or self.collection)


NO_ABOUT = SeedAbout()


@dataclass(frozen=True, slots=True)
class SeedSetting:
    """Settings that apply only to the seed `url`, and its description: keys and values in the order given."""

    url: str
    given: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join((self.url, *(written(key, value) for key, value in self.given)))

    @property
    def for_scope(self) -> bool:
        """True if the seed has settings of the scope."""
        return any(key in SCOPE_KEYS for key, _ in self.given)

    @property
    def for_host(self) -> tuple[tuple[str, Any], ...]:
        """The settings that apply to the host of the seed."""
        return tuple((key, value) for key, value in self.given if key in host_rules.KEYS)

    @property
    def effective(self) -> tuple[tuple[str, Any], ...]:
        """The settings that have an effect on the crawl: all but the description."""
        return tuple((key, value) for key, value in self.given if key not in ABOUT_KEYS)

    @property
    def about(self) -> SeedAbout:
        """The description of the seed."""
        return SeedAbout(*(self.get(key, "") for key in ABOUT_KEYS))

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
    text = host_rules.to_text(KEYS[key], value)
    return f"{key}={shlex.quote(text) if _must_be_quoted(text) else text}"


def _must_be_quoted(text: str) -> bool:
    return not text or text[0] in "'\"" or any(letter.isspace() for letter in text)


def read_seed(text: str) -> tuple[str, SeedSetting | None]:
    """Return the seed in *text*, and its own settings if it has any. Raises `ConfigError` with a valid example."""
    first, *others = _WORD.findall(text) or [""]
    if first.partition("=")[0] in KEYS and "=" in first:
        raise ConfigError(
            f"{_shown_setting(first)} has no URL before it; write both together: 'https://example.org/ scope=prefix'"
        )
    address = seed(first)
    for before, word in pairwise(others):
        key = before.partition("=")[0]
        if key in ABOUT_KEYS and "=" not in word and "://" not in word:
            raise ConfigError(f"{_shown_setting(word)} after {key}=…: quote a text that has blanks: {key}='…'")
    given = tuple(map(_setting, others))
    return address, _with_settings(address, given) if given else None


def _with_settings(address: str, given: tuple[tuple[str, Any], ...]) -> SeedSetting:
    keys = [key for key, _ in given]
    for key in keys:
        if key not in MANY and keys.count(key) > 1:
            raise ConfigError(f"{key}: given twice; write {key}=… once")
    return SeedSetting(address, given)


def listed(text: str, name: str) -> Iterator[tuple[str, str, SeedSetting | None]]:
    """Yield each seed of a list: as written, in canonical form, and its own settings. *name* is the name of the file.

    If a line is too long for a URL, the first value is an error message and the second is empty.
    """
    seen: dict[str, tuple[SeedSetting, dict[str, int]]] = {}  # what is known of a seed, and on which lines it stands
    for number, line in lines(text):
        try:
            address, own = read_seed(line)
        except TooLongError as error:
            yield f"{name}:{number}: {error}", "", None
            continue
        except ConfigError as error:
            raise ConfigError(f"{name}:{number}: {error}") from None
        if own is not None:
            first, where = seen.get(address, (own, {}))
            if (what := contradiction(first, own)) == SETTINGS:
                hint = "write all of them on one line"
                raise ConfigError(f"{name}:{number}: {address} has other settings on line {where[what]}; {hint}")
            if what:
                raise ConfigError(
                    f"{name}:{number}: {address} has another {what} on line {where[what]}; delete one of the two"
                )
            here = {key if key in ABOUT_KEYS else SETTINGS: number for key, _ in own.given}
            seen[address] = combined(first, own), here | where
        yield line.split()[0], address, own


def conflict(own: Iterable[SeedSetting]) -> str:
    """Return what is wrong with *own* as settings of the seeds of one crawl; "" if nothing is."""
    seen: set[str] = set()
    by_host: dict[str, SeedSetting] = {}
    for one in own:
        if one.url in seen:
            return f"seed: {one.url} occurs twice; write one [[seed]] with all of its settings"
        seen.add(one.url)
        if mine := one.for_host:
            other = by_host.setdefault(url.origin(one.url), one)
            if sorted(map(repr, other.for_host)) != sorted(map(repr, mine)):
                return (
                    f"seed: {one.url} and {other.url} have the same host and other settings for it; "
                    "give these settings to one of them"
                )
    return ""


@dataclass(frozen=True, slots=True)
class SeedList:
    """Canonical seeds, each once, in the order given, and the per-seed settings."""

    urls: tuple[str, ...]
    own: tuple[SeedSetting, ...]


SETTINGS = "settings"


def contradiction(one: SeedSetting, other: SeedSetting) -> str:
    """Return the key of the description that *one* and *other* give differently, or `SETTINGS`; "" if they agree.

    They agree if one of them has what the other does not give.
    """
    if one.effective and other.effective and one.effective != other.effective:
        return SETTINGS
    both = (key for key in ABOUT_KEYS if one.has(key) and other.has(key))
    return next((key for key in both if one.get(key) != other.get(key)), "")


def combined(known: SeedSetting, new: SeedSetting) -> SeedSetting:
    """Return *new*, with the texts of *known* that it does not give, and with its settings if it gives none itself."""
    about = {key: value for one in (known, new) for key, value in one.given if key in ABOUT_KEYS}
    if new.effective and all(new.has(key) for key in about):
        return new
    return SeedSetting(new.url, (*(new.effective or known.effective), *about.items()))


def combine_seed_settings(known: Iterable[SeedSetting], new: Iterable[SeedSetting]) -> tuple[SeedSetting, ...]:
    """Return *known* and *new* together; a new entry takes the place of a known one for the same seed.

    It keeps what `combined` says: a new scope leaves the title, and a new title leaves the scope.
    """
    found = {one.url: one for one in known}
    for one in new:
        found[one.url] = combined(found[one.url], one) if one.url in found else one
    return tuple(found.values())


def described(address: str, about: SeedAbout) -> SeedSetting | None:
    """Return the entry that gives the seed *address* the description *about*; None if that is empty."""
    given = tuple((key, text) for key in ABOUT_KEYS if (text := getattr(about, key)))
    return SeedSetting(address, given) if given else None


def descriptions(own: Iterable[SeedSetting]) -> dict[str, SeedAbout]:
    """Return the descriptions of seeds by URL, for the seeds that have one."""
    return {one.url: about for one in own if (about := one.about)}


def without_left_out(text: str) -> str:
    """Return the seed *text* without what `host_rules.is_incomplete` names; "" if it has no other settings."""
    first, *others = _WORD.findall(text)
    kept = [word for word in others if not host_rules.is_incomplete(word.partition("=")[0], word.strip("'\""))]
    return " ".join((first, *kept)) if kept else ""


def _setting(word: str) -> tuple[str, Any]:
    key, sign, value = word.partition("=")
    if not sign or key not in KEYS:
        near = get_close_matches(key[:MAX_SETTINGS_SHOWN].lower().replace("_", "-").lstrip("-"), KEYS, n=1)
        wrong = f"{_shown_setting(word)} after the URL is not a setting of a seed"
        if not sign:
            aside = "give one URL at a time, and %20 for a space"
            raise ConfigError(f"{wrong}, which is KEY=VALUE, for example scope=prefix; {aside}")
        every = ", ".join(f"{key}=…" for key in KEYS)
        raise ConfigError(f"{wrong}; {f'did you mean {near[0]}=…?' if near else f'the settings of a seed are {every}'}")
    if not value:
        raise ConfigError(f"{key}: the value is missing; write {key}= and {KEYS[key].right}")
    parts = _QUOTED.findall(value) if _QUOTED.match(value) and _WORD.fullmatch(word) else [(value, "")]
    text = "".join(map("".join, parts))
    try:
        return key, KEYS[key].parse(host_rules.from_text(KEYS[key], text))
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


def _shown_setting(word: str) -> str:
    shown = repr(word)
    return shown if len(shown) <= MAX_SETTINGS_SHOWN else f"{shown[:MAX_SETTINGS_SHOWN]}…"


def _read_setting(given: Any) -> SeedSetting:
    if isinstance(given, SeedSetting):
        return given
    if isinstance(given, dict):
        return _of_table(given)
    if not isinstance(given, str):
        raise TypeError
    found = read_seed(given)[1]
    if found is None:
        raise ValueError
    return found


def _of_table(table: dict[str, Any]) -> SeedSetting:
    address = table.get(URL)
    if not isinstance(address, str):
        raise ConfigError('url: a seed needs its URL; write url = "https://example.org/"')
    given: list[tuple[str, Any]] = []
    for key, value in table.items():
        if key == URL:
            continue
        if key not in KEYS:
            near = get_close_matches(key[:MAX_SETTINGS_SHOWN].lower().replace("_", "-"), KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the settings of a seed are {', '.join(KEYS)}"
            raise ConfigError(f"{_shown_setting(key)} is not a setting of a seed; {hint}")
        for one in value if key in MANY and isinstance(value, list) else [value]:
            try:
                given.append((key, KEYS[key].parse(one)))
            except ConfigError as error:
                raise ConfigError(f"{key}: {error}") from None
    address = seed(address)
    if not given:
        raise ConfigError(f"{address} has no settings; write, for example, rate = 1, or write the URL into seeds")
    return _with_settings(address, tuple(given))


def table_of(own: SeedSetting) -> dict[str, Any]:
    """Return *own* as a TOML table: key and TOML value, those of repeatable keys as a list."""
    return {URL: own.url, **host_rules.grouped((key, KEYS[key].write(value)) for key, value in own.given)}


SEED_SETTING = OptionType(
    "'URL KEY=VALUE …'",
    "the URL of a seed and its own settings (https://example.org/blog/ scope=prefix rate=1)",
    _read_setting,
    str,
)
