"""One exchange: a request sent, an answer received, both exactly as they crossed the wire.

Knows sockets and nothing of archives, frontiers or politeness: when a request may start is asked of a gate,
at the very moment before its first byte goes out. Raises `FetchError` only if not one byte of an answer
came; a broken or cut answer is an `Exchange` that says so.
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

SLOW_GRACE = 600.0  # seconds before a slow answer is judged at all
SLOWEST = 1024.0  # bytes a second on average, below which it is cut then: a trickle could last for ever
SETTLE = 0.002  # seconds of silence after a message, until nothing more is expected of the server …
LONGEST_SETTLE = 1.0  # … which may not go on talking for longer
GIVE_WAY = 6.0  # times what a piece of a large answer took of a processor it waits, while small ones come …
LOOK = 0.002  # … which is looked at after so many seconds
NOWHERE = (".example", ".invalid", ".localhost", ".test")  # names that no name server out there knows (RFC 6761)
LONGEST_NAME = 200  # characters of a URL in a message
LATE = 408  # "you said nothing for so long": on a used connection this may be about the time before our request


@dataclass(slots=True)
class Progress:
    """How far an exchange has come, for those who look at it meanwhile."""

    address: str = ""  # the other end, once there is a connection
    received: int = 0  # bytes of the answer


NOTHING_YET = Progress()


class Fetcher:
    """Makes exchanges over a pool of kept connections."""

    def __init__(
        self,
        settings: FetchSettings,
        guard: AddressGuard,
        spool_folder: Path | SpoolFolder,
        algorithm: str,
        writer: ThreadPoolExecutor,
        lookups: Lookups | None = None,
    ) -> None:
        from archiver.fetch.connection import ConnectionPool  # noqa: PLC0415 - aiohttp takes a fifth of a second: for those who ask somebody

        self._guard = guard
        self._asking = RequestMaker(settings, guard)
        self._needed = Bounds(settings.max_response_size, settings.timeout, WantedTypes(), settings.max_unstated_size)
        self._bounds = replace(self._needed, wanted=WantedTypes(settings.include_type, settings.exclude_type))
        self._lines = ConnectionPool(settings.timeout, guard, lookups)
        self._crowd = SharedCpu()
        self._progress: dict[asyncio.Task[Any] | None, Progress] = {}
        self._spool_folder = spool_folder if isinstance(spool_folder, SpoolFolder) else SpoolFolder(spool_folder)
        self._algorithm = algorithm
        self._writer = writer

    async def locate(self, address: str) -> str:
        """Return the network address at which URL *address* is asked first; `FetchError` where there is none."""
        return await self._lines.locate(url.origin(address))

    def progress(self, task: "asyncio.Task[Any] | None") -> Progress:
        """Return how far the exchange has come that *task* makes."""
        return self._progress.get(task, NOTHING_YET)

    async def fetch(self, address: str, gate: Gate, *, needed: bool = False, conditions: bytes = b"") -> Exchange:
        """The exchange for canonical URL *address*, started when *gate* lets it pass.

        *needed*: its body is read whatever media types are wanted. *conditions*: further field lines.
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
            wire = await self._lines.connect(origin, fresh=not first)
            reusable = False
            progress.address = wire.peer.ip or ""
            try:
                await gate()
                if first and wire.stale:
                    first = False  # it died while we waited
                    continue
                request = self._asking.request(address, conditions, verified=UNVERIFIED not in wire.notes)
                attempt = _Attempt(wire, request, self._spool(address), bounds, (self._crowd, progress))
                exchange = await attempt.run()
                reusable = attempt.framer.reusable
                if attempt.disturbed:
                    self._lines.distrust(origin)
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
        """Bytes of responses that lie in the spool, on their way to the archive."""
        return self._spool_folder.held

    @property
    def heard(self) -> float:
        """`time.monotonic()` when anything last came over the network: a connection, a byte."""
        return self._lines.heard

    def stranded(self, address: str) -> bool:
        """Whether the host of *address* cannot be reached because this machine has no route to anywhere but itself."""
        name = url.host(address)
        at_home = name.startswith("127.") or name in ("[::1]", "localhost")
        return not at_home and not name.endswith(NOWHERE) and not routed()

    def awake(self) -> float:
        """Seconds, from some moment on, that this process has run: patience with servers is measured in them."""
        return self._lines.awake.now()

    @property
    def largest(self) -> tuple[str, int]:
        """The URL of the largest of these responses, and its bytes."""
        return self._spool_folder.largest

    def _spool(self, address: str) -> Spool:
        return Spool(self._spool_folder, self._algorithm, self._writer, address[:LONGEST_NAME])

    async def close(self) -> None:
        """Close every connection."""
        await self._lines.close()


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of an answer is taken, and how long it is waited for."""

    max_size: int  # of the whole block; 0: no limit
    timeout: float
    wanted: WantedTypes
    max_unstated: int = 0  # of a body whose head does not state its length; 0: no limit


class _Attempt:
    """One request on one connection, and whatever comes back."""

    __slots__ = (
        "_answered",
        "_bounds",
        "_crowd",
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
        self._crowd, self._progress = beside
        self._large = False
        self._seen = 0  # of what came for others
        self._received = False
        self._answered = 0.0  # `time.monotonic()` of the first byte
        self._extent = WHOLE  # how far the body is read, as the head says …
        self._headed = math.inf  # … counted from then on
        self._remarks: tuple[str, ...] = ()

    async def run(self) -> Exchange | None:
        """The exchange; None where no answer came that is certain to be this request's."""
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
                took=took,
                waited=self._answered - clock,
                truncated=self.framer.truncated,
                interim=self.framer.interim,
                surplus=self.framer.surplus,
                notes=self._wire.notes + self._remarks,
                lookup=None if answer is None else answer.told(),
            )
        finally:
            self._spool.discard()

    @property
    def disturbed(self) -> bool:
        """Whether the server said more than the answer; empty lines are a harmless habit."""
        return bool(self.framer.surplus.strip(b"\r\n"))

    def _doubtful(self, framing: Framing) -> bool:
        """Whether the answer may be nobody's, or another URL's, because the connection was used before."""
        another = self.disturbed and may_be_head(self.framer.surplus)  # which may be the true one
        return self._wire.reused and (another or framing.protocol == "http/0.9" or framing.status == LATE)

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
            self._crowd.came += not self._large
            for piece in steps.feed(data):
                await self._step(piece, began)
                if steps.spent and not framer.done:
                    await self._crowd.wait(self._wire, steps.spent)

    async def _step(self, piece: bytes, began: float) -> None:
        """*piece* of the block has come, of an answer that *began* then."""
        framer, now = self.framer, self._wire.awake.now()
        if self._headed == math.inf and framer.framing is not None:
            self._extent, self._headed = self._bounds.wanted.extent(framer.framing), now
        await self._keep(piece)
        if self._extent is not WHOLE and self._is_enough(now - self._headed):
            await self._leave()
        if self._too_slow(now - began):
            await self._cut(Truncation.TIME)

    async def _settle(self) -> None:
        """Hear what the server says beyond the end of the message, and whether it does."""
        end = time.monotonic() + LONGEST_SETTLE
        while time.monotonic() < end and (data := await self._wire.overhear(SETTLE)):
            self.framer.feed(data)

    async def _keep(self, piece: bytes) -> None:
        """Store *piece* of the block, as far as the bounds allow."""
        framing = self.framer.framing
        limit, remark = self._limit(framing)
        if self._spool.length + len(piece) > limit:
            piece = piece[: int(limit) - self._spool.length]
            self._end_at(remark)
        if piece and self._spool.add(piece) and framing is not None:
            self._large = True
            await self._give_way(await self._spool.flush(framing))
            if self._spool.tight and not self.framer.done and _is_unstated(framing):
                self._end_at(f"{UnreadReason.UNSTATED}:{self._spool.length} bytes, for want of room on the disk")

    def _limit(self, framing: Framing | None) -> tuple[float, str]:
        """How long the block may become, and the remark of one that is cut there."""
        limit, remark = self._bounds.max_size or math.inf, ""
        if framing is None:
            return limit, remark
        if self._extent.size and framing.head_length + self._extent.size < limit:
            limit, remark = framing.head_length + self._extent.size, self._extent.remark
        most = self._bounds.max_unstated
        if most and most < self._progress.received and framing.head_length + most < limit and _is_unstated(framing):
            limit, remark = framing.head_length + most, f"{UnreadReason.UNSTATED}:{most} bytes"
        return limit, remark

    def _end_at(self, remark: str) -> None:
        """The rest of the body is left."""
        self.framer.cut(Truncation.LENGTH)
        if remark:
            self._remarks = (remark,)

    async def _give_way(self, spent: float) -> None:
        """A piece of this large answer took *spent* seconds of a processor: small ones go first, while any come."""
        end = time.monotonic() + GIVE_WAY * spent
        while self._seen != self._crowd.came and (left := end - time.monotonic()) > 0:
            self._seen = self._crowd.came
            await asyncio.sleep(min(left, max(spent, LOOK)))

    def _left(self, now: float) -> float:
        """Seconds for which a sample is still to be taken; infinity where none is."""
        extent = self._extent
        return math.inf if extent.pace else max(0.0, self._headed + extent.seconds - now)

    def _is_enough(self, elapsed: float) -> bool:
        """Whether the rest of the body is to be left, *elapsed* seconds after its head."""
        extent = self._extent
        if elapsed < extent.seconds or (self.framer.done and extent.seconds):
            return False
        return not extent.pace or self._spool.length < extent.pace * elapsed

    async def _leave(self) -> None:
        """What is still to come is not wanted."""
        self._remarks = (self._extent.remark,)
        await self._cut(Truncation.LENGTH)

    async def _cut(self, why: Truncation) -> None:
        if not self.framer.done:
            await self._keep(self.framer.cut(why))

    def _too_slow(self, elapsed: float) -> bool:
        return elapsed > SLOW_GRACE and self._spool.length < SLOWEST * elapsed


def _is_unstated(framing: Framing) -> bool:
    """Whether the head does not say how long the body is."""
    return framing.chunked or body_length(framing.fields).size is None
