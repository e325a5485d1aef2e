"""A leased host with everything this process keeps about it, and the groups of hosts that share limits. Pure.

A host belongs to one politeness group, for example all hosts of one registered domain. Hosts that share by address
also belong to the group of their address. We know the address only after the DNS lookup, so that group comes later.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network

from archiver.errors import FetchError
from archiver.model import Claim
from archiver.policy.block_pages import RefusalRecord
from archiver.policy.limits import BURST, UNTAUGHT, GroupLimits, RateLimiter, Throttle, ThrottleState
from archiver.policy.retry import HostFailures
from archiver.policy.robots import Rules

AFTER_PROBE = 1.0  # seconds until we know the result of a probe: it is to be one request, not two
SITE_BITS = 64  # of an IPv6 address: one machine commonly has all addresses of such a network
LEAST_WINDOW, MOST_WINDOW = 32, 256  # URLs of one host in memory
NEVER = float("inf")


@dataclass(slots=True, eq=False)
class PolitenessGroup:
    """Hosts that share a rate limit, a concurrency limit and a throttle."""

    key: str
    rate_limiter: RateLimiter
    throttle: Throttle
    members: int = 0  # leased hosts
    active: int = 0
    started: int = 0  # active requests that have begun
    reserved_until: float = -NEVER  # when one more request may start, once all that were handed out have
    waiting: list[tuple[int, int]] = field(default_factory=list)  # heap of (last_served, host); may be outdated
    noted: tuple[float, int, int] | None = None  # when to look at the first of them, its last_served, its id
    leased: bool = True  # False: another crawler may ask the hosts at this address
    outdated: bool = False  # its limits have been changed, and a host that joins it brings the new ones

    @property
    def full(self) -> bool:
        """True if the concurrency limit is reached."""
        return self.active >= self.throttle.width

    def opens(self, now: float) -> float:
        """Return when one more request may be handed out, not before *now*; infinity if the group is full."""
        return NEVER if self.full or not self.leased else max(self.rate_limiter.next(now), self.reserved_until)

    def retune(self, limits: GroupLimits) -> None:
        """Take other *limits* from the next start on; the latest starts and what the throttle has learned count."""
        self.rate_limiter.take(limits.rate)
        width = max(1, self.throttle.width)
        self.throttle = Throttle(limits.rate, limits.concurrency, self.throttle.state, first=width)
        self.reserved_until, self.outdated = -NEVER, False

    def first(self, hosts: Mapping[int, "LeasedHost"]) -> tuple[int, int] | None:
        """Return last_served and id of the host that has waited longest; drop entries that are outdated."""
        while self.waiting:
            last_served, host_id = self.waiting[0]
            host = hosts.get(host_id)
            if host is not None and host.waits_for is self and host.last_served == last_served:
                return last_served, host_id
            heapq.heappop(self.waiting)
        return None

    def join(self, active: int = 0) -> None:
        """Add a member with so many *active* requests."""
        self.members += 1
        self.active += active

    def leave(self, active: int) -> None:
        """Remove a member with its *active* requests."""
        self.members -= 1
        self.active -= active
        self.started = min(self.started, self.active)

    def reserve(self, now: float) -> None:
        """Count one more request that was handed out and will start soon."""
        self.active += 1
        gap = self.rate_limiter.gap
        self.reserved_until = max(self.reserved_until, now - gap / 2) + gap

    def finish(self) -> None:
        """A request has ended, or never began."""
        self.active -= 1
        if not self.active:  # nothing is about to start: the rate limiter alone knows everything
            self.started, self.reserved_until = 0, -NEVER
        elif self.started:
            self.started = min(self.started - 1, self.active)
        else:
            self.reserved_until -= self.rate_limiter.gap


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """The robots.txt of a host, as it was answered."""

    rules: Rules
    asked: float  # when; infinity while it is being fetched again
    error: FetchError | None = None  # why the host may not be asked for anything


@dataclass(slots=True)
class RefusalCase:
    """A host that has refused us at least once."""

    record: RefusalRecord = field(default_factory=RefusalRecord)
    since: float = 0.0  # seconds since the epoch: the first refusal in a row
    statuses: Counter[int] = field(default_factory=Counter)  # of the refusals in a row
    sign: str = ""
    throttle_before: ThrottleState | None = None  # before we slowed it down for its refusals
    asked: tuple[int, int] | None = None  # the page that we fetch again, and the status it had before


@dataclass(slots=True)
class HostMemory:
    """The part of a leased host that outlives the lease."""

    failures: HostFailures = field(default_factory=HostFailures)
    throttle: ThrottleState | None = None  # learned, and not saved in the frontier yet
    refusals: RefusalCase | None = None
    new_refusals: int = 0  # since its answers were last committed
    good_page: tuple[int, int] | None = None  # the first page it gave in this run, and its status
    paused: bool = False  # it refuses us: no more requests in this run
    awaits_login: bool = False  # no request but those of the login, which follows
    blocked: bool = False  # a person lets no request go to it
    visit_cost: float | None = None  # seconds of a writer that the next visit is expected to need
    paid_until: float = -NEVER  # when everything received will have had its time
    served_until: float = 0.0  # when its latest turn with the slow writer ended, on the clock of turns

    @property
    def held(self) -> bool:
        """True if it is asked for nothing but a robots.txt."""
        return self.paused or self.awaits_login


@dataclass(slots=True, eq=False)
class LeasedHost:
    """One host that this process has leased: its queue, limits, robots rules, quota and failures."""

    id: int
    key: str  # scheme and authority
    limits: GroupLimits
    group: PolitenessGroup
    not_before: float  # no request starts before
    last_served: int  # among hosts that are due at the same time the one served longest ago goes first
    memory: HostMemory
    address_group: PolitenessGroup | None = None  # the hosts at its address, if it shares limits with them
    robots: RobotsAnswer | None = None  # None: not answered yet
    # the queue
    window: list[tuple[int, int, Claim]] = field(default_factory=list)  # heap by priority, then age
    outstanding: set[int] = field(default_factory=set)  # URLs handed out and not settled
    touched: set[int] = field(default_factory=set)  # outstanding at any time since the current refill began
    handed_out: int = 0  # URLs since the latest refill
    active: int = 0
    done: int = 0
    waiting: int = 0  # URLs in the frontier, as of the latest refill
    later: float = NEVER  # when more URLs in the frontier become due
    leaving: bool = False  # another crawler may have it as soon as nothing is under way
    needs_refill: bool = False  # the frontier has something that the window lacks
    # its place in the schedule
    waits_for: PolitenessGroup | None = None  # the group that must open first, if nothing else is missing
    look: tuple[float, int] | None = None  # the entry of the schedule's heap that counts, unless it waits for a group
    newcomer: bool = False  # it waits until there is room for hosts that are not proven
    proven: bool = False  # its latest answer came quickly
    backing_off: bool = False  # it is down: one request at a time
    rested: float = -NEVER  # until then it waits because we have not stored what came, not because it wants to
    backlog_until: float = -NEVER  # the same, but only while many of its answers wait for the slow writer
    # its quota
    quota_reached: bool = False  # what waits stays in the frontier for this run
    over_quota: bool = False  # it has sent enough bytes since the latest refill began
    short_window: bool = False  # the window holds fewer URLs because those under way count for the quota
    received: int = 0  # bytes, including what is not committed yet

    @property
    def groups(self) -> tuple[PolitenessGroup, ...]:
        """All groups it belongs to."""
        return (self.group,) if self.address_group is None else (self.group, self.address_group)

    @property
    def earliest(self) -> float:
        """When a request may start, if its groups permit."""
        return max(self.not_before, self.backlog_until)

    @property
    def rests_for_us(self) -> bool:
        """True if it waits only because we have not yet stored what came."""
        return self.not_before <= max(self.rested, self.backlog_until)

    @property
    def pays(self) -> bool:
        """True if it waits because of its bandwidth."""
        return self.not_before <= self.memory.paid_until - BURST

    @property
    def idle(self) -> bool:
        """True if there is nothing to do, so that the lease may end."""
        return not (self.window or self.active or self.outstanding or self.needs_refill or self.backing_off)

    @property
    def at_rest(self) -> bool:
        """True if nothing is under way, so that another crawler could take it over."""
        return not (self.active or self.outstanding or self.needs_refill)

    @property
    def window_size(self) -> int:
        """The number of URLs for the next refill: twice as many as were handed out since the latest one.

        Each batch that finds links of the host leads to a refill, so what is left over is read again each time.
        """
        return max(LEAST_WINDOW, min(2 * self.handed_out, MOST_WINDOW))

    def leave(self) -> None:
        """Hand out no more URLs."""
        self.leaving, self.later = True, NEVER
        self.window.clear()

    def needs_news(self, now: float) -> bool:
        """Return True if it would ask for URLs that another crawler has found for it."""
        closed = self.memory.paused or self.memory.awaits_login or self.quota_reached or self.earliest > now
        return not (self.window or self.needs_refill or self.leaving or closed)

    def wait(self, until: float) -> None:
        """Start no request before *until*."""
        self.not_before = max(self.not_before, until)

    def receive(self, size: int, began: float) -> None:
        """Count *size* bytes of a response that *began* then; wait until the bandwidth has had time for them."""
        if self.limits.bandwidth:
            self.memory.paid_until = max(self.memory.paid_until, began) + size / self.limits.bandwidth
            self.wait(self.memory.paid_until - BURST)

    def rest(self, until: float) -> None:
        """Do the same as `wait`, because the answers of this host give us too much work."""
        self.rested = until
        self.wait(until)

    def back_off(self, until: float) -> None:
        """Send one request at a time, because the host is down, and none before *until*."""
        self.wait(until)
        self.backing_off = True

    def begin_fill(self) -> int:
        """Begin to note what is outstanding while the frontier is asked; return how many URLs are now."""
        self.touched = set(self.outstanding)
        return len(self.touched)

    def fill(self, claims: Iterable[Claim], later: float, waiting: int) -> None:
        """Take the next URLs from the frontier's answer, but none that was outstanding since it was asked."""
        self.window = [(claim.priority, claim.id, claim) for claim in claims if claim.id not in self.touched]
        heapq.heapify(self.window)
        self.touched.clear()
        self.later, self.waiting, self.handed_out = later, waiting, 0

    def take(self, turn: int, now: float) -> Claim:
        """Hand out the next URL, in this *turn* of all hosts."""
        claim = heapq.heappop(self.window)[2]
        self.last_served = turn
        self.outstanding.add(claim.id)
        self.touched.add(claim.id)
        self.waiting -= 1
        self.handed_out += 1
        self.occupy(now)
        return claim

    def occupy(self, now: float) -> None:
        """Count a request that was handed out."""
        self.active += 1
        for group in self.groups:
            group.reserve(now)

    def count_start(self, now: float) -> None:
        """Count a request that starts for the rates of its groups."""
        for group in self.groups:
            group.started += 1
            group.rate_limiter.count(now)

    def finish(self, now: float) -> None:
        """Count an exchange as over, or as never begun; a host that is down then rests for a moment."""
        self.active -= 1
        for group in self.groups:
            group.finish()
        if self.backing_off:
            self.wait(now + AFTER_PROBE)

    def teach(self, update: Callable[[Throttle], None]) -> bool:
        """Apply *update* to the throttles of all its groups; return True if its own one has changed."""
        before = self.group.throttle.state
        for group in self.groups:
            update(group.throttle)
            group.rate_limiter.limit_to(group.throttle.rate)
        return self.group.throttle.state != before

    def next(self, now: float) -> float:
        """Return when a request may start by the rate limits of its groups, not before *now*."""
        return max(group.rate_limiter.next(now) if group.leased else NEVER for group in self.groups)

    @property
    def own_due(self) -> float:
        """When its next URL may be handed out if its groups permit; infinity if it must be refilled or answer first."""
        if self.backing_off and self.active:
            return NEVER
        if not self.window:
            return NEVER if self.needs_refill else self.later
        return self.earliest

    def last_to_open(self, now: float) -> tuple[float, PolitenessGroup]:
        """Return the group that opens last, and when."""
        opens = self.group.opens(now)
        if self.address_group is None or (near := self.address_group.opens(now)) < opens:
            return opens, self.group
        return near, self.address_group

    def due(self, now: float) -> float:
        """Return when its next URL may be handed out; infinity if there is none or no request may be added."""
        return max(self.own_due, self.last_to_open(now)[0])


class PolitenessGroups:
    """All groups by key. A group without members stays until its rate limiter has nothing to remember."""

    def __init__(self, not_before: float, *, shared: bool) -> None:
        """*shared*: other crawlers work on the same frontier, so groups by address must be leased."""
        self.unleased: set[str] = set()  # keys of groups to be leased
        self._not_before = not_before
        self._shared = shared
        self._groups: dict[str, PolitenessGroup] = {}

    def join(self, key: str, state: ThrottleState, limits: GroupLimits) -> PolitenessGroup:
        """Return the group *key*, created with *limits* if it is new; it starts from *state* if it knows nothing."""
        group = self._groups.get(key)
        if group is None:
            rate_limiter = RateLimiter(limits.rate, not_before=max(self._not_before, limits.not_before))
            throttle = Throttle(limits.rate, limits.concurrency, state, first=limits.first)
            group = self._groups[key] = PolitenessGroup(key, rate_limiter, throttle)
        elif group.outdated:
            group.retune(limits)
        elif group.throttle.state == UNTAUGHT != state:
            group.throttle = Throttle(limits.rate, limits.concurrency, state, first=limits.first)
        group.rate_limiter.limit_to(group.throttle.rate)
        return group

    def join_address(self, key: str, state: ThrottleState, limits: GroupLimits) -> PolitenessGroup:
        """Do the same for the hosts at one address. If other crawlers might ask them, the group must be leased."""
        group = self.join(key, state, limits)
        if self._shared and not (group.members and group.leased):
            group.leased = False
            self.unleased.add(key)
        return group

    def outdate(self) -> None:
        """Let each group take the limits of the next host that joins it, because the settings have changed."""
        for group in self._groups.values():
            group.outdated = True

    def get(self, key: str) -> PolitenessGroup | None:
        """Return the group *key*, if there is one."""
        return self._groups.get(key)

    def forget(self, most: int, now: float) -> None:
        """If there are more than *most*, drop groups without members whose latest starts no longer count."""
        if len(self._groups) > most:
            for key, each in [*self._groups.items()]:
                if not each.members and each.rate_limiter.forgettable(now):
                    del self._groups[key]


def network_of(address: str) -> str:
    """Return *address*, or its network if it is IPv6; "" if it is no IP address."""
    try:
        read = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(read, IPv6Address):
        inner = read.ipv4_mapped
        return str(inner) if inner is not None else str(ip_network((read, SITE_BITS), strict=False))
    return str(read)


def releasable(hosts: Iterable[LeasedHost], now: float) -> list[int]:
    """Return the ids of those *hosts* with nothing to do whose latest requests no longer count for the rate."""
    found, leaving = [], Counter[str]()
    for host in hosts:
        group = host.group
        if host.idle and (group.members - leaving[group.key] > 1 or group.rate_limiter.forgettable(now)):
            found.append(host.id)
            leaving[group.key] += 1
    return found
