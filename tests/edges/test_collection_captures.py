"""What a collection holds: found by halving sorted files, in any number of them; payloads without codings; revisits."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import brotlicffi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.collection import index_search, lookup
from archiver.collection.dates import date_range
from archiver.collection.lookup import Holdings
from archiver.errors import ArchiveError, ConfigError
from archiver.http.content_coding import Decoder, decoded
from archiver.warc import cdxj
from archiver.warc.cdxj import IndexEntry
from archiver.warc.reader import Record
from fixtures.handmade_collections import HTML, NOT_MODIFIED, Held, head, revisit
from fixtures.handmade_warc import DATE, record, sha256

try:
    from compression import zstd
except ImportError:  # before Python 3.14
    from backports import zstd

URL = "http://example.org/a"
PAGE = b"<p>a page" * 40

texts = st.lists(st.text("ab/ ", min_size=1, max_size=4).map(str.encode), max_size=40)


@given(
    files=st.lists(texts, min_size=1, max_size=4), start=st.text("ab/ ", max_size=4).map(str.encode), end=st.booleans()
)
@settings(max_examples=40)
def test_lines_are_found(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]], start: bytes, *, end: bool
) -> None:
    """As by looking through all of them, also where the last line has no end, and where a small file is not sorted."""
    folder = tmp_path_factory.mktemp("index")
    for number, held in enumerate(files):
        (folder / f"{number}.cdxj").write_bytes(b"\n".join(held) + (b"\n" if end and held else b""))
    known = sorted(line + b"\n" for held in files for line in held)
    with index_search.open_index_files(folder) as index:
        assert list(index.since(start)) == [line for line in known if line >= start]
        assert list(index.beginning(start)) == [line for line in known if line.startswith(start)]


def test_a_large_file_is_not_read_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not sorted is told, with the command that makes it anew."""
    monkeypatch.setattr(index_search, "SMALL", 1000)
    path = tmp_path / "indexes" / "index.cdxj"
    path.parent.mkdir()
    held = [b"%06d 20200101000000 {}\n" % number for number in range(20_000)]
    path.write_bytes(b"".join(held))
    with index_search.open_index_files(path.parent) as index:
        source = index._files[0]
        assert isinstance(source, index_search.SortedFile)
        read = source._file
        assert next(index.beginning(b"012345 ")) == held[12_345]
        assert next(index.since(b"7"), None) is None
        assert read.tell() <= path.stat().st_size
    path.write_bytes(b"".join(reversed(held)))
    with pytest.raises(ArchiveError, match="archiver index"), index_search.open_index_files(path.parent):
        pass


def test_both_names_of_a_file_are_one(tmp_path: Path) -> None:
    """While runs are put together a line stands in two files, with the name that the WARC had, and has."""
    held = Held(tmp_path / "c").add(URL, PAGE)
    held.write()
    run = held.lines[0].replace("hand.warc.gz", "hand.warc.gz.open")
    (tmp_path / "c" / "indexes" / "run-hand.warc.gz.cdxj").write_text(run)
    with Holdings.open(tmp_path / "c") as holdings:
        assert [entry.url for entry in holdings.entries()] == [URL]
        warc = tmp_path / "c" / "archive" / "hand.warc.gz"
        for name in ("hand.warc.gz.open", "hand.warc.gz"):
            warc = warc.rename(warc.with_name(name))
            with holdings.record(next(holdings.entries())) as record:
                assert b"".join(record.pieces()).endswith(PAGE)


def test_no_index(tmp_path: Path) -> None:
    Held(tmp_path / "c").add(URL, PAGE).write()
    (tmp_path / "c" / "indexes" / "index.cdxj").unlink()
    with pytest.raises(ConfigError, match="archiver index"), Holdings.open(tmp_path / "c"):
        pass
    with pytest.raises(ConfigError, match="holds no archive, but 1 collection"), Holdings.open(tmp_path):
        pass


@pytest.mark.parametrize(
    ("at", "first", "last"),
    [
        ("2026", "20260101000000", "20261231235959"),
        ("202602", "20260201000000", "20260228235959"),
        ("2024-02", "20240201000000", "20240229235959"),
        ("20261121", "20261121000000", "20261121235959"),
        ("2026-11-21T10", "20261121100000", "20261121105959"),
        ("2026-11-21 10:30", "20261121103000", "20261121103059"),
        ("20261121103059", "20261121103059", "20261121103059"),
        ("2026-11-21T10:30:59.123456Z", "20261121103059", "20261121103059"),
        ("2026-11-21T00:30+02:00", "20261120223000", "20261120223059"),
        (" 0001 ", "00010101000000", "00011231235959"),
    ],
)
def test_dates(at: str, first: str, last: str) -> None:
    assert date_range(at, "--at") == (first, last)


@pytest.mark.parametrize(
    "at", ["", "26", "20261", "2026-13", "20260230", "yesterday", "2026-11-21T25:00", "\uff12026", "-2026"]
)
def test_no_dates(at: str) -> None:
    with pytest.raises(ConfigError, match="--at"):
        date_range(at, "--at")


def _deflated(body: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(body) + engine.flush()


WAYS = {
    "gzip": gzip.compress,
    "x-gzip": lambda body: gzip.compress(body[:50]) + gzip.compress(body[50:]) + b"\0" * 9,
    "deflate": zlib.compress,
    "br": brotlicffi.compress,
    "zstd": lambda body: zstd.compress(body[:70]) + zstd.compress(body[70:]),
}


def _decoded(pieces: Iterable[bytes], codings: list[str]) -> tuple[bytes, list[str]]:
    decoder = Decoder(pieces, codings)
    return b"".join(decoder), decoder.notes


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_codings(name: str, step: int) -> None:
    """As by the decoder that a crawl looks into bodies with; a piece at a time, and cut."""
    body = PAGE + bytes(range(256)) * 9
    packed = WAYS[name](body)
    pieces = [packed[start : start + step] for start in range(0, len(packed), step)]
    assert _decoded(pieces, [name.upper()]) == (body, [])
    assert _decoded([gzip.compress(packed)], [name, " gzip", "identity"]) == (body, [])
    got, notes = _decoded(iter([packed[: len(packed) // 3]]), [name])
    assert body.startswith(got)
    assert notes in ([f"{name} data is cut"], []) if name in ("x-gzip", "zstd") else [f"{name} data is cut"]
    assert _decoded([PAGE], [name])[0] == decoded(PAGE, [name], 1 << 20)[0] == PAGE


def test_odd_codings() -> None:
    assert _decoded([_deflated(PAGE)], ["deflate"]) == (PAGE, [])
    assert _decoded([PAGE], ["rot13"]) == (PAGE, ["unknown content coding 'rot13'"])
    assert _decoded([PAGE], ["gzip"] * 9) == (PAGE, ["too many content codings"])
    assert _decoded([], ["gzip"]) == (b"", [])
    broken = bytearray(gzip.compress(bytes(range(256)) * 4000, 0))
    broken[-8] ^= 1
    got, notes = _decoded([bytes(broken)], ["gzip"])
    assert notes == ["broken gzip data"]
    assert (bytes(range(256)) * 4000).startswith(got)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("step", [3, 1 << 20])
def test_broken_bodies_are_decoded_as_for_link_extraction(name: str, step: int) -> None:
    """A changed byte or a cut at every fifth place, bytes after the end, and another coding than in the header."""
    packed = WAYS[name](PAGE)
    bodies = [packed[:at] + bytes((packed[at] ^ 0x55,)) + packed[at + 1 :] for at in range(0, len(packed), 5)]
    bodies += [packed[:at] for at in range(0, len(packed), 5)]
    bodies += [packed + b"what follows" * 500, gzip.compress(PAGE), zstd.compress(PAGE), b"\x1f", b"(\xb5/\xfd"]
    for body in bodies:
        got, notes = _decoded((body[start : start + step] for start in range(0, len(body), step)), [name])
        assert (got, "; ".join(notes)) == decoded(body, [name], 1 << 20)


def test_a_bomb_is_given_in_small_pieces() -> None:
    decoder = iter(Decoder([brotlicffi.compress(b"\0" * (64 << 20))], ["br"]))
    assert max(len(next(decoder)) for _ in range(50)) <= 1 << 20


@pytest.fixture(name="several")
def several_captures(tmp_path: Path) -> Path:
    """One URL at three dates, and others of the same key."""
    held = Held(tmp_path / "c")
    for year in (2019, 2020, 2022):
        held.add(URL, b"%d" % year, stamp=f"{year}0601120000")
    held.add("https://www.example.org/a", b"with www", stamp="20240601120000")
    return held.write()


@pytest.mark.parametrize(
    ("address", "at", "body"),
    [
        (URL, None, "20220601120000"),
        (URL, "1990", "20190601120000"),
        (URL, "2020", "20200601120000"),
        (URL, "20210501", "20200601120000"),
        (URL, "20210702", "20220601120000"),
        ("https://www.example.org/a", "2019", "20240601120000"),
        ("https://example.org/a", None, "20240601120000"),
        ("https://example.org/a", "2019", "20190601120000"),
        ("https://example.org/b", None, None),
    ],
)
def test_closest(several: Path, address: str, at: str | None, body: str | None) -> None:
    """Of exactly the URL where there is one, else of one with the same key."""
    with Holdings.open(several) as holdings:
        found = holdings.closest(address, date_range(at, "--at") if at else None)
        assert (found.timestamp if found else None) == body


@pytest.mark.parametrize("at", [None, "2020-09-13T12:26:40Z"])
def test_captures_of_one_second_are_told_apart_by_their_records(tmp_path: Path, at: str | None) -> None:
    """The latest WARC-Date wins. Where the dates are equal, the record that was written last does."""
    held = Held(tmp_path / "c")
    dates = {
        URL: ("40.7", "40.900001", "40.1"),
        f"{URL}/old": ("40", "40", "40"),
        f"{URL}/lost": ("40.7", "41.9", "no"),
    }
    for address, seconds in dates.items():
        for number, second in enumerate(seconds):
            body = b"%d" % number
            made = record(
                "response", HTML + body, ("WARC-Target-URI", address), ("WARC-Date", f"2020-09-13T12:26:{second}Z")
            )
            held.add_record(made, address, "text/html", body)
    with Holdings.open(held.write(ordered=False)) as holdings:
        when = date_range(at, "--at") if at else None
        found = [holdings.closest(address, when) for address in dates]
    assert [entry and entry.digest for entry in found] == [sha256(body) for body in (b"1", b"2", b"0")]


def test_only_the_closest_of_many_captures_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MOST_TIED", 3)
    held = Held(tmp_path / "c")
    for stamp in ("20200913122640", "20200913122641"):
        for number in range(5):
            held.add(URL, b"%d" % number, stamp=stamp)
    with Holdings.open(held.write()) as holdings, monkeypatch.context() as patch:
        read: list[int] = []
        patch.setattr(holdings, "record", partial(_noted, holdings.record, read))
        found = holdings.closest(URL)
    assert found is not None
    assert found.timestamp == "20200913122641"
    assert len(read) == 3


def _noted(
    opened: Callable[[IndexEntry], AbstractContextManager[Record]], read: list[int], entry: IndexEntry
) -> AbstractContextManager[Record]:
    read.append(entry.offset)
    return opened(entry)


def test_originals(tmp_path: Path) -> None:
    """By the digest under the same key, else by what the record refers to; never a revisit, never another payload."""
    held = Held(tmp_path / "c").add(URL, PAGE, stamp="20200913122640").add(URL, b"other", stamp="20210101000000")
    held.add_record(revisit(URL, PAGE, "http://gone.example/"), URL, "warc/revisit", PAGE, stamp="20220101000000")
    near, far = "http://example.org/copy", "http://example.org/far"
    held.add_record(revisit(near, PAGE, URL), near, "warc/revisit", PAGE, stamp="20220101000000")
    held.add_record(revisit(far, b"x", URL), far, "warc/revisit", b"x", stamp="20220101000000")
    same = "http://example.org/same"
    held.add_record(
        revisit(same, b"", URL, DATE, NOT_MODIFIED), same, "warc/revisit", b"", "304", stamp="20220101000000"
    )
    bare = "http://example.org/bare"
    held.add_record(revisit(bare, b"", URL), bare, "warc/revisit", b"", stamp="20220101000000")
    held.lines[-1] = held.lines[-1].replace(json.dumps({"digest": sha256(b"")})[1:-1], '"digest": "-"')
    with Holdings.open(held.write()) as holdings:
        found = {entry.url: holdings.original(entry) for entry in holdings.entries() if entry.timestamp[:4] == "2022"}
    first = json.loads(held.lines[0].split(" ", 2)[2])["offset"]
    assert {url: entry and str(entry.offset) for url, entry in found.items()} == {
        URL: first,
        near: first,
        far: None,
        same: first,
        bare: first,
    }


def test_parts_of_a_collection(tmp_path: Path) -> None:
    held = Held(tmp_path / "c")
    urls = [
        *(
            "http://example.org/",
            "http://example.org/Blog/",
            "http://example.org/blog/a?y=1&x=2",
            "http://example.org/bl",
        ),
        *("http://example.org:8080/blog/", "http://www.example.org/blog/", "http://example.organic/blog/"),
        "http://sub.example.org/blog/",
    ]
    for url in urls:
        held.add(url, PAGE, head())
    with Holdings.open(held.write()) as holdings:

        def of(prefix: str) -> list[str]:
            return sorted(entry.url for entry in holdings.of_prefix(prefix))

        assert of("http://example.org/b") == sorted([urls[2], urls[3]])
        assert of("http://example.org/blog/a?y") == [urls[2]]
        assert of("example.org/") == sorted(urls[:4])
        assert of("http://example.org") == sorted([*urls[:5], urls[6]])
        assert of("www.example.org/blog/") == [urls[5]]
        assert sorted(entry.url for entry in holdings.of_host("example.org")) == sorted(urls[:5])
        assert [entry.url for entry in holdings.of_host("example.org:8080")] == [urls[4]]
        assert [entry.key for entry in holdings.of_url(urls[0])] == [cdxj.lookup_key(urls[0])]
