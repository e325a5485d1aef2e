"""Visits that the database has forgotten, or never knew: their URLs become rows again, as their own records tell.

A URL that named one of them, and is not known either, becomes a row that waits: its own record may still come, and
says more; where none comes, it is visited once more. Runs inside its caller's transaction.
"""

from collections.abc import Sequence

from archiver import scope, url
from archiver.frontier import adding, asking
from archiver.frontier.connection import Connection
from archiver.model import Claim, Hop

PLACE = "INSERT INTO urls (url, host, hop, path, depth, strays, priority) VALUES (?, ?, ?, ?, ?, ?, ?)"
IF_UNKNOWN = "ON CONFLICT (url) DO NOTHING"
OR_SAY_MORE = """
ON CONFLICT (url) DO UPDATE SET
    hop = excluded.hop, path = excluded.path, depth = excluded.depth, strays = excluded.strays,
    priority = excluded.priority
WHERE state = 'waiting' AND via IS NULL AND path <> ''
"""  # a row to which nothing leads was placed by `_leader`
BEGIN_ANEW = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, again = again + 1 WHERE url = ? AND state <> 'waiting'
"""  # a first try of what was settled: it had been made due again
LEAD = """
UPDATE urls SET via = (SELECT id FROM urls WHERE url = ?), seed = (SELECT id FROM urls WHERE url = ?)
WHERE url = ? AND via IS NULL
"""


def learn(db: Connection, visits: Sequence[Claim]) -> None:
    """Make the URLs of *visits* known, and those that led there."""
    named = [(each, each.via) for each in visits if each.via is not None]
    keys = {url.origin(each.url) for each in visits} | {url.origin(via) for _, via in named}
    hosts = adding.hosts_of(db, keys)
    rows = [_row(each, hosts[url.origin(each.url)]) for each in visits]
    db.executemany(PLACE + OR_SAY_MORE, rows)
    db.executemany(BEGIN_ANEW, [(each.url,) for each in visits if each.tries == 0])
    leaders = [_leader(each, via, hosts[url.origin(via)]) for each, via in named]
    db.executemany(f"{PLACE} {IF_UNKNOWN}", leaders)
    db.executemany(LEAD, [(each.via, each.seed, each.url) for each in visits if each.via or each.seed])
    for each in visits:
        if each.url == url.origin(each.url) + "/robots.txt":
            asking.ask(db, (hosts[url.origin(each.url)],))


def _row(each: Claim, host: int) -> tuple[str | int, ...]:
    return each.url, host, each.hop.value, each.path, each.depth, each.strays, each.priority


def _leader(each: Claim, via: str, host: int) -> tuple[str | int, ...]:
    """The row of the document that named *each*, as far as that can be told from here."""
    path = each.path[:-1]
    depth = max(0, each.depth - (each.hop is Hop.LINK))
    hop = path[-1:] if path[-1:] in set(Hop) else Hop.LINK.value
    return via, host, hop, path, depth, 0, scope.priority(path, depth)
