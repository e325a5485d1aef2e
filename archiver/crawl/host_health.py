"""Watches our own network and the hosts that do not answer.

Passes what comes and what fails to the rules in `archiver.policy.retry` and `archiver.policy.retry`. While the
network is lost nothing is given up, and only probes go out. Logs when the network or a host goes and comes back.
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
from archiver.policy.leased_host import LeasedHost
from archiver.policy.retry import CUT, LINE, NO_BACKOFF, BackoffPolicy, BackoffVerdict, NetworkState, pause
from archiver.policy.schedule import Schedule

SOON = 60.0  # seconds; a host that may be asked within them can show if the network is up
REST = 3.0  # seconds that a host rests when its failure is in doubt

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailureLimits:
    """The limits up to which failures are tolerated."""

    retries: int  # of one URL
    offline: float  # seconds of a lost network; 0: no limit
    host: float  # seconds of a host that does not answer while others do; 0: no limit


class HostHealth:
    """Decides if the network or a host is down. Obey `next_start`, report each `probe`, ask `excuses` after a visit."""

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
        self._network = network
        self._backoff = BackoffPolicy(limits.host, stranger=sum(map(pause, range(limits.retries))))
        self._last = ""  # failure, in words
        self.given_up = 0  # URLs of hosts that we gave up

    @property
    def lost(self) -> bool:
        """True if the network counts as lost."""
        return self._network.lost

    @property
    def next_start(self) -> float:
        """When the next request may start, or the next probe while the network is lost."""
        return self._network.next_start

    def recall(self, row: HostRow) -> None:
        """Continue the backoff that was saved for a host, now that it is leased."""
        host = self._schedule.host(row.id)
        failures = host.memory.failures
        self._backoff.recall(failures, row.backoff)
        if failures.backing_off:
            host.back_off(row.backoff.until)
            if row.answered:  # we backed off because others answered while it did not
                self._network.recall(failures, min(row.backoff.since, self._clock.now()))

    def probe(self, now: float) -> None:
        """Record that a request starts although the network is lost."""
        self._network.probe(now)

    def listen(self) -> None:
        """Note what came over the network since the last look."""
        self._sign(self._clock.at(self._fetcher.last_activity))

    def _sign(self, at: float) -> None:
        lost, since = self.lost, self._network.since
        self._network.sign(at)
        if lost and not self.lost:
            log.warning("the network is back after %s", duration(self._clock.now() - since))

    def exhausted(self, now: float) -> str:
        """Return why the crawl should end, if it has waited long enough for the network."""
        limit = self._limits.offline
        if not self.lost or not limit or now - self._network.since < limit:
            return ""
        return f"no host answers since {self._moment()} ({self._last}); --offline-patience {limit:g} is over"

    def description(self, now: float) -> str:
        """Describe what the crawl waits for while the network is lost."""
        wait = self.next_start - now
        again = f"trying again in {duration(wait)}" if wait > 0 else "trying again now"
        return f"no host answers since {self._moment()}, {again} ({self._last})"

    async def excuses(self, visited: Visited, began: float) -> bool:
        """Return True if the network may be at fault for *visited*. Its URL stays queued and keeps its tries."""
        self.listen()
        claim, error, exchange = visited.claim, visited.error, visited.exchange
        host = self._schedule.host(claim.host)
        if exchange is not None and self.lost and exchange.truncated in CUT:
            exchange.response.close()
            return True
        if error is None:
            self._network.answered(host.memory.failures, claim.id)
            await self._end_backoff(host)
            return False
        if error.failure is Failure.PRIVATE:  # we never went there, so it says nothing about the way
            return False
        if error.failure not in LINE:  # a failed handshake is an answer
            self._sign(self._clock.now())
            await self._end_backoff(host)
            return False
        stranded = self._fetcher.has_no_route(claim.url)
        if stranded:
            self._network.unreachable(host.memory.failures)
        answered = await self._frontier.has_answered(claim.host)
        self.listen()
        self._count(host, error, began, known=answered or stranded)
        if self.lost:
            return True
        span = began, self._clock.now()
        down = self._network.down(host.memory.failures) if answered else not (stranded or is_robots(claim))
        if down and await self._backs_off(host, visited, span, known=answered):
            return True
        return claim.tries >= self._limits.retries and self._is_ours(host, claim, span, known=answered or stranded)

    def _is_ours(self, host: LeasedHost, claim: Claim, span: tuple[float, float], *, known: bool) -> bool:
        """Return True if the last failure of *claim* may be the network's fault; its host rests then."""
        others = any(other.active for other in self._others(host))
        ours = self._network.is_ours(host.memory.failures, claim.id, span, known=known, others=others)
        if ours:
            host.wait(span[1] + REST)
        return ours

    async def _backs_off(self, host: LeasedHost, visited: Visited, span: tuple[float, float], *, known: bool) -> bool:
        """Back off from *host*, which is down or never was up, or give it up; return True to excuse *visited*."""
        claim, now, failures = visited.claim, span[1], host.memory.failures
        before = failures.backoff
        verdict = self._backoff.failed(failures, now, known=known)
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
        lost, now = self.lost, self._clock.now()
        alone = not any(_soon(other, now) for other in self._others(host))
        self._last = f"{error.failure.value}: {error.reason}"
        self._network.failed(host.memory.failures, began, now, known=known, alone=alone)
        if self.lost and not lost:
            log.warning("%s; nothing is given up meanwhile", self.description(now))

    def _others(self, host: LeasedHost) -> Iterator[LeasedHost]:
        return (other for other in self._schedule.hosts() if other is not host)

    def _moment(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self._network.since))


def _soon(host: LeasedHost, now: float) -> bool:
    """Return True if *host* is being asked, or may be before long."""
    if host.active:
        return True
    first = host.next(now) if host.window else host.later
    return max(first, host.not_before) < now + SOON
