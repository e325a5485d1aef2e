"""Seeds: URLs that were given, not found. Runs inside its caller's transaction.

Settled URLs that become due again because a person asked for it, a bounded number in each transaction.

Their tries begin anew; what their last answer was stays until the next one. Where a host's robots.txt was the reason,
or could not be had, it is asked for again first. Runs inside its caller's transactions, beside a crawl too.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from archiver import url
from archiver.errors import Failure
from archiver.frontier.database import Connection
from archiver.frontier.port import Selection
from archiver.model import LIFE, Event, State

Held = Callable[[Collection[str]], Collection[str]]  # which of these payloads are held elsewhere

AT_ONCE = 1000  # URLs in one transaction: some hundredths of a second, for which a crawl may have to wait

MAY_COME_BACK = tuple(state.value for state, event in LIFE if event is Event.AGAIN)
WITHOUT_ANSWER = (State.FAILED.value, State.EXCLUDED.value)

NEXT = """
SELECT urls.id FROM urls WHERE urls.id > ? AND urls.state IN (SELECT value FROM json_each(?)) {}
ORDER BY urls.id LIMIT ?
"""
COME_BACK = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, requeued = requeued + 1
WHERE id IN (SELECT value FROM json_each(?)) AND state IN (SELECT value FROM json_each(?))
"""
COME_BACK_AS_SEED = """
UPDATE urls SET state = 'waiting', due = ?, tries = 0, requeued = requeued + 1
WHERE url = ? AND state <> 'waiting' AND priority >= 0 AND id NOT IN (SELECT url FROM seeds)
"""
LAST_BLOCKED = """
SELECT url FROM captures WHERE blocked <> '' AND id = (SELECT max(id) FROM captures AS one WHERE one.url = captures.url)
AND status = (SELECT status FROM urls WHERE urls.id = captures.url)
"""
WITHOUT_PAYLOAD = """
SELECT urls.id, json_group_array(DISTINCT visit.payload_digest) FROM urls
CROSS JOIN captures AS visit ON visit.url = urls.id
WHERE urls.id > ? AND visit.revisit = 'identical-payload-digest' AND urls.state = 'archived' AND NOT EXISTS (
    SELECT 1 FROM captures AS stored
    WHERE substr(stored.payload_digest, -8) = substr(visit.payload_digest, -8) AND stored.revisit = ''
      AND stored.truncated = '' AND stored.payload_length > 0 AND stored.status / 100 <> 3
      AND stored.payload_digest = visit.payload_digest
)
GROUP BY urls.id ORDER BY urls.id LIMIT ?
"""
HOSTS_HELD_BACK = """
SELECT DISTINCT hosts.id FROM urls JOIN hosts ON hosts.id = urls.host
WHERE urls.id IN (SELECT value FROM json_each(:rows))
  AND (hosts.robots = 'unreachable' OR urls.failure = :robots OR urls.url = hosts.key || '/robots.txt')
"""
FORGET_RULES = """
UPDATE hosts SET robots = 'unknown', robots_url = NULL, robots_next = NULL WHERE id IN (SELECT value FROM json_each(?))
"""
ASK_FIRST = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, requeued = requeued + (state <> 'waiting'), priority = -1
WHERE id IN (SELECT robots_url FROM hosts WHERE id IN (SELECT value FROM json_each(:hosts)))
   OR url IN (SELECT key || '/robots.txt' FROM hosts WHERE id IN (SELECT value FROM json_each(:hosts)))
"""


def named_hosts(keys: Iterator[tuple[int, str]], wanted: Sequence[str]) -> list[int]:
    """Of the hosts in *keys* (row, key) those that one of *wanted* names: by name, name and port, or whole key."""
    asked = {text.lower().rstrip("/") for text in wanted}
    return [row for row, key in keys if not asked.isdisjoint(names_of(key))]


def names_of(key: str) -> tuple[str, str, str]:
    """What a person may call the host *key* (`https://example.org:8443`)."""
    authority = key.partition("//")[2]
    name, colon, port = authority.rpartition(":")
    return key, authority, name if colon and port.isdigit() else authority


def question(wanted: Selection, hosts: Sequence[int], after: int) -> tuple[str, list[object]]:
    """The next rows behind *after* that *wanted* means, as SQL and its values; *hosts* are those that it names."""
    states = MAY_COME_BACK if wanted.urls or wanted.statuses or wanted.blocked else WITHOUT_ANSWER
    values: list[object] = [after, json.dumps(states)]
    terms = []
    if wanted.urls:
        terms.append("urls.url IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.urls))
    else:
        terms.append("urls.priority >= 0")  # the way to a robots.txt is made due with the URLs that wait for it
    if wanted.hosts:
        terms.append("urls.host IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(hosts)))
    if wanted.blocked:
        terms.append(f"urls.id IN ({LAST_BLOCKED})")
    either = ["urls.status BETWEEN ? AND ?"] * len(wanted.statuses)
    values += [bound for span in wanted.statuses for bound in span]
    if wanted.failures:
        either.append("urls.failure IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.failures))
    if either:
        terms.append(f"({' OR '.join(either)})")
    return NEXT.format("".join(f"AND {term} " for term in terms)), [*values, AT_ONCE]


def lost(found: Sequence[Sequence[Any]], held: Held) -> list[int]:
    """The rows of URLs in *found*, each with the digests of payloads that are not here, of which one is not *held*."""
    wanted = {int(row): set(json.loads(digests)) for row, digests in found}
    there = set(held(set[str]().union(*wanted.values())))
    return [row for row, digests in wanted.items() if not digests <= there]


def come_back(db: Connection, rows: Sequence[int]) -> int:
    """The settled ones of *rows* wait again; how many they are."""
    which = json.dumps(list(rows))
    held = db.rows(HOSTS_HELD_BACK, {"rows": which, "robots": Failure.ROBOTS.value})
    count = db.execute(COME_BACK, (which, json.dumps(MAY_COME_BACK))).rowcount
    hosts = json.dumps([row[0] for row in held])
    db.execute(ASK_FIRST, {"hosts": hosts})
    db.execute(FORGET_RULES, (hosts,))
    return count


def come_back_as_seeds(db: Connection, seeds: Sequence[str], due: float) -> None:
    """Those of *seeds* that are settled without being seeds wait again: what they lead to belongs to the crawl now."""
    db.executemany(COME_BACK_AS_SEED, [(due, seed) for seed in seeds])


ALL = "SELECT urls.url FROM seeds CROSS JOIN urls ON urls.id = seeds.url ORDER BY position"
BE_A_SEED = """
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, due)
VALUES (?, (SELECT id FROM hosts WHERE key = ?), 'L', '', 0, 0, 1, ?)
ON CONFLICT (url) DO UPDATE SET hop = 'L', path = '', depth = 0, off_scope_hops = 0, priority = 1, via = NULL
WHERE state = 'waiting' AND priority >= 0
      AND (hop, path, depth, off_scope_hops, priority, via) IS NOT ('L', '', 0, 0, 1, NULL)
"""  # what is so already is not written: at a resume nothing is to be synced for it
HEAD_ITSELF = "UPDATE urls SET seed = id WHERE url = ? AND path = '' AND seed IS NOT id"
COUNT = "SELECT count(url) FROM seeds"
STAND = "INSERT OR IGNORE INTO seeds (url, position) VALUES ((SELECT id FROM urls WHERE url = ?), ?)"


def add_seeds(db: Connection, seeds: Sequence[str], due: float) -> int:
    """Make *seeds* known and waiting; how many were new. With *due*: not before; settled URLs wait again too."""
    if due:
        come_back_as_seeds(db, seeds, due)
    keys = sorted({url.origin(seed) for seed in seeds})
    db.executemany("INSERT OR IGNORE INTO hosts (key) VALUES (?)", [(key,) for key in keys])
    db.executemany(BE_A_SEED, [(seed, url.origin(seed), due) for seed in seeds])
    db.executemany(HEAD_ITSELF, [(seed,) for seed in seeds])
    (before,) = db.row(COUNT)
    db.executemany(STAND, [(seed, before + number) for number, seed in enumerate(seeds)])
    (after,) = db.row(COUNT)
    return int(after - before)
