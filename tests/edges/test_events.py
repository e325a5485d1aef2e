"""Events in the database: written with what they report, delivered in order, tried again with growing pauses."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from archiver.config.event_settings import DATA_FIELDS, EVENT_FIELDS, KINDS, EventKind, Receiver
from archiver.frontier.events import deliveries
from archiver.frontier.events.deliveries import DELIVERED, GIVEN_UP, TRIES, WAITING, TryResult
from archiver.frontier.events.notes import MOST_OF_SITES, EventCrawl, EventNotes
from archiver.frontier.orders.table import NewOrder, Verb
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Event, ExitCode, FileState, Hop, NewUrl, Settlement
from archiver.tools.report.report import ended_json
from fixtures.archives import rows
from fixtures.queued_urls import SEEDS, two_hosts, waiting

SH, HOOK = Receiver(KINDS, "./all.sh"), Receiver((EventKind.CRAWL_ENDED, EventKind.FILE_CLOSED), "https://example.org/")
CRAWL = EventCrawl("c", "machine", ended_json)
CLOSED = FileState("a.warc.gz", 100, closed=True, digest="sha256:00")
NOTE = "trap-budget: 1100: http://h0.example/calendar/N"
AGAIN, PATTERN = "archiver retry DIR", "http://h0.example/calendar/N"
FINDINGS = [
    *(("seeds", f"http://h1.example/{page} failed: connect, gone", "", True) for page in range(4)),
    ("seeds", "http://h1.example/4 failed: connect, gone", f"{AGAIN} && archiver resume DIR", True),
    ("pages", "5 pages: 5 no response (connect)", f"{AGAIN} && archiver resume DIR", True),
    (
        "held",
        f"2 URLs are held: {PATTERN} looks endless (trap-budget: 1100), such as http://h0.example/calendar/1",
        f"{AGAIN} --held {PATTERN} && archiver resume DIR",
        True,
    ),
    ("waiting", "5 URLs are waiting", "archiver resume DIR --max-urls 0", False),
]
FAILED, WORKED = TryResult(delivered=False, text="status 503"), TryResult(delivered=True, text="status 204")


def noting(frontier: SqliteFrontier, *receivers: Receiver) -> None:
    """Let *frontier* write events down for *receivers*, at one time and with numbers for ids."""
    ids = itertools.count()
    frontier.note_events(EventNotes(receivers, CRAWL, lambda: 1000.0, lambda: str(next(ids))))


def noted(folder: Path) -> list[dict[str, Any]]:
    """Return all events."""
    return [json.loads(str(body)) for (body,) in rows(folder, "SELECT body FROM events ORDER BY id")]


def held(number: int, note: str = NOTE) -> NewUrl:
    """Return a link that is held."""
    return NewUrl(f"http://h0.example/calendar/{number}", Hop.LINK, "L", 1, 0, 1, held=note)


async def live(frontier: SqliteFrontier) -> None:
    """Let everything happen that is an event, some of it twice."""
    await frontier.begin_run(1000.0)
    claim = (await waiting(frontier, SEEDS))[SEEDS[0]]
    found = Settlement(claim, Event.RETRY, due=2000.0, found=(held(1), held(2)), settled=1000.0)
    for _ in range(2):
        await frontier.settle((found,), (CLOSED, FileState("b.warc.gz", 5, closed=False)))
    await frontier.pause(1, 900.0, None)
    await frontier.pause(1, 0.0, None)
    await frontier.give_up(2, "connect", "gone", 1000.0)
    await frontier.pause_until_login((1,), "http://h0.example/login", "the password is wrong")
    await frontier.pause_until_login((1,))
    await frontier.note_low_disk("5 bytes are free")
    await frontier.note_low_disk("4 bytes are free")
    await frontier.give_order(NewOrder(Verb.PAUSE, ("the disk is low",), "archiver", 1000.0), None)
    await frontier.give_order(NewOrder(Verb.GO, (), "me", 1000.0), None)
    await frontier.end_run(ExitCode.LIMIT, "--max-urls 1 is reached", 1100.0)


def test_each_event_is_written_once_with_its_fields(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            noting(frontier, SH, HOOK)
            await live(frontier)

    asyncio.run(run())
    found = noted(crawl_folder)
    assert {each["event"]: each["data"] for each in found} == {
        "crawl-started": {"seeds": 10, "waiting": 10},
        "file-closed": {"name": "a.warc.gz", "bytes": 100, "digest": "sha256:00"},
        "pattern-held": {
            "pattern": "http://h0.example/calendar/N",
            "rule": "trap-budget: 1100",
            "example": "http://h0.example/calendar/2",
        },
        "host-blocked": {"host": "http://h0.example", "since": "1970-01-01T00:15:00.000Z", "waiting": 5},
        "host-given-up": {"host": "http://h1.example", "failure": "connect", "reason": "gone", "urls": 5},
        "login-lost": {"page": "http://h0.example/login", "reason": "the password is wrong"},
        "disk-low": {"reason": "5 bytes are free"},
        "crawl-paused": {"reason": "the disk is low"},
        "crawl-ended": {
            "exit_code": 5,
            "verdict": "limit",
            "reason": "--max-urls 1 is reached",
            "seeds": 10,
            "good_seeds": 0,
            "blocked_hosts": 0,
            "received": 0,
            "archived": 0,
            "failed": 5,
            "excluded": 0,
            "held": 2,
            "waiting": 5,
            "grade": "bad",
            "headline": "No seed gave a usable answer; 5 of 5 pages gave no usable answer and 2 URLs are held as "
            "suspected traps.",
            "trouble": True,
            "failures": {"connect": 5},
            "findings": [
                {"topic": topic, "message": message, "command": command, "trouble": trouble}
                for topic, message, command, trouble in FINDINGS
            ],
        },
    }
    assert len(found) == len(KINDS)
    assert len({each["id"] for each in found}) == len(found)
    for each in found:
        assert list(each) == list(EVENT_FIELDS)
        assert set(each["data"]) == set(DATA_FIELDS[EventKind(each["event"])])
        assert each["crawl"] == {"collection": "c", "machine": "machine", "run": 1}
        assert (each["version"], each["at"]) == (1, "1970-01-01T00:16:40.000Z")

    taken = rows(crawl_folder, "SELECT receiver, count(*) FROM deliveries GROUP BY receiver ORDER BY 2")
    assert [number for _, number in taken] == [2, len(KINDS)]


def test_a_crawl_without_receivers_writes_no_event(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await live(frontier)

    asyncio.run(run())
    assert noted(crawl_folder) == []


def test_an_event_is_in_the_transaction_that_makes_it_true(crawl_folder: Path) -> None:
    def no_id() -> str:
        raise ZeroDivisionError

    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            await frontier.begin_run(1000.0)
            frontier.note_events(EventNotes((SH,), CRAWL, new_id=no_id))
            for happens in (
                frontier.settle((), (CLOSED,)),
                frontier.pause(1, 900.0, None),
                frontier.give_up(2, "connect", "gone", 1000.0),
                frontier.end_run(0, "done", 1100.0),
            ):
                with pytest.raises(ZeroDivisionError):
                    await happens
            assert await frontier.files() == []
            assert (await frontier.counts()).failed == 0

    asyncio.run(run())
    assert noted(crawl_folder) == []
    assert rows(crawl_folder, "SELECT sum(paused) FROM hosts") == [(0,)]
    assert rows(crawl_folder, "SELECT ended FROM runs") == [(None,)]


def test_a_site_can_cause_a_bounded_number_of_events(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_hosts(tmp_path) as frontier:
            noting(frontier, SH)
            claim = (await waiting(frontier, SEEDS))[SEEDS[0]]
            found = tuple(held(number, f"{NOTE}/{number}") for number in range(MOST_OF_SITES + 5))
            await frontier.settle((Settlement(claim, Event.RETRY, found=found),), ())

    asyncio.run(run())
    assert len(noted(tmp_path)) == MOST_OF_SITES


def test_deliveries_go_out_in_order_and_the_end_of_a_run_comes_last(crawl_folder: Path) -> None:
    async def run() -> None:
        async with two_hosts(crawl_folder) as frontier:
            noting(frontier, HOOK)
            key = HOOK.key(frontier.machine)
            for name in "ab":
                await frontier.begin_run(1000.0)
                await frontier.end_run(0, "done", 1100.0)
                await frontier.settle((), (CLOSED._replace(name=f"{name}.warc.gz"),))
            assert await frontier.read_events(deliveries.run) == 2
            kinds = []
            while (due := await frontier.read_events(deliveries.next_delivery, key, 2)) is not None:
                kinds.append((due.kind, json.loads(due.body)["crawl"]["run"]))
                assert await frontier.change_events(deliveries.note_try, due, key, WORKED, 1200.0) == DELIVERED
            assert kinds == [("file-closed", 1), ("crawl-ended", 1), ("file-closed", 2)]
            last = await frontier.read_events(deliveries.next_delivery, key)
            assert last is not None
            assert last.kind == "crawl-ended"
            assert await frontier.read_events(deliveries.number_left) == 1

    asyncio.run(run())


def test_a_failed_delivery_is_tried_again_after_growing_pauses_until_it_is_given_up(tmp_path: Path) -> None:
    async def run() -> list[float]:
        pauses, now = [], 0.0
        async with two_hosts(tmp_path) as frontier:
            noting(frontier, HOOK)
            await frontier.settle((), (CLOSED,))
            state = WAITING
            while (due := await frontier.read_events(deliveries.next_delivery, HOOK.key(""))) is not None:
                pauses.append(due.due - now)
                now = due.due
                state = await frontier.change_events(deliveries.note_try, due, HOOK.key(""), FAILED, now)
            assert state == GIVEN_UP
        return pauses

    pauses = asyncio.run(run())
    assert len(pauses) == TRIES
    assert pauses[1:5] == [5.0, 10.0, 20.0, 40.0]
    assert max(pauses) == pauses[-1] == 3600.0
    assert rows(tmp_path, "SELECT state, tries, result FROM deliveries") == [("given up", TRIES, "status 503")]


@pytest.mark.parametrize(
    ("result", "state", "due"),
    [
        (TryResult(delivered=False, text="status 410", final=True), GIVEN_UP, None),
        (TryResult(delivered=False, text="status 503", wait=100.0), WAITING, 1100.0),
        (TryResult(delivered=False, text="status 503", wait=1e9), WAITING, 4600.0),
    ],
)
def test_a_receiver_may_end_or_delay_its_deliveries(
    tmp_path: Path, result: TryResult, state: str, due: float | None
) -> None:
    async def run() -> None:
        async with two_hosts(tmp_path) as frontier:
            noting(frontier, HOOK)
            await frontier.settle((), (CLOSED,))
            first = await frontier.read_events(deliveries.next_delivery, HOOK.key(""))
            assert first is not None
            assert await frontier.change_events(deliveries.note_try, first, HOOK.key(""), result, 1000.0) == state
            later = await frontier.read_events(deliveries.next_delivery, HOOK.key(""))
            assert (later and later.due) == due

    asyncio.run(run())
