"""The anonymous signature of WACZ Signing and Verification 0.1: an ECDSA key vouches for the hash of datapackage.json.

It says that whoever has the key made the package, and that nothing in it was changed; who that is, others must know by
the key. As replayweb.page checks it: curve P-384, SHA-256 over the text of the hash, r and s one after the other.
"""

import os
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from archiver.archive.layout import storage, sync_folder
from archiver.errors import ConfigError

VERSION = "0.1.0"
_COORDINATE = 48  # bytes of a number of this curve
_LONGEST = 64 << 10  # bytes of a key file


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
