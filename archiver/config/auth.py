"""User names and passwords for HTTP authentication, for which URLs, and where the password is; patterns of hosts. Pure.

On the command line one rule is `URL USER:SECRET`: the protection space is every URL that begins with URL, on this
scheme, host and port. In a `[[host]]` table it is `USER:SECRET`, for every URL of the hosts that match.

A host pattern is a host name in which `*` matches any characters, or an origin such as `https://example.org:8443`.
Without a scheme, a port (`example.org:8443`) matches http and https.
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


_PATTERN = re.compile(r"(?P<scheme>https?://)?(?P<name>\[[0-9a-f:.]+\]|[^\s/=\"':\[\]]+)(?::(?P<port>[0-9]{1,5}|\*))?")
_WHOLE = re.compile(r"(?:https?://)?(?:\*\.(?=[^.*?]+\.))?[^*?]+")
_DEFAULT_PORTS = {"http://": "80", "https://": "443"}


def host_pattern(text: str) -> str:
    """Return the pattern *text* as `covers` needs it, with names as in canonical URLs; "" if it is no pattern."""
    text = text.lower()
    found = _PATTERN.fullmatch(f"[{text}]" if text.count(":") > 1 and text[:1] != "[" and "/" not in text else text)
    if found is None:
        return ""
    scheme, name, port = found["scheme"] or "", found["name"], found["port"] or ""
    if name.startswith("["):
        address = url.canonical(f"http://{name}/")
        name = url.host(address) if address else ""
    elif not name.isascii():
        labels = [label if label.isascii() else _ascii(label) for label in name.split(".")]
        name = ".".join(labels) if all(labels) else ""
    if not name:
        return ""
    port = "" if port == _DEFAULT_PORTS.get(scheme) else port
    return f"{scheme}{name}:{port}" if port else f"{scheme}{name}"


def _ascii(label: str) -> str:
    """Return the *label* of a host name as URLs have it; "" if no URL can have it."""
    address = url.canonical(f"http://{label}.example/") if "*" not in label and "?" not in label else None
    return url.host(address).removesuffix(".example") if address else ""


def covers(pattern: str, origin: str) -> bool:
    """Return True if *pattern*, as `host_pattern` returns it, matches *origin*, the start of a canonical URL."""
    subject = origin
    if "://" not in pattern:
        subject = url.host(f"{origin}/")
        if ":" in pattern.rpartition("]")[2]:
            scheme, _, authority = origin.partition("://")
            port = authority.rpartition("]")[2].partition(":")[2]
            subject = f"{subject}:{port or _DEFAULT_PORTS[f'{scheme}://']}"
    return fnmatchcase(subject, pattern.replace("[", "[[]"))


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
