"""Feeding the schedule: which hosts are leased, what is in their windows, and what their robots.txt lets through.

A host whose robots.txt is not answered yet is given nothing but the way to it. Reads the frontier only when the
schedule wants something, or when a host may have become due.

A host that has used up its allowance is given nothing but the way to a robots.txt either. Its URLs are read
with each window; what is under way counts as if it will cost one each, and the window is filled again when it is over.

Which hosts are asked together, and how: `--polite-by`, `--third-party-rate` and `--host-limit` for each leased host.

Hosts with different limits never share. A page can name any number of hosts that lead to one server. So hosts that
are no seeds share one rate by registered domain, and by address as soon as that is known.

What other processes write into the frontier while the crawl runs: URLs that are due again, and further seeds.

Looks every second, which costs next to nothing, and reads only where somebody has written. A further seed is
not handed out before a look could see it (`GRACE`), so what it leads to is judged by a scope that knows it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from archiver import url
from archiver.config.option_types import Rate
from archiver.config.settings import PolitenessSettings
from archiver.crawl.blocked_hosts import BlockedHosts
from archiver.crawl.host_health import HostHealth
from archiver.crawl.robots_cache import RobotsCache
from archiver.crawl.rules import CurrentRules
from archiver.crawl.visit import Visited
from archiver.frontier.port import Frontier, HostRow, HostWindow, Settled, UrlWindow
from archiver.model import Claim, Event, Settlement
from archiver.policy.limits import Allowance, Politeness
from archiver.policy.schedule import Schedule
from archiver.policy.traps import MOST_PATTERNS

WINDOW = 256  # URLs of one host in memory: enough for a tenth of a second at the highest rates
HOSTS_AT_ONCE = 256  # leased, and given their windows, in one look at the frontier
MAX_HOSTS = 12_000  # leased at the same time
CROWDED = 1.0  # seconds between two looks for a lease to end while there is no room for another

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class HostPolicies:
    """Everything that decides how a leased host may be asked."""

    robots: RobotsCache
    groups: "GroupsOfHosts"
    health: HostHealth
    blocked: BlockedHosts
    quota: Allowance


class Dispatcher:
    """Leases hosts and keeps *schedule* supplied with their URLs."""

    def __init__(self, frontier: Frontier, schedule: Schedule, policies: HostPolicies, in_force: CurrentRules) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._rulebook = policies.robots
        self._groups = policies.groups
        self._health = policies.health
        self._blocked = policies.blocked
        self._allowance = policies.quota
        self._scant: set[int] = set()  # hosts whose window is short because of what is under way
        self._received: dict[int, int] = {}  # bytes from each leased host, what is not committed yet included …
        self._sated: set[int] = set()  # … and those that have sent enough since their window was filled
        self._in_force = in_force
        self._look = True  # the frontier may have hosts to lease
        self.taking_in = False  # what robots.txt says, of hosts for which it is news
        self.next_due = NEVER  # when it certainly has, as far as is known

    async def feed(self, now: float) -> None:
        """Lease hosts that are due, and fill windows that are wanted."""
        self._rulebook.begin(now)
        if self._look or now >= self.next_due:
            await self._lease(now)
        hosts = self._schedule.wanting(HOSTS_AT_ONCE)
        await self._ask_again([host for host in hosts if self._rulebook.aged(host, now)])
        await self._fill(hosts, now)
        self._stop_sated()

    async def _fill(self, hosts: Sequence[int], now: float) -> None:
        """The next URLs of each of *hosts*, no more than it is allowed."""
        if not hosts:
            return
        if self._allowance.urls:
            self._scant.update(hosts)  # already now: a visit may be settled when the answer is made, and not here yet
        under_way = {host: self._schedule.begin_fill(host) for host in hosts}
        wanted = {
            host: HostWindow(host, WINDOW + under_way[host], prerequisites=self._rulebook.gated(host)) for host in hosts
        }
        windows = dict(zip(hosts, await self._frontier.windows(list(wanted.values()), now), strict=True))
        held = [host for host in hosts if self._is_held(host, windows[host]) and not wanted[host].prerequisites]
        if held:
            others = await self._frontier.windows([replace(wanted[host], prerequisites=True) for host in held], now)
            windows.update(zip(held, others, strict=True))
        for host, window in windows.items():
            claims = self._allowed(host, window, wanted[host].most, under_way[host])
            self._schedule.fill(host, claims, window.later, window.waiting, now)

    def _is_held(self, host: int, window: UrlWindow) -> bool:
        """Whether *host* has used up its allowance, or is paused because it refuses us."""
        received = self._received[host] = max(window.received, self._received.get(host, 0))
        held = bool(self._allowance.reached(window.spent, received))
        self._schedule.hold(host, held=held)
        queue = self._schedule.queue(host)
        return held or (queue is not None and queue.paused)

    def _allowed(self, host: int, window: UrlWindow, most: int, under_way: int) -> Sequence[Claim]:
        """What of *window* may be handed out, if each URL that is under way will count."""
        left = self._allowance.bounds[0] - window.spent - under_way
        if left >= most:
            self._scant.discard(host)
            return window.claims
        new = [claim.id for claim in window.claims if claim.counts]
        beyond = set(new[max(0, left) :])
        return [claim for claim in window.claims if claim.id not in beyond]

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
            if each.not_before:
                self._schedule.park(each.claim.host, each.not_before)
            self._schedule.settled(each.claim.host, each.claim.id)
            if each.event in {Event.RETRY, Event.DELAY} or each.claim.host in self._scant:
                self._schedule.refresh(each.claim.host)
        for host in settled.hosts:
            self._schedule.refresh(host)
        self._look = self._look or any(self._schedule.queue(host) is None for host in settled.hosts | settled.resolved)
        if settled.resolved:
            self.taking_in = True
            await self._resolve(settled.resolved)
            self.taking_in = False

    def received(self, host: int, size: int) -> None:
        """*size* bytes have come from *host*, and will be committed."""
        self._received[host] = self._received.get(host, 0) + size
        if 0 < self._allowance.size <= self._received[host]:
            self._sated.add(host)

    def returned(self, claim: Claim) -> None:
        """*claim* was not visited; its URL waits as it did."""
        self._schedule.returned(claim.host, claim.id)
        self._schedule.refresh(claim.host)

    async def reclass(self) -> None:
        """There are further seeds: each leased host is asked as it may be now."""
        rows = await self._frontier.hosts(tuple(self._schedule.leased()))
        for row, terms in zip(rows, await self._groups.terms(rows), strict=True):
            self._schedule.reclass(row.id, terms)

    async def reread(self) -> None:
        """Somebody else has written: any leased host may have other URLs, or a robots.txt to be asked for again."""
        self._look = True
        self._in_force.learn(await self._frontier.tallies(MOST_PATTERNS))
        leased = tuple(self._schedule.leased())
        anew = await self._frontier.robots_to_ask(leased) if self._rulebook.asks else ()
        for host in anew:
            self._rulebook.forget(host)
            self._schedule.clear(host)  # nothing that was let through by the old rules
        if anew:
            await self._frontier.ask_robots_of(anew)
        for host in leased:
            self._schedule.refresh(host)

    def pick(self, now: float, newcomers: float = NEVER) -> Claim | None:
        """The next URL to visit, None where there is none now; see `Schedule.pick`."""
        return self._schedule.pick(now, newcomers)

    def refusal(self, claim: Claim) -> Visited | None:
        """What becomes of *claim* without a request: robots.txt forbids it, or it may be in a trap."""
        return self._rulebook.refusal(claim) or self._in_force.refusal(claim)

    def observed(self, visited: Visited | None) -> Visited | None:
        """*visited*, noted where robots.txt would have forbidden it, with --robots observe."""
        return self._rulebook.observed(visited)

    async def _lease(self, now: float) -> None:
        self._look = False
        if len(self._schedule) > MAX_HOSTS - HOSTS_AT_ONCE:
            self._release_resting(now)
        room = min(HOSTS_AT_ONCE, MAX_HOSTS - len(self._schedule))
        leased = frozenset(self._schedule.leased())
        rows = await self._frontier.due_hosts(now, room, leased, self._allowance) if room > 0 else []
        self._look = self._look or 0 < len(rows) == room
        for row, terms in zip(rows, await self._groups.terms(rows), strict=True):
            self._schedule.lease(row.id, row.key, row.parked, lesson=row.lesson, terms=terms)
            self._health.recall(row)
            self._blocked.recall(row)
        if rows and self._rulebook.asks:
            for row in await self._fresh(rows, now):
                await self._learn(row)
        later = await self._frontier.next_due(now)
        self.next_due = later if room > 0 else min(later, now + CROWDED)

    def _release_resting(self, now: float) -> None:
        for host in self._schedule.resting(now):
            self._schedule.release(host)
            self._rulebook.forget(host)
            self._scant.discard(host)
            self._received.pop(host, None)

    async def _resolve(self, hosts: Iterable[int]) -> None:
        """The robots.txt of *hosts* was answered, or has moved: read what holds now."""
        leased = [host for host in hosts if self._schedule.queue(host) is not None]
        for row in await self._frontier.hosts(leased) if leased else ():
            if self._schedule.queue(row.id) is not None:  # it may have been released meanwhile
                await self._learn(row)
                self._schedule.refresh(row.id)

    async def _fresh(self, rows: Sequence[HostRow], now: float) -> list[HostRow]:
        """*rows*, with robots.txt asked for where there is no answer, or an old one."""
        to_ask = [row.id for row in rows if row.robots is None or self._rulebook.is_stale(row, now)]
        asked = {row.id: row for row in await self._frontier.ask_robots_of(to_ask)} if to_ask else {}
        return [asked.get(row.id, row) for row in rows]

    async def _ask_again(self, hosts: Sequence[int]) -> None:
        for row in await self._frontier.ask_robots_of(hosts) if hosts else ():
            if row.robots is None:  # there was nobody to ask, so that nothing holds meanwhile
                self._rulebook.forget(row.id)

    async def _learn(self, row: HostRow) -> None:
        delay = await self._rulebook.learn(row)
        if delay and self._schedule.queue(row.id) is not None:
            self._schedule.slow_down(row.id, delay)


RESERVE = 0.03  # of the interval of strangers: on a busy machine requests arrive closer to each other than they left
FIRST = 1  # request at once on a host of which nothing is known, so that it is seen how long its answers take unhurried


class GroupsOfHosts:
    """*load_domains* makes the function from a host name to its registered domain, when that is needed."""

    def __init__(
        self, settings: PolitenessSettings, load_domains: Callable[[], Callable[[str], str]], seeds: Iterable[str]
    ) -> None:
        self._settings = settings
        self._load_domains = load_domains
        self._domain_of: Callable[[str], str] | None = None
        self._seeds: set[str] = set()  # scheme aside: with each port
        self._names: set[str] = set()
        self._shared = settings.rate if settings.third_party_rate is None else settings.third_party_rate
        self.welcome(seeds)

    def welcome(self, seeds: Iterable[str]) -> None:
        """Ask each host of *seeds* (canonical URLs) for itself, with and without www."""
        for seed in seeds:
            authority = url.origin(seed).partition("://")[2]
            self._seeds |= {authority, authority.removeprefix("www."), f"www.{authority}"}
            self._names.add(url.host(seed))

    async def terms(self, rows: Sequence[HostRow]) -> list[Politeness]:
        """Return how each of *rows* may be asked, and with which others together."""
        by_domain = self._settings.polite_by == "domain" or any(self._is_stranger(row.key) for row in rows)
        if by_domain and self._domain_of is None:
            self._domain_of = await asyncio.to_thread(self._load_domains)
        return [self._terms(row.key) for row in rows]

    def _is_stranger(self, key: str) -> bool:
        return self._shared.starts > 0 and key.partition("://")[2] not in self._seeds

    def _terms(self, key: str) -> Politeness:
        settings, name = self._settings, url.host(f"{key}/")
        rate, concurrency, pattern = settings.rate, settings.host_concurrency, ""
        for limit in settings.host_limit:
            if fnmatchcase(name, limit.pattern):
                rate, concurrency, pattern = limit.rate, limit.concurrency or concurrency, limit.pattern
                break
        domain = self._domain_of(name) if self._domain_of is not None else ""
        stranger = self._is_stranger(key)
        if stranger and settings.polite_by == "domain" and self._domain_of is not None:
            stranger = domain not in map(self._domain_of, self._names)
        if stranger and not pattern:
            rate = slower(rate, self._shared)
            rate = Rate(rate.starts, rate.interval * (1 + RESERVE))
        circle = f"domain {domain} {pattern}" if stranger or settings.polite_by == "domain" else ""
        nearby = f"ip {pattern}" if stranger or settings.polite_by == "ip" else ""
        return Politeness(rate, concurrency, FIRST, circle, nearby)


def slower(one: Rate, other: Rate) -> Rate:
    """Return the rate with fewer starts a second; 0 stands for no limit."""
    rates = [rate for rate in (one, other) if rate.starts]
    return min(rates, key=lambda rate: rate.starts / rate.interval, default=one)


LOOK_EVERY = 1.0  # seconds
GRACE = 2 * LOOK_EVERY  # seconds after which a seed that was added from outside may be fetched

Renew = Callable[[Sequence[str], Sequence[str]], Awaitable[None]]  # given the newest seeds, and all that came further


class OutsideChanges:
    """Takes up what came; *seeds* were known when the terms were made, *renew* puts others in force."""

    def __init__(self, frontier: Frontier, feed: Dispatcher, seeds: Sequence[str], renew: Renew) -> None:
        self.next_look = 0.0
        self._frontier = frontier
        self._feed = feed
        self._known = set(seeds)
        self._further: list[str] = []
        self._renew = renew

    async def look(self, now: float, *, at_once: bool = False) -> bool:
        """Take up what others have written since the last look, if it is time for one; whether there was anything."""
        if now < self.next_look and not at_once:
            return False
        self.next_look = now + LOOK_EVERY
        if not await self._frontier.written_by_others():
            return False
        new = [seed for seed in await self._frontier.seeds() if seed not in self._known]
        if new:
            self._known.update(new)
            self._further += new
            await self._renew(new, self._further)
            await self._feed.reclass()
        await self._feed.reread()
        return True
