"""A frontier's database in PostgreSQL, and connections to it, for any number of crawlers on any number of machines.

As with SQLite, one transaction at a time may write: each begins by raising a number in `revisions`, and the others wait
for the lock of that row. So each reads what those before it have written, and no two decide at once. The server ends a
transaction whose process stands still.

A lost connection is made again, and what was under way is done again; if only the answer to a COMMIT was lost, the
server still knows whether it took place. After `PATIENCE` the crawl ends with an error.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

from psycopg import Connection as Psycopg
from psycopg import DataError, Error, IntegrityError, OperationalError, errors, pq
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import TextLoader

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.connection import Connection, Cursor, Values
from archiver.frontier.database import APPLICATION_ID, VERSION
from archiver.frontier.dialect import schema_script, translate

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 60.0  # seconds in which a lost connection is made again: a server that starts again, or its standby
CONNECT = 10  # seconds for one attempt
PAUSES = (0.05, 2.0)  # seconds between attempts: the first, and the longest
# The server notices within half a minute that a machine is gone, and lets another run have its lock.
NOTICED = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
IDLE = 20  # seconds after which the server ends a transaction whose process says nothing
REPEATED = (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)
ENDED = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)

RAISE = "UPDATE revisions SET number = number + 1 WHERE name = 'transactions' RETURNING pg_current_xact_id()::text"
NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
READ = "SELECT number FROM revisions WHERE name = 'transactions'"

log = logging.getLogger(__name__)


def name_of(address: str) -> str:
    """Return the *address* of a database without its password. Raises `ConfigError` if it is none."""
    try:
        parts = conninfo_to_dict(address)
    except Error:  # its words may hold the password
        example = "postgresql://crawl@db.example/crawl"
        raise ConfigError(f"{_hidden(address)} is not the address of a database, such as {example}") from None
    user, host, port = (str(parts.get(key) or "") for key in ("user", "host", "port"))
    where = f"{user}@{host}" if user else host
    return f"postgresql://{where}{f':{port}' if port else ''}/{parts.get('dbname') or user}"


def _hidden(address: str) -> str:
    """Return *address* with nothing that might be a password."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://…@{rest.rpartition('@')[2]}" if "@" in rest else address


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


class _NumberLoader(Loader):
    """Loads sums, which PostgreSQL gives as decimal fractions."""

    def load(self, data: Any) -> int | float:
        """Return the number in *data*."""
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _FlagDumper(Int8BinaryDumper):
    """Dumps False and True as 0 and 1, as SQLite has them."""

    def dump(self, obj: Any) -> Any:
        """Return *obj* as a number."""
        return super().dump(int(obj))


def _connect(address: str, options: str) -> Psycopg[tuple[Any, ...]]:
    given = make_conninfo(
        address,
        connect_timeout=CONNECT,
        application_name="archiver",
        client_encoding="UTF8",
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=30_000,
        options=f"-c idle_in_transaction_session_timeout={IDLE}s -c timezone=UTC {NOTICED} {options}",
    )
    db = Psycopg.connect(given, autocommit=True)
    db.adapters.register_dumper(int, Int8BinaryDumper)
    db.adapters.register_dumper(bool, _FlagDumper)
    db.adapters.register_loader("numeric", _NumberLoader)
    db.adapters.register_loader("json", TextLoader)
    db.adapters.register_loader("jsonb", TextLoader)
    return db


class _InterruptedError(OperationalError):
    """The connection was lost, and the transaction had no effect."""


class PostgresConnection(Connection):
    """A connection to PostgreSQL that one thread uses, and that is made again when it is lost."""

    def __init__(self, address: str, *, reads: bool = False) -> None:
        self._address = address
        self._options = "-c default_transaction_read_only=on" if reads else ""
        self._number: str = ""  # of the transaction that is open
        self._own = 0  # transactions that this connection has committed
        self._locked = False
        self.clock: Callable[[], float] | None = None  # in place of the server's
        self._db = _connect(address, self._options)

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

    def begin(self) -> None:
        """Begin a transaction that keeps all others from writing."""
        self.execute("BEGIN")
        self._number = str(self.row(RAISE)[0])

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
            if not self.lost:
                raise
            if not self._took_place(self._number):
                raise _InterruptedError(str(error)) from error
        self._own += 1

    def _took_place(self, number: str) -> bool:
        """Return True if transaction *number* was committed, on a new connection."""
        for _ in attempts():
            try:
                self.connect_again()
                (status,) = self.row("SELECT pg_xact_status(CAST(CAST(? AS TEXT) AS xid8))", (number,))
            except OperationalError as error:
                log.debug("cannot ask for the end of transaction %s: %s", number, error)
                continue
            except Error:  # a standby that never heard of it
                return False
            if status != "in progress":
                return bool(status == "committed")
        return False

    @contextmanager
    def unsynced_transaction(self) -> Iterator[None]:
        """Do the same without waiting for the disk; a crash of the server may undo it."""
        with self.transaction():
            self.execute("SET LOCAL synchronous_commit = off")
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
        tables = "SELECT to_regclass('urls') IS NOT NULL, to_regclass('versions') IS NOT NULL"
        urls, versions = self.row(tables)
        if not versions:
            if urls:
                raise ConfigError(f"{name_of(self._address)} has a table urls that archiver has not made")
            return False
        (version,) = self.row("SELECT schema FROM versions")
        if version != VERSION:
            raise ConfigError(
                f"{name_of(self._address)} has schema version {version}, and this archiver needs {VERSION}; "
                "name an empty database"
            )
        return True

    def begin_run(self) -> bool:
        """Become the one run that uses the database; return False if another does."""
        self._locked = bool(self.row("SELECT pg_try_advisory_lock(?)", (APPLICATION_ID + 1,))[0])
        return self._locked

    def connect_again(self) -> None:
        """Replace the connection, which is lost or in doubt. Raises psycopg.OperationalError if that cannot be."""
        self._db.close()
        self._db = _connect(self._address, self._options)
        self.repeats += 1
        if self._locked and not self.begin_run():
            raise ArchiveError(f"{name_of(self._address)}: another crawl has begun in this database")

    def isolate(self) -> None:
        """Let each transaction from now on read one state of the database."""
        self.execute("SET default_transaction_isolation = 'repeatable read'")

    @property
    def lost(self) -> bool:
        """Return True if the connection is of no more use."""
        return self._db.closed

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _without_nul(values: Any) -> Any:
    """Return *values* with U+FFFD for each NUL character, which PostgreSQL does not store."""
    if isinstance(values, dict):
        return dict(zip(values, _without_nul(tuple(values.values())), strict=True))
    return tuple(each.replace("\0", "\ufffd") if isinstance(each, str) else each for each in values)


def attempts() -> Iterator[int]:
    """Yield numbers, after growing pauses, until `PATIENCE` has passed."""
    end, pause, number = time.monotonic() + PATIENCE, PAUSES[0], 0
    while not number or time.monotonic() < end:
        yield number
        number += 1
        time.sleep(pause)
        pause = min(2 * pause, PAUSES[1])


def persist(db: PostgresConnection, act: Callable[[Connection], T]) -> T:
    """Return what *act* returns, which is repeated if the connection was lost or others were in the way."""
    problem: Error | None = None
    for _ in attempts():
        try:
            if problem is not None and db.lost:
                db.connect_again()
            return act(db)
        except REPEATED as error:
            problem = error
        except (OperationalError, errors.InFailedSqlTransaction) as error:
            if not db.lost and not isinstance(error, (*ENDED, _InterruptedError)):
                raise
            problem = error
        log.debug("repeated, after %s", problem)
    raise problem or OperationalError("no attempt was made")


@contextmanager
def reading(address: str) -> Iterator[tuple[PostgresConnection, bool]]:
    """Connect to the database at *address* to read one state of it; the second value is False if it is empty."""
    name = name_of(address)
    with named_errors(name):
        db = PostgresConnection(address)
        try:
            started = db.check_schema()
            db.isolate()
            yield db, started
        finally:
            db.close()


def holds_crawl(address: str) -> bool:
    """Return True if there is a crawl in the database at *address*."""
    with reading(address) as (db, started):
        return started and db.row("SELECT 1 FROM seeds LIMIT 1") is not None


class PostgresReader:
    """Queries of one thread, on a connection that is made with the first one."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._name = name_of(address)
        self._db: PostgresConnection | None = None

    def row(self, sql: str, values: Values) -> Any:
        """Return the first row that *sql* finds."""
        with named_errors(self._name):
            if self._db is None:
                self._db = PostgresConnection(self._address, reads=True)
            return persist(self._db, lambda db: db.row(sql, values))

    def close(self) -> None:
        """Close the connection."""
        if self._db is not None:
            self._db.close()


def prepare(db: Connection) -> None:
    """Create the tables if the database is empty. Raises `ConfigError` if they are not ours."""
    assert isinstance(db, PostgresConnection)
    db.prepare()


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
            db = await loop.run_in_executor(thread, lambda: PostgresConnection(address, reads=reads))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(thread, db)

    async def run(self, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the connection in its thread, and return its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: persist(self._db, lambda db: act(db, *values, **named)))

    def use_clock(self, clock: Callable[[], float] | None) -> None:
        """Let leases end by *clock*; None: by the server's."""
        self._db.clock = clock

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()
