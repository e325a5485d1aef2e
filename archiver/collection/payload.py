"""What a record holds: the head of an answer, and its payload, without transfer coding or without any coding at all.

A piece at a time, so that an answer of any size can be read. A resource record has no head; its block is the payload.
"""

from collections.abc import Iterator
from itertools import chain

from archiver.http import Dechunker, content_codings, read_beginning
from archiver.http.content_coding import Decoder
from archiver.model import Framing
from archiver.warc.reader import Record


class StoredResponse:
    """One record whose head is read and whose body is still to be read, once, by one of the methods."""

    def __init__(self, head: bytes, framing: Framing, rest: Iterator[bytes], record: Record) -> None:
        self.head = head  # status line and fields as they stand there, with their empty line
        self.framing = framing
        self.truncated = record.first("WARC-Truncated") or ""
        self._rest = rest

    def payload(self) -> Iterator[bytes]:
        """The body without its transfer coding; chunks that cannot be followed end it."""
        if not self.framing.chunked:
            yield from self._rest
            return
        dechunker = Dechunker()
        for piece in self._rest:
            yield from map(bytes, dechunker.feed(piece))
        yield from map(bytes, dechunker.finish())

    def decoded(self) -> Decoder:
        """The body without any coding."""
        return Decoder(self.payload(), content_codings(self.framing.fields))


def read_answer(record: Record) -> StoredResponse:
    """What *record* holds, whose block nobody has read yet."""
    pieces = record.pieces()
    if not (record.first("Content-Type") or "").lower().startswith("application/http"):
        media = (record.first("Content-Type") or "").partition(";")[0].strip().lower()
        fields = (("content-type", record.first("Content-Type") or ""),)
        return StoredResponse(b"", Framing(0, 0, chunked=False, media_type=media, fields=fields), pieces, record)
    begin, framing = read_beginning(pieces)
    head, rest = begin[: framing.head_length], begin[framing.head_length :]
    return StoredResponse(head, framing, chain((rest,) if rest else (), pieces), record)
