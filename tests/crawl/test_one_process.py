"""One crawl, one process: a second one is refused at once and told who the first is; a dead one is in nobody's way."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select

import pytest

from archiver.model import ExitCode
from fixtures.archives import states
from fixtures.command import as_anybody, ended, running
from fixtures.flag import PATIENCE, Gate
from fixtures.forks import Forks
from fixtures.rawserver import NOT_FOUND, Answer, End, RawServer, keep
from fixtures.sites import ok, page

OPTIONS = ("--rate", "0", "--probe", "off", "--min-free-disk", "0", "-q")
HOST = socket.gethostname()
NEVER = "http://127.0.0.1:9/"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")]


class Held:
    """A site whose second page waits until it is let go, so that a crawl of it runs as long as it has to."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.server = RawServer(
            {
                "/": ok(page("First", ["/second"])),
                "/second": Answer((self.gate, NOT_FOUND, End.CLOSE)),
                "/robots.txt": keep(NOT_FOUND),
            }
        )


@pytest.fixture(name="held")
def held_site() -> Iterator[Held]:
    held = Held()
    with held.server:
        yield held
        held.gate.open()


def crawl_killed(folder: Path, held: Held) -> Path:
    """A crawl in *folder*/c whose process was killed while it waited for an answer."""
    with running("crawl", held.server.url(), "-o", "c", *OPTIONS, cwd=folder) as process:
        held.gate.arrived.wait()
        process.kill()
        assert ended(process)[0] == -signal.SIGKILL
    return folder / "c"


def _told(directory: Path) -> list[tuple[str, bytes]]:
    """What a second process must not touch."""
    files = [directory / "crawl.toml", directory / "crawl.lock", *directory.glob("archive/*")]
    return [(path.name, path.read_bytes()) for path in sorted(files)]


def test_second_is_refused(tmp_path: Path, held: Held, forks: Forks) -> None:
    commands = [
        ("crawl", NEVER, "-o", "c", "-q"),
        ("resume", "c", "-q"),
        ("resume", "c", "--rate", "3", "-q"),
        ("rebuild", "c"),
        ("index", "c"),
    ]
    with running("crawl", held.server.url(), "-o", "c", *OPTIONS, cwd=tmp_path) as first:
        held.gate.arrived.wait()
        before = _told(tmp_path / "c")
        for command in commands:
            ran = forks.run(*command, cwd=tmp_path)
            assert ran.code == ExitCode.USAGE, (command, ran.said)
            assert f"process {first.pid} on {HOST}" in ran.said, (command, ran.said)
            assert len(ran.said.splitlines()) == 1
            assert _told(tmp_path / "c") == before
        held.gate.open()
        assert ended(first)[0] == ExitCode.DONE
    assert set(states(tmp_path / "c").values()) == {"archived"}


def test_only_one_of_several_at_once(tmp_path: Path, held: Held) -> None:
    crawl_killed(tmp_path, held)
    asked = len(held.server.log)
    with ExitStack() as stack:
        racers = [stack.enter_context(running("resume", "c", *OPTIONS, cwd=tmp_path)) for _ in range(3)]
        held.server.log.holds(asked + 1).wait()  # one of them goes on, and waits for its answer
        refused = _first_to_end(racers, 2)
        (winner,) = [racer for racer in racers if racer not in refused]
        for racer in refused:
            code, said = ended(racer)
            assert code == ExitCode.USAGE, said
            assert f"process {winner.pid} on {HOST}" in said
        held.gate.open()
        assert ended(winner)[0] == ExitCode.DONE
    assert held.server.log.targets()[asked:] == ["/second"]


def _first_to_end(processes: list["subprocess.Popen[str]"], count: int) -> list["subprocess.Popen[str]"]:
    """Wait until *count* of *processes* have ended: which."""
    handles = {os.pidfd_open(process.pid): process for process in processes}
    over: list[int] = []
    try:
        while len(over) < count:
            ready, _, _ = select([handle for handle in handles if handle not in over], [], [], PATIENCE)
            assert ready, "more than one process works in the directory"
            over += ready
    finally:
        for handle in handles:
            os.close(handle)
    return [handles[handle] for handle in over]


def test_killed(tmp_path: Path, held: Held, forks: Forks) -> None:
    directory = crawl_killed(tmp_path, held)
    assert json.loads((directory / "crawl.lock").read_text())["host"] == HOST  # it says so, and it is dead
    held.gate.open()
    ran = forks.run("resume", "c", "-q", cwd=tmp_path)
    assert ran.code == ExitCode.DONE, ran.said
    assert set(states(directory).values()) == {"archived"}


def test_whatever_a_dead_process_left(tmp_path: Path, held: Held, forks: Forks) -> None:
    directory = crawl_killed(tmp_path, held)
    held.gate.open()
    for number, left in enumerate(
        [
            json.dumps({"pid": 1, "host": "another.example"}).encode(),
            json.dumps({"pid": os.getpid(), "host": HOST}).encode(),  # of a process that lives, but works elsewhere
            b"",
            b"{",
            b"[1]",
            b'{"pid": "x", "host": null}',
            b"\xff\x00" * 5000,
        ]
    ):
        name = f"copy{number}"
        shutil.copytree(directory, tmp_path / name)
        (tmp_path / name / "crawl.lock").write_bytes(left)
        ran = forks.run("resume", name, "-q", cwd=tmp_path)
        assert ran.code == ExitCode.DONE, (left[:80], ran.said)
        assert set(states(tmp_path / name).values()) == {"archived"}


def test_a_lock_that_may_only_be_read(tmp_path: Path, held: Held) -> None:
    """As in a directory that was copied from a read-only medium."""
    directory = crawl_killed(tmp_path, held)
    (directory / "crawl.lock").chmod(0o444)
    held.gate.open()
    with running("resume", "c", *OPTIONS, cwd=tmp_path, before=as_anybody()) as process:
        code, said = ended(process)
    assert code == ExitCode.DONE, said


def test_a_holder_that_does_not_say_who_it_is(tmp_path: Path, held: Held, forks: Forks) -> None:
    directory = crawl_killed(tmp_path, held)
    for left in (b"", b"{", b"[1]", b'{"pid": "x", "host": null}', b"\xff\x00" * 5000):
        with (directory / "crawl.lock").open("wb") as file:
            file.write(left)
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            for command in ("resume", "rebuild", "index"):
                ran = forks.run(command, "c", cwd=tmp_path)
                assert ran.code == ExitCode.USAGE, (left[:80], ran.said)
                assert "another process" in ran.said
            told = forks.run("status", "c", "--json", cwd=tmp_path)
            assert json.loads(told.said)["state"] == "running", told.said
    held.gate.open()
    ran = forks.run("resume", "c", "-q", cwd=tmp_path)
    assert ran.code == ExitCode.DONE, ran.said
