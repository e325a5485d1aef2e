"""Waits in the frontier after the wall clock was set back between two runs: each is as long as it was meant to be.

A wait is written down as the moment of its end. Where the clock stands before the moment at which a wait began, both
are moved to the past by the same amount, so that doing it again changes nothing. Runs inside its caller's transaction.
"""

from archiver.frontier.connection import Connection

LATEST = "SELECT id, settled FROM urls WHERE id = (SELECT url FROM captures ORDER BY id DESC LIMIT 1)"
MOVE_URLS = """
UPDATE urls SET due = max(due - (settled - :now), 1), settled = :now
WHERE state = 'waiting' AND due > 0 AND settled > :now
"""
CUT_URLS = "UPDATE urls SET due = :now + :longest WHERE state = 'waiting' AND due > 0 AND due > :now + :longest"
MOVE_HOSTS = "UPDATE hosts SET parked = max(parked - :ahead, 0) WHERE parked > 0"
MOVE_FAILING = "UPDATE hosts SET failing = max(failing - :ahead, 1) WHERE failing > 0"
CUT_HOSTS = "UPDATE hosts SET parked = :now + :longest WHERE parked > :now + :longest"


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
