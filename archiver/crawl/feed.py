"""Feeding the schedule: which hosts are leased, what is in their windows, and what their robots.txt lets through.

A host whose robots.txt is not answered yet is given nothing but the way to it. Reads the frontier only when the
schedule wants something, or when a host may have become due.
"""

from collections.abc import Sequence

from archiver.config.settings import PolitenessSettings
from archiver.errors import Failure, FetchError
from archiver.frontier.port import Frontier, HostRow, Settled
from archiver.model import Claim, Event, Robots, Settlement
from archiver.robots import Rules
from archiver.schedule import Schedule
from archiver.visit import Visited, is_robots

WINDOW = 256  # URLs of one host in memory: enough for a tenth of a second at the highest rates
HOSTS_AT_ONCE = 64  # leased in one look at the frontier
MAX_HOSTS = 12_000  # leased at the same time
CROWDED = 1.0  # seconds between two looks for a lease to end while there is no room for another
LONGEST_DELAY = 300.0  # seconds of Crawl-delay that are followed, as Heritrix does

NEVER = float("inf")


class Feed:
    """Keeps *schedule* supplied."""

    def __init__(self, frontier: Frontier, schedule: Schedule, settings: PolitenessSettings, token: str) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._obey = settings.robots == "obey"
        self._token = token
        self._rules: dict[int, Rules] = {}
        self._errors: dict[int, FetchError] = {}
        self._look = True  # the frontier may have hosts to lease
        self.next_due = NEVER  # when it certainly has, as far as is known

    async def feed(self, now: float) -> None:
        """Lease hosts that are due, and fill windows that are wanted."""
        if self._look or now >= self.next_due:
            await self._lease(now)
        for host in self._schedule.wanting(HOSTS_AT_ONCE):
            gated = self._obey and host not in self._rules
            most = WINDOW + self._schedule.begin_fill(host)
            window = await self._frontier.window(host, now, most, prerequisites=gated)
            self._schedule.fill(host, window.claims, window.later, window.waiting, now)

    async def ended(self) -> bool:
        """Whether nothing waits anywhere, neither now nor later."""
        return not await self._frontier.due_hosts(NEVER, 1, ())

    async def committed(self, settlements: Sequence[Settlement], settled: Settled) -> None:
        """A batch is in the frontier: hosts may have new URLs, URLs for later, or their rules."""
        for each in settlements:
            if each.park:
                self._schedule.park(each.claim.host, each.park)
            self._schedule.settled(each.claim.host, each.claim.id)
            if each.event is Event.RETRY:
                self._schedule.refresh(each.claim.host)
        for host in settled.hosts:
            self._schedule.refresh(host)
        self._look = self._look or bool(settled.hosts or settled.resolved)
        for host in settled.resolved:
            await self._resolve(host)

    def returned(self, claim: Claim) -> None:
        """*claim* was not visited; its URL waits as it did."""
        self._schedule.returned(claim.host, claim.id)
        self._schedule.refresh(claim.host)

    def refusal(self, claim: Claim) -> Visited | None:
        """What becomes of *claim* without a request: its host's robots.txt forbids it, or could not be had."""
        rules = self._rules.get(claim.host)
        if rules is None or is_robots(claim) or rules.allows(claim.url):
            return None
        if not rules.unreachable:
            return Visited(claim, forbidden="robots.txt forbids it")
        return Visited(claim, error=self._errors[claim.host], final=True)

    async def _lease(self, now: float) -> None:
        self._look = False
        if len(self._schedule) > MAX_HOSTS - HOSTS_AT_ONCE:
            self._release_resting(now)
        room = min(HOSTS_AT_ONCE, MAX_HOSTS - len(self._schedule))
        rows = await self._frontier.due_hosts(now, room, tuple(self._schedule.leased())) if room > 0 else []
        self._look = self._look or 0 < len(rows) == room
        for row in rows:
            self._schedule.lease(row.id, row.key, row.parked)
            if self._obey:
                self._learn(row if row.robots is not None else await self._frontier.ask_robots(row.id))
        later = await self._frontier.next_due(now)
        self.next_due = later if room > 0 else min(later, now + CROWDED)

    def _release_resting(self, now: float) -> None:
        for host in self._schedule.resting(now):
            self._schedule.release(host)
            self._rules.pop(host, None)
            self._errors.pop(host, None)

    async def _resolve(self, host: int) -> None:
        """The robots.txt of *host* was answered, or has moved: read what holds now."""
        if self._schedule.queue(host) is None:
            return
        row = await self._frontier.host(host)
        if self._schedule.queue(host) is not None:  # it may have been released meanwhile
            self._learn(row)
            self._schedule.refresh(host)

    def _learn(self, row: HostRow) -> None:
        if row.robots is None:
            return
        rules = Rules(row.robots, self._token)
        self._rules[row.id] = rules
        if rules.unreachable:
            self._errors[row.id] = _unreachable(row.robots)
        if rules.delay:
            self._schedule.slow_down(row.id, min(rules.delay, LONGEST_DELAY))


def _unreachable(robots: Robots) -> FetchError:
    """Why a host may not be asked for anything (RFC 9309 §2.3.1.4); no answer at all is told as what it was."""
    if robots.status:
        return FetchError(Failure.ROBOTS, f"robots.txt answered {robots.status}, so nothing may be fetched")
    word, _, reason = robots.body.decode("utf-8", "replace").partition(": ")
    known = word in {failure.value for failure in Failure}
    return FetchError(Failure(word) if known else Failure.ROBOTS, reason or "robots.txt could not be had")
