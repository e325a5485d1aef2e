"""Read the URL queue: due hosts, and windows of their next URLs.

Indexes answer each query, so its time depends on the size of the result and not of the queue. For hosts that have used
up their quota, only robots.txt and its redirects are due.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

from archiver import humanize
from archiver.frontier.database import Connection
from archiver.frontier.port import HostRow, HostWindow, UrlWindow
from archiver.model import Claim, Hop, Robots
from archiver.policy.limits import Allowance, ThrottleState
from archiver.policy.retry import HostBackoff

# If the host may be asked, any URL counts, otherwise only robots.txt and its redirects. Given: bounds, now, now.
HAS_DUE = """
CASE WHEN hosts.visited < ? AND hosts.received < ? AND NOT hosts.paused
THEN EXISTS (SELECT 1 FROM urls WHERE urls.host = hosts.id AND urls.state = 'waiting' AND urls.due <= ?)
ELSE EXISTS (SELECT 1 FROM urls WHERE urls.host = hosts.id AND urls.state = 'waiting' AND urls.due <= ?
             AND urls.priority < 0) END
"""
REACHED = """
WITH bounds (urls, size) AS (VALUES (?, ?))
SELECT visited >= bounds.urls AS by_urls, count(*), sum(waiting) FROM hosts, bounds
WHERE waiting > 0 AND (visited >= bounds.urls OR received >= bounds.size) GROUP BY by_urls ORDER BY by_urls DESC
"""  # given: bounds


def words(allowance: Allowance, by_urls: int, hosts: int, waiting: int) -> str:
    """One row of the answer for a person."""
    limit = f"--max-urls-per-host {allowance.urls}" if by_urls else f"--max-bytes-per-host {allowance.size}"
    urls = humanize.count(waiting, "URL waits", "URLs wait")
    return f"{limit} is reached by {humanize.count(hosts, 'host')}, for which {urls}"


NEVER = float("inf")

CLAIM_COLUMNS = """
SELECT urls.id, urls.url, urls.host, urls.hop, urls.path, urls.depth, urls.off_scope_hops, urls.tries, via.url,
       coalesce(seed.url, ''), urls.priority
FROM urls LEFT JOIN urls AS via ON via.id = urls.via LEFT JOIN urls AS seed ON seed.id = urls.seed
"""
HOST_COLUMNS = """
SELECT hosts.id, hosts.key, hosts.not_before, hosts.robots, robots.status, robots.body,
       hosts.rate, hosts.rate_limit, hosts.concurrency, hosts.slow_reason, hosts.failing_since, hosts.probe_interval,
       CASE WHEN hosts.robots_next IS NULL THEN hosts.robots_at ELSE 9e999 END, hosts.received > 0,
       hosts.blocked_since
FROM hosts LEFT JOIN robots ON robots.url = hosts.robots_url
"""
MAY_BE_DUE = "SELECT id FROM hosts WHERE waiting > 0 AND not_before <= ? ORDER BY not_before, id"
DUE = f"""{HOST_COLUMNS}
WHERE hosts.id IN (SELECT value FROM json_each(?)) AND {HAS_DUE}
ORDER BY hosts.not_before, hosts.id LIMIT ?
"""  # noqa: S608  constants
SOME = f"{HOST_COLUMNS} WHERE hosts.id IN (SELECT value FROM json_each(?))"  # noqa: S608  constants
NEXT = f"""{CLAIM_COLUMNS}
WHERE urls.host = ? AND urls.state = 'waiting' AND urls.due <= ? {{which}}
ORDER BY urls.priority, urls.id LIMIT ?
"""
COUNTED = """
SELECT (SELECT min(due) FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0 AND due > ? {which}),
       waiting, visited, received
FROM hosts WHERE id = ?
"""
LEADS_TO_ROBOTS = "AND urls.priority < 0"
NEXT_DUE = """
SELECT min(due) FROM urls WHERE state = 'waiting' AND due > 0 AND due > ?
UNION ALL SELECT min(not_before) FROM hosts WHERE waiting > 0 AND not_before > ?
"""


def due_hosts(db: Connection, now: float, most: int, leased: Collection[int], allowance: Allowance) -> list[HostRow]:
    """Return the hosts with a URL that is due, longest waiting first, without those in *leased*."""
    found: list[HostRow] = []
    among = frozenset(leased)
    others = (row[0] for row in db.execute(MAY_BE_DUE, (now,)) if row[0] not in among)
    while len(found) < most and (next_ones := list(islice(others, min(most, 1000)))):
        values = (json.dumps(next_ones), *allowance.bounds, now, now, most - len(found))
        found += map(_host, db.rows(DUE, values))
    return found


def hosts(db: Connection, wanted: Iterable[int]) -> list[HostRow]:
    """Return the hosts *wanted* that are in the database, in this order."""
    order = list(wanted)
    found = {row[0]: _host(row) for row in db.rows(SOME, (json.dumps(order),))}
    return [found[host] for host in order if host in found]


def windows(db: Connection, wanted: Sequence[HostWindow], now: float) -> list[UrlWindow]:
    """Return the next URLs of each of the hosts *wanted*."""
    return [_window(db, each, now) for each in wanted]


def waiting(db: Connection, hosts: Iterable[int]) -> int:
    """Return the number of URLs that wait on *hosts*."""
    some = "SELECT coalesce(sum(waiting), 0) FROM hosts WHERE id IN (SELECT value FROM json_each(?))"
    return int(db.row(some, (json.dumps(list(hosts)),))[0])


def claims(db: Connection, addresses: Iterable[str]) -> list[Claim]:
    """Return the rows of the known URLs *addresses*, in their order."""
    return [_claim(db.row(f"{CLAIM_COLUMNS} WHERE urls.url = ?", (address,))) for address in addresses]


def next_due(db: Connection, now: float) -> float:
    """Return the time when the next URL becomes due after *now*, or infinity if there is none."""
    return min((float(row[0]) for row in db.rows(NEXT_DUE, (now, now)) if row[0] is not None), default=NEVER)


def _window(db: Connection, wanted: HostWindow, now: float) -> UrlWindow:
    which = LEADS_TO_ROBOTS if wanted.prerequisites else ""
    found = db.rows(NEXT.format(which=which), (wanted.host, now, wanted.most))
    due, *numbers = db.row(COUNTED.format(which=which), (now, wanted.host))
    return UrlWindow(tuple(map(_claim, found)), NEVER if due is None else float(due), *numbers)


def _claim(row: Any) -> Claim:
    number, address, host, hop, *others = row
    return Claim(number, address, host, Hop(hop), *others)


def _host(row: Any) -> HostRow:
    known = {
        "unknown": None,
        "known": Robots(row[4] or 404, row[5] or b""),
        "unreachable": Robots(row[4] or 0, row[5] or b""),
    }
    backoff = HostBackoff(row[10], row[11], row[2] if row[11] else 0.0)
    return HostRow(
        row[0], row[1], row[2], known[row[3]], ThrottleState(*row[6:10]), backoff, row[12], bool(row[13]), row[14]
    )
