"""The one commit point: links read, records appended and synced, and then one transaction that says what they were.

Visits that come together are committed together: while one batch is on its way to the disk the next one gathers.
Large responses, large documents and pages with very many links take a slow lane of their own, in which each host gets
the same share of time, whatever its pages cost. Within a lane batches are committed in the order in which they were
written, so the committed length of a file never passes over a visit.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from archiver.clock import Clock
from archiver.crawl.batch_writer import BatchWriter, StoredBatch
from archiver.crawl.fair_queue import FairShares
from archiver.crawl.visit import Visited
from archiver.frontier.port import NOTHING_NEW, Frontier, Settled
from archiver.model import Claim, Settlement
from archiver.policy.throttle import ThrottleState

LARGE = 8 << 20  # bytes of a response that goes to the slow lane at once
MOST_LINKS = 100_000  # that wait for the slow lane in memory; beyond, they are read once more when their turn comes
BACKLOG = 0.5  # seconds of work in the slow lane for one host, from which on it is not asked for more
ROOM = 32 << 20  # bytes in memory that may wait for their commit before fetching is held back
ROOM_VISITS = 512  # as a rule fewer: each holds one of the crawl's slots
ROOM_LARGE = 8  # large responses that may wait, each in a spool file
BATCH = 64  # visits for which a busy crawl waits …
GATHER = 0.05  # … at most this many seconds
LONGEST_BATCH = 256  # of those that came in the meantime: each batch costs two syncs of the disk, however long it is
FLUSH_AFTER = 2.0  # seconds without a visit until the index is brought up to date for a replay

Waiting = deque[tuple[int, "asyncio.Future[None]"]]  # bytes, and who is told when there is room for them
Report = Callable[[Sequence[Settlement], Settled], Awaitable[None]]


class Committer:
    """Takes visits, commits them in batches, and reports what each batch changed."""

    def __init__(self, frontier: Frontier, quick: BatchWriter, slow: BatchWriter, clock: Clock) -> None:
        self._frontier = frontier
        self._quick = quick
        self._slow = slow
        self._clock = clock
        self._shares = FairShares()
        self._report: Report | None = None
        self._hurry: Callable[[], bool] = lambda: True
        self._lessons: Callable[[], Mapping[int, ThrottleState]] = lambda: NOTHING_NEW
        self._park: Callable[[int, float], None] = lambda _host, _until: None
        self._waiting: tuple[Waiting, Waiting] = (deque(), deque())  # for room: small ones, large ones; in turn
        self._bytes = 0
        self._visits = 0
        self._large_ones = 0
        self._closing = False
        self._returned: Callable[[Claim], None] | None = None  # who is told of visits that are not taken any more
        self._handed_over = False  # the quick lane has nothing more for the slow one

    def attach(
        self,
        report: Report,
        hurry: Callable[[], bool],
        lessons: Callable[[], Mapping[int, ThrottleState]],
        park: Callable[[int, float], None],
    ) -> None:
        """Whom to tell of each batch, whether it need not wait for more, and what hosts have taught us by then.

        *park* lets a host wait until then.
        """
        self._lessons = lessons
        self._park = park
        self._report = report
        self._hurry = hurry

    @property
    def pending(self) -> int:
        """Visits that are not committed yet."""
        return self._visits

    async def put(self, visited: Visited) -> None:
        """Hand a visit in; returns at once unless too much is waiting to be written."""
        held, large = _weight(visited)
        if self._waiting[large] or not self._fits(held, large):
            await self._wait_for_room(held, large)
        else:
            self._take(held, large)
        lane = self._slow if large or self._shares.is_dear(visited.claim.host) else self._quick
        if lane is self._slow and not large and self._returned is not None:
            self._drop([visited])
            return
        lane.queue.append(visited)
        if lane is self._slow:
            self._hold_back(visited.claim.host)
        lane.arrived.set()
        if len(lane.queue) >= BATCH or self._hurry():
            lane.enough.set()

    async def run(self) -> None:
        """Commit until `close`; any error of storage ends it, and with it the crawl."""
        async with asyncio.TaskGroup() as group:
            quick = group.create_task(self._serve(self._quick))
            slow = group.create_task(self._serve(self._slow))
            await quick  # it may hand something over to the end
            self._handed_over = True
            self._slow.arrived.set()
            await slow

    def close(self) -> None:
        """No more visits will come; `run` returns when all are committed."""
        self._closing = True
        for lane in (self._quick, self._slow):
            lane.arrived.set()
            lane.enough.set()

    def cut_short(self, returned: Callable[[Claim], None]) -> None:
        """From now on the slow lane reads no document; *returned* is told of the visits that wait for it.

        They cannot be read in the time that is left; their URLs are asked for again by the next run. Large responses,
        which only have to be written, stay.
        """
        self._returned = returned
        slow = [visited for visited in self._slow.queue if not _weight(visited)[1]]
        self._slow.queue[:] = [visited for visited in self._slow.queue if _weight(visited)[1]]
        self._drop(slow)

    def _drop(self, visits: Sequence[Visited]) -> None:
        assert self._returned is not None
        for visited in visits:
            if visited.exchange is not None:
                visited.exchange.response.close()
            self._returned(visited.claim)
            self._give(*_weight(visited), 1)

    async def _wait_for_room(self, held: int, large: int) -> None:
        """Until there is room, which is taken then."""
        there = asyncio.get_running_loop().create_future()
        self._waiting[large].append((held, there))
        try:
            await there
        except asyncio.CancelledError:
            if not there.cancelled():  # the room was given away in the same moment
                self._give(held, large, 1)
            raise

    def _take(self, held: int, large: int) -> None:
        self._bytes += held
        self._large_ones += large
        self._visits += 1

    def _give(self, held: int, large: int, visits: int) -> None:
        """Give room back: to as many of those who wait as fit, and to nobody else, for there may be thousands."""
        self._bytes -= held
        self._large_ones -= large
        self._visits -= visits
        for kind, waiting in enumerate(self._waiting):
            while waiting and (waiting[0][1].done() or self._fits(waiting[0][0], kind)):
                size, there = waiting.popleft()
                if not there.done():
                    self._take(size, kind)
                    there.set_result(None)

    def _fits(self, held: int, large: int) -> bool:
        return (
            self._bytes + held <= max(ROOM, held)
            and self._visits < ROOM_VISITS
            and self._large_ones + large <= ROOM_LARGE
        )

    async def _serve(self, lane: BatchWriter) -> None:
        while True:
            await self._arrival(lane)
            if not lane.queue and self._closing:
                if lane is self._quick or self._handed_over:
                    return
                lane.arrived.clear()
                continue
            await self._gather(lane)
            batch = self._batch(lane)
            if not lane.queue and not self._closing:
                lane.arrived.clear()
            if batch:
                await self._commit(lane, batch)

    def _batch(self, lane: BatchWriter) -> list[Visited]:
        """What the lane does next."""
        if lane is self._slow:
            return self._shares.next(lane.queue, [bool(_weight(visited)[1]) for visited in lane.queue])
        batch, lane.queue[:] = lane.queue[:LONGEST_BATCH], lane.queue[LONGEST_BATCH:]
        return batch

    async def _arrival(self, lane: BatchWriter) -> None:
        """Wait for a visit; an index that is behind catches up meanwhile."""
        if not lane.arrived.is_set() and lane.behind:
            try:
                async with asyncio.timeout(FLUSH_AFTER):
                    await lane.arrived.wait()
            except TimeoutError:
                await lane.flush()
        await lane.arrived.wait()

    async def _gather(self, lane: BatchWriter) -> None:
        """An idle crawl does not wait for a batch to fill, a busy one a moment."""
        lane.enough.clear()
        if lane is self._slow or len(lane.queue) >= BATCH or self._closing or self._hurry():
            return
        timer = asyncio.get_running_loop().call_later(GATHER, lane.enough.set)
        try:
            await lane.enough.wait()
        finally:
            timer.cancel()

    async def _commit(self, lane: BatchWriter, batch: Sequence[Visited]) -> None:
        stored = await lane.store(batch)
        self._requeue(lane, stored)
        began = self._clock.now()
        settled = await self._frontier.settle(stored.settlements, stored.files, self._lessons(), stored.resources)
        self._charge(lane, stored, self._clock.now() - began)
        undone = {visited.claim.id for visited in (*(each.visited for each in stored.slow), *stored.left)}
        weights = [_weight(visited) for visited in batch if visited.claim.id not in undone]
        self._give(sum(held for held, _ in weights), sum(large for _, large in weights), len(weights))
        if self._report is not None:
            await self._report(stored.settlements, settled)

    def _requeue(self, lane: BatchWriter, stored: StoredBatch) -> None:
        """What was not stored waits for another turn."""
        lane.queue[:0] = stored.left
        if lane.queue:
            lane.arrived.set()
        if self._returned is not None:
            self._drop([visited for visited, _ in stored.slow])
        elif stored.slow:
            self._slow.arrived.set()
            held = sum(len(visited.links.links) for visited in self._slow.queue if visited.links is not None)
            for visited, seconds in stored.slow:
                held += len(visited.links.links) if visited.links is not None else 0
                self._slow.queue.append(visited if held <= MOST_LINKS else replace(visited, links=None))
                self._shares.expect(visited.claim.host, seconds)
                self._hold_back(visited.claim.host)

    def _charge(self, lane: BatchWriter, stored: StoredBatch, seconds: float) -> None:
        """Each host pays for its visits; to settle them took so many *seconds* together, most of it for their links."""
        links = [1 + len(each.found) + len(each.refused) for each in stored.settlements]
        whole = sum(links)
        for each, number, prepared in zip(stored.settlements, links, stored.seconds, strict=True):
            self._shares.charge(each.claim.host, prepared + seconds * number / whole, turn=lane is self._slow)

    def _hold_back(self, host: int) -> None:
        """*host* is not asked for more while it has much in the slow lane: answers that wait take others' slots."""
        hosts = [visited.claim.host for visited in self._slow.queue]
        own = hosts.count(host) * self._shares.cost(host)
        if own > BACKLOG:
            self._park(host, self._clock.now() + own * len(set(hosts)))


def _weight(visited: Visited) -> tuple[int, int]:
    """Bytes that a visit holds in memory, and 1 where its response is a large one, which lies in a file."""
    size = visited.exchange.response.length if visited.exchange is not None else 0
    return (0, 1) if size > LARGE else (size, 0)
