"""A stored response read from the start of its block: the head is found in any pieces, and nothing is lost."""

from hypothesis import example, given
from hypothesis import strategies as st

from archiver.http import beginning, read_beginning, read_stored
from archiver.http.head import LONGEST_HEAD

HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
    b"HTTP/1.0 404 Not Found\nA: b\n\n",
    b"\r\n\r\nHTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"ICY 200 OK\r\n\n",
    b"<html>\r\n\r\nno head",
    b"HTTP/1.1 200 OK\r\nnever ended",
    b"",
)


@given(st.sampled_from(HEADS), st.binary(max_size=40), st.integers(1, 50))
@example(HEADS[0], b"body", 1)
def test_pieces_give_the_same_as_the_whole_block(head: bytes, body: bytes, step: int) -> None:
    """The pieces give the same result as the block; unread pieces are still to come."""
    block = head + body
    pieces = iter([block[start : start + step] for start in range(0, len(block), step)])
    begin, framing = read_beginning(pieces)
    assert framing == read_stored(block)
    assert begin + b"".join(pieces) == block
    assert len(begin) <= max(framing.head_length, 5 + len(head) - len(head.lstrip(b"\r\n"))) + step


def test_the_search_for_the_end_of_a_head_is_bounded() -> None:
    """Reading stops with the first piece beyond the limit."""
    pieces = iter([b"HTTP/1.1 200 OK\r\n", *[b"a: b\r\n" * 10_000] * 40])
    begin, framing = read_beginning(pieces)
    assert LONGEST_HEAD <= len(begin) < LONGEST_HEAD + 60_000
    assert (framing.head_length, "no-head-end" in framing.faults) == (LONGEST_HEAD, True)


def test_the_first_bytes_of_a_response() -> None:
    """Whole pieces until there are enough bytes."""
    pieces = iter([b"ab", b"", b"cd", b"ef"])
    assert (beginning(pieces, 3), b"".join(pieces)) == (b"abcd", b"ef")
    assert beginning(iter([b"ab"]), 3) == b"ab"
