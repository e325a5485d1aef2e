"""Slows down and pauses hosts that refuse us, by the rules in `archiver.policy.block_pages`.

A paused host gets no more requests in this run, apart from a robots.txt that another host waits for. Its URLs wait for
the next run, which begins gently.
"""

import logging
import time
from collections import Counter
from collections.abc import Sequence

from archiver.clock import Clock
from archiver.crawl.visit import Visited
from archiver.frontier.port import Frontier, HostRow
from archiver.humanize import printable
from archiver.model import Grade, Hop, Settlement
from archiver.policy import block_pages
from archiver.policy.block_pages import HostAnswer, Reaction, RefusalRecord
from archiver.policy.leased_host import LeasedHost, RefusalCase
from archiver.policy.limits import ThrottleState
from archiver.policy.schedule import Schedule
from archiver.policy.scope import is_guess

GENTLY = 1.0  # requests a second at most with which the next run begins
SLOWED = "refusals"  # why a host is slowed down
PAGES = (Hop.LINK, Hop.REDIRECT)
LAG = 0.5  # seconds that a host rests if it refuses us faster than we commit its answers

log = logging.getLogger(__name__)


class BlockedHosts:
    """Passes the answers of hosts to the rules and acts on the result."""

    def __init__(self, frontier: Frontier, schedule: Schedule, clock: Clock) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._clock = clock
        self._paused: list[str] = []  # keys of hosts

    def recall(self, row: HostRow) -> None:
        """Remember that a host, which is leased now, refused us in an earlier run."""
        memory = self._schedule.host(row.id).memory
        if row.blocked_since and memory.refusals is None:
            memory.refusals = RefusalCase(RefusalRecord(wary=True), since=row.blocked_since)

    @property
    def description(self) -> str:
        """Return a sentence about the paused hosts for people, or "" if no host is paused."""
        names = sorted(map(printable, self._paused))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        does = "refuses us, and its" if len(names) == 1 else "refuse us, and their"
        return f"blocked: {', '.join(names[:3])}{more} {does} URLs wait" if names else ""

    def received(self, visited: Visited) -> None:
        """Let a host rest if it has refused us several times since its answers were last committed.

        Otherwise a fast server would refuse dozens of requests before the rules slow us down.
        """
        exchange = visited.exchange
        if exchange is None or exchange.framing.status not in block_pages.REFUSING or is_guess(visited.claim.path):
            return
        host = self._schedule.host(visited.claim.host)
        host.memory.new_refusals += 1
        if host.memory.new_refusals >= block_pages.SLOWER_AT:
            host.wait(self._clock.now() + LAG)

    async def committed(self, settlements: Sequence[Settlement]) -> bool:
        """Take in a committed batch; return True if URLs have changed their states because of it."""
        changed = False
        for each in settlements:
            host = self._schedule.find(each.claim.host)
            if host is None:
                continue
            host.memory.new_refusals = 0
            if each.capture is None or each.claim.priority < 0 or host.memory.paused:
                continue
            if is_guess(each.claim.path) and (each.sign is None or each.sign.grade is not Grade.CERTAIN):
                continue  # many servers answer 403 where there is nothing
            if 200 <= each.status < 300 and each.claim.hop in PAGES and not each.sign and host.memory.good_page is None:
                host.memory.good_page = each.claim.id, each.status
            case = _case(host, each)
            if case is not None:
                changed |= await self._add(host, case, each)
        return changed

    async def _add(self, host: LeasedHost, case: RefusalCase, each: Settlement) -> bool:
        capture = each.capture
        assert capture is not None
        again = case.asked is not None and case.asked[0] == each.claim.id
        answer = HostAnswer(each.status, each.sign, capture.payload_digest, each.settled, asked_again=again)
        refused = block_pages.is_refusal(case.record, answer)
        if refused and not case.record.row:
            case.since = case.since if case.record.wary else capture.timestamp / 1e6
            case.statuses = Counter()
        if refused:
            case.statuses[each.status] += 1
            case.sign = each.blocked or case.sign
        before = case.record
        case.record, reaction = block_pages.after(case.record, answer)
        if before.wary and not case.record.wary:
            await self._frontier.pause(host.id, 0.0, None)
        return await self._react(host, case, reaction)

    async def _react(self, host: LeasedHost, case: RefusalCase, reaction: Reaction) -> bool:
        now = self._clock.now()
        if self._schedule.find(host.id) is not host:
            return False
        match reaction:
            case Reaction.SLOWER:
                case.throttle_before = case.throttle_before or host.group.throttle.state
                self._schedule.overloaded(host.id, now, now, SLOWED)
            case Reaction.RELAX:
                case.asked = None
                if case.throttle_before is not None:
                    self._schedule.restore_throttle(host.id, case.throttle_before)
                case.throttle_before = None
            case Reaction.ASK:
                case.asked = await self._frontier.ask_again(host.id, host.memory.good_page)
                if case.asked is None:  # we know no page that it gave, so this decides nothing
                    return False
                self._schedule.refresh(host.id)
                return True
            case Reaction.PAUSE:
                await self._pause(host, case)
                return True
        return False

    async def _pause(self, host: LeasedHost, case: RefusalCase) -> None:
        await self._frontier.pause(host.id, case.since, case.asked)
        self._paused.append(host.key)
        host.memory.paused = True
        if self._schedule.find(host.id) is host:
            gently = ThrottleState(rate=GENTLY, width=1.0, why=SLOWED)  # for the next run
            self._schedule.restore_throttle(host.id, gently)
            self._schedule.clear(host.id)
        statuses = ", ".join(str(status) for status, _ in case.statuses.most_common())
        by = f"; {printable(case.sign)}" if case.sign else ""
        log.warning(
            "%s refuses us since %s (%s on the last %d answers%s) and is paused; its URLs wait for archiver resume",
            printable(host.key),
            time.strftime("%H:%M:%S", time.localtime(case.since)),
            statuses,
            case.statuses.total(),
            by,
        )


def _case(host: LeasedHost, each: Settlement) -> RefusalCase | None:
    """Return the case of *host*, opened at its first refusal; most hosts never have one."""
    memory = host.memory
    if memory.refusals is None and (each.sign is not None or each.status in block_pages.REFUSING):
        memory.refusals = RefusalCase(RefusalRecord(good=int(memory.good_page is not None)))
    return memory.refusals
