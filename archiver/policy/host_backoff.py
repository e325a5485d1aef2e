"""Backoff from hosts that do not answer while others do: when to wait, when to probe, when to give up. Pure.

A host that fails `ENOUGH` times in a row is backed off from: its URLs keep their tries, and one probe at a time, after
growing pauses, checks if it is back. A host that has answered before may come back, so we wait for it with patience.
One that never answered is mostly a dead name, and ten thousand of its URLs prove no more than one. We give it up when
one URL would have used up its tries.
Invariants: any answer ends the backoff. A host is given up only after it failed for the whole patience and in a last
probe.
"""

from dataclasses import dataclass, replace
from enum import Enum

ENOUGH = 5  # failures in a row: more than the tries of one URL, which may fail alone
FIRST_PAUSE = 5.0  # seconds until the first probe; each later one waits twice as long …
LONGEST_PAUSE = 300.0  # … up to this: we notice within five minutes that a host is back

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class HostBackoff:
    """The saved backoff of a host. All zero: it does not fail."""

    since: float = 0.0  # seconds since the epoch
    pause: float = 0.0  # before the next probe; 0: no backoff
    until: float = 0.0  # seconds since the epoch: no request before


AWAKE = HostBackoff()


@dataclass(slots=True, eq=False)
class HostFailures:
    """The failures of one host since its latest answer."""

    in_a_row: int = 0  # while our own network was up
    backoff: HostBackoff = AWAKE
    unreachable_since: float = NEVER  # the first failure on the line, which may be our network's …
    outage: int = 0  # … and how many outages we had had by then; see `archiver.policy.offline`

    @property
    def backing_off(self) -> bool:
        """True if the host gets only probes."""
        return self.backoff.pause > 0


class BackoffVerdict(Enum):
    """The consequences of a failure."""

    AWAKE = "the URL loses a try, and that is all"
    ASLEEP = "no request before `until`, and then a single one"
    GONE = "the host is given up"


class BackoffPolicy:
    """The rules for hosts that fail."""

    def __init__(self, patience: float, *, stranger: float = 0.0, first_pause: float = FIRST_PAUSE) -> None:
        """*patience* in seconds, 0: no limit; *stranger*: the same for hosts that never answered, if that is less."""
        self._patience = patience or NEVER
        self._stranger = min(stranger, self._patience)
        self._first_pause = first_pause

    def recall(self, host: HostFailures, saved: HostBackoff) -> None:
        """Continue from what an earlier run saved, unless this run knows better."""
        if saved.since and not host.in_a_row:
            host.in_a_row, host.backoff = ENOUGH if saved.pause else 1, saved

    def answered(self, host: HostFailures) -> bool:
        """Record an answer; return True if it has ended a backoff."""
        ended = host.backing_off
        host.in_a_row, host.backoff = 0, AWAKE
        return ended

    def failed(self, host: HostFailures, now: float, *, known: bool = True) -> BackoffVerdict:
        """Record a failure that is not our network's; *known*: the host has answered before."""
        if host.backing_off and now < host.backoff.until:  # this visit was in flight when the backoff began
            return BackoffVerdict.ASLEEP
        if not host.in_a_row:
            host.backoff = HostBackoff(since=now)
        host.in_a_row += 1
        if host.in_a_row < ENOUGH:
            return BackoffVerdict.AWAKE
        before = host.backoff
        left = before.since + (self._patience if known else self._stranger) - now
        pause = min(2 * before.pause, LONGEST_PAUSE) if before.pause else self._first_pause
        until = now + max(0.0, min(pause, left))  # the last probe comes when the patience ends
        host.backoff = replace(before, pause=pause, until=until)
        return BackoffVerdict.ASLEEP if left > 0 else BackoffVerdict.GONE
