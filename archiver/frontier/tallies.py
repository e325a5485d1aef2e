"""What a run has learned that a later one must know: what patterns of URLs brought, and where seeds moved to."""

import sqlite3
from collections.abc import Iterable

from archiver.frontier.connection import Connection
from archiver.model import PatternTally, Settlement

UPSERT = """
INSERT INTO tallies (pattern, visits, fruitful, streak, strict, barren, listed) VALUES (?, ?, ?, ?, 0, ?, ?)
ON CONFLICT (pattern) DO UPDATE SET visits = excluded.visits, fruitful = excluded.fruitful, streak = excluded.streak,
    barren = excluded.barren, listed = excluded.listed
"""
NEWEST = """
SELECT pattern, visits, fruitful, streak, barren, listed, released FROM tallies
ORDER BY released = 0, barren = 0, rowid DESC LIMIT ?
"""

MOVED = """
SELECT urls.url, begun.url
FROM seeds CROSS JOIN urls ON urls.seed = seeds.url JOIN urls AS begun ON begun.id = seeds.url
WHERE urls.hop = 'R' AND urls.path <> '' AND trim(urls.path, 'R') = '' ORDER BY urls.id
"""  # where redirects of seeds led, and which seeds


def keep(db: Connection, settlements: Iterable[Settlement]) -> None:
    """Write what *settlements* say; of each pattern the last word holds."""
    latest = {tally.pattern: tally for each in settlements for tally in each.tallies}
    rows = [(t.pattern, t.visits, t.fruitful, t.streak, t.barren, t.listed) for t in latest.values()]
    db.executemany(UPSERT, rows)


def read(rows: Iterable[sqlite3.Row]) -> list[PatternTally]:
    """The tallies in the rows that `NEWEST` gives, in the order in which they may be forgotten."""
    return [PatternTally(*row) for row in rows][::-1]
