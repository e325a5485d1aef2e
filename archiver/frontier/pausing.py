"""Hosts that refuse us: paused until the next run, which asks them again gently. Inside its caller's transaction."""

from archiver.blocks import REFUSING
from archiver.frontier.connection import Connection

RECENT = 5000  # captures among which the refused ones of a host are looked for
PAUSE = "UPDATE hosts SET refuses = ?, paused = ? WHERE id = ?"
MARK = f"""
UPDATE captures SET blocked = ? WHERE id > (SELECT max(id) FROM captures) - {RECENT} AND blocked = ''
AND timestamp >= ? AND status IN ({", ".join(map(str, sorted(REFUSING)))})
AND (SELECT host FROM urls WHERE urls.id = captures.url) = ?
"""  # noqa: S608 - constants
ASK_AGAIN = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, again = again + 1, priority = 0
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
