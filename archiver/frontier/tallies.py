"""What a run has learned that a later one must know: what patterns of URLs brought, and where seeds moved to."""

import json
import sqlite3
from collections.abc import Iterable, Iterator

from archiver.frontier.connection import Connection
from archiver.model import PatternTally, Settlement
from archiver.traps import RULES

UPSERT = """
INSERT INTO tallies (pattern, visits, fruitful, streak, strict) VALUES (?, ?, ?, ?, ?) ON CONFLICT (pattern) DO UPDATE
SET visits = excluded.visits, fruitful = excluded.fruitful, streak = excluded.streak, strict = excluded.strict
"""
NEWEST = "SELECT pattern, visits, fruitful, streak, strict FROM tallies ORDER BY streak = 0, rowid DESC LIMIT ?"

MOVED = """
SELECT urls.url, begun.url
FROM seeds CROSS JOIN urls ON urls.seed = seeds.url JOIN urls AS begun ON begun.id = seeds.url
WHERE urls.hop = 'R' AND urls.path <> '' AND trim(urls.path, 'R') = '' ORDER BY urls.id
"""  # where redirects of seeds led, and which seeds
REPORT = """
WITH refused AS (SELECT rule, sum(links) AS links FROM refusal_counts GROUP BY rule),
     samples AS (SELECT rule, min(url) AS url FROM refusals GROUP BY rule),
     held AS (SELECT note AS rule, count(*) AS urls, min(url) AS url FROM urls
              WHERE state = 'excluded' AND failure = 'trap' GROUP BY note),
     rules AS (SELECT rule FROM refused UNION SELECT rule FROM held)
SELECT rules.rule, coalesce(refused.links, 0), coalesce(held.urls, 0), coalesce(samples.url, held.url, '')
FROM rules LEFT JOIN refused USING (rule) LEFT JOIN samples USING (rule) LEFT JOIN held USING (rule)
WHERE substr(rules.rule, 1, instr(rules.rule, ':') - 1) IN (SELECT value FROM json_each(?))
ORDER BY 2 DESC, 1
"""


def keep(db: Connection, settlements: Iterable[Settlement]) -> None:
    """Write what *settlements* say; of each pattern the last word holds."""
    latest = {tally.pattern: tally for each in settlements for tally in each.tallies}
    rows = [(t.pattern, t.visits, t.fruitful, t.streak, int(t.strict)) for t in latest.values()]
    db.executemany(UPSERT, rows)


def read(rows: Iterable[sqlite3.Row]) -> list[PatternTally]:
    """The tallies in the rows that `NEWEST` gives, in the order in which they may be forgotten."""
    return [PatternTally(row[0], row[1], row[2], row[3], strict=bool(row[4])) for row in rows][::-1]


def held_back(db: sqlite3.Connection) -> Iterator[tuple[str, int, int, str]]:
    """(rule, links refused, URLs held back that waited already, one of them) of what looked endless."""
    yield from db.execute(REPORT, (json.dumps(RULES),))
