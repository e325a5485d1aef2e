"""One exchange: send a request and read the response, both exactly as they cross the wire.

Responses that are read at the same time share one processor: costly ones wait for all others. Chunks or segments of one
byte cost a thousand times as much as ordinary data. They are read in short steps, and all such responses together get a
twentieth of the time.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from archiver.errors import Failure, FetchError
from archiver.fetch.http_proxy import AUTHENTICATION_REQUIRED
from archiver.fetch.spool import Spool
from archiver.fetch.wire import Wire
from archiver.http import Framer, WantedBodies
from archiver.http.body import WHOLE, Extent, UnreadReason
from archiver.http.head import body_length, may_be_head
from archiver.model import Block, Exchange, Framing, Truncation

SLOW_GRACE = 600.0  # seconds before a slow response is judged
SLOWEST = 1024.0  # bytes a second on average; slower responses are cut then, as a trickle could last forever
LEAST_BANDWIDTH = 4 * SLOWEST  # bytes a second: we slow a response down no further ourselves
EARLY = 1.0  # seconds of the bandwidth that may come early
SETTLE = 0.002  # seconds of silence after a message until we expect no more …
LONGEST_SETTLE = 1.0  # … and the longest time the server may go on sending
GIVE_WAY = 6.0  # a large response waits this many times the CPU time of its last piece while small ones arrive …
LOOK = 0.002  # … and checks for them after this many seconds
LATE = 408  # Request Timeout: on a used connection it may concern the time before our request
STEP = 16 << 10  # bytes of a chunked body processed before others get a turn
COSTLY = 0.0005  # seconds of CPU time for a step; a response that takes longer waits …
PATIENCE = 20.0  # … this many times as long
TINY = 256  # bytes: a smaller piece costs more to receive than to parse, …
WAKING = 0.0001  # … about this many seconds …
FEW = 16  # … and a response may have this many without waiting


Keep = Callable[[str, Framing], Awaitable[str]]  # from URL and head to why the body is not read; "" if it is
# Gets each kept piece of a response, and True with the last. Returns False if no one listens any more.
Hear = Callable[[Framing, bytes, bool], Awaitable[bool]]


class SharedCpu:
    """The responses that are being read at the same time."""

    __slots__ = ("_free", "small_pieces")

    def __init__(self) -> None:
        self.small_pieces = 0  # pieces received of small responses: a large, fast response must not starve them
        self._free = float("-inf")  # when the waits of all costly responses end

    async def wait(self, wire: Wire, spent: float) -> None:
        """Wait because of *spent* seconds of CPU time. The system buffers what arrives on *wire* until then."""
        now = asyncio.get_running_loop().time()
        self._free = max(self._free, now) + PATIENCE * spent
        wire.pause()
        try:
            await asyncio.sleep(self._free - now)
        finally:
            wire.resume()


class FramerSteps:
    """Feeds a framer step by step and measures the cost."""

    __slots__ = ("_framer", "_tiny", "spent")

    def __init__(self, framer: Framer) -> None:
        self._framer = framer
        self._tiny = 0
        self.spent = 0.0  # seconds of CPU time of the last step, if it was costly

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what belongs to the block of each step of *data*."""
        self._tiny += len(data) < TINY
        waking = WAKING if len(data) < TINY and self._tiny > FEW else 0.0
        at = 0
        while at < len(data):
            framing = self._framer.framing
            plain = framing is not None and not framing.chunked
            part = data[at : at + STEP] if not plain and len(data) > STEP else data[at:]
            at += len(part)
            began = time.thread_time()
            piece = self._framer.feed(part)
            spent = time.thread_time() - began
            self.spent = waking + (spent if spent > COSTLY else 0.0)
            yield piece


@dataclass(slots=True)
class Progress:
    """The progress of a running exchange, for displays."""

    address: str = ""  # of the server, once connected
    received: int = 0  # bytes of the response


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on the size and duration of a response."""

    max_size: int  # of the whole block; 0: no limit
    timeout: float
    wanted: WantedBodies
    max_unstated: int = 0  # of a body without a stated length; 0: no limit
    first_byte: float = 0.0  # seconds until the response begins; 0: as timeout
    max_time: float = 0.0  # seconds for the whole response; 0: no limit
    bandwidth: int = 0  # bytes a second; 0: no limit


@dataclass(frozen=True, slots=True)
class Particulars:
    """What only some exchanges need."""

    keep: Callable[[Framing], Awaitable[str]] | None = None  # returns why the body is not read, "" if it is
    method: str = "GET"
    upgrade: str = ""  # the protocol to which the request asks to change the connection
    upload: Block | None = None  # the end of the request, if it is in a file
    hear: Hear | None = None  # gets the response while it is read, unless it may belong to another request


USUAL = Particulars()
UPLOAD_CUT = "request-cut"  # remark: the server answered before it had the whole request


class Attempt:
    """One request on one connection, and its response."""

    __slots__ = (
        "_answered",
        "_attended",
        "_bounds",
        "_cpu",
        "_extent",
        "_headed",
        "_hear",
        "_kept",
        "_large",
        "_progress",
        "_received",
        "_remarks",
        "_request",
        "_seen",
        "_spool",
        "_unsent",
        "_upload",
        "_wire",
        "framer",
    )

    def __init__(
        self,
        wire: Wire,
        request: bytes,
        spool: Spool,
        bounds: Bounds,
        beside: tuple[SharedCpu, Progress],
        special: Particulars = USUAL,
    ) -> None:
        self.framer = Framer(special.method, upgrade=special.upgrade)
        self._wire = wire
        self._request = request
        self._spool = spool
        self._bounds = bounds
        self._cpu, self._progress = beside
        self._kept, self._upload, self._hear = special.keep, special.upload, special.hear
        self._attended = special.hear is not None  # a client listens, so a stream without an end is no waste
        self._large = False
        self._seen = 0  # value of `SharedCpu.small_pieces` when last checked
        self._received = False
        self._answered = 0.0  # `time.monotonic()` of the first byte
        self._extent = WHOLE  # how far the body is read, decided by the head …
        self._headed = math.inf  # … at this time
        self._remarks: tuple[str, ...] = ()
        self._unsent = False  # the server did not take the whole request

    async def run(self) -> Exchange | None:
        """Make the exchange. Return None if no response came that is certainly for this request."""
        started = time.time_ns() // 1000
        clock = time.monotonic()
        try:
            self._wire.send(self._request)
            if self._upload is not None:
                await self._send_upload(self._upload)
            await self._receive()
            took = time.monotonic() - clock
            if self.framer.truncated is None and not self.framer.upgraded:
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
                notes=self._wire.notes + self._remarks + (UPLOAD_CUT,) * self._unsent,
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
        return (self._wire.reused and other_head) or self._foreign(framing)

    def _foreign(self, framing: Framing) -> bool:
        """True if the head shows that the response may belong to another request."""
        return self._wire.reused and (framing.protocol == "http/0.9" or framing.status == LATE)

    def _is_heard(self, framing: Framing) -> bool:
        """True if the response goes on to the client. A challenge of our proxy is for us."""
        ours = self._wire.forwarded and framing.status == AUTHENTICATION_REQUIRED
        return not ours and not self._foreign(framing)

    async def _send_upload(self, upload: Block) -> None:
        """Send the end of the request, until the server answers: it may refuse a body that it has not read."""
        for piece in upload.pieces():
            try:
                if not await self._wire.has_room(self._bounds.timeout):
                    self._unsent = True
                    return
            except TimeoutError:
                reason = f"the server takes no more of the request within {self._bounds.timeout:g} s"
                raise FetchError(Failure.TIMEOUT, reason) from None
            self._wire.send_more(piece)

    async def _receive(self) -> None:
        framer, awake, steps = self.framer, self._wire.awake, FramerSteps(self.framer)
        began = awake.now()
        while not framer.done:
            timeout = self._timeout(began)
            left = self._left(awake.now()) if self._sampled else math.inf
            try:
                data = await self._wire.read(min(timeout, left))
            except TimeoutError:
                if framer.headless:
                    raise FetchError(Failure.TIMEOUT, self._silence()) from None
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
            if self._bounds.bandwidth and not framer.done:
                await self._slow_down(began)

    async def _slow_down(self, began: float) -> None:
        """Wait if the response, which *began* then, comes faster than it may; the server then has to wait too."""
        bounds = self._bounds
        due = self._answered + self._progress.received / max(bounds.bandwidth, LEAST_BANDWIDTH) - EARLY
        longest = began + bounds.max_time - self._wire.awake.now() if bounds.max_time else math.inf
        left = min(due - time.monotonic(), longest)
        if left > 0:
            self._wire.pause()
            try:
                await asyncio.sleep(left)
            finally:
                self._wire.resume()

    async def _step(self, piece: bytes, began: float) -> None:
        """Process *piece* of the block, of a response that *began* at that time."""
        framer, now = self.framer, self._wire.awake.now()
        if self._headed == math.inf and framer.framing is not None:
            self._extent, self._headed = self._bounds.wanted.extent(framer.framing), now
            if self._kept is not None and self._extent is WHOLE and (remark := await self._kept(framer.framing)):
                self._extent = Extent(remark, seconds=0.0)
        await self._keep(piece)
        if self._sampled and self._is_enough(now - self._headed):
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
        if piece and self._hear is not None and framing is not None and self._is_heard(framing):
            self._wire.pause()
            try:
                self._attended = await self._hear(framing, piece, self.framer.done)
            finally:
                self._wire.resume()

    def _limit(self, framing: Framing | None) -> tuple[float, str]:
        """Return the maximum length of the block, and the remark for a block that is cut there."""
        limit, remark = self._bounds.max_size or math.inf, ""
        if framing is None:
            return limit, remark
        if self._extent.size and self._hear is None and framing.head_length + self._extent.size < limit:
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

    @property
    def _sampled(self) -> bool:
        """True if only a part of the body is read."""
        return self._extent is not WHOLE and not self._attended

    def _left(self, now: float) -> float:
        """Return the seconds left for a sample; infinity if the body is not sampled."""
        extent = self._extent
        return math.inf if extent.slow_rate else max(0.0, self._headed + extent.seconds - now)

    def _timeout(self, began: float) -> float:
        """Return the seconds to wait for the next bytes of a response that *began* at that time."""
        bounds = self._bounds
        timeout = bounds.timeout if self._received else bounds.first_byte or bounds.timeout
        if not bounds.max_time:
            return timeout
        return min(timeout, max(0.0, began + bounds.max_time - self._wire.awake.now()))

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
        most = self._bounds.max_time
        return (0 < most <= elapsed) or (elapsed > SLOW_GRACE and self._spool.length < SLOWEST * elapsed)

    def _silence(self) -> str:
        """Return the reason for a failure: the response did not begin, or its head did not end, in time."""
        bounds = self._bounds
        limit = bounds.timeout if self._received else bounds.first_byte or bounds.timeout
        return f"no answer within {min(limit, bounds.max_time or limit):g} s"


def _is_unstated(framing: Framing) -> bool:
    """True if the head does not state the length of the body."""
    return framing.chunked or body_length(framing.fields).size is None
