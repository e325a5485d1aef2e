"""Who is at the other end of a connection: the address, and what TLS was agreed upon."""

import asyncio
import ssl
from contextlib import suppress

from archiver.fetch.ciphers import iana_cipher
from archiver.model import Peer


def is_cut_off(transport: asyncio.BaseTransport | None) -> bool:
    """Whether the other end has gone without a word although TLS has one (close_notify; RFC 9112 §9.8)."""
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    if tls is None:
        return False
    try:
        tls.read(1)  # gives nothing, for all was read, if the word was said
    except (ssl.SSLError, ValueError):
        return True
    return False


def peer_of(transport: asyncio.BaseTransport | None) -> Peer:
    """What is known of it, for the record; nothing where the connection is gone."""
    if transport is None:
        return Peer(None)
    name = transport.get_extra_info("peername")
    ip = str(name[0]).partition("%")[0] if name else None
    tls = transport.get_extra_info("ssl_object")
    if tls is None:
        return Peer(ip)
    version, cipher = None, None
    with suppress(AttributeError, TypeError):  # a connection torn down meanwhile has no cipher any more
        version = tls.version().replace("TLSv", "tls/")
        cipher = iana_cipher(tls.cipher()[0])
    return Peer(ip, version if version != "tls/1" else "tls/1.0", cipher)
