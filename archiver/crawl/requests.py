"""The requests of a crawl that are under way: each waits for its turn, is made, and teaches how its host is asked.

At most `--concurrency` of them count at once. One that gets next to nothing for a second, because a name server, a
handshake or a body is slow, counts no longer: there is room for `--slow-concurrency` of that kind, of which no host has
more than its share. So hosts that drip do not hold up the others, and no answer is cut because of another one. As soon
as half as many are slow, hosts that have not answered quickly yet get half of the requests that count at most.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from archiver.clock import Clock
from archiver.config.settings import LimitSettings
from archiver.crawl.recrawl import EarlierLookups
from archiver.crawl.visit import Visited
from archiver.errors import Failure, FetchError, ShortageError
from archiver.extract.exchange import PAGES, is_robots
from archiver.fetch.client import Fetcher
from archiver.model import Claim, Truncation
from archiver.policy.retry import OVERLOADED, rest_after
from archiver.policy.schedule import Schedule
from archiver.storage import allowed

NOT_MODIFIED = 304  # to a request with conditions; nobody else is told so
ERRORS = 400  # the first status that says nothing of how long an answer needs
RELIEF = 1.0  # seconds without a request to a host for which this machine had nothing left to open
LOOK_EVERY = 0.25  # seconds between two looks at who is slow
SLOW_AFTER = 1.0  # seconds in which a request counts whatever comes …
QUICK = 16 << 10  # … and in each further one if so many bytes a second come
FILES_SHARE = 4  # of the files that may be open, at most such a part is for slow requests …
MOST_FILES = 1 << 20  # … also where there is no limit
SHARE = 4  # of the room for slow requests one host takes at most such a part

log = logging.getLogger(__name__)

Task = asyncio.Task[None]


@dataclass(slots=True)
class ActiveRequest:
    """One request, from the look-up of its host to its last byte."""

    host: int
    since: float  # when it was looked at last, and had received so many bytes
    received: int = 0
    rules: bool = False  # it leads to a robots.txt
    at_gate: bool = False  # it waits for its turn, which is not its host's doing
    unsent: bool = True
    slow: bool = False
    begun: bool = False  # its task runs


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How many requests there may be at once."""

    quick: int
    slow: int

    @classmethod
    def of(cls, limits: LimitSettings) -> "RequestLimits":
        """As the settings say, where the system lets this process have so many connections."""
        files = min(allowed(), MOST_FILES) // FILES_SHARE
        return cls(limits.concurrency, min(limits.slow_concurrency, int(files)))


class _Held(Exception):  # noqa: N818  an answer of the gate, not an error
    """The request must not start after all; its URL stays where it is."""


class Requests:
    """Makes them, and keeps count; *most* of them at once."""

    def __init__(
        self, fetcher: Fetcher, schedule: Schedule, recall: EarlierLookups, clock: Clock, most: RequestLimits
    ) -> None:
        self._fetcher = fetcher
        self._schedule = schedule
        self._recall = recall
        self._clock = clock
        self._most = most.quick  # fewer where this machine cannot carry so many …
        self._lowered = float("-inf")  # … as was seen then
        self._most_slow = most.slow
        self._under_way: dict[Task, ActiveRequest] = {}
        self._slow = 0
        self._looked = 0.0
        self.stopped = False  # no request starts any more

    @property
    def slow(self) -> int:
        """How many do not count because they are slow."""
        return self._slow

    def full(self, visits: int) -> bool:
        """Whether no more may be handed out, with so many *visits* that are not committed."""
        return visits - self._slow >= self._most

    def newcomers(self) -> int:
        """Return how many more may go to hosts that have not answered quickly yet."""
        if self._slow < min(self._most, self._most_slow) / 2:
            return self._most
        unproven = sum(not each.slow and not self._proven(each.host) for each in self._under_way.values())
        return max(1, self._most // 2) - unproven

    def look(self, now: float) -> bool:
        """See which of them are slow; whether there is room for others because of that."""
        if now < self._looked + LOOK_EVERY:
            return False
        self._looked, before = now, self._slow
        for task, each in self._under_way.items():
            if each.slow or each.at_gate or now < each.since + SLOW_AFTER:
                continue
            received = self._fetcher.progress(task).received
            if received - each.received < QUICK * (now - each.since):
                self._set_slow(each)
            else:
                each.since, each.received = now, received
        return self._slow > before

    def _set_slow(self, each: ActiveRequest) -> None:
        """It does not count any more, if there is room for it."""
        queue = self._schedule.queue(each.host)
        if queue is not None:
            queue.proven = False
        same = sum(other.slow and other.host == each.host for other in self._under_way.values())
        if self._slow < self._most_slow and same < max(1, self._most_slow // SHARE):
            each.slow = True
            self._slow += 1

    def _proven(self, host: int) -> bool:
        queue = self._schedule.queue(host)
        return queue is not None and queue.proven

    def _paused(self, host: int) -> bool:
        """Whether *host* refuses us, so that nothing is asked of it in this run."""
        queue = self._schedule.queue(host)
        return queue is not None and queue.paused

    @property
    def any(self) -> bool:
        """Whether any request is under way."""
        return bool(self._under_way)

    def cut(self) -> None:
        """Cut off all that are under way."""
        _cancel(task for task, each in self._under_way.items() if each.begun)

    def call_back(self) -> None:
        """Call those back that are not out yet."""
        _cancel(task for task, each in self._under_way.items() if each.unsent and each.begun)

    def expect(self, task: Task, claim: Claim) -> None:
        """Count *task*, which will make the request for *claim*, from now on: it runs only when others pause."""
        self._under_way[task] = ActiveRequest(claim.host, self._clock.now(), rules=claim.priority < 0)
        task.add_done_callback(lambda done: self._under_way.pop(done, None))

    async def make(self, claim: Claim) -> Visited | None:
        """Return what came of the request for *claim*; None where it was held back or cut off: its URL waits on."""
        with self._entered(claim) as (task, here):
            try:
                return await self._made(claim, task, here)
            except FetchError as error:
                if here.unsent:  # no request began, but its host was knocked at
                    self._schedule.tried(claim.host, self._clock.now())
                return Visited(claim, error=error)
            except ShortageError as error:
                self._make_do(claim.host, error)
                return None
            except (_Held, asyncio.CancelledError):
                return None

    @contextmanager
    def _entered(self, claim: Claim) -> Iterator[tuple[Task, ActiveRequest]]:
        task = asyncio.current_task()
        assert task is not None
        here = self._under_way[task] = ActiveRequest(
            claim.host, self._clock.now(), rules=claim.priority < 0, begun=True
        )
        try:
            yield task, here
        finally:
            del self._under_way[task]
            self._slow -= here.slow

    async def _made(self, claim: Claim, task: Task, here: ActiveRequest) -> Visited | None:
        if self.stopped or not await self._may_approach(claim):
            return None
        gate = partial(self._gate, task, here)
        stored = await self._recall.version(claim)
        conditions = stored.conditions if stored is not None else b""
        exchange = await self._fetcher.fetch(claim.url, gate, needed=is_robots(claim), conditions=conditions)
        queue = self._schedule.queue(claim.host)
        if queue is not None and not here.slow:
            queue.proven = True
        unmodified = stored if exchange.framing.status == NOT_MODIFIED else None
        if unmodified is not None and unmodified.contradicted(exchange.framing):
            return Visited(claim, self._recall.doubted(claim, exchange))
        return Visited(claim, exchange, unmodified=unmodified)

    async def _may_approach(self, claim: Claim) -> bool:
        """Whether to connect to the host of *claim* now; not where others at its address, just found, go first."""
        queue = self._schedule.queue(claim.host)
        if queue is None or not queue.terms.nearby:
            return True
        found = self._schedule.locate(claim.host, await self._fetcher.locate(claim.url))
        return not found or queue.next(now := self._clock.now()) <= now

    async def _gate(self, task: Task, here: ActiveRequest) -> None:
        """The gate of every request: passes when its host may be asked, at the very moment its bytes go out."""
        here.unsent, here.at_gate = True, True  # again, where a kept connection had died
        while not self.stopped and (here.rules or not self._paused(here.host)):
            now = self._clock.now()
            due = self._schedule.admit(here.host, now, self._fetcher.progress(task).address)
            if due <= now:
                here.unsent, here.at_gate, here.since = False, False, now
                return
            queue = self._schedule.queue(here.host)
            if queue is None or queue.parked > now:
                break
            await asyncio.sleep(due - now)
        raise _Held

    def _make_do(self, host: int, shortage: ShortageError) -> None:
        """Go on with fewer requests at once; of those that fail together only the first counts."""
        now = self._clock.now()
        self._schedule.park(host, now + RELIEF)
        if now >= self._lowered + RELIEF and (self._most > 1 or self._most_slow):
            self._lowered = now
            self._most = max(1, self._most // 2)
            self._most_slow //= 2
            log.warning("%s; from now on at most %d requests at once", shortage, self._most)

    def heed(self, visited: Visited, began: float) -> None:
        """What an answer, or its absence, says about how its host wants to be asked: at once, not when it is committed.

        A host that never answered, or all of whose requests fail, is not asked more gently but less: see `network`.
        """
        host, exchange, now = visited.claim.host, visited.exchange, self._clock.now()
        if visited.error is not None and visited.error.failure is Failure.TIMEOUT:
            self._schedule.strained(host, began, now, "timeout")
        if exchange is None:
            return
        self._schedule.received(exchange.response.length, now)
        status, began = exchange.framing.status, now - exchange.duration
        if rest := rest_after(exchange.framing, visited.claim.tries, now):
            self._schedule.park(host, now + rest)
        if status in OVERLOADED:
            self._schedule.strained(host, began, now, str(status), rest)
        elif exchange.truncated is Truncation.TIME:
            self._schedule.strained(host, began, now, "timeout")
        elif status < ERRORS:
            page = exchange.framing.media_type in PAGES
            self._schedule.answered(host, began, now, exchange.time_to_first_byte or exchange.duration, page=page)


def _cancel(tasks: Iterable[Task]) -> None:
    for task in tuple(tasks):
        task.cancel()
