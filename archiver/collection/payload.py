"""Read stored answers: the HTTP head, and the payload without transfer coding or without any coding.

`read_answer` streams, so an answer of any size can be read. `stored_answer` gives an answer as an exchange that can be
read several times, in memory or in a spool file. A resource record has no head; its block is the payload.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from archiver.collection.records import record_at
from archiver.errors import ArchiveError
from archiver.fetch.spool import FileBlock, MemoryBlock, spool_pieces
from archiver.http import Dechunker, content_codings, read_beginning
from archiver.http.content_coding import UNLIMITED, Decoder, DecoderLimits
from archiver.model import Block, Exchange, Framing, Peer
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record

IN_MEMORY = 1 << 20  # bytes of a stored block; a larger one is spooled


class StoredResponse:
    """One record with its head read; read the body once, with one of the methods."""

    def __init__(self, head: bytes, framing: Framing, rest: Iterator[bytes], record: Record) -> None:
        self.head = head  # status line and headers as stored, with their empty line
        self.framing = framing
        self.truncated = record.first("WARC-Truncated") or ""
        self._rest = rest

    def payload(self) -> Iterator[bytes]:
        """Yield the body without its transfer coding, up to the first invalid chunk."""
        if not self.framing.chunked:
            yield from self._rest
            return
        dechunker = Dechunker()
        for piece in self._rest:
            yield from map(bytes, dechunker.feed(piece))
        yield from map(bytes, dechunker.finish())

    def decoded(self, limits: DecoderLimits = UNLIMITED) -> Decoder:
        """Return the body without any coding."""
        return Decoder(self.payload(), content_codings(self.framing.fields), limits)


def read_answer(record: Record) -> StoredResponse:
    """Read the head of the answer in *record*, whose block must be unread."""
    pieces = record.pieces()
    if not (record.first("Content-Type") or "").lower().startswith("application/http"):
        media = (record.first("Content-Type") or "").partition(";")[0].strip().lower()
        fields = (("content-type", record.first("Content-Type") or ""),)
        return StoredResponse(b"", Framing(0, 0, chunked=False, media_type=media, fields=fields), pieces, record)
    begin, framing = read_beginning(pieces)
    head, rest = begin[: framing.head_length], begin[framing.head_length :]
    return StoredResponse(head, framing, chain((rest,) if rest else (), pieces), record)


def hold_block(pieces: Iterable[bytes], size: int, spool: Path) -> MemoryBlock | FileBlock:
    """Keep *pieces* in memory, or if *size* is large in a file in the folder *spool*; close the block after use."""
    return spool_pieces(spool, pieces) if size > IN_MEMORY else MemoryBlock(b"".join(pieces))


def stored_exchange(block: Block, framing: Framing) -> Exchange:
    """Return the exchange whose response is *block*; its request and its peer are not known."""
    return Exchange(b"", block, framing, None, Peer(None), started=0, duration=0.0)


@contextmanager
def stored_answer(file: Path, offset: int, spool: Path) -> Iterator[Exchange]:
    """Give the answer stored at *offset* of *file*. Raises `ArchiveError` if it cannot be read."""
    try:
        with record_at(file.parent, file.name, offset) as record:
            block = hold_block(record.pieces(), record.size or 0, spool)
    except DamagedRecord as damage:
        raise ArchiveError(f"{file}: {damage.reason} at offset {damage.offset}") from None
    try:
        yield stored_exchange(block, read_beginning(block.pieces())[1])
    finally:
        block.close()
