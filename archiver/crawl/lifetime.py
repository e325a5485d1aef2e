"""One crawl, from its first claim to its ending.

A planner hands out claims, each visit is a task of its own, a committer writes what they bring. It ends exactly when
nothing waits and nothing runs, or when a limit is reached or somebody stops it: then no request starts any more, and
what is under way finishes. An error of storage or a bug ends everything at once, loudly; recovery does the rest.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from archiver.config.settings import LimitSettings
from archiver.crawl.clock import Clock
from archiver.crawl.commit import Committer
from archiver.crawl.feed import Feed
from archiver.errors import ArchiveError, FetchError
from archiver.fetch import Fetcher
from archiver.frontier.port import Counts, Frontier, Settled
from archiver.model import Claim, Event, ExitCode, Settlement
from archiver.schedule import Queue, Schedule
from archiver.stats import Counters, HostLine, Phase, Snapshot, Tally, Why
from archiver.visit import Visited, is_robots

LONGEST_NAP = 30.0  # seconds until the planner looks again even if nothing calls it


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of a crawl ended, for the shell and for a person."""

    code: ExitCode
    reason: str


class _Held(Exception):
    """The request must not start after all; its URL stays where it is."""


class Crawl:
    """Built by `build`; `run` it once."""

    def __init__(
        self, frontier: Frontier, schedule: Schedule, feed: Feed, fetcher: Fetcher, committer: Committer, limits: LimitSettings, clock: Clock
    ) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._feed = feed
        self._fetcher = fetcher
        self._committer = committer
        self._limits = limits
        self._clock = clock
        self._counters = Counters(clock.now())
        self._began = clock.now()
        self._news = asyncio.Event()
        self._visits: set[asyncio.Task[None]] = set()
        self._stop = ""  # why no request starts any more
        self._stop_code = ExitCode.DONE
        self._spent = 0  # URLs that count for --max-urls
        self._received = 0
        self._tally = Counts(0, 0, 0, 0, 0, 0, 0)
        committer.attach(self._committed, lambda: not schedule.active)

    def drain(self) -> None:
        """No new request starts; those under way finish, and everything is committed."""
        self._end("stopped by a signal", ExitCode.STOPPED)
        asyncio.get_running_loop().call_later(self._limits.drain_timeout, self.cut)

    def cut(self) -> None:
        """Requests under way are cut off; their URLs wait for the next run. The rest is committed."""
        self._end("stopped by a signal", ExitCode.STOPPED)
        for task in self._visits:
            task.cancel()

    async def run(self) -> Ending:
        """Crawl until the end; whatever it is, all that was committed is safe."""
        self._tally = await self._frontier.counts()
        self._spent, self._received = self._tally.visited, self._tally.received
        try:
            await self._run()
        except BaseExceptionGroup as group:
            raise _first(group) from group
        counts = await self._frontier.counts()
        self._tally = counts
        if self._stop and (self._stop_code is ExitCode.STOPPED or counts.waiting):
            return Ending(self._stop_code, self._stop)
        if not counts.seeds_archived:
            return Ending(ExitCode.NO_SEED, "not one seed could be archived")
        return Ending(ExitCode.DONE, "done")

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._committer.run())
            await self._plan(group)
            while self._visits:
                await asyncio.wait(self._visits)
            self._committer.close()

    async def _plan(self, group: asyncio.TaskGroup) -> None:
        while not self._stop:
            self._news.clear()
            now = self._clock.now()
            await self._feed.feed(now)
            self._check_limits(now)
            self._hand_out(group, now)
            if await self._finished(now):
                return
            room = len(self._visits) < self._limits.concurrency
            wake = self._schedule.wake() if room else float("inf")
            await self._nap(min(wake, self._feed.next_due, self._time_limit(), now + LONGEST_NAP))

    def _hand_out(self, group: asyncio.TaskGroup, now: float) -> None:
        while not self._stop and len(self._visits) < self._limits.concurrency:
            claim = self._schedule.pick(now)
            if claim is None:
                return
            counted = claim.tries == 0 and not is_robots(claim)
            self._spent += counted
            task = group.create_task(self._visit(claim))
            self._visits.add(task)
            task.add_done_callback(self._left)
            if counted and self._limits.max_urls and self._spent >= self._limits.max_urls:
                self._end(f"--max-urls {self._limits.max_urls} is reached", ExitCode.LIMIT)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._visits.discard(task)
        self._news.set()

    async def _finished(self, now: float) -> bool:
        if self._visits or self._committer.pending or self._schedule.wake() <= now or self._schedule.wanting(1):
            return False
        return await self._feed.ended(now)

    async def _nap(self, until: float) -> None:
        """Until something happens, or the given time has come."""
        if self._news.is_set() or self._stop:
            return
        timer = asyncio.get_running_loop().call_later(max(0.0, until - self._clock.now()), self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()

    async def _visit(self, claim: Claim) -> None:
        try:
            refused = self._feed.refusal(claim)
            visited = refused or Visited(claim, await self._fetcher.fetch(claim.url, partial(self._start, claim.host)))
        except FetchError as error:
            visited = Visited(claim, error=error)
        except (_Held, asyncio.CancelledError):
            self._schedule.settled(claim.host, claim.id)
            self._schedule.refresh(claim.host)
            return
        finally:
            self._schedule.fetched(claim.host, self._clock.now())
            self._news.set()
        await self._committer.put(visited)

    async def _start(self, host: int) -> None:
        """The gate of every request: passes when *host* may be asked, at the very moment its bytes go out."""
        now = self._clock.now()
        slot = self._schedule.reserve(host, now)
        if slot > now:
            await asyncio.sleep(slot - now)
        queue = self._schedule.queue(host)
        if self._stop or queue is None or queue.parked > self._clock.now():
            raise _Held
        self._schedule.started(host, slot, self._clock.now())

    async def _committed(self, settlements: Sequence[Settlement], settled: Settled) -> None:
        """A batch is durable: tell the schedule, and count."""
        for each in settlements:
            if each.park:
                self._schedule.park(each.claim.host, each.park)
        self._feed.committed([each.claim for each in settlements], settled)
        await self._feed.resolved(settled.resolved)
        self._count(settlements, settled)
        self._news.set()

    def _count(self, settlements: Sequence[Settlement], settled: Settled) -> None:
        now, tally = self._clock.now(), self._tally
        ends = [each.event for each in settlements]
        for each in settlements:
            received = each.capture.received if each.capture is not None else 0
            self._received += received
            self._counters.visited(now, received)
        archived, failed, excluded = (ends.count(event) for event in (Event.CAPTURE, Event.GIVE_UP, Event.FORBID))
        self._tally = Counts(
            waiting=tally.waiting + settled.added - archived - failed - excluded,
            archived=tally.archived + archived,
            failed=tally.failed + failed,
            excluded=tally.excluded + excluded,
            visited=tally.visited,
            received=self._received,
            seeds_archived=tally.seeds_archived,
        )

    def _check_limits(self, now: float) -> None:
        limits = self._limits
        if limits.max_bytes and self._received >= limits.max_bytes:
            self._end(f"--max-bytes {limits.max_bytes} is reached", ExitCode.LIMIT)
        if limits.max_urls and self._spent >= limits.max_urls:
            self._end(f"--max-urls {limits.max_urls} is reached", ExitCode.LIMIT)
        if now >= self._time_limit():
            self._end(f"--max-time {limits.max_time:g} is reached", ExitCode.LIMIT)

    def _time_limit(self) -> float:
        return self._began + self._limits.max_time if self._limits.max_time else float("inf")

    def _end(self, reason: str, code: ExitCode) -> None:
        if not self._stop or code is ExitCode.STOPPED:
            self._stop, self._stop_code = reason, code
        self._news.set()

    def snapshot(self) -> Snapshot:
        """The crawl as it stands now."""
        now = self._clock.now()
        state: Phase = "draining" if self._stop else "crawling" if self._visits or self._committer.pending else "waiting"
        hosts = [self._line(queue, now) for queue in self._schedule.queues() if queue.window or queue.active or queue.waiting > 0]
        counts = self._tally
        tally = Tally(counts.archived, counts.waiting, counts.failed, counts.excluded, len(self._visits))
        return self._counters.snapshot(now, state, tally, hosts)

    def _line(self, queue: Queue, now: float) -> HostLine:
        why: Why = ""
        wait = 0.0
        if queue.active:
            why = "busy"
        elif queue.parked > now:
            why, wait = "retry-after", queue.parked - now
        elif not queue.window and queue.later < float("inf"):
            why, wait = "retry", max(0.0, queue.later - now)
        elif (due := queue.pace.next(now)) > now:
            why, wait = "rate", due - now
        return HostLine(queue.key, max(0, queue.waiting), queue.active, queue.done, wait, why)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended the crawl: storage's before any other, because the others follow from it."""
    storage, _ = group.split(ArchiveError)
    error: BaseException = storage or group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
