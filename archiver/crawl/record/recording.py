"""Puts a recording together, from the parts of a crawl and the proxy; the shutdown is the same in reverse."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from archiver.clock import Clock
from archiver.collection.crawl_log import CrawlLog
from archiver.collection.disk_space import DiskSpace
from archiver.collection.live import EVERY, Live
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.batch_writer import Journal
from archiver.crawl.build import Opening, archives_of, fetcher_of, opened_collection, publish, writers_of
from archiver.crawl.commit import close_files
from archiver.crawl.live.figures import CommitLag, memory_used, of_snapshot
from archiver.crawl.record.authority import Authority
from archiver.crawl.record.proxy import ClientLogins, ProxyLimits, RecordingProxy
from archiver.crawl.record.recorder import RecordedSoFar, Recorder
from archiver.crawl.record.websocket import PassedOn
from archiver.crawl.rules import NOTHING_MORE
from archiver.crawl.stats import CrawlEnding, UrlCounts
from archiver.errors import ArchiveError, first_error
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.spool import SpoolFolder
from archiver.frontier.port import Counts
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import ExitCode
from archiver.storage import allowed, close_to_others

MOST_CONNECTIONS = 512  # of clients; a browser has some dozens
FILES_SHARE = 6  # a client takes as many files: its connection, that to the server, and two in the spool


@dataclass(frozen=True, slots=True)
class Clients:
    """Where clients are served, and by whose authority."""

    where: socket.socket  # bound to the address of the proxy
    authority: Authority
    largest: int  # bytes of the body of a request
    websockets: bool = False  # WebSocket connections are passed on, without a record
    logins: ClientLogins | None = None  # None: anyone who reaches the proxy may use it


@dataclass(frozen=True, slots=True)
class RecordingState:
    """A recording as it is now."""

    so_far: RecordedSoFar
    active: int  # requests under way
    elapsed: float  # seconds
    ending: bool
    passed: PassedOn  # WebSocket connections


class Recording:
    """A recording that is ready to run."""

    def __init__(
        self,
        parts: tuple[SqliteFrontier, SpoolFolder, Clock],
        recorder: Recorder,
        proxy: RecordingProxy,
        where: socket.socket,
        drain: float,
    ) -> None:
        """*drain*: seconds for what is under way at the end."""
        self._frontier, self._spool, self._clock = parts
        self._recorder = recorder
        self._proxy = proxy
        self._where = where
        self._drain = drain
        self._began = self._clock.now()
        self._cut = False
        self._counts = Counts(0, 0, 0, 0, 0, 0, 0)
        self._lag = CommitLag()

    async def run(self) -> CrawlEnding:
        """Record until `drain` or `cut` is called, or the storage fails."""
        await self._frontier.begin_run(self._clock.now())
        self._counts = await self._frontier.counts()
        try:
            await self._run()
        except BaseExceptionGroup as group:
            error = first_error(group)
            with suppress(ArchiveError):  # the database may be what failed
                await self._frontier.end_run(ExitCode.BUG, str(error), self._clock.now())
            raise error from group
        ending = CrawlEnding(ExitCode.DONE, "done")
        if self._cut:
            ending = CrawlEnding(ExitCode.STOPPED, "requests under way were cut, and are not recorded")
        if passed := self._proxy.passed.text:
            ending = replace(ending, reason=f"{ending.reason}; {passed}")
        if (failure := self._recorder.failure) is not None:
            with suppress(ArchiveError):  # as above
                await self._frontier.end_run(ExitCode.STORAGE, str(failure), self._clock.now())
            raise failure
        await self._frontier.end_run(ending.code, ending.reason, self._clock.now())
        return ending

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.commit())
            counting = group.create_task(self._count())
            server = await self._proxy.listen(self._where, group)
            await self._recorder.over.wait()
            server.close()
            timer = asyncio.get_running_loop().call_later(self._drain, self.cut)
            self._proxy.drain()
            await self._proxy.drained()
            timer.cancel()
            self._recorder.close()
            counting.cancel()
        self._counts = await self._frontier.counts()

    async def _count(self) -> None:
        """Count the URLs of the collection once a second, if there may be more. One may be recorded many times."""
        counted = 0.0
        while True:
            await asyncio.sleep(EVERY)
            if (latest := self._recorder.tally.last_commit) > counted:
                counted = latest
                self._counts = await self._frontier.counts()

    def snapshot(self) -> RecordingState:
        """Return the recording as it is now."""
        elapsed = self._clock.now() - self._began
        ending, passed = self._recorder.over.is_set(), self._proxy.passed
        return RecordingState(self._recorder.so_far, self._proxy.active, elapsed, ending, passed)

    def live(self, loop_lag: float) -> Live:
        """Describe the recording as live.json does a crawl; *loop_lag*: longest delay of the loop in the last second.

        There is no queue, so nothing waits.
        """
        now, counts, recorder = self._clock.now(), self._counts, self._recorder
        urls = UrlCounts(counts.archived, failed=counts.failed, excluded=counts.excluded, active=self._proxy.active)
        shown = recorder.counters.snapshot(now, "draining" if recorder.over.is_set() else "recording", urls)
        last_commit = recorder.tally.last_commit
        return replace(
            of_snapshot(shown),
            unwritten=recorder.unwritten,
            spool_bytes=self._spool.held,
            loop_lag=loop_lag,
            rss=memory_used(),
            commit_lag=self._lag.seconds(now, recorder.unwritten, last_commit),
            last_commit=last_commit,
            total=recorder.tally.frozen(),
        )

    def drain(self) -> None:
        """Accept no more requests; those under way go on to their end."""
        self._recorder.over.set()

    def cut(self) -> None:
        """Break off requests under way; what the servers have sent is lost."""
        self._recorder.over.set()
        self._cut = self._cut or self._proxy.active > 0
        self._proxy.cut()


@asynccontextmanager
async def open_recording(
    directory: Path, settings: Settings, clients: Clients, opening: Opening
) -> AsyncIterator[Recording]:
    """Open the recording in *directory*, ready to run: a new one, or where the last run left it."""
    async with AsyncExitStack() as stack:
        opened, _ = await opened_collection(stack, directory, settings, NOTHING_MORE, opening)
        layout, frontier = opened.layout, opened.frontier
        close_to_others(*layout.database_files())  # URLs and requests are a person's own, as the WARC files will be
        if not opening.resume:
            layout.indexes.chmod(0o700)  # keys hold what forms send, so that a replay finds the responses
        sent = SettingsByHost(opened.secrets.filled(settings))
        guard = AddressGuard(settings.fetch.allow_private, (), settings.fetch.insecure_secrets)
        fetcher = fetcher_of(stack, layout, sent, guard, None)
        journal = Journal(opened.index, CrawlLog(layout.log, settings.events), opened.clock)
        stack.callback(journal.abandon)
        writers = writers_of(opened, archives_of(opened), journal, opened.clock)
        for each in writers:
            stack.callback(each.abandon)
        space = DiskSpace(layout, settings.limits.min_free_disk, fetcher.spool_folder)
        recorder = Recorder(fetcher, frontier, writers, space, opened.clock)
        most = int(min(MOST_CONNECTIONS, allowed() / FILES_SHARE))
        limits = ProxyLimits(most, clients.largest, clients.websockets, clients.logins)
        port = clients.where.getsockname()[1]
        proxy = RecordingProxy(recorder, clients.authority, fetcher.spooling, limits, port)
        parts = frontier, fetcher.spool_folder, opened.clock
        recording = Recording(parts, recorder, proxy, clients.where, settings.limits.drain_timeout)
        await publish(stack, opened, recording.live, resume=opening.resume)
        yield recording
        await close_files(layout, frontier, writers, journal)
