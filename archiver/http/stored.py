"""A stored response read again from the beginning of its block: as many bytes as its head takes, and what they say.

The rest is not touched, so the answer can be of any size. Bounded and linear; never raises. Pure.
"""

from collections.abc import Iterator
from dataclasses import replace

from archiver.http.head import BODYLESS, MAX_HEAD, head_end, leading_blank, may_be_head, read_head
from archiver.model import Framing

LONGEST_HEAD = MAX_HEAD + 16  # bytes in which a head is looked for: a crawl cuts a longer one off


def read_stored(data: bytes) -> Framing:
    """What the head of a stored, final response says; answers that have no body are never chunked."""
    framing = read_head(data)
    return replace(framing, chunked=False) if framing.status in BODYLESS else framing


def read_beginning(pieces: Iterator[bytes]) -> tuple[bytes, Framing]:
    """The first of the *pieces* of a stored response, its whole head in them, and what that says."""
    held = bytearray()
    start = looked = 0
    for piece in pieces:
        held += piece
        start = leading_blank(held, start)
        if head_end(held, max(start, looked)) >= 0 or not may_be_head(held, start) or len(held) >= LONGEST_HEAD:
            break
        looked = max(0, len(held) - 2)  # the end may have begun
    begin = bytes(held)
    return begin, read_stored(begin[:LONGEST_HEAD])


def beginning(pieces: Iterator[bytes], most: int) -> bytes:
    """The first of *pieces* in one, at least *most* bytes where there are so many; the others are still to come."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= most:
            break
    return bytes(held)
