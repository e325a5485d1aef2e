"""Orders: what people have told a crawl to do, whether it runs or not.

A command writes a row. Each crawler that runs reads the rows that it has not taken up yet, in their sequence, acts, and
notes in its own row how far it has come. An order is done when every living crawler has taken it up. One that a crash
left open is taken up by the next run. Rows are never deleted: they are the record of what people did.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from archiver.frontier.connection import Connection, Reader

UNDO = "--undo"  # the last argument of an order that takes an earlier one back
NOW = "--now"  # the argument of an order to stop that cuts requests under way
MOST = 10_000  # orders that are read at once
MOST_KEPT = 100_000  # characters of the arguments of an order
LOOK_EVERY = 1.0  # seconds between two looks of a crawler
GRACE = 2 * LOOK_EVERY  # seconds after which a seed that was added from outside may be fetched


class Verb(StrEnum):
    """What an order asks for; the name of its command."""

    PAUSE = "pause"
    GO = "go"
    SET = "set"
    EXCLUDE = "exclude"
    INCLUDE = "include"
    BLOCK = "block"
    UNBLOCK = "unblock"
    FIRST = "first"
    NOTE = "note"
    RETRY = "retry"
    ADD = "add"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class NewOrder:
    """An order that is about to be given."""

    verb: Verb
    arguments: tuple[str, ...] = ()
    who: str = ""  # user@machine
    given: float = 0.0  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Order:
    """An order with what came of it."""

    id: int
    given: float
    who: str
    verb: str
    arguments: tuple[str, ...]
    answer: str
    answered: float | None  # None: not every crawler has taken it up yet


GIVE = """
INSERT INTO orders (given, who, verb, arguments, state, answer, answered) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
COLUMNS = "SELECT id, given, who, verb, arguments, answer, answered FROM orders"
HEARD = "UPDATE crawlers SET heard = max(heard, ?) WHERE id = ?"
AMEND = "UPDATE orders SET answer = ? WHERE id = ?"
ANSWER = "UPDATE orders SET answer = ? WHERE id = ? AND answer = ''"
CLOSE = """
UPDATE orders SET state = 'done', answered = :at
WHERE state = 'open' AND answer <> ''
AND NOT EXISTS (SELECT 1 FROM crawlers WHERE ends > :now AND ended = 0 AND heard < orders.id)
"""
PAUSED = f"{COLUMNS} WHERE verb IN ('pause', 'go') ORDER BY id DESC LIMIT 1"


def give(db: Connection, new: NewOrder, answer: str | None) -> int:
    """Write the order *new* and return its row. *answer*: what came of it, if no crawler has to take it up."""
    state, answered = ("open", None) if answer is None else ("done", new.given)
    values = new.given, new.who, new.verb.value, json.dumps(new.arguments), state, answer or "", answered
    return int(db.row(GIVE, values)[0])


def orders(db: Reader, most: int = MOST) -> list[Order]:
    """Return the latest orders, at most *most*, oldest first."""
    rows = db.execute(f"{COLUMNS} ORDER BY id DESC LIMIT ?", (most,)).fetchall()
    return [_order(row) for row in reversed(rows)]


def order(db: Reader, number: int) -> Order:
    """Return the order in the row *number*."""
    return _order(db.execute(f"{COLUMNS} WHERE id = ?", (number,)).fetchone())


def newest(db: Reader) -> int:
    """Return the row of the newest order; 0 if there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM orders").fetchone()[0])


def to_take_up(db: Reader, after: int) -> list[Order]:
    """Return the orders behind the row *after*, and the open ones before it."""
    query = f"{COLUMNS} WHERE id > ? OR state = 'open' ORDER BY id LIMIT ?"
    return [_order(row) for row in db.execute(query, (after, MOST)).fetchall()]


def take_up(db: Connection, crawler: int, answers: Mapping[int, str], now: float) -> None:
    """Note that *crawler* has taken up the orders with these *answers*, and close those that all have taken up."""
    db.execute(HEARD, (max(answers), crawler))
    db.executemany(ANSWER, [(text, row) for row, text in answers.items()])
    close(db, now)


def close(db: Connection, at: float) -> None:
    """Close the orders that every living crawler has taken up; *at*: the time of their answer."""
    db.execute(CLOSE, {"at": at, "now": db.now()})


def amend(db: Connection, row: int, answer: str) -> None:
    """Replace the answer to the order in *row*, which is known by now."""
    db.execute(AMEND, (answer, row))


def is_paused(db: Reader) -> bool:
    """Return True if the latest of the orders that pause the crawl and let it go on pauses it."""
    latest = latest_pause(db)
    return latest is not None and latest.verb == Verb.PAUSE


def latest_pause(db: Reader) -> Order | None:
    """Return the latest of the orders that pause the crawl and let it go on; None if there is none."""
    row = db.execute(PAUSED).fetchone()
    return None if row is None else _order(row)


def _order(row: Sequence[object]) -> Order:
    number, given, who, verb, arguments, answer, answered = row
    assert isinstance(number, int)
    assert isinstance(given, float)
    read = json.loads(str(arguments))
    assert isinstance(read, list)
    when = answered if isinstance(answered, float) else None
    return Order(number, given, str(who), str(verb), tuple(map(str, read)), str(answer), when)
