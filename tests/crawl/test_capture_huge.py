"""A huge response goes through a crawl in little memory, and no other page waits for it."""

import hashlib
import itertools
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fixtures.command import COMMAND, environment
from fixtures.flag import PATIENCE, Gate
from fixtures.log import Row
from fixtures.rawserver import Answer, End, Piece, RawServer, Sendable
from fixtures.sites import message, page

SIZE = (2 << 30) if os.environ.get("ARCHIVER_LONG") else (512 << 20)  # bytes of the huge response
ROOM = 64 << 20  # bytes of memory beyond what small pages take
PIECE = bytes(range(256)) * 1024  # sent again and again from one place; compresses well
GROUP = 100  # pages before the huge answer, in its first half, in its second, and while it is written to its WARC
FAR = "127.0.0.2"


def memory(pid: int, word: str) -> int:
    """Return `VmRSS`, or its peak `VmHWM`, in bytes; 0 if the process has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{word}:"):
            return int(line.split()[1]) << 10
    return 0


def until(happened: Callable[[], bool], patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def stored(database: Path) -> int:
    """Return the number of committed captures."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM captures").fetchone()[0])


class Stage:
    """Serves the pages of one host in groups, and another host's huge answer in parts, all behind gates."""

    def __init__(self) -> None:
        self.groups = [Gate() for _ in range(4)]
        self.asked = itertools.count()  # a busy machine requests them in another order
        self.parts = [Gate() for _ in range(3)]  # at its head, in its middle, before its end
        self.server = RawServer(otherwise=self.answer, hosts=("127.0.0.1", FAR))

    def answer(self, row: Row) -> Sendable:
        if row.host == FAR:
            return Answer(self.huge(), End.KEEP)
        if row.target != "/":
            gate = self.groups[min(next(self.asked) // GROUP, 3)]
            return Answer((gate, message("200 OK", page(row.target).encode(), content_type="text/html")))
        links = [f"/{group}/{number}" for group in range(4) for number in range(GROUP)]
        body = page("Pages", links, images=[self.server.url("/huge", FAR)])
        return Answer((message("200 OK", body.encode(), content_type="text/html"),))

    def huge(self) -> Iterator[Piece]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % SIZE
        count = SIZE // len(PIECE)
        for number in range(count):
            if number % (count // 2) == 0:
                yield self.parts[number // (count // 2)]
            if number == count - 1:
                yield self.parts[2]
            yield PIECE

    def play(self, pid: int, database: Path) -> tuple[int, int]:
        """Open the gates in turn; return the memory of the process *pid* before the huge answer, and its peak."""
        self.groups[0].open()
        self.server.log.holds(GROUP).wait()
        until(lambda: stored(database) > GROUP)
        before = memory(pid, "VmRSS")
        for half in (0, 1):  # of the huge answer; a group of pages is stored during each
            self.parts[half].open()
            self.groups[half + 1].open()
            until(lambda wanted=half + 2: stored(database) > wanted * GROUP)  # type: ignore[misc]
            self.parts[half + 1].arrived.wait()
        self.groups[3].open()
        self.parts[2].open()
        highest = before
        while now := memory(pid, "VmHWM"):
            highest = max(highest, now)
            time.sleep(0.02)
        return before, highest


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_huge_response_takes_little_memory_and_holds_up_no_page(tmp_path: Path) -> None:
    stage = Stage()
    with stage.server:
        command = [
            *COMMAND,
            "crawl",
            stage.server.url(),
            "-o",
            "out",
            "--rate",
            "0",
            "--robots",
            "ignore",
            "--probe",
            "off",
            "-q",
        ]
        command += ["--allow-private", FAR]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment())
        began = time.monotonic()
        try:
            before, highest = stage.play(process.pid, tmp_path / "out" / "crawl.db")
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0
    assert highest - before < ROOM
    log = (tmp_path / "out" / "logs" / "crawl.log").read_text().splitlines()
    place = next(number for number, line in enumerate(log) if "/huge" in line)
    while_written = place - 3 * GROUP - 1
    took = time.monotonic() - began
    print(f"{before >> 20} MiB, then {highest >> 20}; {took:.0f} s; {while_written} pages while its WARC was written")
    assert len(log) == 4 * GROUP + 2
    assert while_written > GROUP // 2, "a huge answer on its way into its WARC holds up the pages"
    digest = hashlib.sha256()
    for _ in range(SIZE // len(PIECE)):
        digest.update(PIECE)
    assert f" sha256:{digest.hexdigest()} " in log[place]
