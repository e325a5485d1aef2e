"""WARC files that other tools wrote, as they are and spoiled in every way: `verify` ends with a report, never a crash.

ARCHIVER_CHANGES says how many ways each sample is spoiled in.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from archiver.tools.verify.collection import verify
from archiver.tools.verify.findings import VerifyReport
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import scan
from fixtures.handmade_warc import Collection, member, record
from fixtures.rawserver import RawServer
from fixtures.sites import tree

CHANGES = int(os.environ.get("ARCHIVER_CHANGES", "4"))
LARGEST = 200_000  # bytes of a sample: larger ones take their time

Change = Callable[[random.Random, bytes], bytes]


def cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data))]


def flipped(draw: random.Random, data: bytes) -> bytes:
    spoiled = bytearray(data)
    for _ in range(draw.randrange(1, 5)):
        spoiled[draw.randrange(len(data))] ^= draw.randrange(1, 256)
    return bytes(spoiled)


def zeros(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes(draw.randrange(1, 5000)) + data[at:]


def hole(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + data[at + draw.randrange(1, 500) :]


def parts(data: bytes, path: Path) -> list[bytes]:
    """*data* cut at the places where records or members begin."""
    path.write_bytes(data)
    with path.open("rb") as file:
        places = sorted({0, len(data), *(item.offset for item in scan(file))})
    return [data[start:stop] for start, stop in pairwise(places)]


def spoiled(draw: random.Random, data: bytes, path: Path) -> bytes:
    """*data* changed in one way, or its records swapped, doubled or with something between them."""
    changes: tuple[Change, ...] = (cut, flipped, zeros, hole)
    way = draw.randrange(len(changes) + 3)
    if way < len(changes):
        return changes[way](draw, data)
    pieces = parts(data, path)
    at, other = draw.randrange(len(pieces)), draw.randrange(len(pieces))
    if way == len(changes):
        pieces[at], pieces[other] = pieces[other], pieces[at]
    elif way == len(changes) + 1:
        pieces.insert(at, pieces[other])
    else:
        pieces.insert(at, draw.randbytes(draw.randrange(1, 40)))
    return b"".join(pieces)


def reported(path: Path) -> VerifyReport:
    report = verify([path])
    assert json.dumps(report.as_json(), ensure_ascii=False).encode()
    return report


@pytest.mark.suites
def test_whatever_is_done_to_the_samples_ends_with_a_report(suites: Path, tmp_path: Path) -> None:
    draw = random.Random(7)
    tried = 0
    for entry in json.loads((suites / "warc" / "index.json").read_text()):
        data = (suites / "warc" / entry["file"]).read_bytes()
        if 0 < len(data) <= LARGEST:
            for _ in range(CHANGES):
                path = tmp_path / "a.warc.gz"
                path.write_bytes(spoiled(draw, data, path))
                reported(path)
                tried += 1
    assert tried > 50 * CHANGES


def test_whatever_is_done_to_a_collection_ends_with_a_report(tmp_path: Path) -> None:
    draw = random.Random(8)
    made = Collection(tmp_path / "c")
    files = [made.warc, made.index, made.database]
    good = [file.read_bytes() for file in files]
    for _ in range(5 * CHANGES):
        for file, data in zip(files, good, strict=True):
            file.write_bytes(spoiled(draw, data, tmp_path / "scratch") if draw.random() < 0.5 else data)
        reported(made.folder)


ENDLESS = {
    "a header that is cut": b"WARC/1.1\r\nWARC-Type: resource\r\n",
    "a header without end": b"WARC/1.1\r\nWARC-Type: resource\r\n" + b"a" * (1 << 21),
    "no version": b"WARC/1x\r\n\r\n",
    "beginnings alone": b"WARC/1.1 " * 200_000,
    "beginnings, and one end": b"WARC/1x " * 150_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("inside", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.timeout(30)
def test_what_only_begins_like_a_record_is_read_over(tmp_path: Path, inside: bytes) -> None:
    """In a member that is sound: what follows it is found, and the reading ends."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(member(record("warcinfo")) + member(inside) + member(record("resource", number=2)))
    report = reported(path)
    assert not report.ok
    assert report.files[0].records == 2
    with path.open("rb") as file:
        assert sum(isinstance(item, DamagedRecord) for item in scan(file)) < 2000


@pytest.mark.skipif(shutil.which("wget") is None, reason="needs wget")
def test_what_wget_writes_is_read_and_its_faults_are_named(tmp_path: Path) -> None:
    with RawServer(tree(6).routes) as server:
        subprocess.run(
            ["wget", "-q", "-r", "-l3", "--warc-file=w", "--warc-cdx", server.url()], cwd=tmp_path, check=False
        )
    path = tmp_path / "w.warc.gz"
    report = reported(path)
    assert report.files[0].records > 12
    assert set(report.counts) <= {"uri-brackets", "pair-missing", "record-id-repeated", "concurrent-missing"}
    path.write_bytes(path.read_bytes()[:-5])
    assert "gzip-cut" in reported(path).counts
