"""A host's ways: how it wants to be asked, and how it fails. Runs inside its caller's transaction."""

from collections.abc import Mapping

from archiver.adapting import Lesson
from archiver.frontier.connection import Connection
from archiver.slumber import Slumber

LEARN = "UPDATE hosts SET rate = ?, rate_limit = ?, width = ?, slowed = ? WHERE id = ?"
DOZE = "UPDATE hosts SET failing = ?, pause = ?, parked = max(parked, ?) WHERE id = ?"
GIVE_UP = """
UPDATE urls SET state = 'failed', failure = :failure, note = :note, due = 0, settled = :now WHERE id IN (
    SELECT id FROM urls WHERE host = :host AND state = 'waiting' AND priority >= 0 LIMIT :most
)
"""
FORGET = "UPDATE hosts SET failing = 0, pause = 0, parked = 0 WHERE id = ?"
AT_ONCE = 20_000  # URLs in one transaction: a fifth of a second, in which nothing else can be written


def keep(db: Connection, lessons: Mapping[int, Lesson]) -> None:
    """What hosts have taught us, each the newest."""
    rows = [(each.rate, each.limit, each.width, each.why, host) for host, each in lessons.items()]
    db.executemany(LEARN, rows)


def doze(db: Connection, host: int, slumber: Slumber) -> None:
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
