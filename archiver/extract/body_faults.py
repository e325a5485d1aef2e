"""Faults of bodies: one that ends early, is damaged, is only a part, or is not encoded as its head says.

The bytes are stored as they came. The fault word is in the metadata record, so a rebuilt database has it too. A body
that is cut or damaged is requested once more, as after a lost connection, and so is a part that no one asked for. One
that was never encoded would come the same again.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from archiver.http import Dechunker, content_codings, transfer_codings
from archiver.http.chunked import CHUNK_FAULT
from archiver.http.content_coding import MAX_FRAMES, PAGE_WINDOW, Decoder, DecoderLimits
from archiver.http.head import UNKNOWN_CODING, is_unasked_part
from archiver.model import Exchange, Links
from archiver.policy.retry import CODING_FAULT, CUT, PART_FAULT

CHECKED = 32 << 20  # decoded bytes of a body that are checked: a second of work at most

_CUT = re.compile(r"\b(?:broken \w+ data|data is cut)")
_WRONG = re.compile(rf"{_CUT.pattern}|\bnot \w+, as the header says")
_UNKNOWN = re.compile(r"\bunknown content coding")


def with_body_faults(exchange: Exchange, links: Links) -> Exchange:
    """Return *exchange* with the fault word of its body, if it has one; *links* were read from it."""
    is_part = is_unasked_part(exchange.request, exchange.framing)  # which may end anywhere in its coding
    word = PART_FAULT if is_part else _coding_fault(exchange, links)
    if not word:
        return exchange
    return replace(exchange, framing=replace(exchange.framing, faults=(*exchange.framing.faults, word)))


def _coding_fault(exchange: Exchange, links: Links) -> str:
    """Return the fault word for the content coding of *exchange*; "" if it is sound."""
    fields = exchange.framing.fields
    codings = {*content_codings(fields), *transfer_codings(fields)} - {"identity"}
    if exchange.truncated is not None or not codings or exchange.response.length <= exchange.framing.head_length:
        return ""
    note = links.note
    if not (note or links.links or links.page):  # it was not read, or has no links
        note = _decoding_note(exchange)
    return CODING_FAULT if _WRONG.search(note) else UNKNOWN_CODING if _UNKNOWN.search(note) else ""


def is_incomplete(exchange: Exchange) -> bool:
    """Return True if a part of the body is missing or damaged. Another request may bring it."""
    faults = exchange.framing.faults
    return CHUNK_FAULT in faults or PART_FAULT in faults or is_cut(exchange)


def is_cut(exchange: Exchange) -> bool:
    """Return True if the body of *exchange* begins as its head says, but ends early or is damaged."""
    if exchange.truncated in CUT:
        return True
    faults = exchange.framing.faults
    if CHUNK_FAULT in faults:
        return chunks_break(exchange)
    return CODING_FAULT in faults and bool(_CUT.search(_decoding_note(exchange)))


def chunks_break(exchange: Exchange) -> bool:
    """Return True if the body begins with a chunk; otherwise it was never chunked, and may be whole."""
    dechunker = Dechunker()
    for piece in _framed(exchange):
        dechunker.feed(piece)
        if dechunker.broken:
            break
    return dechunker.failed


def _decoding_note(exchange: Exchange) -> str:
    """Return what is wrong with the codings in the first `CHECKED` bytes of the body; memory is bounded."""
    codings = [*content_codings(exchange.framing.fields), *transfer_codings(exchange.framing.fields)]
    decoder = Decoder(_body(exchange), codings, DecoderLimits(CHECKED, PAGE_WINDOW, MAX_FRAMES))
    for _ in decoder:
        pass
    return "; ".join(decoder.notes)


def _body(exchange: Exchange) -> Iterator[bytes]:
    """Yield the body without its chunked framing."""
    dechunker = Dechunker() if exchange.framing.chunked else None
    for piece in _framed(exchange):
        yield from (piece,) if dechunker is None else map(bytes, dechunker.feed(piece))
    if dechunker is not None:
        yield from map(bytes, dechunker.finish())


def _framed(exchange: Exchange) -> Iterator[bytes]:
    """Yield the body as it crossed the wire."""
    skip = exchange.framing.head_length
    for whole in exchange.response.pieces():
        piece, skip = whole[skip:], max(0, skip - len(whole))
        yield piece
