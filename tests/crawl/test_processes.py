"""Crawls with several crawler processes: complete, each page once, also when a process is killed or stopped."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver, running
from fixtures.several_hosts import PATIENCE, captures, crawlers, several_hosts

OPTIONS = ("-o", "c", "--processes", "2", "--rate", "0", "--probe", "off", "--min-free-disk", "0")
linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")


def finish(process: "subprocess.Popen[str]") -> str:
    _, err = process.communicate(timeout=PATIENCE)
    return err


def verified(directory: Path) -> None:
    """No record is damaged, and the index has a line for each capture."""
    ran = archiver("verify", str(directory), cwd=directory.parent)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_two_processes_archive_each_page_once(tmp_path: Path) -> None:
    with several_hosts() as hosts:
        ran = archiver("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path)
        asked = hosts.asked()
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert captures(tmp_path / "c") == dict.fromkeys(hosts.pages, 1)
    assert {asked[url] for url in hosts.pages} == {1}
    names = sorted({path.name.rsplit("~", 1)[-1] for path in warcs(tmp_path / "c") if "~" in path.name})
    assert names == ["1.warc.gz", "2.warc.gz"]  # both have crawled
    assert not list((tmp_path / "c" / "indexes").glob("run-*"))
    verified(tmp_path / "c")


@linux
@pytest.mark.parametrize("after", [1, 20, 60])
def test_a_killed_crawler_is_recovered_and_replaced(tmp_path: Path, after: int) -> None:
    with several_hosts(after=after) as hosts, running("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path) as process:
        assert hosts.reached.wait(PATIENCE)
        victim = crawlers(process.pid)[0]
        os.kill(victim, signal.SIGKILL)
        err = finish(process)
    assert process.returncode == ExitCode.DONE, err
    assert "its files are recovered" in err
    assert captures(tmp_path / "c").keys() == hosts.pages
    verified(tmp_path / "c")


@linux
def test_a_signal_drains_all_crawlers_and_resume_continues(tmp_path: Path) -> None:
    with several_hosts(after=30) as hosts:
        with running("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            process.send_signal(signal.SIGINT)
            err = finish(process)
        assert process.returncode == ExitCode.STOPPED, err
        assert rows(tmp_path / "c", "SELECT exit_code FROM runs") == [(ExitCode.STOPPED,)]
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        asked = hosts.asked()
    assert captures(tmp_path / "c") == dict.fromkeys(hosts.pages, 1)
    assert {asked[url] for url in hosts.pages} == {1}
    verified(tmp_path / "c")


@linux
def test_crawlers_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    with several_hosts(after=30) as hosts:
        with running("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            process.kill()
            process.communicate(timeout=PATIENCE)  # until the last crawler has closed the pipes
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert captures(tmp_path / "c").keys() == hosts.pages
    verified(tmp_path / "c")
