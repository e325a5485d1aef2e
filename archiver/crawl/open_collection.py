"""Opens a collection for writing: first the lock that keeps other processes out, then the database."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.frontier.sqlite import SqliteFrontier


@asynccontextmanager
async def open_collection(layout: Layout) -> AsyncIterator[SqliteFrontier]:
    """Hold the lock of a collection, and open its database. Raises `ConfigError` if another process works there."""
    with hold_lock(layout):
        async with open_frontier(layout.database) as frontier:
            yield frontier


@contextmanager
def hold_lock(layout: Layout) -> Iterator[None]:
    """Hold the lock of a collection, for one who has other things to do before the database is open, or after it."""
    lock = Lock(layout.lock)
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def open_frontier(path: Path) -> AsyncIterator[SqliteFrontier]:
    """Open the database at *path*, and close it at the end."""
    frontier = await SqliteFrontier.open(path)
    try:
        yield frontier
    finally:
        await frontier.close()
