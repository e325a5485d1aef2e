"""Pages that a browser has shown or is to show (`--browser`), and what their views brought.

A settlement adds a page in the transaction of its capture, so no crash can lose one. A view may be repeated: the URLs
that it queues are known then.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from archiver import url
from archiver.ask import Ask
from archiver.config.secret_settings import SECRET
from archiver.frontier import links, url_queue
from archiver.frontier.captures import CAPTURES, CaptureRow
from archiver.frontier.connection import Connection, Reader
from archiver.frontier.links import Found
from archiver.model import Claim, Settlement, State
from archiver.policy.views import ViewNeed

AT_ONCE = 100  # rows of one answer
MAX_CAPTURES = 8  # of one URL

_ADD = """
INSERT INTO views (url, host, need, pattern, state) VALUES {rows}
ON CONFLICT (url) DO UPDATE SET need = excluded.need, state = excluded.state
"""
_ADD_STORED = f"""
INSERT INTO views (url, host, need, pattern)
SELECT urls.id, urls.host, {ViewNeed.SCRIPTED.value}, '' FROM urls
WHERE urls.state = 'archived' AND urls.status BETWEEN 200 AND 299 AND urls.priority >= 0
  AND urls.hop <> 'E' AND EXISTS (
    SELECT 1 FROM captures WHERE captures.url = urls.id AND captures.language = ''
        AND captures.mime IN ('text/html', 'application/xhtml+xml')
  )
ON CONFLICT (url) DO NOTHING
"""  # noqa: S608 - a constant
_DUE = """
SELECT urls.url, views.need, views.pattern, views.rounds, coalesce((
    SELECT captures.timestamp FROM captures
    WHERE captures.url = views.url AND captures.language = '' ORDER BY captures.timestamp DESC LIMIT 1
), 0)
FROM views JOIN urls ON urls.id = views.url
WHERE views.state = 'due' AND urls.id NOT IN (SELECT value FROM json_each(?)) ORDER BY views.need, views.url LIMIT ?
"""
UNSENT = "scripts ask for it with headers that were not sent: "  # in the note of an archived URL, before their names
_NOTE = """
UPDATE urls SET note = CASE note WHEN '' THEN '' ELSE note || '; ' END || CAST(:note AS TEXT)
WHERE url = :url AND state = 'archived' AND note NOT LIKE :known
"""
_WAITS_AT = "SELECT host FROM urls WHERE url = ? AND state = 'waiting'"
_ALL_UNSENT = """
SELECT count(*), coalesce(min(urls.url), '') FROM asks CROSS JOIN urls ON urls.id = asks.url
WHERE urls.state = 'archived' AND urls.note LIKE ?
"""
SHOWN = "SELECT hosts.key, views.pattern, views.brought FROM views JOIN hosts ON hosts.id = views.host WHERE rounds > 0"
COUNT = "SELECT count(*) FROM views WHERE state = 'due'"


class DueView(NamedTuple):
    """A page that is to be shown."""

    claim: Claim
    need: int  # of policy.views.ViewNeed
    pattern: str  # "": not computed yet
    rounds: int  # times it was shown
    captured: int  # microseconds since the epoch


class ViewResult(NamedTuple):
    """The result of a view."""

    page: int  # the row of its URL
    pattern: str
    done: bool  # False: it will be shown again
    brought: int = 0  # URLs that the crawl had not known
    missing: int = 0  # URLs that a replay will miss
    title: str = ""
    ended: str = ""  # why the view was cut short


class ViewTotals(NamedTuple):
    """The views of a crawl."""

    shown: int = 0
    due: int = 0
    left_out: int = 0  # because views of similar pages brought nothing
    brought: int = 0  # URLs that only a browser found
    incomplete: int = 0  # pages that a replay will show incompletely, or whose view was cut short
    unsent: int = 0  # URLs that are archived without the headers with which scripts ask for them …
    such_as: str = ""  # … and one of them


def add(db: Connection, settlements: Sequence[Settlement]) -> None:
    """Add the pages of *settlements*: those that need a browser are to be shown. Let redirects keep headers."""
    wanted: dict[int, tuple[object, ...]] = {}
    for each in settlements:
        if each.view is not None and not each.blocked:  # a challenge is not solved
            state = "due" if each.view[0] < ViewNeed.NONE else "left out"
            wanted[each.claim.id] = each.claim.id, each.claim.host, *each.view, state
    db.many(_ADD, list(wanted.values()))
    links.save_asks(db, _moved(settlements))


def _moved(settlements: Iterable[Settlement]) -> Iterator[tuple[str, Ask | None]]:
    """Yield what a script's request sends where it was redirected to; nothing that may be a secret to another host."""
    for each in settlements:
        ask = each.claim.ask
        if ask is not None and not ask.posts and each.redirect:
            same = url.origin(each.redirect) == url.origin(each.claim.url)
            kept = tuple(one for one in ask.fields if same or SECRET.search(one[0]) is None)
            yield each.redirect, ask.redirected(each.redirect, kept)


def totals(db: Reader) -> ViewTotals:
    """Return the totals of all views."""
    row = db.execute(
        "SELECT count(*) FILTER (WHERE rounds > 0), count(*) FILTER (WHERE state = 'due'), "
        "count(*) FILTER (WHERE state = 'left out'), coalesce(sum(brought), 0), "
        "count(*) FILTER (WHERE state = 'done' AND (missing > 0 OR ended <> '')) FROM views"
    ).fetchone()
    return ViewTotals(*row, *db.execute(_ALL_UNSENT, (f"%{UNSENT}%",)).fetchone())


def save(db: Connection, results: Sequence[ViewResult]) -> None:
    """Save the results of views."""
    db.executemany(
        "UPDATE views SET pattern = ?, state = ?, rounds = rounds + 1, brought = brought + ?, missing = ?, title = ?, "
        "ended = ? WHERE url = ?",
        [_row(each) for each in results],
    )


def _row(each: ViewResult) -> tuple[str | int, ...]:
    state = "done" if each.done else "due"
    return each.pattern, state, each.brought, each.missing, each.title, each.ended, each.page


def leave_out(db: Connection, pages: Sequence[tuple[int, str]]) -> None:
    """Leave out *pages*, each with its pattern."""
    rows = [(pattern, page) for page, pattern in pages]
    db.executemany("UPDATE views SET pattern = ?, state = 'left out' WHERE url = ?", rows)


def take_back(db: Connection, pattern: str) -> None:
    """Show the pages of *pattern* that were left out."""
    db.execute("UPDATE views SET state = 'due' WHERE state = 'left out' AND pattern = ?", (pattern,))


def forget(db: Connection) -> None:
    """Show no more pages."""
    db.execute("DELETE FROM views WHERE state = 'due'")


def due(db: Connection, without: Collection[int], most: int) -> list[DueView]:
    """Return the next pages to show, but those *without* (rows of URLs)."""
    rows: list[Any] = db.rows(_DUE, (json.dumps(sorted(without)), most))
    claims = links.claims(db, [row[0] for row in rows])
    return [DueView(claim, *row[1:]) for claim, row in zip(claims, rows, strict=True)]


def states(db: Connection, addresses: Collection[str]) -> dict[str, State]:
    """Return the states of those of *addresses* that have a row."""
    rows = db.rows(
        "SELECT url, state FROM urls WHERE url IN (SELECT value FROM json_each(?))", (json.dumps(sorted(addresses)),)
    )
    return {address: State(state) for address, state in rows}


def add_links(db: Connection, found: Sequence[Found], ask: Ask | None = None) -> Counter[int]:
    """Queue links that a view has found; return the number of new URLs by host. *ask*: what is sent for the link.

    A host without new URLs is among them if one that waits got its *ask*: it may be handed out without it.
    """
    hosts, _ = url_queue.add_links(db, found)
    links.save_asks(db, ((new.url, ask) for new, _ in found))
    if ask is not None:
        waiting = (host for new, _ in found for (host,) in db.rows(_WAITS_AT, (new.url,)))
        hosts.update(dict.fromkeys(waiting, 0))
    return hosts


def note_unsent(db: Connection, address: str, ask: Ask, names: Sequence[str]) -> None:
    """Note that the headers *names* of *ask* were not sent for the archived *address*; send them next time."""
    links.save_asks(db, ((address, ask),))
    note = UNSENT + ", ".join(names)
    db.execute(_NOTE, {"note": note, "url": address, "known": f"%{UNSENT}%"})


def captures(db: Connection, address: str) -> list[CaptureRow]:
    """Return a few captures of *address*, newest first."""
    return [CaptureRow(*row) for row in db.rows(CAPTURES.format(""), (address, MAX_CAPTURES))]


def add_stored(db: Connection, *, every: bool) -> None:
    """Show the archived pages that were stored without a browser; with *every*, those that were left out too."""
    db.execute(_ADD_STORED)
    if every:
        db.execute("UPDATE views SET state = 'due' WHERE state = 'left out'")
