"""Members of a WARC file: whichever compressor made them, any reader gets the record back, and `verify` knows them."""

import io
import random
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.tools.verify.file import uncovered_findings
from archiver.warc.writer import HEADER, LIMIT, member, member_in_pieces

WORDS = " ".join(random.Random(2).choices([f"word{number:x}" for number in range(9999)], k=40_000)).encode()
CHANCE = random.Random(1).randbytes(300_000)
RECORDS = {
    "empty": b"",
    "one byte": b"a",
    "short": WORDS[:700],
    "just short": WORDS[: LIMIT - 1],
    "just long": WORDS[:LIMIT],
    "long": WORDS,
    "long and packed": CHANCE,
    "packed behind a head": WORDS[:2000] + CHANCE,
    "one byte many times": bytes(200_000),
}


def _in_pieces(record: bytes, size: int) -> bytes:
    pieces = [record[at : at + size] for at in range(0, len(record), size)] or [b""]
    return b"".join(member_in_pieces(pieces[0], pieces[1:]))


def _is_sound(made: bytes, record: bytes) -> None:
    inflate = zlib.decompressobj(31)
    assert inflate.decompress(made) == record
    assert inflate.eof
    assert not inflate.unused_data
    assert made.startswith(HEADER)
    assert list(uncovered_findings(io.BytesIO(b"before" + made), 6, len(made))) == []


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_record_comes_back(record: bytes) -> None:
    _is_sound(member(record), record)
    _is_sound(_in_pieces(record, 60_000), record)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 60), st.booleans()), max_size=12), st.integers(1, 70_000)
)
def test_any_record_comes_back(parts: list[tuple[int, int, bool]], size: int) -> None:
    record = b"".join((CHANCE if packed else WORDS)[at : at + length * 40] for at, length, packed in parts)
    _is_sound(member(record), record)
    _is_sound(_in_pieces(record, size), record)


@pytest.mark.parametrize("made", [member, lambda record: _in_pieces(record, 60_000)], ids=["whole", "in pieces"])
def test_sizes(made: Callable[[bytes], bytes]) -> None:
    """A long text is as small as gzip makes it; what is packed grows by next to nothing."""
    assert len(made(WORDS)) < 1.03 * len(zlib.compress(WORDS, 6))
    assert len(made(CHANCE)) < 1.001 * len(CHANCE)
