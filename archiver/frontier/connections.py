"""The two connections to the SQLite file of a frontier, through aiosqlite: one writes, one reads.

The database is in WAL mode, so `status` and `replay` can read while the crawl runs. Every commit is synced, but those
of leases. A `sqlite3` error becomes an `ArchiveError` that names the file.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import aiosqlite

from archiver.frontier import database
from archiver.frontier.database import Connection, connect, named_errors, run_in_thread
from archiver.storage import regular

P = ParamSpec("P")
T = TypeVar("T")


class Connections:
    """A database with one connection that writes and one that reads. Use `open` to open it."""

    def __init__(self, path: Path, connections: tuple[aiosqlite.Connection, ...], clock: Callable[[], float]) -> None:
        self._path = path
        self._writer, self._reader = connections
        self._clock = clock
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path, clock: Callable[[], float] = time.monotonic) -> Self:
        """Open the frontier at *path*, or make a new one. All processes that use it have the same *clock*."""
        regular(path)
        with named_errors(path):
            with closing(sqlite3.connect(path)):
                pass  # a file that cannot be opened fails here; in aiosqlite's thread it would outlive the loop
            async with AsyncExitStack() as stack:
                writer = await stack.enter_async_context(connect(path))
                await run_in_thread(writer, database.check_schema, path)
                await database.prepare(writer)
                await database.check_integrity(path, writer)
                reader = await stack.enter_async_context(connect(path))
                await run_in_thread(reader, database.guard, path)
                await reader.execute("PRAGMA query_only = 1")
                stack.pop_all()
        return cls(path, (writer, reader), clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the database; SQLite merges the write-ahead file into it."""
        with named_errors(self._path):
            try:
                await self._reader.close()
            finally:
                await self._writer.close()

    @asynccontextmanager
    async def exclusive_transaction(self) -> AsyncIterator[None]:
        """Keep all other processes from writing the database, and from crawl.toml if they use this too."""
        with named_errors(self._path):
            async with self._lock:
                await self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    await self._writer.execute("COMMIT")
                except BaseException:
                    await self._writer.rollback()
                    raise

    async def _write(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Call *act* in a transaction and return its result."""
        with named_errors(self._path):
            async with self._lock:
                return await run_in_thread(self._writer, _in_transaction, act, *values, **named)

    async def _on_writer(self, act: Callable[[Connection], T]) -> T:
        """Call *act* with the writing connection, outside of a transaction, and return its result."""
        with named_errors(self._path):
            async with self._lock:
                return await run_in_thread(self._writer, act)

    async def _write_unsynced(
        self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        """Do the same without waiting for the disk; a power cut may undo it."""
        with named_errors(self._path):
            async with self._lock:
                return await run_in_thread(self._writer, _in_unsynced_transaction, act, *values, **named)

    async def _read(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the reading connection and return its result."""
        with named_errors(self._path):
            return await run_in_thread(self._reader, act, *values, **named)

    async def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        return await self._read(Connection.rows, sql, values)


def _in_transaction(
    db: Connection, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs
) -> T:
    with db.transaction():
        return act(db, *values, **named)


def _in_unsynced_transaction(
    db: Connection, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs
) -> T:
    with db.unsynced_transaction():
        return act(db, *values, **named)
