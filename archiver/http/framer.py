"""Find the end of one response on its connection as the bytes arrive. Pure.

Returns exactly the bytes of the final response, head included. Keeps apart what came before it (1xx responses) and
after it (bytes that belong to no request). Never rejects or changes a byte. A message whose end cannot be known runs to
the end of the connection.
"""

from dataclasses import replace

from archiver.http.chunked import CHUNK_FAULT, Dechunker
from archiver.http.head import (
    BODYLESS,
    LARGE_HEAD,
    LARGE_LENGTH,
    BodyLength,
    head_end,
    leading_blank,
    may_be_head,
    read_head,
    read_message,
)
from archiver.model import Framing, Truncation

LONGEST_HEAD = 384 << 10  # as in Firefox; Chromium allows 256 KiB, curl 300 KB. Longer heads are cut and marked
MAX_INTERIM = 64 << 10  # of all 1xx responses together
MAX_SURPLUS = 64 << 10  # bytes kept of what follows a complete message


class Framer:
    """One response. Feed it the data that arrives, and finish it when the connection ends."""

    def __init__(self, method: str = "GET", *, upgrade: str = "") -> None:
        """*upgrade*: the protocol, in lower case, to which the request asks to change the connection."""
        self.done = False
        self.upgraded = False  # the connection speaks that protocol now
        self.framing: Framing | None = None
        self.truncated: Truncation | None = None
        self.empty = False  # it ended after nothing but 1xx responses
        self.reusable = False  # after `done`: the connection may carry another exchange
        self._bodyless = method == "HEAD"
        self._upgrade = upgrade
        self._held = bytearray()  # the head until it is complete
        self._blank = 0  # length of the empty lines before the status line
        self._searched = 0  # no head ends before this position
        self._interim = bytearray()
        self._surplus = bytearray()
        self._left: int | None = None
        self._dechunker: Dechunker | None = None

    @property
    def interim(self) -> bytes:
        """The 1xx responses that came first."""
        return bytes(self._interim)

    @property
    def surplus(self) -> bytes:
        """The bytes that followed the complete message, up to `MAX_SURPLUS`; none that another protocol has sent."""
        return b"" if self.upgraded else bytes(self._surplus)

    @property
    def early(self) -> bytes:
        """The bytes of the other protocol that came with the head."""
        return bytes(self._surplus) if self.upgraded else b""

    @property
    def headless(self) -> bool:
        """True if no byte of the final response has come."""
        return self.framing is None and not self._held

    def feed(self, data: bytes) -> bytes:
        """Return the part of *data*, and of the buffered bytes, that belongs to the response."""
        if self.done:
            self._spare(data)
            return b""
        if self.framing is None:
            return self._feed_head(data)
        return self._feed_body(data)

    def finish(self, *, clean: bool = True) -> bytes:
        """Return the buffered bytes at the end of the connection (*clean*: without an error) and set `truncated`."""
        if self.done:
            return b""
        self.done = True
        self.empty = self.headless
        rest = self._release()
        headless = self.framing is None
        self.framing = self.framing or read_head(rest)
        unended = self._left or (self._dechunker is not None and not self._dechunker.unframed)
        if headless or unended or not clean:
            self.truncated = self.truncated or Truncation.DISCONNECT
        return rest

    def cut(self, why: Truncation) -> bytes:
        """End the response here for the reason *why*; return the buffered bytes."""
        self.done = True
        self.reusable = False
        self.truncated = why
        self.empty = self.headless
        rest = self._release()
        self.framing = self.framing or read_head(rest)
        return rest

    def _feed_head(self, data: bytes) -> bytes:
        if not self._held and data.startswith(b"HTTP/") and 0 < (end := head_end(data)) <= LONGEST_HEAD:
            framing, length = read_message(data[:end])
            if not _is_interim(framing.status):  # common case: the first piece holds the whole head
                return self._start(framing, length, data)
        self._held += data
        while True:
            self._blank = leading_blank(self._held, self._blank)
            if not may_be_head(self._held, self._blank):
                return self._start(*read_message(bytes(self._held[: self._blank + 5])), self._release())
            end = head_end(self._held, max(self._searched, self._blank))
            self._searched = len(self._held) - 2  # the end may start in the last two bytes
            if end > LONGEST_HEAD or (end < 0 and len(self._held) > LONGEST_HEAD):
                return self._overflow()
            if end < 0:
                return b""
            framing, length = read_message(bytes(self._held[:end]))
            if not _is_interim(framing.status):
                return self._start(framing, length, self._release())
            if len(self._interim) + end > MAX_INTERIM:
                named = replace(framing, faults=(*framing.faults, "too-many-interim"))
                return self._start(named, length, self._release())
            self._interim += self._held[:end]
            del self._held[:end]
            self._blank = self._searched = 0

    def _overflow(self) -> bytes:
        """Cut a head that does not end within `LONGEST_HEAD`."""
        held = self._release()
        block, rest = held[:LONGEST_HEAD], held[LONGEST_HEAD:]
        begins = read_head(block[:LARGE_HEAD])  # the rest is stored but not parsed, to save time
        faults = ("large-head", *begins.faults)
        self.framing = replace(begins, head_length=len(block), faults=faults)
        self.done, self.truncated = True, Truncation.LENGTH
        self._spare(rest)
        return block

    def _release(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return held

    def _start(self, framing: Framing, length: BodyLength, held: bytes) -> bytes:
        """Start the final response: *held* is its head and the part of its body that came with it."""
        self.framing = framing
        if self._bodyless or framing.status in BODYLESS:
            self._left = 0
            if framing.chunked:
                self.framing = replace(framing, chunked=False)
        elif framing.chunked:
            self._dechunker = Dechunker()
        else:
            self._left = length.size
            if length.faults and length.faults != (LARGE_LENGTH,):
                self.truncated = Truncation.UNSPECIFIED  # the end of this message is unknown
        if framing.status == 101:
            self.upgraded = bool(self._upgrade) and (framing.first("upgrade") or "").strip().lower() == self._upgrade
            if not self.upgraded:
                self._fault("unasked-upgrade")
        if self._left == 0:
            self._complete()
        came = len(held) - framing.head_length
        if self._left is not None and 0 < came <= self._left:
            self._count(came)
            return held
        if came:
            return held[: framing.head_length] + self._feed_body(held[framing.head_length :])
        return held

    def _feed_body(self, data: bytes) -> bytes:
        if self.done:
            self._spare(data)
            return b""
        if self._dechunker is not None:
            return self._feed_chunks(data, self._dechunker)
        if self._left is None:
            return data
        own, rest = data[: self._left], data[self._left :]
        self._count(len(own))
        self._spare(rest)
        return own

    def _count(self, came: int) -> None:
        """Count *came* bytes of a body with a stated length."""
        if self._left is not None:
            self._left -= came
            if self._left == 0:
                self._complete()

    def _feed_chunks(self, data: bytes, dechunker: Dechunker) -> bytes:
        if dechunker.broken:
            return data
        dechunker.feed(data)
        if dechunker.done:
            if dechunker.nul_in_trailer:
                self._fault("nul-in-trailer")
            self._complete()
            self._spare(data[dechunker.consumed :])
            return data[: dechunker.consumed]
        if dechunker.broken:
            self._fault(CHUNK_FAULT)
            self.truncated = Truncation.UNSPECIFIED
        return data

    def _fault(self, word: str) -> None:
        if self.framing is not None:
            self.framing = replace(self.framing, faults=(*self.framing.faults, word))

    def _complete(self) -> None:
        framing = self.framing
        self.done = True
        if framing is None:
            return
        connection = ",".join(framing.all("connection")).lower()
        persistent = "close" not in connection and (framing.protocol == "http/1.1" or "keep-alive" in connection)
        both = framing.chunked and framing.first("content-length") is not None
        self.reusable = persistent and not framing.faults and not both and framing.status != 101

    def _spare(self, data: bytes) -> None:
        if data:
            self.reusable = False
            self._surplus += data if self.upgraded else data[: MAX_SURPLUS - len(self._surplus)]


def _is_interim(status: int) -> bool:
    return 100 <= status < 200 and status != 101
