"""The one commit point: links read, records appended and synced, and then one transaction that says what they were.

Visits that come together are committed together: while one batch is on its way to the disk the next one gathers.
Large responses take a lane of their own. Within a lane batches are committed in the order in which they were
written, so the committed length of a file never passes over a visit.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

from archiver.adapting import Lesson
from archiver.crawl.lane import Lane
from archiver.frontier.port import NOTHING_NEW, Frontier, Settled
from archiver.model import Settlement
from archiver.visit import Visited

LARGE = 8 << 20  # bytes of a response that goes to the lane of large ones
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

    def __init__(self, frontier: Frontier, small: Lane, large: Lane) -> None:
        self._frontier = frontier
        self._small = small
        self._large = large
        self._report: Report | None = None
        self._hurry: Callable[[], bool] = lambda: True
        self._lessons: Callable[[], Mapping[int, Lesson]] = lambda: NOTHING_NEW
        self._waiting: tuple[Waiting, Waiting] = (deque(), deque())  # for room: small ones, large ones; in turn
        self._bytes = 0
        self._visits = 0
        self._large_ones = 0
        self._closing = False

    def attach(self, report: Report, hurry: Callable[[], bool], lessons: Callable[[], Mapping[int, Lesson]]) -> None:
        """Whom to tell of each batch, whether it need not wait for more, and what hosts have taught us by then."""
        self._lessons = lessons
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
        lane = self._large if large else self._small
        lane.queue.append(visited)
        lane.arrived.set()
        if len(lane.queue) >= BATCH or self._hurry():
            lane.enough.set()

    async def run(self) -> None:
        """Commit until `close`; any error of storage ends it, and with it the crawl."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._serve(self._small, LONGEST_BATCH))
            group.create_task(self._serve(self._large, 1))

    def close(self) -> None:
        """No more visits will come; `run` returns when all are committed."""
        self._closing = True
        for lane in (self._small, self._large):
            lane.arrived.set()
            lane.enough.set()

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

    async def _serve(self, lane: Lane, most: int) -> None:
        while True:
            await self._arrival(lane)
            if not lane.queue and self._closing:
                return
            await self._gather(lane, most)
            batch, lane.queue[:] = lane.queue[:most], lane.queue[most:]
            if not lane.queue and not self._closing:
                lane.arrived.clear()
            if batch:
                await self._commit(lane, batch)

    async def _arrival(self, lane: Lane) -> None:
        """Wait for a visit; an index that is behind catches up meanwhile."""
        if not lane.arrived.is_set() and lane.behind:
            try:
                async with asyncio.timeout(FLUSH_AFTER):
                    await lane.arrived.wait()
            except TimeoutError:
                await lane.flush()
        await lane.arrived.wait()

    async def _gather(self, lane: Lane, most: int) -> None:
        """An idle crawl does not wait for a batch to fill, a busy one a moment."""
        lane.enough.clear()
        if len(lane.queue) >= min(most, BATCH) or self._closing or self._hurry():
            return
        timer = asyncio.get_running_loop().call_later(GATHER, lane.enough.set)
        try:
            await lane.enough.wait()
        finally:
            timer.cancel()

    async def _commit(self, lane: Lane, batch: Sequence[Visited]) -> None:
        weights = [_weight(visited) for visited in batch]
        stored = await lane.store(batch)
        settled = await self._frontier.settle(stored.settlements, stored.files, self._lessons(), stored.resources)
        self._give(sum(held for held, _ in weights), sum(large for _, large in weights), len(batch))
        if self._report is not None:
            await self._report(stored.settlements, settled)


def _weight(visited: Visited) -> tuple[int, int]:
    """Bytes that a visit holds in memory, and 1 where its response is a large one, which lies in a file."""
    size = visited.exchange.response.length if visited.exchange is not None else 0
    return (0, 1) if size > LARGE else (size, 0)
