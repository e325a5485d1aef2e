"""Detects that our own network is down, decides when to probe it, and whose fault a failure is. Pure.

A sign is anything that came over the network from any host: a connection that was made, a byte. A failure counts only
if there was no sign since its visit began. If a host failed before the latest sign came, it is down by itself; this
holds in a later run too, for the failures of a single host alone do not show whether it is the host or our network.
Invariants: after a sign the network is not lost. Nothing that fails while it is lost is the site's fault. The doubt
about the failure of one URL ends with the first sign after it.
"""

from math import nextafter

from archiver.errors import Failure
from archiver.policy.host_backoff import HostFailures

LINE = frozenset((Failure.DNS, Failure.CONNECT, Failure.DISCONNECT, Failure.TIMEOUT))  # may be our network's fault

ENOUGH = 3  # failures without a sign, because one or two mean nothing …
SPAN = 4.0  # … and so many seconds from the first to the last, because a router restarts its table in less
QUIET = 5.0  # seconds; a sign from early in a long visit proves nothing about its end
FIRST_PAUSE = 2.0  # seconds until the first probe; each later one waits twice as long …
LONGEST_PAUSE = 30.0  # … up to this: one request every half minute is no burden for a site
LONGEST_DOUBT = 60.0  # seconds; an outage is evident by then

NEVER = float("inf")


class NetworkState:
    """The state of our own network, as far as we know it."""

    def __init__(self, *, span: float = SPAN, first_pause: float = FIRST_PAUSE) -> None:
        self._span = span
        self._first_pause = first_pause
        self._sign = -NEVER  # time of the latest sign
        self._first = NEVER  # time of the first failure since then
        self._failures = 0
        self._failing: HostFailures | None = None  # the host that failed first since then …
        self._several = False  # … and if it is not the only one
        self._hopeful = False  # one of them was up until then
        self._outages = 0  # failures from before an outage do not count
        self._pause = 0.0  # seconds between probes; 0: the network is not considered lost
        self._next = -NEVER
        self._doubted: dict[int, float] = {}  # URL id: time of its last failure with an unclear cause

    @property
    def lost(self) -> bool:
        """True if the network counts as lost."""
        return self._pause > 0

    @property
    def since(self) -> float:
        """The first failure since the latest sign; infinity if there is none."""
        return self._first

    @property
    def next_start(self) -> float:
        """The time when the next request may start. While the network is lost, requests are single probes."""
        return self._next

    def down(self, host: HostFailures) -> bool:
        """Return True if something came over the network since *host* fails, so that the network is not to blame."""
        return self._sign > self._since(host)

    def recall(self, host: HostFailures, since: float) -> None:
        """Restore that *host* was down alone when the last run ended: it had failed since then, others answered."""
        self._fails_since(host, since)
        self._sign = max(self._sign, nextafter(since, NEVER))

    def unreachable(self, host: HostFailures) -> None:
        """Forget the failures of *host*: no one could have reached it, so they do not show that it is down."""
        host.unreachable_since = NEVER

    def sign(self, at: float) -> None:
        """Record that something came over the network at *at*."""
        if at > self._sign:
            if self.lost:
                self._outages += 1  # no host could have answered
            self._sign = at
            self._first, self._failures, self._hopeful = NEVER, 0, False
            self._failing, self._several = None, False
            self._pause, self._next = 0.0, -NEVER

    def answered(self, host: HostFailures, claim: int) -> None:
        """Record that *host* has answered for the URL with id *claim*."""
        host.unreachable_since = NEVER
        self._doubted.pop(claim, None)

    def _since(self, host: HostFailures) -> float:
        return host.unreachable_since if host.outage == self._outages else NEVER

    def _fails_since(self, host: HostFailures, now: float) -> float:
        """Return when *host* began to fail: *now* if it did not fail before."""
        if self._since(host) == NEVER:
            host.unreachable_since, host.outage = now, self._outages
        return host.unreachable_since

    def failed(self, host: HostFailures, began: float, now: float, *, known: bool, alone: bool) -> None:
        """Record that a visit of *host* that *began* then failed on the line.

        *known*: it has answered before, or we certainly could not have reached it. *alone*: no other host can be asked
        soon, so this one is the only witness.
        """
        since = self._fails_since(host, now)
        if self._sign >= max(began, now - QUIET):
            return
        self._first = min(self._first, now)
        self._failures += 1
        self._several = self._several or self._failing not in (None, host)
        self._failing = self._failing or host
        self._hopeful = self._hopeful or (known and since > self._sign)
        if self.lost:
            self._next = max(self._next, now + self._first_pause)
        elif (
            self._failures >= ENOUGH and now - self._first >= self._span and (alone or self._several) and self._hopeful
        ):
            self._pause, self._next = self._first_pause, now + self._first_pause
            self._doubted.clear()

    def probe(self, now: float) -> None:
        """Record that a request starts while the network is lost."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next = now + self._pause

    def is_ours(self, host: HostFailures, claim: int, span: tuple[float, float], *, known: bool, others: bool) -> bool:
        """Return True if the last failure of URL *claim*, of a visit over *span*, may be our network's fault.

        *known* as above; *others*: requests to other hosts are under way and will soon show it.
        """
        if self.lost:
            return True
        began, now = span
        doubted = self._doubted.setdefault(claim, now)
        proven = self._sign >= began or self._sign > min(doubted, self._since(host))
        telling = others and self._sign < now - QUIET and now - doubted < LONGEST_DOUBT
        if proven or not (known or telling):
            del self._doubted[claim]
            return False
        return True
