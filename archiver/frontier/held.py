"""Held URLs: suspected to be in a trap, kept as whole rows, and counted by the rule and the pattern that hold them.

The note of such a row is `RULE: PATTERN`, and a pattern begins with the scheme, so one column says both. Of one pattern
at most `MOST` rows are kept; links beyond are counted with the refusals, under the same words.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from shlex import quote

from archiver.frontier.database import Connection

MOST = 20_000  # URLs of one pattern
AT_ONCE = 1000  # URLs in one transaction: a crawl may be running

_PATTERNS = """
SELECT note, count(*), min(url), coalesce((SELECT sum(links) FROM refusal_counts WHERE rule = note), 0)
FROM urls INDEXED BY urls_held WHERE state = 'held' GROUP BY note ORDER BY 2 DESC, note
"""
_COUNT = "SELECT count(*) FROM urls INDEXED BY urls_held WHERE state = 'held' AND note = ?"
_NEXT = "SELECT id FROM urls INDEXED BY urls_held WHERE state = 'held' AND note = ? ORDER BY url LIMIT ?"
_RELEASE = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, failure = '', note = '', settled = NULL, requeued = requeued + 1
WHERE id IN (SELECT value FROM json_each(?)) AND state = 'held'
"""
_ALLOW = """
INSERT INTO pattern_tallies (pattern, visits, fruitful, streak, released) VALUES (?, 0, 0, 0, ?)
ON CONFLICT (pattern) DO UPDATE SET released = max(released, barren - listed) + excluded.released
"""  # of barren pages beyond those that lists answer for, so many may come


@dataclass(frozen=True, slots=True)
class HeldPattern:
    """One held pattern of URLs, with its counts."""

    pattern: str  # http://example.org/calendar/N/N
    rule: str  # trap-budget: 1100
    urls: int
    example: str
    beyond: int = 0  # more links, which were counted but not kept


def held_patterns(db: sqlite3.Connection) -> list[HeldPattern]:
    """Return the held patterns, those with most URLs first."""
    return [HeldPattern(*_parts(note), urls, example, beyond) for note, urls, example, beyond in db.execute(_PATTERNS)]


def command_for(held: HeldPattern | None = None) -> str:
    """Return the command that queues the URLs of *held*, or of all patterns; DIR is the directory."""
    if held is None or not (held.pattern.isprintable() and " " not in held.pattern):
        return "archiver retry DIR --held"
    return f"archiver retry DIR --held {quote(held.pattern)}"


def note(rule: str, pattern: str) -> str:
    """Return the note of a URL of *pattern* that *rule* holds."""
    return f"{rule}: {pattern}"


def _parts(text: str) -> tuple[str, str]:
    """Return the pattern and the rule of a note."""
    rule, colon, rest = text.partition(": http")
    return (f"http{rest}", rule) if colon else ("", text)


def chosen(held: Sequence[HeldPattern], wanted: Sequence[str]) -> list[HeldPattern]:
    """Return those of *held* that *wanted* names: by a pattern, a part of it with `*`, a rule, or a URL."""
    return [each for each in held if not wanted or any(_means(text, each) for text in wanted)]


def _means(text: str, held: HeldPattern) -> bool:
    known = {held.pattern, held.rule, held.rule.partition(":")[0], held.example}
    return text in known or ("*" in text and fnmatchcase(held.pattern, text))


def counted(db: Connection, notes: Sequence[str]) -> dict[str, int]:
    """Return the number of URLs that each of *notes* holds already."""
    return {text: int(db.row(_COUNT, (text,))[0]) for text in dict.fromkeys(notes)}


def release(db: Connection, held: HeldPattern, allowed: int) -> int:
    """Queue the next URLs of *held*. Return their number. *allowed*: the additional barren pages, or 0."""
    if allowed:
        db.execute(_ALLOW, (held.pattern, allowed))
    rows = [int(row[0]) for row in db.rows(_NEXT, (note(held.rule, held.pattern), AT_ONCE))]
    db.execute(_RELEASE, (f"[{','.join(map(str, rows))}]",))
    return len(rows)
