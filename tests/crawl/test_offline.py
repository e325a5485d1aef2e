"""A lost network, with real servers that go away and come back: nothing is given up because we could not ask."""

import asyncio
import resource
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from archiver.config.option_types import Rate
from archiver.crawl import host_health
from archiver.crawl.build import open_crawl
from archiver.crawl.engine import Crawl
from archiver.crawl.stats import CrawlEnding
from archiver.model import ExitCode
from archiver.policy.retry import NetworkState
from fixtures.archives import captured, rows, states
from fixtures.command import ended, running, said
from fixtures.crawl_in_process import crawl, settings
from fixtures.flag import PATIENCE
from fixtures.log import Log
from fixtures.rawserver import RawServer, trickle
from fixtures.sites import message, ok, page, tree

SITE = tree(40)
HOSTS = ("127.0.0.1", "127.0.0.2")
LEASED = "SELECT count(*) FROM leases WHERE crawler IS NOT NULL"
ALL = SITE.reachable | {"/robots.txt"}


@asynccontextmanager
async def crawling(
    directory: Path, *seeds: str, **values: Any
) -> AsyncIterator[tuple[Crawl, "asyncio.Task[CrawlEnding]"]]:
    """A crawl under way that soon says the network is lost, and soon tries again."""
    resume = bool(values.pop("resume", False))
    async with open_crawl(directory, settings(*seeds, **{"rate": Rate(100), **values}), resume=resume) as lifetime:
        lifetime._health.network = NetworkState(span=0.05, first_pause=0.1)
        async with asyncio.TaskGroup() as group:
            yield lifetime, group.create_task(lifetime.run())


async def _until_offline(lifetime: Crawl) -> None:
    async with asyncio.timeout(PATIENCE):
        while lifetime.snapshot().state != "offline":  # noqa: ASYNC110  looked at as the screen looks at it
            await asyncio.sleep(0.02)


def _whole(directory: Path, hosts: tuple[str, ...], *logs: Log) -> None:
    """Everything is archived, once, and nothing was asked for twice but what failed on the line."""
    assert set(states(directory).values()) == {"archived"}
    urls = [url for url, _ in captured(directory)]
    assert len(urls) == len(set(urls)) == len(ALL) * len(hosts)
    answered = [(row.host, row.target) for log in logs for row in log if row.ended and not row.lost]
    assert len(answered) == len(set(answered)) == len(urls)


@pytest.mark.parametrize("hosts", [HOSTS, HOSTS[:1]])
def test_an_outage(tmp_path: Path, hosts: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    """Lost while it crawls, with two hosts and with one; it says so, waits, and is whole in the end."""

    async def run() -> None:
        before = RawServer(SITE.routes, hosts=hosts)
        async with AsyncExitStack() as line:
            await line.enter_async_context(before)
            async with crawling(tmp_path, *(before.url("/", host) for host in hosts), retries=1) as (lifetime, ending):
                await before.log.holds(12).reached()
                await line.aclose()
                await _until_offline(lifetime)
                assert lifetime.snapshot().waiting_for.startswith("the network: no host answers since ")
                await asyncio.sleep(0.5)
                assert lifetime.snapshot().state == "offline"
                after = await line.enter_async_context(RawServer(SITE.routes, hosts=hosts, port=before.port))
                assert (await ending).code is ExitCode.DONE
        _whole(tmp_path, hosts, before.log, after.log)

    asyncio.run(run())
    said_so = [record.message for record in caplog.records]
    assert said_so[0].startswith("no host answers since ")
    assert "(connect: Connection refused)" in said_so[0]
    assert said_so[-1].startswith("the network is back after ")


def test_hosts_are_free_for_other_crawlers_during_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are given back once, and leased again when a connection can be made."""
    monkeypatch.setattr(host_health, "OUTAGE", 0.3)
    monkeypatch.setattr(host_health, "SEEK_EVERY", 0.05)

    async def until_leased(hosts: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while rows(tmp_path, LEASED) != [(hosts,)]:  # noqa: ASYNC110  looked at as another crawler would
                await asyncio.sleep(0.02)

    async def run() -> None:
        before = RawServer(SITE.routes, hosts=HOSTS)
        async with AsyncExitStack() as line:
            await line.enter_async_context(before)
            async with crawling(tmp_path, *(before.url("/", host) for host in HOSTS), retries=1) as (lifetime, ending):
                lifetime._leases._name = "one of several"
                await before.log.holds(12).reached()
                await until_leased(2)
                await line.aclose()
                await until_leased(0)
                await asyncio.sleep(0.5)
                assert lifetime.snapshot().state == "offline"
                after = await line.enter_async_context(RawServer(SITE.routes, hosts=HOSTS, port=before.port))
                assert (await ending).code is ExitCode.DONE
        _whole(tmp_path, HOSTS, before.log, after.log)
        assert rows(tmp_path, "SELECT count(*) FROM crawlers") == [(2,)]

    asyncio.run(run())


def test_one_dead_host_among_living_ones_is_given_up(tmp_path: Path) -> None:
    """Also when the others are done before it is."""

    async def run() -> None:
        async with RawServer(tree(25).routes) as living, AsyncExitStack() as line:
            dying = await line.enter_async_context(RawServer(SITE.routes))
            seeds = living.url(), dying.url()
            async with crawling(tmp_path, *seeds, retries=1, rate=Rate(12), host_patience=1.0) as (lifetime, ending):
                await dying.log.holds(5).reached()
                await line.aclose()
                assert (await ending).code is ExitCode.DONE
                assert not lifetime._health.network.lost
        found = states(tmp_path)
        assert {state for url, state in found.items() if url.startswith(living.url(""))} == {"archived"}
        assert {state for url, state in found.items() if url.startswith(dying.url(""))} == {"archived", "failed"}

    asyncio.run(run())


def test_a_resume_that_begins_offline(tmp_path: Path) -> None:
    """One host is known from the run before, the other was never asked: its robots.txt is not given up either."""
    with RawServer(SITE.routes, hosts=HOSTS) as before:
        seeds = [before.url("/", host) for host in HOSTS]
        assert crawl(tmp_path, seeds[0], max_urls=3).code is ExitCode.LIMIT

    async def run() -> None:
        async with crawling(tmp_path, *seeds, retries=1, resume=True) as (lifetime, ending):
            await _until_offline(lifetime)
            await asyncio.sleep(0.3)
            assert "failed" not in states(tmp_path).values()
            async with RawServer(SITE.routes, hosts=HOSTS, port=before.port) as after:
                assert (await ending).code is ExitCode.DONE
                _whole(tmp_path, HOSTS, before.log, after.log)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("values", "code", "reason"),
    [
        ({"offline_patience": 0.5}, ExitCode.LIMIT, "--offline-patience 0.5 is over"),
        ({"max_time": 4.0}, ExitCode.LIMIT, "--max-time 4 is reached"),
        ({}, ExitCode.STOPPED, "stopped by a signal"),
    ],
)
def test_how_a_crawl_ends_while_it_is_offline(
    tmp_path: Path, values: dict[str, float], code: ExitCode, reason: str
) -> None:
    async def run() -> CrawlEnding:
        async with AsyncExitStack() as line:
            server = await line.enter_async_context(RawServer(SITE.routes))
            async with crawling(tmp_path, server.url(), **values) as (lifetime, ending):
                await server.log.holds(12).reached()
                await line.aclose()
                if not values:
                    await _until_offline(lifetime)
                    lifetime.drain()
                async with asyncio.timeout(300):
                    return await ending

    result = asyncio.run(run())
    assert result.code is code
    assert reason in result.reason
    assert set(states(tmp_path).values()) == {"archived", "waiting"}


def test_signals_while_the_network_is_lost(tmp_path: Path) -> None:
    """The real command, with its real patience."""
    with ExitStack() as line, ExitStack() as screen:
        server = line.enter_context(RawServer(SITE.routes))
        process = screen.enter_context(running("crawl", server.url(), "-o", "c", "--rate", "20", cwd=tmp_path))
        server.log.holds(5).wait()
        line.close()
        said_so = said(process, "no host answers since")
        assert "trying again in 2.0 s (connect: Connection refused)" in said_so
        process.send_signal(signal.SIGHUP)
        code, err = ended(process, timeout=300)
    assert code == ExitCode.STOPPED, err
    assert "failed" not in states(tmp_path / "c").values()


def test_too_many_open_files(tmp_path: Path) -> None:
    """Descriptors that run out while it crawls are our own fault: fewer requests at once, and everything is there."""
    slow = {f"/{number}": trickle(message("200 OK", b"x" * 40), 0.02, size=20) for number in range(4)}
    hosts = tuple(f"127.0.0.{number}" for number in range(1, 25))  # each begins with one request at once
    with RawServer({"/": ok(page("Start", list(slow))), **slow}, hosts=hosts) as server:
        seeds = [server.url("/", host) for host in hosts]
        with running(
            *("crawl", *seeds, "-o", "c", "--rate", "0", "--concurrency", "32", "--timeout", "5", "--probe", "off"),
            cwd=tmp_path,
        ) as process:
            server.log.holds(40).wait()  # a file is open by now, and each host has no more than one connection
            held = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (held + 2, held + 2))
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert "Too many open files; from now on at most 16 requests at once" in err
    assert rows(tmp_path / "c", "SELECT state, count(*) FROM urls GROUP BY state") == [("archived", 24 * 6)]
    assert rows(tmp_path / "c", "SELECT max(tries) FROM urls") == [(1,)]
