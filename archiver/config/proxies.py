"""Proxies as settings name them: kind, address, user, and the place of the password. Pure.

A password never is part of a setting, because settings are stored: in crawl.toml, warcinfo and reports.
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from archiver.config.auth import host_pattern
from archiver.config.option_types import OptionType
from archiver.config.secrets import SecretSource, secret_source
from archiver.errors import ConfigError

KINDS = ("http", "socks4", "socks5", "socks5h")
ENVIRONMENT = "env"  # as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say
NONE = "none"  # no proxy
MAX_LOGIN = 255  # bytes of a user name or password (RFC 1929)

_URL = re.compile(r"([A-Za-z0-9]+)://(?:(\S*)@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})/?")
_LOGIN = re.compile(r"(?:([^:@/\s]+):)?((?:env|file|keyring):\S*)")
_RIGHT = "a proxy; write, for example, http://proxy.example:3128 or socks5h://127.0.0.1:9050"


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """A proxy as a setting names it."""

    kind: str
    host: str
    port: int
    user: str = ""
    secret: SecretSource | None = None  # where the password of `user` is, or USER:PASSWORD if there is no user

    @property
    def name(self) -> str:
        """The URL without the login."""
        return f"{self.kind}://{self.host}:{self.port}"

    def __str__(self) -> str:
        login = ":".join(filter(None, (self.user, str(self.secret or ""))))
        return f"{self.kind}://{login}@{self.host}:{self.port}" if login else self.name

    def with_login(self, secret: str) -> str:
        """Return the URL with user and password; only requests may be made of it. *secret* is what the place holds."""
        user, colon, password = (self.user, ":", secret) if self.user else secret.partition(":")
        if not (colon and user):
            raise ConfigError(f"proxy {self}: {self.secret} is not USER:PASSWORD; write both there")
        if not all(text.isascii() and text.isprintable() and len(text) <= MAX_LOGIN for text in (user, password)):
            raise ConfigError(f"proxy {self}: the login in {self.secret} is not printable ASCII of {MAX_LOGIN} bytes")
        return f"{self.kind}://{quote(user, safe='')}:{quote(password, safe='')}@{self.host}:{self.port}"


def proxy_address(text: str) -> ProxyAddress:
    """Return the proxy that *text* names. Raises `ConfigError`, which never shows a password."""
    found = _URL.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{_without_login(text)!r} is not {_RIGHT}")
    kind, login, host, port = found[1].lower(), found[2] or "", found[3].lower(), int(found[4])
    place = f"{kind}://{host}:{port}"
    if kind not in KINDS:
        hint = " (a proxy that is itself reached over TLS is not supported)" if kind == "https" else ""
        raise ConfigError(f"{place}: the kinds of proxies are {', '.join(KINDS)}{hint}")
    if not 0 < port < 1 << 16:
        raise ConfigError(f"{place}: the port is not between 1 and 65535")
    named = _LOGIN.fullmatch(login)
    if named is not None:
        if kind == "socks4":
            raise ConfigError(f"{place}: socks4 knows no passwords; write socks4://USER@HOST:PORT or use socks5")
        try:
            secret = secret_source(named[2])
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from None
        return ProxyAddress(kind, host, port, named[1] or "", secret)
    if login and (":" in login or kind != "socks4" or not (login.isascii() and login.isprintable())):
        raise ConfigError(
            f"{place}: a login in the URL would be stored with the settings; put the password into an environment "
            f"variable and write {kind}://USER:env:NAME@{host}:{port}, or env:NAME@ for USER:PASSWORD (file:/PATH and "
            "keyring:SERVICE/USER are possible too)"
        )
    return ProxyAddress(kind, host, port, login)


def _without_login(text: str) -> str:
    shown = text.rpartition("@")[2]
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def parts(setting: str) -> tuple[str, str]:
    """Return the host pattern of *setting*, "" if it is for all hosts, and the proxy."""
    pattern, _, proxy = setting.strip().rpartition(" ")
    return pattern.strip().lower(), proxy


def _read(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    pattern, proxy = parts(given)
    known = host_pattern(pattern)
    if pattern and not known:
        raise ConfigError(f"not {_RIGHT}, or, for some hosts, '*.onion socks5h://127.0.0.1:9050'")
    return f"{known} {proxy if proxy in (ENVIRONMENT, NONE) else proxy_address(proxy)}".strip()


PROXY = OptionType(
    "PROXY",
    "the URL of a proxy (http://proxy.example:3128, socks5h://127.0.0.1:9050, http://USER:env:NAME@proxy.example:3128 "
    f'with the password in the environment variable NAME; also file:/PATH, keyring:SERVICE/USER), "{ENVIRONMENT}" or '
    f"\"{NONE}\"; for some hosts, their pattern before it ('*.onion socks5h://127.0.0.1:9050')",
    _read,
)
