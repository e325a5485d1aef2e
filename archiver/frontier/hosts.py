"""A host's ways: how it wants to be asked, and how it fails. Runs inside its caller's transaction.

Waits in the frontier after the wall clock was set back between two runs: each is as long as it was meant to be.

A wait is written down as the moment of its end. Where the clock stands before the moment at which a wait began, both
are moved to the past by the same amount, so that doing it again changes nothing. Runs inside its caller's transaction.

Hosts that refuse us: paused until the next run, which asks them again gently. Inside its caller's transaction.
"""

from collections.abc import Mapping

from archiver.frontier.database import Connection
from archiver.policy.block_pages import REFUSING
from archiver.policy.host_backoff import HostBackoff
from archiver.policy.throttle import ThrottleState

LEARN = "UPDATE hosts SET rate = ?, rate_limit = ?, concurrency = ?, slow_reason = ? WHERE id = ?"
DOZE = "UPDATE hosts SET failing_since = ?, probe_interval = ?, not_before = max(not_before, ?) WHERE id = ?"
GIVE_UP = """
UPDATE urls SET state = 'failed', failure = :failure, note = :note, due = 0, settled = :now WHERE id IN (
    SELECT id FROM urls WHERE host = :host AND state = 'waiting' AND priority >= 0 LIMIT :most
)
"""
FORGET = "UPDATE hosts SET failing_since = 0, probe_interval = 0, not_before = 0 WHERE id = ?"
AT_ONCE = 20_000  # URLs in one transaction: a fifth of a second, in which nothing else can be written


def keep(db: Connection, lessons: Mapping[int, ThrottleState]) -> None:
    """What hosts have taught us, each the newest."""
    rows = [(each.rate, each.limit, each.width, each.why, host) for host, each in lessons.items()]
    db.executemany(LEARN, rows)


def doze(db: Connection, host: int, slumber: HostBackoff) -> None:
    """How *host* fails; while it sleeps it is not asked before its next probe."""
    db.execute(DOZE, (slumber.since, slumber.pause, slumber.until, host))


def give_up(db: Connection, host: int, failure: str, note: str, now: float) -> int:
    """The next `AT_ONCE` URLs that wait on *host* have failed; how many there were.

    What leads to a robots.txt waits on: other hosts may wait for it, and it fails by its own tries. If the host has
    something to fetch again one day, it is asked as if nothing had been.
    """
    terms = {"host": host, "failure": failure, "note": note, "now": now, "most": AT_ONCE}
    db.execute(FORGET, (host,))
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


def set_back(db: Connection, now: float, longest: float) -> float:
    """Move what lies too far in the future; by how many seconds the latest answer does."""
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
GAVE = """
SELECT urls.id, urls.status FROM urls WHERE host = ? AND state = 'archived' AND priority >= 0
AND status BETWEEN 200 AND 299 ORDER BY hop NOT IN ('L', 'R'), urls.id LIMIT 1
"""
UNMARKED = "a run of refusals"


def gave(db: Connection, host: int) -> tuple[int, int] | None:
    """Return a page that *host* gave, as its row and status; None where it gave nothing."""
    row = db.row(GAVE, (host,))
    return None if row is None else (int(row[0]), int(row[1]))


def ask_again(db: Connection, row: int) -> bool:
    """Let an archived URL wait once more, before all others of its host; whether it does."""
    return bool(db.execute(ASK_AGAIN, (row,)).rowcount)


def pause(db: Connection, host: int, since: float, asked: tuple[int, int] | None) -> None:
    """Pause *host*, which refuses us *since* then (0: it does not), and mark its refusals as such.

    *asked* is the page that was asked for again, and the status of its good answer, which is the one that counts.
    """
    db.execute(PAUSE, (since, int(since > 0), host))
    if since:
        db.execute(MARK, (UNMARKED, int(since * 1e6), host))
    if asked is not None:
        db.execute(RESTORE, (asked[1], asked[0]))
