"""Negotiate (RFC 4559) and NTLM: the handshake that logs a connection in, by the package of the extra `negotiate`.

The first request sends a token, the server answers 401 with a token of its own, and the next request on the same
connection sends the last one. From then on requests on this connection need none. Negotiate may agree on NTLM, or on
Kerberos where its library is installed, which may need fewer tokens.
"""

import hashlib
import logging
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from archiver import url
from archiver.http.auth import Credentials
from archiver.http.challenges import challenges

TOKENS = 2  # of ours, at most: Negotiate with NTLM waits for the server's last token, which comes with the page
INSTALL = "pip install 'warchiver[negotiate]'"


class HandshakeError(Exception):
    """The package refuses to go on, or an answer of the server makes no sense. The text holds no secret."""


def library() -> ModuleType | None:
    """Return the module that makes tokens; None if it is not installed. It never logs tokens."""
    try:
        import spnego  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        return None
    logging.getLogger("spnego").setLevel(logging.INFO)  # with -vv it would log tokens
    return spnego


def schemes(user: str) -> tuple[str, ...]:
    r"""Return the schemes that fit *user*, the one to prefer last.

    A user of a domain (`DOMAIN\user` or `user@DOMAIN`) is one for Negotiate. Digest knows users of the server, so it
    is preferred for others. Basic is last, because it sends the password itself.
    """
    if library() is None:
        return "basic", "digest"
    if "\\" in user or "@" in user:
        return "basic", "digest", "ntlm", "negotiate"
    return "basic", "ntlm", "negotiate", "digest"


class SpnegoHandshake:
    """One handshake for a connection to the host of URL *address*. *tls*: its SSLObject, if it has TLS."""

    def __init__(self, scheme: str, credentials: Credentials, address: str, tls: Any) -> None:
        module = library()
        if module is None:
            raise HandshakeError(f"it needs a package: {INSTALL}")
        self.scheme = scheme
        self._made = 0
        # A broken token raises ValueError, LookupError or struct.error in the package's parser. A GSSAPI library
        # that does not have a feature raises NotImplementedError.
        broken = ValueError, LookupError, struct.error
        self._errors = (module.exceptions.SpnegoError, *broken, NotImplementedError)
        host = url.host(address).strip("[]")
        try:
            self._context: Any = module.client(
                credentials.user,
                credentials.password,
                hostname=host,
                service="HTTP",
                protocol=scheme,
                channel_bindings=_binding(module, tls),
            )
        except (*self._errors, ImportError) as error:
            raise HandshakeError(_reason(error)) from None

    @property
    def final(self) -> bool:
        """True if the last token is made, by which the server judges the password."""
        return self._made >= TOKENS or bool(self._context.complete)

    def answer(self, token: bytes) -> bytes:
        """Return the value of the Authorization field that answers *token* of the server, b"" the first time."""
        try:
            made = self._context.step(token or None)
        except self._errors as error:
            raise HandshakeError(_reason(error)) from None
        if not made:
            raise HandshakeError("the server's token leaves nothing to answer")
        self._made += 1
        return b"%b %b" % ({"ntlm": b"NTLM"}.get(self.scheme, b"Negotiate"), b64encode(made))


def token_in(scheme: str, fields: Iterable[str]) -> bytes:
    """Return the token that a challenge in *fields* has for *scheme*; b"" if there is none."""
    for each in challenges(fields):
        if each.scheme == scheme and each.token:
            try:
                return b64decode(each.token, validate=True)
            except ValueError:
                break
    return b""


def _binding(module: ModuleType, tls: Any) -> Any:
    """Return the binding to the certificate of the server (tls-server-end-point, RFC 5929 §4); None if there is none.

    Servers may refuse logins that a stranger between passes on: Extended Protection of Windows.
    """
    certificate = tls.getpeercert(True) if tls is not None else None
    if not certificate:
        return None
    from cryptography import x509  # noqa: PLC0415 - comes with the extra
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above

    try:
        found = x509.load_der_x509_certificate(certificate).signature_hash_algorithm
    except (ValueError, UnsupportedAlgorithm):
        return None
    if found is None:
        return None  # of Ed25519, for which the RFC has no rule
    name = "sha256" if found.name in {"md5", "sha1"} else found.name
    digest = hashlib.new(name, certificate).digest()
    return module.channel_bindings.GssChannelBindings(application_data=b"tls-server-end-point:" + digest)


def _reason(error: Exception) -> str:
    """Return the kind of *error* and the first line of its text."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:200]
