"""Hosts that are slow, or silent, do not keep honest ones waiting, and lose not a byte for it. Told by counts alone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from archiver.config.option_types import Rate
from archiver.crawl.requests import SLOW_AFTER, RequestLimits, Requests
from archiver.crawl.rules import owners
from archiver.crawl.session import Session
from archiver.fetch.dns import PER_DOMAIN, Lookups
from archiver.model import Claim, ExitCode, Hop
from archiver.policy.schedule import Schedule
from fixtures.archives import rows, states
from fixtures.crawl_in_process import crawl
from fixtures.fetching import fetching
from fixtures.log import Row
from fixtures.name_servers import Names
from fixtures.rawserver import Answer, End, RawServer, Route, Sendable
from fixtures.sites import message, ok, page
from fixtures.two_crawlers import SetClock

HONEST = "127.0.0.1"
SLOW = tuple(f"127.0.1.{number}" for number in range(1, 25))
PAGES = 60
BODY = 4000  # bytes of a slow answer


def honest() -> dict[str, Route]:
    """A site whose pages lead from one to the next, so that each has to wait for a slot."""
    pages = {f"//{HONEST}/p{n}": ok(page(f"Page {n}", [f"/p{n + 1}"])) for n in range(PAGES - 1)}
    return {**pages, f"//{HONEST}/p{PAGES - 1}": ok(page("The last one"))}


def slow_until_the_honest_is_done(server: RawServer, size: int = 1) -> Callable[[Row], Sendable]:
    """A page that drips, *size* bytes at a time, until all of the honest site was asked for, and then comes whole."""

    async def drip() -> AsyncIterator[bytes | float]:
        raw = message("200 OK", b"x" * BODY, content_type="text/plain")
        at = 0
        while not done(server) and at + size < len(raw):
            yield raw[at : at + size]
            yield 0.03
            at += size
        yield raw[at:]

    return lambda _: Answer(drip(), End.CLOSE)


def done(server: RawServer) -> bool:
    return any(row.host == HONEST and row.target == f"/p{PAGES - 1}" for row in server.log)


def crawled(folder: Path, seeds: list[str], **values: Any) -> ExitCode:
    chosen = {"robots": "ignore", "traps": "off", "concurrency": 4, "max_time": 100.0, "timeout": 90.0, **values}
    return crawl(folder, *seeds, **chosen).code


@pytest.mark.parametrize("size", [1, 0], ids=["drip", "silence"])
def test_slow_hosts_do_not_take_the_slots(tmp_path: Path, size: int) -> None:
    """Each wants two of the four slots; none of them ends before the honest site is over."""
    with RawServer(hosts=(HONEST, *SLOW)) as server:
        server.routes = honest()
        server.otherwise = slow_until_the_honest_is_done(server, size)
        seeds = [server.url("/p0"), *(server.url(f"/{n}", host) for host in SLOW for n in (1, 2))]
        assert crawled(tmp_path, seeds) is ExitCode.DONE
        assert set(states(tmp_path).values()) == {"archived"}
        assert not rows(tmp_path, "SELECT url FROM captures WHERE truncated <> ''")
        assert rows(tmp_path, f"SELECT count(*) FROM captures WHERE payload_length = {BODY}") == [(2 * len(SLOW),)]


@pytest.mark.parametrize("room", [0, 8])
def test_where_all_the_room_is_taken_proven_hosts_have_half_of_the_slots(tmp_path: Path, room: int) -> None:
    """Far more hosts drip than there is room for; the honest one has answered before they began."""

    def after_some(row: Row) -> Sendable:
        return drip(row) if len([each for each in server.log if each.host == HONEST]) > 5 else ok("quick", "text/plain")

    with RawServer(hosts=(HONEST, *SLOW)) as server:
        drip = slow_until_the_honest_is_done(server)
        server.routes = honest()
        server.otherwise = after_some
        seeds = [server.url("/p0"), *(server.url(f"/{n}", host) for host in SLOW for n in range(4))]
        crawled(tmp_path, seeds, concurrency=8, slow_concurrency=room, host_concurrency=1)
        assert done(server)
        assert set(states(tmp_path).values()) == {"archived"}


def test_silent_name_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 names, of one domain and of many, never get an answer; the honest names get theirs."""
    silent = [f"http://{name}/" for n in range(150) for name in (f"n{n}.mute.example", f"www.mute{n}.example")]
    names = Names(lambda name: [HONEST], lambda name: "mute" in name)
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: names)
    with RawServer(honest(), hosts=(HONEST,)) as server:
        seeds = [*silent, *(server.url(f"/p{n}", f"honest{n}.example") for n in range(PAGES))]
        crawled(tmp_path, seeds, allow_private=(HONEST,), max_time=12.0)
        assert len([row for row in server.log if row.host == HONEST]) >= PAGES
        assert names.most <= 128
        assert sum(state == "waiting" for url, state in states(tmp_path).items() if "mute" in url) == len(silent)


def test_requests_count_as_soon_as_they_are_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many are handed out in one step, before any of them runs; new hosts still get half of the slots at most."""
    slots = slow = 8
    names = Names(lambda name: [HONEST], lambda name: "mute" in name)
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: names)
    with RawServer(honest(), hosts=(HONEST,)) as server:
        seeds = [server.url("/p0", "honest.example"), *(f"http://www.mute{n}.example/" for n in range(60))]
        chosen = {"concurrency": slots, "slow_concurrency": slow, "max_time": 5.0}  # no look-up is given up before that
        crawled(tmp_path, seeds, allow_private=(HONEST,), **chosen)
    assert slots < names.most <= slow + slots // 2


def test_look_ups_of_one_domain_are_few_at_once() -> None:
    async def main() -> None:
        names = Names(lambda _: [HONEST], lambda name: "mute" in name)
        lookups = Lookups(owners, longest=0.2)

        async def ask(name: str) -> bool:
            try:
                return bool(await lookups.bounded(name, lambda: names.resolve(name), known=False))
            except TimeoutError:
                return False

        mute = [asyncio.create_task(ask(f"n{n}.mute.example")) for n in range(40)]
        await asyncio.sleep(0)
        assert await asyncio.gather(*(ask(f"n{n}.honest.example") for n in range(40))) == [True] * 40
        assert names.most <= 3 * PER_DOMAIN  # the first few go before domains matter
        for task in mute:
            task.cancel()
        await asyncio.gather(*mute, return_exceptions=True)
        await lookups.close()

    asyncio.run(main())


def test_a_request_that_has_not_begun_is_not_slow(tmp_path: Path) -> None:
    """On a busy machine a task may wait for its first turn; if it counted as slow it would count so for ever."""

    async def main() -> None:
        clock, schedule = SetClock(), Schedule(Rate(0), 1)
        schedule.lease(1, f"http://{HONEST}", clock.now())
        async with fetching(tmp_path, timeout=5.0) as fetcher:
            requests = Requests(fetcher, schedule, None, Session(), clock, RequestLimits(1, 4))
            url = server.url("/")
            claim = Claim(1, url, 1, Hop.LINK, "L", 1, 0, 0)
            task = asyncio.create_task(visit(requests, claim))
            requests.expect(task, claim)
            clock.time += 2 * SLOW_AFTER
            assert not requests.look(clock.now())
            assert requests.full(visits=1, uncommitted=0)
            await task
            assert not requests.any
            assert requests.full(visits=1, uncommitted=0)
            assert not requests.full(visits=0, uncommitted=1)
            assert requests.full(visits=0, uncommitted=2)

    async def visit(requests: Requests, claim: Claim) -> None:
        visited = await requests.make(claim)
        assert visited is not None
        assert visited.exchange is not None
        visited.exchange.response.close()

    with RawServer({"/": ok(page("A page"))}) as server:
        asyncio.run(main())
