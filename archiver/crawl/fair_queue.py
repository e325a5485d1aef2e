"""Whose visit is next in the slow lane: each host gets the same share of its time, whatever its pages cost.

Fair queueing by start times: a host that has used less time goes first, and one that comes back after a pause has
saved nothing up. Costs are measured, and the next visit of a host is expected to cost what the latest ones did.
"""

from collections.abc import Sequence

from archiver.crawl.visit import Visited

TURN = 0.25  # seconds of expected work in one batch: so long another host waits before its turn
MOST = 64  # visits in one batch
UNKNOWN = 0.05  # seconds for a visit of a host of which nothing is known
DEAR = 0.1  # seconds for a visit, from which on a host belongs in the slow lane with all of its visits
_KNOWN = 10_000  # hosts of which the costs are remembered


class FairShares:
    """Time used by host. A host is charged after the fact."""

    def __init__(self) -> None:
        self._costs: dict[int, float] = {}  # expected, for one visit
        self._used: dict[int, float] = {}  # the time at which the latest turn of a host ended, by the clock of turns
        self._now = 0.0  # the time at which the latest turn began, by the same clock

    def cost(self, host: int) -> float:
        """Seconds that the next visit of *host* is expected to need."""
        return self._costs.get(host, UNKNOWN)

    def is_dear(self, host: int) -> bool:
        """Whether visits of *host* cost so much that no others should wait for them."""
        return self._costs.get(host, 0.0) > DEAR

    def next(self, queue: list[Visited], alone: Sequence[bool]) -> list[Visited]:
        """Take the next batch out of *queue*; a visit of which *alone* says so is a batch of its own."""
        batch: list[Visited] = []
        places = list(range(len(queue)))
        used = dict.fromkeys((visited.claim.host for visited in queue), 0.0)
        used = {host: max(self._now, self._used.get(host, 0.0)) for host in used}
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
        """The next visit of *host* is thought to need so long, more than those before."""
        self._costs[host] = max(seconds, self._costs.get(host, 0.0))

    def charge(self, host: int, seconds: float, *, slow: bool) -> None:
        """A visit of *host* took so long; *slow*: by the slow writer."""
        known = self._costs.get(host)
        self._costs[host] = seconds if known is None else 0.7 * known + 0.3 * seconds
        if slow:
            self._used[host] = max(self._now, self._used.get(host, 0.0)) + seconds
        if len(self._costs) > _KNOWN:
            self._costs = {host: cost for host, cost in self._costs.items() if cost > DEAR}
            self._used = {host: used for host, used in self._used.items() if used > self._now}
