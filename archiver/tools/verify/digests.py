"""Digest fields: what is wrong with their text, and whether they hold for the bytes that stream by."""

import hashlib
import re
from base64 import b32encode
from collections.abc import Callable

from archiver.warc.reader import Record

RecordFinding = tuple[str, str]

_HASHES: dict[str, Callable[..., "hashlib._Hash"]] = {
    "md5": hashlib.md5,
    "sha1": hashlib.sha1,
    "sha224": hashlib.sha224,
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
}
_DIGEST = re.compile(r"([A-Za-z0-9_-]{1,40}):([A-Za-z0-9+/=_-]{1,200})")
USUAL_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha1:[A-Z2-7]{32}")


class Digest:
    """A digest field: the claimed value and the running hash."""

    def __init__(self, value: str) -> None:
        algorithm, _, self._claim = value.partition(":")
        self.algorithm = _algorithm(algorithm)
        self._state = _HASHES[self.algorithm](usedforsecurity=False)
        self.update = self._state.update

    def holds(self) -> bool:
        """Return True if the hash is the claimed one, in base 16 or 32."""
        found = self._state.hexdigest()
        return found in (self._claim, self._claim.lower()) or (
            self._claim.upper().rstrip("=") == b32encode(self._state.digest()).decode().rstrip("=")
        )

    def __str__(self) -> str:
        if self.algorithm == "sha1":
            return f"sha1:{b32encode(self._state.digest()).decode()}"
        return f"{self.algorithm}:{self._state.hexdigest()}"


def _algorithm(name: str) -> str:
    return name.lower().replace("-", "")


def digest_finding(name: str, value: str) -> RecordFinding | None:
    """Return what is wrong with the digest *value* of field *name*: its syntax, or an unknown algorithm."""
    if USUAL_DIGEST.fullmatch(value):
        return None
    found = _DIGEST.fullmatch(value)
    if found is None:
        return "digest-syntax", f"{name} is {value[:80]!r}, not `algorithm:value`"
    algorithm = _algorithm(found[1])
    if algorithm not in _HASHES:
        return "digest-algorithm", f"{name} uses {found[1]!r}"
    size = _HASHES[algorithm](usedforsecurity=False).digest_size
    base16 = re.fullmatch(rf"[0-9A-Fa-f]{{{size * 2}}}", found[2])
    base32 = re.fullmatch(rf"[A-Za-z2-7]{{{-(-size * 8 // 5)}}}=*", found[2])
    if not base16 and not base32:
        return "digest-syntax", f"{name} is {value[:80]!r}, which is not a value of {found[1]}"
    return None


def digest_field(record: Record, name: str) -> Digest | None:
    """Return the digest that *record* states in its field *name*; None without a valid one."""
    value = record.first(name)
    return Digest(value) if value is not None and digest_finding(name, value) is None else None
