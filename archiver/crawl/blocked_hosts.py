"""Hosts that refuse us, as a running crawl meets them: asked more slowly, tried once more, and paused.

Feeds the rules of `blocks` with what is committed. A paused host is asked for nothing more in this run but for a
robots.txt that another host waits for; its URLs wait for the next run, which begins gently.
"""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from archiver.clock import Clock
from archiver.crawl.visit import Visited
from archiver.frontier.port import Frontier, HostRow
from archiver.humanize import printable
from archiver.model import Grade, Hop, Settlement
from archiver.policy import block_pages
from archiver.policy.block_pages import HostAnswer, Reaction, RefusalRecord
from archiver.policy.schedule import Schedule
from archiver.policy.scope import is_guess
from archiver.policy.throttle import ThrottleState

GENTLY = 1.0  # requests a second at most with which the next run begins
SLOWED = "refusals"  # why a host is slowed down
PAGES = (Hop.LINK, Hop.REDIRECT)
LAG = 0.5  # seconds that a host rests when it refuses more quickly than its answers are committed
REMEMBERED = 10_000  # hosts whose answers are watched

log = logging.getLogger(__name__)


@dataclass(slots=True)
class BlockedHost:
    """One host."""

    watch: RefusalRecord = field(default_factory=RefusalRecord)
    since: float = 0.0  # seconds since the epoch: the first refusal of the row
    statuses: Counter[int] = field(default_factory=Counter)  # of the row
    sign: str = ""
    before: ThrottleState | None = None  # how it was asked before it was slowed down for its refusals
    asked: tuple[int, int] | None = None  # the page that was asked for again, and the status that it gave before


class BlockedHosts:
    """Tell it of each committed batch, and ask `is_paused` before each request."""

    def __init__(self, frontier: Frontier, schedule: Schedule, clock: Clock) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._clock = clock
        self._cases: dict[int, BlockedHost] = {}
        self._gave: dict[int, tuple[int, int]] = {}  # host: the first page that it gave in this run, and its status
        self._unseen: Counter[int] = Counter()  # host: refusals since its answers were committed last
        self._paused: dict[int, str] = {}  # host: its name

    def recall(self, row: HostRow) -> None:
        """A host is leased; it may have refused us in an earlier run."""
        if row.refuses and row.id not in self._cases:
            self._cases[row.id] = BlockedHost(RefusalRecord(wary=True), since=row.refuses)

    def is_paused(self, host: int) -> bool:
        """Whether *host* is asked for nothing more in this run."""
        return host in self._paused

    @property
    def words(self) -> str:
        """Which hosts are paused, for a person; "" where none is."""
        names = sorted(printable(name) for name in self._paused.values())
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        does = "refuses us, and its" if len(names) == 1 else "refuse us, and their"
        return f"blocked: {', '.join(names[:3])}{more} {does} URLs wait" if names else ""

    def received(self, visited: Visited) -> None:
        """Let the host rest if it refused us several times, and no rule has seen it because no commit has come between.

        Otherwise a quick server would get dozens of requests that it refuses before it is asked more slowly.
        """
        host, exchange = visited.claim.host, visited.exchange
        if exchange is None or exchange.framing.status not in block_pages.REFUSING or is_guess(visited.claim.path):
            return
        self._unseen[host] += 1
        if self._unseen[host] >= block_pages.SLOWER_AT:
            self._schedule.park(host, self._clock.now() + LAG)

    async def committed(self, settlements: Sequence[Settlement]) -> bool:
        """A batch is in the frontier; whether counts of URLs have changed."""
        changed = False
        for each in settlements:
            self._unseen.pop(each.claim.host, None)
            if each.capture is None or each.claim.priority < 0 or self.is_paused(each.claim.host):
                continue
            if is_guess(each.claim.path) and (each.sign is None or each.sign.grade is not Grade.CERTAIN):
                continue  # many servers answer 403 where there is nothing
            if 200 <= each.status < 300 and each.claim.hop in PAGES and not each.sign and len(self._gave) < REMEMBERED:
                self._gave.setdefault(each.claim.host, (each.claim.id, each.status))
            case = self._case(each)
            if case is not None:
                changed |= await self._take(each, case)
        return changed

    def _case(self, each: Settlement) -> BlockedHost | None:
        """The case of its host; most hosts never refuse anything, so one is made with the first refusal."""
        host = each.claim.host
        case = self._cases.get(host)
        if case is None:
            if each.sign is None and each.status not in block_pages.REFUSING:
                return None
            if len(self._cases) >= REMEMBERED:
                del self._cases[next(iter(self._cases))]
            case = self._cases[host] = BlockedHost(RefusalRecord(good=int(host in self._gave)))
        return case

    async def _take(self, each: Settlement, case: BlockedHost) -> bool:
        host, capture = each.claim.host, each.capture
        assert capture is not None
        again = case.asked is not None and case.asked[0] == each.claim.id
        answer = HostAnswer(each.status, each.sign, capture.payload_digest, each.settled, asked_again=again)
        refused = block_pages.is_refusal(case.watch, answer)
        if refused and not case.watch.row:
            case.since = case.since if case.watch.wary else capture.timestamp / 1e6
            case.statuses = Counter()
        if refused:
            case.statuses[each.status] += 1
            case.sign = each.blocked or case.sign
        before = case.watch
        case.watch, step = block_pages.after(case.watch, answer)
        if before.wary and not case.watch.wary:
            await self._frontier.pause(host, 0.0, None)
        return await self._act(host, case, step)

    async def _act(self, host: int, case: BlockedHost, step: Reaction) -> bool:
        now = self._clock.now()
        queue = self._schedule.queue(host)
        if queue is None:
            return False
        match step:
            case Reaction.SLOWER:
                case.before = queue.circle.temper.lesson if case.before is None else case.before
                self._schedule.strained(host, now, now, SLOWED)
            case Reaction.RELAX:
                case.asked = None
                if case.before is not None:
                    self._schedule.relearn(host, case.before)
                case.before = None
            case Reaction.ASK:
                case.asked = await self._frontier.ask_again(host, self._gave.get(host))
                if case.asked is None:  # nothing that it gave is known: this decides nothing
                    return False
                self._schedule.refresh(host)
                return True
            case Reaction.PAUSE:
                await self._pause(host, case, queue.key)
                return True
        return False

    async def _pause(self, host: int, case: BlockedHost, key: str) -> None:
        await self._frontier.pause(host, case.since, case.asked)
        self._paused[host] = key
        if (queue := self._schedule.queue(host)) is not None:
            queue.paused = True
            self._schedule.relearn(host, ThrottleState(rate=GENTLY, width=1.0, why=SLOWED))  # for the next run
            self._schedule.clear(host)
        told = ", ".join(str(status) for status, _ in case.statuses.most_common())
        by = f"; {printable(case.sign)}" if case.sign else ""
        log.warning(
            "%s refuses us since %s (%s on the last %d answers%s) and is paused; its URLs wait for archiver resume",
            printable(key),
            time.strftime("%H:%M:%S", time.localtime(case.since)),
            told,
            case.statuses.total(),
            by,
        )
