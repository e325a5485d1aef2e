"""Login forms: the page with the form, its fields, and the signs of success and of being logged out.

In crawl.toml each is a table `[[login]]`; on the command line it is one text:
`--login 'https://example.org/login user=me password=env:SITE_PASSWORD logged-out="Please log in"'`. There, a field with
the name of a setting is written as `field:NAME=VALUE`. A password is never written here, only where it is.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from archiver import url
from archiver.config.option_types import BOOLEAN, COUNT, PATTERN, TEXT, OptionType
from archiver.config.secrets import SecretSource, secret_source
from archiver.errors import ConfigError

PAGE, FIELDS, FIELD = "page", "fields", "field:"
COOKIE, REACHED = "cookie:", "url:"  # kinds of signs of success; any other text is looked for in the page
EXAMPLE = "https://example.org/login user=me password=env:SITE_PASSWORD"
MAX_SHOWN = 60  # characters of a name in a message

_SOURCES = ("env:", "file:", "keyring:")
_PASSWORD = re.compile(r"pass|pwd|secret", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Login:
    """One login form, and how to see that it worked."""

    page: str  # canonical URL of the page with the form
    fields: tuple[tuple[str, str | SecretSource], ...]  # names and values
    form: str = ""  # its number, id or a part of its action; "": the one with a password
    success: str = ""
    logged_out: str = ""  # a regular expression, for the text of a page or where it redirects to
    attempts: int = 3  # logins in one run
    store_login: bool = True

    def __str__(self) -> str:
        words = [_named(name, value) for name, value in self.fields]
        for key, kind in _SETTINGS.items():
            value = getattr(self, key.replace("-", "_"))
            if value != getattr(_DEFAULT, key.replace("-", "_")):
                written = "yes" if value is True else "no" if value is False else str(kind.write(value))
                words.append(f"{key}={shlex.quote(written)}")
        return " ".join((self.page, *words))

    def is_at(self, address: str) -> bool:
        """Return True if the canonical URL *address* is that of the form, perhaps with more in its query.

        A wiki may have all its pages at one path, so that only the query tells the form from the rest.
        """
        (path, _, query), (there, _, given) = self.page.partition("?"), address.partition("?")
        return path == there and set(query.split("&") if query else ()) <= set(given.split("&"))


def _yes_or_no(given: Any) -> bool:
    if given in {"yes", "no"}:
        return bool(given == "yes")
    return bool(BOOLEAN.parse(given))


_SETTINGS: dict[str, OptionType] = {
    "form": TEXT,
    "success": TEXT,
    "logged-out": PATTERN,
    "attempts": COUNT,
    "store-login": OptionType("", "yes or no", _yes_or_no),
}


def login(page: Any, fields: Iterable[tuple[str, Any]], given: Mapping[str, Any]) -> Login:
    """Return the login at URL *page* with *fields* and *given* settings. Raises `ConfigError`."""
    address = url.canonical(page) if isinstance(page, str) else None
    if address is None:
        raise ConfigError(f"{repr(page)[:MAX_SHOWN]} is not the URL of a login page; write, for example, {EXAMPLE}")
    pairs = tuple((name, _value(name, value)) for name, value in fields)
    if not pairs:
        raise ConfigError(f"{address} has no fields; write, for example, {EXAMPLE}")
    for name, _ in pairs:
        if not name or "=" in name or [known for known, _ in pairs].count(name) > 1:
            raise ConfigError(f"field {name!r:.60}: write each name once, without =")
    settings: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _SETTINGS:
            raise ConfigError(
                f"{key!r:.60} is not a setting of a login; they are {', '.join((PAGE, FIELDS, *_SETTINGS))}"
            )
        try:
            settings[key.replace("-", "_")] = _SETTINGS[key].parse(value)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
    return Login(address, pairs, **settings)


def _value(name: str, given: Any) -> str | SecretSource:
    """Return the value of the field *name*: the place of a secret, or a text that is none."""
    if not isinstance(given, str):
        raise ConfigError(f"field {name!r:.60}: not a text; write it in quotes")
    try:
        if _PASSWORD.search(name) or given.startswith(_SOURCES):
            return secret_source(given)
        return str(TEXT.parse(given))
    except ConfigError as error:
        raise ConfigError(f"field {name!r:.60}: {error}") from None


def table_of(one: Login) -> dict[str, Any]:
    """Return *one* as a TOML table."""
    table: dict[str, Any] = {PAGE: one.page, FIELDS: {name: str(value) for name, value in one.fields}}
    for key, kind in _SETTINGS.items():
        value = getattr(one, key.replace("-", "_"))
        if value != getattr(_DEFAULT, key.replace("-", "_")):
            table[key] = kind.write(value)
    return table


def _read(given: Any) -> Login:
    if isinstance(given, Login):
        return given
    if isinstance(given, dict):
        rest = {key: value for key, value in given.items() if key not in {PAGE, FIELDS}}
        fields = given.get(FIELDS, {})
        if not isinstance(fields, dict):
            raise ConfigError('fields is not a table; write fields = { user = "me", password = "env:SITE_PASSWORD" }')
        return login(given.get(PAGE), fields.items(), rest)
    if not isinstance(given, str):
        raise ConfigError(f"a login is a text; write, for example, {EXAMPLE}")
    try:
        page, *words = shlex.split(given)
    except ValueError:  # a message with the input could show a secret
        raise ConfigError(
            f"a login is a URL and NAME=VALUE, with quotes in pairs; write, for example, {EXAMPLE}"
        ) from None
    pairs = [word.partition("=") for word in words]
    if not all(sign for _, sign, _ in pairs):
        raise ConfigError(f"a word is not NAME=VALUE; quote a value that has blanks, for example {EXAMPLE}")
    fields = [(name.removeprefix(FIELD), value) for name, _, value in pairs if name not in _SETTINGS]
    return login(page, fields, {name: value for name, _, value in pairs if name in _SETTINGS})


def _named(name: str, value: str | SecretSource) -> str:
    prefix = FIELD if name in _SETTINGS or name.startswith(FIELD) else ""
    return shlex.quote(f"{prefix}{name}={value}")


_DEFAULT = Login("", ())

LOGIN = OptionType(
    "'URL NAME=VALUE …'",
    f"the URL of a login page, its fields and settings ('{EXAMPLE}')",
    _read,
    str,
)
