"""Indexes of other forms than CDXJ: what is found in them is what is found in the same lines as CDXJ."""

import gzip
import json
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.collection import index_search
from archiver.collection.index_search import IndexLines
from archiver.collection.lookup import Holdings
from archiver.errors import ArchiveError
from archiver.frontier.dedup import ExternalIndex, gather
from archiver.warc import cdx
from archiver.warc.cdxj import REVISIT, IndexEntry

DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
ELEVEN = f"org,example)/a 20200101000000 http://example.org/a text/html 200 {DIGEST} - - 99 7 a.warc.gz"
KNOWN = IndexEntry(
    "org,example)/a", "20200101000000", "http://example.org/a", "text/html", "200", DIGEST, 99, 7, "a.warc.gz"
)
OLD_KEY = ELEVEN.replace("org,example)/a", "example.org/a", 1)


def zipped(folder: Path, held: list[bytes], size: int, form: str, end: bytes = b"\n") -> None:
    """An index of *held* in blocks of *size* lines, as pywb has it (`loc`, `part`) or a package (`meta`, `bare`)."""
    keys, packed = [], b""
    for start in range(0, len(held), size):
        block = gzip.compress(b"\n".join(held[start : start + size]) + end, mtime=0)
        first = b" ".join(held[start].split(b" ", 2)[:2])
        where = b"\t%b\t%d\t%d\t%d" % (b"here" if form == "loc" else b"some.cdx.gz", len(packed), len(block), start)
        said = b" " + json.dumps({"offset": len(packed), "length": len(block)}).encode()
        keys.append(first + (where if form in ("loc", "part") else said) + b"\n")
        packed += block
    (folder / "some.cdx.gz").write_bytes(packed)
    if form == "loc":
        (folder / "some.loc").write_bytes(b"other\tx\nhere\thttp://far.test/x\tnot-there.gz\tsome.cdx.gz\n")
    meta = b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "some.cdx.gz"}\n' if form == "meta" else b""
    (folder / ("some.summary" if form == "loc" else "some.idx")).write_bytes(meta + b"".join(keys))


held = st.lists(
    st.tuples(st.text("ab/", min_size=1, max_size=3), st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=30
)


@given(
    held=held,
    size=st.integers(1, 5),
    form=st.sampled_from(["loc", "part", "meta", "bare"]),
    start=st.text("ab/ 0", max_size=5),
    end=st.sampled_from([b"", b"\n"]),
)
@settings(max_examples=25)
def test_blocks_are_found(
    tmp_path_factory: pytest.TempPathFactory,
    held: list[tuple[str, int, int]],
    size: int,
    form: str,
    start: str,
    end: bytes,
) -> None:
    """As by looking through all lines, wherever blocks begin, and though the last line of each has no end."""
    folder = tmp_path_factory.mktemp("index")
    known = sorted(f"{key} {stamp} {{{rest}}}".encode() for key, stamp, rest in held)
    zipped(folder, known, size, form, end)
    with index_search.open_index_files(folder) as index:
        assert list(index.since(start.encode())) == [line + b"\n" for line in known if line + b"\n" >= start.encode()]
    (path,) = (path for path in folder.iterdir() if path.suffix in cdx.ZIPNUM_SUFFIXES)
    places = dict(cdx.zipnum_lines(path))
    assert list(places.values()) == [line + b"\n" for line in known]
    for place, line in islice(places.items(), 3):
        assert cdx.zipnum_line_at(path, place) == line
        assert cdx.zipnum_line_at(path, place + 1) == b""


def test_only_the_blocks_that_are_asked_for_are_read(tmp_path: Path) -> None:
    known = [b"%04d 2020 {}" % number for number in range(3000)]
    zipped(tmp_path, known, 100, "bare")
    with (tmp_path / "some.cdx.gz").open("r+b") as file:
        file.seek(json.loads((tmp_path / "some.idx").read_text().splitlines()[15].split(" ", 2)[2])["offset"])
        file.write(b"damaged")
    with index_search.open_index_files(tmp_path) as index:
        assert next(index.beginning(b"0150 ")) == known[150] + b"\n"
        assert list(index.since(b"2950"))[-1] == known[-1] + b"\n"
        with pytest.raises(ArchiveError, match=r"some.cdx.gz: the block at .* is damaged.*: archiver index "):
            list(index.since(b""))


GOOD = gzip.compress(b"b 1 {}\n", mtime=0)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("a 1 {", "names no block"),
        ("a 1 []", "names no block"),
        ('a 1 {"offset": Infinity, "length": 1}', "names no block"),
        ('a 1 {"offset": -1, "length": 1}', "cannot be"),
        ('a 1 {"offset": 0, "length": 99999999999}', "cannot be"),
        ('a 1 {"offset": 0, "length": 999}', "is cut"),
        ('a 1 {"offset": 1, "length": 20}', "is damaged"),
        ('a 1 {"offset": 0, "length": 20}', "is damaged"),
        (f"a 1\tsome.cdx.gz\t0\t{len(GOOD)}\nb 1\tsome.cdx.gz\t0\t{len(GOOD)}", "lie over each other"),
        ("a 1\t../some.idx\t0\t5", "no such file"),
        ("a 1\t/dev/zero\t0\t5", "no such file"),
        ("a 1\tfifo\t0\t5", "no such file"),
        ("a 1\t\0\t0\t5", "no such file"),
        (f"a 1\t{'x' * 999}\t0\t5", "no such file"),
        ('a 1 {"offset": 0, "length": 5, "filename": "\\ud800"}', "no such file"),
    ],
)
def test_false_keys_are_told_in_one_line(tmp_path: Path, keys: str, said: str) -> None:
    (tmp_path / "some.cdx.gz").write_bytes(GOOD)
    (tmp_path / "some.idx").write_text(keys)
    (tmp_path / "some.loc").write_text("fifo\tfolder\n")
    (tmp_path / "folder").mkdir()
    with index_search.open_index_files(tmp_path) as index, pytest.raises(ArchiveError, match=said) as refused:
        list(index.since(b""))
    assert "\n" not in str(refused.value)


def test_a_block_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zipped(tmp_path, [b"a 1 " + b"x" * 1000] * 100, 100, "bare")
    monkeypatch.setattr(cdx, "_UNPACKED", 50_000)
    with index_search.open_index_files(tmp_path) as index, pytest.raises(ArchiveError, match="too large"):
        list(index.since(b""))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (ELEVEN, KNOWN),
        (ELEVEN + "\r\n", KNOWN),
        (ELEVEN + " 0 0 -", KNOWN),
        (ELEVEN.replace("- - 99", "-"), KNOWN._replace(length=0)),
        (ELEVEN.replace("- - 99", "- -"), KNOWN._replace(length=0)),
        (ELEVEN.replace("- - 99", "- - -"), KNOWN._replace(length=0)),
        (ELEVEN.replace("text/html 200", "warc/revisit -"), KNOWN._replace(mime=REVISIT, status="-")),
        (ELEVEN.replace(f"text/html 200 {DIGEST}", "- - -"), KNOWN._replace(mime="unk", status="-", digest="")),
        (
            'org,example)/a 20200101000000 {"url": "http://example.org/a", "offset": 7, "filename": "a.warc.gz"}',
            KNOWN._replace(mime="unk", status="-", digest="", length=0),
        ),
        ('a 1 {"url": "u", "offset": Infinity, "filename": "f"}', None),
        (" CDX N b a m s k r M S V g", None),
        (ELEVEN.replace(" 7 ", " -7 "), None),
        (ELEVEN.replace(" 7 ", f" {'9' * 5000} "), None),
        (ELEVEN.replace("20200101000000", "date"), None),
        (ELEVEN.replace("http://example.org/a", "http://example.org/a b c d e"), None),
        (ELEVEN.rpartition(" ")[0].rpartition(" ")[0].rpartition(" ")[0], None),
        ("", None),
        ("{", None),
    ],
)
def test_lines_of_cdx(line: str, found: IndexEntry | None) -> None:
    read = cdx.parse_line(line.encode())
    assert read == found


@given(st.binary(max_size=60) | st.lists(st.binary(max_size=5), max_size=16).map(b" ".join))
@settings(max_examples=60)
def test_no_line_of_cdx_is_an_error(line: bytes) -> None:
    cdx.with_our_key(line)


@pytest.mark.parametrize("header", ["", " CDX N b a m s k r M S V g\n"])
def test_keys_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str) -> None:
    """They are made anew where the file is small, and else refused."""
    urn = ELEVEN.replace("org,example)/a", "urn:a").replace("http://example.org/a", "urn:a")
    (tmp_path / "archive").mkdir()
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "old.cdx").write_text(f"{header}{urn}\n{OLD_KEY}")
    with Holdings.open(tmp_path) as holdings:
        assert list(holdings.of_url("http://example.org/a")) == [KNOWN]
        assert [entry.url for entry in holdings.entries()] == ["http://example.org/a", "urn:a"]
    monkeypatch.setattr(index_search, "SMALL", 10)
    with pytest.raises(ArchiveError, match="remove it"), Holdings.open(tmp_path):
        pass


def test_payloads_are_found_in_them(tmp_path: Path) -> None:
    """As `--dedup-from` looks for them."""
    (tmp_path / "some.cdx").write_text(f" CDX N b a m s k r M S V g\n{ELEVEN}\n")
    other = DIGEST[::-1]
    zipped(tmp_path, [ELEVEN.encode(), ELEVEN.replace(DIGEST, other).encode()], 1, "meta")
    indexes = [tmp_path / "some.cdx", tmp_path / "some.idx"]
    gather(tmp_path / "dedup.db", tmp_path / "dedup.db.tmp", indexes)
    elsewhere = ExternalIndex(tmp_path / "dedup.db", indexes)
    found = sorted((one.source, one.digest) for one in elsewhere.find([f"sha1:{DIGEST}", f"sha1:{other}"]))
    (tmp_path / "some.cdx.gz").unlink()
    left = [one.source for one in elsewhere.find([f"sha1:{DIGEST}"])]
    elsewhere.close()
    assert found == [(0, f"sha1:{DIGEST}"), (1, f"sha1:{DIGEST}"), (1, f"sha1:{other}")]
    assert left == [0]


def test_as_pywb_lists_them() -> None:
    """The sample that comes with pywb: blocks of classic lines without ends, found by a `.loc` file."""
    path = Path(sys.prefix, "sample_archive", "zipcdx", "zipnum-sample.idx")
    if not path.is_file():
        pytest.skip("pywb's samples are not installed")
    with path.open("rb") as file:
        index = IndexLines([index_search.open_source(path, file)])
        found = [cdx.parse_line(line) for line in index.beginning(b"org,iana)/time-zones")]
        every = list(index.since(b""))
    assert [entry and entry.url.rpartition("/")[2] for entry in found] == ["time-zones", "X", "Y"]
    assert len(every) == 188
    assert None not in map(cdx.parse_line, every)
