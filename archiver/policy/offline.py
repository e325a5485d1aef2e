"""A lost network: when it counts as lost, when it may be tried again, and whose fault a failure is. Pure: no clock.

A *sign* is anything that came over the network, from any host: a connection that was made, a byte. A failure counts
only if there was no sign since its visit began. A host that failed already when the latest sign came is down by itself,
also in a later run: from the failures of a single host nobody could tell it from a lost network, but then it was told.
Invariants: after a sign the network is never lost; nothing that fails while it is lost is the site's fault; the doubt
about one URL's failure ends with the first sign after it.
"""

from math import nextafter

from archiver.errors import Failure

LINE = frozenset((Failure.DNS, Failure.CONNECT, Failure.DISCONNECT, Failure.TIMEOUT))  # may be the network's doing

ENOUGH = 3  # failures without a sign, because one or two are anybody's …
SPAN = 4.0  # … and so many seconds from the first to the last, because a router restarts its table in less
QUIET = 5.0  # seconds without a sign, after which one that came early in a long visit proves nothing for its end
FIRST_PAUSE = 2.0  # seconds until the first probe; each further one waits twice as long …
LONGEST_PAUSE = 30.0  # … up to this: soon enough for us, and one request every half minute is no burden for a site
LONGEST_DOUBT = 60.0  # seconds; an outage has shown itself by then
REMEMBERED = 10_000  # hosts that fail; one that is forgotten is doubted once more

NEVER = float("inf")


class NetworkState:
    """What is known of our own network."""

    def __init__(self, *, span: float = SPAN, first_pause: float = FIRST_PAUSE) -> None:
        self._span = span
        self._first_pause = first_pause
        self._sign = -NEVER  # the latest
        self._first = NEVER  # of the failures since then
        self._failures = 0
        self._hosts: set[int] = set()  # that failed since then
        self._hopeful = False  # whether one of them was there until then
        self._failing: dict[int, float] = {}  # host: since when it fails
        self._pause = 0.0  # seconds between probes; 0: the network does not count as lost
        self._next = -NEVER
        self._doubted: dict[int, float] = {}  # URL: when its last try failed, and nobody could say why

    @property
    def lost(self) -> bool:
        """Whether the network counts as lost."""
        return self._pause > 0

    @property
    def since(self) -> float:
        """The first failure since the latest sign; infinity where there is none."""
        return self._first

    @property
    def next_start(self) -> float:
        """No request may start before; while the network is lost only one at a time may, and each is a `probe`."""
        return self._next

    def down(self, host: int) -> bool:
        """Whether something has come over the network since *host* fails: so it is not the network that is down."""
        return self._sign > self._failing.get(host, NEVER)

    def recall(self, host: int, since: float) -> None:
        """*host* was down by itself when the run before ended: it had failed since then while others answered."""
        self._failing.setdefault(host, since)
        self._sign = max(self._sign, nextafter(since, NEVER))

    def unreachable(self, host: int) -> None:
        """It is certain that nobody could have reached *host*: that it fails is no sign of its being down."""
        self._failing.pop(host, None)

    def sign(self, at: float) -> None:
        """Something came over the network at *at*."""
        if at > self._sign:
            if self.lost:
                self._failing.clear()  # nobody could have answered
            self._sign = at
            self._first, self._failures, self._hopeful = NEVER, 0, False
            self._hosts.clear()
            self._pause, self._next = 0.0, -NEVER

    def answered(self, host: int, claim: int) -> None:
        """*host* has answered for URL *claim*."""
        self._failing.pop(host, None)
        self._doubted.pop(claim, None)

    def failed(self, host: int, began: float, now: float, *, known: bool, alone: bool) -> None:
        """A visit of *host* that *began* then failed on the line.

        *known*: it has answered before, or it is certain that we could not have reached it. *alone*: no other host
        could be asked soon, so nobody else can bear witness.
        """
        since = self._failing.setdefault(host, now)
        if len(self._failing) > REMEMBERED:
            del self._failing[next(iter(self._failing))]
        if self._sign >= max(began, now - QUIET):
            return
        self._first = min(self._first, now)
        self._failures += 1
        self._hosts.add(host)
        self._hopeful = self._hopeful or (known and since > self._sign)
        if self.lost:
            self._next = max(self._next, now + self._first_pause)
        elif (
            self._failures >= ENOUGH
            and now - self._first >= self._span
            and (alone or len(self._hosts) > 1)
            and self._hopeful
        ):
            self._pause, self._next = self._first_pause, now + self._first_pause
            self._doubted.clear()

    def probe(self, now: float) -> None:
        """A request starts while the network is lost."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next = now + self._pause

    def is_ours(self, host: int, claim: int, span: tuple[float, float], *, known: bool, others: bool) -> bool:
        """Whether the last failure of URL *claim*, of a visit over *span*, may be our network's: not the last word.

        *known* as above; *others*: requests to other hosts are under way, which will soon tell.
        """
        if self.lost:
            return True
        began, now = span
        doubted = self._doubted.setdefault(claim, now)
        proven = self._sign >= began or self._sign > min(doubted, self._failing.get(host, now))
        telling = others and self._sign < now - QUIET and now - doubted < LONGEST_DOUBT
        if proven or not (known or telling):
            del self._doubted[claim]
            return False
        return True
