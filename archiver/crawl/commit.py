"""The one commit point: links read, records appended and synced, and then one transaction that says what they were.

Visits that come together are committed together: while one batch is on its way to the disk the next one gathers.
Large responses take a lane of their own. Within a lane batches are committed in the order in which they were
written, so the committed length of a file never passes over a visit.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from archiver.archive.crawllog import CrawlLog, LogLine
from archiver.archive.index import Index
from archiver.archive.writer import Archive, Deposit
from archiver.crawl.clock import Clock
from archiver.errors import Failure
from archiver.frontier.port import Frontier, Settled
from archiver.model import Event, FileState, Settlement
from archiver.visit import Terms, Visited, conclude, conclude_failure, conclude_forbidden, read_links

LARGE = 8 << 20  # bytes of a response that goes to the lane of large ones
ROOM = 32 << 20  # bytes that may wait for their commit before fetching is held back
ROOM_VISITS = 512
BATCH = 64  # visits for which a busy crawl waits …
GATHER = 0.05  # … at most this many seconds
FLUSH_EVERY = 2.0  # seconds between two looks of a replay at a running crawl …
FLUSH_SHARE = 20  # … but never more than a twentieth of the time

Report = Callable[[Sequence[Settlement], Settled], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch on disk, not yet in the database."""

    settlements: tuple[Settlement, ...]
    files: tuple[FileState, ...]


class Books:
    """Index and log, which the lanes share."""

    def __init__(self, index: Index, log: CrawlLog, clock: Clock) -> None:
        self._index = index
        self._log = log
        self._clock = clock
        self._turn = threading.Lock()
        self._flush_at = 0.0

    def enter(self, stored: Stored) -> None:
        """Write down what was stored, for pywb and for people."""
        with self._turn:
            self._index.add(each.capture for each in stored.settlements if each.capture is not None)
            for file in stored.files:
                if file.closed:
                    self._index.close_file(file.name)
            self._log.write([_log_line(each) for each in stored.settlements])
            now = self._clock.now()
            if now >= self._flush_at:
                self._index.flush()
                spent = self._clock.now() - now
                self._flush_at = now + max(FLUSH_EVERY, FLUSH_SHARE * spent)

    def close(self) -> None:
        """The crawl is over: one index file."""
        with self._turn:
            self._log.close()
            self._index.finish()

    def forget_runs(self) -> None:
        """The database knows that everything is indexed."""
        with self._turn:
            self._index.forget_runs()

    def abandon(self) -> None:
        """Close the log; everything else can be made again."""
        with self._turn:
            self._log.close()


class Lane:
    """Batches of one kind, one after the other."""

    def __init__(self, archive: Archive, books: Books, terms: Terms, clock: Clock) -> None:
        self.archive = archive
        self.queue: list[Visited] = []
        self.arrived = asyncio.Event()
        self._books = books
        self._terms = terms
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive")

    async def store(self, batch: Sequence[Visited]) -> Stored:
        """Read links, append, sync: all in the lane's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store, batch)

    async def close(self) -> tuple[FileState, ...]:
        """Finish the open file and end the thread."""
        files = await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()
        return files

    def abandon(self) -> None:
        """Leave everything as it is."""
        self._thread.shutdown(cancel_futures=True)
        self.archive.abandon()

    def _store(self, batch: Sequence[Visited]) -> Stored:
        now = self._clock.now()
        settlements: list[Settlement] = []
        deposits: list[Deposit] = []
        places: list[int] = []
        for visited in batch:
            if visited.exchange is not None:
                links = read_links(visited.claim, visited.exchange)
                places.append(len(settlements))
                deposits.append(Deposit(visited.claim, visited.exchange, links))
                settlements.append(conclude(self._terms, visited.claim, visited.exchange, links, now))
            elif visited.error is not None:
                settlements.append(conclude_failure(self._terms, visited, now))
            else:
                settlements.append(conclude_forbidden(visited.claim, visited.forbidden, now))
        receipt = self.archive.append(deposits)
        for place, capture, deposit in zip(places, receipt.captures, deposits, strict=True):
            settlements[place] = replace(settlements[place], capture=capture)
            deposit.exchange.response.close()
        stored = Stored(tuple(settlements), receipt.files)
        self._books.enter(stored)
        return stored

    def _close(self) -> tuple[FileState, ...]:
        files = self.archive.close()
        self._books.enter(Stored((), files))
        return files


class Committer:
    """Takes visits, commits them in batches, and reports what each batch changed."""

    def __init__(self, frontier: Frontier, small: Lane, large: Lane) -> None:
        self._frontier = frontier
        self._lanes = (small, large)
        self._report: Report | None = None
        self._hurry: Callable[[], bool] = lambda: True
        self._room = asyncio.Condition()
        self._bytes = 0
        self._visits = 0
        self._closing = False

    def attach(self, report: Report, hurry: Callable[[], bool]) -> None:
        """Whom to tell of each batch, and whether nothing is under way for which a batch could wait."""
        self._report = report
        self._hurry = hurry

    @property
    def pending(self) -> int:
        """Visits that are not committed yet."""
        return self._visits

    async def put(self, visited: Visited) -> None:
        """Hand a visit in; returns at once unless too much is waiting to be written."""
        size = visited.exchange.response.length if visited.exchange is not None else 0
        held = size if size <= LARGE else 0  # a larger one is in a file
        async with self._room:
            await self._room.wait_for(lambda: self._bytes + held <= max(ROOM, held) and self._visits < ROOM_VISITS)
            self._bytes += held
            self._visits += 1
        lane = self._lanes[size > LARGE]
        lane.queue.append(visited)
        lane.arrived.set()

    async def run(self) -> None:
        """Commit until `close`; any error of storage ends it, and with it the crawl."""
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._serve(lane))

    def close(self) -> None:
        """No more visits will come; `run` returns when all are committed."""
        self._closing = True
        for lane in self._lanes:
            lane.arrived.set()

    async def _serve(self, lane: Lane) -> None:
        while True:
            await lane.arrived.wait()
            if not lane.queue and self._closing:
                return
            await self._gather(lane)
            batch, lane.queue[:] = lane.queue[:BATCH], lane.queue[BATCH:]
            if not lane.queue and not self._closing:
                lane.arrived.clear()
            if batch:
                await self._commit(lane, batch)

    async def _gather(self, lane: Lane) -> None:
        """An idle crawl does not wait for a batch to fill, a busy one a moment."""
        end = asyncio.get_running_loop().time() + GATHER
        while len(lane.queue) < BATCH and not self._closing and not self._hurry():
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                return
            lane.arrived.clear()
            try:
                async with asyncio.timeout(left):
                    await lane.arrived.wait()
            except TimeoutError:
                lane.arrived.set()
                return

    async def _commit(self, lane: Lane, batch: Sequence[Visited]) -> None:
        stored = await lane.store(batch)
        settled = await self._frontier.settle(stored.settlements, stored.files)
        async with self._room:
            self._bytes -= sum(size for visited in batch if visited.exchange and (size := visited.exchange.response.length) <= LARGE)
            self._visits -= len(batch)
            self._room.notify_all()
        if self._report is not None:
            await self._report(stored.settlements, settled)


def _log_line(each: Settlement) -> LogLine:
    capture, claim = each.capture, each.claim
    words = [*each.annotations]
    if each.event is Event.RETRY:
        words.append("retry")
    if capture is not None:
        return LogLine(
            logged=each.settled,
            status=capture.status,
            size=capture.payload_length,
            url=claim.url,
            path=claim.path,
            via=claim.via,
            mime=capture.mime,
            started=capture.timestamp / 1e6,
            took=each.took,
            digest=capture.payload_digest,
            annotations=words,
        )
    code = -9998 if each.event is Event.FORBID else Failure(each.failure).heritrix_code
    if each.note and each.event is not Event.FORBID:
        words.append(f"err={each.note}")
    return LogLine(each.settled, code, None, claim.url, claim.path, claim.via, "", None, 0.0, "", words)
