"""Limits for all hosts together and for single hosts, judged by what the servers saw."""

from pathlib import Path
from typing import Any

import pytest

from archiver.config.host_rules import HostRule
from archiver.config.option_types import Rate
from archiver.model import ExitCode
from fixtures.archives import states
from fixtures.crawl_in_process import crawl
from fixtures.log import Log, Row
from fixtures.rawserver import RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page
from fixtures.thread_delay import JITTER, MOST_JITTER, ThreadDelay

pytestmark = pytest.mark.alone

HOSTS = ("127.0.0.1", "127.0.0.2")


def site(pages: int, size: int = 10) -> dict[str, Route]:
    names = [f"/p{number}" for number in range(pages - 1)]
    return {"/": ok(page("Front", names)), **{name: ok(page(name * size)) for name in names}}


def crawled(folder: Path, *seeds: str, **values: Any) -> None:
    assert crawl(folder, *seeds, traps="off", **values).code is ExitCode.DONE


def together(*logs: Log) -> Log:
    """Merge the logs into one."""
    both = Log()
    both._rows = sorted((row for log in logs for row in log), key=lambda row: row.arrived)
    return both


def test_a_rate_for_all_hosts(tmp_path: Path, late: ThreadDelay) -> None:
    with RawServer(site(8), hosts=HOSTS) as server:
        crawled(tmp_path, *(server.url("/", host) for host in HOSTS), global_rate=Rate(10))
        assert len(server.log) == 18
        assert server.log.most_starts(late.within(1)) <= 10


def test_hosts_at_one_address(tmp_path: Path, late: ThreadDelay) -> None:
    with RawServer(site(5)) as one, RawServer(site(5)) as other:
        crawled(tmp_path, one.url(), other.url(), politeness_group="ip", rate=Rate(8))
        log = together(one.log, other.log)
        assert len(log) == 12
        assert log.most_starts(late.within(1)) <= 8


def test_hosts_at_two_addresses_have_nothing_to_do_with_each_other(tmp_path: Path, late: ThreadDelay) -> None:
    with RawServer(site(7), hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        crawled(tmp_path, *seeds, politeness_group="ip", rate=Rate(8))
        assert server.log.most_starts(late.within(1)) > 8 or not late.calm


def test_a_limit_for_some_hosts(tmp_path: Path, late: ThreadDelay) -> None:
    rules = (
        HostRule("*.0.0.2", (("rate", Rate(4)), ("host-concurrency", 1))),
        HostRule("*", (("rate", Rate(1000)),)),
    )
    with RawServer(site(7), hosts=HOSTS) as server:
        crawled(tmp_path, *(server.url("/", host) for host in HOSTS), host=rules)
        assert server.log.most_starts(late.within(1), HOSTS[1]) <= 4
        assert server.log.most_at_once(HOSTS[1]) == 1
        assert server.log.most_starts(late.within(1), HOSTS[0]) > 4 or not late.calm


def test_bandwidth(tmp_path: Path, late: ThreadDelay) -> None:
    with RawServer(site(10, 5000)) as server:
        crawled(tmp_path, server.url(), bandwidth=100_000)
        last = max(row.arrived for row in server.log)
        over = sum(row.sent for row in server.log if row.ended is not None and row.ended < last - JITTER - late.worst)
        assert over > 150_000 or not late.calm
        assert last - server.log[0].arrived >= over / 100_000 - 1 - JITTER - late.worst


def test_bandwidth_of_one_host(tmp_path: Path, late: ThreadDelay) -> None:
    """Each answer of 5 kB costs this host 0.1 seconds; the other one need not wait."""
    rules = (HostRule(HOSTS[0], (("host-bandwidth", 50_000),)),)
    with RawServer(site(25, 1250), hosts=HOSTS) as server:
        crawled(tmp_path, *(server.url("/", host) for host in HOSTS), host=rules)
        first = server.log[0].arrived
        for host, bandwidth in ((HOSTS[0], 50_000), (HOSTS[1], 1 << 60)):
            of_host = [row for row in server.log if row.name == host]
            last = max(row.arrived for row in of_host)
            ended = [row for row in of_host if row.ended is not None and row.ended < last - JITTER - late.worst]
            assert last - first >= sum(row.sent for row in ended) / bandwidth - 1 - JITTER - late.worst
        slow, fast = (max(row.arrived for row in server.log if row.name == host) for host in HOSTS)
        assert slow > fast or not late.calm


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable", "302 Found"])
def test_nothing_that_waits_at_the_gate_slips_through_a_rest(tmp_path: Path, status: str) -> None:
    """Neither what was connected already, nor what comes between the answer and its commit."""
    said: list[float] = []

    def once(row: Row) -> Sendable:
        if said:
            return ok(page("Now it works"))
        said.append(row.arrived)
        return keep(message(status, b"later\n", retry_after="2", location="/p1"))

    with RawServer({**site(14), "/p3": once}) as server:
        crawled(tmp_path, server.url(), rate=Rate(4), host_concurrency=6)
        assert set(states(tmp_path).values()) == {"archived"}
        answered = said[0] + MOST_JITTER  # a request may begin until the answer is read; four others wait by then
        later = [row.arrived - said[0] for row in server.log if row.arrived > answered]
        assert min(later) >= 2 - MOST_JITTER
