"""Our own network, as the crawl meets it: while it is lost, nothing is given up and nothing is asked but a probe.

Feeds the rules of `outage` with what comes and fails, and says so when the network goes and when it is back.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

from archiver.clock import Clock
from archiver.crawl.visit import Visited
from archiver.errors import Failure, FetchError
from archiver.extract.exchange import is_robots
from archiver.fetch.client import Fetcher
from archiver.frontier.port import Frontier, HostRow
from archiver.humanize import duration, printable
from archiver.model import Claim
from archiver.policy.host_backoff import AWAKE, BackoffTracker, BackoffVerdict
from archiver.policy.host_queue import HostQueue
from archiver.policy.offline import LINE, NetworkState
from archiver.policy.retry import CUT, pause
from archiver.policy.schedule import Schedule

SOON = 60.0  # seconds; a host that may be asked within them can bear witness for the network
REST = 3.0  # seconds a host rests whose failure is in doubt

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailureLimits:
    """How long failures are borne."""

    retries: int  # of one URL
    outage: float  # seconds of a lost network; 0: no limit
    host: float  # seconds of a host that does not answer while others do; 0: no limit


class HostHealth:
    """Heed `next_start`, tell of each `probe`, and ask `is_to_blame` after each visit."""

    def __init__(
        self,
        frontier: Frontier,
        schedule: Schedule,
        fetcher: Fetcher,
        clock: Clock,
        patience: FailureLimits,
        rule: NetworkState,
    ) -> None:
        self._frontier = frontier
        self._schedule = schedule
        self._fetcher = fetcher
        self._clock = clock
        self._patience = patience
        self._rule = rule
        self._last = ""  # failure, in words
        self._sleepers = BackoffTracker(patience.host, stranger=sum(map(pause, range(patience.retries))))
        self.given_up = 0  # URLs of hosts whose time was over

    @property
    def lost(self) -> bool:
        """Whether it counts as lost."""
        return self._rule.lost

    @property
    def next_start(self) -> float:
        """While it is lost: when the next probe may start."""
        return self._rule.next_start

    def recall(self, row: HostRow) -> None:
        """A host is leased again: it may have been asleep when its row was written."""
        self._sleepers.recall(row.id, row.slumber)
        if self._sleepers.asleep(row.id):
            self._schedule.sleep(row.id, row.slumber.until)
            if row.answered:  # it slept because others answered while it did not
                self._rule.recall(row.id, min(row.slumber.since, self._clock.now()))

    def probe(self, now: float) -> None:
        """A request starts although it is lost."""
        self._rule.probe(now)

    def listen(self) -> None:
        """Take notice of what came over the network since the last look."""
        self._sign(self._clock.at(self._fetcher.last_activity))

    def _sign(self, at: float) -> None:
        lost, since = self.lost, self._rule.since
        self._rule.sign(at)
        if lost and not self.lost:
            log.warning("the network is back after %s", duration(self._clock.now() - since))

    def exhausted(self, now: float) -> str:
        """Why the crawl should end, where it has waited long enough."""
        limit = self._patience.outage
        if not self.lost or not limit or now - self._rule.since < limit:
            return ""
        return f"no host answers since {self._moment()} ({self._last}); --offline-patience {limit:g} is over"

    def words(self, now: float) -> str:
        """What the crawl waits for while the network is lost."""
        wait = self.next_start - now
        again = f"trying again in {duration(wait)}" if wait > 0 else "trying again now"
        return f"no host answers since {self._moment()}, {again} ({self._last})"

    async def is_to_blame(self, visited: Visited, began: float) -> bool:
        """Whether what came of a visit that *began* then may be the network's doing: its URL waits on as it did."""
        self.listen()
        claim, error, exchange = visited.claim, visited.error, visited.exchange
        if exchange is not None and self.lost and exchange.truncated in CUT:
            exchange.response.close()
            return True
        if error is None:
            self._rule.answered(claim.host, claim.id)
            await self._wake(claim)
            return False
        if error.failure is Failure.PRIVATE:  # we never went there, so it says nothing of the way
            return False
        if error.failure not in LINE:  # a handshake that failed is an answer
            self._sign(self._clock.now())
            await self._wake(claim)
            return False
        stranded = self._fetcher.has_no_route(claim.url)
        if stranded:
            self._rule.unreachable(claim.host)
        answered = await self._frontier.has_answered(claim.host)
        self.listen()
        self._count(claim, error, began, known=answered or stranded)
        if self.lost:
            return True
        span = began, self._clock.now()
        down = self._rule.down(claim.host) if answered else not (stranded or is_robots(claim))
        if down and await self._rests(claim, error, span, known=answered):
            return True
        return claim.tries >= self._patience.retries and self._is_ours(claim, span, known=answered or stranded)

    def _is_ours(self, claim: Claim, span: tuple[float, float], *, known: bool) -> bool:
        """Whether the last failure of *claim*, over *span*, may be the network's; its host rests then."""
        others = any(queue.active for queue in self._others(claim.host))
        ours = self._rule.is_ours(claim.host, claim.id, span, known=known, others=others)
        if ours:
            self._schedule.park(claim.host, span[1] + REST)
        return ours

    async def _rests(self, claim: Claim, error: FetchError, span: tuple[float, float], *, known: bool) -> bool:
        """Whether the host of *claim*, which is down by itself or was never there, sleeps now or is given up."""
        now, before = span[1], self._sleepers.state(claim.host)
        verdict, state = self._sleepers.failed(claim.host, now, known=known), self._sleepers.state(claim.host)
        if verdict is BackoffVerdict.AWAKE:
            return False
        if verdict is BackoffVerdict.ASLEEP and state == before:
            return True
        if verdict is BackoffVerdict.GONE and not known and self._is_ours(claim, span, known=False):
            return True
        key = _name(self._schedule.queue(claim.host))
        if verdict is BackoffVerdict.ASLEEP:
            self._schedule.sleep(claim.host, state.until)
            log.warning("%s does not answer, next try in %s (%s)", key, duration(state.until - now), self._last)
            await self._frontier.doze(claim.host, state)
            return True
        self._schedule.awaken(claim.host)
        note = f"{self._last}; the host did not answer for {duration(now - state.since)} and was given up"
        count = await self._frontier.give_up(claim.host, error.failure.value, note, now)
        self.given_up += count
        log.warning("%s did not answer for %s and is given up, with %d URLs", key, duration(now - state.since), count)
        return not is_robots(claim)

    async def _wake(self, claim: Claim) -> None:
        """The host of *claim* has answered."""
        if self._sleepers.answered(claim.host):
            log.warning("%s answers again", _name(self._schedule.queue(claim.host)))
            self._schedule.awaken(claim.host)
            await self._frontier.doze(claim.host, AWAKE)

    def _count(self, claim: Claim, error: FetchError, began: float, *, known: bool) -> None:
        lost, now = self.lost, self._clock.now()
        alone = not any(_soon(queue, now) for queue in self._others(claim.host))
        self._last = f"{error.failure.value}: {error.reason}"
        self._rule.failed(claim.host, began, now, known=known, alone=alone)
        if self.lost and not lost:
            log.warning("%s; nothing is given up meanwhile", self.words(now))

    def _others(self, host: int) -> Iterator[HostQueue]:
        for other in self._schedule.leased():
            if other != host and (queue := self._schedule.queue(other)) is not None:
                yield queue

    def _moment(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self._rule.since))


def _name(queue: HostQueue | None) -> str:
    return printable(queue.key) if queue is not None else "a host"


def _soon(queue: HostQueue, now: float) -> bool:
    """Whether the host is being asked, or may be before long."""
    if queue.active:
        return True
    first = queue.next(now) if queue.window else queue.later
    return max(first, queue.parked) < now + SOON
