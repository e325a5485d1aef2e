"""A lane: one thread that turns batches of visits into records, and the books that all lanes keep together.

Within a batch the order is fixed: links read, records appended, files synced, then index and crawl.log. The database
comes last and is not this module's business.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from archiver.archive.crawllog import CrawlLog, LogLine
from archiver.archive.index import Index
from archiver.archive.writer import Deposit, Receipt
from archiver.crawl.clock import Clock
from archiver.crawl.newer import hurried
from archiver.earlier import Memory, Version
from archiver.errors import ROBOTS_PRECLUDED, Failure
from archiver.model import Claim, Event, Exchange, FileState, Links, Profile, Resource, Settlement
from archiver.visit import Terms, Visited, conclude, conclude_failure, conclude_forbidden, held, read_links, room

FLUSH_EVERY = 2.0  # seconds between two looks of a replay at a running crawl …
FLUSH_SHARE = 20  # … but never more than a twentieth of the time
DUPLICATE = {
    Profile.IDENTICAL: "duplicate:digest",
    Profile.NOT_MODIFIED: "duplicate:server-not-modified",
}  # Heritrix's words


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch on disk, not yet in the database."""

    settlements: tuple[Settlement, ...]
    files: tuple[FileState, ...]
    resources: tuple[Resource, ...] = ()


class Books:
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

    def enter(self, stored: Stored) -> None:
        """Write down what was stored, for pywb and for people."""
        with self._turn:
            self._index.add(each.capture for each in stored.settlements if each.capture is not None)
            self._index.add(stored.resources)
            for file in stored.files:
                if file.closed:
                    self._index.close_file(file.name)
            self._log.write([_log_line(each) for each in stored.settlements])
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


class Store(Protocol):
    """Where a lane's visits go: an `Archive`, or one in which each payload is stored once."""

    def append(self, deposits: Sequence[Deposit]) -> Receipt:
        """Store each of *deposits* whole; when this returns, all of them are on disk."""

    def close(self) -> tuple[FileState, ...]:
        """Give every file its final name."""

    def abandon(self) -> None:
        """Leave the open file as it is."""


class InForce:
    """The terms by which visits are judged from now on: one value, put in the place of another while the crawl runs."""

    def __init__(self, terms: Terms, memory: Memory | None = None) -> None:
        self.terms = terms
        self._memory = memory

    def held(self, claim: Claim) -> str:
        """The rule by which *claim* is held back now, although it was taken; "" where none does."""
        return held(self.terms, claim)

    def room(self, claim: Claim) -> tuple[str, int]:
        """The pattern of *claim*, and how many of it may be under way now; "" where it does not matter."""
        return room(self.terms, claim)

    def hurried(self, settlement: Settlement, links: Links) -> Settlement:
        """*settlement*, in which what a sitemap says is newer than what earlier crawls have goes first."""
        if self._memory is None:
            return settlement
        return hurried(settlement, links, self._memory)


class Lane:
    """Batches of one kind, one after the other: the next is handed in when the database knows the one before.

    Its thread calls *begin* first.
    """

    def __init__(
        self, archive: Store, books: Books, in_force: InForce, clock: Clock, begin: Callable[[], None] | None = None
    ) -> None:
        self.queue: list[Visited] = []
        self.arrived = asyncio.Event()
        self.enough = asyncio.Event()  # a batch need not wait for more
        self._archive = archive
        self._books = books
        self._in_force = in_force
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "archive", begin)

    @property
    def behind(self) -> bool:
        """Whether a replay could not see everything that lies in the archive."""
        return self._books.behind

    async def store(self, batch: Sequence[Visited]) -> Stored:
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
        self._archive.abandon()

    def _store(self, batch: Sequence[Visited]) -> Stored:
        now, terms = self._clock.now(), self._in_force.terms
        settlements: list[Settlement] = []
        deposits: list[Deposit] = []
        places: list[int] = []
        for visited in batch:
            if visited.exchange is not None:
                deposit = _deposit(visited.claim, visited.exchange, visited.unmodified)
                places.append(len(settlements))
                deposits.append(deposit)
                concluded = conclude(terms, visited.claim, visited.exchange, deposit.links, now)
                settlements.append(self._in_force.hurried(concluded, deposit.links))
            elif visited.error is not None:
                settlements.append(conclude_failure(terms, visited, now))
            else:
                settlements.append(conclude_forbidden(visited.claim, visited.forbidden, now, visited.failure))
        receipt = self._archive.append(deposits)
        for place, capture, deposit in zip(places, receipt.captures, deposits, strict=True):
            settlements[place] = settlements[place]._replace(capture=capture)
            deposit.exchange.response.close()
        stored = Stored(tuple(settlements), receipt.files, receipt.resources)
        self._books.enter(stored)
        return stored

    def _close(self) -> tuple[FileState, ...]:
        files = self._archive.close()
        self._books.enter(Stored((), files))
        return files


def _deposit(claim: Claim, exchange: Exchange, unmodified: Version | None) -> Deposit:
    """The visit as it is to be stored; a page that has not changed names what the stored one names."""
    if unmodified is None:
        return Deposit(claim, exchange, read_links(claim, exchange))
    return Deposit(claim, exchange, unmodified.links(claim), unmodified.original)


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
            took=each.took,
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
        took=0.0,
        digest="",
        annotations=words,
        source=claim.seed,
    )
