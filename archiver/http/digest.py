"""Digests of a stored response: one of the block, one of the payload.

The payload is the body without chunked framing but still content-encoded (WARC 1.1 §5.9). SHA-1 is written in Base32 as
in all archives, SHA-256 and MD5 in lowercase hexadecimal (the grammar does not allow `=`).
"""

import hashlib
from base64 import b32encode
from collections.abc import Iterable

from archiver.http.chunked import Dechunker
from archiver.model import Digests, Framing

_MAKERS = {"sha256": hashlib.sha256, "sha1": hashlib.sha1}  # hashlib.new takes longer than hashing a short text


def digest_of(algorithm: str, data: bytes | memoryview) -> str:
    """Return the digest of *data* as written in a WARC header: `sha256:…`."""
    maker = _MAKERS.get(algorithm)
    return _labelled(algorithm, hashlib.new(algorithm, data) if maker is None else maker(data))


def digest_of_pieces(algorithm: str, pieces: Iterable[bytes]) -> str:
    """Return the digest of the concatenated *pieces*."""
    state = hashlib.new(algorithm)
    for piece in pieces:
        state.update(piece)
    return _labelled(algorithm, state)


def digests_of(algorithm: str, framing: Framing, block: bytes) -> Digests:
    """Return both digests of the complete response *block*."""
    if framing.chunked:
        digester = Digester(algorithm, framing)
        digester.feed(block)
        return digester.digests()
    payload = memoryview(block)[framing.head_length :]
    return Digests(digest_of(algorithm, block), digest_of(algorithm, payload), len(payload))


def _labelled(algorithm: str, state: "hashlib._Hash") -> str:
    value = b32encode(state.digest()).decode() if algorithm == "sha1" else state.hexdigest()
    return f"{algorithm}:{value}"


class Digester:
    """Computes both digests of a response block that is fed to it piece by piece."""

    def __init__(self, algorithm: str, framing: Framing) -> None:
        self._algorithm = algorithm
        self._block = hashlib.new(algorithm)
        self._payload = hashlib.new(algorithm)
        self._head_left = framing.head_length
        self._dechunker = Dechunker() if framing.chunked else None
        self._length = 0

    def feed(self, piece: bytes) -> list[memoryview]:
        """Add the next *piece* of the block; return its payload parts."""
        self._block.update(piece)
        if self._head_left >= len(piece):
            self._head_left -= len(piece)
            return []
        start, self._head_left = self._head_left, 0
        parts = [memoryview(piece)[start:]] if self._dechunker is None else self._dechunker.feed(piece[start:])
        self._take(parts)
        return parts

    @property
    def irregular(self) -> bool:
        """True if some readers may fail to decode the chunks so far."""
        return self._dechunker is not None and self._dechunker.irregular

    def digests(self) -> Digests:
        """Return both digests of the complete block."""
        if self._dechunker is not None:
            self._take(self._dechunker.finish())
        return Digests(
            block=_labelled(self._algorithm, self._block),
            payload=_labelled(self._algorithm, self._payload),
            payload_length=self._length,
        )

    def _take(self, parts: list[memoryview]) -> None:
        for part in parts:
            self._payload.update(part)
            self._length += len(part)
