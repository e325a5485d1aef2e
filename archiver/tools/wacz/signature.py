"""The anonymous signature of WACZ Signing and Verification 0.1: an ECDSA key vouches for the hash of datapackage.json.

It says that whoever has the key made the package, and that nothing in it was changed; who that is, others must know by
the key. As replayweb.page checks it: curve P-384, SHA-256 over the text of the hash, r and s one after the other.

What a package's signature is worth, as WACZ Signing and Verification 0.1 says how it is checked.

An anonymous one is valid or not: the key stands beside it. Of one by the certificate of a domain it is checked that the
certificate's key made it; whether the certificate and the time can be trusted is not. Never raises for what it reads.
"""

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from archiver.errors import ConfigError
from archiver.storage import storage, sync_folder

VERSION = "0.1.0"
_COORDINATE = 48  # bytes of a number of this curve


class Signer:
    """Signs with the key in the file *path*, made there where there is none; without a path, with a new key."""

    def __init__(self, software: str, path: Path | None = None) -> None:
        if find_spec("cryptography") is None:
            raise ConfigError(
                "signing needs cryptography, which is not installed; install it, in the checkout, with: "
                "pip install '.[sign]'"
            )
        self._software = software
        self._key = _new() if path is None else _kept(path)

    def __call__(self, digest: str, created: str) -> Mapping[str, str]:
        """The signed data for a package whose datapackage.json has this *digest*."""
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - it is an extra
        from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - as above

        r, s = utils.decode_dss_signature(self._key.sign(digest.encode(), ec.ECDSA(hashes.SHA256())))
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return {
            "hash": digest,
            "created": created,
            "software": self._software,
            "version": VERSION,
            "signature": b64encode(r.to_bytes(_COORDINATE) + s.to_bytes(_COORDINATE)).decode(),
            "publicKey": b64encode(public).decode(),
        }


def _new() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - it is an extra

    return ec.generate_private_key(ec.SECP384R1())


def _kept(path: Path) -> Any:
    """The key in *path*; a new one is kept there for the next time, for its owner's eyes only."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above

    if not path.exists():
        return _keep(path)
    try:
        with path.open("rb") as file:
            key = serialization.load_pem_private_key(file.read(_LONGEST), None)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP384R1):
        raise ConfigError(
            f"{path}: not a private key of the curve P-384 as PEM, without a password; name a file that is not there, "
            "and a key is made in it"
        )
    return key


def _keep(path: Path) -> Any:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it is an extra

    key = _new()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    draft = path.with_name(f"{path.name}.tmp")
    with storage(path):
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        sync_folder(path.parent)
    return key


_LONGEST = 64 << 10  # characters of what a package holds for a key, a certificate, or a signature
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class SignatureStatus(Enum):
    """What can be said of a signature."""

    VALID = "is valid"
    NOT_VALID = "is not valid"
    UNKNOWN = "cannot be judged"


class SignatureCheck(NamedTuple):
    """The worth of one signature, and why."""

    worth: SignatureStatus
    reason: str

    def __str__(self) -> str:
        return f"the signature {self.worth.value}: {self.reason}"


class _Bad(Exception):  # noqa: N818  it says what a signature is, and never leaves this module
    """The signature is not valid, for this reason."""


def judge(signed: object, digest: str) -> SignatureCheck:
    """What *signed*, the signed data of a package whose datapackage.json has this *digest*, is worth."""
    try:
        return _judged(signed, digest)
    except _Bad as bad:
        return SignatureCheck(SignatureStatus.NOT_VALID, str(bad))


def _judged(signed: object, digest: str) -> SignatureCheck:
    if not isinstance(signed, Mapping):
        raise _Bad("it is no object")
    message = _text(signed, "hash")
    if message.lower() != digest or not _HASH.fullmatch(digest):
        raise _Bad("it was made for another datapackage.json")
    signature = _bytes(signed, "signature")
    if find_spec("cryptography") is None:
        reason = "that needs cryptography; install it, in the checkout, with: pip install '.[sign]'"
        return SignatureCheck(SignatureStatus.UNKNOWN, reason)
    if "publicKey" in signed:
        _verify(_anonymous(signed), signature, message)
        return SignatureCheck(SignatureStatus.VALID, f"made with the private key to {_text(signed, 'publicKey')}")
    _verify(_of_domain(signed), signature, message)
    domain = _text(signed, "domain")[:255]
    reason = (
        f"the key of the certificate beside it made it; who vouches for that of {domain!r}, and when, is not checked"
    )
    return SignatureCheck(SignatureStatus.UNKNOWN, reason)


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
