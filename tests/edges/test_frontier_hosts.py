"""What hosts have taught us and how they fail, in a real database."""

import asyncio
from pathlib import Path

import pytest

from archiver.frontier import hosts, totals
from archiver.model import Event, Hop, NewUrl, PatternTally, Settlement
from archiver.policy.limits import UNTAUGHT, ThrottleState
from archiver.policy.retry import NO_BACKOFF, HostBackoff
from fixtures.archives import rows, states
from fixtures.queued_urls import SEEDS, two_hosts, waiting

THROTTLE = ThrottleState(1.5, 2.0, 3.5, "503")


def test_the_latest_links_of_a_host_are_found_by_page(crawl_folder: Path) -> None:
    def named(*ways: tuple[str, Hop]) -> tuple[NewUrl, ...]:
        return tuple(NewUrl(f"http://{name}", hop, hop.value, 1, 0, 2) for name, hop in ways)

    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            page, other = (await waiting(frontier, [SEEDS[0], SEEDS[5]])).values()
            here = named(("h0.example/a", Hop.LINK), ("h0.example/b.png", Hop.REQUISITE), ("h0.example/c", Hop.LINK))
            await frontier.settle([Settlement(page, Event.CAPTURE, found=here)], ())
            there = named(("h0.example/d", Hop.LINK), ("h1.example/e", Hop.LINK))
            await frontier.settle([Settlement(other, Event.CAPTURE, found=there)], ())
            expected = [(SEEDS[5], "http://h0.example/d"), *((SEEDS[0], f"http://h0.example/{name}") for name in "ca")]
            assert await frontier.latest_links({"http://h0.example"}) == expected
            assert await frontier.latest_links({"http://h1.example"}) == [(SEEDS[5], "http://h1.example/e")]
            assert await frontier.latest_links({"http://unknown.example"}) == []

    asyncio.run(run())


def test_the_tallies_of_a_host_are_found_by_its_name(crawl_folder: Path) -> None:
    def tallies(host: str) -> tuple[PatternTally, ...]:
        names = (
            f"site {host}",
            *(f"{kind}{host}/{end}" for kind in ("", "endings ", "discoveries ", "maze ") for end in "N*"),
        )
        return tuple(PatternTally(name, number, 0, 0) for number, name in enumerate(names, 1))

    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            (page,) = (await waiting(frontier, SEEDS[:1])).values()
            hosts = ("http://h0.example", "http://h0.example:8080", "http://h0", "https://h0.example")
            every = {host: tallies(host) for host in hosts}
            await frontier.settle([Settlement(page, Event.CAPTURE, tallies=sum(every.values(), ()))], ())
            for host, own in every.items():
                assert sorted(await frontier.tallies_of(host)) == sorted(own)
            assert await frontier.tallies_of("http://h1.example") == []

    asyncio.run(run())


def test_lessons_come_with_the_lease(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            first, second = await frontier.due_hosts(1000.0, 9, ())
            assert (first.throttle, first.backoff) == (UNTAUGHT, NO_BACKOFF)
            await frontier.settle((), (), {second.id: THROTTLE})
        async with two_hosts(crawl_folder) as frontier:
            first, second = await frontier.due_hosts(1000.0, 9, ())
            assert (first.throttle, second.throttle) == (UNTAUGHT, THROTTLE)

    asyncio.run(run())
    with totals.open_totals(crawl_folder) as db:
        assert [host.slowed for host in totals.hosts(db, 1000.0)] == ["", "slowed down to 1.5/s: 503"]


def test_a_host_that_sleeps_is_not_due(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await frontier.save_backoff(1, HostBackoff(900.0, 40.0, 1040.0))
        with totals.open_totals(crawl_folder) as db:
            host = next(totals.hosts(db, 1000.0))
            assert (host.why, host.until) == ("asleep, next probe", 1040.0)
        async with two_hosts(crawl_folder) as frontier:
            assert [row.id for row in await frontier.due_hosts(1000.0, 9, ())] == [2]
            assert await frontier.next_due(1000.0) == 1040.0
            assert (await frontier.host(1)).backoff == HostBackoff(900.0, 40.0, 1040.0)
            await frontier.save_backoff(1, NO_BACKOFF)
            assert (await frontier.host(1)).backoff == NO_BACKOFF

    asyncio.run(run())


@pytest.mark.parametrize(("due", "found"), [(2000.0, [2]), (1000.0, [1, 2]), (None, [1, 2])])
def test_a_host_with_many_urls_for_later_is_due_with_any_other(
    crawl_folder: Path, due: float | None, found: list[int]
) -> None:
    """The first hundred of its queue are for later, whatever comes behind them."""
    many = [f"http://h0.example/later/{number}" for number in range(100)]

    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await frontier.add_seeds(many)
            *first, last = (await waiting(frontier, [*SEEDS[:5], *many])).values()
            later = [Settlement(claim, Event.RETRY, due=2000.0) for claim in first]
            last_one = [] if due is None else [Settlement(last, Event.RETRY, due=due)]
            await frontier.settle([*later, *last_one], ())
            assert [row.id for row in await frontier.due_hosts(1000.0, 9, ())] == found

    asyncio.run(run())


def test_a_host_is_given_up_with_all_that_waits_but_its_robots_txt(
    crawl_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In transactions of bounded size."""
    monkeypatch.setattr(hosts, "AT_ONCE", 2)

    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await frontier.ask_robots_of((1,))
            await frontier.save_backoff(1, HostBackoff(900.0, 40.0, 1040.0))
            assert await frontier.give_up(1, "connect", "gone", 1000.0) == 5
            assert await frontier.give_up(1, "connect", "gone", 1000.0) == 0
            assert (await frontier.counts()).failed == 5
            row = await frontier.host(1)
            assert (row.backoff, row.not_before) == (NO_BACKOFF, 0.0)

    asyncio.run(run())
    found = states(crawl_folder)
    assert [found[seed] for seed in SEEDS] == ["failed"] * 5 + ["waiting"] * 5
    assert found["http://h0.example/robots.txt"] == "waiting"
    assert rows(crawl_folder, "SELECT DISTINCT failure, note, tries FROM urls WHERE state = 'failed'") == [
        ("connect", "gone", 0)
    ]
    assert rows(crawl_folder, "SELECT waiting FROM hosts ORDER BY id") == [(1,), (5,)]
