"""The schedule against a frontier of plain lists and a clock of plain numbers: whatever happens, its promises hold."""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, pairwise

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from archiver.config.option_types import Rate
from archiver.crawl.stats import CrawlCounts
from archiver.model import Claim, Hop
from archiver.policy.leased_host import AFTER_PROBE, network_of, releasable
from archiver.policy.limits import GlobalLimits, GroupLimits
from archiver.policy.schedule import REMEMBERED, Schedule

NEVER = float("inf")
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to shorten a long history takes longer than to read it


def claim(number: int, host: int, priority: int = 1) -> Claim:
    return Claim(number, f"http://h{host}/{number}", host, Hop.LINK, "L", 1, 0, 0, priority=priority)


def filled(schedule: Schedule, host: int, claims: list[Claim], now: float = 0.0, later: float = NEVER) -> None:
    """Lease *host* and put *claims* into its window."""
    schedule.lease(host, f"http://h{host}", 0.0)
    schedule.begin_fill(host)
    schedule.fill(host, claims, later, len(claims), now)


def picked(schedule: Schedule, now: float) -> Iterator[int]:
    while (found := schedule.pick(now)) is not None:
        yield found.id


@dataclass
class World:
    """A frontier, servers that take their time, and a clock; what a crawl does, without a crawl."""

    schedule: Schedule
    limits: GroupLimits
    workers: int
    window: int
    circles: int = 0  # 0: each host is asked for itself
    places: int = 0  # addresses at which the hosts are; 0: that does not matter
    shy: bool = False  # hosts that have not answered quickly get half of the workers, and here none ever does
    now: float = 1000.0
    waiting: dict[int, Claim] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    parked: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    starts: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # by circle
    at: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # as above, by address
    handed: Counter[int] = field(default_factory=Counter)
    under_way: set[int] = field(default_factory=set)
    active: Counter[int] = field(default_factory=Counter)  # by circle
    ends: list[tuple[float, int, str, Claim]] = field(default_factory=list)
    began: dict[int, float] = field(default_factory=dict)
    order: Iterator[int] = field(default_factory=count)

    def circle(self, host: int) -> int:
        return host % self.circles if self.circles else host

    def address(self, host: int) -> str:
        return f"192.0.2.{host // 2 % self.places}" if self.places else ""

    def feed(self) -> None:
        leased = set(self.schedule.leased())
        for each in list(self.waiting.values()):
            if each.host not in leased and self.due[each.id] <= self.now >= self.parked[each.host]:
                leased.add(each.host)
                circle = f"circle {self.circle(each.host)}" if self.circles else ""
                limits = replace(self.limits, group=circle, by_address="ip" if self.places else "")
                self.schedule.lease(each.host, f"http://h{each.host}", self.parked[each.host], limits=limits)
        for host in self.schedule.to_refill(64):
            most = self.window + self.schedule.begin_fill(host)
            mine = sorted((c for c in self.waiting.values() if c.host == host), key=lambda c: (c.priority, c.id))
            ready = [c for c in mine if self.due[c.id] <= self.now][:most]
            later = min((self.due[c.id] for c in mine if self.due[c.id] > self.now), default=NEVER)
            self.schedule.fill(host, ready, later, len(mine), self.now)

    def hand_out(self, takes: Iterator[float]) -> None:
        while len(self.under_way) < self.workers:
            newcomers = max(1, self.workers // 2) - len(self.under_way) if self.shy else NEVER
            if (found := self.schedule.pick(self.now, newcomers)) is None:
                return
            assert found.id in self.waiting, "handed out, though it is settled"
            assert found.id not in self.under_way, "handed out twice"
            assert self.now >= self.parked[found.host], "handed out while its host is parked"
            self.under_way.add(found.id)
            self.handed[found.id] += 1
            circle = self.circle(found.host)
            self.active[circle] += 1
            assert self.active[circle] <= self.limits.concurrency
            self.ends.append((self.now + next(takes), next(self.order), "connected", found))

    def step(self, takes: Iterator[float], fates: Iterator[str]) -> None:
        """The next thing that happens anywhere."""
        self.ends.sort()
        when, _, what, each = self.ends.pop(0)
        self.now = max(self.now, when)
        if what == "connected":
            fate = next(fates)
            if fate == "forbidden":
                self.over(each, fate)
                return
            earliest = self.schedule.admit(each.host, self.now, self.address(each.host))
            if earliest > self.now:
                self.ends.append((earliest, next(self.order), "connected", each))
                return
            assert self.now >= self.parked[each.host], "started while its host is parked"
            self.starts[self.circle(each.host)].append(self.now)
            self.at[self.address(each.host)].append(self.now)
            self.ends.append((self.now + next(takes), next(self.order), fate, each))
            self.began[each.id] = self.now
        elif what.startswith("settle "):
            self.settle(each, what.removeprefix("settle "))
        else:
            self.over(each, what)

    def over(self, each: Claim, fate: str) -> None:
        self.active[self.circle(each.host)] -= 1
        began = self.began.get(each.id, self.now)
        if fate in ("retry", "park"):
            self.schedule.overloaded(each.host, began, self.now, "503", 1.5 if fate == "park" else 0.0)
        elif fate == "done":
            self.schedule.answered(each.host, began, self.now, self.now - began, page=True)
            self.schedule.received(1000, self.now)
            self.schedule.host(each.host).backing_off = False
        elif fate == "sleep":
            self.parked[each.host] = max(self.parked[each.host], self.now + 1.5)
            self.schedule.host(each.host).back_off(self.parked[each.host])
        elif fate == "clear":
            self.schedule.clear(each.host)
        self.schedule.fetched(each.host, self.now)
        self.ends.append((self.now + 0.05, next(self.order), f"settle {fate}", each))

    def settle(self, each: Claim, fate: str) -> None:
        self.under_way.discard(each.id)
        if fate in ("retry", "park") and self.handed[each.id] < 4:
            self.due[each.id] = self.now + 2.0
        else:
            del self.waiting[each.id]
        if fate == "park":
            self.parked[each.host] = max(self.parked[each.host], self.now + 1.5)
            self.schedule.host(each.host).wait(self.parked[each.host])
        self.schedule.settled(each.host, each.id)
        if fate in ("retry", "park"):
            self.schedule.refresh(each.host)
        for host in releasable(self.schedule.hosts(), self.now):
            self.schedule.release(host)

    def wake(self) -> float:
        waiting = [
            max(self.due[c.id], self.parked[c.host]) for c in self.waiting.values() if c.id not in self.under_way
        ]
        return min([self.schedule.next_pick(), *(t for t in waiting if t > self.now)])

    def run(self, takes: Iterator[float], fates: Iterator[str]) -> None:
        """Until nothing waits; fails if nothing can happen any more before that."""
        for _ in range(20_000):
            if not self.waiting:
                return
            self.feed()
            self.hand_out(takes)
            wake = self.wake() if len(self.under_way) < self.workers else NEVER
            if self.ends and min(self.ends)[0] <= wake:
                self.step(takes, fates)
            elif not self.schedule.to_refill(1):
                assert wake < NEVER, "URLs wait, and nothing will ever happen"
                self.now = max(self.now, wake)
        raise AssertionError("does not come to an end")


@settings(max_examples=150, deadline=None, phases=PHASES)
@given(
    shy=st.booleans(),
    rate=st.sampled_from([Rate(0), Rate(1), Rate(3), Rate(5), Rate(30), Rate(2, 0.5)]),
    total=st.builds(
        GlobalLimits, st.sampled_from([Rate(0), Rate(0), Rate(2), Rate(10)]), st.sampled_from([0, 0, 3000])
    ),
    circles=st.integers(0, 3),
    places=st.integers(0, 2),
    first=st.integers(0, 2),
    concurrency=st.integers(1, 4),
    workers=st.integers(1, 8),
    window=st.integers(1, 6),
    urls=st.lists(st.tuples(st.integers(1, 5), st.integers(-1, 4)), min_size=1, max_size=40),
    random=st.randoms(use_true_random=False),
)
def test_any_crawl(
    *,
    shy: bool,
    rate: Rate,
    total: GlobalLimits,
    circles: int,
    places: int,
    first: int,
    concurrency: int,
    workers: int,
    window: int,
    urls: list[tuple[int, int]],
    random: object,
) -> None:
    """With what was learned, hosts that are asked together, and limits for all of them."""
    limits = GroupLimits(rate, concurrency, first)
    world = World(Schedule(rate, concurrency, total=total), limits, workers, window, circles, places, shy)
    for number, (host, priority) in enumerate(urls, 1):
        world.waiting[number] = claim(number, host, priority)
    choose = random.choice  # type: ignore[attr-defined]
    takes = (choose([0.0, 0.001, 0.05, 0.3, 2.0]) for _ in count())
    fates = (choose(["done", "done", "done", "retry", "park", "forbidden", "sleep", "clear"]) for _ in count())
    world.run(takes, fates)
    assert set(world.handed) == set(range(1, len(urls) + 1))
    together = sorted(start for starts in world.starts.values() for start in starts)
    shared = [*world.starts.values(), *(world.at.values() if places else ())]
    for limit, starts in ((total.rate, together), *((rate, starts) for starts in shared)):
        if limit.starts:
            pairs = zip(starts, starts[limit.starts :], strict=False)
            assert all(beyond - before > limit.interval for before, beyond in pairs)


@pytest.mark.parametrize(("rate", "concurrency"), [(Rate(0), 1), (Rate(0), 3), (Rate(5), 2)])
def test_hosts_that_are_asked_together_take_turns(rate: Rate, concurrency: int) -> None:
    """However much each of them has: in any stretch of the crawl all get the same."""
    schedule, order = Schedule(rate, concurrency), list[int]()
    for host in range(5):
        schedule.lease(host, f"http://h{host}", 0.0, limits=GroupLimits(rate, concurrency, group="one"))
        schedule.begin_fill(host)
        schedule.fill(host, [claim(100 * host + n, host) for n in range(50)], NEVER, 50, 0.0)
    now, under_way = 0.0, list[int]()
    while len(order) < 100:
        if (found := schedule.pick(now)) is not None:
            order.append(found.host)
            under_way.append(found.host)
        elif under_way and schedule.admit(under_way[0], now) <= now:
            schedule.fetched(under_way.pop(0), now)
        else:
            now = max(now + 0.01, min(schedule.next_pick(), now + 1))
    assert all(8 <= order[start : start + 50].count(host) <= 12 for start in (0, 25, 50) for host in range(5))


def test_a_host_that_sleeps_is_asked_one_thing_at_a_time() -> None:
    schedule = Schedule(Rate(0), 4)
    filled(schedule, 1, [claim(n, 1) for n in range(4)])
    schedule.host(1).back_off(10.0)
    assert schedule.pick(9.9) is None
    assert list(picked(schedule, 10.0)) == [0]
    schedule.fetched(1, 10.0)
    assert list(picked(schedule, 10.0)) == []
    assert list(picked(schedule, 10.0 + AFTER_PROBE)) == [1]
    schedule.host(1).backing_off = False
    schedule.fetched(1, 12.0)
    assert list(picked(schedule, 12.0)) == [2, 3]


def test_bandwidth_is_kept_on_the_average() -> None:
    schedule, now, received = Schedule(Rate(0), 1, total=GlobalLimits(bandwidth=1000)), 0.0, 0
    filled(schedule, 1, [claim(n, 1) for n in range(40)])
    while (found := schedule.pick(now)) is not None or received < 20_000:
        if found is None:
            now = schedule.next_pick()
            continue
        schedule.admit(1, now)
        received += 700
        schedule.received(700, now)
        schedule.fetched(1, now)
        assert received <= 1000 * (now + 1) + 700 + 1e-6


@given(
    st.integers(1, 5000),
    st.lists(st.tuples(st.integers(0, 9000), st.floats(0, 9)), min_size=1, max_size=40),
    st.booleans(),
)
def test_the_bandwidth_of_a_host_is_kept_on_the_average(
    bandwidth: int,
    answers: list[tuple[int, float]],
    released: bool,  # noqa: FBT001 - drawn
) -> None:
    """Also over the end of a lease; another host does not wait."""
    schedule, now, received = Schedule(Rate(0), 1), 0.0, 0
    limits = GroupLimits(Rate(0), 1, bandwidth=bandwidth)
    largest = max(size for size, _ in answers)
    schedule.lease(1, "http://h1", 0.0, limits=limits)
    for number, (size, took) in enumerate(answers):
        filled(schedule, 1, [claim(number, 1)], now)
        found = schedule.pick(now)
        if found is None:
            now = schedule.next_pick()
            found = schedule.pick(now)
        assert found is not None
        assert schedule.admit(1, now) == now
        assert received <= bandwidth * (now + 1) + largest + 1e-6
        began, now = now, now + took
        received += size
        schedule.host(1).receive(size, began)
        schedule.fetched(1, now)
        schedule.settled(1, number)
        if released:
            schedule.release(1)
            schedule.lease(1, "http://h1", 0.0, limits=limits)
    filled(schedule, 2, [claim(1000, 2)], now)
    assert schedule.pick(now) == claim(1000, 2)


def test_lessons_are_told_once_and_taken_up_again() -> None:
    schedule = Schedule(Rate(10), 2)
    filled(schedule, 1, [claim(1, 1)])
    schedule.overloaded(1, 0.0, 1.0, "503")
    lessons = schedule.take_unsaved()
    assert list(lessons) == [1]
    assert lessons[1].why == "503"
    assert schedule.take_unsaved() == {}
    again = Schedule(Rate(10), 2)
    again.lease(1, "http://h1", 0.0, state=lessons[1])
    queue = again.find(1)
    assert queue is not None
    assert queue.group.rate_limiter.gap == pytest.approx(1 / lessons[1].rate)


def test_priority_then_age() -> None:
    schedule = Schedule(Rate(0), 9)
    filled(schedule, 1, [claim(3, 1, 2), claim(1, 1, 5), claim(2, 1, 2), claim(4, 1, -1)])
    assert list(picked(schedule, 0.0)) == [4, 2, 3, 1]


def test_hosts_take_turns() -> None:
    schedule = Schedule(Rate(0), 2)
    for host in (1, 2, 3):
        filled(schedule, host, [claim(10 * host + n, host) for n in range(4)])
    first = [schedule.pick(0.0) for _ in range(6)]
    assert [found.host for found in first if found] == [1, 2, 3, 1, 2, 3]
    assert schedule.pick(0.0) is None
    schedule.fetched(2, 0.0)
    assert [found.host for found in [schedule.pick(0.0)] if found] == [2]


def test_one_busy_host_does_not_keep_others_waiting() -> None:
    schedule = Schedule(Rate(0), 1)
    filled(schedule, 1, [claim(n, 1) for n in range(100)])
    filled(schedule, 2, [claim(1000 + n, 2) for n in range(100)])
    order = []
    for _ in range(100):  # one worker, and time stands still
        found = schedule.pick(0.0)
        assert found is not None
        order.append(found.host)
        schedule.fetched(found.host, 0.0)
    assert abs(order.count(1) - order.count(2)) <= 1


def test_handing_out_keeps_the_pace() -> None:
    """What cannot start yet is not handed out, so it does not take a worker from another host."""
    schedule = Schedule(Rate(1), 5)
    filled(schedule, 1, [claim(n, 1) for n in range(5)])
    assert list(picked(schedule, 0.0)) == [0]
    assert list(picked(schedule, 0.5)) == []
    assert schedule.next_pick() == pytest.approx(0.51)  # half a step early at most: the first was not due at any time
    assert list(picked(schedule, schedule.next_pick())) == [1]
    assert schedule.admit(1, 1.0) == 1.0
    assert schedule.admit(1, 1.0) > 1.5


def test_what_never_started_costs_no_pace() -> None:
    schedule = Schedule(Rate(1, 3600), 1)
    filled(schedule, 1, [claim(n, 1) for n in range(50)])
    for number in range(50):
        assert [found.id for found in [schedule.pick(0.0)] if found] == [number]
        schedule.fetched(1, 0.0)


def test_a_refill_brings_back_nothing_that_is_under_way_or_just_settled() -> None:
    schedule = Schedule(Rate(0), 9)
    claims = [claim(n, 1) for n in range(4)]
    filled(schedule, 1, claims[:3])
    assert [found.id for found in (schedule.pick(0.0), schedule.pick(0.0)) if found] == [0, 1]
    schedule.refresh(1)
    schedule.begin_fill(1)
    schedule.fetched(1, 0.0)
    schedule.settled(1, 0)  # committed while the frontier is being asked
    assert [found.id for found in [schedule.pick(0.0)] if found] == [2]  # and so is this handed out
    schedule.fill(1, claims, NEVER, 4, 0.0)
    assert list(picked(schedule, 0.0)) == [3]


def test_news_during_a_refill_are_not_lost() -> None:
    schedule = Schedule(Rate(0), 1)
    schedule.lease(1, "http://h1", 0.0)
    schedule.begin_fill(1)
    schedule.refresh(1)
    schedule.fill(1, [], NEVER, 0, 0.0)
    assert schedule.to_refill(9) == [1]
    assert releasable(schedule.hosts(), 0.0) == []


def test_a_parked_host_gets_nothing() -> None:
    schedule = Schedule(Rate(0), 2)
    filled(schedule, 1, [claim(1, 1), claim(2, 1)])
    assert schedule.pick(0.0)
    schedule.host(1).wait(60.0)
    schedule.host(1).wait(30.0)
    assert schedule.pick(59.9) is None
    assert schedule.admit(1, 1.0) == 60.0
    assert schedule.next_pick() == 60.0
    assert schedule.pick(60.0)


def test_a_backlog_may_end_earlier_than_expected_but_shortens_no_other_wait() -> None:
    schedule = Schedule(Rate(0), 4)
    filled(schedule, 1, [claim(number, 1) for number in range(1, 5)])
    assert schedule.pick(0.0)
    schedule.limit_backlog(1, 60.0, 0.0)
    assert schedule.pick(59.9) is None
    assert schedule.admit(1, 1.0) == schedule.next_pick() == 60.0
    assert schedule.host(1).rests_for_us
    schedule.limit_backlog(1, 2.0, 2.0)
    assert schedule.next_pick() == 2.0
    assert schedule.pick(2.0)
    schedule.host(1).wait(30.0)
    schedule.limit_backlog(1, 20.0, 3.0)
    schedule.limit_backlog(1, 4.0, 4.0)
    assert not schedule.host(1).rests_for_us
    assert schedule.pick(29.9) is None
    assert schedule.pick(30.0)


def test_what_is_due_later_makes_its_host_wanted_then() -> None:
    schedule = Schedule(Rate(0), 1)
    filled(schedule, 1, [], later=5.0)
    assert schedule.next_pick() == 5.0
    assert schedule.pick(4.9) is None
    assert schedule.to_refill(9) == []
    assert schedule.pick(5.0) is None
    assert schedule.to_refill(9) == [1]


def test_a_host_rests_only_when_its_pace_is_over() -> None:
    schedule = Schedule(Rate(2), 1)
    filled(schedule, 1, [claim(1, 1)])
    assert schedule.pick(0.0)
    assert schedule.admit(1, 0.0) == 0.0
    schedule.fetched(1, 0.1)
    schedule.settled(1, 1)
    schedule.begin_fill(1)
    schedule.fill(1, [], NEVER, 0, 0.2)
    assert releasable(schedule.hosts(), 1.0) == []
    assert releasable(schedule.hosts(), 1.02) == [1]
    schedule.release(1)
    assert len(schedule) == 0


def test_crawl_delay_reaches_the_pace() -> None:
    schedule = Schedule(Rate(0), 2)
    filled(schedule, 1, [claim(1, 1), claim(2, 1)])
    assert schedule.pick(0.0)
    assert schedule.admit(1, 0.0) == 0.0
    schedule.host(1).group.rate_limiter.slow_down(10.0)
    assert schedule.pick(9.9) is None
    assert schedule.pick(10.0)


@pytest.mark.alone
def test_picking_stays_cheap_with_many_hosts() -> None:
    def cost(hosts: int) -> float:
        schedule = Schedule(Rate(5), 2)
        for host in range(hosts):
            filled(schedule, host, [claim(10 * host + n, host) for n in range(8)])
        begun, number = time.process_time(), 0
        for turn in range(3):
            while (found := schedule.pick(float(turn))) is not None:
                schedule.admit(found.host, float(turn))
                schedule.fetched(found.host, float(turn))
                schedule.settled(found.host, found.id)
                number += 1
        assert number >= 3 * hosts
        return (time.process_time() - begun) / number

    assert min(cost(10_000) for _ in range(2)) < 12 * max(cost(100) for _ in range(3))


def test_what_is_cleared_is_not_handed_out_until_it_is_filled_in_again() -> None:
    schedule = Schedule(Rate(0), 9)
    claims = [claim(number, 1) for number in range(4)]
    filled(schedule, 1, claims)
    assert schedule.pick(0.0) == claims[0]
    schedule.clear(1)
    schedule.settled(1, 0)
    assert schedule.pick(0.0) is None
    assert schedule.to_refill(9) == [1]
    filled(schedule, 1, claims[1:])
    assert list(picked(schedule, 0.0)) == [1, 2, 3]


def test_knocking_in_vain_counts_for_the_rate() -> None:
    schedule = Schedule(Rate(10), 4)
    filled(schedule, 1, [claim(number, 1) for number in range(100)])
    tries: list[float] = []
    for step in range(400):  # two seconds
        now = step / 200
        while (found := schedule.pick(now)) is not None:
            tries.append(now)
            schedule.count_attempt(1, now)
            schedule.fetched(1, now)
            schedule.returned(1, found.id)
    assert 15 <= len(tries) <= 20
    assert all(later - sooner > 0.045 for sooner, later in pairwise(tries[1:]))
    queue = schedule.find(1)
    assert queue is not None
    assert queue.done == 0


def test_a_host_that_is_done_is_not_what_a_crawl_waits_for() -> None:
    """What it has waiting is known from the latest refill, which may be older than its last settlement."""
    schedule, account = Schedule(Rate(1), 4), CrawlCounts(0.0)
    filled(schedule, 1, [claim(1, 1)])
    filled(schedule, 2, [claim(2, 2), claim(3, 2)])
    while (picked := schedule.pick(0.0)) is not None:
        schedule.admit(picked.host, 0.0)
        if picked.host == 1:
            schedule.begin_fill(1)
            schedule.fill(1, [], NEVER, 1, 0.0)  # as the frontier had it before the settlement
        schedule.fetched(picked.host, 0.0)
        schedule.settled(picked.host, picked.id)
    shown = account.snapshot(0.0, "waiting", 0, schedule.hosts())
    assert shown.waiting_for == "rate of http://h2, 1.0 s"
    assert [line.key for line in shown.hosts] == ["http://h2"]


def strangers(schedule: Schedule, count: int, address: str = "") -> None:
    """Lease *count* hosts that share by address, with a URL each; all are at *address* if it is given."""
    for host in range(count):
        schedule.lease(host, f"http://h{host}", 0.0, limits=GroupLimits(Rate(4), 2, by_address="ip"))
        if address:
            assert schedule.locate(host, address)
        schedule.begin_fill(host)
        schedule.fill(host, [claim(100 * host + n, host) for n in range(3)], NEVER, 3, 0.0)


@pytest.mark.parametrize("known", [False, True])
def test_hosts_at_one_address_share_a_pace(*, known: bool) -> None:
    """Also where the address is found at the gate only, when the connection is there."""
    schedule, now, starts = Schedule(Rate(4), 2), 0.0, list[float]()
    strangers(schedule, 5, "192.0.2.7" if known else "")
    under_way = list[int]()
    while len(starts) < 15 and now < 60:
        while (found := schedule.pick(now)) is not None:
            under_way.append(found.host)
        for host in [*under_way]:
            if schedule.admit(host, now, "192.0.2.7") <= now:
                starts.append(now)
                under_way.remove(host)
                schedule.fetched(host, now)
        now += 0.01
    assert len(starts) == 15
    assert all(sum(start <= other < start + 1 for other in starts) <= 4 for start in starts)
    if known:
        assert not under_way, "handed out although it may not start yet"


def calls_of(work: Callable[[], object]) -> int:
    """How many functions *work* calls, Python's own included: the same on a busy machine."""
    calls = 0

    def count_calls(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("together", ["domain", "address", "both", "domain at addresses", "half and half"])
def test_many_hosts_that_share_a_rate_cost_what_a_few_cost(together: str) -> None:
    """Beside an honest host, which loses nothing by them, in a stretch of ten seconds after the first look at each."""

    def cost(count: int) -> int:
        schedule, handed = Schedule(Rate(5), 2), Counter[bool]()
        for host in range(count):
            named = together in ("domain", "both", "domain at addresses") or (together == "half and half" and host % 2)
            limits = GroupLimits(
                Rate(5), 2, group="domain" if named else "", by_address="" if together == "domain" else "ip"
            )
            schedule.lease(host, f"http://h{host}", 0.0, limits=limits)
            schedule.locate(host, f"192.0.2.{host % 4 if together == 'domain at addresses' else 7}")
            schedule.begin_fill(host)
            schedule.fill(host, [claim(100 * host + n, host) for n in range(9)], NEVER, 9, 0.0)
        filled(schedule, count, [claim(1_000_000 + n, count) for n in range(100)])

        def stretch(start: float) -> None:
            under_way = list[tuple[float, int]]()
            for step in range(1000):
                now = start + step / 100
                while under_way and under_way[0][0] <= now:
                    schedule.fetched(under_way.pop(0)[1], now)
                while (found := schedule.pick(now)) is not None:
                    assert schedule.admit(found.host, now) == now
                    under_way.append((now + 0.25, found.host))
                    handed[found.host == count] += 1
            for _, host in under_way:
                schedule.fetched(host, start + 10.25)

        stretch(0.0)
        handed.clear()
        calls = calls_of(lambda: stretch(20.0))
        assert min(handed[True], handed[False]) >= 45
        return calls

    assert cost(1500) < 2 * cost(15)


def test_addresses_of_one_network_are_one_place_in_ipv6() -> None:
    schedule = Schedule(Rate(4), 2)
    strangers(schedule, 3)
    places = []
    for host, address in enumerate(("2001:db8::1", "2001:db8::2:1", "2001:db8:0:1::1")):
        assert schedule.locate(host, address)
        assert not schedule.locate(host, address)
        queue = schedule.find(host)
        assert queue is not None
        places.append(queue.address_group)
    assert places[0] is places[1] is not places[2]
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("fe80::1%eth0") == network_of("fe80::2")
    assert network_of("") == ""


def test_a_host_that_becomes_a_seed_keeps_its_pace() -> None:
    """Neither the requests under way nor the latest starts are forgotten."""
    schedule = Schedule(Rate(2), 2)
    schedule.lease(1, "http://h1", 0.0, limits=GroupLimits(Rate(2), 2, group="domain", by_address="ip"))
    schedule.lease(2, "http://h2", 0.0, limits=GroupLimits(Rate(2), 2, group="domain", by_address="ip"))
    for host in (1, 2):
        schedule.begin_fill(host)
        schedule.fill(host, [claim(10 * host + n, host) for n in range(5)], NEVER, 5, 0.0)
    first = schedule.pick(0.0)
    assert first is not None
    assert schedule.admit(1, 0.0, "192.0.2.7") == 0.0
    schedule.regroup(1, GroupLimits(Rate(2), 2))
    assert list(picked(schedule, 0.1)) == []
    assert schedule.admit(1, 0.1) > 0.2  # half a distance early at most
    schedule.fetched(1, 0.3)
    assert {found.host for found in [schedule.pick(1.1), schedule.pick(1.1)] if found} == {1, 2}


def test_a_host_that_is_leased_again_is_remembered() -> None:
    """Its failures, its refusals, and what its throttle has learned and nothing has saved yet."""
    schedule = Schedule(Rate(10), 2)
    filled(schedule, 1, [])
    schedule.overloaded(1, 0.0, 1.0, "503")
    before = schedule.host(1)
    before.memory.paused, before.memory.failures.in_a_row = True, 3
    state = before.group.throttle.state
    schedule.release(1)
    assert schedule.find(1) is None
    schedule.lease(1, "http://h1", 0.0)
    again = schedule.host(1)
    assert again is not before
    assert (again.memory.paused, again.memory.failures.in_a_row) == (True, 3)
    assert again.group.throttle.state == state
    assert schedule.take_unsaved() == {1: state}


def test_the_memory_of_released_hosts_is_bounded() -> None:
    """The oldest go first, but never one that is paused."""
    schedule = Schedule(Rate(0), 1)
    for host in range(REMEMBERED + 10):
        schedule.lease(host, f"http://h{host}", 0.0)
        schedule.host(host).memory.paused = host == 0
        schedule.begin_fill(host)
        schedule.release(host)
    assert len(schedule._remembered) == REMEMBERED
    schedule.lease(0, "http://h0", 0.0)
    assert schedule.host(0).memory.paused


@pytest.mark.parametrize(("handed_out", "size"), [(0, 32), (16, 32), (17, 34), (100, 200), (128, 256), (500, 256)])
def test_a_window_is_filled_with_twice_as_many_urls_as_were_handed_out(handed_out: int, size: int) -> None:
    schedule = Schedule(Rate(0), 1000)
    filled(schedule, 1, [claim(n, 1) for n in range(1000)])
    for _ in range(handed_out):
        schedule.pick(0.0)
    assert schedule.host(1).window_size == size
    filled(schedule, 1, [])
    assert schedule.host(1).window_size == 32
