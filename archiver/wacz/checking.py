"""What a package's signature is worth, as WACZ Signing and Verification 0.1 says how it is checked.

An anonymous one is valid or not: the key stands beside it. Of one by the certificate of a domain it is checked that the
certificate's key made it; whether the certificate and the time can be trusted is not. Never raises for what it reads.
"""

import re
from base64 import b64decode
from collections.abc import Mapping
from enum import Enum
from importlib.util import find_spec
from typing import Any, NamedTuple

_LONGEST = 64 << 10  # characters of what a package holds for a key, a certificate, or a signature
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class Worth(Enum):
    """What can be said of a signature."""

    VALID = "is valid"
    NOT_VALID = "is not valid"
    UNKNOWN = "cannot be judged"


class Judgement(NamedTuple):
    """The worth of one signature, and why."""

    worth: Worth
    reason: str

    def __str__(self) -> str:
        return f"the signature {self.worth.value}: {self.reason}"


class _Bad(Exception):  # noqa: N818  it says what a signature is, and never leaves this module
    """The signature is not valid, for this reason."""


def judge(signed: object, digest: str) -> Judgement:
    """What *signed*, the signed data of a package whose datapackage.json has this *digest*, is worth."""
    try:
        return _judged(signed, digest)
    except _Bad as bad:
        return Judgement(Worth.NOT_VALID, str(bad))


def _judged(signed: object, digest: str) -> Judgement:
    if not isinstance(signed, Mapping):
        raise _Bad("it is no object")
    message = _text(signed, "hash")
    if message.lower() != digest or not _HASH.fullmatch(digest):
        raise _Bad("it was made for another datapackage.json")
    signature = _bytes(signed, "signature")
    if find_spec("cryptography") is None:
        reason = "that needs cryptography; install it, in the checkout, with: pip install '.[sign]'"
        return Judgement(Worth.UNKNOWN, reason)
    if "publicKey" in signed:
        _verify(_anonymous(signed), signature, message)
        return Judgement(Worth.VALID, f"made with the private key to {_text(signed, 'publicKey')}")
    _verify(_of_domain(signed), signature, message)
    domain = _text(signed, "domain")[:255]
    reason = (
        f"the key of the certificate beside it made it; who vouches for that of {domain!r}, and when, is not checked"
    )
    return Judgement(Worth.UNKNOWN, reason)


def _text(signed: Mapping[Any, Any], name: str) -> str:
    value = signed.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise _Bad(f"it has no {name}")
    return value


def _bytes(signed: Mapping[Any, Any], name: str) -> bytes:
    try:
        return b64decode(_text(signed, name), validate=True)
    except ValueError:
        raise _Bad(f"its {name} is no base64") from None


def _anonymous(signed: Mapping[Any, Any]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - as above

    data = _bytes(signed, "publicKey")
    try:
        return serialization.load_der_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise _Bad("its publicKey is none") from None


def _of_domain(signed: Mapping[Any, Any]) -> Any:
    from cryptography import x509  # noqa: PLC0415 - it is an extra
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above

    data = _text(signed, "domainCert").encode("utf-8", "replace")
    try:
        return x509.load_pem_x509_certificate(data).public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise _Bad("its domainCert is no certificate") from None


def _verify(key: Any, signature: bytes, message: str) -> None:
    """Raise unless *key* made *signature*; the two numbers of one may stand one after the other, or as DER."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - as above

    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise _Bad("its key is none of an elliptic curve")
    coordinate = (key.curve.key_size + 7) // 8
    if len(signature) == 2 * coordinate:
        r, s = int.from_bytes(signature[:coordinate]), int.from_bytes(signature[coordinate:])
        signature = utils.encode_dss_signature(r, s)
    try:
        key.verify(signature, message.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise _Bad("the key beside it did not make it") from None
