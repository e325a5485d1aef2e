"""Compare a crawl with the earlier crawls of its collection: one word per URL, from statuses and payloads.

Payloads with the same digest are equal. Otherwise the decoded payloads are compared, because a server may compress a
page differently each time.

The earlier state is the newest earlier capture that shows whether the URL existed: a status below 400, or 404 or 410.
Other errors may be temporary. A 304 counts as the response that it confirms. URLs that did not exist before and do not
exist now are left out, and so is robots.txt.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from archiver import url
from archiver.collection.earlier_crawls import GONE, EarlierCrawls, is_there
from archiver.errors import ArchiveError, Failure
from archiver.frontier.captures import CaptureRow, EarlierUrl, is_known, newest
from archiver.frontier.connection import Reader
from archiver.humanize import second
from archiver.model import State
from archiver.policy.scope import is_guess
from archiver.tools.report.crawl_part import WHOLE, CrawlPart, whole

AT_ONCE = 1000  # earlier URLs per batch
EXAMPLES = 5  # URLs of each change
REDIRECTS = range(300, 400)

COLUMNS = ("url", "change", "earlier_status", "status", "earlier_date", "date", "earlier_digest", "digest", "note")
Row = tuple[object, ...]


class UrlChange(StrEnum):
    """The change of a URL since the earlier crawls."""

    NEW = "new"  # it did not exist before
    CHANGED = "changed"  # other content, another status, or a redirect to another place
    MOVED = "moved"  # it existed, and is a redirect now
    GONE = "gone"  # it existed, and now answers 404 or 410
    UNCHANGED = "unchanged"
    FAILED = "failed"  # it existed, and now there is no response, a truncated one, or a temporary error (403, …)
    EXCLUDED = "excluded"  # it existed, and a rule now forbids to request it, such as robots.txt
    LEFT_OUT = "left out"  # it existed, and --newer-sitemap or --changed-only did not request it
    UNVISITED = "unvisited"  # it existed, and was not requested: it waits, is held, or is out of scope now


@dataclass(slots=True)
class ChangeReport:
    """The comparison, row by row; `counts` and `examples` are complete after the last row."""

    db: Reader
    memory: EarlierCrawls
    part: CrawlPart = WHOLE
    counts: Counter[UrlChange] = field(default_factory=Counter)
    examples: dict[UrlChange, list[str]] = field(default_factory=dict)

    def rows(self) -> Iterator[Row]:
        """Yield a row per URL in the order of this crawl, then the URLs that only earlier crawls know."""
        for address, state, failure, note, now in newest(self.db):
            before = self.memory.newest(address)
            change = self._classify(before, state, now)
            if change is UrlChange.EXCLUDED and failure == Failure.UNCHANGED:
                change = UrlChange.LEFT_OUT
            if change is not None:
                yield self._row(change, before, now, address, note)
        for portion in self.memory.not_rediscovered(AT_ONCE):
            for each in portion:
                if self.part.has(each.url, each.seed) and not is_known(whole(self.db), each.url):
                    yield self._row(UrlChange.UNVISITED, self.memory.newest(each.url), None, each.url, _why(each))

    def _classify(self, before: CaptureRow | None, state: State, now: CaptureRow | None) -> UrlChange | None:
        if before is not None and not is_there(before):
            before = None
        if state is State.ARCHIVED and now is not None and is_there(now):
            return UrlChange.NEW if before is None else self._compare(before, now)
        if before is None:
            return None
        if state in {State.WAITING, State.HELD}:
            return UrlChange.UNVISITED
        if state is State.EXCLUDED:
            return UrlChange.EXCLUDED
        return (
            UrlChange.GONE if state is State.ARCHIVED and now is not None and now.status in GONE else UrlChange.FAILED
        )

    def _compare(self, before: CaptureRow, now: CaptureRow) -> UrlChange:
        if now.meant in REDIRECTS and before.meant not in REDIRECTS:
            return UrlChange.MOVED
        same = before.meant == now.meant and before.digest == now.digest
        if not same and before.meant == now.meant not in REDIRECTS and not (before.truncated or now.truncated):
            same = self.memory.same_content(before, now)
        if same and now.meant in REDIRECTS:
            earlier = self._redirect_target(before)
            same = earlier is None or earlier == self._redirect_target(now)
        if not same and self.memory.is_cut(now):
            return UrlChange.FAILED
        return UrlChange.UNCHANGED if same else UrlChange.CHANGED

    def _redirect_target(self, taken: CaptureRow) -> str | None:
        """Return the target of a redirect; None if the record cannot be read (verify reports it)."""
        try:
            location = self.memory.redirect(taken)
        except ArchiveError:
            return None
        return url.join(taken.url, location) or location

    def _row(
        self, change: UrlChange, before: CaptureRow | None, now: CaptureRow | None, address: str, note: str
    ) -> Row:
        self.counts[change] += 1
        examples = self.examples.setdefault(change, [])
        if len(examples) < EXAMPLES:
            examples.append(address)
        earlier = (before.meant, _date(before), before.digest) if before is not None else ("", "", "")
        current = (now.status, _date(now), now.digest) if now is not None else ("", "", "")
        return address, change.value, earlier[0], current[0], earlier[1], current[1], earlier[2], current[2], note


def format_counts(counts: dict[str, int]) -> str:
    """Format *counts*; losses are left out if there are none."""
    always = {UrlChange.NEW, UrlChange.CHANGED, UrlChange.GONE, UrlChange.UNCHANGED}
    return ", ".join(f"{counts[change]} {change}" for change in UrlChange if change in always or counts[change])


def _why(each: EarlierUrl) -> str:
    return "speculative: it was only found in a script" if is_guess(each.path) else "out of scope, or not yet requested"


def _date(taken: CaptureRow) -> str:
    return second(taken.timestamp / 1e6)
