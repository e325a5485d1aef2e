"""The two connections of a frontier to its database, and the runs and views that use it.

Each connection has a thread of its own: one writes, one reads. An SQLite file is in WAL mode, so `status` and `replay`
can read while the crawl runs. Every commit is synced, but those of leases. An error of the database becomes an
`ArchiveError` that names it.
"""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, Self, TypeVar

import aiosqlite

from archiver.ask import Ask
from archiver.errors import ArchiveError
from archiver.frontier import database, hosts, machines, outcomes, views
from archiver.frontier.address import SharedFrontier, shared_frontier
from archiver.frontier.captures import CaptureRow
from archiver.frontier.connection import Connection, Values
from archiver.frontier.database import SqliteConnection, connect, named_errors, run_in_thread
from archiver.frontier.links import Found
from archiver.frontier.port import SharedSettings
from archiver.frontier.views import DueView, ViewResult
from archiver.model import FileState, Settlement, State
from archiver.storage import regular

if TYPE_CHECKING:
    from archiver.frontier.events.notes import EventNotes

ENTER = 60.0  # seconds in which another machine may begin a run
FREED = 5.0  # seconds in which the server notices that a crawl was killed
LOOK_AGAIN = 0.1  # seconds

P = ParamSpec("P")
T = TypeVar("T")
Act = Callable[[Connection, int], int | None]  # on a host


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
    machine: str  # the name of this one, if several crawl together; else ""


class Connections:
    """A database with one connection that writes and one that reads. Use `open` to open it."""

    def __init__(self, opened: Database) -> None:
        self._name, self._writer, self._reader, self._errors, self.machine = opened
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, place: Path | SharedFrontier, clock: Callable[[], float] | None = None) -> Self:
        """Open the frontier at *place*, or make a new one; if that is a path with an address in its place, there.

        All processes that use it have the same *clock*, by default the monotonic one of this machine, or the server's.
        """
        shared = place if isinstance(place, SharedFrontier) else shared_frontier(place)
        if isinstance(place, Path) and shared is None:
            return cls(await _open_sqlite(place, clock or time.monotonic))
        assert shared is not None
        return cls(await _open_postgres(shared, clock))

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
    async def exclusive_transaction(self) -> AsyncIterator[Worker]:
        """Keep all other processes from writing the database, and from crawl.toml if they use this too.

        Yields the connection that may write meanwhile.
        """
        with self._errors():
            async with self._lock:
                await self._writer.run(begin)
                try:
                    yield self._writer
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
        """Do the same without waiting for the disk, if a power cut that undoes it ends all crawlers."""
        with self._errors():
            async with self._lock:
                return await self._writer.run(_in_unsynced_transaction, act, *values, **named)

    async def _read(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the reading connection and return its result."""
        with self._errors():
            return await self._reader.run(act, *values, **named)

    async def _rows(self, sql: str, values: Values = ()) -> list[Any]:
        return await self._read(_select, sql, values)


class Runs(Connections):
    """The runs of a crawl, on one machine or on several that share its frontier."""

    def __init__(self, opened: Database) -> None:
        super().__init__(opened)
        self._entered = False  # a run that other machines can join
        self._notes: EventNotes | None = None  # most crawls report no events

    def note_events(self, notes: "EventNotes") -> None:
        """Write down from now on what happens."""
        self._notes = notes

    async def read_events(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Return what *act*, of frontier/events, reads."""
        return await self._read(act, *values, **named)

    async def change_events(
        self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        """Call *act*, of frontier/events, in a transaction."""
        return await self._write(act, *values, **named)

    async def pause_until_login(self, hosts_to_pause: Sequence[int], page: str = "", reason: str = "") -> None:
        """Pause these hosts for this run, because a person must log in first. *page*: where no login works any more."""
        if self._notes is None:
            await self._write(hosts.pause_until_login, hosts_to_pause)
        else:
            await self._write(self._notes.login_lost, hosts_to_pause, page, reason)

    def _pausing(self, since: float, asked: tuple[int, int] | None) -> Act:
        """Return what pauses a host that blocks us *since* then (0: it does not)."""
        pausing = partial(hosts.pause, since=since, asked=asked)
        return pausing if self._notes is None else self._notes.pausing(since, asked)

    def _giving_up(self, failure: str, note: str, now: float, before: int) -> Act:
        """Return what gives a host up, of which *before* URLs have been given up already."""
        giving_up = partial(hosts.give_up, failure=failure, note=note, now=now)
        return giving_up if self._notes is None else self._notes.giving_up(failure, note, now, before)

    def _note_settled(self, db: Connection, settlements: Sequence[Settlement], files: Sequence[FileState]) -> None:
        if self._notes is not None:
            self._notes.settled(db, settlements, files)

    async def note_low_disk(self, reason: str) -> None:
        """Write down that the disk is low, if anyone wants to know."""
        if self._notes is not None:
            with suppress(ArchiveError):  # there may be no room for it, and the crawl is about to end in order
                await self._write(self._notes.disk_low, reason)

    async def begin_run(self, now: float) -> None:
        """Record that a run starts that no other machine can join; unpause hosts that the previous run paused."""
        await self.run_alone()
        await self._write(self._begin(now))

    async def run_alone(self) -> None:
        """Keep other machines out until the frontier is closed. Raises `ArchiveError` if one crawls."""
        end = time.monotonic() + FREED
        while not await self._on_writer(lambda db: db.hold(machines.ALONE)):
            if time.monotonic() > end:
                raise ArchiveError(
                    f"{self._name}: other crawlers use this database, and a crawl with --login or --browser or on "
                    "Windows runs alone; stop them first"
                )
            await asyncio.sleep(LOOK_AGAIN)

    def _begin(self, now: float) -> Callable[[Connection], None]:
        act = partial(outcomes.begin, now=now)
        return act if self._notes is None else partial(self._notes.started, act=act)

    async def enter_run(self, directory: str, files: Collection[str], now: float) -> float:
        """Join the run of other machines, or begin one that they can join; return when it began."""
        end = time.monotonic() + ENTER
        while (began := await self._on_writer(machines.enter, directory, files, self._begin(now))) is None:
            if time.monotonic() > end:
                raise ArchiveError(
                    f"{self._name}: in use by a crawl that no machine can join (--login, --browser, or on Windows), or "
                    f"by another machine named {self.machine}; stop that crawl, or choose another --name"
                )
            await asyncio.sleep(LOOK_AGAIN)
        self._entered = True
        return began

    async def end_run(self, code: int, reason: str, now: float) -> bool:
        """Record how the run ended, and why; return True if it goes on, on other machines."""
        end = partial(outcomes.end if self._notes is None else self._notes.ended, code=code, reason=reason, now=now)
        if self._entered:
            return await self._on_writer(machines.leave, end)
        await self._write(end)
        return False

    async def others_run(self) -> bool:
        """Return True if another machine crawls."""
        return await self._on_writer(machines.others_run)

    async def note_alive(self) -> None:
        """Note that this machine is alive, if there are several."""
        if self.machine:
            await self._on_writer(machines.note_alive)

    async def crawlers(self) -> list[str]:
        """Return the names of the crawlers of this machine that have not left, if there are several machines."""
        return await self._read(machines.crawlers)

    async def settings(self) -> SharedSettings:
        """Return the settings that all machines have in common."""
        return await self._read(machines.settings)

    async def put_settings(self, text: str, expected: int, secrets: str | None = None) -> int:
        """Replace the settings of revision *expected* by *text*; return their new revision."""
        return await self._write(machines.put_settings, text, expected, secrets)

    async def clock_ahead(self) -> float:
        """Return how far the clock that all machines go by is ahead of ours, in seconds."""
        return await self._read(_clock_ahead)


class ViewRows(Runs):
    """The rows of views in the database of a crawl."""

    async def views_due(self, without: Collection[int], most: int = views.AT_ONCE) -> list[DueView]:
        """Return the next pages to show, but those *without* (rows of URLs)."""
        return await self._read(views.due, without, most)

    async def views_left(self) -> int:
        """Return the number of pages to show."""
        return int((await self._rows(views.COUNT))[0][0])

    async def views_ended(self) -> list[tuple[str, str, int]]:
        """Return host, pattern, and number of URLs brought, of each page that was shown."""
        return [(row[0], row[1], row[2]) for row in await self._rows(views.SHOWN)]

    async def save_views(self, results: Sequence[ViewResult]) -> None:
        """Save the results of views."""
        await self._write(views.save, results)

    async def leave_out_views(self, pages: Sequence[tuple[int, str]]) -> None:
        """Leave out *pages*, each with its pattern."""
        if pages:
            await self._write(views.leave_out, pages)

    async def take_back_views(self, pattern: str) -> None:
        """Show the pages of *pattern* that were left out."""
        await self._write(views.take_back, pattern)

    async def prepare_views(self, shown: str, *, resume: bool) -> None:
        """Begin a run that shows pages as `--browser` says: off, auto or all.

        When a crawl is resumed, the pages that were stored without a browser are shown too; with all, also those that
        were left out.
        """
        if shown == "off":
            if await self.views_left():
                await self._write(views.forget)
        elif resume:
            await self._write(views.add_stored, every=shown == "all")

    async def newest_captures(self, address: str) -> list[CaptureRow]:
        """Return a few captures of *address*, newest first."""
        return await self._read(views.captures, address)

    async def states(self, addresses: Collection[str]) -> dict[str, State]:
        """Return the states of those of *addresses* that have a row."""
        return await self._read(views.states, addresses)

    async def add_viewed(self, found: Sequence[Found], ask: Ask | None = None) -> Counter[int]:
        """Queue links that a view has found; return the number of new URLs by host. *ask*: what is sent."""
        return await self._write(views.add_links, found, ask)

    async def note_unsent(self, address: str, ask: Ask, names: Sequence[str]) -> None:
        """Note that the headers *names* of *ask* were not sent for the archived *address*; send them next time."""
        await self._write(views.note_unsent, address, ask, names)


def _clock_ahead(db: Connection) -> float:
    return db.now() - time.time() if db.machine else 0.0


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
    return Database(str(path), SqliteWorker(writer), SqliteWorker(reader), lambda: named_errors(path), "")


async def _open_postgres(shared: SharedFrontier, clock: Callable[[], float] | None) -> Database:
    from archiver.frontier import dialect, postgres  # noqa: PLC0415 - an extra, which only such a crawl needs

    address, machine, _ = shared
    name = dialect.name_of(address)
    with postgres.named_errors(name):
        async with AsyncExitStack() as stack:
            writer = await postgres.PostgresWorker.open(address)
            stack.push_async_callback(writer.close)
            await writer.run(postgres.prepare)
            reader = await postgres.PostgresWorker.open(address, reads=True)
            for each in (writer, reader):
                each.configure(clock, machine)
            stack.pop_all()
    return Database(name, writer, reader, lambda: postgres.named_errors(name), machine)


def begin(db: Connection) -> None:
    """Begin a transaction."""
    db.begin()


def _roll_back(db: Connection) -> None:
    db.rollback()


def execute(db: Connection, sql: str, values: Values = ()) -> None:
    """Execute *sql*."""
    db.execute(sql, values)


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
