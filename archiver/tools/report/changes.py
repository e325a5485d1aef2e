"""What has changed since the earlier crawls of a collection: one word for each URL, by statuses and payloads.

Payloads with the same digest are the same; of others the decoded ones are compared, because a server may compress a
page anew for each answer.

Before counts the newest earlier capture that says whether there was something: one with a status below 400, or 404 or
410; other errors may pass. A page that was not modified (304) counts as the answer that the server says still holds.
A URL of which there was nothing before, and is nothing now, is left out, and so is every robots.txt.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from archiver import url
from archiver.collection.earlier_crawls import GONE, EarlierCrawls, is_cut, is_there
from archiver.errors import ArchiveError
from archiver.frontier.captures import CaptureRow, is_known, newest
from archiver.frontier.earlier import EarlierUrl
from archiver.humanize import second
from archiver.model import State
from archiver.policy.scope import is_guess

AT_ONCE = 1000  # earlier URLs looked at in one go
REDIRECTS = range(300, 400)

HEAD = ("url", "what", "earlier_status", "status", "earlier_date", "date", "earlier_digest", "digest", "note")
Row = tuple[object, ...]


class UrlChange(StrEnum):
    """What became of a URL since the earlier crawls."""

    NEW = "new"  # there was nothing, and now there is
    CHANGED = "changed"  # another content, another status, or a redirect to another place
    MOVED = "moved"  # it was there, and is a redirect now
    GONE = "gone"  # it was there, and the server says 404 or 410
    UNCHANGED = "unchanged"
    FAILED = "failed"  # it was there, and now there is no answer, one that was cut off, or one that may pass (403, …)
    EXCLUDED = "excluded"  # it was there, and a rule forbids to ask for it now, such as robots.txt
    UNASKED = (
        "unasked"  # it was there, and was not asked for: it still waits, is held, or scope does not take it any more
    )


@dataclass(slots=True)
class ChangeReport:
    """The comparison, told row by row; `counts` is right when all rows were told."""

    db: sqlite3.Connection
    memory: EarlierCrawls
    counts: Counter[UrlChange] = field(default_factory=Counter)

    def rows(self) -> Iterator[Row]:
        """A row for each URL, in the order in which this crawl found them; then those that it does not know."""
        for address, state, note, now in newest(self.db):
            before = self.memory.newest(address)
            what = self._word(before, state, now)
            if what is not None:
                yield self._told(what, before, now, address, note)
        for portion in self.memory.left(AT_ONCE):
            for each in portion:
                if not is_known(self.db, each.url):
                    yield self._told(UrlChange.UNASKED, self.memory.newest(each.url), None, each.url, _why(each))

    def _word(self, before: CaptureRow | None, state: State, now: CaptureRow | None) -> UrlChange | None:
        if before is not None and not is_there(before):
            before = None
        if state is State.ARCHIVED and now is not None and is_there(now):
            return UrlChange.NEW if before is None else self._compared(before, now)
        if before is None:
            return None
        if state in {State.WAITING, State.HELD}:
            return UrlChange.UNASKED
        if state is State.EXCLUDED:
            return UrlChange.EXCLUDED
        return (
            UrlChange.GONE if state is State.ARCHIVED and now is not None and now.status in GONE else UrlChange.FAILED
        )

    def _compared(self, before: CaptureRow, now: CaptureRow) -> UrlChange:
        if now.meant in REDIRECTS and before.meant not in REDIRECTS:
            return UrlChange.MOVED
        same = before.meant == now.meant and before.digest == now.digest
        if not same and before.meant == now.meant not in REDIRECTS and not (before.truncated or now.truncated):
            same = self.memory.same_content(before, now)
        if same and now.meant in REDIRECTS:
            then = self._leads(before)
            same = then is None or then == self._leads(now)
        if not same and is_cut(now):
            return UrlChange.FAILED
        return UrlChange.UNCHANGED if same else UrlChange.CHANGED

    def _leads(self, taken: CaptureRow) -> str | None:
        """Where a redirect leads; a record that cannot be read says nothing, and verify says why."""
        try:
            said = self.memory.redirect(taken)
        except ArchiveError:
            return None
        return url.join(taken.url, said) or said

    def _told(self, what: UrlChange, before: CaptureRow | None, now: CaptureRow | None, address: str, note: str) -> Row:
        self.counts[what] += 1
        then = (before.meant, _date(before), before.digest) if before is not None else ("", "", "")
        today = (now.status, _date(now), now.digest) if now is not None else ("", "", "")
        return address, what.value, then[0], today[0], then[1], today[1], then[2], today[2], note


def words(counts: dict[str, int]) -> str:
    """The *counts* in words; what may be a loss is left out where there is none."""
    always = {UrlChange.NEW, UrlChange.CHANGED, UrlChange.GONE, UrlChange.UNCHANGED}
    return ", ".join(f"{counts[what]} {what}" for what in UrlChange if what in always or counts[what])


def _why(each: EarlierUrl) -> str:
    return (
        "speculative: only a script had named it" if is_guess(each.path) else "the scope does not take it, or not yet"
    )


def _date(taken: CaptureRow) -> str:
    return second(taken.timestamp / 1e6)
