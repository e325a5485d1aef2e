"""Sends JSON to the address of a receiver of events, with a signature.

The headers are those of Standard Webhooks (https://www.standardwebhooks.com), so that libraries can check them: an id
that is the same in each try, the time of the try, and `v1,` with the HMAC-SHA256 of `ID.TIME.BODY` in base64. The
address is subject to the same guard as those of a crawl: a name never leads into a private network, unless
--allow-private names it. No redirect is followed, no cookie kept, no proxy used, and no body of an answer read.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import cast

import aiohttp
from aiohttp.abc import AbstractResolver

from archiver import __version__, url
from archiver.errors import ConfigError, FetchError
from archiver.fetch.dns import GuardedResolver
from archiver.fetch.private_networks import AddressGuard

TIMEOUT = 15.0  # seconds for everything
PREFIX = "whsec_"  # before a secret in base64
RETRY_AFTER = "Retry-After"


def key_of(secret: str) -> bytes:
    """Return the key that *secret* means: with the prefix `whsec_` base64, otherwise its text."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"on-secret: what follows {PREFIX} in the secret is not base64") from None


def signed_headers(key: bytes, name: str, at: int, body: bytes) -> dict[str, str]:
    """Return the headers for *body* of the event *name*, sent *at* this second; signed unless *key* is empty."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"archiver/{__version__}",
        "webhook-id": name,
        "webhook-timestamp": str(at),
    }
    if key:
        digest = hmac.digest(key, f"{name}.{at}.".encode() + body, "sha256")
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


async def post(address: str, headers: Mapping[str, str], body: bytes, guard: AddressGuard) -> tuple[int, str]:
    """Send *body* to the canonical URL *address*; return the status of the answer and its Retry-After.

    Raises `FetchError` if the guard refuses the address, and `OSError` or `TimeoutError` if there is no answer.
    """
    guard.check(url.host(address))
    resolver = GuardedResolver(guard, aiohttp.ThreadedResolver())
    connector = aiohttp.TCPConnector(
        resolver=cast(AbstractResolver, resolver), force_close=True, limit=1, use_dns_cache=False
    )
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT),
        trust_env=False,
        auto_decompress=False,
    )
    try:
        async with session.post(address, data=body, headers=headers, allow_redirects=False) as answer:
            return answer.status, answer.headers.get(RETRY_AFTER, "")
    except TimeoutError:
        raise TimeoutError(f"no answer within {TIMEOUT:g} s") from None
    except aiohttp.ClientError as error:
        if isinstance(error.__cause__, FetchError):
            raise error.__cause__ from None
        raise OSError(_words(error)) from None
    finally:
        await session.close()


def _words(error: aiohttp.ClientError) -> str:
    """Describe *error* without the address, which may hold a secret."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate is invalid"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection: {error.os_error.strerror or type(error.os_error).__name__}"
    return (
        "it closed the connection without an answer"
        if isinstance(error, aiohttp.ServerDisconnectedError)
        else type(error).__name__
    )
