"""Who is at the other end of a connection: the address, and what TLS was agreed upon.

The names of TLS cipher suites: OpenSSL's own, and those of IANA, which WARC-Cipher-Suite wants.
"""

import asyncio
import ssl
from contextlib import suppress

from archiver.model import Peer

# OpenSSL writes TLS 1.3 suites by their IANA names, and earlier ones by its own.
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
    """The IANA name of a cipher suite that OpenSSL calls *name*; *name* itself where there is no rule for it."""
    if name.startswith("TLS_"):
        return name
    exchange = next((key for key in _KEY_EXCHANGE if name.startswith(key + "-")), None)
    bulk = name[len(exchange) + 1 :] if exchange else name
    if bulk not in _BULK:
        return name
    return f"TLS_{_KEY_EXCHANGE[exchange] if exchange else 'RSA'}_WITH_{_BULK[bulk]}"


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
