"""HTTP/1 messages as servers send them: where a message ends, and what is malformed in it. Pure.

`head` reads a response head, `chunked` decodes chunked framing, and `framer` finds the end of a message as its bytes
arrive. `content_coding` decodes bodies. `body` computes both digests, and decides by the head which bodies are not read
to their end. Nothing here rejects a message: every fault is named, and every byte is kept.
"""

from archiver.http.body import Digester, Extent, WantedBodies, digest_of, digest_of_pieces, digests_of
from archiver.http.chunked import Dechunker
from archiver.http.framer import Framer
from archiver.http.head import beginning, content_codings, read_beginning, read_head, read_stored, transfer_codings

__all__ = [
    "Dechunker",
    "Digester",
    "Extent",
    "Framer",
    "WantedBodies",
    "beginning",
    "content_codings",
    "digest_of",
    "digest_of_pieces",
    "digests_of",
    "read_beginning",
    "read_head",
    "read_stored",
    "transfer_codings",
]
