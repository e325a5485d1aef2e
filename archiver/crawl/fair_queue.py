"""Chooses the next visits for the slow writer: each host gets the same share of its time, whatever its pages cost.

This is fair queueing by start times. A host that has used less time goes first, and one that comes back after a pause
has saved nothing up. We measure costs, and expect the next visit of a host to cost what the latest ones did.
"""

from collections.abc import Sequence

from archiver.crawl.visit import Visited
from archiver.policy.schedule import Schedule

TURN = 0.25  # seconds of expected work in one batch, and so the time that another host waits
MOST = 64  # visits in one batch
UNKNOWN = 0.05  # seconds for a visit of a host that we know nothing about
DEAR = 0.1  # seconds for a visit; a host with dearer visits gives all of them to the slow writer


class FairShares:
    """The time that each host has used. A host is charged after the fact."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._now = 0.0  # when the latest turn began, on the clock of turns

    def cost(self, host: int) -> float:
        """Return the seconds that the next visit of *host* is expected to need."""
        cost = self._schedule.host(host).memory.visit_cost
        return UNKNOWN if cost is None else cost

    def is_dear(self, host: int) -> bool:
        """Return True if visits of *host* cost so much that no others should wait for them."""
        return (self._schedule.host(host).memory.visit_cost or 0.0) > DEAR

    def next(self, queue: list[Visited], alone: Sequence[bool]) -> list[Visited]:
        """Take the next batch out of *queue*; visits marked in *alone* become batches of their own."""
        batch: list[Visited] = []
        places = list(range(len(queue)))
        used = dict.fromkeys((visited.claim.host for visited in queue), 0.0)
        used = {host: max(self._now, self._schedule.host(host).memory.served_until) for host in used}
        expected = 0.0
        while places and expected < TURN and len(batch) < MOST:
            place = min(places, key=lambda place: used[queue[place].claim.host])
            if batch and alone[place]:
                break
            host = queue[place].claim.host
            if not batch:
                self._now = used[host]
            places.remove(place)
            batch.append(queue[place])
            used[host] += self.cost(host)
            expected += self.cost(host)
            if alone[place]:
                break
        queue[:] = [queue[place] for place in places]
        return batch

    def expect(self, host: int, seconds: float) -> None:
        """Expect the next visit of *host* to need so many *seconds*, if that is more than before."""
        memory = self._schedule.host(host).memory
        memory.visit_cost = max(seconds, memory.visit_cost or 0.0)

    def charge(self, host: int, seconds: float, *, slow: bool) -> None:
        """Charge *host* for a visit; *slow*: by the slow writer."""
        memory = self._schedule.host(host).memory
        memory.visit_cost = seconds if memory.visit_cost is None else 0.7 * memory.visit_cost + 0.3 * seconds
        if slow:
            memory.served_until = max(self._now, memory.served_until) + seconds
