"""Threads whose work may take longer: hashing and writing what is large, beside pages that somebody waits for.

A scheduler that is fair to threads lets one that computes go on for milliseconds while one that was just woken waits,
and a page wakes a dozen, one after the other.

A lane: one thread that turns batches of visits into records, and the books that all lanes keep together.

Within a batch the order is fixed: links read, records appended, files synced, then index and crawl.log. The database
comes last and is not this module's business. The quick lane hands visits back that need a long time: those whose
document is large, or names many links. The slow lane takes them, so that nobody else waits for them.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from archiver.clock import Clock
from archiver.collection.crawl_log import CrawlLog, LogLine
from archiver.collection.index import Index
from archiver.collection.writer import PendingVisit, WriteResult
from archiver.crawl.reader_process import ReaderProcess
from archiver.crawl.rules import CurrentRules
from archiver.crawl.visit import Visited, conclude, conclude_failure, conclude_unasked
from archiver.errors import ROBOTS_PRECLUDED, Failure
from archiver.extract.exchange import LargeDocumentError, read_links, with_coding_fault
from archiver.model import Event, Exchange, FileState, Links, Profile, Resource, Settlement

NICE = 5  # steps behind the others: a quarter of a processor that all want, all of one that nobody else wants


def stand_back() -> None:
    """The calling thread lets the others of this process go first. Only Linux has priorities of single threads."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICE)


FLUSH_EVERY = 2.0  # seconds between two looks of a replay at a running crawl …
FLUSH_SHARE = 20  # … but never more than a twentieth of the time
LARGE = 256 << 10  # bytes of a document that needs too long for the quick lane …
MANY = 2000  # … and so many links
SECONDS_PER_BYTE, SECONDS_PER_LINK = 5e-7, 5e-5  # of work, as long as nothing else is known of a host
MOST_LINKS = 20_000  # of a batch: they are held in memory until it is settled
DUPLICATE = {
    Profile.IDENTICAL: "duplicate:digest",
    Profile.NOT_MODIFIED: "duplicate:server-not-modified",
}  # Heritrix's words


class SlowVisit(NamedTuple):
    """A visit for the slow lane, and how many seconds it is thought to need."""

    visited: Visited
    seconds: float


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch on disk, not yet in the database."""

    settlements: tuple[Settlement, ...]
    files: tuple[FileState, ...]
    resources: tuple[Resource, ...] = ()
    slow: tuple[SlowVisit, ...] = ()  # visits of the batch that are not stored: they belong in the slow lane …
    left: tuple[Visited, ...] = ()  # … or in the next batch, because this one is full
    seconds: tuple[float, ...] = ()  # that each settlement took to prepare


class Journal:
    """Index and log, which the lanes share."""

    def __init__(self, index: Index, log: CrawlLog, clock: Clock) -> None:
        self._index = index
        self._log = log
        self._clock = clock
        self._turn = threading.Lock()
        self._flush_at = 0.0

    @property
    def behind(self) -> bool:
        """Whether a replay could not see everything."""
        return self._index.dirty

    def enter(self, stored: StoredBatch) -> None:
        """Write down what was stored, for pywb and for people."""
        with self._turn:
            self._index.add(each.capture for each in stored.settlements if each.capture is not None)
            self._index.add(stored.resources)
            for file in stored.files:
                if file.closed:
                    self._index.close_file(file.name)
            self._log.write([_log_line(each) for each in stored.settlements if each.event is not Event.DELAY])
            now = self._clock.now()
            if now >= self._flush_at:
                self._index.flush()
                spent = self._clock.now() - now
                self._flush_at = now + max(FLUSH_EVERY, FLUSH_SHARE * spent)

    def flush(self) -> None:
        """Let a replay see everything."""
        with self._turn:
            self._index.flush()

    def close(self) -> None:
        """The crawl is over: one index file."""
        with self._turn:
            self._log.close()
            self._index.finish()

    def abandon(self) -> None:
        """Close the log; everything else can be made again."""
        with self._turn:
            self._log.abandon()


class VisitStore(Protocol):
    """Where a lane's visits go: an `Archive`, or one in which each payload is stored once."""

    def append(self, deposits: Sequence[PendingVisit]) -> WriteResult:
        """Store each of *deposits* whole; when this returns, all of them are on disk."""

    def close(self) -> tuple[FileState, ...]:
        """Give every file its final name."""

    def abandon(self) -> None:
        """Leave the open file as it is."""


class BatchWriter:
    """Batches of one kind, one after the other: the next is handed in when the database knows the one before.

    It reads documents by *read*, which ends with it. The thread of a *slow* one stands back behind the others.
    """

    def __init__(
        self,
        archive: VisitStore,
        books: Journal,
        in_force: CurrentRules,
        clock: Clock,
        read: ReaderProcess,
        *,
        slow: bool = False,
    ) -> None:
        self.queue: list[Visited] = []
        self.arrived = asyncio.Event()
        self.enough = asyncio.Event()  # a batch need not wait for more
        self._archive = archive
        self._books = books
        self._in_force = in_force
        self._clock = clock
        self._slow = slow
        self._read = read
        self._thread = ThreadPoolExecutor(1, "archive", stand_back if slow else None)

    @property
    def behind(self) -> bool:
        """Whether a replay could not see everything that lies in the archive."""
        return self._books.behind

    async def store(self, batch: Sequence[Visited]) -> StoredBatch:
        """Read links, append, sync: all in the lane's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store, batch)

    async def flush(self) -> None:
        """Let a replay see everything."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._books.flush)

    async def close(self) -> tuple[FileState, ...]:
        """Finish the open file and end the thread."""
        files = await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()
        return files

    def abandon(self) -> None:
        """Leave everything as it is."""
        self._thread.shutdown(cancel_futures=True)
        self._read.close()
        self._archive.abandon()

    def _store(self, batch: Sequence[Visited]) -> StoredBatch:
        settlements: list[Settlement] = []
        deposits: dict[int, PendingVisit] = {}  # by the place of their settlement
        slow: list[SlowVisit] = []
        seconds: list[float] = []
        taken = links = 0
        for visited in batch:
            if links >= MOST_LINKS:
                break
            taken += 1
            began = self._clock.now()
            try:
                settlement, deposit = self._concluded(visited, began)
            except _SlowError as error:
                slow.append(error.slow)
                continue
            if deposit is not None:
                deposits[len(settlements)] = deposit
                links += len(deposit.links.links)
            settlements.append(settlement)
            seconds.append(self._clock.now() - began)
        receipt = self._archive.append(tuple(deposits.values()))
        for (place, deposit), capture in zip(deposits.items(), receipt.captures, strict=True):
            settlements[place] = settlements[place]._replace(capture=capture)
            deposit.exchange.response.close()
        stored = StoredBatch(
            tuple(settlements), receipt.files, receipt.resources, tuple(slow), tuple(batch[taken:]), tuple(seconds)
        )
        self._books.enter(stored)
        return stored

    def _concluded(self, visited: Visited, now: float) -> tuple[Settlement, PendingVisit | None]:
        """What *visited* means, and what is to be stored of it."""
        terms, claim, exchange = self._in_force.terms, visited.claim, visited.exchange
        if exchange is not None:
            links = visited.links if visited.links is not None else self._links(visited, exchange)
            if not self._slow and len(links.links) > MANY:
                raise _SlowError(replace(visited, links=links), len(links.links) * SECONDS_PER_LINK)
            if visited.unmodified is None:
                exchange = with_coding_fault(exchange, links)
            deposit = PendingVisit(claim, exchange, links)
            if (stored := visited.unmodified) is not None:
                deposit = deposit._replace(revisit=stored.original, links_of=(stored.file.name, stored.offset))
            return self._in_force.hurried(conclude(terms, claim, exchange, links, now), links), deposit
        if visited.error is not None:
            return conclude_failure(terms, visited, now), None
        return conclude_unasked(visited, now), None

    def _links(self, visited: Visited, exchange: Exchange) -> Links:
        """What the visit names; a page that has not changed names what the stored one names."""
        try:
            if visited.unmodified is not None:
                return visited.unmodified.links(visited.claim, self._read)
            return read_links(visited.claim, exchange, self._read)
        except LargeDocumentError as error:
            raise _SlowError(visited, error.size * SECONDS_PER_BYTE) from None

    def _close(self) -> tuple[FileState, ...]:
        self._read.close()
        files = self._archive.close()
        self._books.enter(StoredBatch((), files))
        return files


class _SlowError(Exception):
    """The visit belongs in the slow lane."""

    def __init__(self, visited: Visited, seconds: float) -> None:
        super().__init__(visited.claim.url)
        self.slow = SlowVisit(visited, seconds)


def _log_line(each: Settlement) -> LogLine:
    capture, claim = each.capture, each.claim
    words = [*each.annotations]
    if each.event is Event.RETRY:
        words.append("retry")
    if capture is not None:
        if capture.revisit:
            words.append(DUPLICATE[capture.revisit])
        return LogLine(
            logged=each.settled,
            status=capture.status,
            size=0 if capture.revisit is Profile.NOT_MODIFIED else capture.payload_length,
            url=claim.url,
            path=claim.path,
            via=claim.via,
            mime=capture.mime,
            started=capture.timestamp / 1e6,
            duration=each.duration,
            digest=capture.payload_digest,
            annotations=words,
            source=claim.seed,
        )
    forbidden = each.event is Event.FORBID and each.failure == Failure.ROBOTS
    if claim.tries and each.asked and not forbidden:
        words.insert(0, f"{claim.tries + 1}t")
    code = ROBOTS_PRECLUDED if forbidden else Failure(each.failure).heritrix_code
    if each.note and not forbidden:
        words.append(f"err={each.note}")
    return LogLine(
        logged=each.settled,
        status=code,
        size=None,
        url=claim.url,
        path=claim.path,
        via=claim.via,
        mime="",
        started=None,
        duration=0.0,
        digest="",
        annotations=words,
        source=claim.seed,
    )
