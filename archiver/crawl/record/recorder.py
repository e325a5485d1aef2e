"""Makes the exchanges of the recording proxy and commits them, as the crawl does.

The fetcher sends and receives, the writers of the crawl append and sync, then one transaction settles the batch. So a
crash costs nothing that a client has seen to its end, and the recovery of a crawl finds whole exchanges that were not
settled. No links are followed, and robots.txt is not asked: a person asks.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from archiver.ask import ASKED_BY_CLIENT, GET, opens_websocket
from archiver.clock import Clock
from archiver.collection.disk_space import LOOK_EVERY, DiskSpace
from archiver.crawl.batch_writer import BatchWriter
from archiver.crawl.commit import FLUSH_AFTER, LARGE, LONGEST_BATCH
from archiver.crawl.live.tally import CommitTally
from archiver.crawl.record.client_answer import ClientAnswer
from archiver.crawl.record.websocket import PROTOCOL, REMARK
from archiver.crawl.stats import Counters
from archiver.crawl.visit import Visited
from archiver.errors import ArchiveError, Failure, FetchError, ShortageError
from archiver.extract.exchange import PAGES
from archiver.fetch.client import ClientRequest, Fetcher, Upgrade
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Block, Claim, Exchange, Hop, Links, Truncation
from archiver.policy import scope
from archiver.warc.post_keys import MAX_BODY, recorded_ask, recorded_url

SHOWN = 200  # characters of a URL in the log
_DESTINATION = re.compile(rb"\r\nsec-fetch-dest:[ \t]*([a-z]+)", re.IGNORECASE)
GATEWAY_TIMEOUT, BAD_GATEWAY, UNAVAILABLE, FORBIDDEN = 504, 502, 503, 403

log = logging.getLogger(__name__)


class RecordedSoFar(NamedTuple):
    """What a recording has brought until now."""

    recorded: int = 0  # exchanges that are on disk
    failed: int = 0  # requests without an answer
    received: int = 0  # bytes of the responses
    last: str = ""  # the URL that was recorded last


class _Pending(NamedTuple):
    visited: Visited
    stored: "asyncio.Future[None]"


@dataclass(slots=True, eq=False)
class _Queue:
    """The visits that one writer will store."""

    writer: BatchWriter
    waiting: list[_Pending] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def batch(self) -> list[_Pending]:
        """Take the next visits, no two of one URL: each is a transition of its state."""
        urls: set[str] = set()
        for each in self.waiting[:LONGEST_BATCH]:
            if each.visited.claim.url in urls:
                break
            urls.add(each.visited.claim.url)
        taken, self.waiting[: len(urls)] = self.waiting[: len(urls)], []
        return taken


class Recorder:
    """Records exchanges until it is closed."""

    def __init__(
        self,
        fetcher: Fetcher,
        frontier: SqliteFrontier,
        writers: tuple[BatchWriter, BatchWriter],
        space: DiskSpace,
        clock: Clock,
    ) -> None:
        """*writers*: the quick one, and the one for large responses."""
        self.tally = CommitTally()
        self.counters = Counters(clock.now())
        self.unwritten = 0  # exchanges that are not committed yet
        self.failure: ArchiveError | None = None  # of our storage; nothing can be recorded any more
        self.over = asyncio.Event()  # there was a failure, or someone has ended the recording
        self._fetcher = fetcher
        self._frontier = frontier
        self._queues = tuple(_Queue(writer) for writer in writers)
        self._space = space
        self._clock = clock
        self._looked, self._shortage = float("-inf"), ""
        self._last = ""  # the URL that was recorded last
        self._closing = False

    @property
    def so_far(self) -> RecordedSoFar:
        """What this run has brought."""
        total = self.tally.frozen()
        results = total.results
        return RecordedSoFar(results.get("archived", 0), results.get("failed", 0), total.received, self._last)

    def unfit(self) -> str:
        """Return why nothing can be recorded now; "" if it can."""
        if self.failure is not None:
            return f"nothing can be recorded any more: {self.failure}"
        if (now := self._clock.now()) >= self._looked + LOOK_EVERY:
            self._looked, self._shortage = now, self._space.shortage()
        return f"not recorded, so not fetched: {self._shortage}" if self._shortage else ""

    async def record(self, asked: ClientRequest, answer: ClientAnswer) -> bool:
        """Make the exchange that a client has *asked* for; return True if its connection can go on."""
        try:
            exchange = await self._fetcher.relay(asked, answer.hear)
        except FetchError as error:
            _close(asked.upload)
            return await self._failed(_claim(asked), error, answer)
        except ArchiveError as error:  # of the spool: this response is lost, and its client must know
            _close(asked.upload)
            self._say_lost(asked.address, error, answer)
            return False
        except BaseException:
            _close(asked.upload)
            raise
        if asked.method != GET:
            exchange = replace(exchange, notes=(*exchange.notes, ASKED_BY_CLIENT))
        claim = _claim(asked, exchange.framing.media_type)
        return await self._store(Visited(claim, exchange, links=Links(), upload=asked.upload), exchange, answer)

    async def open_websocket(self, stack: AsyncExitStack, asked: ClientRequest, answer: ClientAnswer) -> Upgrade | None:
        """Record the handshake that a client has *asked* for, and open the connection until *stack* ends.

        Return None if there is none; then the client has got the answer of the server, or the reason.
        """
        answer.change_protocol()
        claim = _claim(asked)
        try:
            opened = await stack.enter_async_context(self._fetcher.upgrade(asked, answer.hear, PROTOCOL))
        except FetchError as error:
            await self._failed(claim, error, answer)
            return None
        except ArchiveError as error:  # of the spool
            self._say_lost(asked.address, error, answer)
            return None
        exchange = replace(opened.exchange, notes=(*opened.exchange.notes, ASKED_BY_CLIENT))
        if opened.wire is not None:
            exchange = replace(exchange, notes=(*exchange.notes, REMARK), truncated=Truncation.UNSPECIFIED)
        stored = await self._store(Visited(claim, exchange, links=Links()), exchange, answer)
        return opened if stored and opened.wire is not None else None

    async def _store(self, visited: Visited, exchange: Exchange, answer: ClientAnswer) -> bool:
        address, framing = visited.claim.target, exchange.framing
        if not answer.heard and framing.status:
            await answer.repeat(exchange)
        try:
            await self._put(visited)
        except ArchiveError as error:
            self._say_lost(address, error, answer)
            return False
        self._last = address
        if (exchange.truncated is not None and REMARK not in exchange.notes) or not framing.status:
            why = f"cut ({exchange.truncated.value})" if exchange.truncated else "not HTTP"
            log.warning("%s: the answer of the server is %s, and recorded as it came", address[:SHOWN], why)
            answer.fail(BAD_GATEWAY, f"{address}: the answer of the server is {why}; it is recorded as it came")
            return False
        return await answer.finish()

    async def _failed(self, claim: Claim, error: FetchError, answer: ClientAnswer) -> bool:
        """Settle *claim*, which got no answer, and say so."""
        text = f"{claim.target}: {error.failure.value}: {error.reason}"
        log.warning("%s", text)
        status = GATEWAY_TIMEOUT if error.failure is Failure.TIMEOUT else BAD_GATEWAY
        try:
            await self._put(Visited(claim, error=error))
        except ArchiveError as worse:
            self._say_lost(claim.target, worse, answer)
            return False
        answer.fail(FORBIDDEN if error.failure is Failure.PRIVATE else status, text)
        return False

    def _say_lost(self, address: str, error: ArchiveError, answer: ClientAnswer) -> None:
        if not isinstance(error, ShortageError):
            self._looked = float("-inf")  # the disk may be full now
        log.error("%s is not recorded: %s", address[:SHOWN], error)
        answer.fail(UNAVAILABLE, f"{address} is not recorded: {error}")

    async def _put(self, visited: Visited) -> None:
        """Return when *visited* is committed; raises `ArchiveError` if it cannot be."""
        if self.failure is not None:
            raise self.failure
        large = visited.exchange is not None and visited.exchange.response.length > LARGE
        queue = self._queues[large]
        stored = asyncio.get_running_loop().create_future()
        queue.waiting.append(_Pending(visited, stored))
        queue.arrived.set()
        self.unwritten += 1
        stored.add_done_callback(self._written)
        await asyncio.shield(stored)

    def _written(self, _: "asyncio.Future[None]") -> None:
        self.unwritten -= 1

    async def commit(self) -> None:
        """Commit what is put, until `close` is called and nothing is left. A fault of the storage ends it too."""
        async with asyncio.TaskGroup() as group:
            for queue in self._queues:
                group.create_task(self._commit(queue))

    def close(self) -> None:
        """Nothing more will be put."""
        self._closing = True
        for queue in self._queues:
            queue.arrived.set()

    async def _commit(self, queue: _Queue) -> None:
        while not (self._closing and not queue.waiting):
            if not queue.waiting:
                queue.arrived.clear()
                await self._wait(queue)
                continue
            batch = queue.batch()
            try:
                if self.failure is not None:
                    raise self.failure
                await self._settle(queue.writer, [each.visited for each in batch])
            except ArchiveError as error:
                self.failure = error
                self.over.set()
                _give_up(batch, error)
                continue
            for each in batch:
                _close(each.visited.upload)
                each.stored.set_result(None)

    async def _wait(self, queue: _Queue) -> None:
        """Wait for the next visit; meanwhile a replay may see what was stored."""
        if queue.writer.behind:
            try:
                async with asyncio.timeout(FLUSH_AFTER):
                    await queue.arrived.wait()
            except TimeoutError:
                await queue.writer.flush()
        await queue.arrived.wait()

    async def _settle(self, writer: BatchWriter, batch: Sequence[Visited]) -> None:
        """Append and sync the records of *batch*, then enter them in the database.

        Rows come after the records: if the process ends in between, recovery finds the visits and makes the rows.
        """
        chosen = self._clock.now()
        stored = await writer.store(batch)
        assert not stored.slow
        assert not stored.left
        claims = [each.claim for each in stored.settlements]  # what was sent stays in the records
        bare = [each if each.ask is None else replace(each, ask=each.ask.bare()) for each in claims]
        rows = await self._frontier.record_visits(bare)
        settlements = [each._replace(claim=row) for each, row in zip(stored.settlements, rows, strict=True)]
        await self._frontier.settle(settlements, stored.files, resources=stored.resources)
        now = self._clock.now()
        self.tally.committed(chosen, now, settlements, stored.files)
        for each in settlements:
            self.counters.visited(now, 0 if each.capture is None else each.capture.received)


def _give_up(batch: Sequence[_Pending], error: ArchiveError) -> None:
    for each in batch:
        each.stored.set_exception(error)
        each.stored.exception()  # the client may be gone, and then no one asks
        _close(each.visited.upload)
        _close(None if each.visited.exchange is None else each.visited.exchange.response)


def _close(block: Block | None) -> None:
    if block is not None:
        block.close()


def _claim(asked: ClientRequest, media_type: str = "") -> Claim:
    """Return the claim of a request. A page is a beginning, because a person led to it; all else belongs to a page."""
    sent = asked.request + (b"" if asked.upload is None else asked.upload.head(MAX_BODY))
    is_get = asked.method == GET and not opens_websocket(asked.request.partition(b"\r\n\r\n")[0])
    ask = None if is_get else recorded_ask(asked.address, sent)
    address = asked.address if ask is None else recorded_url(ask)
    hop, path = (Hop.LINK, "") if _is_page(asked, media_type) else (Hop.REQUISITE, Hop.REQUISITE.value)
    return Claim(0, address, 0, hop, path, 0, 0, 0, priority=scope.priority(path, 0), ask=ask)


def _is_page(asked: ClientRequest, media_type: str) -> bool:
    """Return True if a browser says that it will show the answer as a page; of other clients, if it is HTML."""
    if asked.method != GET:
        return False
    said = _DESTINATION.search(asked.request.partition(b"\r\n\r\n")[0])
    return said[1] == b"document" if said else media_type in PAGES
