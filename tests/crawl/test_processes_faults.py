"""Crawlers and supervisors that stand still, and limits that the supervisor watches."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver, ended, running
from fixtures.several_hosts import captures, crawlers, several_hosts

OPTIONS = ("-o", "c", "--processes", "2", "--rate", "40", "--probe", "off", "--min-free-disk", "0")
STOPPED = 2.0  # seconds
linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")


@linux
@pytest.mark.parametrize("stopped", ["supervisor", "crawler"])
def test_a_process_that_stands_still_goes_on_later(tmp_path: Path, stopped: str) -> None:
    with several_hosts(pages=80) as hosts, running("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path) as process:
        hosts.servers[0].log.holds(5).wait()
        victim = process.pid if stopped == "supervisor" else crawlers(process.pid)[0]
        os.kill(victim, signal.SIGSTOP)
        before = hosts.asked().total()
        time.sleep(STOPPED)
        assert hosts.asked().total() > before  # the others go on
        os.kill(victim, signal.SIGCONT)
        code, err = ended(process)
        asked = hosts.asked()
    assert code == ExitCode.DONE, err
    assert "its files are recovered" not in err
    assert captures(tmp_path / "c") == dict.fromkeys(hosts.pages, 1)
    assert {asked[url] for url in hosts.pages} == {1}


def test_a_limit_on_bytes_counts_for_all_crawlers_and_all_runs(tmp_path: Path) -> None:
    with several_hosts(pages=200) as hosts:
        for most in (20_000, 40_000):
            words = ("resume", "c") if (tmp_path / "c").exists() else ("crawl", *OPTIONS, *hosts.seeds)
            ran = archiver(*words, "--max-bytes", f"{most}", cwd=tmp_path)
            assert ran.returncode == ExitCode.LIMIT, ran.stderr
            assert f"--max-bytes {most} is reached" in ran.stderr
            (received,) = rows(tmp_path / "c", "SELECT sum(received) FROM hosts")[0]
            assert isinstance(received, int)
            assert received >= most
        assert sum(captures(tmp_path / "c").values()) < len(hosts.pages)
