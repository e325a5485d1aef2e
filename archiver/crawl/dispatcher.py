"""Leases hosts from the frontier, fills their windows, and holds back what robots.txt or quotas forbid.

Reads the frontier only when the schedule needs something, or when a host may have become due. Until a host has answered
for its robots.txt, its window holds nothing but the way to that. The same is true for a host that has reached its
quota. URLs under way count as if they will cost one each; when they are settled the window is filled again.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from archiver.config.settings import SettingsByHost
from archiver.crawl.host_health import BlockedHosts, HostHealth, report_wait
from archiver.crawl.leases import Leases
from archiver.crawl.login.logins import Logins
from archiver.crawl.rules import CurrentRules, GroupsOfHosts, learn_about
from archiver.crawl.visit import ROBOTS_EXCLUDED, Visited, refusal
from archiver.errors import Failure, FetchError
from archiver.extract.exchange import is_robots
from archiver.fetch.request import user_agent
from archiver.frontier.port import Frontier, HostRow, HostWindow, Settled, UrlWindow
from archiver.model import Claim, Event, Robots, Settlement
from archiver.policy.leased_host import LeasedHost, RobotsAnswer
from archiver.policy.patterns.tallies import MOST_PATTERNS
from archiver.policy.quotas import HeldBack, Quotas
from archiver.policy.robots import NO_RULES, Rules, product_token
from archiver.policy.schedule import Schedule

HOSTS_AT_ONCE = 256  # leased, or filled, in one look at the frontier
MAX_HOSTS = 12_000  # leased at the same time
CROWDED = 1.0  # seconds between two tries to release hosts while there is no room for others

NEVER = float("inf")
AGAIN = frozenset((Event.RETRY, Event.DELAY, Event.VARIANT))  # the URL waits for another visit


@dataclass(frozen=True, slots=True)
class HostPolicies:
    """Everything that decides how a leased host may be asked."""

    robots: "RobotsCache"
    groups: GroupsOfHosts
    health: HostHealth
    blocked: BlockedHosts
    quotas: Quotas
    logins: Logins
    leases: Leases


class Dispatcher:
    """Leases hosts and keeps *schedule* supplied with their URLs."""

    def __init__(self, frontier: Frontier, schedule: Schedule, policies: HostPolicies, rules: CurrentRules) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._robots = policies.robots
        self._groups = policies.groups
        self._health = policies.health
        self._blocked = policies.blocked
        self._quotas = policies.quotas
        self._logins = policies.logins
        self._leases = policies.leases
        self._rules = rules
        self._look = True  # the frontier may have hosts to lease
        self.busy = False  # it takes in robots.txt files that were just answered
        self.next_due = NEVER  # when the frontier certainly has hosts to lease, as far as is known

    async def supply(self, now: float) -> None:
        """Lease hosts that are due, and fill windows that need it."""
        if self._leases.withdrawn:
            self.next_due = NEVER
            return
        self._robots.begin(now)
        if self._look or now >= self.next_due or self._logins.missing_hosts():
            await self._lease(now)
        if self._schedule.groups.unleased:
            await self._leases.take_addresses()
        hosts = [self._schedule.host(host) for host in self._schedule.to_refill(HOSTS_AT_ONCE)]
        await self._ask_again([host.id for host in hosts if self._robots.expire(host, now)])
        await self._fill(hosts, now)

    async def check_leases(self, now: float) -> None:
        """Begin again if the leases were lost. Have none while other crawlers may reach hosts that we cannot.

        Call it with nothing under way.
        """
        if self._leases.lost or (self._leases.withdrawn and not self._health.network.lost):
            await self._leases.begin()
            await self.reread()
        elif self.shares and len(self._schedule) and self._health.out_of_reach(now):
            self._health.note_witnesses()
            await self._leases.withdraw()

    async def _fill(self, hosts: Sequence[LeasedHost], now: float) -> None:
        """Fill the windows of *hosts*, as far as their quotas permit."""
        if not hosts:
            return
        under_way = {}
        for host in hosts:
            host.over_quota = False
            if self._quotas.of(host.key).urls:
                host.short_window = True  # a visit may be settled before we come back
            under_way[host.id] = self._schedule.begin_fill(host.id)
        wanted = {
            host.id: HostWindow(host.id, host.window_size + under_way[host.id], prerequisites=self._robots.gated(host))
            for host in hosts
        }
        windows = dict(zip(wanted, await self._frontier.windows(list(wanted.values()), now), strict=True))
        stopped = [
            host.id for host in hosts if self._is_stopped(host, windows[host.id]) and not wanted[host.id].prerequisites
        ]
        if stopped:
            only_robots = [replace(wanted[host], prerequisites=True) for host in stopped]
            windows.update(zip(stopped, await self._frontier.windows(only_robots, now), strict=True))
        for host in hosts:
            window = windows[host.id]
            claims = self._permitted(host, window, wanted[host.id].most, under_way[host.id])
            self._schedule.fill(host.id, claims, window.later, window.waiting, now)
            if host.over_quota:  # it has sent enough meanwhile
                self._schedule.clear(host.id)

    def _is_stopped(self, host: LeasedHost, window: UrlWindow) -> bool:
        """Return True if *host* has reached its quota, is blocked or paused, or waits for a login."""
        host.received, quota = max(window.received, host.received), self._quotas.of(host.key)
        host.quota_reached, host.memory.blocked = bool(quota.reached(window.visited, host.received)), bool(quota.block)
        return host.quota_reached or host.memory.blocked or host.memory.paused or host.memory.awaits_login

    def _permitted(self, host: LeasedHost, window: UrlWindow, most: int, under_way: int) -> Sequence[Claim]:
        """Return the URLs of *window* that may be handed out, as if each URL under way will count for the quota."""
        if host.memory.blocked:
            return ()
        left = self._quotas.of(host.key).bounds[0] - window.visited - under_way
        if left >= most:
            host.short_window = False
            return window.claims
        new = [claim.id for claim in window.claims if claim.counts]
        beyond = set(new[max(0, left) :])
        return [claim for claim in window.claims if claim.id not in beyond]

    async def ended(self) -> bool:
        """Return True if nothing is left to fetch, neither now nor later."""
        return not await self._frontier.waits(self._quotas)

    async def held_back(self) -> HeldBack:
        """Describe the URLs that wait because their hosts have reached their quotas, or a person has blocked them."""
        return await self._frontier.held_back(self._quotas)

    async def committed(self, settlements: Sequence[Settlement], settled: Settled) -> None:
        """Take in a committed batch: hosts may have new URLs, URLs for later, or a robots.txt."""
        for each in settlements:
            host = self._schedule.find(each.claim.host)
            if host is not None:
                report_wait(host.key, each.settled, each.not_before)
                host.wait(each.not_before)
                self._schedule.settled(host.id, each.claim.id)
                if each.event in AGAIN or each.claim.language or host.short_window:
                    self._schedule.refresh(host.id)
        self.added(settled.hosts)
        self._look = self._look or any(self._schedule.find(each) is None for each in settled.resolved)
        if settled.resolved:
            self.busy = True
            await self._resolve(settled.resolved)
            self.busy = False

    def added(self, hosts: Iterable[int]) -> None:
        """Note that *hosts* have new URLs."""
        for host_id in hosts:
            self._schedule.refresh(host_id)
            self._look = self._look or self._schedule.find(host_id) is None

    def received(self, host_id: int, size: int) -> None:
        """Count *size* bytes from a host that will be committed."""
        host = self._schedule.host(host_id)
        host.received += size
        if 0 < self._quotas.of(host.key).size <= host.received:
            host.over_quota = True
            self._schedule.clear(host_id)

    def returned(self, claim: Claim) -> None:
        """Take *claim* back: its URL was not visited and stays queued."""
        self._schedule.returned(claim.host, claim.id)
        self._schedule.refresh(claim.host)

    async def regroup(self) -> None:
        """Apply the limits to each leased host again, because there are further seeds."""
        rows = await self._frontier.hosts(tuple(self._schedule.leased()))
        await self._leases.regroup(rows, await self._groups.limits(rows))

    async def reread(self) -> None:
        """Read what another process has written: any leased host may have other URLs, or need its robots.txt again."""
        self._look = True
        await self._logins.give_up_blocked()
        rules = self._rules.visit_rules
        rules.learn(await self._frontier.pattern_tallies(MOST_PATTERNS))
        if self.shares and rules.settings.common.scope.redirects == "seeds":
            rules.scope.add_moved_seeds(await self._frontier.seed_redirects())
        leased = tuple(self._schedule.leased())
        asking = [host for host in leased if self._robots.asks(self._schedule.host(host).key)]
        to_ask = await self._frontier.robots_to_ask(asking) if asking else ()
        for host_id in to_ask:
            if (host := self._schedule.find(host_id)) is not None:
                host.robots = None
                self._schedule.clear(host_id)  # nothing that the old rules let through
        if to_ask:
            await self._frontier.ask_robots_of(to_ask)
        for host_id in leased:
            self._schedule.refresh(host_id)

    @property
    def shares(self) -> bool:
        """True if other crawlers work on the same frontier."""
        return self._leases.shared

    async def hear(self, now: float, *, cookies: bool) -> None:
        """Take up what other crawlers have written: URLs of our hosts, answers for robots.txt, hosts, and *cookies*.

        Give hosts back if we have more than our share.
        """
        self._look = True
        waiting = await self._frontier.waiting(tuple(self._schedule.leased()))
        for host in tuple(self._schedule.hosts()):
            if host.needs_news(now) and waiting.get(host.id, 0) > len(host.outstanding):
                self._schedule.refresh(host.id)
        await self._leases.give_back(now)
        await self._leases.share(MAX_HOSTS, waiting)
        gated = [host.id for host in self._schedule.hosts() if self._robots.gated(host)]
        for row in await self._frontier.hosts(gated) if gated else ():
            if row.robots is not None:  # another crawler has fetched it, for a host of its own
                await self._read_robots(row)
                self._schedule.refresh(row.id)
        if cookies:
            await self._restore_cookies(self._schedule.hosts())

    def refusal(self, claim: Claim) -> Visited | None:
        """Return the visit that *claim* becomes without a request: robots.txt forbids it, or it may be in a trap."""
        host, rules = self._schedule.host(claim.host), self._rules
        return self._robots.refusal(host, claim) or refusal(rules.visit_rules, claim, rules.memory)

    def observed(self, visited: Visited | None) -> Visited | None:
        """With --robots observe, add a note to *visited* if robots.txt would have forbidden it."""
        return visited and self._robots.observed(self._schedule.host(visited.claim.host), visited)

    async def _lease(self, now: float) -> None:
        self._look = False
        if len(self._schedule) > MAX_HOSTS - HOSTS_AT_ONCE:
            await self._leases.give_back(now)
        room = min(HOSTS_AT_ONCE, self._leases.room(MAX_HOSTS))
        rows = await self._leases.take_due(now, room, self._quotas, self._groups) if room > 0 else []
        self._look = self._look or 0 < len(rows) == room
        missing = [await self._frontier.host_named(key) for key in self._logins.missing_hosts()]
        rows += await self._leases.take(missing, await self._groups.limits(missing)) if missing else ()
        for row in rows:
            self._health.recall(row)
            self._blocked.recall(row)
        await self._restore_cookies(rows)
        for row in rows if self.shares else ():  # other crawlers may have visited it meanwhile
            await learn_about(row.key, self._rules.visit_rules, self._frontier)
        await self._logins.leased(rows)
        for row in await self._fresh([row for row in rows if self._robots.asks(row.key)], now):
            await self._read_robots(row)
        later = await self._frontier.next_due(now)
        self.next_due = later if room > 0 else min(later, now + CROWDED)

    async def _restore_cookies(self, hosts: Iterable[HostRow | LeasedHost]) -> None:
        """Read the cookies that requests to *hosts* may send."""
        session = self._rules.visit_rules.session
        if domains := {domain for host in hosts for domain in session.domains(host.key)}:
            session.restore(await self._frontier.cookies(sorted(domains)))

    async def _resolve(self, hosts: Iterable[int]) -> None:
        """Read the robots.txt of *hosts*, which was answered or has moved."""
        leased = [host for host in hosts if self._schedule.find(host) is not None]
        for row in await self._frontier.hosts(leased) if leased else ():
            await self._read_robots(row)
            self._schedule.refresh(row.id)

    async def _fresh(self, rows: Sequence[HostRow], now: float) -> list[HostRow]:
        """Ask for robots.txt if there is no answer or an old one; return *rows* as they are then."""
        to_ask = [row.id for row in rows if row.robots is None or self._robots.is_stale(row, now)]
        asked = {row.id: row for row in await self._frontier.ask_robots_of(to_ask)} if to_ask else {}
        return [asked.get(row.id, row) for row in rows]

    async def _ask_again(self, hosts: Sequence[int]) -> None:
        for row in await self._frontier.ask_robots_of(hosts) if hosts else ():
            if row.robots is None:  # it could not be fetched before, so no rules hold meanwhile
                self._schedule.host(row.id).robots = None

    async def _read_robots(self, row: HostRow) -> None:
        answer = await self._robots.read(row)
        host = self._schedule.find(row.id)  # it may have been released meanwhile
        if answer is None or host is None:
            return
        host.robots = answer
        if delay := self._robots.delay(host.key, answer):
            host.group.rate_limiter.slow_down(delay)


DAY = 86_400.0  # seconds for which rules may be used (RFC 9309 §2.4)
HOUR = 3600.0  # … and for which we believe that robots.txt cannot be fetched
SMALL = 16 << 10  # bytes that are parsed at once: some milliseconds


class RobotsCache:
    """Applies the robots.txt of the leased hosts: a URL is let through, refused, or only noted.

    We use rules for a day. A robots.txt that could not be fetched counts for an hour, and not at all in a new run. A
    large file is parsed in another thread, so that the crawl goes on meanwhile.
    """

    def __init__(self, settings: SettingsByHost) -> None:
        self._settings = settings
        self._began = float("inf")  # this run

    def asks(self, origin: str) -> bool:
        """Return True if we fetch the robots.txt of the host *origin* at all."""
        return self._settings.of(origin).politeness.robots != "ignore"

    def begin(self, now: float) -> None:
        """Note that the run has begun by *now*."""
        self._began = min(self._began, now)

    def gated(self, host: LeasedHost) -> bool:
        """Return True if *host* may be asked for nothing but its robots.txt."""
        return host.robots is None and self.asks(host.key)

    def is_stale(self, row: HostRow, now: float) -> bool:
        """Return True if the answer in *row*, of a host that has one, is to be fetched again."""
        unreachable = row.robots is not None and not 200 <= row.robots.status < 500
        return self._too_old(row.asked, now, unreachable=unreachable)

    def expire(self, host: LeasedHost, now: float) -> bool:
        """Return True, once, if the rules of *host* have become too old and are to be fetched again."""
        known = host.robots
        if known is None or not self._too_old(known.asked, now, unreachable=known.rules.unreachable):
            return False
        host.robots = replace(known, asked=float("inf"))
        return True

    async def read(self, row: HostRow) -> RobotsAnswer | None:
        """Parse the robots.txt in *row*, if it has been answered."""
        if row.robots is None:
            return None
        token = product_token(user_agent(self._settings.of(row.key).fetch))
        if len(row.robots.body) <= SMALL:
            rules = Rules(row.robots, token)
        else:
            rules = await asyncio.to_thread(Rules, row.robots, token)
        return RobotsAnswer(rules, row.asked, _unreachable(row.robots) if rules.unreachable else None)

    def delay(self, origin: str, answer: RobotsAnswer) -> float:
        """Return the Crawl-delay of the host *origin*, in seconds: as in *answer*, but not above the cap."""
        politeness, delay = self._settings.of(origin).politeness, answer.rules.delay
        if politeness.robots == "ignore":
            return 0.0
        return min(delay, politeness.crawl_delay_cap) if politeness.crawl_delay_cap else delay

    def refusal(self, host: LeasedHost, claim: Claim) -> Visited | None:
        """Return the visit that *claim* becomes without a request, if robots.txt forbids it or could not be fetched."""
        rule = _forbids(host, claim)
        if not rule or host.robots is None or not self._obeys(host):
            return None
        if host.robots.error is None:
            return Visited(claim, forbidden=f"robots.txt forbids it: {rule}")
        return Visited(claim, error=host.robots.error, final=True)

    def refusing(self, schedule: Schedule) -> Callable[[Claim], Visited | None]:
        """Return a function that does the same as `refusal` for the hosts of *schedule*."""
        return lambda claim: self.refusal(schedule.host(claim.host), claim)

    def observed(self, host: LeasedHost, visited: Visited | None) -> Visited | None:
        """Add a note to *visited* if robots.txt would have forbidden it and we only observe that."""
        if visited is None or visited.exchange is None or self._obeys(host) or not _forbids(host, visited.claim):
            return visited
        exchange = visited.exchange
        return replace(visited, exchange=replace(exchange, notes=(*exchange.notes, ROBOTS_EXCLUDED)))

    def _obeys(self, host: LeasedHost) -> bool:
        return self._settings.of(host.key).politeness.robots == "obey"

    def _too_old(self, asked: float, now: float, *, unreachable: bool) -> bool:
        if unreachable and asked < self._began:
            return True
        return asked + (HOUR if unreachable else DAY) <= now


def _forbids(host: LeasedHost, claim: Claim) -> str:
    return "" if host.robots is None or is_robots(claim) else host.robots.rules.refusal(claim.target)


def _unreachable(robots: Robots) -> FetchError:
    """Return why a host may not be asked for anything (RFC 9309 §2.3.1.4)."""
    if robots.status:
        said = f"answered {robots.status}" if robots.status != NO_RULES else "answered 429 or 503, or was cut short,"
        reason = f"robots.txt {said} until --robots-patience was over, so nothing may be fetched"
        return FetchError(Failure.ROBOTS, reason)
    word, _, reason = robots.body.decode("utf-8", "replace").partition(": ")
    known = word in {failure.value for failure in Failure}
    return FetchError(Failure(word) if known else Failure.ROBOTS, reason or "robots.txt could not be fetched")
