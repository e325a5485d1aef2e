"""Writes batches of visits: one thread that turns visits into records, and the journal that both writers share.

Within a batch the order is fixed: read links, judge them, append records, sync files, then write index and crawl.log.
The database comes last and is not this module's business. There are two writers. The quick one hands back visits that
need a long time, because their document is large or names many links. The slow one takes them, so that no other visit
waits for them. Its thread runs at a lower priority: a scheduler that is fair to threads would let it compute for
milliseconds while a thread that was just woken waits, and each page wakes a dozen, one after the other.
"""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

from archiver.clock import Clock
from archiver.collection.crawl_log import CrawlLog, LogLine
from archiver.collection.index import Index
from archiver.collection.writer import Archive, PendingVisit
from archiver.crawl.dedup import DedupWriter
from archiver.crawl.reader_process import ReaderProcess
from archiver.crawl.recrawl import adjusted, conclude_left_out
from archiver.crawl.rules import CurrentRules
from archiver.crawl.visit import Visited, conclude, conclude_failure, conclude_unasked
from archiver.errors import ROBOTS_PRECLUDED, Failure
from archiver.extract.body_faults import with_body_faults
from archiver.extract.exchange import LargeDocumentError, read_links
from archiver.humanize import volume
from archiver.model import Event, FileState, Links, Profile, Resource, Settlement

log = logging.getLogger(__name__)

NICE = 5  # steps below the other threads: a quarter of a processor that all want, all of an idle one


def lower_priority() -> None:
    """Lower the priority of the calling thread. Only Linux has priorities of single threads."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICE)


FLUSH_EVERY = 2.0  # seconds between two looks of a replay at a running crawl …
FLUSH_SHARE = 20  # … but never more than a twentieth of the time
LARGE = 256 << 10  # bytes of a document that takes too long for the quick writer …
MANY = 2000  # … and so many links
SECONDS_PER_BYTE, SECONDS_PER_LINK = 5e-7, 5e-5  # of work, until we have measured the host
MOST_LINKS = 20_000  # in a batch: they stay in memory until it is settled
DUPLICATE = {
    Profile.IDENTICAL: "duplicate:digest",
    Profile.NOT_MODIFIED: "duplicate:server-not-modified",
}  # Heritrix's words


class SlowVisit(NamedTuple):
    """A visit for the slow writer, and how many seconds we expect it to need."""

    visited: Visited
    seconds: float


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch on disk, not yet in the database."""

    settlements: tuple[Settlement, ...]
    files: tuple[FileState, ...]
    resources: tuple[Resource, ...] = ()
    slow: tuple[SlowVisit, ...] = ()  # visits that are not stored: they go to the slow writer …
    left: tuple[Visited, ...] = ()  # … or in the next batch, because this one is full
    seconds: tuple[float, ...] = ()  # that each settlement took to prepare


class Journal:
    """The index and crawl.log, which both writers share."""

    def __init__(self, index: Index, log: CrawlLog, clock: Clock) -> None:
        self._index = index
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._flush_at = 0.0

    @property
    def behind(self) -> bool:
        """True if a replay could not see everything."""
        return self._index.dirty

    def enter(self, stored: StoredBatch) -> None:
        """Add what was stored to the index, for pywb, and to crawl.log, for people."""
        with self._lock:
            self._index.add(each.capture for each in stored.settlements if each.capture is not None)
            self._index.add(stored.resources)
            for file in stored.files:
                if file.closed:
                    self._index.close_file(file.name)
            settled = [each for each in stored.settlements if each.event is not Event.DELAY]
            self._log.write([_log_line(each) for each in settled])
            if log.isEnabledFor(logging.INFO):
                _report_urls(settled)
            now = self._clock.now()
            if now >= self._flush_at:
                self._index.flush()
                spent = self._clock.now() - now
                self._flush_at = now + max(FLUSH_EVERY, FLUSH_SHARE * spent)

    def flush(self) -> None:
        """Let a replay see everything."""
        with self._lock:
            self._index.flush()

    def close(self) -> None:
        """Finish the index as one file, because the crawl is over."""
        with self._lock:
            self._log.close()
            self._index.finish()

    def leave(self) -> None:
        """Let a replay see everything; the supervisor finishes the index when all crawlers have ended."""
        with self._lock:
            self._log.close()
            self._index.flush()

    def abandon(self) -> None:
        """Close the log; the index can be built again."""
        with self._lock:
            self._log.abandon()


class BatchWriter:
    """Writes one batch after the other; the next comes when the database knows the one before.

    It reads documents with *read* and closes that at its end. The thread of the *slow* writer has a lower priority.
    """

    def __init__(
        self,
        archive: Archive | DedupWriter,
        journal: Journal,
        rules: CurrentRules,
        clock: Clock,
        read: ReaderProcess,
        *,
        slow: bool = False,
    ) -> None:
        self.queue: list[Visited] = []
        self.arrived = asyncio.Event()
        self.enough = asyncio.Event()  # a batch need not wait for more
        self._archive = archive
        self._journal = journal
        self._rules = rules
        self._clock = clock
        self._slow = slow
        self._read = read
        self._thread = ThreadPoolExecutor(1, "archive", lower_priority if slow else None)

    @property
    def behind(self) -> bool:
        """True if a replay could not see everything in the archive."""
        return self._journal.behind

    async def store(self, batch: Sequence[Visited]) -> StoredBatch:
        """Read links, judge, append and sync, all in the thread of this writer."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store, batch)

    async def flush(self) -> None:
        """Let a replay see everything."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._journal.flush)

    async def finish_old(self) -> tuple[FileState, ...]:
        """Finish files that are too old; the database must hold all earlier batches of this writer."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._finish_old)

    def _finish_old(self) -> tuple[FileState, ...]:
        files = self._archive.finish_old()
        self._journal.enter(StoredBatch((), files))
        return files

    async def close(self) -> tuple[FileState, ...]:
        """Finish the open file and end the thread."""
        files = await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()
        return files

    def abandon(self) -> None:
        """Leave all files as they are."""
        self._thread.shutdown(cancel_futures=True)
        self._read.close()
        self._archive.abandon()

    def _store(self, batch: Sequence[Visited]) -> StoredBatch:
        settlements: list[Settlement] = []
        deposits: dict[int, PendingVisit] = {}  # by the place of their settlement
        slow: list[SlowVisit] = []
        seconds: list[float] = []
        taken = links = 0
        with self._read.marking(each.claim.url for each in batch if each.links is None):
            for visited in batch:
                if links >= MOST_LINKS:
                    break
                taken += 1
                began = self._clock.now()
                try:
                    settlement, deposit = self._judge(visited, began)
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
        self._journal.enter(stored)
        return stored

    def _judge(self, visited: Visited, now: float) -> tuple[Settlement, PendingVisit | None]:
        """Return the settlement of *visited*, and what is to be stored of it."""
        rules, claim, exchange = self._rules.visit_rules, visited.claim, visited.exchange
        if exchange is not None:
            links = self._links(visited)
            if visited.unmodified is None:
                exchange = with_body_faults(exchange, links)
            deposit = PendingVisit(claim, exchange, links, upload=visited.upload)
            if (stored := visited.unmodified) is not None:
                deposit = deposit._replace(revisit=stored.original, links_of=(stored.file.name, stored.offset))
            settlement = conclude(rules, claim, exchange, links, now)
            if visited.cookies:
                settlement = settlement._replace(cookies=visited.cookies)
            return self._adjusted(settlement, links), deposit
        if visited.error is not None:
            return conclude_failure(rules, visited, now), None
        if visited.unmodified is not None:
            links = self._links(visited)
            return self._adjusted(conclude_left_out(rules, visited, links, now), links), None
        return conclude_unasked(rules, visited, now), None

    def _adjusted(self, settlement: Settlement, links: Links) -> Settlement:
        memory = self._rules.memory
        return settlement if memory is None else adjusted(settlement, links, memory, self._rules.sitemap_dates)

    def _links(self, visited: Visited) -> Links:
        """Return the links of a visit, in good time for this writer."""
        links = visited.links if visited.links is not None else self._read_links(visited)
        if not self._slow and len(links.links) > MANY:
            raise _SlowError(replace(visited, links=links), len(links.links) * SECONDS_PER_LINK)
        return links

    def _read_links(self, visited: Visited) -> Links:
        """Return the links of a visit; a page that has not changed has the links of the stored one."""
        try:
            if visited.unmodified is not None:
                return visited.unmodified.links(visited.claim, self._read)
            assert visited.exchange is not None
            links, hooks = read_links(visited.claim, visited.exchange, self._read), self._rules.visit_rules.hooks
        except LargeDocumentError as error:
            raise _SlowError(visited, error.size * SECONDS_PER_BYTE) from None
        return links if hooks is None else hooks.further(visited.claim, visited.exchange, links)

    def _close(self) -> tuple[FileState, ...]:
        self._read.close()
        files = self._archive.close()
        self._journal.enter(StoredBatch((), files))
        return files


class _SlowError(Exception):
    """The visit belongs to the slow writer."""

    def __init__(self, visited: Visited, seconds: float) -> None:
        super().__init__(visited.claim.url)
        self.slow = SlowVisit(visited, seconds)


def _report_urls(settlements: Iterable[Settlement]) -> None:
    """Log a line for each URL, for `--verbose`."""
    for each in settlements:
        claim, capture = each.claim, each.capture
        result = each.failure or each.event.value
        if capture is not None:
            kind = f"revisit of {capture.mime}" if capture.revisit else capture.mime
            result = f"{capture.status} {kind} {volume(capture.payload_length)}"
        log.info("%s %s", f"{result}, will retry" if each.event is Event.RETRY else result, claim.url)
        log.debug(
            "hops %s via %s, %.2f s, %s", claim.path or "-", claim.via or "-", each.duration, each.note or "no note"
        )


def _log_line(each: Settlement) -> LogLine:
    capture, claim = each.capture, each.claim
    words = [*each.annotations]
    if each.event is Event.RETRY:
        words.append("retry")
    forbidden = capture is None and each.event is Event.FORBID and each.failure == Failure.ROBOTS
    if capture is not None:
        status = capture.status
        if capture.revisit:
            words.append(DUPLICATE[capture.revisit])
    else:
        if claim.tries and each.asked and not forbidden:
            words.insert(0, f"{claim.tries + 1}t")
        status = ROBOTS_PRECLUDED if forbidden else Failure(each.failure).heritrix_code
        if each.note and not forbidden:
            words.append(f"err={each.note}")
    size = None if capture is None else 0 if capture.revisit is Profile.NOT_MODIFIED else capture.payload_length
    return LogLine(
        logged=each.settled,
        status=status,
        size=size,
        url=claim.url,
        path=claim.path,
        via=claim.via,
        mime="" if capture is None else capture.mime,
        started=None if capture is None else capture.timestamp / 1e6,
        duration=0.0 if capture is None else each.duration,
        digest="" if capture is None else capture.payload_digest,
        annotations=words,
        source=claim.seed,
    )
