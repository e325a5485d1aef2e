"""`archiver status`: in words and as JSON, while a process works in the directory and after."""

import json
import os
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from archiver.cli.directory import check_idle, default_directory
from archiver.collection.lock import QUIET, Holder, HolderWatch, Lock, holder
from archiver.errors import ConfigError
from archiver.model import ExitCode
from fixtures import handmade_crawls
from fixtures.command import ROOT, archiver


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A crawl's directory."""
    directory = tmp_path / "crawl"
    directory.mkdir()
    handmade_crawls.finished(directory, time.time())
    return directory


def test_in_words(crawl: Path) -> None:
    ran = archiver("status", "crawl", cwd=crawl.parent)
    assert ran.returncode == ExitCode.DONE
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[:3] == [
        "state     stopped, 0.0/s in the last minute",
        "URLs      3 archived, 2 failed, 1 excluded, 4 waiting, 1 held",
        "archive   3 captures of 2.4 kB in 1 WARC file of 5.0 kB",
    ]
    assert "hosts     https://a.example: 1 waiting, 2 archived\n" in ran.stdout
    assert "          https://new.example: 1 waiting, 0 archived, robots.txt\n" in ran.stdout
    assert "https://parked.example: 1 waiting, 0 archived, retry-after in " in ran.stdout
    assert all(line.isprintable() for line in ran.stdout.splitlines())


def test_as_json(crawl: Path) -> None:
    ran = archiver("status", "crawl", "--json", cwd=crawl.parent)
    assert ran.stderr == ""
    told = json.loads(ran.stdout)
    assert told["state"] == "stopped"
    assert told["running"] is None
    assert told["totals"]["waiting"] == 4
    assert told["failures"] == {"dns": 1, "robots": 1, "timeout": 1}
    assert [seed["problem"] for seed in told["seeds"]][2] == "failed: dns: no such host"
    assert {host["key"]: host["why"] for host in told["hosts"]}["https://later.example"] == "retry"


def test_who_works_in_it(crawl: Path) -> None:
    assert holder(crawl) is None
    lock = Lock(crawl / "crawl.lock")
    try:
        assert holder(crawl) == Holder(os.getpid(), socket.gethostname())
        ran = archiver("status", "crawl", "--json", cwd=crawl.parent)
        assert json.loads(ran.stdout)["state"] == "running"
        assert json.loads(ran.stdout)["running"] == {"pid": os.getpid(), "host": socket.gethostname()}
        assert f"running (process {os.getpid()} on " in archiver("status", "crawl", cwd=crawl.parent).stdout
        with pytest.raises(ConfigError, match=f"process {os.getpid()} on .*; stop that first"):
            check_idle(crawl)
    finally:
        lock.release()
    assert holder(crawl) is None


def test_a_process_that_lives_on_has_ended_its_work_when_the_lock_stays_free(crawl: Path) -> None:
    """It releases the lock for a moment, as between the end of a run and the delivery of its events."""
    assert HolderWatch(crawl).has_ended(0.0)
    with ExitStack() as stack:
        with Lock(crawl / "crawl.lock"):
            watch = HolderWatch(crawl)
            stack.callback(watch.close)
            assert not watch.has_ended(0.0)
        assert not watch.has_ended(10.0)
        with Lock(crawl / "crawl.lock"):
            assert not watch.has_ended(10.0 + QUIET)
        assert [watch.has_ended(now) for now in (20.0, 19.9 + QUIET, 20.0 + QUIET)] == [False, False, True]


def test_a_lock_left_by_a_crash_is_free(crawl: Path) -> None:
    (crawl / "crawl.lock").write_text(json.dumps({"pid": 1, "host": "gone"}))
    assert holder(crawl) is None


def test_a_reader_that_has_seen_enough(crawl: Path) -> None:
    script = f"{sys.executable} -m archiver status crawl | true"
    assert os.waitstatus_to_exitcode(os.system(f"cd {crawl.parent} && PYTHONPATH={ROOT} {script} 2>err")) == 0
    assert (crawl.parent / "err").read_text() == ""


@pytest.mark.parametrize(
    ("seed", "directory"),
    [
        ("https://www.example.org/x", "collections/www.example.org"),
        ("http://127.0.0.1:8080/", "collections/127.0.0.1_8080"),
        ("http://127.0.0.1:8081/", "collections/127.0.0.1_8081"),
        ("https://127.0.0.1/", "collections/127.0.0.1"),
        ("http://[::1]:8080/", "collections/1__8080"),
        ("http://../", "collections/crawl"),
        ("http://xn--bcher-kva.example/", "collections/xn--bcher-kva.example"),
    ],
)
def test_where_a_crawl_goes(seed: str, directory: str) -> None:
    assert default_directory(seed) == Path(directory)
