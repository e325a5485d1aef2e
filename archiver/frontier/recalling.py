"""What a crawl takes over from an earlier one: URLs that nothing has led to, and how hosts want to be asked.

Runs inside its caller's transaction, or only reads.
"""

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from archiver import url
from archiver.frontier import adding
from archiver.frontier.connection import Connection
from archiver.model import NewUrl

KNOWN = "SELECT urls.url FROM json_each(?) AS given JOIN urls ON urls.url = given.value"
TAKE = """
INSERT OR IGNORE INTO urls (url, host, hop, path, depth, strays, priority, via, seed)
VALUES (?, ?, ?, ?, ?, ?, ?, (SELECT id FROM urls WHERE url = ?), (SELECT id FROM urls WHERE url = ?))
"""
INHERIT = """
INSERT OR IGNORE INTO hosts (key, parked, rate, rate_limit, width, slowed) VALUES (?, ?, ?, ?, ?, ?)
"""

Manner = tuple[str, float, float, float, float, str]  # key of a host, parked until, rate, its limit, width, and why


class Recalled(NamedTuple):
    """A URL of an earlier crawl that scope takes now, and what led to it then."""

    new: NewUrl
    via: str
    seed: str


def unknown(db: Connection, addresses: Collection[str]) -> set[str]:
    """Those of *addresses* that have no row."""
    known = {str(row[0]) for row in db.rows(KNOWN, (json.dumps(sorted(addresses)),))}
    return set(addresses) - known


def take(db: Connection, recalled: Sequence[Recalled]) -> int:
    """Make rows that wait for those that have none; how many they are."""
    hosts = adding.hosts_of(db, {url.origin(each.new.url) for each in recalled})
    count = 0
    for new, via, seed in recalled:
        values = (new.url, hosts[url.origin(new.url)], new.hop.value, new.path, new.depth, new.strays, new.priority)
        count += db.execute(TAKE, (*values, via, seed)).rowcount
    return count


def inherit(db: Connection, manners: Sequence[Manner]) -> None:
    """Hosts are asked as gently as *manners* say; what is known of a host goes before that."""
    db.executemany(INHERIT, manners)
