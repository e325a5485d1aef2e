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
from fixtures.rawserver import RawServer
from fixtures.several_hosts import PATIENCE, captures, crawlers, several_hosts
from fixtures.sites import PIXEL, ok, page
from fixtures.thread_delay import MOST_JITTER

BURSTS = 1.0  # seconds of the bandwidth that are used before the crawlers hear of each other
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


def test_limits_on_urls_count_for_all_crawlers(tmp_path: Path) -> None:
    with several_hosts(pages=60) as hosts:
        ran = archiver("crawl", *OPTIONS, "--max-urls", "50", "--robots", "ignore", *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        assert "--max-urls 50 is reached" in ran.stderr
        assert sum(hosts.asked().values()) == 50
        ran = archiver("resume", "c", "--max-urls", "90", cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        assert sum(hosts.asked().values()) == 90
    assert sum(captures(tmp_path / "c").values()) == 90


def test_the_rate_on_all_hosts_holds_for_all_crawlers(tmp_path: Path) -> None:
    with several_hosts(pages=10) as hosts:
        ran = archiver("crawl", *OPTIONS, "--global-rate", "10", "--robots", "ignore", *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        times = sorted(row.arrived for server in hosts.servers for row in server.log)
    assert len(times) == 40
    assert times[-1] - times[0] >= (len(times) - 2) / 10 - MOST_JITTER
    assert max(sum(start <= time < start + 1 - MOST_JITTER for time in times) for start in times) <= 10


def test_the_bandwidth_holds_for_all_crawlers(tmp_path: Path) -> None:
    with several_hosts(pages=12) as hosts:
        options = ("--bandwidth", "2k", "--robots", "ignore", "--host-concurrency", "1")
        ran = archiver("crawl", *OPTIONS, *options, *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        times = [row.arrived for server in hosts.servers for row in server.log]
    (received,) = rows(tmp_path / "c", "SELECT sum(received) FROM hosts")[0]
    assert isinstance(received, int)
    assert max(times) - min(times) >= received / 2000 - 1 - BURSTS


@pytest.mark.parametrize("name", ["i{}.victim.example", "i.victim{}.example"])
def test_names_of_one_server_share_a_rate_over_all_crawlers(tmp_path: Path, name: str) -> None:
    """Each of two crawlers finds names of the same server."""
    rate, most = 10, 1.0 - MOST_JITTER
    with RawServer(hosts=("127.0.0.1", "127.0.0.2", "127.0.0.3"), otherwise=ok(PIXEL, "image/gif")) as server:
        away = [server.url("/dot.gif", name.format(number)) for number in range(30)]
        server.routes = {f"//127.0.0.{host}/": ok(page("Front", images=away[host - 1 :: 2])) for host in (1, 2)}
        seeds = [server.url("/", f"127.0.0.{host}") for host in (1, 2)]
        places = [f"{name.format(number)}=127.0.0.3" for number in range(30)]
        options = ["--robots", "ignore", "--rate", f"{rate}", "--scope", "any", "--allow-private", "127.0.0.0/8"]
        resolve = [word for place in places for word in ("--resolve", place)]
        ran = archiver("crawl", *OPTIONS, *options, *resolve, *seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        arrived = sorted(row.arrived for row in server.log if row.host == "127.0.0.3")
    assert len(arrived) == len(away)
    assert arrived[-1] - arrived[0] >= (len(away) - 2) / rate - MOST_JITTER
    assert max(sum(0 <= later - first < most for later in arrived) for first in arrived) <= rate


def test_another_number_of_processes_continues_and_recrawls(tmp_path: Path) -> None:
    with several_hosts(pages=20) as hosts:
        for words in (
            ("crawl", *OPTIONS, "--processes", "1", "--max-urls", "20", *hosts.seeds),
            ("resume", "c", "--processes", "3", "--max-urls", "50"),
            ("resume", "c", "--processes", "1", "--max-urls", "0"),
        ):
            ran = archiver(*words, cwd=tmp_path)
            assert ran.returncode in (ExitCode.DONE, ExitCode.LIMIT), ran.stderr
        assert captures(tmp_path / "c") == dict.fromkeys(hosts.pages, 1)
        ran = archiver("recrawl", "c", "--processes", "2", "--dedup-min-size", "1", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert captures(tmp_path / "c") == dict.fromkeys(hosts.pages, 1)
    assert rows(tmp_path / "c", "SELECT DISTINCT revisit <> '' FROM captures WHERE status = 200") == [(1,)]
    verified(tmp_path / "c")


@linux
def test_a_seed_added_while_several_processes_crawl(tmp_path: Path) -> None:
    with several_hosts(hosts=3, pages=60, after=40) as hosts:
        *first, last = hosts.seeds
        with running("crawl", *OPTIONS, "--rate", "40", *first, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            added = archiver("add", "c", last, cwd=tmp_path)
            assert added.returncode == 0, added.stderr
            err = finish(process)
    assert process.returncode == ExitCode.DONE, err
    assert captures(tmp_path / "c") == dict.fromkeys(hosts.pages, 1)


@linux
def test_a_seed_that_was_added_stays_in_scope_after_kills(tmp_path: Path) -> None:
    """Neither the recovery nor a crawler that was started again forgets it."""
    with several_hosts(hosts=3, pages=100) as hosts:
        *first, last = hosts.seeds
        with running("crawl", *OPTIONS, "--rate", "40", *first, cwd=tmp_path) as process:
            hosts.servers[0].log.holds(5).wait()
            assert archiver("add", "c", last, cwd=tmp_path).returncode == 0
            for asked in (5, 15):
                hosts.servers[-1].log.holds(asked).wait()
                for victim in crawlers(process.pid):
                    os.kill(victim, signal.SIGKILL)
            err = finish(process)
    assert process.returncode == ExitCode.DONE, err
    assert captures(tmp_path / "c").keys() == hosts.pages


@linux
def test_a_signal_to_all_processes_stops_the_crawl_in_order(tmp_path: Path) -> None:
    """As at the end of a session or of a service."""
    with several_hosts(after=30) as hosts:
        with running("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            for each in (*crawlers(process.pid), process.pid):
                os.kill(each, signal.SIGTERM)
            err = finish(process)
        assert process.returncode == ExitCode.STOPPED, err
    assert "its files are recovered" not in err
    verified(tmp_path / "c")


def test_a_crawl_that_cannot_begin_leaves_no_process(tmp_path: Path) -> None:
    """Its crawlers already wait for their tasks when it finds that the database is damaged."""
    with several_hosts(pages=10) as hosts:
        words = ("crawl", *OPTIONS, "--max-urls", "10", *hosts.seeds)
        assert archiver(*words, cwd=tmp_path).returncode == ExitCode.LIMIT
    with (tmp_path / "c" / "crawl.db").open("r+b") as database:
        database.seek(4096)
        database.write(bytes(8192))
    with running("resume", "c", "--max-urls", "0", cwd=tmp_path) as process:
        err = finish(process)  # when the last process has closed the pipes
    assert process.returncode == ExitCode.STORAGE, err
    assert "it is damaged" in err
    assert "Traceback" not in err
