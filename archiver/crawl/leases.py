"""The leases of this crawler: no other crawler asks the hosts of the politeness groups that it has leased.

All its leases end together unless they are renewed, which happens every third of their length. If a renewal is late,
no request starts in the last part of the leases, by our own clock. If another crawler has taken a group over, all are
lost: visits under way end, and then the crawler begins again without leases.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from archiver.clock import Clock
from archiver.frontier.port import LEASE, Frontier, HostRow
from archiver.policy.leased_host import LeasedHost
from archiver.policy.limits import GroupLimits
from archiver.policy.schedule import Schedule

RENEW_EVERY = LEASE / 3
LAST_PART = LEASE / 6  # in which no request starts: one that starts just before it reaches the host in time

NEVER = float("inf")


class Leases:
    """Takes, renews and gives back what *schedule* has leased."""

    def __init__(self, frontier: Frontier, schedule: Schedule, clock: Clock, name: str = "", crawlers: int = 1) -> None:
        """*name*: of this crawler, if others share the frontier. *crawlers*: that will join at least."""
        self._frontier = frontier
        self._schedule = schedule
        self._clock = clock
        self._name = name
        self._crawlers = crawlers
        self._share_left = 0  # hosts that we may lease before the next look at our share
        self.lost = False

    @property
    def shared(self) -> bool:
        """True if other crawlers share the frontier."""
        return bool(self._name)

    async def begin(self) -> None:
        """Become a crawler with no lease."""
        for host_id in tuple(self._schedule.leased()):
            self._schedule.release(host_id)
        began = self._clock.now()
        await self._frontier.join(self._name)
        self.lost = False
        self._schedule.closes = began + LEASE - LAST_PART

    async def renew(self) -> None:
        """Renew all leases. If they are lost, no request starts before `begin`."""
        began = self._clock.now()
        if await self._frontier.renew():
            self._schedule.closes = began + LEASE - LAST_PART
        else:
            self._schedule.closes = -NEVER
            self.lost = True

    async def take(self, rows: Sequence[HostRow], limits: Sequence[GroupLimits]) -> list[HostRow]:
        """Lease the hosts in *rows* with their *limits*; return those that no other crawler has, as they are now."""
        groups = {row.id: limit.key(row.id) for row, limit in zip(rows, limits, strict=True)}
        ago = await self._frontier.lease(groups) if rows else {}
        handed_over = [host for host, seconds in ago.items() if seconds < NEVER]
        fresh = {row.id: row for row in await self._frontier.hosts(handed_over)} if handed_over else {}
        now, filled, taken = self._clock.now(), set[str](), []
        for row, limit in zip(rows, limits, strict=True):
            if row.id in ago:
                taken.append(fresh.get(row.id, row))
                self._share_left -= 1
                state, not_before = taken[-1].throttle, taken[-1].not_before
                self._schedule.lease(row.id, row.key, not_before, state=state, limits=limit)
                if row.id in fresh and groups[row.id] not in filled:
                    filled.add(groups[row.id])
                    self._schedule.host(row.id).group.rate_limiter.fill(now - ago[row.id])
        return taken

    async def regroup(self, rows: Sequence[HostRow], limits: Sequence[GroupLimits]) -> None:
        """Apply other *limits* to leased hosts, and lease the groups that they are in now."""
        groups = {row.id: limit.key(row.id) for row, limit in zip(rows, limits, strict=True)}
        ago = await self._frontier.lease(groups) if rows else {}
        for row, limit in zip(rows, limits, strict=True):
            if row.id in ago:  # the others keep their limits: another crawler has the group
                self._schedule.regroup(row.id, limit)

    async def give_back(self, now: float) -> None:
        """Release hosts with nothing to do, and groups of which no host is left."""
        await self._release(self._schedule.releasable(now))

    def room(self, most: int) -> int:
        """Return how many more hosts we may lease: *most* in all, but no more than our share of those with URLs."""
        left = most - len(self._schedule)
        return min(left, self._share_left) if self._name else left

    async def share(self, most: int, waiting: Mapping[int, int]) -> None:
        """Compute our share of the hosts with URLs. While we have more, let whole groups finish and give them back.

        *waiting*: the number of URLs that wait on each of our hosts. *most*: hosts that a crawler may lease.
        """
        groups: dict[str, list[LeasedHost]] = {}
        for host in self._schedule.hosts():
            groups.setdefault(host.group.key, []).append(host)
        leaving = [hosts for hosts in groups.values() if any(host.leaving for host in hosts)]
        staying = [hosts for hosts in groups.values() if not any(host.leaving for host in hosts)]
        kept = sum(waiting.get(host.id, 0) > 0 for hosts in staying for host in hosts)
        share = await self._frontier.share(most, self._crawlers)
        for hosts in sorted(staying, key=lambda each: sum(host.done for host in each)):
            busy = sum(waiting.get(host.id, 0) > 0 and not host.backing_off for host in hosts)
            if 0 < busy <= kept - share:
                kept -= busy
                leaving.append(hosts)
        self._share_left = share - kept
        for host in chain.from_iterable(leaving):
            host.leave()
        if released := [hosts for hosts in leaving if all(host.at_rest for host in hosts)]:
            await self._frontier.settle((), (), self._schedule.take_unsaved())
            await self._release(host.id for hosts in released for host in hosts)

    async def _release(self, hosts: Iterable[int]) -> None:
        """Release *hosts*, and give back the groups that have no other."""
        now, last_starts = self._clock.now(), dict[str, float]()
        for host_id in hosts:
            group = self._schedule.host(host_id).group
            self._schedule.release(host_id)
            if not group.members:
                last_starts[group.key] = now - group.rate_limiter.last_start
        if last_starts:
            await self._frontier.give_back(last_starts)

    async def end(self) -> None:
        """Give everything back."""
        now, hosts = self._clock.now(), self._schedule.hosts()
        await self._frontier.leave({host.group.key: now - host.group.rate_limiter.last_start for host in hosts})
