"""What a record holds: the head of an answer, and its payload, without transfer coding or without any coding at all.

A piece at a time, so that an answer of any size can be read. A resource record has no head; its block is the payload.
"""

from collections.abc import Iterator
from itertools import chain

from archiver.holdings.decoding import Decoder
from archiver.http import Dechunker, read_stored
from archiver.http.head import head_end, leading_blank
from archiver.model import Framing
from archiver.warc.reader import Record

_LONGEST_HEAD = 4 << 20  # bytes; a crawl keeps heads of a few hundred KiB at most


class Answer:
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
        codings = [word for value in self.framing.all("content-encoding") for word in value.split(",")]
        return Decoder(self.payload(), codings)


def read_answer(record: Record) -> Answer:
    """What *record* holds, whose block nobody has read yet."""
    pieces = record.pieces()
    if not (record.first("Content-Type") or "").lower().startswith("application/http"):
        media = (record.first("Content-Type") or "").partition(";")[0].strip().lower()
        fields = (("content-type", record.first("Content-Type") or ""),)
        return Answer(b"", Framing(0, 0, chunked=False, media_type=media, fields=fields), pieces, record)
    begin = b""
    for piece in pieces:
        begin += piece
        if head_end(begin, leading_blank(begin)) >= 0 or len(begin) > _LONGEST_HEAD:
            break
    framing = read_stored(begin)
    head, rest = begin[: framing.head_length], begin[framing.head_length :]
    return Answer(head, framing, chain((rest,) if rest else (), pieces), record)
