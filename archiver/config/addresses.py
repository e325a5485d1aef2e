"""Network addresses as settings name them: of hosts, of DNS servers, and of this machine. Pure."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote

from archiver import url
from archiver.config.option_types import OptionType
from archiver.errors import ConfigError

DNS_PORT = 53
ANY = "any"
LOCAL_KEYS = frozenset(("source-address", "ip-version"))  # settings of this machine's end of connections
_SERVER = re.compile(
    r"\[(?P<v6>[^\[\]]+)\](?::(?P<port6>[0-9]+))?|(?P<v4>[^:\[\]]+)(?::(?P<port4>[0-9]+))?|(?P<bare>[^\[\]]+)"
)
VERSIONS = ("4", "6", ANY)  # of the Internet Protocol


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """The addresses that the user gives to a host, at one port or (0) at all ports."""

    host: str
    port: int
    addresses: tuple[str, ...]

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{self.host}{port}={','.join(self.addresses)}"


def host_addresses(text: str) -> HostAddresses:
    """Return what HOST[:PORT]=ADDRESS[,ADDRESS] means. Raises ValueError if *text* is something else."""
    place, sign, given = text.strip().partition("=")
    name, colon, number = place.strip().partition(":")
    port = _port(number) if colon else 0
    canonical = url.canonical(f"http://{name}/") if sign and not set(name) & set("/?#@[]*") else None
    host = url.host(canonical).rstrip(".") if canonical is not None else ""
    if not host or host.startswith("[") or host.replace(".", "").isdecimal():  # an address needs no look-up
        raise ValueError
    return HostAddresses(host, port, tuple(dict.fromkeys(_address(each) for each in given.split(","))))


@dataclass(frozen=True, slots=True)
class NameServer:
    """A DNS server."""

    address: str
    port: int = DNS_PORT

    def __str__(self) -> str:
        address = f"[{self.address}]" if ":" in self.address else self.address
        return address if self.port == DNS_PORT else f"{address}:{self.port}"


def name_server(text: str) -> NameServer:
    """Return the DNS server ADDRESS[:PORT]. Raises ValueError if *text* is something else."""
    found = _SERVER.fullmatch(text.strip())
    if found is None:
        raise ValueError
    address = _address(found["v6"] or found["v4"] or found["bare"])
    if (":" in address) != (found["v4"] is None):
        raise ValueError
    number = found["port6"] or found["port4"]
    return NameServer(address, _port(number) if number else DNS_PORT)


def _address(text: str) -> str:
    given = text.strip()
    if "%" in given:
        raise ValueError
    return str(ip_address(given))


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 1 << 16):
        raise ValueError
    return int(text)


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def _version(given: Any) -> str:
    word = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""
    if word not in VERSIONS:
        raise ValueError
    return word


RESOLVE = OptionType(
    "HOST=ADDRESS",
    "a host name and its addresses (www.example.org=192.0.2.1, or example.org:8443=192.0.2.1,2001:db8::1)",
    lambda given: str(host_addresses(_text(given))),
)
DNS_SERVER = OptionType(
    "ADDRESS[:PORT]",
    "the address of a DNS server (192.0.2.53, 127.0.0.1:5353, [2001:db8::53]:53)",
    lambda given: str(name_server(_text(given))),
)
SOURCE_ADDRESS = OptionType(
    "ADDRESS",
    "an IPv4 or IPv6 address of this machine, or nothing",
    lambda given: _address(given) if _text(given).strip() else "",
)
IP_VERSION = OptionType("4|6|any", "one of 4, 6, any", _version)


_DATABASE = re.compile(
    r"postgres(?:ql)?://(?:[\w.%~-]+@)?[\w.,:%~\[\]-]*/[\w.%~-]+(?:\?(?P<options>[\w=&.-]+))?", re.ASCII
)
_PASSWORD = re.compile(r"password\s*=", re.IGNORECASE)  # as a parameter: a user or a database may have any name
_DATABASE_OPTIONS = frozenset(("sslmode", "target_session_attrs"))  # others name files, or hold secrets


def _database(given: Any) -> str:
    """Return the address of a database. Raises `ConfigError` if it may hold a password, ValueError if it is none."""
    text = str(given).strip()
    _, _, rest = text.partition("://")
    found = _DATABASE.fullmatch(text)
    parameters = unquote(text) if found is None else found["options"] or ""
    if (":" in rest.partition("@")[0] and "@" in rest) or _PASSWORD.search(parameters):
        raise ConfigError("the address of a database must not hold a password; put it into ~/.pgpass or PGPASSWORD")
    if text and found is None:
        raise ValueError
    options = (found["options"] or "").split("&") if found else ()
    if any(each and each.partition("=")[0] not in _DATABASE_OPTIONS for each in options):
        raise ValueError
    return text


DATABASE = OptionType(
    "DATABASE",
    "the address of a PostgreSQL database (postgresql://HOST/NAME, postgresql://HOST:5432/NAME?sslmode=require; also "
    "with USER@ before HOST)",
    _database,
)
