"""A connection to the database of a frontier, as the functions that run in its thread use it.

SQLite and PostgreSQL have the same methods and take the same statements: see frontier/database.py and
frontier/postgres.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import Any, NamedTuple, Protocol

Values = Sequence[object] | Mapping[str, object]


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """Return the number of rows that it changed."""

    @property
    def description(self) -> Any:
        """Return None if it has no rows."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> Any:
        """Return all further rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the further rows."""


BATCH_ROWS = 64  # rows in one statement


class Reader(Protocol):
    """A connection that is read: of any engine."""

    def execute(self, sql: str, values: Any = (), /) -> Cursor:
        """Execute *sql* and return its cursor."""


class DatabaseLock(NamedTuple):
    """A lock of the whole database, which one connection has, or several if it is *shared*."""

    name: str
    shared: bool = False


class Connection(ABC):
    """A connection that one thread uses."""

    machine = ""  # whose directory the WARC files are in that are written down; "": there is only one
    repeats = 0  # times that work was done again, whose first result may have been lost

    @abstractmethod
    def execute(self, sql: str, values: Values = (), /) -> Cursor:
        """Execute *sql* and return its cursor."""

    @abstractmethod
    def executemany(self, sql: str, values: Any, /) -> Any:
        """Execute *sql* for each of *values*."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that keeps all others from writing."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the transaction."""

    @abstractmethod
    def unsynced_transaction(self) -> AbstractContextManager[None]:
        """Do the same as `transaction`, unsynced if a power cut that undoes it ends all crawlers."""

    @abstractmethod
    def now(self) -> float:
        """Return the time by which leases end."""

    @abstractmethod
    def writes_of_others(self) -> int:
        """Return a number that changes when another connection has written, and never goes back to an earlier one."""

    @abstractmethod
    def erase_deleted(self) -> None:
        """Overwrite what is deleted from now on, as far as the database can do that."""

    @abstractmethod
    def hold(self, lock: DatabaseLock) -> bool:
        """Take *lock* for as long as this connection lives, or have it already; return False if others have it."""

    @abstractmethod
    def let_go(self, lock: DatabaseLock) -> None:
        """Give *lock* back."""

    @abstractmethod
    def others_hold(self, lock: DatabaseLock) -> bool:
        """Return True if another connection has *lock*, shared or not."""

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """Return all rows that *sql* finds."""
        return list(self.execute(sql, values).fetchall())

    def row(self, sql: str, values: Values = ()) -> Any:
        """Return the first row that *sql* finds, or None."""
        return self.execute(sql, values).fetchone()

    def each(self, queries: Sequence[tuple[str, Values]]) -> list[list[Any]]:
        """Return the rows that each of *queries* finds, in this order."""
        return [self.rows(sql, values) for sql, values in queries]

    def many(self, sql: str, values: Sequence[tuple[object, ...]]) -> list[Any]:
        """Execute *sql* with the rows of *values* in the place of {rows}, and return all rows that it finds.

        One statement takes up to `BATCH_ROWS` rows: a row then costs half of what a statement for each row costs. There
        are only a few lengths of statements, so the database compiles each of them once.
        """
        found: list[Any] = []
        done, size = 0, BATCH_ROWS
        row = f"({', '.join('?' * len(values[0]))})" if values else ""
        while left := len(values) - done:
            while size > left:
                size //= 2
            some = values[done : done + size]
            cursor = self.execute(sql.replace("{rows}", ", ".join([row] * size)), tuple(chain.from_iterable(some)))
            found += cursor.fetchall() if cursor.description else ()
            done += size
        return found

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that the block does, or nothing if it raises."""
        self.begin()
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
