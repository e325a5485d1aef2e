"""Faults of content codings: a body that ends early, is damaged, or is not encoded as its head says.

The bytes are stored as they came. The fault word is in the metadata record, so a rebuilt database has it too. A cut or
damaged body is requested once more, as after a lost connection. One that was never encoded would come the same again.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from archiver.http import Dechunker, content_codings, transfer_codings
from archiver.http.content_coding import MAX_FRAMES, PAGE_WINDOW, Decoder, DecoderLimits
from archiver.http.head import UNKNOWN_CODING
from archiver.model import Exchange, Links
from archiver.policy.retry import CODING_FAULT

CHECKED = 32 << 20  # decoded bytes of a body that are checked: a second of work at most


_CUT = re.compile(r"\b(?:broken \w+ data|data is cut)")
_WRONG = re.compile(rf"{_CUT.pattern}|\bnot \w+, as the header says")
_UNKNOWN = re.compile(r"\bunknown content coding")


def with_coding_fault(exchange: Exchange, links: Links) -> Exchange:
    """Return *exchange* with a fault word if its content coding breaks; *links* were read from it."""
    fields = exchange.framing.fields
    codings = {*content_codings(fields), *transfer_codings(fields)} - {"identity"}
    if exchange.truncated is not None or not codings or exchange.response.length <= exchange.framing.head_length:
        return exchange
    note = links.note
    if not (note or links.links or links.page):  # it was not read, or has no links
        note = _decoding_note(exchange)
    word = CODING_FAULT if _WRONG.search(note) else UNKNOWN_CODING if _UNKNOWN.search(note) else ""
    if not word:
        return exchange
    return replace(exchange, framing=replace(exchange.framing, faults=(*exchange.framing.faults, word)))


def has_cut_coding(exchange: Exchange) -> bool:
    """Return True if the body of *exchange* begins as it is encoded, but ends early or is damaged."""
    return CODING_FAULT in exchange.framing.faults and bool(_CUT.search(_decoding_note(exchange)))


def _decoding_note(exchange: Exchange) -> str:
    """Return what is wrong with the codings in the first `CHECKED` bytes of the body; memory is bounded."""
    codings = [*content_codings(exchange.framing.fields), *transfer_codings(exchange.framing.fields)]
    decoder = Decoder(_body(exchange), codings, DecoderLimits(CHECKED, PAGE_WINDOW, MAX_FRAMES))
    for _ in decoder:
        pass
    return "; ".join(decoder.notes)


def _body(exchange: Exchange) -> Iterator[bytes]:
    """Yield the body without its chunked framing."""
    skip = exchange.framing.head_length
    dechunker = Dechunker() if exchange.framing.chunked else None
    for whole in exchange.response.pieces():
        piece, skip = whole[skip:], max(0, skip - len(whole))
        yield from (piece,) if dechunker is None else map(bytes, dechunker.feed(piece))
    if dechunker is not None:
        yield from map(bytes, dechunker.finish())
