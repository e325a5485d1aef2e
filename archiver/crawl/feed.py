"""Feeding the schedule: which hosts are leased, what is in their windows, and what their robots.txt lets through.

A host whose robots.txt is not answered yet is given nothing but the way to it. Reads the frontier only when the
schedule wants something, or when a host may have become due.

A host that has used up its allowance is given nothing but the way to a robots.txt either. Its URLs are read
with each window; what is under way counts as if it will cost one each, and the window is filled again when it is over.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from archiver.allowance import Allowance
from archiver.crawl.caution import Caution
from archiver.crawl.lane import InForce
from archiver.crawl.rulebook import Rulebook
from archiver.errors import Failure
from archiver.frontier.port import Frontier, HostRow, Settled, Window
from archiver.model import Claim, Event, Settlement
from archiver.politeness import Terms
from archiver.schedule import Schedule
from archiver.visit import Visited

WINDOW = 256  # URLs of one host in memory: enough for a tenth of a second at the highest rates
HOSTS_AT_ONCE = 64  # leased in one look at the frontier
MAX_HOSTS = 12_000  # leased at the same time
CROWDED = 1.0  # seconds between two looks for a lease to end while there is no room for another

NEVER = float("inf")


class Feed:
    """Keeps *schedule* supplied."""

    def __init__(
        self, frontier: Frontier, schedule: Schedule, rulebook: Rulebook, in_force: InForce, allowance: Allowance
    ) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._rulebook = rulebook
        self._allowance = allowance
        self._scant: set[int] = set()  # hosts whose window is short because of what is under way
        self._received: dict[int, int] = {}  # bytes from each leased host, what is not committed yet included …
        self._sated: set[int] = set()  # … and those that have sent enough since their window was filled
        self._in_force = in_force
        self._caution = Caution(in_force.room)
        self._terms: Callable[[Sequence[HostRow]], Awaitable[Sequence[Terms]]]
        self._recall: Callable[[HostRow], None]
        self._look = True  # the frontier may have hosts to lease
        self.taking_in = False  # what robots.txt says, of hosts for which it is news
        self.next_due = NEVER  # when it certainly has, as far as is known

    def attach(
        self, terms: Callable[[Sequence[HostRow]], Awaitable[Sequence[Terms]]], recall: Callable[[HostRow], None]
    ) -> None:
        """Who says how hosts may be asked that are to be leased, and who wants to know of each that is."""
        self._terms, self._recall = terms, recall

    async def feed(self, now: float) -> None:
        """Lease hosts that are due, and fill windows that are wanted."""
        self._rulebook.begin(now)
        if self._look or now >= self.next_due:
            await self._lease(now)
        for host in self._schedule.wanting(HOSTS_AT_ONCE):
            if self._rulebook.aged(host, now):
                await self._ask_again(host)
            window = await self._window(host, now)
            self._schedule.fill(host, window.claims, window.later, window.waiting, now)
        self._stop_sated()

    async def _window(self, host: int, now: float) -> Window:
        """The next URLs of *host*, no more than it is allowed."""
        if self._allowance.urls:
            self._scant.add(host)  # already now: a visit may be settled when the answer is made, and not here yet
        under_way = self._schedule.begin_fill(host)
        most, gated = WINDOW + under_way, self._rulebook.gated(host)
        window = await self._frontier.window(host, now, most, prerequisites=gated)
        received = self._received[host] = max(window.received, self._received.get(host, 0))
        held = bool(self._allowance.reached(window.spent, received))
        self._schedule.hold(host, held=held)
        if held and not gated:
            window = await self._frontier.window(host, now, most, prerequisites=True)
        left = self._allowance.bounds[0] - window.spent - under_way
        if left >= most:
            self._scant.discard(host)
            return window
        new = [claim.id for claim in window.claims if claim.counts]
        beyond = set(new[max(0, left) :])
        return replace(window, claims=tuple(claim for claim in window.claims if claim.id not in beyond))

    def _stop_sated(self) -> None:
        """Nothing more of what is in the windows of hosts that have sent enough."""
        for host in self._sated:
            self._schedule.clear(host)
        self._sated.clear()

    async def ended(self) -> bool:
        """Whether nothing waits anywhere that may be asked for, neither now nor later."""
        return not await self._frontier.due_hosts(NEVER, 1, (), self._allowance)

    async def held_back(self) -> str:
        """What waits all the same, because its hosts have used up their allowance, in words."""
        return await self._frontier.held_back(self._allowance)

    async def committed(self, settlements: Sequence[Settlement], settled: Settled) -> None:
        """A batch is in the frontier: hosts may have new URLs, URLs for later, or their rules."""
        for each in settlements:
            if each.park:
                self._schedule.park(each.claim.host, each.park)
            self._caution.over(each.claim)
            self._schedule.settled(each.claim.host, each.claim.id)
            if each.event is Event.RETRY or each.claim.host in self._scant:
                self._schedule.refresh(each.claim.host)
        for host in settled.hosts:
            self._schedule.refresh(host)
        self._look = self._look or bool(settled.hosts or settled.resolved)
        self.taking_in = True
        for host in settled.resolved:
            await self._resolve(host)
        self.taking_in = False

    def received(self, host: int, size: int) -> None:
        """*size* bytes have come from *host*, and will be committed."""
        self._received[host] = self._received.get(host, 0) + size
        if 0 < self._allowance.size <= self._received[host]:
            self._sated.add(host)

    def returned(self, claim: Claim) -> None:
        """*claim* was not visited; its URL waits as it did."""
        self._caution.over(claim)
        self._schedule.returned(claim.host, claim.id)
        self._schedule.refresh(claim.host)

    async def reread(self) -> None:
        """Somebody else has written: any leased host may have other URLs, or a robots.txt to be asked for again."""
        self._look = True
        leased = tuple(self._schedule.leased())
        for host in await self._frontier.robots_to_ask(leased) if self._rulebook.asks else ():
            self._rulebook.forget(host)
            self._schedule.clear(host)  # nothing that was let through by the old rules
            await self._frontier.ask_robots(host)
        for host in leased:
            self._schedule.refresh(host)

    def pick(self, now: float) -> Claim | None:
        """The next URL to visit, None where there is none now."""
        while (claim := self._schedule.pick(now)) is not None and self._caution.premature(claim):
            self._schedule.set_aside(claim, now)
        return claim

    def refusal(self, claim: Claim) -> Visited | None:
        """What becomes of *claim* without a request: its host's robots.txt forbids it, or could not be had."""
        refused = self._rulebook.refusal(claim)
        if refused is None and (rule := self._in_force.held(claim)):
            return Visited(claim, forbidden=rule, failure=Failure.TRAP)
        return refused

    def observed(self, visited: Visited | None) -> Visited | None:
        """*visited*, noted where robots.txt would have forbidden it, with --robots observe."""
        return self._rulebook.observed(visited)

    async def _lease(self, now: float) -> None:
        self._look = False
        if len(self._schedule) > MAX_HOSTS - HOSTS_AT_ONCE:
            self._release_resting(now)
        room = min(HOSTS_AT_ONCE, MAX_HOSTS - len(self._schedule))
        rows = (
            await self._frontier.due_hosts(now, room, tuple(self._schedule.leased()), self._allowance)
            if room > 0
            else []
        )
        self._look = self._look or 0 < len(rows) == room
        for row, terms in zip(rows, await self._terms(rows), strict=True):
            self._schedule.lease(row.id, row.key, row.parked, lesson=row.lesson, terms=terms)
            self._recall(row)
            if self._rulebook.asks:
                await self._learn(await self._fresh(row, now))
        later = await self._frontier.next_due(now)
        self.next_due = later if room > 0 else min(later, now + CROWDED)

    def _release_resting(self, now: float) -> None:
        for host in self._schedule.resting(now):
            self._schedule.release(host)
            self._rulebook.forget(host)
            self._scant.discard(host)
            self._received.pop(host, None)

    async def _resolve(self, host: int) -> None:
        """The robots.txt of *host* was answered, or has moved: read what holds now."""
        if self._schedule.queue(host) is None:
            return
        row = await self._frontier.host(host)
        if self._schedule.queue(host) is not None:  # it may have been released meanwhile
            await self._learn(row)
            self._schedule.refresh(host)

    async def _fresh(self, row: HostRow, now: float) -> HostRow:
        """*row*, with its robots.txt asked for where there is no answer, or an old one."""
        if row.robots is None or self._rulebook.is_stale(row, now):
            return await self._frontier.ask_robots(row.id)
        return row

    async def _ask_again(self, host: int) -> None:
        row = await self._frontier.ask_robots(host)
        if row.robots is None:  # there was nobody to ask, so that nothing holds meanwhile
            self._rulebook.forget(host)

    async def _learn(self, row: HostRow) -> None:
        delay = await self._rulebook.learn(row)
        if delay and self._schedule.queue(row.id) is not None:
            self._schedule.slow_down(row.id, delay)
