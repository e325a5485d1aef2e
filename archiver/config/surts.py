"""SURT prefixes: parts of the web named by host names turned round, as `(org,example,` for all of example.org. Pure.

A prefix is kept in one spelling, without a scheme: http and https count as one, as everywhere in the scope.
"""

import re

from archiver import url
from archiver.errors import ConfigError

_TURNED = re.compile(r"(?:[a-z]+://)?(\([^\s()/?#]*\)?(?:/\S*)?)", re.IGNORECASE)
_NO_PATH = re.compile(r"(?:https?://)?[^/?#]+", re.IGNORECASE)


def form(address: str) -> str:
    """The canonical URL *address* turned round: `(org,example,www,)/path?query`, with a port `(org,example,:8080)/`."""
    name, colon, port = url.authority(address).rpartition(":")
    if not colon or not port.isdigit():
        name, port = url.authority(address), ""
    return f"({_turned(name)},{f':{port}' if port else ''}){url.target(address)}"


def prefix(text: str) -> str:
    """The prefix that *text* means; `ConfigError` where it is none.

    A SURT is taken as it stands; a URL stands for what begins with it; a bare host for itself and all below it.
    """
    turned = _TURNED.fullmatch(text)
    if turned is not None:
        return _lower_host(turned[1])
    address = url.canonical(text if "://" in text else f"http://{text}")
    if address is None or "(" in text:
        raise ConfigError(f"{text!r} is neither a SURT prefix, as http://(org,example, nor a URL or a host")
    if _NO_PATH.fullmatch(text):
        return form(address).partition(")")[0]
    return form(address)


def _lower_host(text: str) -> str:
    host, close, rest = text.partition(")")
    return host.lower() + close + rest


def _turned(name: str) -> str:
    if name.startswith("[") or name.replace(".", "").isdigit():
        return name  # an address has no part that stands for the whole
    return ",".join(reversed(name.split(".")))
