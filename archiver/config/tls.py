"""TLS in settings: client certificates, certificate authorities and versions. Files are named, not read. Pure.

On the command line a client certificate is `HOSTS CERT key=KEY password=SECRET`. In a `[[host]]` table, for a seed and
in `--host` it has no HOSTS. All files are PEM. `archiver.fetch.tls` reads them.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from archiver.config.auth import check_owner, covers, host_pattern
from archiver.config.option_types import LEFT_OUT, OptionType
from archiver.config.secrets import SecretSource, secret_source
from archiver.errors import ConfigError

EXAMPLE = "'example.org ~/me.pem key=~/me.key password=env:NAME'"
VERSIONS = ("1.0", "1.1", "1.2", "1.3")
KEYS_WITH_FILES = ("client-cert", "ca-file")
TLS_KEYS = (*KEYS_WITH_FILES, "system-ca", "tls-min", "tls-max")

_FURTHER = re.compile(r"(key|password)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClientCert:
    """A client certificate: for which hosts, and where it and its key are."""

    hosts: str  # a host pattern; "": all hosts of the rule or seed that has it
    cert: str  # path of a PEM file; "": left out of what is handed on
    key: str = ""  # path of a PEM file; "": the key is in `cert`
    secret: SecretSource | None = None  # where the password of the key is
    password: str = field(default="", repr=False)  # once it is read

    def __str__(self) -> str:
        if not self.cert:
            return f"{self.hosts} {LEFT_OUT}".lstrip()
        words = [self.hosts] if self.hosts else []
        words.append(shlex.quote(self.cert))
        words += [f"key={shlex.quote(self.key)}"] if self.key else []
        words += [f"password={shlex.quote(str(self.secret))}"] if self.secret else []
        return " ".join(words)

    def covers(self, origin: str) -> bool:
        """Return True if the certificate is for the host *origin*, to which a rule with it applies."""
        return origin.startswith("https://") and (not self.hosts or covers(self.hosts, origin))

    def moved(self, change: Callable[[str], str]) -> "ClientCert":
        """Return the same with the paths that *change* returns for those of its files."""
        return replace(self, cert=change(self.cert), key=change(self.key) if self.key else "")

    @property
    def bare(self) -> "ClientCert":
        """The same without the places of its files and of the password."""
        return ClientCert(self.hosts, "")


def client_cert(given: Any) -> ClientCert:
    """Return the client certificate in *given*. Raises `ConfigError`."""
    if isinstance(given, ClientCert):
        return given
    if not isinstance(given, str):
        raise ConfigError(f"not a text; write {EXAMPLE}")
    if given.endswith(LEFT_OUT):
        raise ConfigError("the place of the client certificate was left out; write it again or delete the line")
    try:
        words = shlex.split(given)
    except ValueError:
        raise ConfigError(f"a quote is not closed; write {EXAMPLE}") from None
    further = [(found[1], found[2]) for word in words if (found := _FURTHER.fullmatch(word))]
    named = dict(further)
    places = [word for word in words if _FURTHER.fullmatch(word) is None]
    if (
        len(named) < len(further)
        or not 1 <= len(places) <= 2
        or not all(word and word.isprintable() for word in (*places, *named.values()))
    ):
        raise ConfigError(f"not hosts, a PEM file, key=FILE and password=SECRET; write {EXAMPLE}")
    hosts = host_pattern(places[0]) if len(places) > 1 else ""
    if len(places) > 1:
        if not hosts or hosts.startswith("http://"):
            raise ConfigError(f"{places[0]!r:.60} is not a pattern of https hosts; write {EXAMPLE}")
        check_owner(hosts, "client-cert")
    secret = secret_source(named["password"]) if "password" in named else None
    return ClientCert(hosts, places[-1], named.get("key", ""), secret)


def _file(given: Any) -> str:
    if not isinstance(given, str) or not given or not given.isprintable():
        raise ValueError
    return given


def _version(given: Any) -> str:
    text = str(given) if isinstance(given, float) else given
    if text not in VERSIONS:
        raise ValueError
    return str(text)


CLIENT_CERT = OptionType(
    "'HOSTS CERT …'",
    f"host pattern, PEM file, key=FILE and password=SECRET ({EXAMPLE}); without hosts in rules for hosts",
    client_cert,
    str,
)
CA_FILE = OptionType("FILE", "the path of a PEM file with certificates", _file)
TLS_VERSION = OptionType("VERSION", 'one of "1.0", "1.1", "1.2", "1.3"', _version)
