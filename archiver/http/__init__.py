"""HTTP/1 messages as they come, not as they should be: where a message ends, and what is malformed in it.

The parts: `head` reads a response head, `chunks` undoes chunked framing, `framer` decides where the message ends as its
bytes arrive, `stored` reads the head of one that is stored, `digest` computes both digests of it, `endless` and
`unread` say by the head which bodies are not read to their end. Nothing here refuses a message: what is wrong with it
is named, and every byte that came is kept. Pure.
"""

from archiver.http.body_limits import Extent, WantedTypes
from archiver.http.chunked import Dechunker
from archiver.http.digest import Digester, digest_of, digest_of_pieces, digests_of
from archiver.http.framer import Framer
from archiver.http.head import beginning, content_codings, read_beginning, read_head, read_stored, transfer_codings

__all__ = [
    "Dechunker",
    "Digester",
    "Extent",
    "Framer",
    "WantedTypes",
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
