"""One crawl of a collection follows another: the earlier one is brought to its end, and set aside.

As in `build`, and by its functions: what a crash left is recovered first, by the settings of the crawl that was cut
off, so that nothing of it is lost to the next one.
"""

import asyncio
from contextlib import ExitStack
from pathlib import Path

from archiver.archive import inside
from archiver.archive.index import Index
from archiver.archive.layout import Layout
from archiver.archive.lock import Lock
from archiver.build import catch_up, put_settings, restore_index
from archiver.config.settings import Settings
from archiver.crawl.clock import Clock
from archiver.frontier.sqlite import SqliteFrontier
from archiver.recover.turn import Left, finish, pending, stamp_for, turn
from archiver.terms import learned_terms


async def set_aside(directory: Path, settings: Settings, text: str, read: str) -> Left | None:
    """Close the crawl in *directory*, so that the next one follows it with *text* as its crawl.toml; what it left.

    *settings* are those of the crawl, made of *read*. None where there is no database to be set aside: a crawl that has
    not begun gets the new settings.
    """
    clock = Clock()
    layout = inside.made(directory)
    with ExitStack() as stack:
        lock = Lock(layout.lock)
        stack.callback(lock.release)
        put_settings(layout, "", read)
        if not layout.database.exists():
            put_settings(layout, text)
            return None
        frontier = await SqliteFrontier.open(layout.database)
        try:
            terms = await learned_terms(settings, frontier)
            index = Index(layout.indexes)
            await catch_up(layout, frontier, terms, clock.now())
            await restore_index(layout, frontier, index)
            if any(layout.indexes.glob("run-*.cdxj")):
                await asyncio.to_thread(index.finish)
                await frontier.mark_indexed()
            counts, began = await frontier.counts(), await frontier.began()
        finally:
            await frontier.close()
        left = Left(stamp_for(layout, began), counts.waiting)
        turn(layout, left.stamp, text)
        return left


def finish_turn(directory: Path) -> None:
    """Finish what a turn to the next crawl that was cut off has left; nothing as a rule."""
    layout = Layout(directory)
    if pending(layout):
        lock = Lock(layout.lock)
        try:
            finish(layout)
        finally:
            lock.release()
