"""A low disk pauses the crawl, unless a person has let it go on since this run began."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from archiver.clock import Clock
from archiver.collection.disk_space import DiskSpace
from archiver.collection.layout import Layout
from archiver.config.event_settings import EventKind, Receiver
from archiver.config.option_types import Rate
from archiver.config.settings import LimitSettings, Settings, SettingsByHost
from archiver.crawl.orders.low_disk import ALONE, LowDisk
from archiver.frontier.address import host_name
from archiver.frontier.events.notes import EventNotes
from archiver.frontier.orders.table import NewOrder, Verb
from archiver.frontier.sqlite import SqliteFrontier
from archiver.policy.schedule import Schedule
from archiver.storage import free
from fixtures.flag import Flag
from tests.edges.test_events import CRAWL

BEGAN = 1000.0
OURS, PERSON = f"{ALONE}@{host_name()}", "me@here"
LOW, ROOM = ("the disk is low",), ("there is room again",)


async def latest_after_a_look(folder: Path, *given: NewOrder) -> Verb:
    """Let a crawler of the run that began at `BEGAN` look once at a low disk; return the latest pause or its end."""
    layout, noted = Layout(folder), Flag()

    def number() -> str:
        noted.raise_()
        return "1"

    async with await SqliteFrontier.open(folder / "crawl.db") as frontier:
        frontier.note_events(EventNotes((Receiver((EventKind.DISK_LOW,), "./all.sh"),), CRAWL, lambda: BEGAN, number))
        await frontier.begin_run(BEGAN)
        for order in given:
            await frontier.give_order(order, "done")
        space = DiskSpace(layout, 2 * free(folder))  # low, but far above the last reserve
        settings = SettingsByHost(Settings(limits=LimitSettings(on_low_disk="pause")))
        room = LowDisk(space, (frontier, Schedule(Rate(0), 1)), Clock(), settings, ("", BEGAN))
        keeping = asyncio.create_task(room.keep(pytest.fail, pytest.fail))
        await noted.reached()  # a look ends with the event disk-low
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        latest = await frontier.latest_pause()
        assert latest is not None
        return Verb(latest.verb)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), Verb.PAUSE),
        ((NewOrder(Verb.PAUSE, LOW, OURS, BEGAN + 1),), Verb.PAUSE),
        ((NewOrder(Verb.PAUSE, LOW, OURS, BEGAN - 9), NewOrder(Verb.GO, (), PERSON, BEGAN + 1)), Verb.GO),
        ((NewOrder(Verb.PAUSE, LOW, OURS, BEGAN - 9), NewOrder(Verb.GO, (), PERSON, BEGAN - 1)), Verb.PAUSE),
        ((NewOrder(Verb.PAUSE, LOW, OURS, BEGAN + 1), NewOrder(Verb.GO, ROOM, OURS, BEGAN + 2)), Verb.PAUSE),
    ],
    ids=["no order", "paused", "let go in this run", "let go in an earlier run", "let go by a crawler"],
)
def test_a_low_disk_pauses_the_crawl(tmp_path: Path, given: tuple[NewOrder, ...], expected: Verb) -> None:
    Layout(tmp_path).archive.mkdir()
    assert asyncio.run(latest_after_a_look(tmp_path, *given)) is expected
