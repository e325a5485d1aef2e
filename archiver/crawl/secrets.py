"""Reads the values of secrets, once, before anything else of a crawl happens. They stay in memory."""

import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from archiver.config.auth import EXAMPLE
from archiver.config.proxies import ENVIRONMENT, NONE, parts, proxy_address
from archiver.config.secret_settings import event_sources, proxy_sources, secret_sources, source_at_end, with_changed
from archiver.config.secrets import SecretKind, SecretSource
from archiver.config.settings import Settings
from archiver.config.tls import EXAMPLE as CERT_EXAMPLE
from archiver.config.tls import ClientCert
from archiver.errors import ConfigError

LONGEST = 64 << 10  # bytes of the first line of a file
OTHERS = stat.S_IRGRP | stat.S_IROTH


class Secrets:
    """The values of secrets by their source. Its text form shows none of them."""

    def __init__(self, values: dict[SecretSource, str] | None = None) -> None:
        self._values = values or {}

    def __getitem__(self, source: SecretSource) -> str:
        return self._values[source]

    def filled(self, settings: Settings) -> Settings:
        """Return *settings* with the secrets of headers, client keys and proxies. Only requests may be made of it."""
        if not self:
            return settings
        return with_changed(settings, {"header": self._header, "client-cert": self._cert, "proxy": self._with_login})

    def _cert(self, cert: ClientCert) -> ClientCert:
        return replace(cert, password=self._values.get(cert.secret, "")) if cert.secret else cert

    def _header(self, line: str) -> str:
        held = source_at_end(line)
        return line if held is None or held[1] not in self._values else held[0] + self._values[held[1]]

    def _with_login(self, setting: str) -> str:
        pattern, proxy = parts(setting)
        address = None if proxy in (ENVIRONMENT, NONE) else proxy_address(proxy)
        if address is None or address.secret not in self._values:
            return setting
        return f"{pattern} {address.with_login(self._values[address.secret])}".strip()

    def __bool__(self) -> bool:
        return bool(self._values)

    def __repr__(self) -> str:
        return f"Secrets of {', '.join(map(str, self._values)) or 'nothing'}"


def read_secrets(settings: Settings) -> Secrets:
    """Return all secrets that *settings* name. Raises `ConfigError` if one is missing."""
    if any(not rule.space for rule in settings.fetch.auth):
        raise ConfigError(f"auth: without a URL, the password could go to any host; write {EXAMPLE}")
    if any(not cert.hosts for cert in settings.tls.client_cert):
        raise ConfigError(f"client-cert: without hosts, it could be shown to any host; write {CERT_EXAMPLE}")
    secrets = _read((*secret_sources(settings), *proxy_sources(settings), *event_sources(settings)))
    secrets.filled(settings)  # refuses what is no login of a proxy
    return secrets


def _read(sources: Iterable[SecretSource]) -> Secrets:
    values: dict[SecretSource, str] = {}
    for source in sources:
        if source not in values:
            values[source] = read_source(source)
    return Secrets(values)


def read_source(source: SecretSource) -> str:
    """Return the secret of *source*. Raises `ConfigError` if it is missing."""
    value = _READERS[source.kind](source)
    if not value:
        raise ConfigError(f"{source} is empty; put the secret there")
    if any(letter < " " or letter == "\x7f" for letter in value):
        raise ConfigError(f"{source}: the secret has control characters; write it on one line of text")
    return value


def _of_environment(source: SecretSource) -> str:
    if source.name not in os.environ:
        raise ConfigError(f"{source}: the environment variable {source.name} is not set; set it to the secret")
    return os.environ[source.name]


def _of_file(source: SecretSource) -> str:
    path = Path(source.name).expanduser()
    try:
        with path.open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & OTHERS:
                raise ConfigError(f"{source}: others may read this file; run chmod 600 {path}")
            line = file.readline(LONGEST)
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror or error}") from None
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{source}: the first line is not UTF-8 text") from None


def _of_keyring(source: SecretSource) -> str:
    try:
        import keyring  # noqa: PLC0415 - an extra, and slow to import
        from keyring.errors import KeyringError  # noqa: PLC0415 - part of the extra
    except ImportError:
        raise ConfigError(f"{source} needs the package keyring: pip install 'warchiver[keyring]'") from None
    service, _, user = source.name.partition("/")
    try:
        value = keyring.get_password(service, user)
    except KeyringError as error:
        raise ConfigError(f"{source} cannot be read: {' '.join(str(error).split())}") from None
    if value is None:
        raise ConfigError(f"{source}: the keyring has no such entry; run keyring set {service} {user}")
    return str(value)


_READERS = {
    SecretKind.ENV: _of_environment,
    SecretKind.FILE: _of_file,
    SecretKind.KEYRING: _of_keyring,
}
