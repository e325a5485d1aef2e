"""The limits on a host: its rate, its requests at once, what the throttle learns of both, and its quota. Pure.

In any window of `interval` seconds at most `starts` requests begin, however long each takes. Starts are spread evenly
over the interval, which is kinder to a server than a burst. A late start may be made up for, by half a step at most, so
that a busy machine still reaches the rate.

The adaptive throttle learns from the answers of a host how often to send requests. 429, 503 and timeouts lower the rate
at once, by a share. Answers that take longer than they need lower the number of requests at once; if that is one
already, they lower the rate. Quick good answers raise both again in small steps. Overload reported by several requests
in flight at once counts once.
Invariants: never more than configured, never less than one request at once and one start in `LONGEST_GAP` seconds.

We measure how long an answer needs while few requests are in flight, separately for pages and for files. A new host may
therefore begin with one request at once (`first`). The number doubles until it is too many, or what is configured.

The quota of a host is a number of URLs and of bytes. A host is a row of the frontier: scheme and authority. Once it
reaches its quota we ask it only for a robots.txt that another host needs; its URLs wait until the quota is raised. The
quota counts what --max-urls and --max-bytes count, over all runs: URLs visited at least once without robots.txt, and
every byte of every response.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt

from archiver import humanize
from archiver.config.option_types import Rate

BURST = 1.0  # seconds of a bandwidth that may come early, so that the parts of a page come together
SLACK = 0.02  # of the interval: what scheduler and network may shift between our start and the server's clock …
LEAST_SLACK = 0.01  # … in seconds, however short the interval is


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The limits on a group of hosts."""

    rate: Rate
    concurrency: int
    first: int = 0  # requests at once to begin with, where nothing is known; 0: all that there may be
    group: str = ""  # key of the group; empty: the host is alone
    bandwidth: int = 0  # bytes a second from each of the hosts
    by_address: str = ""  # if not empty: shared with hosts at the same address that have the same word here
    not_before: float = 0.0  # seconds since the epoch: until then the requests of an earlier run may still count

    def key(self, host_id: int) -> str:
        """Return the key of the group of a host with these limits."""
        return self.group or str(host_id)


class RateLimiter:
    """Limits how often requests start."""

    def __init__(self, rate: Rate, *, not_before: float = 0.0, delay: float = 0.0) -> None:
        self._delay = delay
        self._learned = 0.0
        self._not_before = not_before
        self._starts: deque[float] = deque()
        self._beat = float("-inf")  # when the latest start was due, at most half a step before it came
        self.take(rate)

    def take(self, rate: Rate) -> None:
        """Limit to *rate* from the next start on. The latest starts count, so none comes too early."""
        self._window = rate.interval + max(rate.interval * SLACK, LEAST_SLACK) if rate.starts else 0.0
        self._step = self._window / rate.starts if rate.starts else 0.0
        self._find_gap()
        self._starts = deque(self._starts, rate.starts or 1)
        self._beat = max(self._beat, self.last_start - self._step / 2)

    @property
    def starts(self) -> tuple[float, ...]:
        """The latest starts that count."""
        return tuple(self._starts)

    @property
    def last_start(self) -> float:
        """The latest start; minus infinity if there is none."""
        return self._starts[-1] if self._starts else float("-inf")

    @property
    def gap(self) -> float:
        """Seconds from one start to the next; 0 without a limit."""
        return self._gap

    def _find_gap(self) -> None:
        self._gap = max(self._step, self._delay, self._learned)

    def limit_to(self, rate: float) -> None:
        """Permit at most *rate* starts a second from now on, if that is less than before (infinity: no limit).

        The distance to the latest start counts too, so a lowered rate never lets two requests through together.
        """
        self._learned = 1 / rate
        self._find_gap()

    def slow_down(self, delay: float) -> None:
        """Keep at least *delay* seconds between two starts (Crawl-delay), the latest one included."""
        self._delay = max(self._delay, delay)
        self._find_gap()

    def next(self, now: float) -> float:
        """Return when a request may start, not before *now*."""
        if not self.gap:
            return max(now, self._not_before)
        earliest = max(now, self._not_before, self._beat + self._step)
        if self._starts:
            earliest = max(earliest, self._starts[-1] + max(self._delay, self._learned))
            if len(self._starts) == self._starts.maxlen:
                earliest = max(earliest, self._starts[0] + self._window)
        return earliest

    def start(self, now: float) -> float:
        """Start a request and return *now*; or, if none may start, return the time at which to ask again."""
        earliest = self.next(now)
        if earliest <= now:
            self.count(now)
        return earliest

    def count(self, now: float) -> None:
        """Count a request that has started at *now*, even if it came too early."""
        self._starts.append(now)
        self._beat = max(self._beat + self._step, now - self._step / 2)

    def fill(self, at: float) -> None:
        """Count as many starts at *at* as an interval permits, because another crawler may have made them."""
        self._count_theirs([at] * (self._starts.maxlen or 1))

    def inherit(self, other: "RateLimiter") -> None:
        """Count the latest starts of *other* too, because a host of it moves here."""
        self._count_theirs(other.starts)

    def _count_theirs(self, starts: Iterable[float]) -> None:
        """Count *starts* that were made elsewhere, once, however many hosts bring them, and however often."""
        known = Counter(self._starts) | Counter(starts)
        self._starts = deque(sorted(known.elements()), self._starts.maxlen)
        self._beat = max(self._beat, self.last_start - self._step / 2)

    def forgettable(self, now: float) -> bool:
        """Return True if no start is recent enough to count."""
        return not self._starts or self._starts[-1] + max(self._window, self._delay, self._learned) <= now


@dataclass(frozen=True, slots=True)
class GlobalLimits:
    """The limits on all hosts together; 0 is no limit."""

    rate: Rate = Rate(0)
    bandwidth: int = 0  # bytes a second
    shared: bool = False  # with other crawlers …
    reserved: RateLimiter | None = None  # … instead of *rate*


UNLIMITED = GlobalLimits()


NO_LIMIT = float("inf")

LONGEST_GAP = 60.0  # seconds between starts on the slowest host; a host that wants fewer must send Retry-After
BACK = 0.6  # factor for the rate and the requests at once after an overload …
NEAR = 0.9  # … and the factor if we knew that the limit was near
STEEP = 0.05  # growth a second, as a share of the rate at the latest overload, far from that rate …
MEET_AGAIN = 20.0  # … and near it: seconds of growth until that rate is reached again …
REST_SHARE = 10.0  # … or so many times the pause that the host then asks for, so pauses cost at most a tenth
FROM, TO = 0.95, 1.05  # of that rate: the range that is near
LONGEST_STEP = 10.0  # seconds without an answer that count for growth: silence is not success
FREE_RATE = 1000.0  # a second; above it a learned rate is no limit, if none is configured
RECENT = 32  # good answers, at least `FEW`, that show the rate at which a host still answered
FEW = 6
SHORTEST_SPAN = 1.0  # seconds: servers count by the second, and one burst is not a rate

TOO_SLOW = 1.5  # times as long as an answer needs: below 2, so that the mean stays under twice
BLUR = 0.01  # seconds that our own machine may be late; smaller differences say nothing about the server
WINDOW = 12  # answers, or two for each request at once, between two checks of their times
LESS = 0.2  # share of the difference by which the needed time is lowered when answers are faster …
MORE = 0.3  # … and raised when they are slower right after there were fewer: medians are not exact
FIRST_WINDOW = 3  # answers: a rough first estimate, so that a site of twenty pages need not wait
SLOW = "slow answers"
WIDER = 1.0  # more requests at once after each check that finds fast answers


@dataclass(frozen=True, slots=True)
class ThrottleState:
    """The state of a throttle, as the frontier saves it. All zero: it has learned nothing."""

    rate: float = 0.0  # starts a second; 0: as configured
    limit: float = 0.0  # the rate at its latest overload
    width: float = 0.0  # requests at once that it took well; 0: not known
    why: str = ""  # it was slowed down: "503", "timeout", "slow answers"


UNTAUGHT = ThrottleState()


class Throttle:
    """The throttle of one group of hosts; `rate` and `width` are its limits now."""

    def __init__(self, rate: Rate, concurrency: int, state: ThrottleState = UNTAUGHT, *, first: int = 0) -> None:
        self._most = rate.starts / rate.interval if rate.starts else NO_LIMIT
        self._widest = concurrency
        rate_now = state.rate if state.rate < self._most else 0.0
        width_now = state.width if state.width < concurrency else 0.0
        self._state = replace(state, rate=rate_now, width=width_now)
        self._width = float(min(first or concurrency, concurrency))
        self._goal = self._state.width or float(concurrency)  # below it the width doubles
        self._width = min(self._width, self._goal)
        self._eased = float("-inf")  # time of the latest slowdown; requests from before say nothing new
        self._grown = float("-inf")
        self._good: deque[float] = deque(maxlen=RECENT)
        self._taken: dict[bool, list[float]] = {True: [], False: []}  # seconds of pages and of files in this window
        self._needed: dict[bool, float] = {}  # seconds that they need
        self._relieved = False  # the window is the first since there are fewer requests at once
        self._rest = 0.0  # seconds that the latest overload cost

    @property
    def rate(self) -> float:
        """The learned maximum of starts a second; infinity if only the configured rate counts."""
        return self._state.rate or NO_LIMIT

    @property
    def width(self) -> int:
        """Requests at once."""
        return int(self._width)

    @property
    def state(self) -> ThrottleState:
        """The state that the frontier should save."""
        return self._state

    @property
    def description(self) -> str:
        """A description of how and why the host is slowed down, or ""."""
        return slowed(self._state)

    def answered(self, began: float, now: float, waited: float, *, page: bool) -> None:
        """Record a good answer to a request that *began* then; its first byte came after *waited* seconds."""
        self._good.append(now)
        self._grow(now)
        if began < self._eased:
            return
        self._taken[page].append(waited)
        enough = max(WINDOW, 2 * self.width) if self._needed else FIRST_WINDOW
        if sum(map(len, self._taken.values())) >= enough:
            self._look(now)

    def overloaded(self, began: float, now: float, why: str, rest: float = 0.0) -> None:
        """Record that the host could not handle a request that *began* then, and said so or did not answer.

        *rest* is the number of seconds for which it asks to be left alone.
        """
        if began < self._eased:
            return
        self._rest = rest
        self._slow_down(now, why)
        self._narrow(why)

    def restore(self, state: ThrottleState) -> None:
        """Return to *state*, because slowing down was a mistake; the requests at once have to grow again."""
        self._state = state
        self._goal = state.width or float(self._widest)
        self._relieved = True

    def _slow_down(self, now: float, why: str) -> None:
        """Permit fewer starts a second than the host has just failed to handle."""
        state = self._state
        rate = min(state.rate or self._most, self._good_rate(now))
        near = FROM * state.limit <= rate <= TO * state.limit
        lower = max(rate * (NEAR if near else BACK), 1 / LONGEST_GAP)
        if lower < self._most:  # else what is configured is slow enough
            self._keep(replace(state, rate=lower, limit=rate, why=why))
        self._eased = now
        self._good.clear()

    def _good_rate(self, now: float) -> float:
        """Return the rate at which good answers came lately; if they are too few, the rate that was allowed."""
        recent = [at for at in self._good if at > now - LONGEST_STEP]
        if len(recent) >= FEW:  # the best of the spans that end now: what came before may have been a slow beginning
            return max(
                number / max(SHORTEST_SPAN, now - at) for number, at in enumerate(reversed(recent), 1) if number >= FEW
            )
        allowed = self._state.rate or self._most
        return allowed if allowed < NO_LIMIT else float(self.width)

    def _grow(self, now: float) -> None:
        """Raise the rate a little after a good answer, by the time since the one before."""
        state = self._state
        passed = min(now - max(self._grown, now if self._grown < self._eased else 0.0), LONGEST_STEP)
        self._grown = now
        if not state.rate or passed <= 0:
            return
        limit = state.limit if state.rate <= TO * state.limit else 0.0  # beyond, it is not there any more
        flat = (1 - FROM) / max(MEET_AGAIN, REST_SHARE * self._rest)
        step = flat if limit and state.rate >= FROM * limit else STEEP
        rate = state.rate + step * (limit or state.rate) * passed
        free = rate >= min(self._most, FREE_RATE)
        self._keep(replace(state, rate=0.0, limit=0.0) if free else replace(state, rate=rate, limit=limit))

    def _look(self, now: float) -> None:
        """Compare how long the answers took with how long they need, as enough of them have come."""
        slow = self._overdue()
        self._relieved = False
        for seconds in self._taken.values():
            seconds.clear()
        if not slow:
            self._widen()
        elif self.width > 1:
            self._narrow(SLOW)
            self._eased = now
        else:
            self._slow_down(now, SLOW)

    def _overdue(self) -> bool:
        """Return True if the answers of this window were slow, judged by the more frequent kind.

        With one request at once nothing of ours slows it down. If it is slow then, it needs more time than we thought:
        we raise our estimate half way, and after a few looks it counts as quick again.
        """
        page = len(self._taken[True]) >= len(self._taken[False])
        slow = {}
        for kind, seconds in self._taken.items():
            if not seconds or (len(seconds) < FIRST_WINDOW and self.width > 1):
                continue
            took = _median(seconds)
            needed = self._needed.get(kind, took)
            if took < needed or self._relieved:
                needed += (LESS if took < needed else MORE) * (took - needed)
            self._needed[kind] = needed
            slow[kind] = len(seconds) >= FIRST_WINDOW and took > TOO_SLOW * needed and took > needed + BLUR
            if slow[kind] and self.width == 1:
                self._needed[kind] = sqrt(took * max(needed, BLUR / TOO_SLOW))
        return slow.get(page, False)

    def _widen(self) -> None:
        """Permit more requests at once: twice as many up to what went well before, a few more beyond."""
        wider = min(2 * self._width, self._goal) if self._width < self._goal else self._width + WIDER
        self._width = min(wider, float(self._widest))
        if self._state.width:
            self._keep(replace(self._state, width=self._width if self._width < self._widest else 0.0))

    def _narrow(self, why: str) -> None:
        self._width = self._goal = max(1.0, self._width * BACK)
        self._relieved = True
        for seconds in self._taken.values():
            seconds.clear()
        width = self._width if self._width < self._widest else 0.0
        self._keep(replace(self._state, width=width, why=why if width else self._state.why))

    def _keep(self, state: ThrottleState) -> None:
        """Keep *state*; without a limit it needs no reason."""
        self._state = state if state.rate or state.width else replace(state, why="")


def _median(seconds: list[float]) -> float:
    """Return the median; `statistics` would cost 8 ms of each start for its imports."""
    ordered, half = sorted(seconds), len(seconds) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def slowed(state: ThrottleState) -> str:
    """Describe how a host is slowed down and why, for a person; empty if it is not."""
    if state.rate:
        return f"slowed down to {humanize.rate(state.rate)}: {state.why}"
    return f"slowed down to {int(state.width)} at once: {state.why}" if state.width else ""
