"""Answer challenges with Basic (RFC 7617) and Digest (RFC 7616) authentication. Pure: the nonces are arguments.

Negotiate and NTLM log a connection in, not a request: here is the state that a connection keeps of it.

User and password are sent and hashed as UTF-8, as browsers and curl do. What the server sent is hashed as it came.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from archiver.http.challenges import Challenge, challenges

UNAUTHORIZED = 401
SESSION = "-sess"
_BY_NAME = {"SHA-512-256": "sha512_256", "SHA-256": "sha256", "MD5": "md5"}  # the strongest first
HASHES = tuple(name for name, ours in _BY_NAME.items() if ours in hashlib.algorithms_available)
OF_CONNECTIONS = frozenset(("negotiate", "ntlm"))  # schemes that log a connection in
INTEGRITY = b"auth-int"  # covers the body of a request too
_FIELD = b"\r\nauthorization:"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password. Its text form does not show the password."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.user!r})"


class Handshake(Protocol):
    """The exchange of tokens that logs a connection in."""

    scheme: str

    @property
    def final(self) -> bool:
        """True if the last token is made, by which the server judges the password."""

    def answer(self, token: bytes) -> bytes:
        """Return the value of the Authorization field that answers *token* of the server, b"" the first time."""


@dataclass(slots=True, eq=False)
class ConnectionLogin:
    """The login that holds for one connection, if there is any."""

    forwarded: bool = False  # requests go to a proxy, which may share its own connections to the site
    tls: Any = None  # the SSLObject of the connection, if it has TLS
    user: str = ""  # who is logged in, or about to be; "" means no user
    handshake: Handshake | None = None
    token: bytes | None = None  # of the server, for the next request to answer
    unfit: bool = False  # a request of another user came up, and needs another connection

    def clear(self) -> None:
        """Forget the handshake. The connection still belongs to its user, who may be logged in."""
        self.handshake = self.token = None


@dataclass(frozen=True, slots=True)
class DigestUse:
    """The parts of a Digest answer that change with each request."""

    method: str
    target: str  # of the request line
    client_nonce: str
    count: int  # of requests with the nonce of the server, this one included
    body: bytes = field(default=b"", repr=False)


def strongest(fields: Iterable[str], schemes: Sequence[str] = ("basic", "digest")) -> Challenge | None:
    """Return the challenge in *fields* to answer: the strongest of the last of *schemes*; None if there is none."""
    known = [
        (schemes.index(each.scheme), strength, -place, each)
        for place, each in enumerate(challenges(fields))
        if each.scheme in schemes and (strength := _strength(each))
    ]
    return max(known, key=lambda one: one[:3])[3] if known else None


def _strength(challenge: Challenge) -> int:
    """Return how strong *challenge* is in its scheme; 0 if we cannot answer it."""
    if challenge.scheme != "digest":
        return 1
    if not challenge.get("nonce") or "realm" not in dict(challenge.parameters):
        return 0
    if _qop(challenge) is None or (name := _hash_name(challenge)) not in HASHES:
        return 0
    return 1 + len(HASHES) - HASHES.index(name)


def is_stale(challenge: Challenge) -> bool:
    """Return True if *challenge* refuses the nonce, but not the password."""
    return challenge.get("stale").lower() == "true"


def basic(credentials: Credentials) -> bytes:
    """Return the value of the Authorization field for Basic authentication."""
    return b"Basic " + b64encode(f"{credentials.user}:{credentials.password}".encode())


def digest(challenge: Challenge, credentials: Credentials, use: DigestUse) -> bytes:
    """Return the value of the Authorization field that answers the Digest *challenge*."""
    realm, nonce = _raw(challenge.get("realm")), _raw(challenge.get("nonce"))
    user, qop = credentials.user.encode(), _qop(challenge)
    client_nonce, count = use.client_nonce.encode(), b"%08x" % use.count

    def hashed(*parts: bytes) -> bytes:
        name = _BY_NAME[_hash_name(challenge)]
        return hashlib.new(name, b":".join(parts), usedforsecurity=False).hexdigest().encode()

    key = hashed(user, realm, credentials.password.encode())
    if challenge.get("algorithm").lower().endswith(SESSION):
        key = hashed(key, nonce, client_nonce)
    signed = (hashed(use.body),) if qop == INTEGRITY else ()
    request = hashed(use.method.encode(), use.target.encode(), *signed)
    response = hashed(key, nonce, count, client_nonce, qop, request) if qop else hashed(key, nonce, request)
    is_hashed = challenge.get("userhash").lower() == "true"
    name = _quoted(b"username", hashed(user, realm)) if is_hashed else _user(challenge, credentials.user)
    parts = [name, _quoted(b"realm", realm), _quoted(b"nonce", nonce), _quoted(b"uri", use.target.encode())]
    if algorithm := challenge.get("algorithm"):
        parts.append(b"algorithm=" + _raw(algorithm))
    parts.append(_quoted(b"response", response))
    if "opaque" in dict(challenge.parameters):
        parts.append(_quoted(b"opaque", _raw(challenge.get("opaque"))))
    if qop:
        parts += [b"qop=" + qop, b"nc=" + count, _quoted(b"cnonce", client_nonce)]
    elif challenge.get("algorithm").lower().endswith(SESSION):
        parts.append(_quoted(b"cnonce", client_nonce))
    if is_hashed:
        parts.append(b"userhash=true")
    return b"Digest " + b", ".join(parts)


def next_nonce(fields: Iterable[str]) -> str:
    """Return the nonce for the next request, which *fields*, the Authentication-Info of an answer, give; or ""."""
    return next(
        (nonce for each in fields for found in challenges([f"Digest {each}"]) if (nonce := found.get("nextnonce"))), ""
    )


def sent_in(request: bytes) -> Challenge | None:
    """Return the credentials that *request* sent, with the secrets of Digest alone; None if it sent none."""
    head = request[: request.find(b"\r\n\r\n")]
    start = head.lower().find(_FIELD)
    if start < 0:
        return None
    start += len(_FIELD)
    end = head.find(b"\r\n", start)
    value = head[start : end if end >= 0 else len(head)].decode("latin-1").strip()
    scheme = value.partition(" ")[0].lower()
    if scheme != "digest":
        return Challenge(scheme)
    found = challenges([value])
    return found[0] if found else None


def _hash_name(challenge: Challenge) -> str:
    """Return the name of the hash of a Digest *challenge*, in upper case and without -sess."""
    return (challenge.get("algorithm") or "MD5").upper().removesuffix(SESSION.upper())


def _qop(challenge: Challenge) -> bytes | None:
    """Return the quality of protection to answer *challenge* with; b"" if it names none, None if only unknown ones."""
    if "qop" not in dict(challenge.parameters):
        return b""
    offered = {word.strip().lower() for word in challenge.get("qop").split(",")}
    return next((each for each in (b"auth", INTEGRITY) if each.decode() in offered), None)


def _user(challenge: Challenge, user: str) -> bytes:
    """Return the user name; with charset=UTF-8 a name outside of ASCII has the form of RFC 8187."""
    if not user.isascii() and challenge.get("charset").upper() == "UTF-8":
        return b"username*=UTF-8''" + quote(user, safe="").encode()
    return _quoted(b"username", user.encode())


def _quoted(name: bytes, value: bytes) -> bytes:
    return name + b'="' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _raw(value: str) -> bytes:
    """Return the bytes of *value* as the server sent them."""
    return value.encode("latin-1", "replace")
