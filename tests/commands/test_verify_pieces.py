"""A large file read in pieces by several processes: they find what one reading finds, and they end when they shall."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.tools.verify import reading
from archiver.tools.verify.collection import verify
from archiver.tools.verify.file import ReadJob
from archiver.tools.verify.findings import VerifyReport
from archiver.url import surt
from archiver.warc.reader import read_records
from fixtures import handmade_warc
from fixtures.command import COMMAND, environment
from fixtures.handmade_warc import Collection, Visit, member, record

NOISE = random.Random(1)
PIECE = 20_000

pytestmark = pytest.mark.slow


def nested(count: int) -> bytes:
    """A WARC file, as somebody may have published it: inside another record it looks like the real thing."""
    return b"".join(member(record("resource", NOISE.randbytes(3000), number=number)) for number in range(count))


@pytest.fixture(name="collection", scope="module")
def a_collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    bodies = [NOISE.randbytes(2000) for _ in range(30)]
    bodies[5], bodies[20], bodies[28] = nested(20), nested(60), nested(4)
    visits = tuple(Visit(f"http://example.org/{number}", body) for number, body in enumerate(bodies))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handmade_warc, "member", stored)
        return Collection(tmp_path_factory.mktemp("pieces") / "c", visits, surt)


def stored(data: bytes) -> bytes:
    """A member that shows what it holds, as a compressor leaves what is compressed already."""
    return gzip.compress(data, 0, mtime=0)


@pytest.fixture(name="small_pieces")
def pieces_of_a_few_kilobytes(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(reading, "PIECE", PIECE)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return monkeypatch


def said(report: VerifyReport) -> object:
    told = report.as_json()
    return told | {"findings": sorted(json.dumps(fault, sort_keys=True) for fault in told["findings"])}


@pytest.mark.usefixtures("small_pieces")
def test_pieces_begin_where_records_seem_to_begin_and_some_are_wrong(collection: Collection, tmp_path: Path) -> None:
    cut = reading._pieces(ReadJob(collection.warc, tmp_path / "0.db"), collection.warc.stat().st_size)
    with collection.warc.open("rb") as file:
        real = {found.offset for found in read_records(file)}
    starts = {piece.start for piece in cut}
    assert starts & real > {0}
    assert starts - real
    assert [piece.stop for piece in cut] == [*(piece.start for piece in cut[1:]), None]


@pytest.mark.parametrize("damaged", [False, True])
def test_pieces_find_what_one_reading_finds(
    collection: Collection, small_pieces: pytest.MonkeyPatch, *, damaged: bool
) -> None:
    good = collection.warc.read_bytes()
    data = bytearray(good)
    draw = random.Random(2)
    if damaged:
        for _ in range(12):
            data[draw.randrange(len(good))] ^= 0x20
        del data[len(good) // 3 : len(good) // 3 + 50]
        data[len(good) // 2 : len(good) // 2] = bytes(100)
    collection.warc.write_bytes(data)
    try:
        alone = verify([collection.folder])
        small_pieces.setattr(reading, "WORTH_A_POOL", 0)
        together = verify([collection.folder])
    finally:
        collection.warc.write_bytes(good)
    assert said(together) == said(alone)
    assert alone.ok != damaged


def living(session: int) -> set[int]:
    """The processes of a session that are not merely waiting to be buried."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, belongs, *_ = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(belongs) == session and state != "Z":
            found.add(int(stat.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
@pytest.mark.parametrize(
    ("number", "everyone"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGHUP, True), (signal.SIGKILL, False)],
)
def test_no_process_is_left_when_the_command_is_ended(
    tmp_path: Path, number: signal.Signals, *, everyone: bool
) -> None:
    """A terminal signals the whole process group, `kill -2` the command alone. `kill -9` cannot be handled."""
    for name in ("a.warc", "b.warc"):
        with (tmp_path / name).open("wb") as file:
            file.write(record("resource", b"", ("Content-Length", str(1 << 36))).removesuffix(b"\r\n\r\n"))
            file.truncate(1 << 36)
    command = [*COMMAND, "verify", str(tmp_path)]
    with subprocess.Popen(
        command, env=environment(), start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: len(living(process.pid)) >= 4)  # the command, two readers, multiprocessing's tracker
        (os.killpg if everyone else os.kill)(process.pid, number)
        _, err = process.communicate(timeout=300)
    until(lambda: not living(process.pid))
    if number is not signal.SIGKILL:
        assert (process.returncode, err) == (ExitCode.STOPPED, "\narchiver: interrupted\n")


def until(true: Callable[[], bool], patience: float = 300) -> None:
    """Wait until *true* returns True: processes of others send no event."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
