"""URLs that a person excludes from the queue and takes back, or puts first.

They are excluded with the failure `rule` and the rule as note. Rows are read in pages of `AT_ONCE` and written in short
transactions, because a crawl may be running. Place, tries and time of a row stay, so what takes them back makes them
due as before. A URL whose request is under way is settled as usual. Seeds and robots.txt are never excluded.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from archiver.errors import Failure
from archiver.frontier.connection import Connection, Reader
from archiver.frontier.links import Revision

AT_ONCE = 1000  # rows that are read at once

WAITING = """
SELECT id, url FROM urls WHERE id > ? AND state = 'waiting' AND priority >= 0
  AND NOT EXISTS (SELECT 1 FROM seeds WHERE seeds.url = urls.id)
ORDER BY id LIMIT ?
"""
ARCHIVED = "SELECT id, url FROM urls WHERE id > ? AND state = 'archived' AND priority >= 0 ORDER BY id LIMIT ?"
EXCLUDE = """
UPDATE urls SET state = 'excluded', failure = ?, note = ?
WHERE id IN (SELECT value FROM json_each(?)) AND state = 'waiting'
"""
EXCLUDED = "SELECT id FROM urls WHERE id > ? AND state = 'excluded' AND failure = ? AND note = ? ORDER BY id LIMIT ?"
TAKE_BACK = """
UPDATE urls SET state = 'waiting', failure = '', note = ''
WHERE id IN (SELECT value FROM json_each(?)) AND state = 'excluded'
"""


PUT_FIRST = """
UPDATE urls SET priority = 0 WHERE id IN (SELECT value FROM json_each(?)) AND state = 'waiting' AND priority > 0
"""  # with the parts of pages, before all pages


class Page(NamedTuple):
    """A number of rows, in order."""

    last: int  # 0: there are no more
    seen: int
    found: tuple[tuple[int, str], ...]  # row and URL of those that match


def note_of(regex: str) -> str:
    """Return the note of a URL that the rule *regex* excludes."""
    return f"exclude: {regex}"


def page(db: Reader, sql: str, after: int, matches: Callable[[str], bool]) -> Page:
    """Return the next rows of the query *sql* behind the row *after*."""
    rows = db.execute(sql, (after, AT_ONCE)).fetchall()
    return Page(rows[-1][0] if rows else 0, len(rows), tuple((row, text) for row, text in rows if matches(text)))


def pages(db: Reader, sql: str, matches: Callable[[str], bool]) -> Iterator[Page]:
    """Yield all rows of the query *sql*."""
    after = 0
    while (found := page(db, sql, after, matches)).last:
        yield found
        after = found.last


def exclude(db: Connection, rows: Sequence[int], regex: str) -> int:
    """Exclude those of *rows* that wait, and return how many."""
    count = db.execute(EXCLUDE, (Failure.RULE.value, note_of(regex), json.dumps(rows))).rowcount
    changed(db)
    return count


def excluded(db: Reader, regex: str, after: int) -> list[int]:
    """Return the next rows behind *after* that the rule *regex* has excluded."""
    values = after, Failure.RULE.value, note_of(regex), AT_ONCE
    return [int(row[0]) for row in db.execute(EXCLUDED, values).fetchall()]


def take_back(db: Connection, rows: Sequence[int]) -> int:
    """Let those of *rows* wait that are excluded, and return how many."""
    count = db.execute(TAKE_BACK, (json.dumps(rows),)).rowcount
    changed(db)
    return count


def put_first(db: Connection, rows: Sequence[int]) -> int:
    """Let those of *rows* that wait go before all pages, and return how many."""
    count = db.execute(PUT_FIRST, (json.dumps(rows),)).rowcount
    changed(db)
    return count


def changed(db: Connection) -> None:
    """Let crawlers read the queue of their hosts again.

    They need not forget what they know of links: every row stays as near and as early as it was, or becomes earlier.
    """
    Revision("orders").raise_by_one(db)
