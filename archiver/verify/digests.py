"""Both digests of a record, computed again while its block streams by, and what its HTTP framing tells.

The payload of an HTTP message is its body without chunked framing, still content-encoded (WARC 1.1 §5.9). Many
writers hash the framing too: where that is what the digest says, the finding says so. One `BlockCheck` a record.
"""

import hashlib
import re
from base64 import b32encode
from collections.abc import Iterator

from archiver.http import Dechunker, read_head
from archiver.http.head import MAX_HEAD, body_length, head_end, leading_blank, may_be_head
from archiver.model import Framing
from archiver.warc.reader import Record

Finding = tuple[str, str]

_ALGORITHMS = frozenset({"md5", "sha1", "sha224", "sha256", "sha384", "sha512"})
_DIGEST = re.compile(r"([A-Za-z0-9_-]{1,40}):([A-Za-z0-9+/=_-]{1,200})")
_HELD_HEAD = 2 * MAX_HEAD  # a capture that was cut for its endless head is a little longer than MAX_HEAD
_NO_BODY = (204, 304)


class _Digest:
    """One digest field: what it claims, and the hash that will tell."""

    def __init__(self, value: str) -> None:
        algorithm, _, self._claim = value.partition(":")
        self.algorithm = _algorithm(algorithm)
        self._state = hashlib.new(self.algorithm, usedforsecurity=False)
        self.update = self._state.update

    def holds(self) -> bool:
        raw = self._state.digest()
        if self._claim.lower() == raw.hex():
            return True
        return self._claim.upper().rstrip("=") == b32encode(raw).decode().rstrip("=")

    def __str__(self) -> str:
        if self.algorithm == "sha1":
            return f"sha1:{b32encode(self._state.digest()).decode()}"
        return f"{self.algorithm}:{self._state.hexdigest()}"


def _algorithm(name: str) -> str:
    return name.lower().replace("-", "")


def digest_fault(name: str, value: str) -> Finding | None:
    """What is wrong with the syntax of the digest *value* in field *name*, or that its algorithm is unknown."""
    found = _DIGEST.fullmatch(value)
    if found is None:
        return "digest-syntax", f"{name} is {value[:80]!r}, not `algorithm:value`"
    algorithm = _algorithm(found[1])
    if algorithm not in _ALGORITHMS:
        return "digest-algorithm", f"{name} uses {found[1]!r}"
    size = hashlib.new(algorithm, usedforsecurity=False).digest_size
    base16 = re.fullmatch(rf"[0-9A-Fa-f]{{{size * 2}}}", found[2])
    base32 = re.fullmatch(rf"[A-Za-z2-7]{{{-(-size * 8 // 5)}}}=*", found[2])
    if not base16 and not base32:
        return "digest-syntax", f"{name} is {value[:80]!r}, which {found[1]} cannot give"
    return None


def _opened(record: Record, name: str) -> _Digest | None:
    value = record.first(name)
    return _Digest(value) if value is not None and digest_fault(name, value) is None else None


class BlockCheck:
    """Feed it a record's block; `findings` then says whether it is what the header claims."""

    def __init__(self, record: Record) -> None:
        self.framing: Framing | None = None  # of an HTTP message, once its head has come by
        self._record = record
        self._block = _opened(record, "WARC-Block-Digest")
        media_type = re.sub(r"\s", "", record.first("Content-Type") or "").lower()
        self._http = media_type.startswith("application/http") and record.type in ("response", "request", "revisit")
        self.segmented = record.first("WARC-Segment-Number") is not None
        checked = record.type in ("response", "request", "resource", "conversion") and not self.segmented
        self._payload = _opened(record, "WARC-Payload-Digest") if checked else None
        self._framed = _opened(record, "WARC-Payload-Digest") if self._payload and self._http else None
        self._head = bytearray()
        self._dechunker: Dechunker | None = None
        self._body = 0

    def feed(self, piece: bytes) -> None:
        """Take the next *piece* of the block."""
        if self._block is not None:
            self._block.update(piece)
        if not self._http:
            self._take(piece)
        elif self.framing is not None:
            self._take_body(piece)
        else:
            self._head += piece
            self._try_head(last=False)

    def finish(self) -> None:
        """The block is over."""
        if self._http and self.framing is None:
            self._try_head(last=True)
        if self._dechunker is not None:
            for part in self._dechunker.finish():
                self._take(part)

    def findings(self) -> Iterator[Finding]:
        """What is not as it should be in a block that came whole."""
        if self._block is not None and not self._block.holds():
            said = self._record.first("WARC-Block-Digest")
            yield "block-digest", f"the header says {said}, the block has {self._block}"
        if self._payload is not None and not self._payload.holds():
            yield self._payload_finding(self._payload)
        if self.segmented and self._record.first("WARC-Payload-Digest"):
            yield "segmented", "the payload digest of a segmented record was not checked"
        if self._record.type == "response" and self.framing is not None:
            yield from self._framing_findings(self.framing)

    def _payload_finding(self, payload: _Digest) -> Finding:
        said = self._record.first("WARC-Payload-Digest")
        if self._dechunker is not None and self._framed is not None and self._framed.holds():
            return "payload-digest-of-framing", f"{said} is that of the chunked framing; the payload has {payload}"
        sentence = f"the header says {said}, the payload has {payload}"
        if self._block is not None and self._http and said == self._record.first("WARC-Block-Digest"):
            sentence += "; the header repeats the block digest"
        return "payload-digest", sentence

    def _framing_findings(self, framing: Framing) -> Iterator[Finding]:
        if framing.status < 200 or framing.status in _NO_BODY or self._record.first("WARC-Truncated"):
            return
        if self._dechunker is not None:
            if self._dechunker.unframed and self._body:
                yield "chunked-unframed", "the head says chunked, the body has no chunks"
            elif not self._dechunker.done and not self._dechunker.unframed:
                yield "truncation-unmarked", "the last chunk is missing, and so is WARC-Truncated"
        elif (size := body_length(framing.fields).size) is not None and size > self._body:
            yield "truncation-unmarked", f"the body has {self._body} of {size} bytes, and WARC-Truncated is missing"

    def _try_head(self, *, last: bool) -> None:
        head = bytes(self._head)
        start = leading_blank(head)
        end = head_end(head, start)
        message = self._record.type == "request" or may_be_head(head)
        if end < 0 and message and not last and len(head) < _HELD_HEAD:
            return
        self.framing = _request_framing(head, end) if self._record.type == "request" else read_head(head)
        if self.framing.chunked:
            self._dechunker = Dechunker()
        self._head.clear()
        if len(head) > self.framing.head_length:
            self._take_body(head[self.framing.head_length :])

    def _take_body(self, piece: bytes) -> None:
        if self._dechunker is None:
            self._take(piece)
        else:
            if self._framed is not None:
                self._framed.update(piece)
            for part in self._dechunker.feed(piece):
                self._take(part)

    def _take(self, part: bytes | memoryview) -> None:
        self._body += len(part)
        if self._payload is not None:
            self._payload.update(part)


def _request_framing(head: bytes, end: int) -> Framing:
    """A request's framing, read as if it were a response: their fields and bodies follow one grammar.

    Its `protocol` is the method.
    """
    length = end if end >= 0 else len(head)
    line = head.find(b"\n", 0, length)
    fields = read_head(b"HTTP/1.1 200\r\n" + head[line + 1 : length]) if line >= 0 else None
    method = head[:32].split(maxsplit=1)
    return Framing(
        status=0,
        head_length=length,
        chunked=fields.chunked if fields else False,
        media_type=fields.media_type if fields else "",
        fields=fields.fields if fields else (),
        protocol=method[0].decode("latin-1") if method else "",
    )
