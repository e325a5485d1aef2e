"""Check the block of a usual record in few steps. Any other block takes the thorough way, `BlockCheck`.

A block is usual if all of it is in memory and it has no findings. Then both ways give the same.
"""

import hashlib
from base64 import b32encode
from typing import NamedTuple

from archiver.ask import WEBSOCKET, opens_websocket
from archiver.http.head import head_end, read_message
from archiver.tools.verify.record_checks import MESSAGES, WITH_PAYLOAD, BlockCheck, is_http
from archiver.warc.reader import Record

_HEAD_END = b"\r\n\r\n"


class BlockSummary(NamedTuple):
    """What the inventory keeps of a block."""

    status: int = 0  # of the HTTP response
    mime: str | None = None  # of the payload; of a request its method; None: that of the record


_OF_RECORD = BlockSummary()


def summary_of(check: BlockCheck) -> BlockSummary:
    """Return the summary of the block that *check* has read."""
    framing = check.framing
    if framing is None:
        return _OF_RECORD
    return BlockSummary(framing.status, framing.protocol if check.of_request else framing.media_type)


def usual_summary(record: Record, block: bytes) -> BlockSummary | None:
    """Return the summary of a usual *block*, the whole one of *record*; None if it needs the thorough way."""
    values = record.values
    stated = values.get("WARC-Block-Digest")
    if "WARC-Segment-Number" in values or not (stated is None or _holds(stated, block)):
        return None
    kind, payload = record.type, values.get("WARC-Payload-Digest")
    if kind not in WITH_PAYLOAD:
        payload = None
    if kind not in MESSAGES or not is_http(values.get("Content-Type", "")):
        return _OF_RECORD if payload is None or payload == stated or _holds(payload, block) else None
    if kind == "request":
        return _of_request(block) if payload is None else None
    return _of_response(block, payload, has_body=kind == "response")


def _of_request(block: bytes) -> BlockSummary | None:
    if block[:1].isspace() or _HEAD_END not in block:
        return None
    method = block[:32].split(maxsplit=1)[0].decode("latin-1")
    return BlockSummary(0, WEBSOCKET if opens_websocket(block[: head_end(block)]) else method)


def _of_response(block: bytes, payload: str | None, *, has_body: bool) -> BlockSummary | None:
    if not block.startswith(b"HTTP/1.") or _HEAD_END not in block:
        return None
    framing, length = read_message(block)
    if framing.chunked or (payload is not None and not _holds(payload, memoryview(block)[framing.head_length :])):
        return None
    if has_body and length.size is not None and length.size > len(block) - framing.head_length:
        return None
    return BlockSummary(framing.status, framing.media_type)


def _holds(claim: str, data: bytes | memoryview) -> bool:
    """Return True if *claim* is a digest in a usual form, and that of *data*."""
    algorithm, _, value = claim.partition(":")
    if algorithm == "sha256":
        return hashlib.sha256(data).hexdigest() == value
    if algorithm == "sha1":
        return b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode() == value
    return False
