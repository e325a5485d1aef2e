"""Connection details for the record: peer address, TLS version, and cipher suite by its IANA name.

OpenSSL has names of its own for cipher suites; WARC-Cipher-Suite takes those of IANA.
"""

import asyncio
import ssl
from contextlib import suppress

from archiver.model import Peer

# OpenSSL uses IANA names for TLS 1.3 suites, and its own for earlier ones.
_KEY_EXCHANGE = {"ECDHE-ECDSA": "ECDHE_ECDSA", "ECDHE-RSA": "ECDHE_RSA", "DHE-RSA": "DHE_RSA", "DHE-DSS": "DHE_DSS"}
_BULK = {
    "AES128-GCM-SHA256": "AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "AES_256_GCM_SHA384",
    "CHACHA20-POLY1305": "CHACHA20_POLY1305_SHA256",
    "AES128-SHA256": "AES_128_CBC_SHA256",
    "AES256-SHA384": "AES_256_CBC_SHA384",
    "AES256-SHA256": "AES_256_CBC_SHA256",
    "AES128-SHA": "AES_128_CBC_SHA",
    "AES256-SHA": "AES_256_CBC_SHA",
    "AES128-CCM": "AES_128_CCM",
    "AES256-CCM": "AES_256_CCM",
}


def iana_cipher(name: str) -> str:
    """Return the IANA name of OpenSSL's cipher suite *name*; *name* itself if no rule applies."""
    if name.startswith("TLS_"):
        return name
    exchange = next((key for key in _KEY_EXCHANGE if name.startswith(key + "-")), None)
    bulk = name[len(exchange) + 1 :] if exchange else name
    if bulk not in _BULK:
        return name
    return f"TLS_{_KEY_EXCHANGE[exchange] if exchange else 'RSA'}_WITH_{_BULK[bulk]}"


def is_cut_off(transport: asyncio.BaseTransport | None) -> bool:
    """True if the peer closed a TLS connection without close_notify (RFC 9112 §9.8)."""
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    if tls is None:
        return False
    try:
        tls.read(1)  # returns nothing after close_notify, as all data was read
    except (ssl.SSLError, ValueError):
        return True
    return False


def peer_of(transport: asyncio.BaseTransport | None) -> Peer:
    """Return what is known about the peer; an empty `Peer` if the connection is closed."""
    if transport is None:
        return Peer(None)
    name = transport.get_extra_info("peername")
    ip = str(name[0]).partition("%")[0] if name else None
    tls = transport.get_extra_info("ssl_object")
    if tls is None:
        return Peer(ip)
    version, cipher = None, None
    with suppress(AttributeError, TypeError):  # a connection that was just closed has no cipher
        version = tls.version().replace("TLSv", "tls/")
        cipher = iana_cipher(tls.cipher()[0])
    return Peer(ip, version if version != "tls/1" else "tls/1.0", cipher)
