"""`archiver status DIR --check`: whether a crawl runs, for probes and scripts."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver.collection.live import HANGS
from archiver.collection.lock import Holder, Lock
from archiver.model import ExitCode
from fixtures import handmade_crawls
from fixtures.command import COMMAND, archiver, ended, environment, running
from fixtures.flag import PATIENCE, Gate
from fixtures.live import until
from fixtures.rawserver import Answer, RawServer
from fixtures.sites import message, ok, page

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
DOING = "starts, ends or repairs"
CRAWL = ("crawl", "-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0")

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot stop a process")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="finds child processes in /proc")
with_faketime = pytest.mark.skipif(FAKETIME is None, reason="faketime is not installed")


def check(cwd: Path, ahead: float = 0.0) -> tuple[int, str]:
    """Run the command with a clock that is *ahead* by so many seconds; return the exit code and what it says."""
    later = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"+{ahead:g}s"} if ahead else {}
    ran = subprocess.run(
        [*COMMAND, "status", "c", "--check"],
        cwd=cwd,
        env={**environment(), **later},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout.count("\n") == 1
    return ran.returncode, ran.stdout


@contextmanager
def waiting_crawl(folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Crawl a site of which one page is not answered before the block ends."""
    gate = Gate()
    held = Answer((gate, message("200 OK", page("Two").encode(), content_type="text/html")))
    with RawServer({"/": ok(page("One", ["/two"])), "/two": held}) as server:
        with running(*CRAWL, *options, server.url(), cwd=folder) as process:
            gate.arrived.wait()
            until(folder / "c", lambda live: live.active, current=False)
            yield process
        gate.open()


@on_posix
@with_faketime
def test_a_crawl_that_runs_is_stopped_and_killed(tmp_path: Path) -> None:
    with waiting_crawl(tmp_path) as process:
        code, said = check(tmp_path)
        assert (code, f"running: process {process.pid} on " in said) == (ExitCode.DONE, True)
        process.send_signal(signal.SIGSTOP)
        assert check(tmp_path)[0] == ExitCode.DONE  # for a moment that may be
        code, said = check(tmp_path, ahead=HANGS + PATIENCE)
        assert (code, f"hangs: process {process.pid} on " in said) == (ExitCode.FAULTS, True)
        now = time.time()
        process.send_signal(signal.SIGCONT)
        until(tmp_path / "c", lambda live: live.written > now, current=False)
        assert check(tmp_path)[0] == ExitCode.DONE
        process.kill()
        process.wait()
        code, said = check(tmp_path)
        assert (code, said[:23]) == (ExitCode.STOPPED, "not running: it was kil")


@on_linux
def test_processes_hang_whose_supervisor_goes_on(tmp_path: Path) -> None:
    """It says in live.json how long they have been silent."""
    with waiting_crawl(tmp_path, "--processes", "2") as process:
        children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        for child in children:
            os.kill(child, signal.SIGSTOP)
        until(tmp_path / "c", lambda live: live.silent > 5, current=False)
        assert check(tmp_path)[0] == ExitCode.DONE
        for child in children:
            os.kill(child, signal.SIGCONT)
        until(tmp_path / "c", lambda live: live.silent < 5, current=False)


def test_a_crawl_that_has_ended(tmp_path: Path) -> None:
    with RawServer({"/": ok(page("One"))}) as server:
        assert archiver(*CRAWL, server.url(), cwd=tmp_path).returncode == ExitCode.DONE
    code, said = check(tmp_path)
    assert (code, said[:22]) == (ExitCode.STOPPED, "not running: it ended ")


def test_a_stop_in_order(tmp_path: Path) -> None:
    with waiting_crawl(tmp_path, "--drain-timeout", "0.1") as process:
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == ExitCode.STOPPED
        assert check(tmp_path)[0] == ExitCode.STOPPED


def test_the_database_may_be_away(tmp_path: Path) -> None:
    with waiting_crawl(tmp_path):
        (tmp_path / "c" / "crawl.db").rename(tmp_path / "away")
        assert check(tmp_path)[0] == ExitCode.DONE
        (tmp_path / "away").rename(tmp_path / "c" / "crawl.db")


def test_a_process_that_opens_a_crawl_does_not_hang(tmp_path: Path) -> None:
    """However long it takes, and whatever the run before has left."""
    (tmp_path / "c").mkdir()
    handmade_crawls.finished(tmp_path / "c", time.time())
    with Lock(tmp_path / "c" / "crawl.lock"):
        code, said = check(tmp_path)
    assert (code, said) == (ExitCode.DONE, f"busy: {Holder(os.getpid(), socket.gethostname())} {DOING}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "--check"), "nowhere does not exist"),
        ((".", "--check"), "holds no crawl"),
        (("postgresql://db.example/crawl", "--check"), "--check needs the directory of a crawl on this machine"),
        ((".", "--check", "--json"), "leave out --json"),
    ],
)
def test_what_cannot_be_checked(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    ran = archiver("status", *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (ExitCode.USAGE, "")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
