"""Ends one crawl of a collection so that the next one can begin: its own files move to a folder below DIR/crawls.

The caller holds the lock. First the earlier crawl is recovered and closed, with the settings of the crawl that was cut
off, so that nothing of it is lost to the next one. Then the rename of crawl.db decides: before it nothing has changed,
after it the next crawl has begun, and any later run moves what is left to be moved. Each step can be interrupted and
repeated. Nothing is deleted but the leftovers of an interrupted switch-over.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from archiver.clock import Clock
from archiver.collection import safe_paths
from archiver.collection.earlier_crawls import STAMP, rounds
from archiver.collection.index import Index
from archiver.collection.layout import Layout
from archiver.config.settings import Settings
from archiver.crawl.build import catch_up, put_settings, restore_index
from archiver.crawl.open_collection import hold_lock, open_frontier
from archiver.crawl.rules import learned_terms
from archiver.errors import ArchiveError
from archiver.storage import DRAFT, open_file, replace_file, storage, sync_folder

NEXT = "next.toml"  # in the folder of the newest earlier crawl: the next crawl.toml
_LATEST = 253_402_214_400  # seconds since the epoch: the last day of the year 9999
_BESIDE = ("-wal", "-shm", "-journal")  # behind the name of a database that is open, or was not closed


@dataclass(frozen=True, slots=True)
class UnfinishedWork:
    """The work that a crawl left to the next one."""

    stamp: str  # the name of its folder
    waiting: int  # URLs


def stamp_for(layout: Layout, began: float) -> str:
    """Return the name of the folder for the crawl that *began* then; a later second if that name is taken."""
    second = int(began if 0 < began < _LATEST else time.time())
    taken = {folder.directory.name for folder in rounds(layout)}
    while (stamp := f"{datetime.fromtimestamp(second, UTC):%Y%m%d%H%M%S}") in taken:
        second += 1
    return stamp


def switch_over(layout: Layout, stamp: str, text: str) -> None:
    """Move the crawl of *layout*, whose database is closed, to the folder *stamp*; *text* is the next crawl.toml."""
    if beside := [end for end in _BESIDE if layout.database.with_name(layout.database.name + end).exists()]:
        raise ArchiveError(f"{layout.database}{beside[0]} is there: another process has the database open")
    _forget_attempts(layout)
    folder = Layout(layout.earlier / stamp)
    with storage(folder.directory):
        folder.directory.mkdir(parents=True, exist_ok=True)
        sync_folder(layout.earlier)
        sync_folder(layout.directory)
        with open_file(layout.settings) as file:
            settings = file.read()
    replace_file(folder.settings, lambda file: file.writelines((settings,)), private=True)
    replace_file(folder.directory / NEXT, lambda file: file.writelines((text.encode(),)), private=True)
    _move(layout.database, folder.database)
    finish(layout)


def pending(layout: Layout) -> bool:
    """Return True if a switch-over was interrupted after the point of no return."""
    newest = _newest(layout)
    return newest is not None and (newest.directory / NEXT).exists() and not layout.database.exists()


def finish(layout: Layout) -> None:
    """Move what an interrupted switch-over has left; the settings of the next crawl come last."""
    newest = _newest(layout)
    if newest is None or not pending(layout):
        return
    if layout.log.exists():
        with storage(newest.log):
            newest.log.parent.mkdir(exist_ok=True)
            sync_folder(newest.directory)
        _move(layout.log, newest.log)
    if layout.reports.exists():
        _move(layout.reports, newest.reports)
    _move(newest.directory / NEXT, layout.settings)


def _newest(layout: Layout) -> Layout | None:
    return next(iter(rounds(layout)), None)


def _move(source: Path, target: Path) -> None:
    """Rename *source* durably: even after a power cut it is in exactly one of the folders."""
    with storage(source):
        source.rename(target)
        sync_folder(target.parent)
        sync_folder(source.parent)


def _forget_attempts(layout: Layout) -> None:
    """Remove what failed attempts left: copies of settings in a folder without a database."""
    if not layout.earlier.is_dir():
        return
    with storage(layout.earlier):
        for folder in layout.earlier.iterdir():
            if not STAMP.fullmatch(folder.name) or (folder / layout.database.name).exists():
                continue
            for name in (layout.settings.name, NEXT):
                for path in (folder / name, folder / (name + DRAFT)):
                    path.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()


async def set_aside(directory: Path, settings: Settings, text: str, read: str) -> UnfinishedWork | None:
    """End the crawl in *directory*, and let the next one follow it with *text* as its crawl.toml; return what it left.

    *settings* are those of the crawl that ends, parsed from *read*. Returns None without a database: a crawl that has
    not begun only gets the new settings.
    """
    clock = Clock()
    layout = safe_paths.make_folders(directory)
    with hold_lock(layout):
        put_settings(layout, "", read)
        if not layout.database.exists():
            put_settings(layout, text)
            return None
        async with open_frontier(layout.database) as frontier:
            terms = await learned_terms(settings, frontier)
            index = Index(layout.indexes)
            await catch_up(layout, frontier, terms, clock.now())
            await restore_index(layout, frontier, index)
            if any(layout.indexes.glob("run-*.cdxj")):
                await asyncio.to_thread(index.finish)
                await frontier.mark_indexed()
            counts, began = await frontier.counts(), await frontier.began()
        left = UnfinishedWork(stamp_for(layout, began), counts.waiting)
        switch_over(layout, left.stamp, text)
        return left


def finish_switch_over(directory: Path) -> None:
    """Finish a switch-over that was interrupted, if there is one."""
    layout = Layout(directory)
    if pending(layout):
        with hold_lock(layout):
            finish(layout)
