"""Two crawlers on one database, in any order of steps, of which each may stand still or die at any time.

The machine checks the invariants of docs/decisions/0060: who may start a request, how often requests start on a group,
that each URL is settled once, and that each capture is known.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from archiver.config.option_types import Rate
from archiver.crawl.leases import Leases
from archiver.frontier.port import LEASE, HostRow, HostWindow
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Claim, Event
from archiver.policy.limits import GroupLimits
from archiver.policy.schedule import Schedule
from fixtures.archives import rows
from fixtures.two_crawlers import SetClock, stored

STARTS, INTERVAL = 1, 30.0  # longer than the part of a lease in which no request starts
SEEDS = [f"http://h{host}.example/{page}" for host in range(3) for page in range(4)]
WHO = st.integers(0, 1)
MORE_THAN_ASKED = """
SELECT captures.url FROM captures JOIN urls ON urls.id = captures.url
GROUP BY captures.url, requeued HAVING count(*) > 1 + requeued
"""


def limits_of(host: int) -> GroupLimits:
    """Return the limits of a host: the first two share theirs."""
    return GroupLimits(Rate(STARTS, INTERVAL), 2, group="domain a" if host < 3 else "")


class ShiftedClock(SetClock):
    """The clock of one process: seconds since an epoch of its own."""

    def __init__(self, machine: SetClock, shift: float) -> None:
        super().__init__()
        self._machine = machine
        self._shift = shift

    def now(self) -> float:
        return self._machine.time + self._shift


class Crawler:
    """One process that crawls, without a network."""

    def __init__(self, frontier: SqliteFrontier, clock: ShiftedClock, warc: str) -> None:
        self.frontier = frontier
        self.clock = clock
        self.warc = warc
        self.schedule = Schedule(Rate(0), 9)
        self.leases = Leases(frontier, self.schedule, clock)
        self.under_way: list[Claim] = []
        self.found: list[HostRow] = []

    async def look(self) -> None:
        """Find hosts to lease; another crawler may lease them first."""
        self.found = await self.frontier.due_hosts(self.clock.now(), 9, tuple(self.schedule.leased()))

    async def supply(self) -> None:
        if self.leases.withdrawn:
            return
        now = self.clock.now()
        await self.leases.take(self.found, [limits_of(row.id) for row in self.found])
        self.found = []
        for host in self.schedule.to_refill(9):
            most = 2 + self.schedule.begin_fill(host)
            window = (await self.frontier.windows([HostWindow(host, most, prerequisites=False)], now))[0]
            self.schedule.fill(host, window.claims, window.later, window.waiting, now)

    def start(self) -> Claim | None:
        """Start a request if one may start now."""
        now = self.clock.now()
        claim = self.schedule.pick(now)
        if claim is None:
            return None
        if self.schedule.admit(claim.host, now) > now:
            self.schedule.fetched(claim.host, now)
            self.schedule.returned(claim.host, claim.id)
            self.schedule.refresh(claim.host)
            return None
        self.under_way.append(claim)
        return claim

    def may_start(self, group: str) -> bool:
        """Return True if a request to *group* could start now but for its rate."""
        return self.clock.now() < self.schedule.closes and any(
            host.group.key == group for host in self.schedule.hosts()
        )


class TwoCrawlers(RuleBasedStateMachine):
    """The rules are the steps of the crawlers, and time."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.time = SetClock()
        self.folder = folder
        self.runner = asyncio.Runner()
        self.files = 0
        self.starts: dict[str, list[float]] = defaultdict(list)
        self.archived: Counter[str] = Counter()
        self.captures = 0
        self.crawlers = [self.runner.run(self.begun(shift)) for shift in (0.0, 1e6)]
        self.runner.run(self.crawlers[0].frontier.add_seeds(SEEDS))

    async def begun(self, shift: float) -> Crawler:
        frontier = await SqliteFrontier.open(self.folder / "crawl.db", self.time.now)
        self.files += 1
        crawler = Crawler(frontier, ShiftedClock(self.time, shift), f"w{self.files}")
        await crawler.leases.begin()
        return crawler

    def teardown(self) -> None:
        for crawler in self.crawlers:
            self.runner.run(crawler.frontier.close())
        self.runner.close()

    @rule(seconds=st.sampled_from([10.0, INTERVAL, LEASE, LEASE]), alive=st.sampled_from([(0, 1), (0,), (1,)]))
    def pass_time(self, seconds: float, alive: tuple[int, ...]) -> None:
        """Let time pass, in which only those *alive* renew their leases."""
        while seconds > 0:
            step = min(seconds, LEASE / 3)
            self.time.time += step
            seconds -= step
            for who in alive:
                self.renew(who)
        self.start(alive[0], both_look_first=False)

    def look(self, who: int) -> None:
        self.runner.run(self.crawlers[who].look())

    @rule(first=WHO, both_look_first=st.booleans())
    def start(self, first: int, *, both_look_first: bool) -> None:
        """Start what may start, one crawler after the other; with *both_look_first* the second wants the same hosts."""
        self.look(first)
        if both_look_first:
            self.look(1 - first)
        self.start_all(first)
        if not both_look_first:
            self.look(1 - first)
        self.start_all(1 - first)

    def start_all(self, who: int) -> None:
        crawler = self.crawlers[who]
        self.runner.run(crawler.supply())
        while (claim := crawler.start()) is not None:
            group = limits_of(claim.host).key(claim.host)
            assert not self.crawlers[1 - who].may_start(group)
            self.starts[group].append(self.time.time)

    @precondition(lambda self: any(crawler.under_way for crawler in self.crawlers))
    @rule(who=WHO, event=st.sampled_from([Event.CAPTURE, Event.CAPTURE, Event.RETRY]))
    def settle(self, who: int, event: Event) -> None:
        while self.crawlers[who].under_way:
            self.settle_one(self.crawlers[who], event)

    def settle_one(self, crawler: Crawler, event: Event) -> None:
        claim = crawler.under_way.pop(0)
        place = 10 * self.captures
        self.captures += 1
        crawler.schedule.fetched(claim.host, crawler.clock.now())
        settlement, file = stored(claim, place, crawler.warc, event)
        settled = self.runner.run(crawler.frontier.settle([settlement], [file]))
        crawler.schedule.settled(claim.host, claim.id)
        if claim.id in settled.lost:
            crawler.schedule.refresh(claim.host)
        else:
            self.archived[claim.url] += event is Event.CAPTURE

    def renew(self, who: int) -> None:
        crawler = self.crawlers[who]
        self.runner.run(crawler.leases.renew())
        if (crawler.leases.lost or crawler.leases.withdrawn) and not crawler.under_way:
            self.runner.run(crawler.leases.begin())

    @rule(who=WHO)
    def make_room(self, who: int) -> None:
        crawler = self.crawlers[who]
        self.runner.run(crawler.leases.give_back(crawler.clock.now()))

    @rule(who=WHO)
    def withdraw(self, who: int) -> None:
        """Leave for the time being, as a crawler that cannot reach the sites."""
        crawler = self.crawlers[who]
        if not crawler.under_way:
            self.runner.run(crawler.leases.withdraw())

    @rule(who=WHO, in_order=st.booleans())
    def end(self, who: int, *, in_order: bool) -> None:
        """End in order or die, and come back as another process."""
        crawler = self.crawlers[who]
        if in_order:
            self.settle(who, Event.CAPTURE)
            self.runner.run(crawler.leases.end())
        self.runner.run(self.crawlers[who].frontier.close())
        self.crawlers[who] = self.runner.run(self.begun(1e6 * who))

    @invariant()
    def rates_hold_over_every_handover(self) -> None:
        for times in self.starts.values():
            assert all(later - sooner >= INTERVAL for sooner, later in zip(times, times[STARTS:], strict=False))

    @invariant()
    def each_url_is_settled_once(self) -> None:
        assert max(self.archived.values(), default=0) <= 1

    @invariant()
    def all_that_is_stored_is_known(self) -> None:
        counts = self.runner.run(self.crawlers[0].frontier.counts())
        assert counts.archived == len(self.archived - Counter())
        assert counts.received == 9 * self.captures


def test_any_order_of_steps(new_crawl: Callable[[], Path], request: pytest.FixtureRequest) -> None:
    examples = 10 if request.node.get_closest_marker("postgres") else 40
    patient = settings(max_examples=examples, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(lambda: TwoCrawlers(new_crawl()), settings=patient)  # type: ignore[arg-type]


def test_a_url_whose_lease_was_lost_is_settled_by_its_new_crawler(new_crawl: Callable[[], Path]) -> None:
    """One sequence of steps that the machine seldom finds."""
    machine = TwoCrawlers(new_crawl())
    try:
        machine.start(0, both_look_first=True)
        first = [claim.url for claim in machine.crawlers[0].under_way]
        machine.pass_time(LEASE, (1,))
        machine.pass_time(INTERVAL + 1, (1,))
        assert [claim.url for claim in machine.crawlers[1].under_way] == first
        machine.settle(0, Event.CAPTURE)
        machine.settle(1, Event.CAPTURE)
        machine.rates_hold_over_every_handover()
        machine.each_url_is_settled_once()
        machine.all_that_is_stored_is_known()
        assert sorted(machine.archived) == sorted(first)
        assert rows(machine.folder, MORE_THAN_ASKED) == []
    finally:
        machine.teardown()
