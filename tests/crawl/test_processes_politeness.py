"""Politeness of several crawler processes, judged by the server, while hosts go from one crawler to another."""

import os
import signal
import sys
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import ended, running
from fixtures.log import Row
from fixtures.rawserver import RawServer, Route, Sendable
from fixtures.several_hosts import crawlers
from fixtures.sites import message, ok, page
from fixtures.thread_delay import ThreadDelay

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc"),
]
HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 7))
PAUSE = 2  # seconds that a host asks for with Retry-After
OPTIONS = ("-o", "c", "--processes", "3", "--probe", "off", "--min-free-disk", "0")


def tree(size: int) -> dict[str, Route]:
    """Return the pages of one host."""
    links = {number: [f"/{n}" for n in range(4 * number + 1, 4 * number + 5) if n < size] for number in range(size)}
    return {f"/{number or ''}": ok(page(f"Page {number}", links[number])) for number in range(size)}


@pytest.mark.parametrize("rate", ["5", "30/2"])
def test_a_rate_holds_while_crawlers_are_killed(tmp_path: Path, late: ThreadDelay, rate: str) -> None:
    """Each host has another number of pages, so that crawlers that are done early take hosts over from others."""
    starts, _, interval = rate.partition("/")
    pages = {host: 10 + 10 * number for number, host in enumerate(HOSTS)}
    routes: dict[str, Route] = {}
    for host, size in pages.items():
        routes |= {f"//{host}{target}": answer for target, answer in tree(size).items()}
    with RawServer(routes, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, "--rate", rate, "--host-concurrency", "2", *seeds, cwd=tmp_path) as process:
            for kill, asked in enumerate((20, 60, 100)):
                server.log.holds(asked).wait()
                os.kill(crawlers(process.pid)[kill % 3], signal.SIGKILL)
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        for host in HOSTS:
            assert server.log.most_starts(late.within(float(interval or 1)), host) <= int(starts)
            assert server.log.most_at_once(host) <= 2
    assert {row.target for row in server.log if row.host == HOSTS[-1]} >= set(tree(pages[HOSTS[-1]]))


def test_delays_that_hosts_ask_for_hold_while_crawlers_are_killed(tmp_path: Path, late: ThreadDelay) -> None:
    """The first host has a Crawl-delay; the second answers 429 with Retry-After, once."""
    robots = message("200 OK", b"User-agent: *\nCrawl-delay: 1\n", content_type="text/plain")
    paused: list[float] = []

    def busy(row: Row) -> Sendable:
        if not paused:
            paused.append(row.arrived)
            return message("429 Too Many Requests", b"later", retry_after=f"{PAUSE}")
        return ok(page("At last"))

    routes: dict[str, Route] = {f"//{HOSTS[0]}/robots.txt": robots, f"//{HOSTS[1]}/3": busy}
    for host, size in zip(HOSTS[:4], (8, 12, 150, 150), strict=True):
        routes = {f"//{host}{target}": answer for target, answer in tree(size).items()} | routes
    with RawServer(routes, hosts=HOSTS[:4]) as server:
        seeds = [server.url("/", host) for host in HOSTS[:4]]
        with running("crawl", *OPTIONS, "--rate", "20", *seeds, cwd=tmp_path) as process:
            for kill, asked in enumerate((30, 60, 90, 120)):
                server.log.holds(asked).wait()
                os.kill(crawlers(process.pid)[kill % 3], signal.SIGKILL)
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert server.log.most_starts(late.within(1), HOSTS[0]) == 1
        after = [row.arrived for row in server.log if row.host == HOSTS[1] and row.arrived > paused[0]]
        assert min(after) - paused[0] > late.within(PAUSE) - 1
