"""Both digests of a stored response: over the block, and over the payload.

The payload is the body after chunked framing was removed, still content-encoded (WARC 1.1 §5.9). SHA-1 is
written in Base32 as all archives do, SHA-256 and MD5 in lowercase hexadecimal (the grammar has no `=`).
"""

import hashlib
from base64 import b32encode
from collections.abc import Iterable

from archiver.http.chunked import Dechunker
from archiver.model import Digests, Framing

_MAKERS = {"sha256": hashlib.sha256, "sha1": hashlib.sha1}  # by name they take longer than a short text does


def digest_of(algorithm: str, data: bytes | memoryview) -> str:
    """The digest of *data* as a WARC field has it: `sha256:…`."""
    maker = _MAKERS.get(algorithm)
    return _labelled(algorithm, hashlib.new(algorithm, data) if maker is None else maker(data))


def digest_of_pieces(algorithm: str, pieces: Iterable[bytes]) -> str:
    """The digest of all *pieces* in a row."""
    state = hashlib.new(algorithm)
    for piece in pieces:
        state.update(piece)
    return _labelled(algorithm, state)


def digests_of(algorithm: str, framing: Framing, block: bytes) -> Digests:
    """Both digests of the whole response *block*."""
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
    """Feed it a response block from its first byte; both digests are known at the end."""

    def __init__(self, algorithm: str, framing: Framing) -> None:
        self._algorithm = algorithm
        self._block = hashlib.new(algorithm)
        self._payload = hashlib.new(algorithm)
        self._head_left = framing.head_length
        self._dechunker = Dechunker() if framing.chunked else None
        self._length = 0

    def feed(self, piece: bytes) -> list[memoryview]:
        """Take the next *piece* of the block; the parts of it that are payload."""
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
        """Whether the chunks that came so far are not such as every reader undoes."""
        return self._dechunker is not None and self._dechunker.irregular

    def digests(self) -> Digests:
        """Both digests; the block is over."""
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
