"""One connection to the database, in the thread that aiosqlite gives it, where whole pieces of work are done at once.

A statement costs some microseconds, going to the thread and back costs ten times as much, and while other threads are
busy a hundred times. So a verb of the frontier is one function that is called there, however many statements it has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import aiosqlite

from archiver.frontier.trust import Bounded

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 64  # rows in one statement


class Connection(Bounded):
    """To be used in its own thread alone."""

    def rows(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Everything that *sql* finds."""
        return self.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> Any:
        """The first row that *sql* finds; None where it finds nothing."""
        return self.execute(sql, values).fetchone()

    def many(self, sql: str, values: Sequence[tuple[object, ...]]) -> list[Any]:
        """Do *sql* with the rows of *values*, which stand where it says {rows}; everything that it finds.

        Up to `AT_ONCE` of them stand in one statement: a row costs half of what it does in a statement of its own.
        Statements have a few lengths only, so that they are compiled once.
        """
        found: list[Any] = []
        done, size = 0, AT_ONCE
        row = f"({', '.join('?' * len(values[0]))})" if values else ""
        while left := len(values) - done:
            while size > left:
                size //= 2
            some = values[done : done + size]
            found += self.execute(sql.replace("{rows}", ", ".join([row] * size)), tuple(chain.from_iterable(some)))
            done += size
        return found

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done meanwhile, durable when this is left, or nothing of it."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise


def connect(path: Path) -> aiosqlite.Connection:
    """A connection to the database at *path*, to be entered."""
    return aiosqlite.connect(path, isolation_level=None, factory=Connection)


async def inside(
    db: aiosqlite.Connection, act: Callable[Concatenate[Connection, P], T], *arguments: P.args, **named: P.kwargs
) -> T:
    """What *act* returns, called with the connection itself in the thread of *db*; aiosqlite has no public way."""
    result: T = await db._execute(act, db._conn, *arguments, **named)  # type: ignore[no-untyped-call]  # noqa: SLF001
    return result
