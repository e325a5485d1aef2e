"""Makes the requests of a crawl: each waits for its turn, goes out, and teaches the throttle of its host.

At most `--concurrency` requests count at once. A request that gets next to nothing for a second no longer counts,
because a name server, a handshake or a body is slow. There is room for `--slow-concurrency` of that kind, and no host
gets more than its share of it. So slow hosts do not hold up the others, and no answer is cut because of another one. As
soon as half of that room is used, hosts that have not answered quickly yet get at most half of the requests that count.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from archiver.clock import Clock
from archiver.config.settings import LimitSettings
from archiver.crawl.recrawl import EarlierLookups
from archiver.crawl.session import Session
from archiver.crawl.visit import Visited
from archiver.errors import Failure, FetchError, ShortageError
from archiver.extract.exchange import PAGES, is_robots
from archiver.fetch.client import Fetcher
from archiver.http.auth import ConnectionLogin
from archiver.http.form_post import FormPost
from archiver.model import Claim, Cookie, Exchange, Truncation
from archiver.policy.retry import OVERLOADED, rest_after
from archiver.policy.schedule import Schedule
from archiver.storage import allowed

NOT_MODIFIED = 304  # only in answer to a request with conditions
ERRORS = 400  # the first status that says nothing about how long an answer needs
RELIEF = 1.0  # seconds without a request to a host after this machine ran out of files or sockets
WATCH_EVERY = 0.25  # seconds between two looks at which requests are slow
SLOW_AFTER = 1.0  # seconds in which a request counts whatever comes …
QUICK = 16 << 10  # … and in each further one if so many bytes a second come
FILES_SHARE = 4  # at most such a part of the files that may be open is for slow requests …
MOST_FILES = 1 << 20  # … also without a limit
NEVER = float("inf")
SHARE = 4  # one host takes at most such a part of the room for slow requests

log = logging.getLogger(__name__)

Task = asyncio.Task[None]


@dataclass(slots=True)
class ActiveRequest:
    """One request, from the look-up of its host to its last byte."""

    host: int
    since: float  # when it was looked at last, and had received so many bytes
    received: int = 0
    rules: bool = False  # it leads to a robots.txt
    at_gate: bool = False  # it waits for its turn, so the host is not slow
    unsent: bool = True
    slow: bool = False
    kept_out: bool = False  # it is slow, and counts because there was no room for one more slow one
    begun: bool = False  # its task runs
    login: ConnectionLogin = field(default_factory=ConnectionLogin)  # of the connection it was sent on


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The numbers of requests that may run at once."""

    quick: int
    slow: int

    @classmethod
    def of(cls, limits: LimitSettings) -> "RequestLimits":
        """Return the numbers in *limits*, if the system permits this process so many connections."""
        files = min(allowed(), MOST_FILES) // FILES_SHARE
        return cls(limits.concurrency, min(limits.slow_concurrency, int(files)))


class _Held(Exception):  # noqa: N818  an answer of the gate, not an error
    """The request must not start after all; its URL stays where it is."""


class CountedRequests:
    """The requests that count: all but the slow ones. Hosts are proven or not; the number of both changes at once."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.active: dict[Task, ActiveRequest] = {}
        self._of: Counter[int] = Counter()  # by host
        self._unproven_hosts: set[int] = set()
        self.unproven = 0  # requests to hosts that have not answered quickly yet

    def add(self, task: Task, request: ActiveRequest) -> None:
        """Count *request*, which *task* makes."""
        host = request.host
        if host not in self._of and not self._schedule.host(host).proven:
            self._unproven_hosts.add(host)
        self.active[task] = request
        self._of[host] += 1
        self.unproven += host in self._unproven_hosts

    def remove(self, task: Task) -> None:
        """Do not count the request of *task* any more, if it counts."""
        request = self.active.pop(task, None)
        if request is None:
            return
        host = request.host
        self.unproven -= host in self._unproven_hosts
        self._of[host] -= 1
        if not self._of[host]:
            del self._of[host]
            self._unproven_hosts.discard(host)

    def prove(self, host: int, *, proven: bool) -> None:
        """Note whether *host* answers quickly."""
        self._schedule.host(host).proven = proven
        if proven and host in self._unproven_hosts:
            self._unproven_hosts.remove(host)
            self.unproven -= self._of[host]
        elif not proven and host in self._of and host not in self._unproven_hosts:
            self._unproven_hosts.add(host)
            self.unproven += self._of[host]


class Requests:
    """Makes requests, *most* of them at once, and counts them."""

    def __init__(
        self,
        fetcher: Fetcher,
        schedule: Schedule,
        earlier: EarlierLookups | None,
        session: Session,
        clock: Clock,
        most: RequestLimits,
    ) -> None:
        self._fetcher = fetcher
        self._schedule = schedule
        self._earlier = earlier
        self._session = session
        self._clock = clock
        self._most = most.quick  # fewer if this machine cannot handle so many …
        self._lowered = float("-inf")  # … as was seen then
        self._most_slow = most.slow
        self._under_way: dict[Task, ActiveRequest] = {}
        self._counted = CountedRequests(schedule)
        self._slow = 0
        self._slow_of: Counter[int] = Counter()  # by host
        self._looked = 0.0
        self.stopped = False  # no request starts any more

    def take(self, most: RequestLimits) -> None:
        """Make so many requests at once from now on. Those that wait for their start give way, and come back."""
        self._most, self._most_slow = most.quick, most.slow
        _cancel(task for task, each in self._under_way.items() if each.unsent and each.at_gate)

    def full(self, visits: int, uncommitted: int) -> bool:
        """Return True if no more may be handed out while so many *visits* are under way and others *uncommitted*.

        A crash repeats both. As many may wait for their commit as may be under way: with fewer, nothing is under way
        during a commit.
        """
        return visits - self._slow >= self._most or visits - self._slow + uncommitted >= 2 * self._most

    def newcomers(self) -> float:
        """Return how many more requests may go to hosts that have not answered quickly yet; infinity: any number."""
        if self._slow < min(self._most, self._most_slow) / 2:
            return math.inf
        return max(1, self._most // 2) - self._counted.unproven

    def look(self, now: float) -> bool:
        """Find the requests that are slow; return True if that makes room for others."""
        if now < self._looked + WATCH_EVERY:
            return False
        self._looked, before = now, self._slow
        for task, each in tuple(self._counted.active.items()):
            if not each.begun or each.at_gate or now < each.since + SLOW_AFTER:
                continue
            if each.kept_out and self._slow >= self._most_slow:
                continue  # thousands may be: nothing has changed for them
            received = self._fetcher.progress(task).received
            if received - each.received < QUICK * (now - each.since):
                self._set_slow(task, each)
            else:
                each.since, each.received, each.kept_out = now, received, False
        return self._slow > before

    def _set_slow(self, task: Task, each: ActiveRequest) -> None:
        """Stop counting a request, if there is room for one more slow one."""
        self._counted.prove(each.host, proven=False)
        each.kept_out = True
        if self._slow < self._most_slow and self._slow_of[each.host] < max(1, self._most_slow // SHARE):
            each.slow = True
            self._counted.remove(task)
            self._slow += 1
            self._slow_of[each.host] += 1

    @property
    def any(self) -> bool:
        """True if any request is under way."""
        return bool(self._under_way)

    def cut(self) -> None:
        """Cancel all requests."""
        _cancel(task for task, each in self._under_way.items() if each.begun)

    def call_back(self) -> None:
        """Cancel requests that are not sent yet."""
        _cancel(task for task, each in self._under_way.items() if each.unsent and each.begun)

    def expect(self, task: Task, claim: Claim) -> None:
        """Count *task*, which will make the request for *claim*, from now on: it runs only when others pause."""
        self._expected(task, claim)
        task.add_done_callback(self._forget)

    def _expected(self, task: Task, claim: Claim) -> ActiveRequest:
        here = self._under_way[task] = ActiveRequest(claim.host, self._clock.now(), rules=claim.priority < 0)
        self._counted.add(task, here)
        return here

    async def make(self, claim: Claim) -> Visited | None:
        """Make the request for *claim*; return None if it was held back or cut off, so that its URL stays queued."""
        with self._entered(claim) as (task, here):
            try:
                return await self._made(claim, task, here)
            except FetchError as error:
                if here.unsent:  # no request began, but we have tried to connect
                    self._schedule.count_attempt(claim.host, self._clock.now())
                return Visited(claim, error=error)
            except ShortageError as error:
                self._lower_limits(claim.host, error)
                return None
            except (_Held, asyncio.CancelledError):
                return None

    @contextmanager
    def _entered(self, claim: Claim) -> Iterator[tuple[Task, ActiveRequest]]:
        task = asyncio.current_task()
        assert task is not None
        here = self._under_way.get(task)
        if here is None:
            here = self._expected(task, claim)
        here.begun, here.since = True, self._clock.now()
        try:
            yield task, here
        finally:
            self._forget(task)
            if here.slow:
                self._slow -= 1
                self._slow_of[here.host] -= 1
                if not self._slow_of[here.host]:
                    del self._slow_of[here.host]

    def _forget(self, task: Task) -> None:
        self._under_way.pop(task, None)
        self._counted.remove(task)

    async def _made(self, claim: Claim, task: Task, here: ActiveRequest) -> Visited | None:
        if self._earlier is not None and (left_out := await self._earlier.left_out(claim, self._clock.now())):
            return left_out
        if self.stopped or not await self._may_approach(claim):
            return None
        sent, form = _sent(claim)
        gate = partial(self._gate, task, here, (sent, form))
        stored = await self._earlier.version(claim) if self._earlier is not None and claim.ask is None else None
        conditions = stored.conditions if stored is not None else b""
        needed, language = is_robots(claim), claim.language
        exchange = await self._fetcher.fetch(
            sent.url, gate, needed=needed, conditions=conditions, form=form, language=language
        )
        if language:
            exchange = replace(exchange, language=language)
        if claim.ask is not None:
            exchange = replace(exchange, notes=(*exchange.notes, *claim.ask.notes(exchange.request)))
        if not here.slow:
            self._counted.prove(claim.host, proven=True)
        exchange = self._session.answered(sent, exchange, here.login)
        cookies = self._session.received(sent, exchange)
        unmodified = stored if exchange.framing.status == NOT_MODIFIED else None
        if self._earlier is not None and unmodified is not None and unmodified.contradicted(exchange.framing):
            return Visited(claim, self._earlier.doubted(claim, exchange), cookies=cookies)
        return Visited(claim, exchange, unmodified=unmodified, cookies=cookies)

    async def exchange(self, claim: Claim, form: FormPost | None = None) -> tuple[Exchange, tuple[Cookie, ...]] | None:
        """Make a request of a login, and return the answer and the cookies that it set.

        None if it was held back or cut off. Raises `FetchError`.
        """
        self._schedule.occupy(claim.host)
        try:
            with self._entered(claim) as (task, here):
                if self.stopped:
                    return None
                gate = partial(self._gate, task, here, (claim, form))
                exchange = await self._fetcher.fetch(claim.url, gate, needed=True, form=form)
                exchange = self._session.answered(claim, exchange, here.login)
                return exchange, self._session.received(claim, exchange)
        except ShortageError as error:
            self._lower_limits(claim.host, error)
            return None
        except (_Held, asyncio.CancelledError):
            return None
        finally:
            self._schedule.fetched(claim.host, self._clock.now())

    async def _may_approach(self, claim: Claim) -> bool:
        """Return False if hosts that share its address, which we look up now, must go first."""
        host = self._schedule.host(claim.host)
        if not host.limits.by_address:
            return True
        found = self._schedule.locate(host.id, await self._fetcher.locate(claim.url))
        return not found or host.next(now := self._clock.now()) <= now

    async def _gate(
        self,
        task: Task,
        here: ActiveRequest,
        asked: tuple[Claim, FormPost | None],
        *,
        verified: bool,
        login: ConnectionLogin,
    ) -> bytes:
        """Wait until the host may be asked. Called at the very moment when the bytes of a request are to go out."""
        here.unsent, here.at_gate = True, True  # again, if a kept connection had died
        host = self._schedule.host(here.host)
        while not (self.stopped or host.memory.blocked) and (here.rules or not host.memory.held):
            now = self._clock.now()
            due = self._schedule.admit(here.host, now, self._fetcher.progress(task).address)
            if due <= now:
                here.unsent, here.at_gate, here.since = False, False, now
                here.login = login
                return self._session.lines(*asked, now, verified=verified, login=login)
            if host.earliest > now or due == NEVER:
                break
            await asyncio.sleep(due - now)
        raise _Held

    def _lower_limits(self, host: int, shortage: ShortageError) -> None:
        """Go on with fewer requests at once; if several fail together only the first counts."""
        now = self._clock.now()
        self._schedule.host(host).wait(now + RELIEF)
        if now >= self._lowered + RELIEF and (self._most > 1 or self._most_slow):
            self._lowered = now
            self._most = max(1, self._most // 2)
            self._most_slow //= 2
            log.warning("%s; from now on at most %d requests at once", shortage, self._most)

    def learn(self, visited: Visited, began: float) -> None:
        """Let the throttle of the host learn from an answer at once, without waiting for the commit.

        A host that never answered, or fails every time, is not throttled but backed off from: see `HostHealth`.
        """
        host, exchange, now = visited.claim.host, visited.exchange, self._clock.now()
        if visited.error is not None and visited.error.failure is Failure.TIMEOUT:
            self._schedule.overloaded(host, began, now, "timeout")
        if exchange is None:
            return
        self._schedule.received(exchange.response.length, now)
        self._schedule.host(host).receive(exchange.response.length, now - exchange.duration)
        status, began = exchange.framing.status, now - exchange.duration
        if rest := rest_after(exchange.framing, visited.claim.tries, now):
            self._schedule.host(host).wait(now + rest)
        if status in OVERLOADED:
            self._schedule.overloaded(host, began, now, str(status), rest)
        elif exchange.truncated is Truncation.TIME:
            self._schedule.overloaded(host, began, now, "timeout")
        elif status < ERRORS:
            page = exchange.framing.media_type in PAGES
            self._schedule.answered(host, began, now, exchange.time_to_first_byte or exchange.duration, page=page)


def _sent(claim: Claim) -> tuple[Claim, FormPost | None]:
    """Return *claim* with the URL that is requested, and what is sent with it if it is a POST."""
    if claim.ask is None or not claim.ask.posts:
        return claim, None
    ask, page = claim.ask, claim.via or claim.target
    form = FormPost(ask.body, ask.content_type, page, secret=False)
    return replace(claim, url=claim.target, referrer=""), form


def _cancel(tasks: Iterable[Task]) -> None:
    for task in tuple(tasks):
        task.cancel()
