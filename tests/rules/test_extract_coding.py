"""zstd, and bombs; the other codings are in test_extract_others.py."""

import gzip
import zlib
from pathlib import Path

import brotlicffi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.http.content_coding import decoded

try:
    from compression import zstd
except ImportError:
    from backports import zstd

TEXT = b" ".join(b"%d" % (number * 7919 % 10007) for number in range(2000))
LIMIT = 40_000_000
PACKED = zstd.compress(TEXT)
NO_DATA = b"\x5a\x2a\x4d\x18\x04\0\0\0abcd"  # a frame for programs, without content


@pytest.mark.parametrize(
    ("codings", "body", "text"),
    [
        (("zstd",), PACKED, TEXT),
        (("ZSTD ", "identity"), PACKED, TEXT),
        (("zstd",), PACKED + NO_DATA + PACKED, TEXT + TEXT),
        (("zstd",), NO_DATA + PACKED, TEXT),
        (("zstd",), b"", b""),
        (("gzip", "zstd"), zstd.compress(gzip.compress(TEXT)), TEXT),
        (("zstd", "br", "deflate"), zlib.compress(brotlicffi.compress(PACKED)), TEXT),
    ],
)
def test_zstd(codings: tuple[str, ...], body: bytes, text: bytes) -> None:
    assert decoded(body, codings, LIMIT) == (text, "")


def test_a_cut_or_broken_frame_gives_what_came_before() -> None:
    body, note = decoded(zstd.compress(TEXT) + PACKED[:-20], ("zstd",), LIMIT)
    assert body.startswith(TEXT)
    assert note == "zstd data is cut"
    body, note = decoded(PACKED + PACKED[:9] + b"\xff" * 99, ("zstd",), LIMIT)
    assert body.startswith(TEXT)
    assert note == "broken zstd data"


def test_frames_are_counted() -> None:
    assert decoded(zstd.compress(b"") * 20_000, ("zstd",), LIMIT) == (b"", "more than 10000 zstd frames")


def test_dictionaries_are_not_supported() -> None:
    words = zstd.ZstdDict(TEXT, is_raw=True)
    trained = zstd.train_dict([b"sample %d of a text" % number * 9 for number in range(2000)], 1000)
    assert decoded(zstd.compress(TEXT, zstd_dict=trained), ("zstd",), LIMIT) == (b"", "broken zstd data")
    assert decoded(zstd.compress(TEXT, zstd_dict=words), ("zstd",), LIMIT)[1] == "broken zstd data"


@pytest.mark.parametrize("label", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("packed", [gzip.compress(TEXT), PACKED])
def test_magic_bytes_win_over_a_wrong_header(label: str, packed: bytes) -> None:
    assert decoded(packed, (label,), LIMIT)[0] == TEXT


ZEROS = bytes(30_000_000)


@pytest.mark.parametrize(
    ("codings", "bomb"),
    [
        (("br",), brotlicffi.compress(ZEROS, quality=4)),
        (("zstd",), zstd.compress(ZEROS)),
        (("gzip", "gzip"), gzip.compress(gzip.compress(ZEROS))),
        (("zstd", "br"), brotlicffi.compress(zstd.compress(ZEROS))),
    ],
)
def test_decompression_bombs_are_cut(codings: tuple[str, ...], bomb: bytes) -> None:
    body, note = decoded(bomb, codings, LIMIT)
    assert len(body) == max(4 << 20, 500 * len(bomb)) < len(ZEROS)
    assert note.endswith("the rest is a bomb")


def test_high_compression_alone_is_no_bomb() -> None:
    rows = b"<tr><td>0</td></tr>\n" * 400_000
    assert decoded(gzip.compress(rows, 1), ("gzip",), LIMIT) == (rows, "")


@pytest.mark.suites
@pytest.mark.parametrize("name", ["foo.text", "foo.octetstream", "hello.html", "big.text"])
def test_cases_of_web_platform_tests(suites: Path, name: str) -> None:
    folder = suites / "http/content-encoding"
    texts = set()
    for coding, suffix in (("gzip", "gz"), ("br", "br"), ("zstd", "zst")):
        body, note = decoded((folder / coding / f"{name}.{suffix}").read_bytes(), (coding,), 1 << 20)
        assert note == ("" if len(body) < 1 << 20 else f"only the first {1 << 20} bytes")
        texts.add(body)
    assert len(texts) == 1
    assert len(texts.pop()) > 10


@pytest.mark.suites
def test_a_window_above_the_limit_is_rejected(suites: Path) -> None:
    body = (suites / "http/content-encoding/zstd/big.window.zst").read_bytes()
    assert decoded(body, ("zstd",), LIMIT) == (b"", "broken zstd data")


@given(st.binary(), st.integers(0, 100))
def test_zstd_never_raises(body: bytes, limit: int) -> None:
    for packed in (body, PACKED[:9] + body, PACKED[: len(body)] + body):
        assert len(decoded(packed, ("zstd",), limit)[0]) <= limit


RAW = zlib.compressobj(9, zlib.DEFLATED, -15)
MEMBER, STREAM, BARE = gzip.compress(TEXT), zlib.compress(TEXT), RAW.compress(TEXT) + RAW.flush()


@pytest.mark.parametrize("left", range(9))
def test_data_without_all_of_its_checksum_is_whole(left: int) -> None:
    """Browsers, curl and wget show it without a word; one byte less, and data is missing."""
    assert decoded(MEMBER[: len(MEMBER) - left], ("gzip",), LIMIT) == (TEXT, "")
    assert decoded(STREAM[: len(STREAM) - min(left, 4)], ("deflate",), LIMIT) == (TEXT, "")
    assert decoded(MEMBER + MEMBER[: len(MEMBER) - left], ("gzip",), LIMIT) == (TEXT + TEXT, "")
    assert decoded(BARE, ("deflate",), LIMIT) == (TEXT, "")


@given(st.binary(max_size=300), st.data(), st.sampled_from([0, 1, 9]), st.sampled_from([0, zlib.Z_FIXED]))
def test_data_that_lacks_a_byte_is_cut(text: bytes, data: st.DataObject, level: int, strategy: int) -> None:
    for bits, coding, end in ((31, "gzip", 8), (15, "deflate", 4)):
        coder = zlib.compressobj(level, zlib.DEFLATED, bits, 8, strategy)
        body = coder.compress(text) + coder.flush()
        assert decoded(body[:-end], (coding,), LIMIT) == (text, "")
        kept = data.draw(st.integers(10 if coding == "gzip" else 2, len(body) - end - 1))
        assert decoded(body[:kept], (coding,), LIMIT)[1] in {
            f"{coding} data is cut",
            f"not {coding}, as the header says",
        }


def test_a_wrong_checksum_is_a_fault() -> None:
    for wrong in (MEMBER[:-8] + b"abcdefgh", MEMBER[:-4] + b"efgh"):
        assert decoded(wrong, ("gzip",), LIMIT) == (TEXT, "broken gzip data")
    assert decoded(STREAM[:-4] + b"abcd", ("deflate",), LIMIT)[1] == "broken deflate data"


@pytest.mark.parametrize("padding", [b"\0" * 99, b"garbage", b"\x1fgarbage", b"\x1f\x1f", b"\x1f\0\x8b"])
def test_what_follows_gzip_data_is_no_fault(padding: bytes) -> None:
    assert decoded(MEMBER + padding, ("gzip",), LIMIT) == (TEXT, "")


def test_a_further_member_that_is_cut_or_broken_is_a_fault() -> None:
    assert decoded(MEMBER + MEMBER[:-9], ("gzip",), LIMIT)[1] == "gzip data is cut"
    assert decoded(MEMBER + MEMBER[:40] + b"\xff" * 20 + MEMBER[60:], ("gzip",), LIMIT)[1] == "broken gzip data"
