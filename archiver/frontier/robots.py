"""robots.txt in the frontier: the row that holds, or will hold, the rules of a host.

A redirect points the host to another row, which is visited before everything else and gives the rules of every host
that points to it. A target that the crawl knows as a page has no rules (RFC 9309 §2.3.1.2 lets it count as
unavailable). Rules are fetched again after a day. They apply until newer ones are stored, also if the new fetch fails
(§2.4). Everything here runs in the caller's transaction.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from archiver import url
from archiver.frontier import enqueue
from archiver.frontier.database import Connection
from archiver.model import Hop, NewUrl, Robots, Settlement

BEFORE_ALL = -1  # the priority of rows that lead to a robots.txt
DAY = 86_400.0  # seconds for which an answer may be used (RFC 9309 §2.4)

ASK = """
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority) VALUES (?, ?, 'P', 'P', 0, 0, -1)
ON CONFLICT (url) DO UPDATE SET priority = -1 WHERE state = 'waiting'
"""
ASK_AGAIN = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, requeued = requeued + 1, priority = -1
WHERE id = ? AND state <> 'waiting'
"""
POINT = """
UPDATE hosts SET (robots_url, robots) = (
    SELECT id, CASE state WHEN 'waiting' THEN 'unknown' WHEN 'archived' THEN 'known' ELSE 'unreachable' END
    FROM urls WHERE url = ?
) WHERE id = ?
"""
ASKED = "SELECT id, key, robots_url, robots FROM hosts WHERE id IN (SELECT value FROM json_each(?))"
AWAIT = """
UPDATE hosts SET robots_next = CASE robots WHEN 'known' THEN :row END,
    robots_url = CASE robots WHEN 'known' THEN robots_url ELSE :row END,
    robots = CASE robots WHEN 'known' THEN 'known' ELSE 'unknown' END
WHERE id = :host
"""
OWN = "UPDATE hosts SET robots_next = ? WHERE id = ? AND robots_url IS NOT NULL"
MOVE = """
UPDATE hosts SET robots_url = CASE WHEN robots_url = :row AND robots = 'unknown' THEN :target ELSE robots_url END,
    robots_next = CASE robots_next WHEN :row THEN :target ELSE robots_next END
WHERE robots_url = :row OR robots_next = :row
"""
KEEP = "UPDATE hosts SET robots_next = NULL, robots_at = ? WHERE robots_next = ? AND robots = 'known'"
STORE = """
INSERT INTO robots (url, status, body) VALUES (:row, :status, :body) ON CONFLICT (url) DO UPDATE
SET status = :status, body = :body WHERE :status BETWEEN 200 AND 499 OR status NOT BETWEEN 200 AND 499
"""  # an error does not replace rules
ADOPT = "UPDATE hosts SET robots_url = robots_next, robots_next = NULL WHERE robots_next = ?"
MARK = """
UPDATE hosts SET robots_at = :at, robots =
    CASE WHEN (SELECT status FROM robots WHERE url = :row) BETWEEN 200 AND 499 THEN 'known' ELSE 'unreachable' END
WHERE robots_url = :row
"""


def ask(db: Connection, hosts: Iterable[int]) -> None:
    """Queue robots.txt of *hosts* before everything else, also if it was fetched before."""
    found = db.rows(ASKED, (json.dumps(list(hosts)),))
    to_ask = [
        (f"{key}/robots.txt", host, asked) for host, key, asked, known in found if not asked or known != "unknown"
    ]
    db.executemany(ASK, [(address, host) for address, host, _ in to_ask])
    db.executemany(POINT, [(address, host) for address, host, asked in to_ask if not asked])
    for address, host, asked in to_ask:
        if asked:
            row = (db.row("SELECT id FROM urls WHERE url = ?", (address,)) or (0,))[0]
            db.execute(ASK_AGAIN, (row,))
            db.execute(AWAIT, {"row": row, "host": host})


def in_order(settlements: Sequence[Settlement]) -> list[tuple[Settlement, Robots]]:
    """Return the robots.txt answers in *settlements* in the order in which they must be stored.

    A recovered batch may hold a redirect and its target: targets come first. Of two answers for one URL the later
    counts, unless it is an error.
    """
    last: dict[int, tuple[Settlement, Robots]] = {}
    for each in settlements:
        if each.robots is not None and (each.claim.id not in last or 200 <= each.robots.status < 500):
            last.pop(each.claim.id, None)
            last[each.claim.id] = each, each.robots
    ways = [pair for pair in last.values() if pair[1].redirect is not None]
    return [pair for pair in last.values() if pair[1].redirect is None] + ways[::-1]


def answer(db: Connection, each: Settlement, robots: Robots, moved: dict[str, str]) -> tuple[set[int], Counter[int]]:
    """Store a robots.txt answer or redirect. Return the hosts that it concerns, and the number of new URLs by host.

    *moved* maps redirects of this batch to their targets, and is updated.
    """
    row, added = each.claim.id, Counter[int]()
    if each.claim.url == url.origin(each.claim.url) + "/robots.txt":
        db.execute(OWN, (row, each.claim.host))
    hosts = _concerned(db, row)
    if robots.redirect is not None:
        end = moved.get(robots.redirect, robots.redirect)
        target, answered, added = _lead_to(db, each, end)
        if target:
            moved[each.claim.url] = end
            db.execute(MOVE, {"row": row, "target": target})
            if answered is not None:
                _mark(db, target, answered)
            return hosts | _concerned(db, target), added
    if not 200 <= robots.status < 500:
        db.execute(KEEP, (each.settled, row))
    db.execute(STORE, {"row": row, "status": robots.status, "body": robots.body})
    _mark(db, row, each.settled)
    return hosts, added


def _lead_to(db: Connection, each: Settlement, target: str) -> tuple[int, float | None, Counter[int]]:
    """Return the row of *target* if it can hold rules, or 0; and when it was fetched, if within a day."""
    path = each.claim.path + Hop.REDIRECT
    new = NewUrl(target, Hop.REDIRECT, path, depth=0, off_scope_hops=0, priority=BEFORE_ALL)
    known = db.row("SELECT id, host, state, path, settled FROM urls WHERE url = ?", (target,))
    if known is None:
        added, _ = enqueue.add_links(db, [(new, each.claim.id)])
        found = db.row("SELECT id FROM urls WHERE url = ?", (target,))
        return (int(found[0]) if found else 0), None, added
    row, host, state, known_path, settled = known
    if row == each.claim.id:
        return 0, None, Counter()
    if state == "waiting" and (target == url.origin(target) + "/robots.txt" or is_way(known_path)):
        db.execute("UPDATE urls SET priority = ? WHERE id = ?", (BEFORE_ALL, row))
        return int(row), None, Counter({int(host): 0})
    if db.row("SELECT 1 FROM robots WHERE url = ?", (row,)) is None:
        return 0, None, Counter()
    if state == "waiting" or (settled or 0.0) > each.settled - DAY:
        return int(row), settled or 0.0, Counter()
    db.execute(ASK_AGAIN, (row,))
    return int(row), None, Counter({int(host): 0})


def is_way(path: str) -> bool:
    """Return True if a row with this hop *path* leads only to a robots.txt."""
    return path.startswith(Hop.PREREQUISITE) and not path.strip(Hop.PREREQUISITE + Hop.REDIRECT)


def _concerned(db: Connection, row: int) -> set[int]:
    """Return the hosts whose rules are, or will be, in URL *row*."""
    found = db.rows("SELECT id FROM hosts WHERE robots_url = ? OR robots_next = ?", (row, row))
    return {int(host[0]) for host in found}


def _mark(db: Connection, row: int, at: float) -> None:
    """Apply the rules in URL *row*, fetched *at* this time, to all hosts that point to it."""
    db.execute(ADOPT, (row,))
    db.execute(MARK, {"row": row, "at": at})
