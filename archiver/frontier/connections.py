"""The two connections of a frontier to its database, each in a thread of its own: one writes, one reads.

An SQLite file is in WAL mode, so `status` and `replay` can read while the crawl runs. Every commit is synced, but those
of leases. An error of the database becomes an `ArchiveError` that names it.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, Self, TypeVar

import aiosqlite

from archiver.frontier import database
from archiver.frontier.address import address_of
from archiver.frontier.connection import Connection, Values
from archiver.frontier.database import SqliteConnection, connect, named_errors, run_in_thread
from archiver.storage import regular

P = ParamSpec("P")
T = TypeVar("T")


class Worker(Protocol):
    """A connection in a thread of its own."""

    async def run(self, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the connection in its thread, and return its result."""

    async def close(self) -> None:
        """Close the connection."""


class SqliteWorker:
    """A connection to SQLite in the thread of aiosqlite."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def run(self, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the connection in its thread, and return its result."""
        return await run_in_thread(self._connection, act, *values, **named)

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()


class Database(NamedTuple):
    """An open database."""

    name: str  # its file, or its address without the password
    writer: Worker
    reader: Worker
    errors: Callable[[], AbstractContextManager[None]]  # turns its errors into `ArchiveError`


class Connections:
    """A database with one connection that writes and one that reads. Use `open` to open it."""

    def __init__(self, opened: Database) -> None:
        self._name, self._writer, self._reader, self._errors = opened
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path, clock: Callable[[], float] | None = None) -> Self:
        """Open the frontier at *path*, or make a new one; if there is an address in its place, in PostgreSQL.

        All processes that use it have the same *clock*, by default the monotonic one of this machine, or the server's.
        """
        if address := address_of(path):
            return cls(await _open_postgres(address, clock))
        return cls(await _open_sqlite(path, clock or time.monotonic))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the database; SQLite merges the write-ahead file into it."""
        with self._errors():
            try:
                await self._reader.close()
            finally:
                await self._writer.close()

    @asynccontextmanager
    async def exclusive_transaction(self) -> AsyncIterator[None]:
        """Keep all other processes from writing the database, and from crawl.toml if they use this too."""
        with self._errors():
            async with self._lock:
                await self._writer.run(begin)
                try:
                    yield
                    await self._writer.run(execute, "COMMIT")
                except BaseException:
                    await self._writer.run(_roll_back)
                    raise

    async def _write(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Call *act* in a transaction and return its result."""
        with self._errors():
            async with self._lock:
                return await self._writer.run(_in_transaction, act, *values, **named)

    async def _on_writer(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the writing connection, outside of a transaction, and return its result."""
        with self._errors():
            async with self._lock:
                return await self._writer.run(act, *values, **named)

    async def _write_unsynced(
        self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        """Do the same without waiting for the disk; a power cut may undo it."""
        with self._errors():
            async with self._lock:
                return await self._writer.run(_in_unsynced_transaction, act, *values, **named)

    async def _read(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the reading connection and return its result."""
        with self._errors():
            return await self._reader.run(act, *values, **named)

    async def _rows(self, sql: str, values: Values = ()) -> list[Any]:
        return await self._read(_select, sql, values)


async def _open_sqlite(path: Path, clock: Callable[[], float]) -> Database:
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
            for each in (writer, reader):
                await run_in_thread(each, SqliteConnection.use_clock, clock)
            stack.pop_all()
    return Database(str(path), SqliteWorker(writer), SqliteWorker(reader), lambda: named_errors(path))


async def _open_postgres(address: str, clock: Callable[[], float] | None) -> Database:
    from archiver.frontier import postgres  # noqa: PLC0415 - an extra, which only such a crawl needs

    name = postgres.name_of(address)
    with postgres.named_errors(name):
        async with AsyncExitStack() as stack:
            writer = await postgres.PostgresWorker.open(address)
            stack.push_async_callback(writer.close)
            await writer.run(postgres.prepare)
            reader = await postgres.PostgresWorker.open(address, reads=True)
            for each in (writer, reader):
                each.use_clock(clock)
            stack.pop_all()
    return Database(name, writer, reader, lambda: postgres.named_errors(name))


def begin(db: Connection) -> None:
    """Begin a transaction."""
    db.begin()


def _roll_back(db: Connection) -> None:
    db.rollback()


def execute(db: Connection, sql: str) -> None:
    """Execute *sql*, which has no values."""
    db.execute(sql)


def _select(db: Connection, sql: str, values: Values) -> list[Any]:
    return db.rows(sql, values)


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
