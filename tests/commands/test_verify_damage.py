"""Bytes changed and tails cut at random places of a real crawl's files: `verify` names each change that can be seen.

ARCHIVER_CHANGES says how many places are tried (default 40, with ARCHIVER_LONG 2000). With 10000 each length of a tail
is tried too.
"""

import gzip
import json
import os
import random
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from archiver.tools.verify.file import HEADER
from archiver.warc.reader import read_records
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import RawServer, Route, keep
from fixtures.sites import ok, page, redirect

CHANGES = int(os.environ.get("ARCHIVER_CHANGES", "2000" if os.environ.get("ARCHIVER_LONG") else "40"))
TAIL = 4096

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 if CHANGES <= 40 else 7200)]

WORDS = ("the", "archive", "keeps", "what", "a", "site", "said", "and", "who", "asked", "for", "it", "when")


def _words(count: int, seed: int = 5) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def _mixed() -> dict[str, Route]:
    """Pages, a redirect, a missing one, chunks, noise, and a run of one byte."""
    pieces = [_words(40, seed).encode() for seed in range(5)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return {
        "/": ok(page("Home", ["/p", "/chunked", "/moved", "/gone", "/noise", "/blank"], body=_words(300))),
        "/p": ok(page("Page", ["/"], body=_words(200))),
        "/chunked": keep(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"),
        "/moved": redirect("/p"),
        "/noise": ok(random.Random(1).randbytes(1500).hex(), "application/octet-stream"),
        "/blank": ok("\0" * 2000, "application/octet-stream"),
    }


def _large() -> dict[str, Route]:
    """A record of more than a mebibyte."""
    return {"/": ok((_words(9) + "\n") * 28_000, "text/plain")}


@pytest.fixture(name="archive", scope="module")
def an_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished crawl with several WARC files, of which `verify` has nothing to say."""
    folder = tmp_path_factory.mktemp("damage") / "crawl"
    return _archived(folder, _mixed())


@pytest.fixture(name="large", scope="module")
def an_archive_of_a_large_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another one, with a record that is not compressed in one call."""
    return _archived(tmp_path_factory.mktemp("damage") / "large", _large())


def _archived(folder: Path, routes: dict[str, Route]) -> Path:
    with RawServer(routes) as server:
        assert crawl(folder, server.url(), warc_size=6000).code is ExitCode.DONE
    assert verify([folder]).counts == {}
    return folder


def _warcs(folder: Path) -> list[Path]:
    return sorted((folder / "archive").glob("*.warc.gz"))


@contextmanager
def _as(path: Path, data: bytes | bytearray) -> Iterator[None]:
    """*path* holds *data* while the block runs."""
    good = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(good)


def _changed(draw: random.Random, files: list[Path], count: int) -> Iterator[tuple[Path, int, bytearray]]:
    """*count* times a file, a place in it, and its bytes with another one there."""
    goods = [path.read_bytes() for path in files]
    for _ in range(count):
        path, good = draw.choices(list(zip(files, goods, strict=True)), weights=[len(good) for good in goods])[0]
        at = draw.randrange(len(good))
        data = bytearray(good)
        data[at] ^= draw.randrange(1, 256)
        yield path, at, data


def test_each_changed_byte_of_a_collection_is_found(archive: Path, large: Path) -> None:
    draw = random.Random(1)
    assert len(_warcs(archive)) >= 2
    changes = _changed(draw, _warcs(archive), CHANGES)
    for path, at, data in chain(changes, _changed(draw, _warcs(large), CHANGES // 10)):
        with _as(path, data):
            report = verify([path.parents[1]])
        changed = [fault.file for fault in report.findings if fault.code == "file-changed"]
        assert changed == [str(path)], (path.name, at)


def test_of_a_lone_file_only_what_inflates_to_the_same_bytes_stays_unseen(archive: Path, large: Path) -> None:
    unseen = 0
    draw = random.Random(2)
    changes = _changed(draw, _warcs(archive), CHANGES)
    for path, at, data in chain(changes, _changed(draw, _warcs(large), CHANGES // 10)):
        with _as(path, data):
            seen = not verify([path]).ok
        if not seen:
            unseen += 1
            assert gzip.decompress(data) == gzip.decompress(path.read_bytes()), (path.name, at)
    print(f"{unseen} of {CHANGES + CHANGES // 10} unseen")
    assert unseen <= max(2, CHANGES // 50)  # two were the bound for 100 places


def _members(path: Path) -> list[tuple[str, int, int]]:
    """Type, offset and length of each record of *path*."""
    found = []
    with path.open("rb") as file:
        for record in read_records(file):
            for _ in record.pieces():
                pass
            found.append((record.type, record.offset, record.length or 0))
    return found


def _still_whole(data: bytes | bytearray) -> bool:
    try:
        gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return False
    return True


def test_bits_that_no_checksum_covers_are_held_to_what_was_written(archive: Path) -> None:
    path = _warcs(archive)[0]
    good = path.read_bytes()
    changes: list[tuple[int, int]] = []
    for _, offset, length in _members(path)[1:6]:
        changes += [(offset + at, 1 << at % 8) for at in range(3, len(HEADER))]
        last = offset + length - 9
        changes += [(last, 1 << bit) for bit in range(good[last].bit_length(), 8)]
    harmless = 0
    for at, flip in changes:
        data = bytearray(good)
        data[at] ^= flip
        if _still_whole(data):
            harmless += 1
            with _as(path, data):
                assert set(verify([path]).counts) == {"gzip-altered"}, at
    assert harmless > 5 * 6


def test_a_cut_at_any_length_is_found(archive: Path) -> None:
    path = _warcs(archive)[0]
    good = path.read_bytes()
    ends = {offset + length for kind, offset, length in _members(path) if kind in ("metadata", "warcinfo")}
    draw = random.Random(3)
    tail = range(len(good) - TAIL, len(good))
    for size in draw.sample(tail, min(2 * CHANGES, TAIL)) + sorted(ends.intersection(tail)):
        with _as(path, good[:size]):
            assert verify([path]).ok == (size in ends), size  # a lone file may end behind each visit
    for size in draw.sample(tail, min(CHANGES // 2, TAIL)):
        with _as(path, good[:size]):
            assert {"warc-length", "file-changed"} <= set(verify([archive]).counts), size


def _meaning(line: bytes) -> tuple[bytes, bytes, dict[str, str]]:
    key, stamp, entry = line.split(b" ", 2)
    said = json.loads(entry)
    return key, stamp, said | {"mime": said["mime"].lower()}  # media types have no case


def test_each_changed_byte_of_an_index_is_found_or_says_the_same(archive: Path) -> None:
    index = archive / "indexes" / "index.cdxj"
    good = index.read_bytes()
    for _, at, data in _changed(random.Random(4), [index], CHANGES // 2):
        with _as(index, data):
            if not verify([archive]).ok:
                continue
        lines = zip(good.splitlines(), bytes(data).splitlines(), strict=True)
        assert all(_meaning(one) == _meaning(other) for one, other in lines), at


def test_a_cut_index_is_found_at_any_length(archive: Path) -> None:
    index = archive / "indexes" / "index.cdxj"
    good = index.read_bytes()
    for size in random.Random(5).sample(range(len(good)), min(CHANGES // 4, len(good))):
        with _as(index, good[:size]):
            assert not verify([archive]).ok, size


def test_a_changed_byte_of_the_database_is_never_a_crash(archive: Path, tmp_path: Path) -> None:
    """SQLite has no sums of its pages: free space, and columns of which no record speaks, are nobody's to prove."""
    copy = tmp_path / "copy"
    shutil.copytree(archive, copy)
    database = copy / "crawl.db"
    codes: Counter[str] = Counter()
    for _, _, data in _changed(random.Random(6), [database], max(100, CHANGES // 2)):
        with _as(database, data):
            report = verify([copy])
        codes.update({fault.code for fault in report.findings} or {"nothing"})
    print(dict(codes))
    assert codes["frontier-unreadable"] > 0
