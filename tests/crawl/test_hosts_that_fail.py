"""A host that dies while others answer: it sleeps, is probed, wakes, or is given up; nobody else has to wait for it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from archiver.config.option_types import Rate
from archiver.crawl.build import open_crawl
from archiver.crawl.engine import Crawl
from archiver.crawl.stats import CrawlEnding
from archiver.frontier.totals import hosts, open_totals
from archiver.model import ExitCode
from archiver.policy.retry import HOST_FAILURES, BackoffPolicy, NetworkState
from fixtures.archives import captured, rows, states
from fixtures.crawl_in_process import crawl, settings
from fixtures.log import Row
from fixtures.rawserver import RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page, tree

DYING = tree(40)
PATIENT = {"rate": Rate(50), "traps": "off"}


@asynccontextmanager
async def crawling(
    directory: Path, *seeds: str, patience: float, resume: bool = False, **values: Any
) -> AsyncIterator[tuple[Crawl, "asyncio.Task[CrawlEnding]"]]:
    """A crawl under way that probes a host soon after it has died."""
    given = settings(*seeds, **{**PATIENT, "host_patience": patience, **values})
    async with open_crawl(directory, given, resume=resume) as lifetime:
        lifetime._health._backoff = BackoffPolicy(patience, first_pause=0.2)
        async with asyncio.TaskGroup() as group:
            yield lifetime, group.create_task(lifetime.run())


async def _asleep(lifetime: Crawl) -> str:
    """Until a host is shown as sleeping; what it is shown as."""
    async with asyncio.timeout(300):
        while True:
            for line in lifetime.snapshot().hosts:
                if line.why.startswith("asleep"):
                    return line.key
            await asyncio.sleep(0.01)


def _endless(living: int) -> RawServer:
    """A server that has something to say for as long as the test lasts."""
    names = [f"/p{number}" for number in range(living)]
    return RawServer({"/": ok(page("Start", names)), **{name: ok(page(name)) for name in names}})


def test_it_sleeps_and_wakes(tmp_path: Path) -> None:
    """Its URLs lose no tries but those that found out, and nothing is asked meanwhile but the probes."""

    async def run() -> None:
        async with _endless(300) as living, AsyncExitStack() as line:
            before = await line.enter_async_context(RawServer(DYING.routes))
            async with crawling(tmp_path, living.url(), before.url(), patience=60.0) as (lifetime, ending):
                await before.log.holds(8).reached()
                await line.aclose()
                assert await _asleep(lifetime) == before.url("")
                after = await line.enter_async_context(RawServer(DYING.routes, port=before.port))
                assert (await ending).code is ExitCode.DONE
                assert len(after.log) > 0

    asyncio.run(run())
    assert set(states(tmp_path).values()) == {"archived"}
    assert rows(tmp_path, "SELECT DISTINCT failing_since, probe_interval FROM hosts") == [(0.0, 0.0)]
    urls = [url for url, _ in captured(tmp_path)]
    assert len(urls) == len(set(urls))


def test_it_is_given_up_with_all_that_waits_on_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with _endless(150) as living, AsyncExitStack() as line:
            dying = await line.enter_async_context(RawServer(DYING.routes))
            async with crawling(tmp_path, living.url(), dying.url(), patience=1.5) as (lifetime, ending):
                await dying.log.holds(8).reached()
                await line.aclose()
                assert (await ending).code is ExitCode.DONE
                assert not lifetime._health.network.lost
                shown = lifetime.snapshot()
                assert shown.waiting == 0
                assert shown.failed == rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'failed'")[0][0]
        found = states(tmp_path)
        assert {state for url, state in found.items() if url.startswith(living.url(""))} == {"archived"}
        assert {state for url, state in found.items() if url.startswith(dying.url(""))} == {"archived", "failed"}

    asyncio.run(run())
    told = rows(tmp_path, "SELECT failure, note, tries FROM urls WHERE state = 'failed'")
    together = [(failure, tries) for failure, note, tries in told if f"{note}".endswith("and was given up")]
    assert len(together) >= len(told) - HOST_FAILURES
    assert {failure for failure, _ in together} <= {"connect", "disconnect"}
    assert any("is given up, with" in record.message for record in caplog.records)


def test_it_still_sleeps_after_a_restart(tmp_path: Path) -> None:
    """What is left of its pause is waited for, and the first that may ask is a probe."""

    async def run() -> None:
        async with _endless(400) as living, AsyncExitStack() as line:
            dying = await line.enter_async_context(RawServer(DYING.routes))
            seeds = (living.url(), dying.url())
            async with crawling(tmp_path, *seeds, patience=60.0) as (lifetime, ending):
                await dying.log.holds(8).reached()
                await line.aclose()
                await _asleep(lifetime)
                lifetime.drain()
                assert (await ending).code is ExitCode.STOPPED
            with closing(sqlite3.connect(tmp_path / "crawl.db", isolation_level=None)) as db:
                assert db.execute(
                    "SELECT count(*) FROM hosts WHERE failing_since > 0 AND probe_interval > 0"
                ).fetchone() == (1,)
                db.execute("UPDATE hosts SET failing_since = failing_since - 100 WHERE probe_interval > 0")
            async with crawling(tmp_path, *seeds, patience=60.0, resume=True) as (lifetime, ending):
                assert (await ending).code is ExitCode.DONE
        found = states(tmp_path)
        assert {state for url, state in found.items() if url.startswith(dying.url(""))} == {"archived", "failed"}

    asyncio.run(run())


def test_alone_after_a_restart_it_is_given_up_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is left to ask but the host that sleeps: no lost network is waited for, for others had answered."""

    async def run() -> None:
        async with _endless(200) as living, AsyncExitStack() as line:
            dying = await line.enter_async_context(RawServer(DYING.routes))
            async with crawling(tmp_path, living.url(), dying.url(), patience=60.0) as (lifetime, ending):
                await dying.log.holds(8).reached()
                await line.aclose()
                await _asleep(lifetime)
                lifetime.drain()
                assert (await ending).code is ExitCode.STOPPED
        with closing(sqlite3.connect(tmp_path / "crawl.db", isolation_level=None)) as db:
            done = "UPDATE urls SET state = 'excluded' WHERE state = 'waiting' AND url LIKE ?"
            db.execute(done, (f"{living.url('')}/%",))
        caplog.clear()
        async with crawling(tmp_path, living.url(), dying.url(), patience=3.0, resume=True) as (lifetime, ending):
            lifetime._health.network = NetworkState(span=0.05, first_pause=0.1)
            async with asyncio.timeout(300):
                assert (await ending).code is ExitCode.DONE

    asyncio.run(run())
    said = [record.message for record in caplog.records]
    assert not [line for line in said if "no host answers" in line]
    assert [line for line in said if "is given up, with" in line]


def test_a_host_that_never_answered_is_given_up_with_all_its_urls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without robots.txt to find out: after a few requests, not after all the tries of each URL."""
    with RawServer({}) as server:
        dead = [server.url(f"/{number}") for number in range(300)]
    with RawServer(tree(5).routes) as living:
        ending = crawl(tmp_path, living.url(), *dead, robots="ignore", retries=1, traps="off")
    assert ending.code is ExitCode.DONE
    found = states(tmp_path)
    assert {found[url] for url in dead} == {"failed"}
    assert [record for record in caplog.records if "is given up, with" in record.message]
    assert rows(tmp_path, "SELECT max(tries) FROM urls WHERE state = 'failed'") <= [(1,)]
    ((tries, together),) = rows(
        tmp_path, "SELECT sum(tries), sum(note LIKE '%and was given up') FROM urls WHERE state = 'failed'"
    )
    assert tries == HOST_FAILURES - 1
    assert together == len(dead)


def test_seeds_that_are_simply_dead_end_the_crawl_soon(tmp_path: Path) -> None:
    with RawServer({}) as server:
        dead = server.url()
    assert crawl(tmp_path, dead, retries=1).code is ExitCode.NO_SEED


def test_an_overloaded_host_is_slowed_down_and_that_is_kept(tmp_path: Path) -> None:
    """The lesson is in the host's row when the crawl stops, and `archiver status` can tell it."""
    answered: list[int] = []

    def overloaded(_: Row) -> Sendable:
        answered.append(len(answered))
        return keep(message("503 Service Unavailable", b"later\n")) if len(answered) % 3 == 0 else ok(page("Fine"))

    names = [f"/p{number}" for number in range(30)]
    routes: dict[str, Route] = {"/": ok(page("Start", names)), **dict.fromkeys(names, overloaded)}
    with RawServer(routes) as server:
        crawl(tmp_path, server.url(), rate=Rate(50), max_urls=12, retries=0, traps="off")
    ((text, why),) = rows(tmp_path, "SELECT rate, slow_reason FROM hosts")
    rate = float(f"{text}")
    assert 0 < rate < 50
    assert why == "503"
    with open_totals(tmp_path) as db:
        (host,) = hosts(db, 0.0)
    assert host.slowed == f"slowed down to {rate:.2g}/s: 503"
