"""The deliveries of events: which are due, and what came of each try.

A receiver gets its events one after the other, in the order in which they happened; the end of a run comes after all
else of that run. A failed try is repeated after a pause that doubles, for `TRIES` times. Rows are never deleted: they
are the record of who was told what.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from archiver.config.event_settings import EventKind
from archiver.frontier.connection import Connection, Reader

TRIES = 20  # of one delivery: about twelve hours while a crawl runs
FIRST_PAUSE = 5.0  # seconds after the first try that failed …
LONGEST_PAUSE = 3600.0  # … and at most
WAITING, DELIVERED, GIVEN_UP = "waiting", "delivered", "given up"
LONGEST_RESULT = 500  # characters

NEXT = """
SELECT deliveries.event, events.kind, events.body, deliveries.tries, deliveries.due
FROM deliveries JOIN events ON events.id = deliveries.event
WHERE deliveries.receiver = ? AND deliveries.state = 'waiting' AND (events.kind <> ? OR events.run < ?)
ORDER BY events.run, events.kind = ?, deliveries.event LIMIT 1
"""
TRIED = """
UPDATE deliveries SET state = ?, tries = tries + 1, due = ?, tried = ?, result = ? WHERE event = ? AND receiver = ?
"""
ALL = """
SELECT events.id, events.body, deliveries.receiver, deliveries.state, deliveries.tries, deliveries.tried,
       deliveries.result
FROM events LEFT JOIN deliveries ON deliveries.event = events.id ORDER BY events.id, deliveries.receiver
"""
LEFT = "SELECT count(*) FROM deliveries WHERE state = 'waiting'"
RUN = "SELECT coalesce(max(id), 0) FROM runs"
EVERY_RUN = 1 << 62  # larger than any row of runs


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """An event that a receiver is to get."""

    event: int  # its row
    kind: str
    body: str
    tries: int  # so far
    due: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class TryResult:
    """What came of one try."""

    delivered: bool
    text: str
    final: bool = False  # no further try
    wait: float = 0.0  # seconds for which the receiver asks, before the next try


@dataclass(frozen=True, slots=True)
class ListedDelivery:
    """An event and one of those who get it, as `archiver events` shows them."""

    event: Mapping[str, Any]
    receiver: str
    state: str
    tries: int
    tried: float | None
    result: str


def run(db: Reader) -> int:
    """Return the row of the latest run."""
    return int(db.execute(RUN).fetchone()[0])


def next_delivery(db: Connection, receiver: str, before: int = EVERY_RUN) -> DueDelivery | None:
    """Return the next event for *receiver*, even if it is not due yet; ends of runs only of those *before* this one."""
    ended = EventKind.CRAWL_ENDED.value
    row = db.row(NEXT, (receiver, ended, before, ended))
    return None if row is None else DueDelivery(int(row[0]), str(row[1]), str(row[2]), int(row[3]), float(row[4]))


def note_try(db: Connection, tried: DueDelivery, receiver: str, result: TryResult, now: float) -> str:
    """Write down the *result* of a try and return the new state."""
    state = DELIVERED if result.delivered else WAITING
    if not result.delivered and (result.final or tried.tries + 1 >= TRIES):
        state = GIVEN_UP
    due = now + max(pause(tried.tries), min(result.wait, LONGEST_PAUSE))
    db.execute(TRIED, (state, due, now, result.text[:LONGEST_RESULT], tried.event, receiver))
    return state


def pause(tries: int) -> float:
    """Return the seconds between a try that failed, after so many earlier ones, and the next."""
    return float(min(FIRST_PAUSE * 2.0 ** min(tries, 30), LONGEST_PAUSE))


def number_left(db: Reader) -> int:
    """Return the number of deliveries that are to be tried again."""
    return int(db.execute(LEFT).fetchone()[0])


def listed(db: Reader) -> Iterator[ListedDelivery]:
    """Yield all events, oldest first, with each of those who get it."""
    for _, body, receiver, state, tries, tried, result in db.execute(ALL):
        event = json.loads(str(body))
        if isinstance(event, dict):
            yield ListedDelivery(
                event, str(receiver or ""), str(state or ""), int(tries or 0), tried, str(result or "")
            )
