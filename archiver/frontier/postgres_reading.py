"""Reads a frontier in PostgreSQL from outside of its crawl, and looks payloads up during one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from archiver.frontier import machines
from archiver.frontier.connection import Cursor, Values
from archiver.frontier.dialect import name_of
from archiver.frontier.port import SharedSettings
from archiver.frontier.postgres import PostgresConnection, connected, named_errors, persist

PORTION = 2000  # rows of a long result in memory
# A transaction reads one state of the database, for as long as the reader of our output takes. Results are read whole.
OUTSIDE = """
SELECT set_config('default_transaction_isolation', 'repeatable read', false),
       set_config('idle_in_transaction_session_timeout', '1h', false), set_config('cursor_tuple_fraction', '1', false)
"""


class PortionReader:
    """A connection whose results are read in portions, so that long ones need not fit into memory."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db
        self._free: list[str] = []  # names of cursors
        self._names = 0

    def execute(self, sql: str, values: Any = (), /) -> Cursor:
        """Execute *sql*, and return its result; that of a query is read as it is used."""
        if sql.lstrip().startswith(("SELECT", "WITH")):
            return _Portions(self, sql, values)
        return self._db.execute(sql, values)

    def whole(self, sql: str, values: Any) -> Cursor:
        """Execute *sql* at once."""
        return self._db.execute(sql, values)

    def portions(self, sql: str, values: Any) -> Iterator[Any]:
        """Yield the rows that *sql* finds, within the open transaction."""
        if not self._free:
            self._names += 1
            self._free.append(f"portions_{self._names}")
        name = self._free.pop()
        self._db.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", values)
        while rows := self._db.rows(f"FETCH {PORTION} FROM {name}"):
            yield from rows
            if len(rows) < PORTION:
                break
        self._db.execute(f"CLOSE {name}")
        self._free.append(name)


class _Portions:
    """The result of a query that is executed when it is used."""

    description = ()
    rowcount = -1

    def __init__(self, reader: PortionReader, sql: str, values: Any) -> None:
        self._reader = reader
        self._query = sql, values
        self._cursor: Cursor | None = None

    def _whole(self) -> Cursor:
        if self._cursor is None:
            self._cursor = self._reader.whole(*self._query)
        return self._cursor

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self._whole().fetchone()

    def fetchall(self) -> Any:
        """Return all further rows."""
        return self._whole().fetchall()

    def __iter__(self) -> Iterator[Any]:
        """Yield all rows, in portions."""
        return self._reader.portions(*self._query)


@contextmanager
def reading(address: str) -> Iterator[tuple[PostgresConnection, bool]]:
    """Connect to the database at *address* to read one state of it; the second value is False if it is empty."""
    name = name_of(address)
    with named_errors(name):
        db = connected(address, reads=False)
        try:
            started = db.check_schema()
            db.row(OUTSIDE)
            yield db, started
        finally:
            db.close()


def holds_crawl(address: str) -> bool:
    """Return True if there is a crawl in the database at *address*."""
    with reading(address) as (db, started):
        return started and db.row("SELECT 1 FROM seeds LIMIT 1") is not None


def settings_of(address: str) -> SharedSettings:
    """Return the settings of the crawl in the database at *address*."""
    with reading(address) as (db, started):
        return machines.settings(db) if started else SharedSettings(0, "")


def machines_of(address: str) -> list[str]:
    """Return the names of the machines that have crawled with the database at *address*, together or alone."""
    with reading(address) as (db, started):
        return machines.names(db) if started else []


class PostgresReader:
    """Queries of one thread, on a connection that is made with the first one."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._name = name_of(address)
        self._db: PostgresConnection | None = None

    def row(self, sql: str, values: Values) -> Any:
        """Return the first row that *sql* finds."""
        return next(iter(self.rows(sql, values)), None)

    def rows(self, sql: str, values: Values) -> list[Any]:
        """Return all rows that *sql* finds."""
        with named_errors(self._name):
            if self._db is None:
                self._db = connected(self._address, reads=True)
            return persist(self._db, lambda db: db.rows(sql, values))

    def close(self) -> None:
        """Close the connection."""
        if self._db is not None:
            self._db.close()
