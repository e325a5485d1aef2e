"""The WARC reader: every whole record is found with its exact place, and everything else is known to be torn."""

import gzip
import io
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.warc.members import DamagedRecord
from archiver.warc.reader import MAX_HEADER, Record, read_records, scan
from fixtures.handmade_warc import END, member, record


class Dribble(io.BytesIO):
    """A file that gives few bytes at a time, as pipes and network drives may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(7 if size is None or size < 0 else min(size, 7))


FEEDS: tuple[Callable[[bytes], BinaryIO], ...] = (io.BytesIO, Dribble)
BLOCKS = (b"", b"x", b"\r\n\r\n", b"WARC/1.1\r\n\r\n", bytes(range(200)))
RECORDS = tuple(record("resource", block, number=number) for number, block in enumerate(BLOCKS, start=1))


def plain(data: bytes) -> bytes:
    return data


PACKINGS = (plain, member)


def placed(parts: list[bytes]) -> list[tuple[int, int]]:
    offsets = [sum(map(len, parts[:place])) for place in range(len(parts))]
    return list(zip(offsets, map(len, parts), strict=True))


def read_whole(file: BinaryIO, offset: int = 0) -> tuple[list[tuple[int, int | None, bytes]], DamagedRecord | None]:
    """Place and block of each whole record, and where it is torn."""
    whole = []
    try:
        for found in read_records(file, offset):
            block = b"".join(found.pieces())
            whole.append((found.offset, found.length, block))
    except DamagedRecord as torn:
        return whole, torn
    return whole, None


def scanned(data: bytes) -> Iterator[tuple[int, bytes] | str]:
    """Offset and block of each whole record, the word of each torn place."""
    for item in scan(io.BytesIO(data)):
        if isinstance(item, DamagedRecord):
            yield item.word
        else:
            try:
                yield item.offset, b"".join(item.pieces())
            except DamagedRecord:
                continue


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("pack", PACKINGS)
def test_records_are_given_with_their_exact_places(
    pack: Callable[[bytes], bytes], feed: Callable[[bytes], BinaryIO]
) -> None:
    parts = [pack(part) for part in RECORDS]
    whole, torn = read_whole(feed(b"".join(parts)))
    assert torn is None
    assert [(offset, length) for offset, length, _ in whole] == placed(parts)
    assert [block for _, _, block in whole] == list(BLOCKS)


@pytest.mark.parametrize("pack", PACKINGS)
def test_reading_may_begin_at_any_boundary(pack: Callable[[bytes], bytes]) -> None:
    parts = [pack(part) for part in RECORDS]
    places = placed(parts)
    for number, (offset, _) in enumerate([*places, (sum(map(len, parts)), 0)]):
        whole, torn = read_whole(io.BytesIO(b"".join(parts)), offset)
        assert torn is None
        assert [(at, length) for at, length, _ in whole] == places[number:]


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("pack", PACKINGS)
def test_a_cut_at_any_length_keeps_all_whole_records(
    pack: Callable[[bytes], bytes], feed: Callable[[bytes], BinaryIO]
) -> None:
    parts = [pack(part) for part in RECORDS]
    data = b"".join(parts)
    places = placed(parts)
    ends = [offset + length for offset, length in places]
    for cut in range(len(data) + 1):
        whole, torn = read_whole(feed(data[:cut]))
        kept = sum(end <= cut for end in ends)
        assert [(offset, length) for offset, length, _ in whole] == places[:kept], cut
        if cut in (0, *ends):
            assert torn is None
        else:
            assert torn is not None
            assert torn.offset == places[kept][0], cut


def test_a_flipped_bit_in_a_gzip_file_is_found_or_changed_nothing_of_the_records() -> None:
    parts = [member(part) for part in RECORDS[:4]]
    data = b"".join(parts)
    whole = [(offset, block) for (offset, _), block in zip(placed(parts), BLOCKS, strict=False)]
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            found = list(scanned(bytes(flipped)))
            torn = [item for item in found if isinstance(item, str)]
            kept = [item for item in found if not isinstance(item, str)]
            damaged = max(offset for offset, _ in whole if offset <= place)
            assert torn or kept == whole, (place, bit)
            assert [item for item in whole if item[0] != damaged] == [item for item in kept if item[0] != damaged]


def test_random_flips_in_a_long_member_are_found() -> None:
    chance = random.Random(5)
    good = member(record("resource", chance.randbytes(200_000)))
    for _ in range(60):
        flipped = bytearray(good + good)
        flipped[chance.randrange(10, len(good))] ^= 1 << chance.randrange(8)
        words = [item for item in scanned(bytes(flipped)) if isinstance(item, str)]
        blocks = [item[0] for item in scanned(bytes(flipped)) if not isinstance(item, str)]
        assert (words and blocks == [len(good)]) or blocks == [0, len(good)]


ONE = record("resource", b"one")
TWO = record("resource", b"two", number=2)
HEAD = "WARC/1.1\r\nWARC-Type: resource\r\n"

TORN = {
    "garbage": (b"garbage", "not-warc", 0),
    "an ARC": (b"filedesc://x.arc 0.0.0.0 20200101000000 text/plain 9\n1 0 x\n", "arc", 0),
    "a gzip of something else": (member(b"hello"), "not-warc", 0),
    "an empty member": (member(b""), "member-empty", 0),
    "only a magic number": (b"\x1f\x8b", "gzip-cut", 0),
    "no gzip behind a magic number": (b"\x1f\x8b\xff" + bytes(20), "not-gzip", 0),
    "reserved flags": (b"\x1f\x8b\x08\xe0" + member(ONE)[4:], "not-gzip", 0),
    "bytes behind the last member": (member(ONE) + b"\0" * 512, "not-gzip", len(member(ONE))),
    "a newline too many": (ONE + b"\r\n" + TWO, "not-warc", len(ONE)),
    "a newline too many in a member": (member(ONE + b"\r\n"), "record-surplus", 0),
    "a newline too few": (ONE[:-2] + TWO, "record-end", 0),
    "a newline too few in a member": (member(ONE[:-2]), "record-cut", 0),
    "a Content-Length too small": (ONE.replace(b"Length: 3", b"Length: 2"), "record-end", 0),
    "a Content-Length too large": (ONE.replace(b"Length: 3", b"Length: 9"), "block-cut", 0),
    "no Content-Length": (record("resource", without=["Content-Length"]), "content-length", 0),
    "a negative Content-Length": (record("resource", b"", ("Content-Length", "-1")), "content-length", 0),
    "an Arabic Content-Length": (record("resource", b"", ("Content-Length", "٣")), "content-length", 0),
    "a vast Content-Length": (record("resource", b"", ("Content-Length", "9" * 40)), "content-length", 0),
    "a header without end": (HEAD.encode(), "header-cut", 0),
    "a header too large": (HEAD.encode() + b"x" * (MAX_HEADER + (128 << 10)), "header-large", 0),
    "no version": (b"WARC/\r\n\r\n", "not-warc", 0),
}


@pytest.mark.parametrize(("data", "word", "offset"), TORN.values(), ids=TORN)
def test_what_is_not_whole_is_named_with_its_offset(data: bytes, word: str, offset: int) -> None:
    _, torn = read_whole(io.BytesIO(data))
    assert torn is not None
    assert (torn.word, torn.offset) == (word, offset)
    assert str(torn).startswith(f"at offset {offset}: ")


GOING_ON: dict[str, tuple[bytes, list[bytes | str]]] = {
    "over a damaged member": (member(ONE)[:30] + b"????" + member(ONE)[34:] + member(TWO), ["gzip-broken"]),
    "over a cut member": (member(ONE)[:60] + member(TWO), ["gzip-broken"]),
    "over an empty member": (member(b"") + member(TWO), ["member-empty"]),
    "over many empty members": (member(b"") * 9000 + member(TWO), ["member-empty"]),
    "over empty members and junk": (member(b"") * 3 + b"junk" + member(TWO), ["member-empty", "not-gzip"]),
    "over empty members and damage": (
        member(b"") * 3 + member(b"")[:-1] + b"?" + member(TWO),
        ["member-empty", "gzip-broken"],
    ),
    "over a member of something else": (member(b"hello") + member(TWO), ["not-warc"]),
    "over bytes between members": (member(ONE) + b"junk" * 40_000 + member(TWO), [ONE, "not-gzip"]),
    "inside a sound member": (member(ONE.replace(b"Length: 3", b"Length: 2") + TWO), ["record-end"]),
    "over a wrong length": (ONE.replace(b"Length: 3", b"Length: 2") + TWO, ["record-end"]),
    "into what a wrong length swallowed": (ONE.replace(b"Length: 3", b"Length: 99") + TWO, ["record-end"]),
    "over text between records": (ONE + b"junk\r\n" * 40_000 + TWO, [ONE, "not-warc"]),
    "over text at the beginning": (b"junk\r\n" + TWO, ["not-warc"]),
}


@pytest.mark.parametrize("name", GOING_ON)
def test_a_scan_goes_on_behind_damage(name: str) -> None:
    data, before = GOING_ON[name]
    found = [item if isinstance(item, str) else item[1] for item in scanned(data)]
    assert found == [b"one" if item is ONE else item for item in before] + [b"two"]


def test_a_broken_record_is_given_before_its_fault() -> None:
    items = list(scan(io.BytesIO(member(ONE.replace(b"Length: 3", b"Length: 9")) + member(TWO))))
    assert [type(item) for item in items] == [Record, DamagedRecord, Record]


def test_the_same_fault_is_raised_however_often_it_is_asked_for() -> None:
    found = next(read_records(io.BytesIO(ONE[:-1])))
    for _ in range(2):
        with pytest.raises(DamagedRecord, match="two CRLF"):
            list(found.pieces())
    assert found.length is None


@pytest.mark.parametrize("parts", [[ONE + TWO], [ONE, TWO, ONE], [gzip.compress(ONE)]])
def test_records_that_share_a_member_are_read_but_have_no_place(parts: list[bytes]) -> None:
    whole, torn = read_whole(io.BytesIO(member(b"".join(parts))))
    assert torn is None or torn.word == "not-warc"
    assert all(offset == 0 for offset, _, _ in whole)
    inner = [found.inner for found in read_records(io.BytesIO(member(ONE + TWO)))]
    assert inner == [0, len(ONE)]


def test_a_shared_member_that_is_damaged_is_torn_from_its_beginning() -> None:
    shared = bytearray(member(TWO) + member(ONE * 50))
    shared[-6] ^= 1  # its CRC, known to be wrong only when all of its records were given
    _, torn = read_whole(io.BytesIO(bytes(shared)))
    assert torn is not None
    assert (torn.word, torn.offset) == ("gzip-broken", len(member(TWO)))


def test_an_unread_or_half_read_record_does_not_hide_the_next() -> None:
    offsets = []
    for number, found in enumerate(read_records(io.BytesIO(b"".join(member(part) for part in RECORDS)))):
        if number % 2:
            next(found.pieces())
        offsets.append(found.offset)
    assert len(offsets) == len(RECORDS)


HEADERS = {
    "LF alone": (HEAD.replace("\r\n", "\n") + "Content-Length: 0\n\n", ("lone-lf",)),
    "folded": (f"{HEAD}X: a\r\n  b\r\n\tc\r\nContent-Length: 0\r\n\r\n", ("folded-field",)),
    "folded at once": ("WARC/1.1\r\n a\r\nContent-Length: 0\r\n\r\n", ("folded-field",)),
    "no colon": (f"{HEAD}what\r\nContent-Length: 0\r\n\r\n", ("field-syntax",)),
    "space before the colon": (f"{HEAD}X : y\r\nContent-Length: 0\r\n\r\n", ("field-syntax",)),
    "more than a version": ("WARC/1.1 x\r\nContent-Length: 0\r\n\r\n", ("version-line",)),
    "not UTF-8": (f"{HEAD}X: \udcff\r\nContent-Length: 0\r\n\r\n", ("not-utf8",)),
    "UTF-8": (f"{HEAD}X: é\r\nContent-Length: 0\r\n\r\n", ()),
    "lower case": (f"{HEAD}Content-Length: 0\r\n\r\n".lower(), ()),
}


@pytest.mark.parametrize(("header", "faults"), HEADERS.values(), ids=HEADERS)
def test_a_malformed_header_is_read_and_named(header: str, faults: tuple[str, ...]) -> None:
    found = next(read_records(io.BytesIO(header.encode(errors="surrogateescape") + END)))
    assert found.faults == faults
    assert list(found.pieces()) == []
    assert found.length is not None


def test_fields_are_found_in_any_case_and_kept_in_order() -> None:
    data = f"{HEAD}X: 1\r\ny:2\r\nx:  3 \r\nF: a\r\n b\r\nContent-Length: 0\r\n\r\n".encode() + END
    found = next(read_records(io.BytesIO(data)))
    assert found.all("x") == ["1", "3"]
    assert found.first("Y") == "2"
    assert found.first("f") == "a b"
    assert found.first("Z") is None
    assert found.fields[1:4] == (("X", "1"), ("y", "2"), ("x", "3"))
    assert (found.version, found.type, found.size) == ("1.1", "resource", 0)
    assert repr(found) == "<resource at 0>"


@pytest.mark.parametrize("pack", PACKINGS)
def test_a_large_record_is_streamed(pack: Callable[[bytes], bytes]) -> None:
    size = 48 << 20
    header = record("resource", b"", ("Content-Length", str(size))).removesuffix(END)
    file = io.BytesIO(pack(header + bytes(size) + END))
    tracemalloc.start()
    try:
        counted = sum(len(piece) for found in read_records(file) for piece in found.pieces())
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert counted == size


@pytest.mark.parametrize("line", [b" a\r\n", b"x\r\n", b"a:\r\n", b"\r", b"\n\r"])
def test_a_header_full_of_lines_takes_linear_time(line: bytes) -> None:
    header = HEAD.encode() + line * (MAX_HEADER // len(line))
    list(scan(io.BytesIO(header + b"\r\n\r\n")))


def test_lengths_that_all_reach_to_the_end_do_not_take_quadratic_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.warc.reader.MAX_REREAD", 5 << 20)
    data = record("resource", b"", ("Content-Length", "999999999")) * 4000
    faults = [item for item in scan(io.BytesIO(data)) if isinstance(item, DamagedRecord)]
    assert 1 < len(faults) < 20


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([ONE, TWO, member(ONE), member(b""), b"WARC/1.1\r\n", END, b"\x1f\x8b\x08\0", b"\r\n"]),
            st.binary(max_size=40),
        ),
        max_size=8,
    )
)
def test_no_bytes_raise_anything_but_torn(parts: list[bytes]) -> None:
    data = b"".join(parts)
    whole, torn = read_whole(io.BytesIO(data))
    end = sum(length or 0 for _, length, _ in whole)
    assert torn is not None or end == len(data) or any(length is None for _, length, _ in whole)
    offsets = [item.offset for item in scan(io.BytesIO(data))]
    assert offsets == sorted(offsets)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=6), st.sampled_from(PACKINGS))
def test_blocks_come_back_as_they_were(blocks: list[bytes], pack: Callable[[bytes], bytes]) -> None:
    parts = [pack(record("resource", block, number=number)) for number, block in enumerate(blocks)]
    whole, torn = read_whole(io.BytesIO(b"".join(parts)))
    assert torn is None
    assert [block for _, _, block in whole] == blocks
    assert [(offset, length) for offset, length, _ in whole] == placed(parts)
