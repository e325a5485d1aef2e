"""Leases of politeness groups, with two crawlers on one real database: see docs/decisions/0060."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

import pytest

from archiver.config.option_types import Rate
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.leases import Leases
from archiver.crawl.rules import GroupsOfHosts
from archiver.frontier import totals
from archiver.frontier.orders.table import NewOrder, Verb
from archiver.frontier.port import LEASE, HostRow
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Event, Hop, NewUrl
from archiver.policy.limits import ThrottleState
from archiver.policy.quotas import NO_QUOTAS, Quotas
from archiver.policy.retry import NO_BACKOFF, HostBackoff
from archiver.policy.schedule import Schedule
from fixtures.archives import rows
from fixtures.queued_urls import SEEDS
from fixtures.two_crawlers import SetClock, stored, two_crawlers

NEVER = float("inf")
NOW = 1000.0  # for URLs; leases have another clock

Test = Callable[[SqliteFrontier, SqliteFrontier, SetClock], Awaitable[None]]


@pytest.fixture
def both(crawl_folder: Path) -> Callable[[Test], None]:
    """Run a test with two crawlers and their clock."""

    def run(test: Test) -> None:
        async def act() -> None:
            clock = SetClock()
            async with two_crawlers(crawl_folder, SEEDS, clock) as (one, other):
                await test(one, other, clock)

        asyncio.run(act())

    return run


async def due(frontier: SqliteFrontier) -> list[int]:
    return [row.id for row in await frontier.due_hosts(NOW, 9, ())]


def test_a_host_is_leased_by_one_crawler(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        assert await one.lease({1: "1"}) == {1: NEVER}
        assert await other.lease({1: "1", 2: "2"}) == {2: NEVER}
        assert await one.lease({1: "1", 2: "2"}) == {1: NEVER}
        assert (await due(one), await due(other)) == ([1], [2])

    both(test)


def test_a_group_is_leased_as_a_whole(both: Callable[[Test], None]) -> None:
    """Also with the hosts that were not leased yet; the next look passes over them."""

    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        assert await one.lease({1: "domain a"}) == {1: NEVER}
        assert await due(other) == [2]
        assert await other.lease({2: "domain a"}) == {}
        assert await due(other) == []
        assert await one.lease({2: "domain a"}) == {2: NEVER}

    both(test)


@pytest.mark.parametrize(("passed", "taken"), [(LEASE - 0.1, False), (LEASE, True), (10 * LEASE, True)])
def test_a_lease_ends_if_it_is_not_renewed(both: Callable[[Test], None], passed: float, *, taken: bool) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1"})
        clock.time += passed
        assert await other.renew()
        assert await due(other) == ([1, 2] if taken else [2])
        ago = passed - LEASE  # until the end it may have started requests
        assert await other.lease({1: "1"}) == ({1: pytest.approx(ago)} if taken else {})
        assert await one.renew() is not taken
        assert await one.lease({2: "2"}) == ({} if taken else {2: NEVER})

    both(test)


def test_a_lease_that_is_renewed_goes_on(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1"})
        for _ in range(9):
            clock.time += LEASE / 3
            assert await one.renew()
            assert await other.renew()
            assert await other.lease({1: "1"}) == {}

    both(test)


def test_no_one_else_wanted_the_groups_of_a_crawler_that_stood_still(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1"})
        clock.time += 100 * LEASE
        assert await other.renew()
        assert await one.renew()
        assert await other.lease({1: "1"}) == {}

    both(test)


def test_a_new_owner_knows_when_the_latest_request_started(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1", 2: "2"})
        await one.give_back({"1": 3.0})
        clock.time += 4.0
        assert await other.lease({1: "1", 2: "2"}) == {1: pytest.approx(7.0)}
        await one.leave({"2": NEVER})
        assert await other.lease({2: "2"}) == {2: NEVER}

    both(test)


def test_a_group_that_was_not_given_back_may_have_been_asked_until_the_end(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1", 2: "2"})
        await one.leave({"1": NEVER})
        clock.time += 4.0
        assert await other.lease({1: "1", 2: "2"}) == {1: NEVER, 2: pytest.approx(4.0)}

    both(test)


def test_what_is_found_out_about_a_host_comes_with_its_lease(both: Callable[[Test], None]) -> None:
    throttle, backoff = ThrottleState(1.5, 2.0, 3.5, "503"), HostBackoff(900.0, 40.0, 1040.0)

    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1", 2: "2"})
        claim = (await one.window(2, NOW, 1, prerequisites=False)).claims[0]
        late, file = stored(claim, 0)
        await one.settle([late._replace(not_before=1200.0)], [file], {1: throttle})
        await one.save_backoff(1, backoff)
        await one.leave({"1": 1.0, "2": 1.0})
        assert list(await other.lease({1: "1", 2: "2"})) == [1, 2]
        first, second = await other.hosts((1, 2))
        assert (first.throttle, first.backoff, second.not_before) == (throttle, backoff, 1200.0)

    both(test)


def test_a_crawler_sees_the_sitemaps_that_another_one_has_stored(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        del clock
        await one.lease({1: "1"})
        assert await other.sitemaps(0, 9) == (0, [])
        seed = (await one.window(1, NOW, 1, prerequisites=False)).claims[0]
        maps = [NewUrl(f"{seed.url}{name}.xml", Hop.MANIFEST, "M", 0, 0, 0) for name in "ab"]
        settlement, file = stored(seed, 0)
        await one.settle([settlement._replace(found=tuple(maps))], [file])
        seen, found = await other.sitemaps(0, 9)
        assert (seen > 0, found) == (True, [])  # the seed is none
        batch = [stored(claim, 10 * claim.id) for claim in (await one.window(1, NOW, 9, prerequisites=False)).claims]
        await one.settle([each for each, _ in batch], [batch[-1][1]])
        last, found = await other.sitemaps(seen, 9)
        assert {(taken.url, taken.file) for taken in found} == {(new.url, "w") for new in maps}
        assert await other.sitemaps(last, 9) == (last, [])
        first, [taken] = await other.sitemaps(seen, 1)
        assert seen < first < last
        assert (await other.sitemaps(first, 9))[1] == [each for each in found if each != taken]

    both(test)


def test_late_settlements_enter_captures_only(both: Callable[[Test], None], crawl_folder: Path) -> None:
    """Whoever has the lease now decides about the URL: it is archived once, and each record is known."""

    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1", 2: "2"})
        claims = [(await one.window(host, NOW, 1, prerequisites=False)).claims[0] for host in (1, 2)]
        clock.time += LEASE
        await other.renew()
        await other.lease({1: "1"})
        batch = [stored(claim, 10 * place) for place, claim in enumerate(claims)]
        settled = await one.settle(
            [each for each, _ in batch], [batch[-1][1]], {1: ThrottleState(1.0), 2: ThrottleState(2.0)}
        )
        assert settled.lost == {claims[0].id}  # no one has taken the second host over
        assert len(await one.captures("w", -1, 9)) == 2
        assert [row.throttle.rate for row in await one.hosts((1, 2))] == [0.0, 2.0]
        assert states(crawl_folder) == {claims[0].url: "waiting", claims[1].url: "archived"}
        again, file = stored(claims[0], 0, "v")
        assert (await other.settle([again], [file])).lost == frozenset()
        assert states(crawl_folder)[claims[0].url] == "archived"
        assert rows(crawl_folder, "SELECT count(*) FROM captures") == [(3,)]
        assert rows(crawl_folder, "SELECT sum(archived), sum(waiting) FROM hosts") == [(2, len(SEEDS) - 2)]

    both(test)


def states(folder: Path) -> dict[str, str]:
    found = rows(folder, "SELECT url, state FROM urls WHERE id IN (SELECT url FROM captures)")
    return {str(address): str(state) for address, state in found}


def test_a_crawler_that_lost_a_lease_decides_nothing_about_the_host(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1"})
        clock.time += LEASE
        await other.renew()
        await other.lease({1: "1"})
        await one.save_backoff(1, HostBackoff(900.0, 40.0, 1040.0))
        assert await one.give_up(1, "connect", "gone", NOW) == 0
        await one.pause(1, NOW, None)
        assert (await one.host(1)).backoff == NO_BACKOFF
        assert (await one.host(1)).blocked_since == 0.0
        assert await other.give_up(1, "connect", "gone", NOW) == 5

    both(test)


def test_the_end_waits_for_the_hosts_of_others(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1", 2: "2"})
        assert await due(other) == []
        assert await other.waits()
        assert await other.next_due(NOW) == NOW + LEASE  # then they may be free
        clock.time += 5.0
        assert await other.next_due(NOW) == NOW + LEASE - 5.0
        await one.give_up(1, "connect", "gone", NOW)
        await one.give_up(2, "connect", "gone", NOW)
        assert not await other.waits()

    both(test)


def test_a_new_run_knows_that_all_crawlers_are_gone(both: Callable[[Test], None]) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1", 2: "2"})
        await other.begin_run(NOW)
        await other.join()
        assert await other.lease({1: "1", 2: "2"}) == {1: NEVER, 2: NEVER}

    both(test)


def test_processes_that_do_not_crawl_see_all_hosts(both: Callable[[Test], None], crawl_folder: Path) -> None:
    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        await one.lease({1: "1", 2: "2"})
        async with await SqliteFrontier.open(crawl_folder / "crawl.db", clock.now) as reader:
            assert await due(reader) == [1, 2]
            claim = (await reader.window(1, NOW, 1, prerequisites=False)).claims[0]
            late, file = stored(claim, 0, event=Event.CAPTURE)
            assert (await reader.settle([late], [file])).lost == frozenset()  # as recovery does

    both(test)
    with totals.open_totals(crawl_folder) as db:
        assert [host.slowed for host in totals.hosts(db, NOW)] == ["", ""]


def test_numbers_of_crawlers_are_never_used_again(both: Callable[[Test], None]) -> None:
    """Or a crawler would have what an earlier one had leased."""

    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        for _ in range(3):
            await other.lease({1: "1"})
            await other.leave({})
            await other.join()
            ago = await other.lease({1: "1"})
            assert ago == {1: 0.0}

    both(test)


class Overtaken(SqliteFrontier):
    """The frontier of a crawler that another one overtakes between its first look and its lease."""

    faster: SqliteFrontier | None = None

    async def due_hosts(
        self, now: float, most: int, leased: Collection[int], quotas: Quotas = NO_QUOTAS
    ) -> list[HostRow]:
        rows = await super().due_hosts(now, most, leased, quotas)
        faster, self.faster = self.faster, None
        if faster is not None:
            await faster.lease({row.id: str(row.id) for row in rows})
        return rows


@pytest.mark.parametrize(("most", "left"), [(1, [2]), (2, [])])
def test_a_crawler_looks_again_if_another_took_what_it_found(
    both: Callable[[Test], None], crawl_folder: Path, most: int, left: list[int]
) -> None:
    settings = SettingsByHost(Settings())
    groups = GroupsOfHosts(settings.common.politeness, settings, SEEDS)

    async def test(one: SqliteFrontier, other: SqliteFrontier, clock: SetClock) -> None:
        async with await Overtaken.open(crawl_folder / "crawl.db", clock.now) as frontier:
            leases = Leases(frontier, Schedule(Rate(0), 1), clock, "slow", 2)
            await leases.begin()
            frontier.faster = one
            assert [row.id for row in await leases.take_due(NOW, most, Quotas(settings), groups)] == left
            assert await due(other) == []

    both(test)


def test_a_host_that_comes_back_stays(both: Callable[[Test], None], crawl_folder: Path) -> None:
    """A crawler gives a host away, no other takes it, and it leases it again when its other host is done."""
    settings = SettingsByHost(Settings())
    groups = GroupsOfHosts(settings.common.politeness, settings, SEEDS)

    async def test(_one: SqliteFrontier, _other: SqliteFrontier, clock: SetClock) -> None:
        async with await SqliteFrontier.open(crawl_folder / "crawl.db", clock.now) as frontier:
            schedule = Schedule(Rate(0), 1)
            leases = Leases(frontier, schedule, clock, "third", 2)
            await leases.begin()

            async def taken() -> set[int]:
                found = await leases.take_due(NOW, 9, Quotas(settings), groups)
                for row in found:
                    schedule.begin_fill(row.id)
                    schedule.fill(row.id, (), NEVER, 1, NOW)
                return {row.id for row in found}

            assert await taken() == {1, 2}
            await leases.share(9, {1: 1, 2: 1})
            (gone,) = {1, 2} - set(schedule.leased())
            (stays,) = schedule.leased()
            assert await taken() == {gone}
            await leases.share(9, {gone: 1, stays: 0})
            assert gone in schedule.leased()

    both(test)


@pytest.mark.parametrize("late", [0, 1])
def test_no_order_waits_for_a_crawler_that_has_left(tmp_path: Path, late: int) -> None:
    """One crawler takes up an order, the other one leaves without it, before that one or after it."""

    async def run() -> list[float | None]:
        clock, answered = SetClock(), list[float | None]()
        async with two_crawlers(tmp_path, ["http://a.example/"], clock) as both:
            number = await both[0].give_order(NewOrder(Verb.STOP, (), "somebody@here", 1.0), None)
            await both[0].take_up({number: "stopping"}, 2.0)
            for place in (late, 1 - late):
                answered.append((await both[0].answered_order(number, 0.0)).answered)
                await both[place].leave({})
            last = await both[0].answered_order(number, 0.0)
            assert last.answer == "stopping"
            return [*answered, last.answered]

    before, between, after = asyncio.run(run())
    assert before is None
    assert (between is None) == (late == 0)
    assert after is not None


def test_an_order_that_nobody_took_up_stays_open_when_all_have_left(tmp_path: Path) -> None:
    async def run() -> float | None:
        async with two_crawlers(tmp_path, ["http://a.example/"], SetClock()) as both:
            number = await both[0].give_order(NewOrder(Verb.PAUSE, (), "somebody@here", 1.0), None)
            for each in both:
                await each.leave({})
            return (await both[0].answered_order(number, 0.0)).answered

    assert asyncio.run(run()) is None
