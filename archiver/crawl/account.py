"""The account of a running crawl, kept in memory from what is committed, for those who look at it meanwhile."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from archiver.frontier.port import Counts, Settled
from archiver.host_queue import Queue
from archiver.model import Event, ExitCode, Settlement
from archiver.stats import Counters, HostLine, Phase, Snapshot, Tally, Why


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of a crawl ended, for the shell and for a person."""

    code: ExitCode
    reason: str


def concluded(stop: Ending | None, counts: Counts) -> Ending:
    """How a run ended that was told to *stop*, or had nothing left, with these *counts*."""
    if stop is not None and stop.code is not ExitCode.DONE and (stop.code is ExitCode.STOPPED or counts.waiting):
        return stop
    reason = stop.reason if stop is not None and stop.code is ExitCode.DONE else ""
    if not counts.good_seeds:
        return Ending(ExitCode.NO_SEED, reason or "no seed gave a usable answer")
    return Ending(ExitCode.DONE, reason or "done")


class Account:
    """Counts from what the frontier says at the beginning on."""

    def __init__(self, now: float) -> None:
        self._counters = Counters(now)
        self._counts = Counts(0, 0, 0, 0, 0, 0, 0)

    @property
    def received(self) -> int:
        """Bytes of all responses, earlier runs included."""
        return self._counts.received

    def begin(self, counts: Counts) -> None:
        """What the frontier itself says."""
        self._counts = counts

    def recounted(self, counts: Counts) -> None:
        """What the frontier says now that others have written; of bytes and visits this account knows better."""
        now = self._counts
        self._counts = replace(counts, received=now.received, visited=now.visited)

    def committed(self, now: float, settlements: Sequence[Settlement], settled: Settled) -> None:
        """A batch is durable."""
        sizes = [each.capture.received if each.capture is not None else 0 for each in settlements]
        for size, each in zip(sizes, settlements, strict=True):
            if each.event not in {Event.HOLD, Event.DELAY}:
                self._counters.visited(now, size)
        events = [each.event for each in settlements if each.claim.priority >= 0]
        archived, failed, excluded, held = map(events.count, (Event.CAPTURE, Event.GIVE_UP, Event.FORBID, Event.HOLD))
        left = sum(each.event not in {Event.RETRY, Event.DELAY} for each in settlements)
        counts = self._counts
        self._counts = replace(
            counts,
            waiting=counts.waiting + settled.added - left,
            archived=counts.archived + archived,
            failed=counts.failed + failed,
            excluded=counts.excluded + excluded,
            held=counts.held + held,
            received=counts.received + sum(sizes),
        )

    def snapshot(self, now: float, state: Phase, active: int, queues: Iterable[Queue]) -> Snapshot:
        """All of it at *now*; *active* visits run."""
        counts = self._counts
        tally = Tally(counts.archived, counts.waiting, counts.failed, counts.excluded, active)
        lines = [_line(queue, now) for queue in queues if _has_more(queue)]
        return self._counters.snapshot(now, state, tally, lines)


def _has_more(queue: Queue) -> bool:
    """Whether there is anything to tell of a host; its own count is that of the latest refill, and may be old."""
    late = queue.later < float("inf") or queue.held or queue.paused or queue.stale
    return bool(queue.window or queue.active or queue.outstanding or (late and queue.waiting > 0))


def _line(queue: Queue, now: float) -> HostLine:
    why: Why = ""
    wait = 0.0
    if queue.active:
        why = "busy"
    elif queue.paused:
        why = "refuses us"
    elif queue.held:
        why = "limit reached"
    elif queue.parked > now:
        ours = queue.parked <= queue.rested
        why = "asleep, next probe" if queue.asleep else "our own work" if ours else "retry-after"
        wait = queue.parked - now
    elif not queue.window and queue.later < float("inf"):
        why, wait = "retry", max(0.0, queue.later - now)
    elif (due := queue.next(now)) > now:
        why, wait = "rate", due - now
    return HostLine(queue.key, max(0, queue.waiting), queue.active, queue.done, wait, why, queue.circle.temper.words)
