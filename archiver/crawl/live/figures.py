"""Describes a running crawl as one frozen value for live.json: of one crawler, or of several together."""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Protocol

from archiver.clock import Clock
from archiver.collection.live import MOST_HOSTS, HostLine, HostStates, Live, Tally
from archiver.crawl.commit import Committer
from archiver.crawl.stats import Snapshot, host_lines, rank, waited_for
from archiver.fetch.spool import SpoolFolder
from archiver.policy.retry import NetworkState
from archiver.policy.schedule import Schedule

LOOK_SHARE = 500  # the hosts are looked at for at most a 500th of the time
HELD = frozenset(("login", "refuses us", "limit reached", "blocked"))  # reasons for which nothing starts in this run
ASLEEP = "asleep, next probe"
STATM = Path("/proc/self/statm")  # Linux: sizes of this process in pages; the second is that in memory


class Shown(Protocol):
    """A crawl that can be described."""

    def snapshot(self, *, hosts: bool = True) -> Snapshot:
        """Return it as it is now; with *hosts* also the busiest hosts, which takes a look at all of them."""


class CommitLag:
    """Measures for how long answers have waited without a commit, as far as someone looks."""

    def __init__(self) -> None:
        self._since = 0.0  # when answers began to wait; 0: none waits

    def seconds(self, now: float, unwritten: int, last_commit: float) -> float:
        """Return it, if *unwritten* answers wait *now*."""
        self._since = (self._since or now) if unwritten else 0.0
        return max(0.0, now - max(self._since, last_commit)) if unwritten else 0.0


class CrawlFigures:
    """Describes one crawler."""

    def __init__(
        self,
        crawl: Shown,
        schedule: Schedule,
        committer: Committer,
        network: NetworkState,
        spool: SpoolFolder,
        clock: Clock,
    ) -> None:
        self._crawl = crawl
        self._schedule = schedule
        self._committer = committer
        self._network = network
        self._spool = spool
        self._clock = clock
        self._look_at = 0.0
        self._hosts: tuple[HostLine, ...] = ()
        self._states = HostStates()
        self._waits: dict[str, float] = {}
        self._waiting_for = ""
        self._lag = CommitLag()

    def live(self, loop_lag: float) -> Live:
        """Return the crawl as it is now; *loop_lag*: longest delay of its event loop in the last second."""
        now = self._clock.now()
        if now >= self._look_at:
            self._look(now)
        shown, tally = self._crawl.snapshot(hosts=False), self._committer.tally
        return replace(
            of_snapshot(shown),
            waiting_for=shown.waiting_for or (self._waiting_for if shown.state == "waiting" else ""),
            hosts=self._hosts,
            host_states=self._states,
            waits=self._waits,
            spool_bytes=self._spool.held,
            loop_lag=loop_lag,
            rss=memory_used(),
            commit_lag=self._lag.seconds(now, shown.unwritten, tally.last_commit),
            last_commit=tally.last_commit,
            network_lost=self._network.lost,
            total=tally.frozen(),
        )

    def _look(self, now: float) -> None:
        """Look at all leased hosts, of which there may be thousands."""
        began = time.perf_counter()
        lines = host_lines(self._schedule.hosts(), now)
        self._hosts = tuple(sorted(lines, key=rank)[:MOST_HOSTS])
        self._states, self._waits = host_states(lines), longest_waits(lines)
        self._waiting_for = waited_for(lines)
        self._look_at = now + LOOK_SHARE * (time.perf_counter() - began)


def of_snapshot(shown: Snapshot) -> Live:
    """Return what a snapshot says; the rest is empty."""
    return Live(
        pid=os.getpid(),
        written=time.time(),
        state=shown.state,
        elapsed=shown.elapsed,
        done=shown.done,
        waiting=shown.waiting,
        failed=shown.failed,
        excluded=shown.excluded,
        held=shown.held,
        active=shown.active,
        received=shown.received,
        rate=shown.rate,
        visits=shown.visits,
        unwritten=shown.unwritten,
        waiting_for=shown.waiting_for,
    )


def together(whole: Snapshot, running: Sequence[Live], ended: Iterable[Live], loop_lag: float) -> Live:
    """Return a crawl of several crawlers: *whole*, those that are *running*, and the last words of those that *ended*.

    *loop_lag* is that of their supervisor.
    """
    states = [each.host_states for each in running]
    totals = (each.total for each in (*running, *ended))
    return replace(
        of_snapshot(whole),
        hosts=tuple(sorted(chain.from_iterable(each.hosts for each in running), key=rank)[:MOST_HOSTS]),
        host_states=HostStates(*(sum(getattr(each, name) for each in states) for name in HostStates.__slots__)),
        waits=_longest(chain.from_iterable(each.waits.items() for each in running)),
        spool_bytes=sum(each.spool_bytes for each in running),
        loop_lag=max((loop_lag, *(each.loop_lag for each in running))),
        rss=memory_used() + sum(each.rss for each in running),
        commit_lag=max((each.commit_lag for each in running), default=0.0),
        last_commit=max((each.last_commit for each in (*running, *ended)), default=0.0),
        network_lost=any(each.network_lost for each in running),
        total=sum(totals, Tally()),
    )


def host_states(lines: Iterable[HostLine]) -> HostStates:
    """Count hosts by what may be done with them."""
    due = parked = asleep = slowed = held = 0
    for line in lines:
        slowed += bool(line.slowed)
        held += line.why in HELD
        asleep += line.why == ASLEEP
        if line.why not in HELD and line.why != ASLEEP:
            parked += line.wait > 0
            due += line.wait <= 0
    return HostStates(due, parked, asleep, slowed, held)


def longest_waits(lines: Iterable[HostLine]) -> dict[str, float]:
    """Return the longest wait of a host until its next request, by reason."""
    return _longest((line.why, line.wait) for line in lines if line.why and line.wait > 0)


def _longest(waits: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for why, wait in waits:
        found[why] = max(wait, found.get(why, 0.0))
    return found


def memory_used() -> int:
    """Return the bytes of memory that this process uses now; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        return int(STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
