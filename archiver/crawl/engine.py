"""The engine: runs one crawl from its first claim to its end.

A planner hands out claims. Each visit is a task of its own, and two writers commit what the visits bring. The crawl
ends when nothing waits and nothing runs, or when a limit is reached or someone stops it. Then no request starts any
more, and what is under way finishes. An error of storage or a bug ends everything at once; recovery does the rest.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from archiver.clock import Clock
from archiver.config.settings import SettingsByHost
from archiver.crawl.batch_writer import BatchWriter
from archiver.crawl.budget import Budget
from archiver.crawl.commit import CommittedBatch, Committer
from archiver.crawl.dispatcher import NEVER, Dispatcher
from archiver.crawl.host_health import BlockedHosts, HostHealth
from archiver.crawl.leases import RENEW_EVERY, Leases
from archiver.crawl.login.logins import Logins
from archiver.crawl.orders.low_disk import LowDisk
from archiver.crawl.outside_changes import OutsideChanges
from archiver.crawl.recrawl import UndiscoveredUrls
from archiver.crawl.requests import WATCH_EVERY, Requests
from archiver.crawl.stats import CrawlCounts, CrawlEnding, Phase, Snapshot, recorded
from archiver.crawl.visit import Visited
from archiver.errors import Failure, first_error
from archiver.fetch.client import Fetcher
from archiver.frontier.orders.table import LOOK_EVERY
from archiver.frontier.port import Frontier
from archiver.http.head import LARGE_HEAD
from archiver.model import Claim, ExitCode
from archiver.policy.schedule import Schedule

if TYPE_CHECKING:
    from archiver.crawl.views.stage import PageViews

REST_AFTER_HEAD = 5.0  # seconds for each 64 KiB of a large head: to read and to pack it takes time from all hosts
LONGEST_NAP = 30.0  # seconds until the planner looks again even if nothing calls it
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a crawl."""

    frontier: Frontier
    schedule: Schedule
    dispatcher: Dispatcher
    fetcher: Fetcher
    requests: Requests
    committer: Committer
    low_disk: LowDisk
    health: HostHealth
    blocked: BlockedHosts
    changes: OutsideChanges
    logins: Logins
    leases: Leases
    budget: Budget
    undiscovered: UndiscoveredUrls | None = None
    views: "PageViews | None" = None


class Crawl:
    """A crawl that `open_crawl` has put together; `run` it once."""

    def __init__(self, parts: Parts, settings: SettingsByHost, clock: Clock) -> None:
        self._frontier, self._schedule, self._dispatcher = parts.frontier, parts.schedule, parts.dispatcher
        self._fetcher, self._requests, self._committer = parts.fetcher, parts.requests, parts.committer
        self._low_disk = parts.low_disk
        self._health, self._blocked = parts.health, parts.blocked
        self._changes = parts.changes
        self._logins = parts.logins
        self._leases, self._undiscovered = parts.leases, parts.undiscovered
        self._views = parts.views
        self._settings, self._clock, self._began = settings, clock, clock.now()
        self._counts = CrawlCounts(self._began)
        self._news = asyncio.Event()
        self._visits: set[asyncio.Task[None]] = set()
        self._probe: asyncio.Task[None] | None = None  # the only visit that may run while the network is lost
        self._stop: CrawlEnding | None = None  # why no request starts any more
        self._budget = parts.budget
        self._deciding = 0  # batches that are committed, and may still make URLs wait again

    def drain(self) -> None:
        """Start no new request, finish those under way, and commit everything."""
        self._end(ExitCode.STOPPED, "stopped by a signal")

    def cut(self) -> None:
        """Cut off requests under way, whose URLs wait for the next run, and commit the rest."""
        self._end(ExitCode.STOPPED, "stopped by a signal")
        self._cut_short()

    def look(self) -> None:
        """Look at once for what other crawlers have written; otherwise that happens every second."""
        self._changes.look_soon()
        self._news.set()

    async def run(self) -> CrawlEnding:
        """Crawl until the end, as the only crawler. Everything that was committed is safe, whatever happens."""
        await self._frontier.begin_run(self._clock.now())
        return await recorded(self._frontier, self._clock, self.work)

    async def work(self) -> CrawlEnding | None:
        """Crawl until nothing is left or something stops the crawl; return what did."""
        counts = await self._frontier.counts()
        self._counts.begin(counts)
        self._budget.begin(counts.visited)
        try:
            await self._run()
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        self._counts.begin(await self._frontier.counts())
        return self._stop

    def snapshot(self, *, hosts: bool = True) -> Snapshot:
        """Return the crawl as it is now; with *hosts* also the busiest hosts, which takes a look at all of them."""
        now, unwritten = self._clock.now(), self._committer.pending
        offline = self._health.network.lost and not (self._stop or self._schedule.paused)
        ending: Phase = "writing" if unwritten and not self._requests.any else "draining"
        going: Phase = "paused" if self._schedule.paused else "crawling" if self._visits or unwritten else "waiting"
        state: Phase = ending if self._stop else "offline" if offline else going
        shown = self._counts.snapshot(now, state, len(self._visits), self._schedule.hosts() if hosts else ())
        shown = replace(shown, unwritten=unwritten)
        if offline:
            return replace(shown, waiting_for=f"the network: {self._health.description(now)}")
        if state == "waiting" and self._health.proxies.outages:
            return replace(shown, waiting_for=self._health.proxies.description)
        showing = state == "waiting" and self._views is not None and self._views.showing
        return replace(shown, state="showing", waiting_for="") if showing else shown

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for writer in self._committer.writers:
                group.create_task(self._commit(writer))
            await self._leases.begin()
            watches = [self._watch_requests(), self._keep_leases()]
            watches += [self._low_disk.keep(partial(self._end, ExitCode.STORAGE), self._requests.cut)]
            watches += [self._health.seek_network(), self._budget.keep(self._news.set)]
            if self._views is not None:
                watches.append(self._views.keep(self._news.set))
            watching = [group.create_task(watch) for watch in watches]
            await self._plan(group)
            while self._visits:
                await asyncio.wait(self._visits, timeout=LOOK_EVERY)
                await self._changes.take_orders()
                self._is_stopped_by_order()
            for task in watching:
                task.cancel()
            self._committer.close()
        await self._frontier.settle((), (), self._schedule.take_unsaved())
        await self._leases.end()

    async def _plan(self, group: asyncio.TaskGroup) -> None:
        while not self._stop:
            self._news.clear()
            now = self._clock.now()
            if await self._changes.look(now):
                self._counts.recounted(await self._frontier.counts())
            if self._is_stopped_by_order():
                return
            if not (self._visits or self._committer.pending or self._deciding):
                await self._dispatcher.check_leases(now)
            self._take_viewed()
            await self._dispatcher.supply(now)
            self._check_limits(now)
            self._hand_out(group, now)
            self._log_in(group, now)
            if await self._over(now):
                return
            await self._nap(now)

    def _is_stopped_by_order(self) -> bool:
        """End the run if a person has ordered that."""
        if (stop := self._changes.stop) is not None:
            self._end(ExitCode.STOPPED, stop.reason)
            if stop.cut:
                self._cut_short()
        return stop is not None

    def _take_viewed(self) -> None:
        """Take up the URLs that views have queued, and let no view begin while the crawl is paused."""
        if self._views is not None:
            self._views.paused = self._schedule.paused
            number, hosts = self._views.added.take()
            self._counts.added(number)
            self._dispatcher.added(hosts)

    def _hand_out(self, group: asyncio.TaskGroup, now: float) -> None:
        room = self._requests.newcomers()
        while not self._stop and self._earliest() <= now and (claim := self._schedule.pick(now, room)) is not None:
            room -= not self._schedule.host(claim.host).proven
            refused = self._dispatcher.refusal(claim)
            self._budget.spent += refused is None and claim.counts
            if self._views is not None:
                self._views.alone = False
            task = group.create_task(self.visit(claim, refused))
            self._visits.add(task)
            if refused is None:
                self._requests.expect(task, claim)
            task.add_done_callback(self._visits.discard)
            if self._health.network.lost and not refused:
                self._health.network.probe(now)
                self._probe = task

    def _log_in(self, group: asyncio.TaskGroup, now: float) -> None:
        """Begin the logins that are due; most crawls have none."""
        for case, host in () if self._health.network.lost or self._schedule.paused else self._logins.due(now):
            task = group.create_task(self._logins.log_in(case, host))
            self._visits.add(task)
            task.add_done_callback(self._visits.discard)
            task.add_done_callback(lambda _: self._news.set())

    def _earliest(self) -> float:
        """Return when any request may start; infinity while something else must happen first."""
        if self._budget.full or self._requests.full(len(self._visits), self._committer.pending):
            return NEVER
        if self._health.network.lost and self._probe is not None and not self._probe.done():
            return NEVER
        return self._health.network.next_start

    async def _over(self, now: float) -> bool:
        """Return True if nothing runs and nothing waits, neither now nor later."""
        busy = self._visits or self._committer.pending or self._deciding or self._dispatcher.busy
        if busy or self._schedule.paused or self._news.is_set():
            return False
        if self._budget.used_up:
            self._end(ExitCode.LIMIT, f"--max-urls {self._settings.common.limits.max_urls} is reached")
            return True
        if self._schedule.to_refill(1) or self._schedule.next_pick() <= now or self._logins.pending:
            return False
        if await self._dispatcher.ended():
            return await self._has_ended(now)
        stuck = self._schedule.next_pick() == self._dispatcher.next_due == NEVER and now < self._schedule.closes
        if self._views is not None and self._views.added.unheard:
            return False
        if stuck and not await self._changes.look(now, at_once=True):
            raise RuntimeError("URLs wait in the frontier, but nothing will ever lead to them")
        return False

    async def _has_ended(self, now: float) -> bool:
        """Return True if nothing is left that leads to more URLs; note why some of them are not fetched."""
        if self._undiscovered is not None and await self._undiscovered.hand_out(now):
            self._counts.recounted(await self._frontier.counts())
            await self._dispatcher.reread()
            self._news.set()
            return False
        if self._views is not None and (await self._views.left() or self._views.added.unheard):
            if not self._views.failed:
                self._views.alone = True
                return False
            self._end(ExitCode.USAGE, self._views.failed)
        elif limits := (held := await self._dispatcher.held_back()).limits or self._logins.description:
            self._end(ExitCode.LIMIT, limits)
        elif refused := "; ".join(filter(None, (held.blocked, self._blocked.description))):
            self._end(ExitCode.DONE, refused)
        return True

    async def _nap(self, now: float) -> None:
        """Wait until something happens, or until it is time for the next thing to do."""
        ready = now if self._schedule.to_refill(1) else self._schedule.next_pick()
        look = min(self._changes.next_look, self._logins.next_due, now + LONGEST_NAP)
        until = min(self._dispatcher.next_due, self._time_limit(), look, max(ready, self._earliest()))
        if self._news.is_set() or self._stop:
            return
        timer = asyncio.get_running_loop().call_later(max(0.0, until - self._clock.now()), self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()

    async def visit(self, claim: Claim, refused: Visited | None) -> None:
        """Take one URL through its seven steps: claim, gate, fetch, links, judge, append, settle.

        The planner has claimed the URL from the schedule; *refused* says that no request may be made. The committer
        takes the last four steps for many visits at once: see `BatchWriter.store` and `Committer.commit_next`.
        """
        began = self._clock.now()
        try:
            visited = refused or await self._fetch(claim, began)  # gate, fetch
        finally:
            self._schedule.fetched(claim.host, self._clock.now())
            self._news.set()
        if visited is None or (not refused and await self._is_excused(visited, began)):
            self._returned(claim)
            asyncio.get_running_loop().call_soon(self._news.set)  # when this task has ended
            return
        self._count(visited)
        if not await self._committer.put(visited):  # links, judge, append, settle
            self._returned(claim)

    async def _fetch(self, claim: Claim, began: float) -> Visited | None:
        """Make the request for *claim* when its host may be asked; return None if its URL is to stay queued."""
        visited = self._dispatcher.observed(await self._requests.make(claim))
        if visited is not None:
            self._requests.learn(visited, began)
            if self._logins.any and await self._logins.shows_logged_out(visited):
                return None
            self._blocked.received(visited)
        return visited

    def _count(self, visited: Visited) -> None:
        """Count an answer for the limits on URLs, bytes and work."""
        claim, error, exchange = visited.claim, visited.error, visited.exchange
        if visited.failure is Failure.UNCHANGED or (error and error.failure in (Failure.PRIVATE, Failure.PROXY)):
            self._budget.spent -= claim.counts  # we never went there
        if exchange is not None:
            self._dispatcher.received(claim.host, exchange.response.length)
            if (head := exchange.framing.head_length) > LARGE_HEAD:
                until = self._clock.now() + REST_AFTER_HEAD * head / LARGE_HEAD
                self._schedule.host(claim.host).rest(until)

    async def _is_excused(self, visited: Visited, began: float) -> bool:
        """Return True if the network is to blame; if it is lost, call back the requests that wait for their start."""
        lost, given_up = self._health.network.lost, self._health.given_up
        excused = await self._health.excuses(visited, began)
        if self._health.network.lost and not lost:
            self._requests.call_back()
        if self._health.given_up > given_up:
            self._counts.recounted(await self._frontier.counts())
        return excused

    async def _commit(self, writer: BatchWriter) -> None:
        """Commit the batches of *writer* until the crawl ends, and pass on what each of them changed."""
        while (batch := await self._committer.commit_next(writer)) is not None:
            for claim in batch.dropped:
                self._returned(claim)
            await self._committed(batch)

    async def _committed(self, batch: CommittedBatch) -> None:
        """Pass on a batch that is durable to the schedule and the counters."""
        self._deciding += 1
        self._counts.committed(self._clock.now(), batch.settlements, batch.settled)
        await self._dispatcher.committed(batch.settlements, batch.settled)
        if await self._blocked.committed(batch.settlements):
            self._counts.recounted(await self._frontier.counts())
        self._deciding -= 1
        self._news.set()

    def _check_limits(self, now: float) -> None:
        if (most := self._settings.common.limits.max_bytes) and self._counts.received >= most:
            self._end(ExitCode.LIMIT, f"--max-bytes {most} is reached")
        if now >= self._time_limit():
            self._end(ExitCode.LIMIT, f"--max-time {self._settings.common.limits.max_time:g} is reached")
        if reason := self._health.proxies.refused:
            self._end(ExitCode.USAGE, reason)
        elif not self._schedule.paused and (reason := self._health.exhausted(now)):
            self._end(ExitCode.LIMIT, reason)

    async def _watch_requests(self) -> None:
        """Let other requests begin while slow ones take their time."""
        while True:
            if self._requests.look(self._clock.now()):
                self._news.set()
            await asyncio.sleep(WATCH_EVERY)

    async def _keep_leases(self) -> None:
        """Renew the leases; if they are lost, take back the requests that have not started."""
        while True:
            await asyncio.sleep(RENEW_EVERY)
            await self._leases.renew()
            if self._leases.lost:
                log.warning("another crawler took over hosts of this one, which did not renew its leases in time")
                self._requests.call_back()
            self._news.set()

    def _time_limit(self) -> float:
        return self._began + (self._settings.common.limits.max_time or NEVER)

    def _end(self, code: ExitCode, reason: str) -> None:
        """Let no more requests start; as the reason a signal outranks a limit."""
        self._requests.stopped = True
        if self._stop is None:
            self._requests.call_back()
            self._let_finish(self._fetcher.running_time() + self._settings.common.limits.drain_timeout)
        if self._stop is None or code is ExitCode.STOPPED:
            self._stop = CrawlEnding(code, reason)
        self._news.set()

    def _let_finish(self, end: float) -> None:
        """Cut off what is still under way at *end*, in the time that the fetcher counts."""
        left = end - self._fetcher.running_time()
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._let_finish, end)
        else:
            self._cut_short()

    def _cut_short(self) -> None:
        """Wait only for what is being written; all other URLs wait for the next run."""
        self._requests.cut()
        for claim in self._committer.cut_short():
            self._returned(claim)

    def _returned(self, claim: Claim) -> None:
        """Take *claim* back: its URL stays queued."""
        self._dispatcher.returned(claim)
        self._budget.spent -= claim.counts
