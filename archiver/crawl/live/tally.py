"""Counts what a crawler commits, for the counters of live.json. The crawl decides nothing by it."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from archiver.collection.layout import Layout
from archiver.collection.live import BATCH_BOUNDS, Tally, last_live
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Event, FileState, Settlement

RESULTS = {
    Event.CAPTURE: "archived",
    Event.VARIANT: "variant",
    Event.RETRY: "retried",
    Event.GIVE_UP: "failed",
    Event.FORBID: "excluded",
}  # of visits
NO_VISITS = frozenset((Event.HOLD, Event.DELAY))  # by a trap rule, when the turn of a URL came
CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "other")  # of responses


class CommitTally:
    """The counters of one crawler in one run."""

    def __init__(self) -> None:
        self.last_commit = 0.0  # by the clock of the crawl; 0: none yet
        self._visits = self._received = self._written = self._revisits = self._traps = self._batches = 0
        self._seconds = 0.0
        self._batch_counts = [0] * (len(BATCH_BOUNDS) + 1)
        self._responses: Counter[str] = Counter()
        self._results: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}  # of files that are being written

    def committed(
        self, began: float, now: float, settlements: Sequence[Settlement], files: Sequence[FileState]
    ) -> None:
        """Count a batch that was chosen when it *began*, with its own *settlements* and the *files* it has written."""
        self.last_commit = now
        self._batches += 1
        self._seconds += now - began
        self._batch_counts[bisect_left(BATCH_BOUNDS, now - began)] += 1
        for file in files:
            self._written += max(0, file.size - self._sizes.get(file.name, 0))
            self._sizes[file.name] = file.size
            if file.closed:
                del self._sizes[file.name]
        for each in settlements:
            if each.event in NO_VISITS:
                self._traps += 1
                continue
            self._visits += 1
            self._results[RESULTS.get(each.event, each.event.value)] += 1
            if (capture := each.capture) is not None:
                self._received += capture.received
                self._revisits += capture.revisit is not None
                place = capture.status // 100 - 1
                self._responses[CLASSES[place if 0 <= place < 5 else -1]] += 1

    def frozen(self) -> Tally:
        """Return the counters as they are now."""
        return Tally(
            self._visits,
            self._received,
            self._written,
            self._revisits,
            self._traps,
            self._batches,
            self._seconds,
            tuple(self._batch_counts),
            dict(self._responses),
            dict(self._results),
        )


async def earlier_tally(layout: Layout, frontier: SqliteFrontier, *, alone: bool) -> Tally:
    """Return the counters of earlier runs on this machine: those that they left, and no less than *frontier* knows.

    *alone*: no other machine shares the frontier, so all that it knows was done here.
    """
    last = last_live(layout)
    left = Tally() if last is None else last.total
    counts, files = await frontier.counts(), await frontier.files()
    known = Tally(written_bytes=sum(file.committed for file in files))
    if alone:
        settled = {"archived": counts.archived, "failed": counts.failed, "excluded": counts.excluded}
        known = replace(known, visits=counts.visited, received=counts.received, results=settled)
    return left.at_least(known)
