"""Answers that never end: live audio, webcams, event streams, recognised by their head. Pure.

Only answers that declare no length are meant: a file is a file, whoever sends it. What is endless by its head is worth
a sample, which shows what was there; a finite one of the kind is mostly over before. Audio that merely does not say how
long it is may be a file that a script hands out: it is taken for a broadcast when it has come at the speed of listening
for longer than a file of that size takes.

Bodies that are not read to their end, decided by the head alone: unwanted media types, and what never ends. Pure.

What is left out is told by a remark, which stands in the metadata record and in crawl.log, and from which a sentence
for people is made, live and in recovery alike.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from archiver.http.head import body_length
from archiver.model import Framing

SAMPLE = 64 << 10  # bytes of body: four seconds of common audio, some pictures of a webcam …
SAMPLE_TIME = 5.0  # … or as much as comes in this many seconds
LISTENING = 64 << 10  # bytes a second: audio is seldom above 320 kbit/s; a server that hands out files is quicker …
LISTENED = 300.0  # … over this many seconds

_FIELDS = ("icy-", "ice-", "x-audiocast-")  # SHOUTcast, Icecast, and what came before them
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
    """How far a body is read. What goes beyond is left, and the remark says why."""

    remark: str = ""
    size: int = 0  # bytes of body at most; 0: no bound
    seconds: float = math.inf  # counted from the head on
    pace: float = 0.0  # the seconds count only for what comes more slowly, in bytes a second; 0: for everything


WHOLE = Extent()


def extent(framing: Framing) -> Extent:
    """How far the body of an answer that begins like this is read, as one that may never end."""
    if not 200 <= framing.status < 300 or body_length(framing.fields).size is not None:
        return WHOLE
    if word := _kind(framing):
        return Extent(f"endless:{word}", SAMPLE, SAMPLE_TIME)
    if framing.media_type.startswith("audio/"):
        return Extent("endless:audio", seconds=LISTENED, pace=LISTENING)
    return WHOLE


def _kind(framing: Framing) -> str:
    if "icy-status-line" in framing.faults or any(name.startswith(_FIELDS) for name, _ in framing.fields):
        return "broadcast"
    server = (framing.first("server") or "").lower()
    if server.startswith(_SERVERS) and framing.media_type.startswith(_MEDIA):
        return "broadcast"
    return _TYPES.get(framing.media_type, "")


class UnreadReason(StrEnum):
    """The words with which such remarks begin; a colon follows, and what it was about."""

    EXCLUDED = "exclude-type"
    NOT_INCLUDED = "no-include-type"
    ENDLESS = "endless"
    UNSTATED = "unstated-length"


@dataclass(frozen=True, slots=True)
class WantedTypes:
    """The media types whose bodies are read, as the settings name them (`video/*`); exclude goes before include."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def extent(self, framing: Framing) -> Extent:
        """How far the body of an answer that begins like this is read."""
        remark = self._refusal(framing.media_type) if 200 <= framing.status < 300 else ""
        return Extent(remark, seconds=0.0) if remark else extent(framing)

    def _refusal(self, media_type: str) -> str:
        for pattern in self.exclude:
            if _is_like(media_type, pattern):
                return f"{UnreadReason.EXCLUDED}:{pattern}"
        named = not self.include or not media_type or any(_is_like(media_type, pattern) for pattern in self.include)
        return "" if named else f"{UnreadReason.NOT_INCLUDED}:{media_type}"


def _is_like(media_type: str, pattern: str) -> bool:
    return media_type.startswith(pattern[:-1]) if pattern.endswith("/*") else media_type == pattern


def reason(remarks: Iterable[str]) -> str:
    """Why a body was not read to its end, for a person; "" where no remark says that it was not."""
    for remark in remarks:
        word, _, detail = remark.partition(":")
        match word:
            case UnreadReason.ENDLESS:
                return f"an endless stream ({detail}), of which a sample is kept"
            case UnreadReason.UNSTATED:
                return f"no length was stated, and the rest was left at {detail}"
            case UnreadReason.EXCLUDED:
                return f"the rest was not wanted: exclude-type {detail}"
            case UnreadReason.NOT_INCLUDED:
                return f"the rest was not wanted: no include-type names {detail}"
    return ""
