"""User names and passwords for HTTP authentication, for which URLs, and where the password is; patterns of hosts. Pure.

On the command line one rule is `URL USER:SECRET`: the protection space is every URL that begins with URL, on this
scheme, host and port. In a `[[host]]` table it is `USER:SECRET`, for every URL of the hosts that match.

A host pattern is a host name in which `*` matches any characters, or an origin such as `https://example.org:8443`.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from archiver import url
from archiver.config.option_types import OptionType
from archiver.config.secrets import FORMS, SecretSource, secret_source
from archiver.errors import ConfigError

EXAMPLE = "'https://example.org/private/ USER:env:NAME'"

_USER = re.compile(r"[^:\x00-\x1f\x7f]+")  # RFC 7617 §2: a user name has no colon


@dataclass(frozen=True, slots=True)
class AuthRule:
    """A user name and the place of the password for one protection space."""

    space: str  # a canonical URL; "": the whole host
    user: str
    secret: SecretSource

    def __str__(self) -> str:
        return f"{self.space} {self.user}:{self.secret}".lstrip()

    def covers(self, address: str) -> bool:
        """Return True if the canonical URL *address* is in the protection space."""
        if not address.startswith(self.space):
            return False
        rest = address[len(self.space) :]
        return not rest or self.space.endswith("/") or rest[0] in "/?"


def auth_rule(given: Any) -> AuthRule:
    """Return the rule in *given*. Raises `ConfigError` that shows neither user nor password."""
    if isinstance(given, AuthRule):
        return given
    if not isinstance(given, str):
        raise ConfigError(f"not a text; write {EXAMPLE}")
    first, blank, rest = given.strip().partition(" ")
    has_space = bool(blank) and first.lower().startswith(("https://", "http://"))
    user, colon, secret = (rest.strip() if has_space else given.strip()).partition(":")
    if not colon or _USER.fullmatch(user) is None or (user.startswith(("https", "http")) and secret.startswith("//")):
        raise ConfigError(f"not a URL, a user name and the place of the password; write {EXAMPLE}")
    return AuthRule(_space(first) if has_space else "", user, secret_source(secret))


def _space(text: str) -> str:
    address = url.canonical(text)
    if address is None or "@" in text or "?" in text or "#" in text:
        raise ConfigError(f"the URL has a part that no protection space has; write {EXAMPLE}")
    return address


_PATTERN = re.compile(r"(?:https?://)?[^\s/=\"']+")
_WHOLE = re.compile(r"(?:https?://)?(?:\*\.(?=[^.*?]+\.))?[^*?]+")


def is_host_pattern(text: str) -> bool:
    """Return True if *text* is a host pattern."""
    return _PATTERN.fullmatch(text) is not None


def covers(pattern: str, origin: str) -> bool:
    """Return True if *pattern* matches the host *origin*, scheme and authority of a canonical URL."""
    return fnmatchcase(origin if "://" in pattern else url.host(f"{origin}/"), pattern)


def check_owner(pattern: str, key: str) -> None:
    """Refuse a pattern that may match hosts of different owners, for the secret setting *key*."""
    if _WHOLE.fullmatch(pattern) is None:
        raise ConfigError(f"{key}: {pattern} may match hosts of others; write a host name, or *.example.org")


AUTH = OptionType(
    "'URL USER:SECRET'",
    f"a URL, a user name and where the password is: {FORMS} ({EXAMPLE})",
    auth_rule,
    str,
)
