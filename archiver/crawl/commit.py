"""Commits visits in batches: read the links, append and sync the records, then describe both in one transaction.

While one batch is on its way to the disk the next one gathers. There are two writers. The slow one takes large
responses, large documents and pages with very many links, and gives each host the same share of its time. Each writer
commits its batches in the order in which it wrote them, so the committed length of a file never passes over a visit.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from archiver.clock import Clock
from archiver.collection.layout import Layout
from archiver.crawl.batch_writer import BatchWriter, Journal, StoredBatch
from archiver.crawl.live.tally import CommitTally
from archiver.crawl.reader_process import MARK
from archiver.crawl.visit import Visited
from archiver.frontier.port import Frontier, Settled
from archiver.model import Claim, FileState, Settlement
from archiver.policy.schedule import Schedule

LARGE = 8 << 20  # bytes of a response that goes to the slow writer at once
MOST_LINKS = 100_000  # kept in memory for the slow writer; beyond that, it reads the documents again
BACKLOG = 0.5  # seconds of slow work for one host; with more than that we stop sending it requests
ROOM = 32 << 20  # bytes in memory that may wait for their commit before fetching is held back
ROOM_VISITS = 512  # as a rule fewer: each holds one of the crawl's slots
ROOM_LARGE = 8  # large responses that may wait, each in a spool file
BATCH = 64  # visits for which a busy crawl waits …
GATHER = 0.05  # … at most this many seconds
LONGEST_BATCH = 256  # visits that came in the meantime: a batch costs two syncs of the disk, however long it is
AGE_EVERY = 10.0  # seconds between two looks for files that are too old, while there is nothing to write
FLUSH_AFTER = 2.0  # seconds without a visit until the index is brought up to date for a replay

Waiting = deque[tuple[int, "asyncio.Future[None]"]]  # bytes, and the future to set when there is room for them


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch that is in the frontier, and what it changed there."""

    settlements: Sequence[Settlement]
    settled: Settled
    dropped: tuple[Claim, ...] = ()  # visits that the slow writer will not read any more, or whose leases were lost


class Committer:
    """Takes visits and commits them in batches."""

    def __init__(
        self, frontier: Frontier, schedule: Schedule, writers: tuple[BatchWriter, BatchWriter], clock: Clock
    ) -> None:
        """*writers*: the quick one and the slow one."""
        self.writers = writers
        self._frontier = frontier
        self._schedule = schedule
        self._quick, self._slow = writers
        self._clock = clock
        self._shares = FairShares(schedule)
        self.tally = CommitTally()
        self._waiting: tuple[Waiting, Waiting] = (deque(), deque())  # for room, in order: small visits, large ones
        self._bytes = 0
        self.pending = 0  # visits that are not committed yet
        self._large_ones = 0
        self._closing = False
        self._cutting = False  # the slow writer reads no more documents
        self._quick_done = False  # so it hands nothing more to the slow writer

    async def put(self, visited: Visited) -> bool:
        """Take a visit, as soon as there is room for it; return False if it comes too late to be read."""
        size, large = _weight(visited)
        if self._waiting[large] or not self._fits(size, large):
            await self._wait_for_room(size, large)
        else:
            self._take_room(size, large)
        writer = self._slow if large or self._shares.is_dear(visited.claim.host) else self._quick
        if self._cutting and writer is self._slow and not large:
            self._drop([visited])
            return False
        writer.queue.append(visited)
        if writer is self._slow:
            self._limit_backlog({visited.claim.host})
        writer.arrived.set()
        if len(writer.queue) >= BATCH or not self._schedule.active:
            writer.enough.set()
        return True

    async def commit_next(self, writer: BatchWriter) -> CommittedBatch | None:
        """Commit the next batch of *writer*; None when `close` was called and nothing is left.

        Any error of storage ends the crawl.
        """
        while True:
            await self._wait_for_visit(writer)
            if not writer.queue and self._closing:
                if writer is self._quick:
                    self._quick_done = True
                    self._slow.arrived.set()
                    return None
                if self._quick_done:
                    return None
                writer.arrived.clear()
                continue
            await self._gather(writer)
            batch = self._next_batch(writer)
            if not writer.queue and not self._closing:
                writer.arrived.clear()
            if batch:
                return await self._commit(writer, batch)

    def close(self) -> None:
        """No more visits will come; `commit_next` returns None when all are committed."""
        self._closing = True
        for writer in self.writers:
            writer.arrived.set()
            writer.enough.set()

    def cut_short(self) -> list[Claim]:
        """Stop reading documents in the slow writer; return the claims of the visits that waited for it.

        There is no time left to read them, so the next run fetches their URLs again. Large responses only have to be
        written and stay.
        """
        self._cutting = True
        dropped = [visited for visited in self._slow.queue if not _weight(visited)[1]]
        self._slow.queue[:] = [visited for visited in self._slow.queue if _weight(visited)[1]]
        return self._drop(dropped)

    def _drop(self, visits: Sequence[Visited]) -> list[Claim]:
        for visited in visits:
            if visited.exchange is not None:
                visited.exchange.response.close()
            self._give_room(*_weight(visited), 1)
        return [visited.claim for visited in visits]

    async def _wait_for_room(self, size: int, large: int) -> None:
        """Wait until there is room, and take it."""
        room = asyncio.get_running_loop().create_future()
        self._waiting[large].append((size, room))
        try:
            await room
        except asyncio.CancelledError:
            if not room.cancelled():  # the room was given to us in the same moment
                self._give_room(size, large, 1)
            raise

    def _take_room(self, size: int, large: int) -> None:
        self._bytes += size
        self._large_ones += large
        self.pending += 1

    def _give_room(self, size: int, large: int, visits: int) -> None:
        """Give room back, and wake only those who fit in: thousands may be waiting."""
        self._bytes -= size
        self._large_ones -= large
        self.pending -= visits
        for kind, waiting in enumerate(self._waiting):
            while waiting and (waiting[0][1].done() or self._fits(waiting[0][0], kind)):
                next_size, room = waiting.popleft()
                if not room.done():
                    self._take_room(next_size, kind)
                    room.set_result(None)

    def _fits(self, size: int, large: int) -> bool:
        return (
            self._bytes + size <= max(ROOM, size)
            and self.pending < ROOM_VISITS
            and self._large_ones + large <= ROOM_LARGE
        )

    def _next_batch(self, writer: BatchWriter) -> list[Visited]:
        if writer is self._slow:
            return self._shares.next(writer.queue, [bool(_weight(visited)[1]) for visited in writer.queue])
        batch, writer.queue[:] = writer.queue[:LONGEST_BATCH], writer.queue[LONGEST_BATCH:]
        return batch

    async def _wait_for_visit(self, writer: BatchWriter) -> None:
        """Wait for a visit; meanwhile an index that is behind catches up, and files get too old."""
        if not writer.arrived.is_set() and writer.behind:
            try:
                async with asyncio.timeout(FLUSH_AFTER):
                    await writer.arrived.wait()
            except TimeoutError:
                await writer.flush()
        while not writer.arrived.is_set():
            try:
                async with asyncio.timeout(AGE_EVERY):
                    await writer.arrived.wait()
            except TimeoutError:
                if files := await writer.finish_old():
                    await self._frontier.settle((), files)

    async def _gather(self, writer: BatchWriter) -> None:
        """Give a batch a moment to fill while the crawl is busy."""
        writer.enough.clear()
        if writer is self._slow or len(writer.queue) >= BATCH or self._closing or not self._schedule.active:
            return
        timer = asyncio.get_running_loop().call_later(GATHER, writer.enough.set)
        try:
            await writer.enough.wait()
        finally:
            timer.cancel()

    async def _commit(self, writer: BatchWriter, batch: Sequence[Visited]) -> CommittedBatch:
        chosen = self._clock.now()
        stored = await writer.store(batch)
        dropped = self._requeue(writer, stored)
        began, states = self._clock.now(), self._schedule.take_unsaved()
        settled = await self._frontier.settle(stored.settlements, stored.files, states, stored.resources)
        self._charge(writer, stored, self._clock.now() - began)
        if writer is self._slow:
            self._limit_backlog({visited.claim.host for visited in batch})
        undone = {visited.claim.id for visited in (*(each.visited for each in stored.slow), *stored.left)}
        weights = [_weight(visited) for visited in batch if visited.claim.id not in undone]
        self._give_room(sum(size for size, _ in weights), sum(large for _, large in weights), len(weights))
        own = [each for each in stored.settlements if each.claim.id not in settled.lost]
        dropped += [each.claim for each in stored.settlements if each.claim.id in settled.lost]
        self.tally.committed(chosen, self._clock.now(), own, stored.files)
        return CommittedBatch(own, settled, tuple(dropped))

    def _requeue(self, writer: BatchWriter, stored: StoredBatch) -> list[Claim]:
        """Queue again what was not stored; return the claims of what is dropped instead."""
        writer.queue[:0] = stored.left
        if writer.queue:
            writer.arrived.set()
        if self._cutting:
            return self._drop([visited for visited, _ in stored.slow])
        if stored.slow:
            self._slow.arrived.set()
            links = sum(len(visited.links.links) for visited in self._slow.queue if visited.links is not None)
            for visited, seconds in stored.slow:
                links += len(visited.links.links) if visited.links is not None else 0
                self._slow.queue.append(visited if links <= MOST_LINKS else replace(visited, links=None))
                self._shares.expect(visited.claim.host, seconds)
            self._limit_backlog({visited.claim.host for visited, _ in stored.slow})
        return []

    def _charge(self, writer: BatchWriter, stored: StoredBatch, seconds: float) -> None:
        """Charge each host for its visits; settling the batch took *seconds*, most of it for links."""
        links = [1 + len(each.found) + len(each.refused) for each in stored.settlements]
        total = sum(links)
        for each, number, prepared in zip(stored.settlements, links, stored.seconds, strict=True):
            self._shares.charge(each.claim.host, prepared + seconds * number / total, slow=writer is self._slow)

    def _limit_backlog(self, hosts: Collection[int]) -> None:
        """Let *hosts* rest until less than BACKLOG of their work waits for the slow writer, but no longer.

        Answers that wait take the slots of other hosts. A host that is alone never waits for a writer with nothing to
        do: its rest is computed again after each batch.
        """
        waiting = Counter(visited.claim.host for visited in self._slow.queue)
        now = self._clock.now()
        for host in hosts:
            excess = waiting[host] * self._shares.cost(host) - BACKLOG
            self._schedule.limit_backlog(host, now + max(excess, 0.0) * len(waiting), now)


TURN = 0.25  # seconds of expected work in one batch, and so the time that another host waits
MOST_IN_TURN = 64  # visits in one batch
UNKNOWN = 0.05  # seconds for a visit of a host that we know nothing about
DEAR = 0.1  # seconds for a visit; a host with dearer visits gives all of them to the slow writer


class FairShares:
    """Chooses the next visits for the slow writer: each host gets the same share of its time, whatever its pages cost.

    This is fair queueing by start times. A host that has used less time goes first, and one that comes back after a
    pause has saved nothing up. We measure costs, and expect the next visit of a host to cost what the latest ones did.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._now = 0.0  # when the latest turn began, on the clock of turns

    def cost(self, host: int) -> float:
        """Return the seconds that the next visit of *host* is expected to need."""
        cost = self._schedule.host(host).memory.visit_cost
        return UNKNOWN if cost is None else cost

    def is_dear(self, host: int) -> bool:
        """Return True if visits of *host* cost so much that no others should wait for them."""
        return (self._schedule.host(host).memory.visit_cost or 0.0) > DEAR

    def next(self, queue: list[Visited], alone: Sequence[bool]) -> list[Visited]:
        """Take the next batch out of *queue*; visits marked in *alone* become batches of their own."""
        batch: list[Visited] = []
        places = list(range(len(queue)))
        used = dict.fromkeys((visited.claim.host for visited in queue), 0.0)
        used = {host: max(self._now, self._schedule.host(host).memory.served_until) for host in used}
        expected = 0.0
        while places and expected < TURN and len(batch) < MOST_IN_TURN:
            place = min(places, key=lambda place: used[queue[place].claim.host])
            if batch and alone[place]:
                break
            host = queue[place].claim.host
            if not batch:
                self._now = used[host]
            places.remove(place)
            batch.append(queue[place])
            used[host] += self.cost(host)
            expected += self.cost(host)
            if alone[place]:
                break
        queue[:] = [queue[place] for place in places]
        return batch

    def expect(self, host: int, seconds: float) -> None:
        """Expect the next visit of *host* to need so many *seconds*, if that is more than before."""
        memory = self._schedule.host(host).memory
        memory.visit_cost = max(seconds, memory.visit_cost or 0.0)

    def charge(self, host: int, seconds: float, *, slow: bool) -> None:
        """Charge *host* for a visit; *slow*: by the slow writer."""
        memory = self._schedule.host(host).memory
        memory.visit_cost = seconds if memory.visit_cost is None else 0.7 * memory.visit_cost + 0.3 * seconds
        if slow:
            memory.served_until = max(self._now, memory.served_until) + seconds


def _weight(visited: Visited) -> tuple[int, int]:
    """Return the bytes that a visit holds in memory, and 1 if its response is a large one in a file."""
    size = visited.exchange.response.length if visited.exchange is not None else 0
    return (0, 1) if size > LARGE else (size, 0)


class FileWriter(Protocol):
    """A writer of WARC files."""

    async def close(self) -> tuple[FileState, ...]:
        """Finish the open file and end the thread."""

    def abandon(self) -> None:
        """Leave all files as they are."""


async def close_files(layout: Layout, frontier: Frontier, writers: Sequence[FileWriter], journal: Journal) -> None:
    """Give every file its final name, merge the index, and mark the files as indexed, in this order."""
    for writer in writers:
        await frontier.settle((), await writer.close())
    await asyncio.to_thread(journal.close)
    await finish_index(layout, frontier)


async def finish_index(layout: Layout, frontier: Frontier) -> None:
    """Mark the files as indexed; then the crawl leaves nothing else behind."""
    await frontier.mark_indexed()
    for mark in layout.spool.glob(MARK.format("*")):  # of crawlers that were killed, and did not come back
        mark.unlink()
    with suppress(OSError):  # something foreign lies in it: not ours to remove
        layout.spool.rmdir()
