"""Counts a running crawl in memory, and describes it to the outside as one frozen snapshot.

The counts follow from what is committed. The snapshot feeds the progress line, and nothing else reads the counters.
`recorded` writes the end of a run. All else is pure: the time comes in as an argument. Names come from the network, so
they must pass through `printable` before they reach a terminal.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from archiver.clock import Clock
from archiver.collection.live import HostLine
from archiver.errors import ArchiveError
from archiver.frontier.port import Counts, Frontier, Settled
from archiver.humanize import duration
from archiver.model import Event, ExitCode, Settlement
from archiver.policy.leased_host import LeasedHost

Phase = Literal["recovering", "crawling", "recording", "draining", "writing", "showing", "waiting", "offline", "paused"]
Why = Literal[
    "rate",
    "retry-after",
    "bandwidth",
    "our backlog",
    "robots.txt",
    "retry",
    "asleep, next probe",
    "limit reached",
    "refuses us",
    "login",
    "blocked",  # by a person
    "busy",
    "",
]

BY_RANK: tuple[Phase, ...] = (
    "crawling",
    "writing",
    "draining",
    "showing",  # pages in a browser
    "offline",
    "waiting",
    "paused",
)  # of a crawl with several crawlers
WINDOW = 10.0  # seconds: long enough to be steady at 1 URL/s, short enough to show a host that stalls
BUSIEST = 8  # hosts in a snapshot: what fits on a terminal of 24 lines


@dataclass(frozen=True, slots=True)
class UrlCounts:
    """URLs of the whole crawl by state, earlier runs included."""

    done: int = 0
    waiting: int = 0
    failed: int = 0
    excluded: int = 0
    held: int = 0
    active: int = 0  # requests in flight


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A crawl at one moment."""

    state: Phase
    elapsed: float  # seconds since this run began
    done: int
    waiting: int
    failed: int
    excluded: int
    active: int  # requests in flight
    received: int  # bytes, in this run
    rate: float  # visits a second, over the last `WINDOW` seconds
    hosts: tuple[HostLine, ...] = ()  # busiest first
    waiting_for: str = ""  # what the crawl waits for when nothing runs
    visits: int = 0  # in this run
    unwritten: int = 0  # answers that are not committed yet
    held: int = 0  # URLs, as suspected traps


class Counters:
    """The visits and bytes of one run, in memory that does not grow with them."""

    def __init__(self, now: float) -> None:
        self._started = now
        self._visits = 0
        self._received = 0
        self._seconds: deque[tuple[int, int]] = deque()  # (second of the clock, visits in it), oldest first

    def visited(self, now: float, received: int) -> None:
        """Count a visit that has ended, with *received* bytes."""
        self._visits += 1
        self._received += received
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = (second, self._seconds[-1][1] + 1)
        else:
            self._seconds.append((second, 1))
        self._forget(now)

    def rate(self, now: float) -> float:
        """Return the visits per second over the last `WINDOW` seconds, or since the start if that is later."""
        self._forget(now)
        span = min(WINDOW, max(1.0, now - self._started))
        return sum(visits for _, visits in self._seconds) / span

    def snapshot(self, now: float, state: Phase, tally: UrlCounts, hosts: Iterable[HostLine] = ()) -> Snapshot:
        """Return the crawl at *now*, with the busiest of *hosts*."""
        lines = tuple(hosts)
        busiest = sorted(lines, key=rank)[:BUSIEST]
        return Snapshot(
            state=state,
            elapsed=max(0.0, now - self._started),
            done=tally.done,
            waiting=tally.waiting,
            failed=tally.failed,
            excluded=tally.excluded,
            active=tally.active,
            received=self._received,
            rate=self.rate(now),
            hosts=tuple(busiest),
            waiting_for="" if tally.active else waited_for(lines),
            visits=self._visits,
            held=tally.held,
        )

    def _forget(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] <= now - WINDOW:
            self._seconds.popleft()


def rank(line: HostLine) -> tuple[int, int, str]:
    """Return a key that sorts the busiest hosts first."""
    return -line.active, -line.waiting, line.key


def waited_for(hosts: Iterable[HostLine]) -> str:
    """Describe what an idle crawl waits for: the host that is due first."""
    ours = (line for line in hosts if line.waiting and line.why not in {"limit reached", "refuses us", "blocked"})
    first = min(ours, key=lambda line: line.wait, default=None)
    if first is None:
        return ""
    reason = f"{first.why.removeprefix('asleep, ')} of {first.key}" if first.why else first.key
    return f"{reason}, {duration(first.wait)}" if first.wait > 0 else reason


@dataclass(frozen=True, slots=True)
class CrawlEnding:
    """The end of a run: an exit code for the shell and a reason for people."""

    code: ExitCode
    reason: str


def concluded(stop: CrawlEnding | None, counts: Counts, views_left: int = 0) -> CrawlEnding:
    """Return how a run ended, by its reason to *stop* (None: nothing was left) and its final *counts*.

    *views_left*: pages that a browser was to show.
    """
    left = counts.waiting or views_left
    if stop is not None and stop.code is not ExitCode.DONE and (stop.code is ExitCode.STOPPED or left):
        return stop
    reason = stop.reason if stop is not None and stop.code is ExitCode.DONE else ""
    if not counts.good_seeds:
        return CrawlEnding(ExitCode.NO_SEED, reason or "no seed gave a usable answer")
    return CrawlEnding(ExitCode.DONE, reason or "done")


async def recorded(frontier: Frontier, clock: Clock, work: Callable[[], Awaitable[CrawlEnding | None]]) -> CrawlEnding:
    """Record the end of a run in *frontier*, when *work* has crawled and returned what stopped it; return the end."""
    try:
        stop = await work()
    except Exception as error:
        with suppress(ArchiveError):  # the database may be what failed; then the run counts as cut off
            code = ExitCode.STORAGE if isinstance(error, ArchiveError) else ExitCode.BUG
            await frontier.end_run(code, str(error), clock.now())
        raise
    ending = concluded(stop, await frontier.counts(), await frontier.views_left())
    if await frontier.end_run(ending.code, ending.reason, clock.now()) and ending.code is ExitCode.STOPPED:
        return replace(ending, reason=f"{ending.reason}; the crawl goes on, on other machines")
    return ending


def added_up(
    running: Sequence[Snapshot], ended: Sequence[Snapshot], counts: Counts, elapsed: float, state: Phase | None
) -> Snapshot:
    """Return a crawl of several crawlers: those *running*, and those that have *ended*, in which nothing runs.

    *counts*: of the frontier. *state*: unless what the crawlers do decides.
    """
    states = {each.state for each in running}
    busiest: Phase = next((one for one in BY_RANK if one in states), "waiting")
    hosts = sorted(chain.from_iterable(each.hosts for each in running), key=rank)[:BUSIEST]
    waits = [each.waiting_for for each in running if each.waiting_for]
    every = [*running, *ended]
    return Snapshot(
        state=state or busiest,
        elapsed=elapsed,
        done=counts.archived,
        waiting=counts.waiting,
        failed=counts.failed,
        excluded=counts.excluded,
        active=sum(each.active for each in running),
        received=sum(each.received for each in every),
        rate=sum(each.rate for each in running),
        hosts=tuple(hosts),
        waiting_for=waits[0] if waits and len(waits) == len(running) else "",
        visits=sum(each.visits for each in every),
        unwritten=sum(each.unwritten for each in running),
        held=counts.held,
    )


class CrawlCounts:
    """Counts on from what the frontier says at the beginning."""

    def __init__(self, now: float) -> None:
        self._counters = Counters(now)
        self._counts = Counts(0, 0, 0, 0, 0, 0, 0)

    @property
    def received(self) -> int:
        """Bytes of all responses, earlier runs included."""
        return self._counts.received

    def begin(self, counts: Counts) -> None:
        """Start from the counts of the frontier."""
        self._counts = counts

    def recounted(self, counts: Counts) -> None:
        """Take the counts of the frontier after others have written; our own bytes and visits are more recent."""
        now = self._counts
        self._counts = replace(counts, received=now.received, visited=now.visited)

    def added(self, number: int) -> None:
        """Count URLs that were queued."""
        self._counts = replace(self._counts, waiting=self._counts.waiting + number)

    def committed(self, now: float, settlements: Sequence[Settlement], settled: Settled) -> None:
        """Count a committed batch."""
        sizes = [each.capture.received if each.capture is not None else 0 for each in settlements]
        for size, each in zip(sizes, settlements, strict=True):
            if each.event not in {Event.HOLD, Event.DELAY}:
                self._counters.visited(now, size)
        events = [each.event for each in settlements if each.claim.priority >= 0]
        archived, failed, excluded, held = map(events.count, (Event.CAPTURE, Event.GIVE_UP, Event.FORBID, Event.HOLD))
        left = sum(each.event not in {Event.RETRY, Event.DELAY, Event.VARIANT} for each in settlements)
        counts = self._counts
        self._counts = replace(
            counts,
            waiting=counts.waiting + settled.added - left,
            archived=counts.archived + archived - settled.again,
            failed=counts.failed + failed,
            excluded=counts.excluded + excluded,
            held=counts.held + held,
            received=counts.received + sum(sizes),
        )

    def snapshot(self, now: float, state: Phase, active: int, hosts: Iterable[LeasedHost]) -> Snapshot:
        """Return the crawl at *now*, with *active* visits under way."""
        counts = self._counts
        tally = UrlCounts(counts.archived, counts.waiting, counts.failed, counts.excluded, counts.held, active)
        return self._counters.snapshot(now, state, tally, host_lines(hosts, now))


def host_lines(hosts: Iterable[LeasedHost], now: float) -> list[HostLine]:
    """Return a line for each of *hosts* that has something to do."""
    return [_line(host, now) for host in hosts if _has_more(host)]


def _has_more(host: LeasedHost) -> bool:
    """Return True if a host is worth a line; its own count is that of the latest refill and may be old."""
    late = (
        host.later < float("inf") or host.quota_reached or host.memory.blocked or host.memory.held or host.needs_refill
    )
    return bool(host.window or host.active or host.outstanding or (late and host.waiting > 0))


def _line(host: LeasedHost, now: float) -> HostLine:
    why: Why = ""
    wait = 0.0
    if host.active:
        why = "busy"
    elif host.memory.blocked:
        why = "blocked"
    elif host.memory.awaits_login or (host.memory.paused and host.memory.refusals is None):
        why = "login"
    elif host.memory.paused:
        why = "refuses us"
    elif host.quota_reached:
        why = "limit reached"
    elif host.earliest > now:
        ours: Why = "our backlog" if host.rests_for_us else "bandwidth" if host.pays else "retry-after"
        why = "asleep, next probe" if host.backing_off else ours
        wait = host.earliest - now
    elif not host.window and host.later < float("inf"):
        why, wait = "retry", max(0.0, host.later - now)
    elif (due := host.next(now)) > now:
        why, wait = "rate", due - now
    return HostLine(host.key, max(0, host.waiting), host.active, host.done, wait, why, host.group.throttle.description)
