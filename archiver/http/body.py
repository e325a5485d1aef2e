"""The body of a response: the digests of what is stored of it, and how far it is read. Pure.

The payload is the body without chunked framing but still content-encoded (WARC 1.1 §5.9). SHA-1 is written in Base32 as
in all archives, SHA-256 and MD5 in lowercase hexadecimal (the grammar does not allow `=`).

The head alone decides which bodies are not read to their end: unwanted media types and statuses, and endless
streams. Live audio, webcams and event streams never end. They are recognized by their head, and only if it states no
length: a response with a length is a file. A sample of them is stored. A file that is taken for a stream
is usually complete within the sample.
Audio without a length may still be a file that a script serves, so it is cut only when it arrives at playback speed for
longer than such a file would take.

A remark in the metadata record and in crawl.log says what was left out. The sentences for people are made from that
remark, during the crawl and in recovery alike.
"""

import hashlib
import math
from base64 import b32encode
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from archiver.http.chunked import Dechunker
from archiver.http.head import body_length
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


TELLING = frozenset((202, 401, 403, 405, 406, 407, 415, 429, 451, 456, 503))
"""Statuses of answers that may show a login or a block. Their bodies are read this far, wanted or not: `SAMPLE`."""

SAMPLE = 64 << 10  # bytes of body: four seconds of common audio, some pictures of a webcam …
SAMPLE_TIME = 5.0  # … or as much as comes in this many seconds
LISTENING = 64 << 10  # bytes a second: audio is seldom above 320 kbit/s, and a server sends files faster …
LISTENED = 300.0  # … over this many seconds

_FIELDS = ("icy-", "ice-", "x-audiocast-")  # SHOUTcast, Icecast and their predecessors
_SERVERS = ("icecast", "shoutcast", "rocketstreamingserver", "rsas", "nicecast", "steamcast")
_TYPES = {
    "multipart/x-mixed-replace": "webcam",
    "multipart/replace": "webcam",
    "video/x-motion-jpeg": "webcam",
    "video/x-mjpeg": "webcam",
    "video/mjpeg": "webcam",
    "text/event-stream": "events",
    "application/x-dom-event-stream": "events",
    "application/x-rtsp-tunnelled": "broadcast",
    "application/x-mms-framed": "broadcast",
    "video/nsv": "broadcast",
}
_MEDIA = ("audio/", "video/", "application/ogg", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class Extent:
    """The limits for reading a body. The remark says why the rest is left out."""

    remark: str = ""
    size: int = 0  # bytes of body; 0: no limit
    seconds: float = math.inf  # after the head
    slow_rate: float = 0.0  # bytes a second: the time limit holds only for slower bodies; 0: for all


WHOLE = Extent()


def extent(framing: Framing) -> Extent:
    """Return how far the body of a response with this head is read, if it may never end."""
    if not 200 <= framing.status < 300 or body_length(framing.fields).size is not None:
        return WHOLE
    if word := _kind(framing):
        return Extent(f"endless:{word}", SAMPLE, SAMPLE_TIME)
    if framing.media_type.startswith("audio/"):
        return Extent("endless:audio", seconds=LISTENED, slow_rate=LISTENING)
    return WHOLE


def _kind(framing: Framing) -> str:
    if "icy-status-line" in framing.faults or any(name.startswith(_FIELDS) for name, _ in framing.fields):
        return "broadcast"
    server = (framing.first("server") or "").lower()
    if server.startswith(_SERVERS) and framing.media_type.startswith(_MEDIA):
        return "broadcast"
    return _TYPES.get(framing.media_type, "")


class UnreadReason(StrEnum):
    """The first word of a remark, before a colon and the detail."""

    EXCLUDED = "exclude-type"
    NOT_INCLUDED = "no-include-type"
    NOT_KEPT = "no-keep-status"
    ENDLESS = "endless"
    UNSTATED = "unstated-length"
    HOOK = "hook"
    WEBSOCKET = "websocket"


@dataclass(frozen=True, slots=True)
class WantedBodies:
    """The media types (`video/*`) and statuses (`200`, `4xx`) whose bodies are read, as in the settings.

    Exclude wins over include. Media types count only for statuses 2xx. Redirects are always read.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()

    def extent(self, framing: Framing) -> Extent:
        """Return how far the body of a response with this head is read."""
        status = framing.status
        if self.statuses and status // 100 != 3 and not {f"{status}", f"{status // 100}xx"} & set(self.statuses):
            remark = f"{UnreadReason.NOT_KEPT}:{status}"
            return Extent(remark, SAMPLE, SAMPLE_TIME) if status in TELLING else Extent(remark, seconds=0.0)
        remark = self._refusal(framing.media_type) if 200 <= status < 300 else ""
        return Extent(remark, seconds=0.0) if remark else extent(framing)

    def _refusal(self, media_type: str) -> str:
        for pattern in self.exclude:
            if _is_like(media_type, pattern):
                return f"{UnreadReason.EXCLUDED}:{pattern}"
        named = not self.include or not media_type or any(_is_like(media_type, pattern) for pattern in self.include)
        return "" if named else f"{UnreadReason.NOT_INCLUDED}:{media_type}"


def _is_like(media_type: str, pattern: str) -> bool:
    return media_type.startswith(pattern[:-1]) if pattern.endswith("/*") else media_type == pattern


def unread_reason(remarks: Iterable[str]) -> str:
    """Return in words why a body was not read to its end; "" if no remark says so."""
    for remark in remarks:
        word, _, detail = remark.partition(":")
        match word:
            case UnreadReason.ENDLESS:
                return f"an endless stream ({detail}); a sample is stored"
            case UnreadReason.UNSTATED:
                return f"the response stated no length; reading stopped after {detail}"
            case UnreadReason.EXCLUDED:
                return f"the rest was not wanted: exclude-type {detail}"
            case UnreadReason.HOOK:
                return f"the rest was not wanted: hook {detail}"
            case UnreadReason.WEBSOCKET:
                return "a WebSocket connection was passed on; only its handshake is recorded"
            case UnreadReason.NOT_INCLUDED:
                return f"the rest was not wanted: no include-type names {detail}"
            case UnreadReason.NOT_KEPT:
                return f"the rest was not wanted: keep-status does not name {detail}"
    return ""
