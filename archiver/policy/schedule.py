"""The schedule: decides which URL goes next, and how long to wait if there is none. Pure: the time is an argument.

The process leases hosts from the frontier, not URLs. Each leased host has a window of its next URLs, refilled as it
empties. A URL that was handed out is outstanding until its settlement is committed, so a refill cannot hand it out
twice. The windows bound the memory, whatever the size of the frontier.

Hosts of one politeness group (usually a single host) share a rate limit, a concurrency limit and a throttle.
Invariants: a group never has more active requests than its concurrency. No request starts before its host may be
asked. URLs are handed out at the rate at which they may start, so that none of them blocks a slot while it waits.
When a group opens, the hosts that wait for it are looked at one by one: many of them cost no more than one.
"""

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

from archiver.config.option_types import Rate
from archiver.model import Claim
from archiver.policy.leased_host import HostMemory, LeasedHost, PolitenessGroup, PolitenessGroups, network_of
from archiver.policy.limits import (
    BURST,
    UNLIMITED,
    UNTAUGHT,
    GlobalLimits,
    GroupLimits,
    RateLimiter,
    Throttle,
    ThrottleState,
)

SPARE = 64  # groups without members that we may remember, besides one for each host
REMEMBERED = 10_000  # hosts that are not leased any more

NEVER = float("inf")


class Schedule:
    """The leased hosts. Decides in single synchronous steps, and alone counts what runs."""

    def __init__(
        self, rate: Rate, concurrency: int, *, first: int = 0, not_before: float = 0.0, total: GlobalLimits = UNLIMITED
    ) -> None:
        self._limits = GroupLimits(rate, concurrency, first)  # of hosts that are leased without limits of their own
        self._hosts: dict[int, LeasedHost] = {}
        self._remembered: dict[int, HostMemory] = {}  # of hosts that were released, oldest first
        self.groups = PolitenessGroups(not_before, shared=total.shared)
        self._ready: list[tuple[float, int, int, str]] = []  # heap of (when to look, last_served, host, its group)
        self._newcomers: deque[LeasedHost] = deque()  # they wait for room
        self._to_refill: deque[LeasedHost] = deque()
        self._unsaved: list[LeasedHost] = []  # their throttles have changed
        self._served = self.received_bytes = 0
        self._now = not_before  # of the latest look
        self.starts = total.reserved or RateLimiter(total.rate, not_before=not_before)
        self._reserved_until = -NEVER  # as of a group, for all hosts
        self._bandwidth = total.bandwidth
        self.paid_until = -NEVER  # when everything received will have had its time
        self.active = 0  # requests under way, over all hosts
        self.closes = NEVER  # when the leases end, as far as starts are concerned
        self.paused = False  # by a person: no request starts

    def __len__(self) -> int:
        return len(self._hosts)

    def lease(
        self,
        host_id: int,
        key: str,
        not_before: float,
        *,
        state: ThrottleState = UNTAUGHT,
        limits: GroupLimits | None = None,
    ) -> None:
        """Add a host whose throttle was saved as *state*; its window is still to be filled."""
        if host_id not in self._hosts:
            self._served += 1
            limits = limits or self._limits
            memory = self._remembered.pop(host_id, None) or HostMemory()
            group = self.groups.join(limits.key(host_id), memory.throttle or state, limits)
            group.join()
            not_before = max(not_before, memory.paid_until - BURST)
            self._hosts[host_id] = LeasedHost(host_id, key, limits, group, not_before, self._served, memory)
        self.refresh(host_id)

    def release(self, host_id: int) -> None:
        """End the lease of an idle host; keep only what may matter when it is leased again."""
        host = self._hosts.pop(host_id)
        host.window.clear()
        host.waits_for = host.look = None
        if host.needs_refill:
            self._to_refill.remove(host)
        for group in host.groups:
            self._leave(group, 0)
        self._remembered[host_id] = host.memory
        if len(self._remembered) > REMEMBERED:
            oldest = next((each for each, memory in self._remembered.items() if not memory.paused), host_id)
            del self._remembered[oldest]

    def leased(self) -> Collection[int]:
        """Return the ids of the leased hosts."""
        return self._hosts.keys()

    def host(self, host_id: int) -> LeasedHost:
        """Return a host that is leased, as every host is that has a URL outstanding."""
        return self._hosts[host_id]

    def find(self, host_id: int) -> LeasedHost | None:
        """Return a host if it is leased."""
        return self._hosts.get(host_id)

    def hosts(self) -> Iterable[LeasedHost]:
        """Return every leased host."""
        return self._hosts.values()

    def regroup(self, host_id: int, limits: GroupLimits) -> None:
        """Apply other *limits* to a host, if it is leased; its latest requests still count."""
        host = self._hosts.get(host_id)
        if host is None or (host.limits == limits and not host.group.outdated):
            return
        before, host.limits = host.group, limits
        host.group = self.groups.join(limits.key(host_id), before.throttle.state, limits)
        if host.group is not before:
            host.group.rate_limiter.inherit(before.rate_limiter)
            self._move(host, before, host.group)
        near, host.address_group = host.address_group, None
        self._move(host, near, None)
        self._note(host, 0.0)

    def retune(self, bandwidth: int) -> None:
        """Take another *bandwidth*; then `regroup` each host, which brings the other limits of its groups."""
        self.groups.outdate()
        self._bandwidth, self._reserved_until = bandwidth, -NEVER
        self.paid_until = self.paid_until if bandwidth else -NEVER

    def locate(self, host_id: int, address: str) -> bool:
        """Note the *address* of a host; return True if it now shares the limits of others at this address."""
        host = self._hosts[host_id]
        network = network_of(address) if host.limits.by_address else ""
        key = f"{host.limits.by_address} {network}"
        if not network or (host.address_group is not None and host.address_group.key == key):
            return False
        near = self.groups.join_address(key, host.group.throttle.state, host.limits)
        before, host.address_group = host.address_group, near
        self._move(host, before, host.address_group)
        return True

    def _move(self, host: LeasedHost, before: PolitenessGroup | None, after: PolitenessGroup | None) -> None:
        """Move *host* from one group to another, with its active requests."""
        if after is not None:
            after.join(host.active)
        if before is not None:
            if host.waits_for is before:
                self._note(host, 0.0)
            self._leave(before, host.active)

    def _leave(self, group: PolitenessGroup, active: int) -> None:
        """Remove a member; an empty group stays while its rate limiter has something to remember."""
        group.leave(active)
        self._wake_group(self._now, group)
        if not group.members:
            self.groups.forget(2 * len(self._hosts) + SPARE, self._now)

    def refresh(self, host_id: int) -> None:
        """Ask for a refill: the frontier may have something new for the host."""
        host = self._hosts.get(host_id)
        if host is not None and not (host.needs_refill or host.leaving):
            host.needs_refill = True
            self._to_refill.append(host)

    def answered(self, host_id: int, began: float, now: float, waited: float, *, page: bool) -> None:
        """Record a good answer to a request that *began* then; its first byte came after *waited* seconds."""
        self._update_throttle(host_id, lambda throttle: throttle.answered(began, now, waited, page=page))

    def overloaded(self, host_id: int, began: float, now: float, why: str, rest: float = 0.0) -> None:
        """Record that a host could not handle a request that *began* then; it asks for *rest* seconds."""
        self._update_throttle(host_id, lambda throttle: throttle.overloaded(began, now, why, rest))

    def restore_throttle(self, host_id: int, state: ThrottleState) -> None:
        """Return the throttle to *state*: slowing the host down since then was a mistake."""
        self._update_throttle(host_id, lambda throttle: throttle.restore(state))

    def _update_throttle(self, host_id: int, update: Callable[[Throttle], None]) -> None:
        host = self._hosts[host_id]
        if host.teach(update):
            if host.memory.throttle is None:
                self._unsaved.append(host)
            host.memory.throttle = host.group.throttle.state
        self._wake_group(self._now, *host.groups)

    def take_unsaved(self) -> dict[int, ThrottleState]:
        """Return the throttles that have changed since the last call, for the frontier to save."""
        unsaved, self._unsaved = self._unsaved, []
        states = {host.id: host.memory.throttle for host in unsaved if host.memory.throttle is not None}
        for host in unsaved:
            host.memory.throttle = None
        return states

    def limit_backlog(self, host_id: int, until: float, now: float) -> None:
        """Let a host rest until then because many of its answers wait for us; an earlier time shortens its rest."""
        host = self._hosts[host_id]
        if max(until, host.backlog_until) > now:
            host.backlog_until = until
            self._look(host, now)

    def received(self, size: int, now: float) -> None:
        """Count *size* bytes; all hosts wait until the bandwidth has had time for them."""
        self.received_bytes += size
        if self._bandwidth:
            self.paid_until = max(self.paid_until, now) + size / self._bandwidth

    def to_refill(self, most: int) -> list[int]:
        """Return the ids of at most *most* hosts whose windows should be filled again."""
        return [host.id for host in islice(self._to_refill, most)]

    def begin_fill(self, host_id: int) -> int:
        """Prepare to ask the frontier about a host; return how many URLs of its answer will be outstanding.

        Everything until `fill` counts: a URL that is settled meanwhile may still wait in the frontier's answer.
        """
        host = self._hosts[host_id]
        if host.needs_refill:
            host.needs_refill = False
            self._to_refill.remove(host)  # as a rule the first
        return host.begin_fill()

    def fill(self, host_id: int, claims: Sequence[Claim], later: float, waiting: int, now: float) -> None:
        """Take the next URLs of a host; more become due at *later*, and *waiting* is the number of all that wait."""
        host = self._hosts[host_id]
        host.fill(claims, later, waiting)
        self._look(host, now)

    def clear(self, host_id: int) -> None:
        """Empty the window of a host; it is to be filled again."""
        host = self._hosts.get(host_id)
        if host is not None:
            host.window.clear()
            self.refresh(host_id)

    def pick(self, now: float, newcomers: float = NEVER) -> Claim | None:
        """Return the next URL to fetch; it is active until `fetched` and outstanding until `settled`.

        If there is no room for *newcomers*, choose only hosts that have shown that they answer quickly.
        """
        self._now = now
        self._admit_newcomers(newcomers)
        if max(self._reserved_until, self._open(now)) > now:
            return None
        for host in self._hosts_to_look_at(now):
            if newcomers <= 0 and not host.proven:
                if not host.newcomer:
                    host.newcomer = True
                    self._newcomers.append(host)
            elif not host.window:  # what was due later is due now
                self.refresh(host.id)
            elif host.due(now) <= now:
                return self._hand_out(host, now)
            else:
                self._look(host, now)
        return None

    def _admit_newcomers(self, room: float) -> None:
        """Look again at as many hosts as there is *room* for."""
        while room >= 1 and self._newcomers:
            host = self._newcomers.popleft()
            host.newcomer = False
            if self._hosts.get(host.id) is not host:
                continue  # it was released
            room -= 1
            if host.look is None and host.waits_for is None:
                self._note(host, 0.0)

    def _hosts_to_look_at(self, now: float) -> Iterator[LeasedHost]:
        """Yield hosts whose time has come. Of those that wait for a group the next comes only if it is still open."""
        while self._ready and self._ready[0][0] <= now:
            due, last_served, host_id, key = heapq.heappop(self._ready)
            if key:
                group = self.groups.get(key)
                if group is None or group.noted != (due, last_served, host_id):
                    continue
                group.noted = None
                if group.opens(now) > now or (first := group.first(self._hosts)) is None:
                    self._wake_group(now, group)
                    continue
                heapq.heappop(group.waiting)
                host = self._hosts[first[1]]
                host.waits_for = None
            else:
                found = self._hosts.get(host_id)
                if found is None or found.look != (due, last_served):
                    continue
                host = found
                host.look = None
            yield host
            self._wake_group(now, *host.groups)

    def _hand_out(self, host: LeasedHost, now: float) -> Claim:
        self._served += 1
        self.active += 1
        claim = host.take(self._served, now)
        gap = self.starts.gap
        self._reserved_until = max(self._reserved_until, now - gap / 2) + gap
        if not host.window and host.waiting > 0:
            self.refresh(host.id)
        self._look(host, now)
        self._wake_group(now, *host.groups)
        return claim

    def occupy(self, host_id: int) -> None:
        """Count a request outside of the queue, one of a login, as handed out; it is active until `fetched`."""
        self.active += 1
        self._hosts[host_id].occupy(self._now)

    def next_pick(self) -> float:
        """Return when `pick` may have something again, as far as is known now; infinity if none may start."""
        first = self._ready[0][0] if self._ready and self._now < self.closes and not self.paused else NEVER
        return max(first, self._reserved_until, self.paid_until - BURST, self.starts.next(0.0))

    def admit(self, host_id: int, now: float, address: str = "") -> float:
        """Start a request and return *now*; or, if none may start, return the time at which to ask again.

        *address* is the other end of the connection. It counts if the host shares limits by address.
        """
        host = self._hosts[host_id]
        self.locate(host_id, address)
        earliest = max(host.earliest, host.next(now), self._open(now))
        if earliest > now:
            return earliest
        self._count(host, now)
        return now

    def _count(self, host: LeasedHost, now: float) -> None:
        self.starts.count(now)
        host.count_start(now)

    def count_attempt(self, host_id: int, now: float) -> None:
        """Count a connection that failed as a request, as far as rates are concerned."""
        self._count(self._hosts[host_id], now)

    def fetched(self, host_id: int, now: float) -> None:
        """One exchange with a host is over, or never began."""
        host = self._hosts[host_id]
        self.active -= 1
        if not self.active:
            self._reserved_until = -NEVER
        elif not host.group.started:  # its request was handed out and never began
            self._reserved_until -= self.starts.gap
        host.finish(now)
        self._look(host, now)
        self._wake_group(now, *host.groups)

    def settled(self, host_id: int, claim_id: int) -> None:
        """The settlement of a URL is committed."""
        host = self._hosts.get(host_id)
        if host is not None:
            host.done += 1
            host.outstanding.discard(claim_id)

    def returned(self, host_id: int, claim_id: int) -> None:
        """A URL was handed out but not visited; it waits in the frontier as before."""
        host = self._hosts.get(host_id)
        if host is not None:
            host.outstanding.discard(claim_id)

    def _open(self, now: float) -> float:
        """Return when the limits on all hosts together permit a request; infinity if paused, or the leases are over."""
        closed = self.paused or now >= self.closes
        return NEVER if closed else max(self.starts.next(now), self.paid_until - BURST)

    def _look(self, host: LeasedHost, now: float) -> None:
        """Note when to look at *host* again: at a certain time, or when the group opens that it waits for."""
        own = host.own_due
        if own == NEVER:
            host.waits_for = None
            return
        opens, group = host.last_to_open(now) if host.window else (now, host.group)
        if opens <= own or (group.members == 1 and not group.full):
            due = max(own, opens)
            if host.look != (due, host.last_served):
                self._note(host, due)
        elif host.waits_for is not group:
            host.look = None
            host.waits_for = group
            heapq.heappush(group.waiting, (host.last_served, host.id))
            self._wake_group(now, group)

    def _note(self, host: LeasedHost, due: float) -> None:
        host.waits_for = None
        host.look = (due, host.last_served)
        heapq.heappush(self._ready, (due, host.last_served, host.id, ""))

    def _wake_group(self, now: float, *groups: PolitenessGroup) -> None:
        """Note when to look at the first of the hosts that wait for each of *groups*."""
        for group in groups:
            if (first := group.first(self._hosts)) is None or (opens := group.opens(now)) == NEVER:
                continue
            entry = (opens, *first)
            if group.noted is None or entry < group.noted:
                group.noted = entry
                heapq.heappush(self._ready, (*entry, group.key))
