"""Anonymous signatures by WACZ Signing and Verification 0.1: an ECDSA key signs the hash of datapackage.json.

A signature shows that the owner of the key made the package and that it is unchanged. Who owns the key is for others to
know. The form is the one that replayweb.page checks: curve P-384, SHA-256 of the hash as text, r and s concatenated.

Checking: an anonymous signature is valid or not, because the key is in the package. For a signature with a domain
certificate, only the match with the certificate's key is checked, not the trust in the certificate or the time. Never
raises for the content of a package.
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
    """Signs with the key in the file *path*, which is created if missing; without *path*, with a new key."""

    def __init__(self, software: str, path: Path | None = None) -> None:
        if find_spec("cryptography") is None:
            raise ConfigError(
                "signing needs cryptography, which is not installed; install it in the checkout with: "
                "pip install '.[sign]'"
            )
        self._software = software
        self._key = _new_key() if path is None else _load_key(path)

    def __call__(self, digest: str, created: str) -> Mapping[str, str]:
        """Return the signed data for a package whose datapackage.json has this *digest*."""
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - it is an extra
        from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - it is an extra

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


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - it is an extra

    return ec.generate_private_key(ec.SECP384R1())


def _load_key(path: Path) -> Any:
    """Return the key in *path*. A new key is stored there, readable only by its owner."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - it is an extra

    if not path.exists():
        return _create_key(path)
    try:
        with path.open("rb") as file:
            key = serialization.load_pem_private_key(file.read(_LONGEST), None)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP384R1):
        raise ConfigError(
            f"{path}: not a PEM private key of curve P-384 without password; name a file that does not exist, "
            "and archiver creates a key in it"
        )
    return key


def _create_key(path: Path) -> Any:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it is an extra

    key = _new_key()
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


_LONGEST = 64 << 10  # characters of a key, certificate or signature in a package
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class SignatureStatus(Enum):
    """The result of checking a signature."""

    VALID = "is valid"
    NOT_VALID = "is not valid"
    UNKNOWN = "cannot be checked"


class SignatureCheck(NamedTuple):
    """The result for one signature, with the reason."""

    status: SignatureStatus
    reason: str

    def __str__(self) -> str:
        return f"the signature {self.status.value}: {self.reason}"


class _Bad(Exception):  # noqa: N818  it says what a signature is, and never leaves this module
    """The signature is not valid, for this reason."""


def check_signature(signed: object, digest: str) -> SignatureCheck:
    """Check *signed*, the signed data of a package whose datapackage.json has this *digest*."""
    try:
        return _check(signed, digest)
    except _Bad as bad:
        return SignatureCheck(SignatureStatus.NOT_VALID, str(bad))


def _check(signed: object, digest: str) -> SignatureCheck:
    if not isinstance(signed, Mapping):
        raise _Bad("it is not an object")
    message = _text(signed, "hash")
    if message.lower() != digest or not _HASH.fullmatch(digest):
        raise _Bad("it is for another datapackage.json")
    signature = _bytes(signed, "signature")
    if find_spec("cryptography") is None:
        reason = "checking needs cryptography; install it in the checkout with: pip install '.[sign]'"
        return SignatureCheck(SignatureStatus.UNKNOWN, reason)
    if "publicKey" in signed:
        _verify(_anonymous(signed), signature, message)
        return SignatureCheck(SignatureStatus.VALID, f"made with the private key of {_text(signed, 'publicKey')}")
    _verify(_of_domain(signed), signature, message)
    domain = _text(signed, "domain")[:255]
    reason = f"it matches the certificate of {domain!r}, whose trust and date are not checked"
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
        raise _Bad(f"its {name} is not base64") from None


def _anonymous(signed: Mapping[Any, Any]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it is an extra

    data = _bytes(signed, "publicKey")
    try:
        return serialization.load_der_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise _Bad("its publicKey is not a key") from None


def _of_domain(signed: Mapping[Any, Any]) -> Any:
    from cryptography import x509  # noqa: PLC0415 - it is an extra
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - it is an extra

    data = _text(signed, "domainCert").encode("utf-8", "replace")
    try:
        return x509.load_pem_x509_certificate(data).public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise _Bad("its domainCert is not a certificate") from None


def _verify(key: Any, signature: bytes, message: str) -> None:
    """Raise unless *key* made *signature*; its two numbers may be concatenated or in DER."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - it is an extra
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - it is an extra

    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise _Bad("its key is not an elliptic-curve key")
    coordinate = (key.curve.key_size + 7) // 8
    if len(signature) == 2 * coordinate:
        r, s = int.from_bytes(signature[:coordinate]), int.from_bytes(signature[coordinate:])
        signature = utils.encode_dss_signature(r, s)
    try:
        key.verify(signature, message.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise _Bad("it does not match its key") from None
