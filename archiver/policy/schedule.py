"""The schedule: which URL goes next, and when there is nothing to do but wait. Pure: the time is an argument.

Hosts are leased from the frontier, URLs are not: each leased host has a window of its next URLs, refilled as it
empties. A URL that was handed out is `outstanding` until its settlement is committed, so a refill cannot hand it
out twice. Memory is bounded by the windows, whatever the size of the frontier.
Hosts that are asked together are a circle (of one, as a rule): they share pace, concurrency, and what was learned.
Invariants: a circle never has more active than its concurrency; no request starts before its host may be asked. URLs
are handed out at the pace at which they may start, so that nothing waits at the gate in another host's place.
Hosts that wait for the same circle are looked at one by one when it opens: what many of them cost is what one costs.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from archiver.config.option_types import Rate
from archiver.model import Claim
from archiver.policy.host_queue import HostQueue, PolitenessGroup, PolitenessGroups, place_of
from archiver.policy.limits import UNLIMITED, GlobalLimits, Politeness, RateLimiter
from archiver.policy.throttle import UNTAUGHT, Throttle, ThrottleState

DOUBT = 1.0  # seconds after a probe in which it is found out what came of it: it is to be one request, not two
SPARE = 64  # circles without a member that may be remembered, and as many as there are hosts
BURST = 1.0  # seconds of the whole bandwidth that may be ahead of their time, so that a page's parts come together


class Schedule:
    """Decides in single synchronous steps; nobody else keeps count of what runs."""

    def __init__(
        self, rate: Rate, concurrency: int, *, first: int = 0, not_before: float = 0.0, whole: GlobalLimits = UNLIMITED
    ) -> None:
        self._terms = Politeness(rate, concurrency, first)  # of hosts that are leased without any of their own
        self._queues: dict[int, HostQueue] = {}
        self._circles = PolitenessGroups(not_before)
        self._ready: list[tuple[float, int, int, str]] = []  # heap of (when to look, turn, host, circle it waits for)
        self._looked: dict[int, tuple[float, int]] = {}  # host: the entry that counts of those without a circle
        self._set_back: dict[int, None] = {}  # hosts that wait for room for newcomers
        self._turn = 0
        self._now = not_before  # of the latest look
        self._wanting: dict[int, None] = {}
        self._lessons: dict[int, ThrottleState] = {}  # that the frontier does not have yet
        self._whole = RateLimiter(whole.rate, not_before=not_before)
        self._promised = float("-inf")  # as of a circle, for all of them
        self._bandwidth = whole.bandwidth
        self._paid = float("-inf")  # when all that was received will have had its time
        self.active = 0  # requests under way, over all hosts

    def __len__(self) -> int:
        return len(self._queues)

    def leased(self) -> Iterable[int]:
        """The hosts that are leased."""
        return self._queues.keys()

    def lease(
        self, host: int, key: str, parked: float, *, lesson: ThrottleState = UNTAUGHT, terms: Politeness | None = None
    ) -> None:
        """Take *host* in, with what it has taught us before; its window is still to be filled."""
        if host not in self._queues:
            self._turn += 1
            terms = terms or self._terms
            circle = self._circles.of(terms.circle or str(host), self._lessons.get(host, lesson), terms)
            circle.members += 1
            self._queues[host] = HostQueue(key, circle, terms, parked, self._turn)
        self.refresh(host)

    def reclass(self, host: int, terms: Politeness) -> None:
        """*host*, if it is leased, is asked by other *terms* from now on; what it was asked just now counts on."""
        queue = self._queues.get(host)
        if queue is None or queue.terms == terms:
            return
        before, queue.terms = queue.circle, terms
        queue.circle = self._circles.of(terms.circle or str(host), before.temper.lesson, terms)
        queue.circle.pace.inherit(before.pace)
        self._move(host, queue, before, queue.circle)
        place, queue.place = queue.place, None
        if place is not None:
            self._move(host, queue, place, None)
        self._note(host, queue, 0.0)

    def locate(self, host: int, address: str) -> bool:
        """*host* is asked at *address*; whether it shares that with other hosts, which was not known before."""
        queue = self._queues[host]
        at = place_of(address) if queue.terms.nearby else ""
        key = f"{queue.terms.nearby} {at}"
        if not at or (queue.place is not None and queue.place.key == key):
            return False
        before, queue.place = queue.place, self._circles.of(key, queue.circle.temper.lesson, queue.terms)
        self._move(host, queue, before, queue.place)
        return True

    def _move(self, host: int, queue: HostQueue, before: PolitenessGroup | None, after: PolitenessGroup | None) -> None:
        """*queue* leaves the circle *before* for *after*, with all that is under way."""
        if after is not None:
            after.members += 1
            after.active += queue.active
        if before is not None:
            before.active -= queue.active
            before.started = min(before.started, before.active)
            if queue.waits_for is before:
                self._note(host, queue, 0.0)
            self._leave(before)

    def _leave(self, circle: PolitenessGroup) -> None:
        """A member less; an empty circle is kept as long as its pace says something."""
        circle.members -= 1
        self._call(self._now, circle)
        if not circle.members:
            self._circles.forget(2 * len(self._queues) + SPARE, self._now)

    def release(self, host: int) -> None:
        """*host* has nothing more to fetch."""
        queue = self._queues.pop(host)
        self._looked.pop(host, None)
        self._wanting.pop(host, None)
        self._set_back.pop(host, None)  # or it takes the room of a newcomer
        for circle in queue.circles:
            self._leave(circle)

    def queue(self, host: int) -> HostQueue | None:
        """The queue of *host*, to look at."""
        return self._queues.get(host)

    def queues(self) -> Iterable[HostQueue]:
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
        self._queues[host].circle.pace.slow_down(delay)

    def park(self, host: int, until: float) -> None:
        """Not one request to *host* before *until*."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.parked = max(queue.parked, until)

    def rest(self, host: int, until: float) -> None:
        """As `park`, because what *host* has sent gives us so much work."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.rested = until
            queue.parked = max(queue.parked, until)

    def sleep(self, host: int, until: float) -> None:
        """*host* does not answer: one request at a time, and none before *until*."""
        self.park(host, until)
        if (queue := self._queues.get(host)) is not None:
            queue.asleep = True

    def awaken(self, host: int) -> None:
        """*host* has answered."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.asleep = False

    def hold(self, host: int, *, held: bool) -> None:
        """Whether a limit keeps what waits on *host* out of its window."""
        self._queues[host].held = held

    def answered(self, host: int, began: float, now: float, waited: float, *, page: bool) -> None:
        """*host* gave a good answer to a request that *began* then; its first byte came after *waited* seconds."""
        self._teach(host, lambda temper: temper.answered(began, now, waited, page=page))

    def strained(self, host: int, began: float, now: float, why: str, rest: float = 0.0) -> None:
        """*host* could not cope with a request that *began* then: *why* in a word; it wants *rest* seconds."""
        self._teach(host, lambda temper: temper.strained(began, now, why, rest))

    def relearn(self, host: int, lesson: ThrottleState) -> None:
        """Slowing *host* down since *lesson* was a mistake."""
        self._teach(host, lambda temper: temper.relearn(lesson))

    def _teach(self, host: int, lesson: Callable[[Throttle], None]) -> None:
        queue = self._queues[host]
        if queue.teach(lesson):
            self._lessons[host] = queue.circle.temper.lesson
        self._call(self._now, *queue.circles)

    def lessons(self) -> dict[int, ThrottleState]:
        """What hosts have taught us since this was asked last, for the frontier to keep."""
        lessons, self._lessons = self._lessons, {}
        return lessons

    def received(self, size: int, now: float) -> None:
        """*size* bytes have come: all hosts together wait until the bandwidth has had time for them."""
        if self._bandwidth:
            self._paid = max(self._paid, now) + size / self._bandwidth

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

    def clear(self, host: int) -> None:
        """What is in the window of *host* is not handed out any more; it is to be filled again."""
        queue = self._queues.get(host)
        if queue is not None:
            queue.window.clear()
            self.refresh(host)

    def pick(self, now: float, newcomers: float = float("inf")) -> Claim | None:
        """The next URL to fetch; it is active until `fetched` and outstanding until `settled`.

        With no room for *newcomers*, of a host that has shown that it answers quickly.
        """
        self._now = now
        for host in [*islice(self._set_back, max(0, int(min(newcomers, len(self._set_back)))))]:
            del self._set_back[host]
            if host in self._queues and host not in self._looked and self._queues[host].waits_for is None:
                self._note(host, self._queues[host], 0.0)
        if max(self._promised, self._open(now)) > now:
            return None
        for host, queue in self._called(now):
            if newcomers <= 0 and not queue.proven:
                self._set_back[host] = None
            elif not queue.window:  # what was due later is due now
                self.refresh(host)
            elif queue.due(now) <= now:
                return self._hand_out(host, queue, now)
            else:
                self._look(host, queue, now)
        return None

    def _called(self, now: float) -> Iterator[tuple[int, HostQueue]]:
        """Hosts to look at now. Of those that wait for a circle the next one comes only if the circle is still open."""
        while self._ready and self._ready[0][0] <= now:
            due, turn, host, key = heapq.heappop(self._ready)
            if key:
                circle = self._circles.get(key)
                if circle is None or circle.noted != (due, turn, host):
                    continue
                circle.noted = None
                if circle.opens(now) > now or (first := circle.first(self._queues)) is None:
                    self._call(now, circle)
                    continue
                heapq.heappop(circle.waiting)
                host = first[1]
                self._queues[host].waits_for = None
            elif self._looked.get(host) != (due, turn):
                continue
            else:
                del self._looked[host]
            queue = self._queues[host]
            yield host, queue
            self._call(now, *queue.circles)

    def _hand_out(self, host: int, queue: HostQueue, now: float) -> Claim:
        claim = heapq.heappop(queue.window)[2]
        self._turn += 1
        queue.turn = self._turn
        queue.active += 1
        self.active += 1
        for circle in queue.circles:
            circle.promise(now)
        gap = self._whole.gap
        self._promised = max(self._promised, now - gap / 2) + gap
        queue.outstanding.add(claim.id)
        queue.touched.add(claim.id)
        queue.waiting -= 1
        if not queue.window and queue.waiting > 0:
            self.refresh(host)
        self._look(host, queue, now)
        self._call(now, *queue.circles)
        return claim

    def wake(self) -> float:
        """When `pick` may have something again, as far as is known now."""
        first = self._ready[0][0] if self._ready else float("inf")
        return max(first, self._promised, self._paid - BURST, self._whole.next(0.0))

    def admit(self, host: int, now: float, address: str = "") -> float:
        """*now*, and a request to *host* has started; or, if none may, the time at which to ask again.

        *address*: the other end of the connection, which counts where the host shares its pace by address.
        """
        queue = self._queues[host]
        self.locate(host, address)
        earliest = max(queue.parked, queue.next(now), self._open(now))
        if earliest > now:
            return earliest
        self._count(queue, now)
        return now

    def _count(self, queue: HostQueue, now: float) -> None:
        """A request has started."""
        self._whole.count(now)
        for circle in queue.circles:
            circle.started += 1
            circle.pace.count(now)

    def tried(self, host: int, now: float) -> None:
        """*host* was asked for a connection in vain: for its rate that counts as a request."""
        self._count(self._queues[host], now)

    def fetched(self, host: int, now: float) -> None:
        """One exchange with *host* is over, or was never begun."""
        queue = self._queues[host]
        queue.active -= 1
        self.active -= 1
        if not self.active:
            self._promised = float("-inf")
        elif not queue.circle.started:
            self._promised -= self._whole.gap
        for circle in queue.circles:
            circle.over()
        if queue.asleep:
            queue.parked = max(queue.parked, now + DOUBT)
        self._look(host, queue, now)
        self._call(now, *queue.circles)

    def settled(self, host: int, claim_id: int) -> None:
        """The settlement of a URL is committed."""
        if host in self._queues:
            self._queues[host].done += 1
            self.returned(host, claim_id)

    def returned(self, host: int, claim_id: int) -> None:
        """A URL was handed out, and waits as it did."""
        queue = self._queues.get(host)
        if queue is None:
            return
        queue.outstanding.discard(claim_id)

    def resting(self, now: float) -> list[int]:
        """Hosts that may be released: nothing to do now, and their pace need not be remembered."""
        hosts, gone = [], Counter[str]()
        for host, queue in self._queues.items():
            circle = queue.circle
            if queue.idle and (circle.members - gone[circle.key] > 1 or circle.pace.forgettable(now)):
                hosts.append(host)
                gone[circle.key] += 1
        return hosts

    def _open(self, now: float) -> float:
        """When all hosts together may be asked again."""
        return max(self._whole.next(now), self._paid - BURST)

    def _look(self, host: int, queue: HostQueue, now: float) -> None:
        """Note when to look at *host* again: when its time has come, or the circle has opened that it waits for."""
        own = queue.own
        if own == float("inf"):
            queue.waits_for = None
            return
        opens, circle = queue.last(now) if queue.window else (now, queue.circle)
        if opens <= own or (circle.members == 1 and not circle.full):
            due = max(own, opens)
            if self._looked.get(host) != (due, queue.turn):
                self._note(host, queue, due)
        elif queue.waits_for is not circle:
            self._looked.pop(host, None)
            queue.waits_for = circle
            heapq.heappush(circle.waiting, (queue.turn, host))
            self._call(now, circle)

    def _note(self, host: int, queue: HostQueue, due: float) -> None:
        queue.waits_for = None
        self._looked[host] = (due, queue.turn)
        heapq.heappush(self._ready, (due, queue.turn, host, ""))

    def _call(self, now: float, *circles: PolitenessGroup) -> None:
        """Note when the first of those that wait for each of *circles* is to be looked at."""
        for circle in circles:
            first, opens = circle.first(self._queues), circle.opens(now)
            if first is None or opens == float("inf"):
                continue
            entry = (opens, *first)
            if circle.noted is None or entry < circle.noted:
                circle.noted = entry
                heapq.heappush(self._ready, (*entry, circle.key))
