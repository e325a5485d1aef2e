"""The leases of this crawler: no other crawler asks the hosts of the politeness groups that it has leased.

All its leases end together unless they are renewed, which happens every third of their length. If a renewal is late,
no request starts in the last part of the leases, by our own clock. If another crawler has taken a group over, all are
lost: visits under way end, and then the crawler begins again without leases. A crawler that cannot reach any host
withdraws, because others may reach them, and begins again when it can.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from archiver.clock import Clock
from archiver.crawl.rules import GroupsOfHosts
from archiver.frontier.port import LEASE, Frontier, HostRow
from archiver.policy.leased_host import LeasedHost, PolitenessGroup, releasable
from archiver.policy.limits import GroupLimits
from archiver.policy.quotas import Quotas
from archiver.policy.schedule import Schedule

RENEW_EVERY = LEASE / 3
LAST_PART = LEASE / 6  # in which no request starts: one that starts just before it reaches the host in time
TRIES = 3  # crawlers that begin at the same time all find the same hosts

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
        self._leaving: set[str] = set()  # groups that another crawler may have as soon as nothing of them is under way
        self._share_left = 0  # hosts that we may lease before the next look at our share
        self.lost = False
        self.withdrawn = False  # we have left, until `begin`

    @property
    def shared(self) -> bool:
        """True if other crawlers share the frontier."""
        return bool(self._name)

    async def begin(self) -> None:
        """Become a crawler with no lease."""
        self._release_all()
        began = self._clock.now()
        await self._frontier.join(self._name)
        self.lost = self.withdrawn = False
        self._schedule.closes = began + LEASE - LAST_PART

    async def renew(self) -> None:
        """Renew all leases. If they are lost, no request starts before `begin`."""
        if self.withdrawn:
            return
        began = self._clock.now()
        if await self._frontier.renew():
            self._schedule.closes = began + LEASE - LAST_PART
        else:
            self._schedule.closes = -NEVER
            self.lost = True

    async def take_due(self, now: float, most: int, quotas: Quotas, groups: GroupsOfHosts) -> list[HostRow]:
        """Lease at most *most* hosts with a due URL; look again if other crawlers were faster with some of them."""
        taken: list[HostRow] = []
        for _ in range(TRIES if self.shared else 1):
            rows = await self._frontier.due_hosts(now, most - len(taken), tuple(self._schedule.leased()), quotas)
            new = await self.take(rows, await groups.limits(rows))
            taken += new
            if len(new) == len(rows) or len(taken) == most:
                break
        return taken

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
        await self._release(releasable(self._schedule.hosts(), now))

    def room(self, most: int) -> int:
        """Return how many more hosts we may lease: *most* in all, but no more than our share of those with URLs."""
        left = most - len(self._schedule)
        return min(left, self._share_left) if self._name else left

    async def share(self, most: int, waiting: Mapping[int, int]) -> None:
        """Compute our share of the hosts with URLs. While we have more, let whole groups finish and give them back.

        *waiting*: the number of URLs that wait on each of our hosts. *most*: hosts that a crawler may lease.
        """
        if self.withdrawn:
            return
        groups: dict[str, list[LeasedHost]] = {}
        for host in self._schedule.hosts():
            groups.setdefault(host.group.key, []).append(host)
        self._leaving &= groups.keys()
        staying = {key: hosts for key, hosts in groups.items() if key not in self._leaving}
        kept = sum(waiting.get(host.id, 0) > 0 for host in chain.from_iterable(staying.values()))
        share = await self._frontier.share(most, self._crawlers)
        for key, hosts in sorted(staying.items(), key=lambda each: sum(host.done for host in each[1])):
            busy = sum(waiting.get(host.id, 0) > 0 and not host.backing_off for host in hosts)
            if 0 < busy <= kept - share:
                kept -= busy
                self._leaving.add(key)
        self._share_left = share - kept
        for host in chain.from_iterable(groups[key] for key in self._leaving):
            host.leave()
        leaving = [host for hosts in groups.values() for host in hosts if host.leaving]
        at_work = {host.group.key for host in leaving if not host.at_rest}
        if gone := [host.id for host in leaving if host.at_rest and host.group.key not in at_work & self._leaving]:
            await self._frontier.settle((), (), self._schedule.take_unsaved())
            await self._release(gone)

    async def _release(self, hosts: Iterable[int]) -> None:
        """Release *hosts*, and give back the groups that have no other."""
        left: dict[str, PolitenessGroup] = {}
        for host_id in hosts:
            left |= {group.key: group for group in self._schedule.host(host_id).groups}
            self._schedule.release(host_id)
        if empty := [group for group in left.values() if not group.members]:
            self._leaving.difference_update(group.key for group in empty)  # one may come back before the next share
            await self._frontier.give_back(self._last_starts(empty))

    def _last_starts(self, groups: Iterable[PolitenessGroup]) -> dict[str, float]:
        now = self._clock.now()
        return {group.key: now - group.rate_limiter.last_start for group in groups}

    async def take_addresses(self) -> None:
        """Lease the groups by address that leased hosts have joined; hosts at addresses of other crawlers go to them.

        A host is asked only by a crawler that has both of its groups.
        """
        keys = set(self._schedule.groups.unleased)
        self._schedule.groups.unleased.clear()
        there = {host: host.address_group for host in tuple(self._schedule.hosts()) if host.address_group is not None}
        wanted = {host.id: group.key for host, group in there.items() if group.key in keys}
        ago = await self._frontier.lease(wanted) if wanted else {}
        now = self._clock.now()
        for host, group in there.items():
            if host.id not in wanted:
                continue
            if host.id not in ago:
                host.leave()
                continue
            if not group.leased and ago[host.id] < NEVER:
                group.rate_limiter.fill(now - ago[host.id])
            group.leased = True
            self._schedule.refresh(host.id)

    async def withdraw(self) -> None:
        """Give everything back, with nothing under way, so that no request starts before `begin`."""
        self.withdrawn = True
        await self._frontier.settle((), (), self._schedule.take_unsaved())
        await self.end()
        self._release_all()
        self._schedule.closes = -NEVER  # last, because a renewal may have been under way

    def _release_all(self) -> None:
        for host_id in tuple(self._schedule.leased()):
            self._schedule.release(host_id)

    async def end(self) -> None:
        """Give everything back."""
        groups = {group.key: group for host in self._schedule.hosts() for group in host.groups}
        await self._frontier.leave(self._last_starts(groups.values()))
