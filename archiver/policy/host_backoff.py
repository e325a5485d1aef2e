"""Hosts that do not answer while others do: when one sleeps, when it is probed, when it is given up. Pure: no clock.

A host that fails `ENOUGH` times in a row sleeps: its URLs keep their tries, and one request at a time, after pauses
that grow, looks whether it is back. One that has answered before may come back, and is waited for with patience. One
that never answered is mostly a dead name, and ten thousand of its URLs tell no more than one: it is given up when the
tries of one would be used up, as it is for the sake of its robots.txt where that is asked for.
Invariants: any answer wakes a host; a host is given up only after it failed for the whole patience, and a last probe.
"""

from dataclasses import dataclass, replace
from enum import Enum

ENOUGH = 5  # failures in a row: more than the tries of one URL, which may be alone in its misery
FIRST_PAUSE = 5.0  # seconds until the first probe; each further one waits twice as long …
LONGEST_PAUSE = 300.0  # … up to this: a host that is back is noticed within five minutes
REMEMBERED = 10_000  # hosts that fail and do not sleep yet


@dataclass(frozen=True, slots=True)
class HostBackoff:
    """How a host fails. All zero: it does not."""

    since: float = 0.0  # seconds since the epoch
    pause: float = 0.0  # before the next probe; 0: it is awake
    until: float = 0.0  # seconds since the epoch: not one request before


AWAKE = HostBackoff()


class BackoffVerdict(Enum):
    """What becomes of a host after a failure."""

    AWAKE = "its URL has lost a try, and that is all"
    ASLEEP = "not one request before `until`, and then one"
    GONE = "its time is over"


@dataclass(frozen=True, slots=True)
class FailingHost:
    """One host that fails."""

    failures: int
    state: HostBackoff


class BackoffTracker:
    """The hosts that fail."""

    def __init__(self, patience: float, *, stranger: float = 0.0, first_pause: float = FIRST_PAUSE) -> None:
        """*patience* in seconds, 0: no limit; *stranger*: the same for hosts that never answered, if that is less."""
        self._patience = patience or float("inf")
        self._stranger = min(stranger, self._patience)
        self._first_pause = first_pause
        self._hosts: dict[int, FailingHost] = {}

    def recall(self, host: int, state: HostBackoff) -> None:
        """What the run before has left of *host*."""
        if state.since and host not in self._hosts:
            self._hosts[host] = FailingHost(ENOUGH if state.pause else 1, state)

    def state(self, host: int) -> HostBackoff:
        """How *host* fares, to be kept."""
        watch = self._hosts.get(host)
        return watch.state if watch is not None else AWAKE

    def asleep(self, host: int) -> bool:
        """Whether only probes may ask *host*."""
        return self.state(host).pause > 0

    def answered(self, host: int) -> bool:
        """*host* has answered; whether that has woken it."""
        watch = self._hosts.pop(host, None)
        return watch is not None and watch.state.pause > 0

    def failed(self, host: int, now: float, *, known: bool = True) -> BackoffVerdict:
        """*host* has failed although our network is there; *known*: it has answered before."""
        watch = self._hosts.get(host) or FailingHost(0, HostBackoff(since=now))
        if watch.state.pause and now < watch.state.until:  # it was under way when the host fell asleep
            return BackoffVerdict.ASLEEP
        failures, state = watch.failures + 1, watch.state
        verdict = BackoffVerdict.AWAKE
        if failures >= ENOUGH:
            left = state.since + (self._patience if known else self._stranger) - now
            verdict = BackoffVerdict.ASLEEP if left > 0 else BackoffVerdict.GONE
            pause = min(2 * state.pause, LONGEST_PAUSE) if state.pause else self._first_pause
            state = replace(state, pause=pause, until=now + max(0.0, min(pause, left)))  # the last probe when it ends
        self._hosts[host] = FailingHost(failures, state)
        self._forget()
        return verdict

    def _forget(self) -> None:
        """The oldest that does not sleep, where there are too many."""
        if len(self._hosts) > REMEMBERED:
            oldest = next((host for host, watch in self._hosts.items() if not watch.state.pause), None)
            if oldest is not None:
                del self._hosts[oldest]
