"""Secrets in settings: where a secret comes from, never its value. Pure; `archiver.crawl.secrets` reads the values.

A source is written as `env:NAME` (an environment variable), `file:/PATH` (the first line of a file that only its owner
may read) or `keyring:SERVICE/USER` (the keyring of the system). Only the source is in crawl.toml, warcinfo and
reports. No message shows what was given in its place, because that may be the secret itself.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from archiver.errors import ConfigError

FORMS = "env:NAME, file:/PATH or keyring:SERVICE/USER"
PLAIN = f"a secret is not written here, but where it is: {FORMS}"

_PATTERNS = {
    "env": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    "file": re.compile(r"(?:/|~/|[A-Za-z]:[\\/]).*[^/\\]"),
    "keyring": re.compile(r"[^/]+/.+"),
}
_IN_HEADER = re.compile(r"([^:]+: (?:[A-Za-z][A-Za-z0-9-]* )?)((?:env|file|keyring):.*)")
_RIGHT = {
    "env": "write the name of an environment variable: env:NAME",
    "file": "write an absolute path, or one that begins with ~/: file:/PATH",
    "keyring": "write the names of the service and of the user: keyring:SERVICE/USER",
}


class SecretKind(StrEnum):
    """The kinds of places that hold secrets."""

    ENV = "env"
    FILE = "file"
    KEYRING = "keyring"


@dataclass(frozen=True, slots=True)
class SecretSource:
    """The place of one secret."""

    kind: SecretKind
    name: str  # of the variable, the path, or SERVICE/USER

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def secret_source(given: Any) -> SecretSource:
    """Return the source written as *given*. Raises `ConfigError` that does not contain *given*."""
    if isinstance(given, SecretSource):
        return given
    if not isinstance(given, str):
        raise ConfigError(PLAIN)
    kind, colon, name = given.partition(":")
    if not colon or kind not in _PATTERNS:
        raise ConfigError(PLAIN)
    if not name.isprintable() or _PATTERNS[kind].fullmatch(name) is None:
        raise ConfigError(_RIGHT[kind])
    return SecretSource(SecretKind(kind), name)


def source_in_header(line: str) -> tuple[str, SecretSource] | None:
    """Return the source at the end of a header *line* and the text before it; None if it has none.

    A scheme may be before the source: `Authorization: Bearer env:TOKEN`. Raises `ConfigError` for a wrong source.
    """
    found = _IN_HEADER.fullmatch(line)
    return None if found is None else (found[1], secret_source(found[2]))
