"""Rules for hosts: a host pattern, and the settings of the hosts that match it in place of the crawl's. Pure.

In crawl.toml each rule is a table `[[host]]` with `match` and keys of settings; on the command line it is one text:
`--host '*.example.org rate=1/2 host-concurrency=1 header="Accept-Language: fr"'`. A pattern is a host name in which `*`
matches any characters, or an origin such as `https://example.org:8443`. For each key the first rule that matches and
has it decides.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from archiver.config.addresses import IP_VERSION, SOURCE_ADDRESS
from archiver.config.auth import AUTH, check_owner, covers, host_pattern
from archiver.config.option_types import (
    BOOLEAN,
    COOKIES,
    COUNT,
    HEADER,
    LEFT_OUT,
    NOFOLLOW,
    NUMBER,
    RATE,
    REFERER,
    ROBOTS,
    SECONDS,
    SECONDS_OR_NONE,
    SIZE,
    TEXT,
    OptionType,
)
from archiver.config.proxies import PROXY
from archiver.config.responses import ACCEPT, ACCEPT_ENCODING, LANGUAGE_LIST, LANGUAGES, MEDIA_TYPE, STATUSES
from archiver.config.tls import CA_FILE, CLIENT_CERT, KEYS_WITH_FILES, TLS_VERSION
from archiver.errors import ConfigError

MATCH = "match"
KEYS: dict[str, OptionType] = {
    "rate": RATE,
    "host-concurrency": COUNT,
    "host-bandwidth": SIZE,
    "max-urls-per-host": NUMBER,
    "max-bytes-per-host": SIZE,
    "robots": ROBOTS,
    "robots-patience": SECONDS_OR_NONE,
    "crawl-delay-cap": SECONDS_OR_NONE,
    "nofollow": NOFOLLOW,
    "user-agent": TEXT,
    "header": HEADER,
    "cookies": COOKIES,
    "auth": AUTH,
    "proxy": PROXY,
    "referer": REFERER,
    "accept": ACCEPT,
    "accept-language": LANGUAGES,
    "also-accept-language": LANGUAGE_LIST,
    "accept-encoding": ACCEPT_ENCODING,
    "source-address": SOURCE_ADDRESS,
    "ip-version": IP_VERSION,
    "timeout": SECONDS,
    "dns-timeout": SECONDS_OR_NONE,
    "connect-timeout": SECONDS_OR_NONE,
    "first-byte-timeout": SECONDS_OR_NONE,
    "max-response-time": SECONDS_OR_NONE,
    "retries": NUMBER,
    "conditional": BOOLEAN,
    "newer-sitemap": BOOLEAN,
    "changed-only": BOOLEAN,
    "max-response-size": SIZE,
    "max-unstated-size": SIZE,
    "include-type": MEDIA_TYPE,
    "exclude-type": MEDIA_TYPE,
    "keep-status": STATUSES,
    "client-cert": CLIENT_CERT,
    "ca-file": CA_FILE,
    "system-ca": BOOLEAN,
    "tls-min": TLS_VERSION,
    "tls-max": TLS_VERSION,
}
MANY = frozenset(("auth", "header", "proxy", "include-type", "exclude-type", *KEYS_WITH_FILES))
REPEATABLE = MANY | {"include", "exclude"}  # of hosts and of seeds
MAX_SHOWN = 60  # characters of what is wrong in a message, which is one line


@dataclass(frozen=True, slots=True)
class HostRule:
    """Settings for the hosts that match a pattern: keys and values in the order given."""

    match: str
    given: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        words = (f"{key}={shlex.quote(to_text(KEYS[key], value))}" for key, value in self.given)
        return " ".join((self.match, *words))

    def covers(self, origin: str) -> bool:
        """Return True if the rule applies to the host *origin*, scheme and authority of a canonical URL."""
        return covers(self.match, origin)


def host_rule(match: Any, given: Iterable[tuple[str, Any]]) -> HostRule:
    """Return the rule for hosts that match *match*. Raises `ConfigError` that says what would be right."""
    pattern = host_pattern(match) if isinstance(match, str) else ""
    if not pattern:
        raise ConfigError(f"{_shown(match)} is not a host pattern; write a host name (*.example.org) or an origin")
    values: list[tuple[str, Any]] = []
    for key, text in given:
        if key not in KEYS:
            near = get_close_matches(key[:MAX_SHOWN].lower().replace("_", "-"), KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the settings of a host are {', '.join(KEYS)}"
            raise ConfigError(f"{_shown(key)} is not a setting of a host; {hint}")
        if key not in MANY and any(key == known for known, _ in values):
            raise ConfigError(f"{key}: given twice; write it once")
        if key in {"auth", "client-cert"}:
            check_owner(match, key)
        try:
            values.append((key, KEYS[key].parse(text)))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
    if not values:
        raise ConfigError(f"{match} has no settings; write, for example, {match} rate=1")
    return HostRule(pattern, tuple(values))


def decisive(rules: Iterable[tuple[str, HostRule]]) -> dict[str, tuple[str, Any]]:
    """Return for each key that one of *rules* sets the name of the first such rule and its value.

    *rules* are those that apply to a host: pairs of name and rule, in order. The value of a repeatable key is a tuple
    of all values of that rule.
    """
    found: dict[str, tuple[str, Any]] = {}
    for name, rule in rules:
        own: dict[str, Any] = {}
        for key, value in rule.given:
            own[key] = (*own.get(key, ()), value) if key in MANY else value
        found = {key: (name, value) for key, value in own.items()} | found
    return found


def _read(given: Any) -> HostRule:
    if isinstance(given, HostRule):
        return given
    if isinstance(given, dict):
        return _of_table(given)
    if not isinstance(given, str):
        raise TypeError
    match, *words = shlex.split(given)  # raises ValueError
    pairs = [word.partition("=") for word in words]
    if wrong := next((key for key, sign, _ in pairs if not sign), ""):
        raise ConfigError(f"{_shown(wrong)} is not KEY=VALUE; quote a value that has blanks")
    return host_rule(match, ((key, from_text(KEYS.get(key), value)) for key, _, value in pairs))


def from_text(kind: OptionType | None, text: str) -> Any:
    """Return *text* as a TOML value of *kind*: a truth value has no quotes there, and so it has its own type."""
    return {"true": True, "false": False}.get(text, text) if kind is BOOLEAN else text


def to_text(kind: OptionType, value: Any) -> str:
    """Return *value* of *kind* as text that `from_text` reads."""
    written = kind.write(value)
    return str(written).lower() if isinstance(written, bool) else str(written)


def _of_table(table: dict[str, Any]) -> HostRule:
    given: list[tuple[str, Any]] = []
    for key, value in table.items():
        if key == MATCH:
            continue
        if key in MANY and isinstance(value, list):
            given += ((key, one) for one in value)
        else:
            given.append((key, value))
    return host_rule(table.get(MATCH), given)


def table_of(rule: HostRule) -> dict[str, Any]:
    """Return *rule* as a TOML table: key and TOML value, those of repeatable keys as a list."""
    return {MATCH: rule.match, **grouped((key, KEYS[key].write(value)) for key, value in rule.given)}


def grouped(given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return *given*, TOML keys and values, with the values of repeatable keys as lists."""
    table: dict[str, Any] = {}
    for key, value in given:
        table[key] = [*table.get(key, []), value] if key in REPEATABLE else value
    return table


def without_left_out(text: str) -> str:
    """Return the rule *text* without values that were left out as secrets, and without files; "" if nothing remains."""
    match, *words = shlex.split(text)
    kept = [word for word in words if not is_incomplete(*word.partition("=")[::2])]
    return shlex.join((match, *kept)) if kept else ""


def is_incomplete(key: str, text: str) -> bool:
    """Return True if *text*, the value of *key* in a WARC file, cannot be used: a part was left out."""
    return key in KEYS_WITH_FILES or (key == "header" and text.endswith(f": {LEFT_OUT}"))


def _shown(given: Any) -> str:
    shown = repr(given)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


HOST_RULE = OptionType(
    "'HOSTS KEY=VALUE …'",
    "a host pattern and its settings ('*.example.org rate=1/2 host-concurrency=1')",
    _read,
    str,
)
