"""Writes down what happens in a crawl, for those who get its events.

An event is a row of the transaction that makes it true: a crash neither loses nor invents one. Its JSON is made then
and never changes, so each try to deliver it sends the same bytes. A row of `deliveries` says who gets it. What can
happen only once, such as the end of a file, has a key, and is written once, whatever is repeated. An event that no
receiver wants is not written.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from archiver.config.event_settings import DATA_FIELDS, EventKind, Receiver
from archiver.frontier import hosts, outcomes, retry
from archiver.frontier.connection import Connection, Reader
from archiver.frontier.orders import table
from archiver.frontier.orders.table import NewOrder, Verb
from archiver.humanize import iso
from archiver.model import Event, ExitCode, FileState, Settlement

VERSION = 1  # of the JSON
MOST_OF_SITES = 1000  # events of one kind in a crawl that sites can cause; the report has all of them
LONGEST = 2000  # characters of a text from the network
OF_SITES = frozenset((EventKind.HOST_BLOCKED, EventKind.HOST_GIVEN_UP, EventKind.PATTERN_HELD))

RUN = "SELECT coalesce(max(id), 0) FROM runs"
OF_KIND = "SELECT count(*) FROM events WHERE kind = ?"
INSERT = "INSERT INTO events (once, kind, run, body) VALUES (?, ?, ?, ?) ON CONFLICT (once) DO NOTHING RETURNING id"
DELIVER = "INSERT INTO deliveries (event, receiver) VALUES (?, ?)"
HOST = "SELECT key, waiting FROM hosts WHERE id = ?"
SEEDS = "SELECT count(*) FROM seeds"
BLOCKED = "SELECT count(*) FROM hosts WHERE paused = 1 AND blocked_since > 0"

Act = Callable[[Connection, int], int | None]  # on a host
ReadResult = Callable[[Reader], Mapping[str, object]]  # the report's part of `crawl-ended`


def no_result(_db: Reader) -> Mapping[str, object]:
    """Return the result of a crawl that writes no report."""
    return {"grade": "", "headline": "", "trouble": False, "failures": {}, "findings": []}


@dataclass(frozen=True, slots=True)
class EventCrawl:
    """The crawl, as its events name it."""

    collection: str  # name of its folder
    machine: str
    result: ReadResult = no_result


class EventNotes:
    """Writes the events that *receivers* want. Each method runs in the caller's transaction."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        crawl: EventCrawl,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._receivers = receivers
        self._wanted = frozenset(kind for each in receivers for kind in each.kinds)
        self._crawl = crawl
        self._now = now
        self._new_id = new_id

    def started(self, db: Connection, act: Callable[[Connection], None]) -> None:
        """Begin a run by *act*."""
        act(db)
        if EventKind.CRAWL_STARTED in self._wanted:
            data = {"seeds": _number(db, SEEDS), "waiting": _counts(db)["waiting"]}
            self._note(db, EventKind.CRAWL_STARTED, str(_number(db, RUN)), data)

    def ended(self, db: Connection, code: int, reason: str, now: float) -> None:
        """Record how the latest run ended, and why."""
        outcomes.end(db, code, reason, now)
        if EventKind.CRAWL_ENDED in self._wanted:
            ending = {"exit_code": int(code), "verdict": ExitCode(code).name.lower(), "reason": reason[:LONGEST]}
            seeds = {"seeds": _number(db, SEEDS), "blocked_hosts": _number(db, BLOCKED)}
            data = {**ending, **seeds, **_counts(db), **self._crawl.result(db)}
            self._note(db, EventKind.CRAWL_ENDED, str(_number(db, RUN)), data)

    def settled(self, db: Connection, settlements: Sequence[Settlement], files: Sequence[FileState]) -> None:
        """Note the files that are closed and the patterns that are held, now that a batch is written."""
        if EventKind.FILE_CLOSED in self._wanted:
            for file in files:
                if file.closed:
                    data = {"name": file.name, "bytes": file.size, "digest": file.digest}
                    self._note(db, EventKind.FILE_CLOSED, file.name, data)
        if EventKind.PATTERN_HELD in self._wanted:
            for note, example in dict(_held(settlements)).items():
                pattern, rule = retry.note_parts(note)
                data = {"pattern": pattern[:LONGEST], "rule": rule, "example": example[:LONGEST]}
                self._note(db, EventKind.PATTERN_HELD, note, data)

    def pausing(self, since: float, asked: tuple[int, int] | None) -> Act:
        """Return what pauses a host that blocks us *since* then (0: it does not)."""
        return partial(self._pause, since=since, asked=asked)

    def _pause(self, db: Connection, host: int, since: float, asked: tuple[int, int] | None) -> None:
        hosts.pause(db, host, since, asked)
        if since and EventKind.HOST_BLOCKED in self._wanted:
            key, waiting = db.row(HOST, (host,))
            data = {"host": key, "since": iso(since), "waiting": waiting}
            self._note(db, EventKind.HOST_BLOCKED, f"{_number(db, RUN)} {key}", data)

    def giving_up(self, failure: str, note: str, now: float, before: int) -> Act:
        """Return what gives a host up, of which *before* URLs have been given up already."""
        return partial(self._give_up, failure=failure, note=note, now=now, before=before)

    def _give_up(self, db: Connection, host: int, failure: str, note: str, now: float, before: int) -> int:
        count = hosts.give_up(db, host, failure, note, now)
        if count < hosts.AT_ONCE and EventKind.HOST_GIVEN_UP in self._wanted:
            key, _ = db.row(HOST, (host,))
            data = {"host": key, "failure": failure, "reason": note[:LONGEST], "urls": before + count}
            self._note(db, EventKind.HOST_GIVEN_UP, f"{key} {now}", data)
        return count

    def login_lost(self, db: Connection, paused: Sequence[int], page: str, reason: str) -> None:
        """Pause these hosts, because no login at *page* works any more."""
        hosts.pause_until_login(db, paused)
        if page and EventKind.LOGIN_LOST in self._wanted:
            data = {"page": page[:LONGEST], "reason": reason[:LONGEST]}
            self._note(db, EventKind.LOGIN_LOST, f"{_number(db, RUN)} {page}", data)

    def disk_low(self, db: Connection, reason: str) -> None:
        """Note once in a run that the disk is low."""
        self._note(db, EventKind.DISK_LOW, str(_number(db, RUN)), {"reason": reason[:LONGEST]})

    def ordered(self, db: Connection, new: NewOrder, answer: str | None) -> int:
        """Write an order that the crawl gives itself, and return its row."""
        order = table.give(db, new, answer)
        if new.verb is Verb.PAUSE:
            self._note(db, EventKind.CRAWL_PAUSED, str(order), {"reason": " ".join(new.arguments)[:LONGEST]})
        return order

    def test_body(self, message: str) -> str:
        """Return the JSON of an event that is not written down."""
        return self._body(EventKind.TEST, 0, {"message": message})

    def _note(self, db: Connection, kind: EventKind, key: str, data: Mapping[str, object]) -> None:
        """Write an event, once for each *key*, and who gets it."""
        takers = [each.key(db.machine) for each in self._receivers if kind in each.kinds]
        if not takers or (kind in OF_SITES and _number(db, OF_KIND, kind.value) >= MOST_OF_SITES):
            return
        run = _number(db, RUN)
        once = sha256(f"{db.machine}\n{kind}\n{key}".encode(errors="surrogatepass")).hexdigest()
        row = db.row(INSERT, (once, kind.value, run, self._body(kind, run, data)))
        if row is not None:
            db.executemany(DELIVER, [(int(row[0]), taker) for taker in dict.fromkeys(takers)])

    def _body(self, kind: EventKind, run: int, data: Mapping[str, object]) -> str:
        assert data.keys() == DATA_FIELDS[kind].keys(), kind
        crawl = {"collection": self._crawl.collection, "machine": self._crawl.machine, "run": run}
        event = {"version": VERSION, "id": self._new_id(), "at": iso(self._now()), "crawl": crawl, "event": kind.value}
        return json.dumps({**event, "data": data})


def _held(settlements: Sequence[Settlement]) -> Iterator[tuple[str, str]]:
    """Yield the note and the URL of each link that is held."""
    for each in settlements:
        yield from ((new.held, new.url) for new in each.found if new.held)
        if each.event is Event.HOLD and each.note:
            yield each.note, each.claim.url


def _number(db: Connection, sql: str, *values: object) -> int:
    return int(db.row(sql, values)[0])


def _counts(db: Connection) -> dict[str, Any]:
    """Return the counts of the whole crawl."""
    waiting, archived, failed, excluded, _, received, good, held = map(int, db.row(outcomes.COUNTS))
    urls = {"archived": archived, "failed": failed, "excluded": excluded, "held": held, "waiting": waiting}
    return {"good_seeds": good, **urls, "received": received}
