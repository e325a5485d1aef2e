"""Watches the health of hosts and of our own network: who does not answer, and who refuses us.

`HostHealth` passes what comes and what fails to the rules in `archiver.policy.retry`. While the network is lost nothing
is given up, and only probes go out. If it stays lost, other crawlers get our hosts, and the probes are connections
without a request. `BlockedHosts` slows down and pauses hosts that refuse us, by the rules in
`archiver.policy.block_pages`.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from archiver.clock import Clock
from archiver.config.settings import SettingsByHost
from archiver.crawl.proxy_health import ProxyHealth
from archiver.crawl.visit import Visited
from archiver.errors import Failure, FetchError, ProxyError, ShortageError
from archiver.extract.exchange import is_robots
from archiver.fetch.client import Fetcher
from archiver.frontier.port import Frontier, HostRow
from archiver.humanize import duration, printable
from archiver.model import Claim, Grade, Hop, Settlement
from archiver.policy import block_pages
from archiver.policy.block_pages import HostAnswer, Reaction, RefusalRecord
from archiver.policy.leased_host import LeasedHost, RefusalCase
from archiver.policy.limits import ThrottleState
from archiver.policy.retry import CUT, LINE, NO_BACKOFF, BackoffPolicy, BackoffVerdict, NetworkState, pause
from archiver.policy.schedule import Schedule
from archiver.policy.scope import is_guess

SOON = 60.0  # seconds; a host that may be asked within them can show if the network is up
REST = 3.0  # seconds that a host rests when its failure is in doubt
OUTAGE = 10.0  # seconds without an answer from any host after which another machine may well do better
WITNESSES = 16  # hosts to one of which we connect from time to time, to see if the network is back
SEEK_EVERY = 1.0  # seconds between two looks if it is time to do so

NEVER = float("inf")

LONG_WAIT = 300.0  # seconds: a person should hear of a longer wait of one host

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailureLimits:
    """The limits up to which failures are tolerated."""

    by_host: SettingsByHost  # for the retries of one URL
    offline: float  # seconds of a lost network; 0: no limit
    host: float  # seconds of a host that does not answer while others do; 0: no limit


class HostHealth:
    """Decides if the network or a host is down. Ask `excuses` after each visit, and obey its `network`."""

    def __init__(
        self,
        frontier: Frontier,
        schedule: Schedule,
        fetcher: Fetcher,
        clock: Clock,
        limits: FailureLimits,
        network: NetworkState,
    ) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._fetcher = fetcher
        self._clock = clock
        self._limits = limits
        self.network = network
        self.proxies = ProxyHealth(fetcher, clock, limits.offline)
        self._backoff = BackoffPolicy(limits.host)
        self._last = ""  # failure, in words
        self._witnesses: deque[str] = deque()  # keys of hosts that other crawlers may have now
        self.given_up = 0  # URLs of hosts that we gave up

    def recall(self, row: HostRow) -> None:
        """Continue the backoff that was saved for a host, now that it is leased."""
        host = self._schedule.host(row.id)
        failures = host.memory.failures
        self._backoff.recall(failures, row.backoff)
        if failures.backing_off:
            host.back_off(row.backoff.until)
            if row.answered:  # we backed off because others answered while it did not
                self.network.recall(failures, min(row.backoff.since, self._clock.now()))

    def listen(self) -> None:
        """Note what came over the network since the last look."""
        if self.proxies.outages:
            self.proxies.listen()
        self._sign(self._clock.at(self._fetcher.last_activity))

    def _sign(self, at: float) -> None:
        lost, since = self.network.lost, self.network.since
        self.network.sign(at)
        if lost and not self.network.lost:
            log.warning("the network is back after %s", duration(self._clock.now() - since))

    def exhausted(self, now: float) -> str:
        """Return why the crawl should end, if it has waited long enough for the network."""
        limit = self._limits.offline
        if self.proxies.outages and (reason := self.proxies.exhausted(now)):
            return reason
        if not self.network.lost or not limit or now - self.network.since < limit:
            return ""
        return f"no host answers since {self._moment()} ({self._last}); --offline-patience {limit:g} is over"

    def description(self, now: float) -> str:
        """Describe what the crawl waits for while the network is lost."""
        wait = self.network.next_start - now
        again = f"trying again in {duration(wait)}" if wait > 0 else "trying again now"
        return f"no host answers since {self._moment()}, {again} ({self._last})"

    def out_of_reach(self, now: float) -> bool:
        """Return True if the network is lost for so long that other crawlers should get our hosts."""
        return self.network.lost and now >= self.network.since + OUTAGE

    def note_witnesses(self) -> None:
        """Note which hosts to connect to later: those that are leased now, first the ones that answered most."""
        open_to_us = (host for host in self._schedule.hosts() if not host.memory.blocked)
        hosts = sorted(open_to_us, key=lambda host: (host.backing_off, -host.done))
        self._witnesses = deque(host.key for host in hosts[:WITNESSES])
        log.warning(
            "no host answers for %s; other crawlers may have ours", duration(self._clock.now() - self.network.since)
        )

    async def seek_network(self) -> None:
        """While the network is lost and no host is leased, connect to one at a time, after growing pauses."""
        while True:
            await asyncio.sleep(SEEK_EVERY)
            now = self._clock.now()
            if len(self._schedule) or not self.network.lost or not self._witnesses or now < self.network.next_start:
                continue
            self.network.probe(now)
            with suppress(FetchError, ShortageError):
                await self._fetcher.reach(f"{self._witnesses[0]}/")
            self._witnesses.rotate(-1)
            self.listen()

    async def excuses(self, visited: Visited, began: float) -> bool:
        """Return True if the network may be at fault for *visited*. Its URL stays queued and keeps its tries."""
        self.listen()
        claim, error, exchange = visited.claim, visited.error, visited.exchange
        host = self._schedule.host(claim.host)
        if isinstance(error, ProxyError):
            self.proxies.failed(host, error)
            return True
        if exchange is not None and self.network.lost and exchange.truncated in CUT:
            exchange.response.close()
            return True
        if error is None:
            self.network.answered(host.memory.failures, claim.id)
            await self._end_backoff(host)
            return False
        if error.failure in (Failure.PRIVATE, Failure.PROXY):  # we never went there, so it says nothing about the way
            return False
        if error.failure not in LINE:  # a failed handshake is an answer
            self._sign(self._clock.now())
            await self._end_backoff(host)
            return False
        stranded = self._fetcher.has_no_route(claim.url)
        if stranded:
            self.network.unreachable(host.memory.failures)
        answered = await self._frontier.has_answered(claim.host)
        self.listen()
        self._count(host, error, began, known=answered or stranded)
        if self.network.lost:
            return True
        span = began, self._clock.now()
        down = self.network.down(host.memory.failures) if answered else not (stranded or is_robots(claim))
        if down and await self._backs_off(host, visited, span, known=answered):
            return True
        return claim.tries >= self._retries(host) and self._is_ours(host, claim, span, known=answered or stranded)

    def _is_ours(self, host: LeasedHost, claim: Claim, span: tuple[float, float], *, known: bool) -> bool:
        """Return True if the last failure of *claim* may be the network's fault; its host rests then."""
        others = any(other.active for other in self._others(host))
        ours = self.network.is_ours(host.memory.failures, claim.id, span, known=known, others=others)
        if ours:
            host.wait(span[1] + REST)
        return ours

    def _retries(self, host: LeasedHost) -> int:
        return self._limits.by_host.of(host.key).fetch.retries

    async def _backs_off(self, host: LeasedHost, visited: Visited, span: tuple[float, float], *, known: bool) -> bool:
        """Back off from *host*, which is down or never was up, or give it up; return True to excuse *visited*."""
        claim, now, failures = visited.claim, span[1], host.memory.failures
        before = failures.backoff
        longest = NEVER if known else sum(map(pause, range(self._retries(host))))
        verdict = self._backoff.failed(failures, now, longest)
        state = failures.backoff
        if verdict is BackoffVerdict.UP:
            return False
        if verdict is BackoffVerdict.BACKING_OFF and state == before:
            return True
        if verdict is BackoffVerdict.GIVEN_UP and not known and self._is_ours(host, claim, span, known=False):
            return True
        key = printable(host.key)
        if verdict is BackoffVerdict.BACKING_OFF:
            host.back_off(state.until)
            log.warning("%s does not answer, next try in %s (%s)", key, duration(state.until - now), self._last)
            await self._frontier.save_backoff(host.id, state)
            return True
        host.backing_off = False
        assert visited.error is not None
        note = f"{self._last}; the host did not answer for {duration(now - state.since)} and was given up"
        count = await self._frontier.give_up(host.id, visited.error.failure.value, note, now)
        self.given_up += count
        log.warning("%s did not answer for %s and is given up, with %d URLs", key, duration(now - state.since), count)
        return not is_robots(claim)

    async def _end_backoff(self, host: LeasedHost) -> None:
        """*host* has answered."""
        if self._backoff.answered(host.memory.failures):
            log.warning("%s answers again", printable(host.key))
            host.backing_off = False
            await self._frontier.save_backoff(host.id, NO_BACKOFF)

    def _count(self, host: LeasedHost, error: FetchError, began: float, *, known: bool) -> None:
        lost, now = self.network.lost, self._clock.now()
        alone = not any(_soon(other, now) for other in self._others(host))
        self._last = f"{error.failure.value}: {error.reason}"
        self.network.failed(host.memory.failures, began, now, known=known, alone=alone)
        if self.network.lost and not lost:
            log.warning("%s; nothing is given up meanwhile", self.description(now))

    def _others(self, host: LeasedHost) -> Iterator[LeasedHost]:
        return (other for other in self._schedule.hosts() if other is not host)

    def _moment(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self.network.since))


def _soon(host: LeasedHost, now: float) -> bool:
    """Return True if *host* is being asked, or may be before long."""
    if host.active:
        return True
    first = host.next(now) if host.window else host.later
    return max(first, host.earliest) < now + SOON


GENTLY = 1.0  # requests a second at most with which the next run begins
SLOWED = "refusals"  # why a host is slowed down
PAGES = (Hop.LINK, Hop.REDIRECT)
LAG = 0.5  # seconds that a host rests if it refuses us faster than we commit its answers


class BlockedHosts:
    """Slows down and pauses hosts that refuse us.

    A paused host gets no more requests in this run, apart from a robots.txt that another host waits for. Its URLs wait
    for the next run, which begins gently.
    """

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
        late: dict[int, RefusalCase] = {}  # hosts that were paused before these answers came
        for each in settlements:
            host = self._schedule.find(each.claim.host)
            if host is None:
                continue
            host.memory.new_refusals = 0
            if each.capture is None or each.claim.priority < 0:
                continue
            if host.memory.paused:
                if host.memory.refusals is not None and each.status in block_pages.REFUSING:
                    late[host.id] = host.memory.refusals
                continue
            if is_guess(each.claim.path) and (each.sign is None or each.sign.grade is not Grade.CERTAIN):
                continue  # many servers answer 403 where there is nothing
            if 200 <= each.status < 300 and each.claim.hop in PAGES and not each.sign and host.memory.good_page is None:
                host.memory.good_page = each.claim.id, each.status
            case = _case(host, each)
            if case is not None:
                changed |= await self._add(host, case, each)
        for row, case in late.items():
            await self._frontier.pause(row, case.since, case.asked)
        return changed

    async def _add(self, host: LeasedHost, case: RefusalCase, each: Settlement) -> bool:
        capture = each.capture
        assert capture is not None
        again = case.asked is not None and case.asked[0] == each.claim.id
        answer = HostAnswer(each.status, each.sign, capture.payload_digest, each.settled, asked_again=again)
        refused = block_pages.is_refusal(case.record, answer)
        if not refused and not again and case.record.row and capture.timestamp / 1e6 < case.since:
            return False  # it was asked for before the refusals began, so it does not end them
        if refused and not case.record.row:
            case.since = case.since if case.record.wary else capture.timestamp / 1e6
            case.statuses = Counter()
        if refused:
            case.since = min(case.since, capture.timestamp / 1e6)  # answers come in another order than requests
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


def report_wait(key: str, now: float, until: float) -> None:
    """Say that the host *key* asks us to wait *until* then, if that is long."""
    if until - now >= LONG_WAIT:
        log.warning(
            "%s asks us to wait until %s (Retry-After); other hosts go on, and if you stop now, archiver resume goes "
            "on later",
            printable(key),
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(until)),
        )


def _case(host: LeasedHost, each: Settlement) -> RefusalCase | None:
    """Return the case of *host*, opened at its first refusal; most hosts never have one."""
    memory = host.memory
    if memory.refusals is None and (each.sign is not None or each.status in block_pages.REFUSING):
        memory.refusals = RefusalCase(RefusalRecord(good=int(memory.good_page is not None)))
    return memory.refusals
