"""One exchange: a request sent and a response received, both exactly as they crossed the wire.

Knows sockets, but nothing of archives, frontiers or rate limits: a gate decides when a request may start, just before
its first byte is sent. Raises `FetchError` only if no byte of a response came. A broken or cut response is an
`Exchange` that says so.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archiver import url
from archiver.config.settings import FetchSettings
from archiver.errors import Failure, FetchError
from archiver.fetch.cpu_share import FramerSteps, SharedCpu
from archiver.fetch.dns import Lookups, routed
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.request import RequestMaker
from archiver.fetch.spool import Spool, SpoolFolder
from archiver.fetch.wire import UNVERIFIED
from archiver.http import Framer, WantedTypes
from archiver.http.body_limits import WHOLE, UnreadReason
from archiver.http.head import body_length, may_be_head
from archiver.model import Exchange, Framing, Truncation

if TYPE_CHECKING:
    from archiver.fetch.wire import Wire

Gate = Callable[[], Awaitable[None]]

SLOW_GRACE = 600.0  # seconds before a slow response is judged
SLOWEST = 1024.0  # bytes a second on average; slower responses are cut then, as a trickle could last forever
SETTLE = 0.002  # seconds of silence after a message until we expect no more …
LONGEST_SETTLE = 1.0  # … and the longest time the server may go on sending
GIVE_WAY = 6.0  # a large response waits this many times the CPU time of its last piece while small ones arrive …
LOOK = 0.002  # … and checks for them after this many seconds
NOWHERE = (".example", ".invalid", ".localhost", ".test")  # names that no public name server knows (RFC 6761)
LONGEST_NAME = 200  # characters of a URL in a message
LATE = 408  # Request Timeout: on a used connection it may concern the time before our request


@dataclass(slots=True)
class Progress:
    """The progress of a running exchange, for displays."""

    address: str = ""  # of the server, once connected
    received: int = 0  # bytes of the response


NOTHING_YET = Progress()


class Fetcher:
    """Makes exchanges over a pool of persistent connections."""

    def __init__(
        self,
        settings: FetchSettings,
        guard: AddressGuard,
        spool_folder: Path | SpoolFolder,
        algorithm: str,
        writer: ThreadPoolExecutor,
        lookups: Lookups | None = None,
    ) -> None:
        from archiver.fetch.connection import ConnectionPool  # noqa: PLC0415 - importing aiohttp takes a fifth of a second

        self._guard = guard
        self._requests = RequestMaker(settings, guard)
        self._needed = Bounds(settings.max_response_size, settings.timeout, WantedTypes(), settings.max_unstated_size)
        self._bounds = replace(self._needed, wanted=WantedTypes(settings.include_type, settings.exclude_type))
        self._pool = ConnectionPool(settings.timeout, guard, lookups)
        self._cpu = SharedCpu()
        self._progress: dict[asyncio.Task[Any] | None, Progress] = {}
        self._spool_folder = spool_folder if isinstance(spool_folder, SpoolFolder) else SpoolFolder(spool_folder)
        self._algorithm = algorithm
        self._writer = writer

    async def locate(self, address: str) -> str:
        """Return the first network address for the host of URL *address*; `FetchError` if there is none."""
        return await self._pool.locate(url.origin(address))

    def progress(self, task: "asyncio.Task[Any] | None") -> Progress:
        """Return how far the exchange of *task* has come."""
        return self._progress.get(task, NOTHING_YET)

    async def fetch(self, address: str, gate: Gate, *, needed: bool = False, conditions: bytes = b"") -> Exchange:
        """Fetch canonical URL *address* as soon as *gate* permits.

        *needed*: read the body whatever media types are wanted. *conditions*: additional header lines.
        """
        task = asyncio.current_task()
        progress = self._progress[task] = Progress()
        try:
            return await self._fetch(address, gate, progress, needed=needed, conditions=conditions)
        finally:
            del self._progress[task]

    async def _fetch(
        self, address: str, gate: Gate, progress: Progress, *, needed: bool, conditions: bytes
    ) -> Exchange:
        bounds = self._needed if needed else self._bounds
        origin = url.origin(address)
        first = True
        while True:
            wire = await self._pool.connect(origin, fresh=not first)
            reusable = False
            progress.address = wire.peer.ip or ""
            try:
                await gate()
                if first and wire.stale:
                    first = False  # the connection died while we waited
                    continue
                request = self._requests.request(address, conditions, verified=UNVERIFIED not in wire.notes)
                attempt = _Attempt(wire, request, self._spool(address), bounds, (self._cpu, progress))
                exchange = await attempt.run()
                reusable = attempt.framer.reusable
                if attempt.disturbed:
                    self._pool.distrust(origin)
            finally:
                wire.give_back(reusable=reusable)
            if exchange is not None:
                return exchange
            if not wire.reused:
                reason = str(wire.error) if wire.error else "the server closed the connection without an answer"
                raise FetchError(Failure.DISCONNECT, reason)
            first = False

    @property
    def spooled(self) -> int:
        """Bytes of responses in the spool that are not archived yet."""
        return self._spool_folder.held

    @property
    def last_activity(self) -> float:
        """`time.monotonic()` of the last network activity: a new connection, or a byte received."""
        return self._pool.last_activity

    def has_no_route(self, address: str) -> bool:
        """True if the host of *address* is unreachable because this machine only has routes to itself."""
        name = url.host(address)
        is_local = name.startswith("127.") or name in ("[::1]", "localhost")
        return not is_local and not name.endswith(NOWHERE) and not routed()

    def running_time(self) -> float:
        """Return the seconds this process has run, without suspension. Server timeouts use this clock."""
        return self._pool.awake.now()

    @property
    def largest(self) -> tuple[str, int]:
        """URL and size in bytes of the largest response in the spool."""
        return self._spool_folder.largest

    def _spool(self, address: str) -> Spool:
        return Spool(self._spool_folder, self._algorithm, self._writer, address[:LONGEST_NAME])

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on the size and duration of a response."""

    max_size: int  # of the whole block; 0: no limit
    timeout: float
    wanted: WantedTypes
    max_unstated: int = 0  # of a body without a stated length; 0: no limit


class _Attempt:
    """One request on one connection, and its response."""

    __slots__ = (
        "_answered",
        "_bounds",
        "_cpu",
        "_extent",
        "_headed",
        "_large",
        "_progress",
        "_received",
        "_remarks",
        "_request",
        "_seen",
        "_spool",
        "_wire",
        "framer",
    )

    def __init__(
        self, wire: "Wire", request: bytes, spool: Spool, bounds: Bounds, beside: tuple[SharedCpu, Progress]
    ) -> None:
        self.framer = Framer()
        self._wire = wire
        self._request = request
        self._spool = spool
        self._bounds = bounds
        self._cpu, self._progress = beside
        self._large = False
        self._seen = 0  # value of `SharedCpu.small_pieces` when last checked
        self._received = False
        self._answered = 0.0  # `time.monotonic()` of the first byte
        self._extent = WHOLE  # how far the body is read, decided by the head …
        self._headed = math.inf  # … at this time
        self._remarks: tuple[str, ...] = ()

    async def run(self) -> Exchange | None:
        """Make the exchange. Return None if no response came that is certainly for this request."""
        started = time.time_ns() // 1000
        clock = time.monotonic()
        try:
            self._wire.send(self._request)
            await self._receive()
            took = time.monotonic() - clock
            if self.framer.truncated is None:
                await self._settle()
            framing = self.framer.framing
            if framing is None or not self._received or self.framer.empty or self._doubtful(framing):
                return None
            await self._spool.finish(framing)
            answer = self._wire.answer
            return Exchange(
                request=self._request,
                response=self._spool.block(),
                framing=framing,
                digests=self._spool.digests(),
                peer=self._wire.peer,
                started=started,
                duration=took,
                time_to_first_byte=self._answered - clock,
                truncated=self.framer.truncated,
                interim=self.framer.interim,
                surplus=self.framer.surplus,
                notes=self._wire.notes + self._remarks,
                lookup=None if answer is None else answer.take(),
            )
        finally:
            self._spool.discard()

    @property
    def disturbed(self) -> bool:
        """True if the server sent more than the response; empty lines are harmless."""
        return bool(self.framer.surplus.strip(b"\r\n"))

    def _doubtful(self, framing: Framing) -> bool:
        """True if the response may belong to another request, because the connection was used before."""
        other_head = self.disturbed and may_be_head(self.framer.surplus)  # that head may be the real response
        return self._wire.reused and (other_head or framing.protocol == "http/0.9" or framing.status == LATE)

    async def _receive(self) -> None:
        framer, awake, steps = self.framer, self._wire.awake, FramerSteps(self.framer)
        began = awake.now()
        while not framer.done:
            timeout = self._bounds.timeout
            left = math.inf if self._extent is WHOLE else self._left(awake.now())
            try:
                data = await self._wire.read(min(timeout, left))
            except TimeoutError:
                if framer.headless:
                    raise FetchError(Failure.TIMEOUT, f"no answer within {timeout:g} s") from None
                await (self._leave() if left < timeout else self._cut(Truncation.TIME))
                return
            if not data:
                await self._keep(framer.finish(clean=self._wire.error is None))
                return
            if not self._received:
                self._received, self._answered = True, time.monotonic()
            self._progress.received += len(data)
            self._cpu.small_pieces += not self._large
            for piece in steps.feed(data):
                await self._step(piece, began)
                if steps.spent and not framer.done:
                    await self._cpu.wait(self._wire, steps.spent)

    async def _step(self, piece: bytes, began: float) -> None:
        """Process *piece* of the block, of a response that *began* at that time."""
        framer, now = self.framer, self._wire.awake.now()
        if self._headed == math.inf and framer.framing is not None:
            self._extent, self._headed = self._bounds.wanted.extent(framer.framing), now
        await self._keep(piece)
        if self._extent is not WHOLE and self._is_enough(now - self._headed):
            await self._leave()
        if self._too_slow(now - began):
            await self._cut(Truncation.TIME)

    async def _settle(self) -> None:
        """Read what the server sends after the end of the message, if anything."""
        end = time.monotonic() + LONGEST_SETTLE
        while time.monotonic() < end and (data := await self._wire.read_within(SETTLE)):
            self.framer.feed(data)

    async def _keep(self, piece: bytes) -> None:
        """Store *piece* of the block as far as the limits allow."""
        framing = self.framer.framing
        limit, remark = self._limit(framing)
        if self._spool.length + len(piece) > limit:
            piece = piece[: int(limit) - self._spool.length]
            self._cut_with_remark(remark)
        if piece and self._spool.add(piece) and framing is not None:
            self._large = True
            await self._give_way(await self._spool.flush(framing))
            if self._spool.tight and not self.framer.done and _is_unstated(framing):
                self._cut_with_remark(
                    f"{UnreadReason.UNSTATED}:{self._spool.length} bytes, because the disk is almost full"
                )

    def _limit(self, framing: Framing | None) -> tuple[float, str]:
        """Return the maximum length of the block, and the remark for a block that is cut there."""
        limit, remark = self._bounds.max_size or math.inf, ""
        if framing is None:
            return limit, remark
        if self._extent.size and framing.head_length + self._extent.size < limit:
            limit, remark = framing.head_length + self._extent.size, self._extent.remark
        most = self._bounds.max_unstated
        if most and most < self._progress.received and framing.head_length + most < limit and _is_unstated(framing):
            limit, remark = framing.head_length + most, f"{UnreadReason.UNSTATED}:{most} bytes"
        return limit, remark

    def _cut_with_remark(self, remark: str) -> None:
        """Do not read the rest of the body."""
        self.framer.cut(Truncation.LENGTH)
        if remark:
            self._remarks = (remark,)

    async def _give_way(self, spent: float) -> None:
        """Let small responses go first while any arrive: a piece of this large one took *spent* seconds of CPU time."""
        end = time.monotonic() + GIVE_WAY * spent
        while self._seen != self._cpu.small_pieces and (left := end - time.monotonic()) > 0:
            self._seen = self._cpu.small_pieces
            await asyncio.sleep(min(left, max(spent, LOOK)))

    def _left(self, now: float) -> float:
        """Return the seconds left for a sample; infinity if the body is not sampled."""
        extent = self._extent
        return math.inf if extent.slow_rate else max(0.0, self._headed + extent.seconds - now)

    def _is_enough(self, elapsed: float) -> bool:
        """True if the rest of the body is not needed, *elapsed* seconds after the head."""
        extent = self._extent
        if elapsed < extent.seconds or (self.framer.done and extent.seconds):
            return False
        return not extent.slow_rate or self._spool.length < extent.slow_rate * elapsed

    async def _leave(self) -> None:
        """Stop reading: the rest is not wanted."""
        self._remarks = (self._extent.remark,)
        await self._cut(Truncation.LENGTH)

    async def _cut(self, why: Truncation) -> None:
        if not self.framer.done:
            await self._keep(self.framer.cut(why))

    def _too_slow(self, elapsed: float) -> bool:
        return elapsed > SLOW_GRACE and self._spool.length < SLOWEST * elapsed


def _is_unstated(framing: Framing) -> bool:
    """True if the head does not state the length of the body."""
    return framing.chunked or body_length(framing.fields).size is None
