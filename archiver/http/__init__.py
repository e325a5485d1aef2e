"""HTTP/1 messages as they come, not as they should be: where a message ends, and what is malformed in it.

The parts: `head` reads a response head, `chunks` undoes chunked framing, `framer` decides where the message ends as its
bytes arrive, `stored` reads the head of one that is stored, `digest` computes both digests of it, `endless` and
`unread` say by the head which bodies are not read to their end. Nothing here refuses a message: what is wrong with it
is named, and every byte that came is kept. Pure.
"""

from archiver.http.chunks import Dechunker
from archiver.http.digest import Digester, digest_of, digest_of_pieces, digests_of
from archiver.http.endless import Extent
from archiver.http.framer import Framer
from archiver.http.head import content_codings, read_head, transfer_codings
from archiver.http.stored import beginning, read_beginning, read_stored
from archiver.http.unread import Wanted

__all__ = [
    "Dechunker",
    "Digester",
    "Extent",
    "Framer",
    "Wanted",
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
