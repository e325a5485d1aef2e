"""The state of hosts: throttle, backoff, pauses, and waits after a change of the clock.

Everything here runs in the caller's transaction.

A wait is stored as the time of its end. If the clock was set back to before the start of a wait, both times move to the
past by the same amount, so a second correction changes nothing.
"""

from collections.abc import Mapping

from archiver.frontier.database import Connection
from archiver.policy.block_pages import REFUSING
from archiver.policy.limits import ThrottleState
from archiver.policy.retry import HostBackoff

SAVE_THROTTLE = "UPDATE hosts SET rate = ?, rate_limit = ?, concurrency = ?, slow_reason = ? WHERE id = ?"
SAVE_BACKOFF = "UPDATE hosts SET failing_since = ?, probe_interval = ?, not_before = max(not_before, ?) WHERE id = ?"
GIVE_UP = """
UPDATE urls SET state = 'failed', failure = :failure, note = :note, due = 0, settled = :now WHERE id IN (
    SELECT id FROM urls WHERE host = :host AND state = 'waiting' AND priority >= 0 LIMIT :most
)
"""
CLEAR_BACKOFF = "UPDATE hosts SET failing_since = 0, probe_interval = 0, not_before = 0 WHERE id = ?"
AT_ONCE = 20_000  # URLs in one transaction: a fifth of a second, in which nothing else can be written


def save_throttles(db: Connection, throttles: Mapping[int, ThrottleState]) -> None:
    """Save the newest throttle of each host."""
    rows = [(each.rate, each.limit, each.width, each.why, host) for host, each in throttles.items()]
    db.executemany(SAVE_THROTTLE, rows)


def save_backoff(db: Connection, host: int, backoff: HostBackoff) -> None:
    """Save the backoff of *host*. Until its next probe no request goes to it."""
    db.execute(SAVE_BACKOFF, (backoff.since, backoff.pause, backoff.until, host))


def give_up(db: Connection, host: int, failure: str, note: str, now: float) -> int:
    """Mark the next `AT_ONCE` waiting URLs of *host* as failed and return how many there were.

    A robots.txt, and a redirect to one, stays queued: other hosts may need it, and it has its own tries. The backoff
    is cleared, so URLs that are queued later are fetched as usual.
    """
    terms = {"host": host, "failure": failure, "note": note, "now": now, "most": AT_ONCE}
    db.execute(CLEAR_BACKOFF, (host,))
    return db.execute(GIVE_UP, terms).rowcount


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
    terms = {"now": now, "longest": longest, "ahead": ahead}
    db.execute(MOVE_URLS, terms)
    if ahead:
        db.execute(MOVE_HOSTS, terms)
        db.execute(MOVE_FAILING, terms)
        db.execute("UPDATE urls SET settled = ? WHERE id = ?", (now, row))
    db.execute(CUT_URLS, terms)
    db.execute(CUT_HOSTS, terms)
    return ahead


RECENT = 5000  # captures among which the refused ones of a host are looked for
PAUSE = "UPDATE hosts SET blocked_since = ?, paused = ? WHERE id = ?"
MARK = f"""
UPDATE captures SET blocked = ? WHERE id > (SELECT max(id) FROM captures) - {RECENT} AND blocked = ''
AND timestamp >= ? AND status IN ({", ".join(map(str, sorted(REFUSING)))})
AND (SELECT host FROM urls WHERE urls.id = captures.url) = ?
"""  # noqa: S608 - constants
ASK_AGAIN = """
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
    return bool(db.execute(ASK_AGAIN, (row,)).rowcount)


def pause(db: Connection, host: int, since: float, asked: tuple[int, int] | None) -> None:
    """Pause *host*, which blocks us *since* then (0: it does not), and mark its refusals as such.

    *asked* is the row of the page that was fetched again and the status of its good answer, which is restored.
    """
    db.execute(PAUSE, (since, int(since > 0), host))
    if since:
        db.execute(MARK, (UNMARKED, int(since * 1e6), host))
    if asked is not None:
        db.execute(RESTORE, (asked[1], asked[0]))
