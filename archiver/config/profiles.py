"""Where the settings of a new crawl come from, and sets of settings with a name. Pure.

A later source replaces an earlier one: defaults, the user's own defaults, a profile, the file of --config, environment
variables, options.
"""

import hashlib
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from archiver.config import toml
from archiver.config.option_types import BOOLEAN
from archiver.config.settings import Settings, every_setting, key_of
from archiver.errors import ConfigError

DEFAULT = "default"
VARIABLE = "ARCHIVER_"  # in front of the names of environment variables
SWITCH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
CLOSE = 0.93  # names that are as similar as this differ by a letter or two


PROFILES = {  # in the form of crawl.toml
    # For small or old servers.
    "gentle": 'rate = "1/2"\nhost-concurrency = 1\n',
    # For very many sites.
    "broad": 'concurrency = 256\nslow-concurrency = 1024\npoliteness-group = "ip"\nmax-urls-per-host = 10000\n',
    # For single pages, with all that they need.
    "one-page": 'scope = "page"\nprobe = "off"\n',
    # For sites of the user's own network.
    "intranet": 'allow-private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]\n'
    "rate = 20\nhost-concurrency = 8\n",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Values by the names of their fields, and where each comes from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]

    @classmethod
    def of(cls, values: Mapping[str, Any], origin: str) -> "Source":
        """Return *values*, which all come from *origin*."""
        return cls(values, dict.fromkeys(values, origin))


def profile(name: str, own: Mapping[str, str]) -> Source:
    """Return the settings of the profile *name*: one of the user's *own*, by name, or one of `PROFILES`."""
    texts = {**PROFILES, **own}
    if name not in texts:
        raise ConfigError(f"--profile {name!r}: no such profile; there are {', '.join(sorted(texts))}")
    return Source.of(toml.parse(texts[name], f"profile {name}"), f"--profile {name}")


def layered(sources: Iterable[Source]) -> Source:
    """Return the values of all *sources*; those of later ones replace those of earlier ones."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source in sources:
        values |= source.values
        origins |= source.origins
    return Source(values, origins)


def variable(key: str) -> str:
    """Return the name of the environment variable that sets *key*."""
    return VARIABLE + key.replace("-", "_").upper()


def from_environment(variables: Mapping[str, str], keys: Container[str] | None = None) -> Source:
    """Return the settings in environment *variables*; with *keys*, only these. Raises `ConfigError`.

    A variable has the value as an option has it, yes or no for a switch, and one line for each value of a list.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for _, entry in every_setting():
        key, name = key_of(entry), variable(key_of(entry))
        if name not in variables or not (keys is None or key in keys):
            continue
        kind, text = entry.metadata["kind"], variables[name]
        try:
            if entry.metadata["many"]:
                values[entry.name] = tuple(kind.parse(line.strip()) for line in text.splitlines() if line.strip())
            else:
                values[entry.name] = kind.parse(SWITCH.get(text.lower(), text) if kind is BOOLEAN else text)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        origins[entry.name] = name
    return Source(values, origins)


def misspelt(variables: Iterable[str]) -> list[tuple[str, str]]:
    """Return the *variables* that look like those of a setting but are not, each with the one that was meant."""
    known = [variable(key_of(entry)) for _, entry in every_setting()]
    unknown = sorted(name for name in variables if name.startswith(VARIABLE) and name not in known)
    near = ((name, get_close_matches(name, known, n=1, cutoff=CLOSE)) for name in unknown)
    return [(name, found[0]) for name, found in near if found and name != variable("profile")]


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where the value of a setting came from, and a digest of that value, which may be secret."""

    origin: str
    digest: str


def recorded(
    settings: Settings, origins: Mapping[str, str], before: Mapping[str, SettingOrigin]
) -> dict[str, SettingOrigin]:
    """Return, by key, what is to be kept of the *origins* (by name of field) of *settings*, and of those *before*."""
    digests = _digests(settings)
    kept = {key: known for key, known in before.items() if digests.get(key) == known.digest}
    given = {
        key_of(entry): SettingOrigin(origins[entry.name], digests[key_of(entry)])
        for _, entry in every_setting()
        if entry.name in origins
    }
    return kept | given


def origin_of(settings: Settings, known: Mapping[str, SettingOrigin]) -> dict[str, str]:
    """Return, by key, where each value of *settings* came from; "" if it was changed since, or if that is unknown."""
    digests, defaults = _digests(settings), _digests(Settings())
    found = {}
    for key, digest in digests.items():
        if key in known and known[key].digest == digest:
            found[key] = known[key].origin
        else:
            found[key] = DEFAULT if digest == defaults[key] and key not in known else ""
    return found


def _digests(settings: Settings) -> dict[str, str]:
    return {
        key_of(entry): hashlib.sha256(repr(getattr(getattr(settings, part), entry.name)).encode()).hexdigest()[:16]
        for part, entry in every_setting()
    }
