"""The schedule: which URL goes next, and when there is nothing to do but wait. Pure: the time is an argument.

Hosts are leased from the frontier, URLs are not: each leased host has a window of its next URLs, refilled as it
empties. A URL that was handed out is `outstanding` until its settlement is committed, so a refill cannot hand it
out twice. Memory is bounded by the windows, whatever the size of the frontier.
Invariants: a host never has more than its concurrency active; no request is started before its host may be asked. URLs
are handed out at the pace at which they may start, so that nothing waits at the gate in another host's place.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from archiver.config.values import Rate
from archiver.model import Claim
from archiver.politeness import Pace


@dataclass(slots=True)
class Queue:
    """One leased host."""

    key: str
    pace: Pace
    parked: float  # not one request before
    window: list[tuple[int, int, Claim]] = field(default_factory=list)  # heap by priority, then age
    outstanding: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)  # outstanding at any time since the refill under way began
    active: int = 0
    started: int = 0  # of the active ones: requests that have begun
    promised: float = float("-inf")  # when one more may begin, if all that were handed out do
    done: int = 0
    waiting: int = 0  # in the frontier, as of the latest refill
    later: float = float("inf")  # when the frontier has more that is due
    stale: bool = True  # the frontier has something that the window has not


class Schedule:
    """Decides in single synchronous steps; nobody else keeps count of what runs."""

    def __init__(self, rate: Rate, concurrency: int, *, not_before: float = 0.0) -> None:
        self._rate = rate
        self._concurrency = concurrency
        self._not_before = not_before
        self._queues: dict[int, Queue] = {}
        self._ready: list[tuple[float, int, int]] = []  # heap of (when to look, turn, host); may hold outdated entries
        self._looked: dict[int, tuple[float, int]] = {}  # host: the entry of the heap that counts
        self._turn = 0  # of hosts that are due at the same time the one that waits longest goes first
        self._wanting: dict[int, None] = {}
        self.active = 0  # requests under way, over all hosts

    def __len__(self) -> int:
        return len(self._queues)

    def leased(self) -> Iterable[int]:
        """The hosts that are leased."""
        return self._queues.keys()

    def lease(self, host: int, key: str, parked: float) -> None:
        """Take *host* in; its window is still to be filled."""
        if host not in self._queues:
            pace = Pace(self._rate, not_before=self._not_before)
            self._queues[host] = Queue(key, pace, parked)
        self.refresh(host)

    def release(self, host: int) -> None:
        """*host* has nothing more to fetch."""
        del self._queues[host]
        self._looked.pop(host, None)
        self._wanting.pop(host, None)

    def queue(self, host: int) -> Queue | None:
        """The queue of *host*, to look at."""
        return self._queues.get(host)

    def queues(self) -> Iterable[Queue]:
        """Every leased host's queue, to look at."""
        return self._queues.values()

    def refresh(self, host: int) -> None:
        """The frontier may have something new for *host*."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.stale = True
            self._wanting[host] = None

    def slow_down(self, host: int, delay: float) -> None:
        """Keep at least *delay* seconds between two requests on *host*."""
        self._queues[host].pace.slow_down(delay)

    def park(self, host: int, until: float) -> None:
        """Not one request to *host* before *until*."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.parked = max(queue.parked, until)

    def wanting(self, most: int) -> list[int]:
        """Hosts whose window should be filled again, at most *most*."""
        return list(islice(self._wanting, most))

    def begin_fill(self, host: int) -> int:
        """The frontier is about to be asked about *host*; how many of the URLs in its answer are outstanding already.

        Whatever happens until `fill` counts: a URL that is settled meanwhile still waits in the frontier's answer.
        """
        queue = self._queues[host]
        self._wanting.pop(host, None)
        queue.stale = False
        queue.touched = set(queue.outstanding)
        return len(queue.touched)

    def fill(self, host: int, claims: Sequence[Claim], later: float, waiting: int, now: float) -> None:
        """The next URLs of *host* by priority and age; *later*: when more of it is due; *waiting*: how many in all."""
        queue = self._queues[host]
        queue.window = [(claim.priority, claim.id, claim) for claim in claims if claim.id not in queue.touched]
        heapq.heapify(queue.window)
        queue.touched.clear()
        queue.later, queue.waiting = later, waiting
        self._look(host, queue, now)

    def pick(self, now: float) -> Claim | None:
        """The next URL to fetch; it is active until `fetched` and outstanding until `settled`."""
        while self._ready and self._ready[0][0] <= now:
            due, turn, host = heapq.heappop(self._ready)
            queue = self._queues.get(host)
            if queue is None or self._looked.get(host) != (due, turn):
                continue
            del self._looked[host]
            if not queue.window:  # what was due later is due now
                self.refresh(host)
            elif self._due(queue, now) > now:
                self._look(host, queue, now)
            else:
                return self._hand_out(host, queue, now)
        return None

    def _hand_out(self, host: int, queue: Queue, now: float) -> Claim:
        claim = heapq.heappop(queue.window)[2]
        queue.active += 1
        self.active += 1
        gap = queue.pace.gap
        queue.promised = max(queue.promised, now - gap / 2) + gap
        queue.outstanding.add(claim.id)
        queue.touched.add(claim.id)
        queue.waiting -= 1
        if not queue.window:
            self.refresh(host)
        self._look(host, queue, now)
        return claim

    def wake(self) -> float:
        """When `pick` may have something again, as far as is known now."""
        return self._ready[0][0] if self._ready else float("inf")

    def admit(self, host: int, now: float) -> float:
        """*now*, and a request to *host* has started; or, if none may, the time at which to ask again."""
        queue = self._queues[host]
        earliest = max(queue.parked, queue.pace.next(now))
        if earliest > now:
            return earliest
        queue.started += 1
        return queue.pace.start(now)

    def tried(self, host: int, now: float) -> None:
        """*host* was asked for a connection in vain: for its rate that counts as a request."""
        queue = self._queues[host]
        queue.started += 1
        queue.pace.count(now)

    def fetched(self, host: int, now: float) -> None:
        """One exchange with *host* is over, or was never begun."""
        queue = self._queues[host]
        queue.active -= 1
        self.active -= 1
        if not queue.active:  # nothing is on its way to a start: the pace itself knows everything
            queue.started, queue.promised = 0, float("-inf")
        elif queue.started:
            queue.started = min(queue.started - 1, queue.active)
        else:
            queue.promised -= queue.pace.gap
        self._look(host, queue, now)

    def settled(self, host: int, claim_id: int) -> None:
        """The settlement of a URL is committed."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.outstanding.discard(claim_id)
            queue.done += 1

    def returned(self, host: int, claim_id: int) -> None:
        """A URL was handed out, and waits as it did."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.outstanding.discard(claim_id)

    def resting(self, now: float) -> list[int]:
        """Hosts that may be released: nothing to do now, and their pace need not be remembered."""
        return [
            host
            for host, queue in self._queues.items()
            if not (queue.window or queue.active or queue.outstanding or queue.stale) and queue.pace.forgettable(now)
        ]

    def _due(self, queue: Queue, now: float) -> float:
        """When the queue may hand out its next URL; infinity while it has none, or its concurrency is used up."""
        if queue.active >= self._concurrency:
            return float("inf")
        if not queue.window:
            return float("inf") if queue.stale else queue.later
        return max(queue.parked, queue.promised, queue.pace.next(now))

    def _look(self, host: int, queue: Queue, now: float) -> None:
        due, looked = self._due(queue, now), self._looked.get(host)
        if due < float("inf") and (looked is None or looked[0] != due):
            self._turn += 1
            self._looked[host] = (due, self._turn)
            heapq.heappush(self._ready, (due, self._turn, host))
