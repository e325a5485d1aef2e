"""The state of hosts: robots.txt, throttle, backoff, pauses, and waits after a change of the clock.

Everything here runs in the caller's transaction.

The rules of a host are in a row of robots.txt, or will be. A redirect points the host to another row, which is visited
before everything else and gives the rules of every host that points to it. A target that the crawl knows as a page has
no rules (RFC 9309 §2.3.1.2 lets it count as unavailable). Rules are fetched again after a day. They apply until newer
ones are stored, also if the new fetch fails (§2.4).

A wait is stored as the time of its end. If the clock was set back to before the start of a wait, both times move to the
past by the same amount, so a second correction changes nothing.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from archiver import url
from archiver.frontier import url_queue
from archiver.frontier.connection import Connection
from archiver.frontier.port import HostRow, InheritedThrottle
from archiver.model import Hop, NewUrl, Robots, Settlement
from archiver.policy.block_pages import REFUSING
from archiver.policy.limits import ThrottleState
from archiver.policy.retry import HostBackoff

INHERIT = """
INSERT INTO hosts (key, not_before, rate, rate_limit, concurrency, slow_reason) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
SAVE_THROTTLE = "UPDATE hosts SET rate = ?, rate_limit = ?, concurrency = ?, slow_reason = ? WHERE id = ?"
SAVE_BACKOFF = "UPDATE hosts SET failing_since = ?, probe_interval = ?, not_before = max(not_before, ?) WHERE id = ?"
GIVE_UP = """
UPDATE urls SET state = CASE language WHEN '' THEN 'failed' ELSE 'archived' END, language = '', tries_before = 0,
    failure = CASE language WHEN '' THEN :failure ELSE failure END, note = :note, due = 0, settled = :now
WHERE id IN (
    SELECT id FROM urls WHERE host = :host AND state = 'waiting' AND priority >= 0 LIMIT :most
)
"""
CLEAR_BACKOFF = "UPDATE hosts SET failing_since = 0, probe_interval = 0, not_before = 0 WHERE id = ?"
AT_ONCE = 20_000  # URLs in one transaction: a fifth of a second, in which nothing else can be written


def save_throttles(db: Connection, throttles: Mapping[int, ThrottleState]) -> None:
    """Save the newest throttle of each host."""
    rows = [(each.rate, each.limit, each.width, each.why, host) for host, each in throttles.items()]
    db.executemany(SAVE_THROTTLE, rows)


def inherit_throttles(db: Connection, inherited: Sequence[InheritedThrottle]) -> None:
    """Add hosts with *inherited* throttles; a host that has a row keeps its own."""
    db.executemany(INHERIT, inherited)


def save_backoff(db: Connection, host: int, backoff: HostBackoff) -> None:
    """Save the backoff of *host*. Until its next probe no request goes to it."""
    db.execute(SAVE_BACKOFF, (backoff.since, backoff.pause, backoff.until, host))


def give_up(db: Connection, host: int, failure: str, note: str, now: float) -> int:
    """Mark the next `AT_ONCE` waiting URLs of *host* as failed and return how many there were.

    A robots.txt, and a redirect to one, stays queued: other hosts may need it, and it has its own tries. The backoff
    is cleared, so URLs that are queued later are fetched as usual.
    """
    parameters = {"host": host, "failure": failure, "note": note, "now": now, "most": AT_ONCE}
    db.execute(CLEAR_BACKOFF, (host,))
    return db.execute(GIVE_UP, parameters).rowcount


LATEST = "SELECT id, settled FROM urls WHERE id = (SELECT url FROM captures ORDER BY id DESC LIMIT 1)"
MOVE_URLS = """
UPDATE urls SET due = max(due - (settled - :now), 1), settled = :now
WHERE state = 'waiting' AND due > 0 AND settled > :now
"""
CUT_URLS = "UPDATE urls SET due = :now + :longest WHERE state = 'waiting' AND due > 0 AND due > :now + :longest"
MOVE_HOSTS = "UPDATE hosts SET not_before = max(not_before - :ahead, 0) WHERE not_before > 0"
MOVE_FAILING = "UPDATE hosts SET failing_since = max(failing_since - :ahead, 1) WHERE failing_since > 0"
CUT_HOSTS = "UPDATE hosts SET not_before = :now + :longest WHERE not_before > :now + :longest"


def correct_waits(db: Connection, now: float, longest: float) -> float:
    """Correct times too far in the future; return by how many seconds the latest answer is."""
    row, settled = db.row(LATEST) or (0, None)
    ahead = max(0.0, (settled or 0.0) - now)
    parameters = {"now": now, "longest": longest, "ahead": ahead}
    db.execute(MOVE_URLS, parameters)
    if ahead:
        db.execute(MOVE_HOSTS, parameters)
        db.execute(MOVE_FAILING, parameters)
        db.execute("UPDATE urls SET settled = ? WHERE id = ?", (now, row))
    db.execute(CUT_URLS, parameters)
    db.execute(CUT_HOSTS, parameters)
    return ahead


RECENT = 5000  # captures among which the refused ones of a host are looked for
PAUSE = "UPDATE hosts SET blocked_since = ?, paused = ? WHERE id = ?"
MARK_REFUSALS = f"""
UPDATE captures SET blocked = ? WHERE id > (SELECT max(id) FROM captures) - {RECENT} AND blocked = ''
AND timestamp >= ? AND status IN ({", ".join(map(str, sorted(REFUSING)))})
AND (SELECT host FROM urls WHERE urls.id = captures.url) = ?
"""  # noqa: S608 - constants
SAME = 3  # pages with one body, of a host that refuses us: that is what it refuses us with
MARK_SAME = f"""
UPDATE captures SET blocked = ? WHERE id > (SELECT max(id) FROM captures) - {RECENT} AND blocked = ''
AND status BETWEEN 200 AND 299 AND (SELECT host FROM urls WHERE urls.id = captures.url) = ? AND payload_digest IN (
    SELECT payload_digest FROM captures CROSS JOIN urls ON urls.id = captures.url
    WHERE captures.id > (SELECT max(id) FROM captures) - {RECENT} AND timestamp >= ? AND host = ?
    GROUP BY payload_digest HAVING count(DISTINCT urls.id) >= {SAME})
"""  # noqa: S608 - constants
QUEUE_PAGE_AGAIN = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, requeued = requeued + 1, priority = 0
WHERE id = ? AND state = 'archived'
"""
RESTORE = "UPDATE urls SET status = ?, note = '' WHERE id = ? AND state = 'archived'"
GOOD_PAGE = """
SELECT urls.id, urls.status FROM urls WHERE host = ? AND state = 'archived' AND priority >= 0
AND status BETWEEN 200 AND 299 ORDER BY hop NOT IN ('L', 'R'), urls.id LIMIT 1
"""
UNMARKED = "a run of refusals"


def find_good_page(db: Connection, host: int) -> tuple[int, int] | None:
    """Return row and status of a page of *host* that answered 2xx; None if there is none."""
    row = db.row(GOOD_PAGE, (host,))
    return None if row is None else (int(row[0]), int(row[1]))


def ask_again(db: Connection, row: int) -> bool:
    """Queue an archived URL again, before all others of its host. Return False if it is not archived."""
    return bool(db.execute(QUEUE_PAGE_AGAIN, (row,)).rowcount)


def pause(db: Connection, host: int, since: float, asked: tuple[int, int] | None) -> None:
    """Pause *host*, which blocks us *since* then (0: it does not), and mark its refusals as such.

    *asked* is the row of the page that was fetched again and the status of its good answer, which is restored.
    """
    db.execute(PAUSE, (since, int(since > 0), host))
    if since:
        db.execute(MARK_REFUSALS, (UNMARKED, int(since * 1e6), host))
        db.execute(MARK_SAME, (UNMARKED, host, int(since * 1e6), host))
    if asked is not None:
        db.execute(RESTORE, (asked[1], asked[0]))


def pause_until_login(db: Connection, hosts: Sequence[int]) -> None:
    """Pause *hosts*, which do not block us, for this run: a person must log in first."""
    db.executemany("UPDATE hosts SET paused = 1 WHERE id = ?", [(host,) for host in hosts])


BEFORE_ALL = -1  # the priority of rows that lead to a robots.txt
DAY = 86_400.0  # seconds for which an answer may be used (RFC 9309 §2.4)

QUEUE_ROBOTS = """
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority) VALUES (?, ?, 'P', 'P', 0, 0, -1)
ON CONFLICT DO NOTHING
"""
ROBOTS_BEFORE_ALL = "UPDATE urls SET priority = -1 WHERE url = ? AND state = 'waiting' AND priority <> -1"
QUEUE_ROBOTS_AGAIN = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, requeued = requeued + 1, priority = -1
WHERE id = ? AND state <> 'waiting'
"""
POINT_TO_ROBOTS = """
UPDATE hosts SET (robots_url, robots) = (
    SELECT id, CASE state WHEN 'waiting' THEN 'unknown' WHEN 'archived' THEN 'known' ELSE 'unreachable' END
    FROM urls WHERE url = ?
) WHERE id = ?
"""
ROBOTS_OF = "SELECT id, key, robots_url, robots FROM hosts WHERE id IN (SELECT value FROM json_each(?))"
AWAIT_ROBOTS = """
UPDATE hosts SET robots_next = CASE robots WHEN 'known' THEN :row END,
    robots_url = CASE robots WHEN 'known' THEN robots_url ELSE :row END,
    robots = CASE robots WHEN 'known' THEN 'known' ELSE 'unknown' END
WHERE id = :host
"""
USE_OWN_ROBOTS = "UPDATE hosts SET robots_next = ? WHERE id = ? AND robots_url IS NOT NULL"
MOVE_ROBOTS = """
UPDATE hosts SET robots_url = CASE WHEN robots_url = :row AND robots = 'unknown' THEN :target ELSE robots_url END,
    robots_next = CASE robots_next WHEN :row THEN :target ELSE robots_next END
WHERE robots_url = :row OR robots_next = :row
"""
KEEP_RULES = "UPDATE hosts SET robots_next = NULL, robots_at = ? WHERE robots_next = ? AND robots = 'known'"
STORE_ROBOTS = """
INSERT INTO robots (url, status, body) VALUES (:row, :status, :body) ON CONFLICT (url) DO UPDATE
SET status = :status, body = :body WHERE :status BETWEEN 200 AND 499 OR robots.status NOT BETWEEN 200 AND 499
"""  # an error does not replace rules
ADOPT_ROBOTS = "UPDATE hosts SET robots_url = robots_next, robots_next = NULL WHERE robots_next = ?"
APPLY_RULES = """
UPDATE hosts SET robots_at = :at, robots =
    CASE WHEN (SELECT status FROM robots WHERE url = :row) BETWEEN 200 AND 499 THEN 'known' ELSE 'unreachable' END
WHERE robots_url = :row
"""


def ask_robots(db: Connection, hosts: Iterable[int]) -> None:
    """Queue robots.txt of *hosts* before everything else, also if it was fetched before."""
    found = db.rows(ROBOTS_OF, (json.dumps(list(hosts)),))
    to_ask = [
        (f"{key}/robots.txt", host, asked) for host, key, asked, known in found if not asked or known != "unknown"
    ]
    db.executemany(QUEUE_ROBOTS, [(address, host) for address, host, _ in to_ask])
    db.executemany(ROBOTS_BEFORE_ALL, [(address,) for address, _, _ in to_ask])
    db.executemany(POINT_TO_ROBOTS, [(address, host) for address, host, asked in to_ask if not asked])
    for address, host, asked in to_ask:
        if asked:
            row = (db.row("SELECT id FROM urls WHERE url = ?", (address,)) or (0,))[0]
            db.execute(QUEUE_ROBOTS_AGAIN, (row,))
            db.execute(AWAIT_ROBOTS, {"row": row, "host": host})


def queue_robots(db: Connection, wanted: Collection[int]) -> tuple[list[HostRow], int]:
    """Do the same; return the hosts, and how many rows were queued."""
    before = url_queue.count_waiting(db, wanted)
    ask_robots(db, wanted)
    return url_queue.host_rows(db, wanted), url_queue.count_waiting(db, wanted) - before


def robots_to_ask(db: Connection, hosts: Collection[int]) -> list[int]:
    """Return those of *hosts* whose robots.txt is not known and not queued."""
    query = "SELECT id FROM hosts WHERE robots_url IS NULL AND id IN (SELECT value FROM json_each(?))"
    return [int(row[0]) for row in db.rows(query, (json.dumps(list(hosts)),))]


def robots_in_order(settlements: Sequence[Settlement]) -> list[tuple[Settlement, Robots]]:
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


def store_robots(
    db: Connection, each: Settlement, robots: Robots, moved: dict[str, str]
) -> tuple[set[int], Counter[int]]:
    """Store a robots.txt answer or redirect. Return the hosts that it concerns, and the number of new URLs by host.

    *moved* maps redirects of this batch to their targets, and is updated.
    """
    row, added = each.claim.id, Counter[int]()
    if each.claim.url == url.origin(each.claim.url) + "/robots.txt":
        db.execute(USE_OWN_ROBOTS, (row, each.claim.host))
    hosts = _concerned(db, row)
    if robots.redirect is not None:
        end = moved.get(robots.redirect, robots.redirect)
        target, answered, added = _lead_to(db, each, end)
        if target:
            moved[each.claim.url] = end
            db.execute(MOVE_ROBOTS, {"row": row, "target": target})
            if answered is not None:
                _apply_rules(db, target, answered)
            return hosts | _concerned(db, target), added
    if not 200 <= robots.status < 500:
        db.execute(KEEP_RULES, (each.settled, row))
    db.execute(STORE_ROBOTS, {"row": row, "status": robots.status, "body": robots.body})
    _apply_rules(db, row, each.settled)
    return hosts, added


def _lead_to(db: Connection, each: Settlement, target: str) -> tuple[int, float | None, Counter[int]]:
    """Return the row of *target* if it can hold rules, or 0; and when it was fetched, if within a day."""
    path = each.claim.path + Hop.REDIRECT
    new = NewUrl(target, Hop.REDIRECT, path, depth=0, off_scope_hops=0, priority=BEFORE_ALL)
    known = db.row("SELECT id, host, state, path, settled FROM urls WHERE url = ?", (target,))
    if known is None:
        added, _ = url_queue.add_links(db, [(new, each.claim.id)])
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
    db.execute(QUEUE_ROBOTS_AGAIN, (row,))
    return int(row), None, Counter({int(host): 0})


def is_way(path: str) -> bool:
    """Return True if a row with this hop *path* leads only to a robots.txt."""
    return path.startswith(Hop.PREREQUISITE) and not path.strip(Hop.PREREQUISITE + Hop.REDIRECT)


def _concerned(db: Connection, row: int) -> set[int]:
    """Return the hosts whose rules are, or will be, in URL *row*."""
    found = db.rows("SELECT id FROM hosts WHERE robots_url = ? OR robots_next = ?", (row, row))
    return {int(host[0]) for host in found}


def _apply_rules(db: Connection, row: int, at: float) -> None:
    """Apply the rules in URL *row*, fetched *at* this time, to all hosts that point to it."""
    db.execute(ADOPT_ROBOTS, (row,))
    db.execute(APPLY_RULES, {"row": row, "at": at})
