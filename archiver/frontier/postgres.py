"""A frontier's database in PostgreSQL, and connections to it, for any number of crawlers on any number of machines.

As with SQLite, one transaction at a time may write: each begins by raising a number in `revisions`, and the others wait
for the lock of that row. So each reads what those before it have written, and no two decide at once. The server ends a
transaction whose process stands still.

A lost connection is made again, and what was under way is done again. If only the answer to a COMMIT was lost, a row
of the connection's own, which each of its transactions raises, shows whether it took place. The number that the server
gives to a transaction does not show that: a standby that takes over, and never got the transaction, gives the number
away again. After `PATIENCE` the crawl ends with an error.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from psycopg import DataError, Error, IntegrityError, OperationalError, errors, pq

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.connection import Connection, Cursor, DatabaseLock, Values
from archiver.frontier.database import APPLICATION_ID, VERSION
from archiver.frontier.dialect import arrays_of, connect, name_of, schema_script, translate, with_arrays
from archiver.frontier.machines import HELD_BY_OTHERS

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 60.0  # seconds in which a lost connection is made again: a server that starts again, or its standby
PASSING = (  # said by a server that starts or ends, and by a standby that has not taken over yet
    *("the database system is", "session is read-only", "server is in hot standby mode"),
    *("terminating connection", "server closed the connection unexpectedly"),
)
AWAY = (  # said by this machine, of a server that it cannot reach
    *("Is the server running", "timeout expired", "Temporary failure in name resolution"),
)
START = 120.0  # seconds in which a server that is away may start, before a machine begins to crawl
UNTIL_FREE = 10.0  # seconds for the server to end a session that was lost
PAUSES = (0.05, 2.0)  # seconds between attempts: the first, and the longest
AT_ONCE = 5000  # rows in one statement
REPEATED = (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)
ENDED = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)

RAISE = """
WITH own AS (
    INSERT INTO revisions (name, number) VALUES (?, 1)
    ON CONFLICT (name) DO UPDATE SET number = revisions.number + 1 RETURNING number
)
UPDATE revisions SET number = number + 1 WHERE name = 'transactions'
RETURNING pg_current_xact_id()::text, (SELECT number FROM own)
"""
COMMITTED = "SELECT 1 FROM revisions WHERE name = ? AND number >= ?"
SESSION = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()"
END_SESSION = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ? AND backend_start = CAST(? AS timestamptz)
"""
NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
READ = "SELECT number FROM revisions WHERE name = 'transactions'"

log = logging.getLogger(__name__)


def _said(error: Error) -> str:
    """Return the first line of *error*."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """Turn errors of PostgreSQL into `ArchiveError`, with the *name* of the database."""
    try:
        yield
    except IntegrityError:
        raise  # a bug of ours
    except Error as error:
        raise ArchiveError(f"{name}: {_said(error)}") from error


class _InterruptedError(OperationalError):
    """The connection was lost, and the transaction had no effect."""


class PostgresConnection(Connection):
    """A connection to PostgreSQL that one thread uses, and that is made again when it is lost."""

    def __init__(self, address: str, *, reads: bool = False) -> None:
        self._address = address
        self._reads = reads
        self._name = f"commits of {uuid4().hex}"  # of our row in `revisions`
        self._open = ("", 0)  # the transaction that is open: the server's number for it, and ours
        self._own = 0  # transactions that this connection has committed
        self._held: list[DatabaseLock] = []
        self.clock: Callable[[], float] | None = None  # in place of the server's
        self.patience = PATIENCE  # seconds in which the next call is repeated
        self._db = connect(address, reads=reads)
        self._session = self.row(SESSION)

    def execute(self, sql: str, values: Values = (), /) -> Cursor:
        """Execute *sql* and return its cursor."""
        try:
            return self._db.execute(translate(sql).encode(), values)
        except DataError as error:
            if "NUL" not in str(error):
                raise
            return self._db.execute(translate(sql).encode(), _without_nul(values))

    def executemany(self, sql: str, values: Any, /) -> Cursor:
        """Execute *sql* for each of *values*."""
        cursor, rows = self._db.cursor(), list(values)
        try:
            cursor.executemany(translate(sql).encode(), rows)
        except DataError as error:
            if "NUL" not in str(error):
                raise
            cursor.executemany(translate(sql).encode(), [_without_nul(row) for row in rows])
        return cursor

    def each(self, queries: Sequence[tuple[str, Values]]) -> list[list[Any]]:
        """Return the rows that each of *queries* finds; the server gets all of them before the first answer is read."""
        with self._db.pipeline():
            cursors = [self._db.execute(translate(sql).encode(), values) for sql, values in queries]
        return [cursor.fetchall() for cursor in cursors]

    def many(self, sql: str, values: Sequence[tuple[object, ...]]) -> list[Any]:
        """Execute *sql* with the rows of *values*, given as arrays, and return all rows that it finds."""
        found: list[Any] = []
        for start in range(0, len(values), AT_ONCE):
            kinds, arrays = arrays_of(values[start : start + AT_ONCE])
            cursor = self._db.execute(with_arrays(sql, kinds).encode(), arrays)
            found += cursor.fetchall() if cursor.description else ()
        return found

    def begin(self) -> None:
        """Begin a transaction that keeps all others from writing."""
        self.execute("BEGIN")
        self._open = self.row(RAISE, (self._name,))

    def rollback(self) -> None:
        """Undo the transaction."""
        with suppress(OperationalError):
            if self._db.info.transaction_status != pq.TransactionStatus.IDLE:
                self.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that the block does, or nothing if it raises."""
        self.begin()
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        self._commit()

    def _commit(self) -> None:
        try:
            self.execute("COMMIT")
        except OperationalError as error:
            if not self.lost and error.sqlstate is not None and not isinstance(error, ENDED):
                raise
            if not self._took_place(*self._open):
                raise _InterruptedError(str(error)) from error
        self._own += 1

    def _took_place(self, number: str, own: int) -> bool:
        """Return True if a transaction was committed, on a new connection: *number* is the server's, *own* is ours."""
        for _ in attempts():
            try:
                self.connect_again()
                (status,) = self.row("SELECT pg_xact_status(CAST(CAST(? AS TEXT) AS xid8))", (number,))
                if status != "in progress":
                    return self.row(COMMITTED, (self._name, own)) is not None
            except OperationalError as error:
                log.debug("cannot ask for the end of transaction %s: %s", number, error)
                continue
            except Error:  # a standby that never heard of it
                return False
        return False

    @contextmanager
    def unsynced_transaction(self) -> Iterator[None]:
        """Do the same, synced: when the server crashes, crawlers go on with the leases that they were given."""
        with self.transaction():
            yield

    def now(self) -> float:
        """Return the time by which leases end: the server's."""
        return float(self.row(NOW)[0]) if self.clock is None else self.clock()

    def writes_of_others(self) -> int:
        """Return a number that changes when another connection has written."""
        return int(self.row(READ)[0]) - self._own

    def erase_deleted(self) -> None:
        """Do nothing: VACUUM overwrites what is deleted, when the server thinks fit."""

    def prepare(self) -> None:
        """Create the tables if there are none. Raises `ConfigError` if they are not ours."""
        self.execute("BEGIN")
        try:
            self.execute("SELECT pg_advisory_xact_lock(?)", (APPLICATION_ID,))
            if not self.check_schema():
                self._db.execute(schema_script().encode())
            self.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def check_schema(self) -> bool:
        """Return False if there are no tables. Raises `ConfigError` if they are not ours."""
        column = "attrelid = to_regclass('versions') AND attname = 'schema' AND atttypid = 'bigint'::regtype"
        tables = f"SELECT to_regclass('urls') IS NOT NULL, EXISTS (SELECT 1 FROM pg_attribute WHERE {column})"  # noqa: S608
        urls, versions = self.row(tables)
        if not versions:
            if urls:
                raise ConfigError(f"{name_of(self._address)} has a table urls that archiver has not made")
            return False
        (version,) = self.row("SELECT max(schema) FROM versions")
        if version != VERSION:
            raise ConfigError(
                f"{name_of(self._address)} has schema version {version}, and this archiver needs {VERSION}; "
                "crawl with an archiver that has it, or name an empty database"
            )
        return True

    def hold(self, lock: DatabaseLock) -> bool:
        """Take *lock*, also on each connection that replaces this one; return False if others have it."""
        if lock not in self._held:
            if not self._take(lock):
                return False
            self._held.append(lock)
        return True

    def _take(self, lock: DatabaseLock) -> bool:
        how = "pg_try_advisory_lock_shared" if lock.shared else "pg_try_advisory_lock"
        return bool(self.row(f"SELECT {how}({APPLICATION_ID}, hashtext(?))", (lock.name,))[0])

    def let_go(self, lock: DatabaseLock) -> None:
        """Give *lock* back."""
        how = "pg_advisory_unlock_shared" if lock.shared else "pg_advisory_unlock"
        self._held.remove(lock)
        self.row(f"SELECT {how}({APPLICATION_ID}, hashtext(?))", (lock.name,))

    def others_hold(self, lock: DatabaseLock) -> bool:
        """Return True if another connection has *lock*, shared or not."""
        return bool(self.row(HELD_BY_OTHERS, (lock.name,))[0])

    def connect_again(self) -> None:
        """Replace the connection, which is lost or in doubt. Raises psycopg.OperationalError if that cannot be."""
        self._db.close()
        self._db = connect(self._address, reads=self._reads)
        self.repeats += 1
        self.row(END_SESSION, self._session)  # the server may not have noticed, and it holds our locks
        self._session = self.row(SESSION)
        for lock in self._held:
            if not any(self._take(lock) for _ in attempts(UNTIL_FREE)):
                raise ArchiveError(f"{name_of(self._address)}: another crawl has begun in this database")

    @property
    def lost(self) -> bool:
        """Return True if the connection is of no more use."""
        return self._db.closed

    def break_off(self) -> None:
        """Close the connection, which is of no more use; the next work makes it again."""
        self._db.close()

    def close(self) -> None:
        """Close the connection for good."""
        with suppress(Error):
            if not self.lost and not self._reads:
                self.execute("SET synchronous_commit = off")
                self.execute("DELETE FROM revisions WHERE name = ?", (self._name,))
        self._db.close()


def _without_nul(values: Any) -> Any:
    """Return *values* with U+FFFD for each NUL character, which PostgreSQL does not store."""
    if isinstance(values, dict):
        return dict(zip(values, _without_nul(tuple(values.values())), strict=True))
    return tuple(each.replace("\0", "\ufffd") if isinstance(each, str) else each for each in values)


def attempts(patience: float = PATIENCE) -> Iterator[int]:
    """Yield numbers, after growing pauses, until *patience* seconds have passed."""
    end, pause, number = time.monotonic() + patience, PAUSES[0], 0
    while not number or time.monotonic() < end:
        yield number
        number += 1
        time.sleep(pause)
        pause = min(2 * pause, PAUSES[1])


def persist(db: PostgresConnection, act: Callable[[Connection], T]) -> T:
    """Return what *act* returns, which is repeated if the connection was lost or others were in the way.

    After waiting in vain, each further call makes one attempt: the crawl ends then, in several steps.
    """
    problem: Error | None = None
    for _ in attempts(db.patience):
        try:
            if db.lost:
                db.connect_again()
            result = act(db)
        except REPEATED as error:
            problem = error
        except (OperationalError, errors.InFailedSqlTransaction) as error:
            if error.sqlstate is None and not isinstance(error, _InterruptedError):
                db.break_off()  # the error is not of the server: a connection that cannot be used any more
            elif not db.lost and not isinstance(error, (*ENDED, _InterruptedError)):
                raise
            problem = error
        else:
            db.patience = PATIENCE
            return result
        log.debug("repeated, after %s", problem)
    db.patience = 0.0
    raise problem or OperationalError("no attempt was made")


def prepare(db: Connection) -> None:
    """Create the tables if the database is empty. Raises `ConfigError` if they are not ours."""
    assert isinstance(db, PostgresConnection)
    db.prepare()


def connected(address: str, *, reads: bool) -> PostgresConnection:
    """Connect; wait for a server that is about to start, or for a standby to take over."""
    problem: OperationalError | None = None
    for _ in attempts():
        try:
            return PostgresConnection(address, reads=reads)
        except OperationalError as error:
            if not any(words in str(error) for words in PASSING):
                raise
            problem = error
    raise problem or OperationalError("no attempt was made")


def unreachable(address: str, patience: float = START) -> Iterator[str]:
    """Yield the reason after each attempt to reach the server in vain, until it can be reached.

    Ends too if the server refuses for a reason that will not pass: the next connection tells it. Raises `ArchiveError`
    after *patience* seconds.
    """
    problem = ""
    for _ in attempts(patience):
        try:
            connect(address, reads=False).close()
        except OperationalError as error:
            if not any(words in str(error) for words in (*PASSING, *AWAY)):
                return
            problem = _said(error).rpartition("failed: ")[2].removeprefix("FATAL:").strip()
            yield problem
        else:
            return
    raise ArchiveError(f"{name_of(address)}: {problem}; start the server, then run the same command again")


class PostgresWorker:
    """A connection to PostgreSQL in a thread of its own."""

    def __init__(self, thread: ThreadPoolExecutor, db: PostgresConnection) -> None:
        self._thread = thread
        self._db = db

    @classmethod
    async def open(cls, address: str, *, reads: bool = False) -> "PostgresWorker":
        """Connect to the database at *address*."""
        thread = ThreadPoolExecutor(1, f"postgres-{threading.active_count()}")
        loop = asyncio.get_running_loop()
        try:
            db = await loop.run_in_executor(thread, lambda: connected(address, reads=reads))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(thread, db)

    async def run(self, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the connection in its thread, and return its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: persist(self._db, lambda db: act(db, *values, **named)))

    def configure(self, clock: Callable[[], float] | None, machine: str) -> None:
        """Let leases end by *clock*; None: by the server's. *machine*: the name of this one."""
        self._db.clock, self._db.machine = clock, machine

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()
