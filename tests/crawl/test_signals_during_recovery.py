"""Signals at odd moments of a real process: while it recovers what another left, and while a batch is committed."""

import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import captured, rows
from fixtures.command import archiver, ended, running, said
from fixtures.flag import PATIENCE
from fixtures.rawserver import RawServer
from fixtures.sites import tree

SITE = tree(60)
FAST = ("--rate", "0", "--probe", "off", "--host-concurrency", "16")


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Nothing can be committed to the crawl's database meanwhile."""
    with closing(sqlite3.connect(directory / "crawl.db", isolation_level=None, timeout=20)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


def _until_it_opens(process: "subprocess.Popen[str]", directory: Path) -> None:
    """Wait until the crawl is this process's, which then has to recover before it may go on."""
    end = time.monotonic() + PATIENCE
    while str(process.pid) not in (directory / "crawl.lock").read_text():
        assert time.monotonic() < end, "it never opened the crawl"
        time.sleep(0.01)


def _whole(directory: Path, server: RawServer) -> None:
    done = archiver("resume", "c", cwd=directory)
    assert done.returncode == ExitCode.DONE, done.stderr
    urls = [url for url, _ in captured(directory / "c")]
    assert urls == sorted(map(server.url, SITE.reachable | {"/robots.txt"}))
    checked = archiver("verify", "c", cwd=directory)
    assert checked.returncode == ExitCode.DONE, checked.stdout


def test_during_recovery(tmp_path: Path) -> None:
    """Recovery goes to its end, no request follows, and the next run goes on."""
    with RawServer(SITE.routes) as server:
        with running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process:
            server.log.holds(45).wait()
            process.send_signal(signal.SIGKILL)
            ended(process)
        asked = len(server.log)
        with running("resume", "c", cwd=tmp_path) as process:
            with held(tmp_path / "c"):
                _until_it_opens(process, tmp_path / "c")
                process.send_signal(signal.SIGTERM)
                said(process, "stopping")
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert "Traceback" not in err
        assert len(server.log) == asked
        _whole(tmp_path, server)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_while_a_batch_is_committed(tmp_path: Path, number: signal.Signals) -> None:
    """The database is held by somebody else, so the commit is certainly under way; it is finished all the same."""
    with RawServer(SITE.routes) as server:
        with running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process:
            server.log.holds(40).wait()
            with held(tmp_path / "c"):
                process.send_signal(number)
                said(process, "stopping")
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert "Traceback" not in err
        answered = {row.target for row in server.log if row.ended and not row.lost}
        settled = rows(tmp_path / "c", "SELECT url FROM urls WHERE tries > 0")
        assert {str(address).removeprefix(server.url("")) for (address,) in settled} == answered
        _whole(tmp_path, server)
