"""One crawl, from its first claim to its ending.

A planner hands out claims, each visit is a task of its own, a committer writes what they bring. It ends exactly when
nothing waits and nothing runs, or when a limit is reached or somebody says stop: then no request starts any more, and
what is under way finishes. An error of storage or a bug ends everything at once, loudly; recovery does the rest.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, replace

from archiver.clock import Clock
from archiver.collection.disk_space import LAST_RESERVE, LOOK_EVERY, DiskSpace
from archiver.config.settings import LimitSettings
from archiver.crawl.batch_writer import BatchWriter
from archiver.crawl.blocked_hosts import BlockedHosts
from archiver.crawl.commit import CommittedBatch, Committer
from archiver.crawl.dispatcher import NEVER, Dispatcher, OutsideChanges
from archiver.crawl.host_health import HostHealth
from archiver.crawl.recrawl import EarlierLookups, UndiscoveredUrls
from archiver.crawl.requests import LOOK_EVERY as SLOW_LOOK
from archiver.crawl.requests import RequestLimits, Requests
from archiver.crawl.stats import CrawlCounts, CrawlEnding, Phase, Snapshot, concluded
from archiver.crawl.visit import Visited
from archiver.errors import ArchiveError, Failure
from archiver.fetch.client import Fetcher
from archiver.frontier.port import Frontier
from archiver.http.head import LARGE_HEAD
from archiver.model import Claim, ExitCode
from archiver.policy.schedule import Schedule

REST_AFTER_HEAD = 5.0  # seconds for each 64 KiB of a large head: to read and to pack it takes time from all hosts
LONGEST_NAP = 30.0  # seconds until the planner looks again even if nothing calls it
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a crawl is made of."""

    frontier: Frontier
    schedule: Schedule
    feed: Dispatcher
    fetcher: Fetcher
    committer: Committer
    room: DiskSpace
    network: HostHealth
    blocked: BlockedHosts
    changes: OutsideChanges
    recall: EarlierLookups
    leftover: UndiscoveredUrls | None = None


class Crawl:
    """Built by `build`; `run` it once."""

    def __init__(self, parts: Parts, limits: LimitSettings, clock: Clock) -> None:
        self._frontier = parts.frontier
        self._schedule = parts.schedule
        self._feed = parts.feed
        self._fetcher = parts.fetcher
        self._committer = parts.committer
        self._room = parts.room
        self._network = parts.network
        self._blocked = parts.blocked
        self._changes = parts.changes
        self._leftover = parts.leftover
        self._limits = limits
        self._requests = Requests(parts.fetcher, parts.schedule, parts.recall, clock, RequestLimits.of(limits))
        self._clock = clock
        self._began = clock.now()
        self._account = CrawlCounts(self._began)
        self._news = asyncio.Event()
        self._visits: set[asyncio.Task[None]] = set()
        self._probe: asyncio.Task[None] | None = None  # the one that may run while the network is lost
        self._stop: CrawlEnding | None = None  # why no request starts any more
        self._spent = 0  # URLs that count for --max-urls
        self._deciding = 0  # batches that are committed, and may still make URLs wait again

    def drain(self) -> None:
        """No new request starts; those under way finish, and everything is committed."""
        self._end(ExitCode.STOPPED, "stopped by a signal")

    def cut(self) -> None:
        """Requests under way are cut off; their URLs wait for the next run. The rest is committed."""
        self._end(ExitCode.STOPPED, "stopped by a signal")
        self._cut_short()

    async def run(self) -> CrawlEnding:
        """Crawl until the end; whatever it is, all that was committed is safe."""
        counts = await self._frontier.counts()
        self._account.begin(counts)
        self._spent = counts.visited
        await self._frontier.begin_run(self._clock.now())
        try:
            await self._run()
        except BaseExceptionGroup as group:
            error = _first(group)
            with suppress(ArchiveError):  # the database may be what failed; then the run counts as cut off
                code = ExitCode.STORAGE if isinstance(error, ArchiveError) else ExitCode.BUG
                await self._frontier.end_run(code, str(error), self._clock.now())
            raise error from group
        counts = await self._frontier.counts()
        self._account.begin(counts)
        ending = concluded(self._stop, counts)
        await self._frontier.end_run(ending.code, ending.reason, self._clock.now())
        return ending

    def snapshot(self) -> Snapshot:
        """The crawl as it stands now."""
        now, offline = self._clock.now(), self._network.lost and not self._stop
        unwritten = self._committer.pending
        ending: Phase = "writing" if unwritten and not self._requests.any else "draining"
        busy = bool(self._visits or unwritten)
        state: Phase = ending if self._stop else "offline" if offline else "crawling" if busy else "waiting"
        shown = self._account.snapshot(now, state, len(self._visits), self._schedule.queues())
        shown = replace(shown, unwritten=unwritten)
        return replace(shown, waiting_for=f"the network: {self._network.words(now)}") if offline else shown

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for writer in self._committer.writers:
                group.create_task(self._commit(writer))
            watching = [group.create_task(self._watch_room()), group.create_task(self._watch_requests())]
            await self._plan(group)
            while self._visits:
                await asyncio.wait(self._visits)
            for task in watching:
                task.cancel()
            self._committer.close()
        await self._frontier.settle((), (), self._schedule.lessons())

    async def _plan(self, group: asyncio.TaskGroup) -> None:
        while not self._stop:
            self._news.clear()
            now = self._clock.now()
            if await self._changes.look(now):
                self._account.recounted(await self._frontier.counts())
            await self._feed.feed(now)
            self._check_limits(now)
            self._hand_out(group, now)
            if await self._over(now):
                return
            await self._nap(now)

    def _hand_out(self, group: asyncio.TaskGroup, now: float) -> None:
        while not self._stop and self._earliest() <= now:
            claim = self._feed.pick(now, self._requests.newcomers())
            if claim is None:
                return
            refused = self._feed.refusal(claim)
            self._spent += refused is None and claim.counts
            task = group.create_task(self._visit(claim, refused))
            self._visits.add(task)
            if refused is None:
                self._requests.expect(task, claim)
            task.add_done_callback(self._visits.discard)
            if self._network.lost and not refused:
                self._network.probe(now)
                self._probe = task

    def _earliest(self) -> float:
        """When the next request may start, whatever its host; infinity while something else must happen first."""
        if self._full or self._requests.full(len(self._visits) + self._committer.pending):
            return NEVER  # a visit that is not committed is one that a crash would repeat, so it counts as under way
        if self._network.lost and self._probe is not None and not self._probe.done():
            return NEVER
        return self._network.next_start

    @property
    def _full(self) -> bool:
        """Whether --max-urls lets no more claims be handed out; those that were may go on."""
        return 0 < self._limits.max_urls <= self._spent

    async def _over(self, now: float) -> bool:
        """Whether nothing runs and nothing waits, neither now nor later."""
        if self._visits or self._committer.pending or self._deciding or self._feed.taking_in or self._news.is_set():
            return False
        if self._full:
            self._end(ExitCode.LIMIT, f"--max-urls {self._limits.max_urls} is reached")
            return True
        if self._schedule.wanting(1) or self._schedule.wake() <= now:
            return False
        if await self._feed.ended():
            if self._leftover is not None and await self._leftover.hand_out(now):
                self._account.recounted(await self._frontier.counts())
                await self._feed.reread()
                self._news.set()
                return False
            if held_back := await self._feed.held_back():
                self._end(ExitCode.LIMIT, held_back)
            elif refused := self._blocked.words:
                self._end(ExitCode.DONE, refused)
            return True
        if self._schedule.wake() == self._feed.next_due == NEVER and not await self._changes.look(now, at_once=True):
            raise RuntimeError("URLs wait in the frontier, but nothing will ever lead to them")
        return False

    async def _nap(self, now: float) -> None:
        """Until something happens, or it is time for the next thing to do."""
        ready = now if self._schedule.wanting(1) else self._schedule.wake()
        look = min(self._changes.next_look, now + LONGEST_NAP)
        until = min(self._feed.next_due, self._time_limit(), look, max(ready, self._earliest()))
        if self._news.is_set() or self._stop:
            return
        timer = asyncio.get_running_loop().call_later(max(0.0, until - self._clock.now()), self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()

    async def _visit(self, claim: Claim, refused: Visited | None) -> None:
        began = self._clock.now()
        try:
            visited = refused or self._feed.observed(await self._requests.make(claim))
            if visited is not None and not refused:
                self._requests.heed(visited, began)
                self._blocked.received(visited)
        finally:
            self._schedule.fetched(claim.host, self._clock.now())
            self._news.set()
        if visited is not None and not refused and await self._is_excused(visited, began):
            visited = None
        if visited is None:
            self._returned(claim)
            asyncio.get_running_loop().call_soon(self._news.set)  # when this visit counts no more
        else:
            if visited.error is not None and visited.error.failure is Failure.PRIVATE:
                self._spent -= claim.counts  # we never went there
            if visited.exchange is not None:
                self._feed.received(claim.host, visited.exchange.response.length)
                if (head := visited.exchange.framing.head_length) > LARGE_HEAD:
                    self._schedule.rest(claim.host, self._clock.now() + REST_AFTER_HEAD * head / LARGE_HEAD)
            if not await self._committer.put(visited):
                self._returned(claim)

    async def _is_excused(self, visited: Visited, began: float) -> bool:
        """Whether the network is to blame for what came; what waits for a start is called back when it is lost."""
        lost, given_up = self._network.lost, self._network.given_up
        excused = await self._network.is_to_blame(visited, began)
        if self._network.lost and not lost:
            self._requests.call_back()
        if self._network.given_up > given_up:
            self._account.recounted(await self._frontier.counts())
        return excused

    async def _commit(self, writer: BatchWriter) -> None:
        """Commit the batches of *writer* until the crawl ends, and pass on what each of them changed."""
        while (batch := await self._committer.commit_next(writer)) is not None:
            for claim in batch.dropped:
                self._returned(claim)
            await self._committed(batch)

    async def _committed(self, batch: CommittedBatch) -> None:
        """A batch is durable: tell the schedule, and count."""
        self._deciding += 1
        self._account.committed(self._clock.now(), batch.settlements, batch.settled)
        await self._feed.committed(batch.settlements, batch.settled)
        if await self._blocked.committed(batch.settlements):
            self._account.recounted(await self._frontier.counts())
        self._deciding -= 1
        self._news.set()

    def _check_limits(self, now: float) -> None:
        limits = self._limits
        if limits.max_bytes and self._account.received >= limits.max_bytes:
            self._end(ExitCode.LIMIT, f"--max-bytes {limits.max_bytes} is reached")
        if now >= self._time_limit():
            self._end(ExitCode.LIMIT, f"--max-time {limits.max_time:g} is reached")
        if reason := self._network.exhausted(now):
            self._end(ExitCode.LIMIT, reason)

    async def _watch_room(self) -> None:
        """End the crawl in order before the disk is full; where the order takes too long, cut it short."""
        while True:
            if shortage := self._room.shortage():
                self._end(ExitCode.STORAGE, shortage)
            if self._room.shortage(LAST_RESERVE):
                self._requests.cut()
            await asyncio.sleep(LOOK_EVERY)

    async def _watch_requests(self) -> None:
        """Let others begin while slow ones take their time."""
        while True:
            if self._requests.look(self._clock.now()):
                self._news.set()
            await asyncio.sleep(SLOW_LOOK)

    def _time_limit(self) -> float:
        return self._began + self._limits.max_time if self._limits.max_time else NEVER

    def _end(self, code: ExitCode, reason: str) -> None:
        """Let no request start any more; a signal says more about the ending than a limit."""
        self._requests.stopped = True
        if self._stop is None:
            self._requests.call_back()
            self._let_finish(self._fetcher.running_time() + self._limits.drain_timeout)
        if self._stop is None or code is ExitCode.STOPPED:
            self._stop = CrawlEnding(code, reason)
        self._news.set()

    def _let_finish(self, end: float) -> None:
        """What is under way may go on until *end*, in the time that the fetcher counts, and is cut then."""
        left = end - self._fetcher.running_time()
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._let_finish, end)
        else:
            self._cut_short()

    def _cut_short(self) -> None:
        """Nothing is waited for any more but what is being written; the URLs of all else wait for the next run."""
        self._requests.cut()
        for claim in self._committer.cut_short():
            self._returned(claim)

    def _returned(self, claim: Claim) -> None:
        """The URL of *claim* waits as it did."""
        self._feed.returned(claim)
        self._spent -= claim.counts


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended the crawl: storage's before any other, because the others follow from it."""
    storage, _ = group.split(ArchiveError)
    error: BaseException = storage or group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
