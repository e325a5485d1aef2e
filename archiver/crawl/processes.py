"""One crawl with several crawler processes, `--processes N`.

The supervisor holds the collection's lock, begins and ends the run, and starts the crawlers. They share the frontier,
and each has WARC files and index lines of its own. If one dies, the supervisor recovers its files and starts it again;
the others go on meanwhile. It passes signals on, adds up what the crawlers report, and ends the crawl at limits that
count for all of them together. See docs/decisions/0060-leases-in-the-database.md.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from archiver.collection.live import Live
from archiver.config.live_settings import cores
from archiver.config.settings import Settings
from archiver.crawl.crawler_process import CUT, DRAIN, LOOK, CrawlerProcess, CrawlerTask, Ended, Failed, Logged
from archiver.crawl.events import note_events
from archiver.crawl.live.figures import together
from archiver.crawl.orders.live_settings import with_orders
from archiver.crawl.rules import identity_of, learned_rules, settings_now, with_seeds
from archiver.crawl.stats import CrawlEnding, Phase, Snapshot, added_up, recorded
from archiver.errors import ArchiveError, first_error
from archiver.frontier.port import Counts
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.crawl.build import Opened

COUNT_EVERY = 1.0  # seconds between two counts of the frontier …
ALIVE_EVERY = 20.0  # seconds between two notes that this machine is alive
COUNT_SHARE = 20  # … but never more than a twentieth of the time
NUMBER = "~"  # stands before the number in the name of a crawler
FIRST = f"{NUMBER}1"
MOST_DEATHS = 5  # of one crawler without a visit in between: starting it again would not help
OF_ONE = frozenset((ExitCode.DONE, ExitCode.STOPPED))  # ends of one crawler that do not end the others

log = logging.getLogger(__name__)


def crawlers_of(settings: Settings) -> int:
    """Return the number of crawlers that *settings* ask for; a crawl that logs in has only one."""
    wanted = settings.limits.processes or cores()
    number = min(wanted, settings.limits.concurrency)
    if number > 1 and settings.fetch.login:
        log.warning("a crawl with --login runs in one process")
        return 1
    if number > 1 and sys.platform == "win32":
        log.warning("a crawl runs in one process on Windows, where processes cannot share the lock of the collection")
        return 1
    return number


def with_supervisor(settings: Settings) -> bool:
    """Return True if a supervisor starts the crawlers: several, or one that crawlers on other machines may join."""
    return crawlers_of(settings) > 1 or may_be_joined(settings)


def may_be_joined(settings: Settings) -> bool:
    """Return True if crawlers on other machines may join a crawl with *settings*."""
    return shares_settings(settings) and settings.browser.browser == "off" and settings.hooks.hooks is None


def shares_settings(settings: Settings) -> bool:
    """Return True if the frontier holds *settings*, for commands and crawlers on other machines."""
    return bool(settings.limits.frontier) and not settings.fetch.login and sys.platform != "win32"


def part_of(settings: Settings, number: int, which: int) -> Settings:
    """Return *settings* for crawler *which* of *number*, with its part of the limits on requests at once.

    The supervisor watches the limits on time and bytes. The crawlers share the others through the frontier.
    """
    limits = settings.limits
    part = replace(
        limits,
        concurrency=_part(limits.concurrency, number, which),
        slow_concurrency=_part(limits.slow_concurrency, number, which),
        max_bytes=0,
        max_time=0.0,
    )
    return replace(settings, limits=part)


def part_for(name: str, crawlers: int) -> Callable[[Settings], Settings]:
    """Return a function that gives the crawler *name*, one of so many *crawlers*, its part of settings; "": all."""
    if not name:
        return lambda settings: settings
    which = int(name.rpartition(NUMBER)[2]) - 1
    return lambda settings: part_of(settings, crawlers, which)


def _part(whole: int, number: int, which: int) -> int:
    return (which + 1) * whole // number - which * whole // number


@dataclass(slots=True, eq=False)
class Crawler:
    """One crawler: its process, which may be started again, and its latest report."""

    task: CrawlerTask
    ready: CrawlerProcess | None  # it waits for the task
    process: CrawlerProcess | None = None
    shown: Snapshot | None = None
    past: list[Snapshot] = field(default_factory=list)  # the last ones of earlier processes
    heard: float = 0.0  # when its process sent the last message, by the clock of the event loop; 0: none so far
    live: Live | None = None  # its latest figures …
    past_live: list[Live] = field(default_factory=list)  # … and the last ones of earlier processes
    result: Ended | Failed | None = None
    deaths: int = 0  # without a visit in between

    def order(self, order: bytes) -> None:
        """Give an order to the process, if it runs."""
        if self.process is not None:
            self.process.order(order)


class Supervisor:
    """A crawl with several crawlers, each of which is a process; `run` it once."""

    def __init__(self, opened: "Opened", lock: int, processes: Sequence[CrawlerProcess]) -> None:
        """*lock*: the open file that keeps other runs out of the collection. *processes*: one for each crawler."""
        self._opened = opened
        self._lock = lock
        self._clock = opened.clock
        host = opened.frontier.machine or identity_of(opened.settings).host
        names = [f"{host}{NUMBER}{which + 1}" for which in range(len(processes))]
        tasks = [self._task(name, len(names), which) for which, name in enumerate(names)]
        self._crawlers = [Crawler(task, each) for task, each in zip(tasks, processes, strict=True)]
        self._stop: CrawlEnding | None = None
        self._counts = Counts(0, 0, 0, 0, 0, 0, 0)
        self._received_before = 0  # bytes, in earlier runs
        self._settings = opened.settings  # with what people have ordered since

    def _task(self, name: str, number: int, which: int) -> CrawlerTask:
        opened, level = self._opened, logging.getLogger("archiver").getEffectiveLevel()
        settings = part_of(opened.settings, number, which)
        run = opened.began, opened.resume, opened.known, opened.orders
        hooks = opened.rules.visit_rules.hooks
        source = None if hooks is None else hooks.source
        return CrawlerTask(opened.layout.directory.absolute(), settings, name, number, *run, level, source)

    async def run(self) -> CrawlEnding:
        """Crawl until all crawlers have ended."""
        if not self._opened.together:
            await self._opened.frontier.begin_run(self._clock.now())
        return await recorded(self._opened.frontier, self._clock, self._work)

    def snapshot(self) -> Snapshot:
        """Return the whole crawl as it is now."""
        running = [each.shown for each in self._crawlers if each.shown is not None]
        past = [one for each in self._crawlers for one in each.past]
        return added_up(running, past, self._counts, self._clock.now() - self._opened.began, self._phase())

    def live(self, loop_lag: float) -> Live:
        """Return the figures of the whole crawl; *loop_lag*: longest delay of our event loop in the last second."""
        running = [each.live for each in self._crawlers if each.live is not None]
        past = [one for each in self._crawlers for one in each.past_live]
        now = asyncio.get_running_loop().time()
        silent = max(now - each.heard if each.heard else 0.0 for each in self._crawlers)
        return replace(together(self.snapshot(), running, past, loop_lag), silent=silent)

    def _phase(self) -> Phase | None:
        if any(each.process is None and each.result is None for each in self._crawlers):
            return "recovering"
        return "draining" if self._stop else None

    def drain(self) -> None:
        """Let no crawler start a new request; what is under way finishes."""
        self._end(ExitCode.STOPPED, "stopped by a signal", DRAIN)

    def cut(self) -> None:
        """Let all crawlers cut off their requests, and commit the rest."""
        self._end(ExitCode.STOPPED, "stopped by a signal", CUT)

    def _end(self, code: ExitCode, reason: str, order: bytes = DRAIN) -> None:
        if self._stop is None or (code is ExitCode.STOPPED and self._stop.code is not ExitCode.STOPPED):
            self._stop = CrawlEnding(code, reason)
        for each in self._crawlers:
            each.order(order)

    async def _work(self) -> CrawlEnding | None:
        self._counts = await self._opened.frontier.counts()
        self._received_before = self._counts.received
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch())
                await asyncio.gather(*(group.create_task(self._keep(each)) for each in self._crawlers))
                watch.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors
        self._counts = await self._opened.frontier.counts()
        ends = [each.result.stop for each in self._crawlers if isinstance(each.result, Ended) and each.result.stop]
        return self._stop or next((stop for stop in ends if stop.code is ExitCode.DONE), None)

    async def _watch(self) -> None:
        """Count the URLs of the frontier, and end the crawl when its time is over."""
        noted = self._clock.now()
        while True:
            began = self._clock.now()
            orders = await self._opened.frontier.orders_to_take_up(self._opened.orders)
            self._settings = with_orders(self._opened.settings, orders, self._opened.orders)
            limits = self._settings.limits
            self._counts = await self._opened.frontier.counts()
            now = self._clock.now()
            if limits.max_time and now >= self._opened.run_began + limits.max_time:
                self._end(ExitCode.LIMIT, f"--max-time {limits.max_time:g} is reached")
            if limits.max_bytes and self._counts.received >= limits.max_bytes:  # by all machines
                self._end(ExitCode.LIMIT, f"--max-bytes {limits.max_bytes} is reached")
            if now >= noted + ALIVE_EVERY:
                await self._opened.frontier.note_alive()
                noted = now
            await asyncio.sleep(max(COUNT_EVERY, COUNT_SHARE * (now - began)))

    def _check_bytes(self) -> None:
        """End the crawl if the crawlers have received as many bytes as they may; they report several times a second."""
        most = self._settings.limits.max_bytes
        if most and self._received_before + self.snapshot().received >= most:
            self._end(ExitCode.LIMIT, f"--max-bytes {most} is reached")

    async def _keep(self, crawler: Crawler) -> None:
        """Run *crawler* until it ends; if it dies, recover its files and start it again."""
        while crawler.result is None:
            try:
                await self._begin(crawler)
                await self._hear(crawler)
                code = await self._ended(crawler)
            except BaseException:
                await asyncio.shield(self._ended(crawler))
                raise
            visits = crawler.shown.visits if crawler.shown is not None else 0
            if crawler.shown is not None:
                crawler.past.append(crawler.shown)
                crawler.shown = None
            if crawler.live is not None:
                crawler.past_live.append(crawler.live)
                crawler.live = None
            if isinstance(crawler.result, Failed):
                raise (ArchiveError if crawler.result.storage else RuntimeError)(crawler.result.reason)
            if crawler.result is None:
                crawler.deaths = 1 if visits else crawler.deaths + 1
                await self._recover(crawler, code)
                if self._stop:
                    return

    async def _begin(self, crawler: Crawler) -> None:
        """Give *crawler* a process, and that its task."""
        crawler.process = crawler.ready or CrawlerProcess.started()
        crawler.ready = None
        await crawler.process.begin(crawler.task, self._lock)
        if self._stop:
            crawler.order(DRAIN)

    async def _hear(self, crawler: Crawler) -> None:
        """Take the messages of *crawler* until its process ends."""
        assert crawler.process is not None
        loop = asyncio.get_running_loop()
        async for message in crawler.process.messages():
            crawler.heard = loop.time()
            match message:
                case Snapshot():
                    crawler.shown = message
                    self._check_bytes()
                case Live():
                    crawler.live = message
                case Logged():
                    logging.getLogger(message.logger).log(message.level, "%s", message.text)
                case Ended():
                    crawler.shown, crawler.live, crawler.result = message.last, message.live, message
                    if message.stop is not None and (message.stop.code not in OF_ONE or self._is_ordered(message.stop)):
                        self._end(message.stop.code, message.stop.reason)
                    for each in self._crawlers:
                        each.order(LOOK)  # the others have nothing left to do either, or hosts to take over
                case Failed():
                    crawler.result = message

    def _is_ordered(self, stop: CrawlEnding) -> bool:
        """Return True if a crawler has stopped although we have not told it: by an order, which all of them take up."""
        return stop.code is ExitCode.STOPPED and self._stop is None

    async def _ended(self, crawler: Crawler) -> int:
        """Wait until the process of *crawler* has ended; return its exit code."""
        assert crawler.process is not None
        crawler.heard = 0.0
        code = await crawler.process.ended()
        crawler.process = None
        return code

    async def _recover(self, crawler: Crawler, code: int) -> None:
        """Settle what *crawler*, which has died, had stored, and give its leases back."""
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        log.warning("crawler %s ended by %s; its files are recovered", crawler.task.name, how)
        if crawler.deaths > MOST_DEATHS:
            raise RuntimeError(f"crawler {crawler.task.name} ended by {how}, {crawler.deaths} times in a row")
        from archiver.crawl.recovery.recover import recover_crawler  # noqa: PLC0415 - most crawls need none

        opened = self._opened
        async with await SqliteFrontier.open(opened.layout.database) as frontier:
            note_events(frontier, opened.settings, opened.layout.directory)
            await frontier.act_for(crawler.task.name)
            further = [seed for seed in await frontier.seeds() if seed not in opened.known]
            settings = with_seeds(self._settings, further, await settings_now(opened.layout, frontier))
            rules = await learned_rules(settings, frontier, opened.secrets, opened.rules.visit_rules.hooks)
            await recover_crawler(opened.layout, frontier, rules, opened.index, crawler.task.name)
            await frontier.leave({})
