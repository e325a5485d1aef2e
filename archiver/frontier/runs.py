"""The runs of a crawl: when each began and ended, and why; and the counts that a run begins with.

A run that was killed has no end. Writing happens inside the caller's transaction, reading on any connection.
"""

import sqlite3
from dataclasses import dataclass

from archiver.frontier.connection import Connection
from archiver.frontier.readonly import VERDICT_SINCE, version_of

BEGIN = "INSERT INTO runs (began) VALUES (?)"
RELEASE = "UPDATE hosts SET paused = 0 WHERE paused = 1"
END = "UPDATE runs SET ended = ?, code = ?, reason = ? WHERE id = (SELECT max(id) FROM runs)"
_OF_RULES = "(SELECT count(*) FROM urls WHERE priority < 0 AND state = '{}')"  # rows of robots.txt, by their index
COUNTS = f"""
SELECT coalesce(sum(waiting), 0), coalesce(sum(archived), 0) - {_OF_RULES.format("archived")},
       coalesce(sum(failed), 0) - {_OF_RULES.format("failed")},
       coalesce(sum(excluded), 0) - {_OF_RULES.format("excluded")}, coalesce(sum(spent), 0), coalesce(sum(received), 0),
       (SELECT count(*) FROM seeds WHERE EXISTS (
            SELECT 1 FROM captures WHERE captures.url = seeds.url AND blocked = ''
                AND (status BETWEEN 200 AND 399 OR status = 0))), coalesce(sum(held), 0)
FROM hosts
"""  # noqa: S608 - constants
LAST = "SELECT began, coalesce(ended, 0), coalesce(code, -1), reason FROM runs ORDER BY id DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the database knows it."""

    began: float  # seconds since the epoch
    ended: float  # 0: it still runs, or it was killed
    code: int  # of model.ExitCode; -1 where it has not ended
    reason: str


def begin(db: Connection, now: float) -> None:
    """Note that a run begins; hosts that were paused in the one before may be asked again."""
    db.execute(BEGIN, (now,))
    db.execute(RELEASE)


def end(db: Connection, code: int, reason: str, now: float) -> None:
    """Note how the latest run ended."""
    db.execute(END, (now, code, reason))


def last(db: sqlite3.Connection) -> RunRow | None:
    """Return the latest run, None where no run is known."""
    if version_of(db) < VERDICT_SINCE:
        return None
    row = db.execute(LAST).fetchone()
    return None if row is None else RunRow(*row)
