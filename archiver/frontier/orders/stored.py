"""The orders of a crawl, through the two connections of its frontier.

Commands use `give_order` and `answered_order`. Each crawler uses `orders_to_take_up` and `take_up`, once a
second at most. An order is one small row, and there are as many as people have given, so every call is cheap.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from archiver.frontier.connection import Connection
from archiver.frontier.connections import Database, Runs
from archiver.frontier.orders import excluding, including, table
from archiver.frontier.orders.table import NewOrder, Order
from archiver.policy.scope import Scope
from archiver.policy.seed_scopes import Scopes

P = ParamSpec("P")
T = TypeVar("T")
Row = TypeVar("Row")
SHARE = 1 / 3  # of the time is spent on judging and writing; the rest is the crawl's
WRITTEN_AT_ONCE = 250  # rows of one transaction: some two milliseconds
ASK_EVERY = 0.1  # seconds between two looks at an order that is not answered


class StoredOrders(Runs):
    """The orders that people give: see frontier/orders/table.py."""

    def __init__(self, opened: Database) -> None:
        super().__init__(opened)
        self._crawler = 0  # our number, if this process crawls

    async def give_order(self, new: NewOrder, answer: str | None) -> int:
        """Write the order *new* and return its row. *answer*: what came of it, if no crawler has to take it up."""
        return await self._write(table.give if self._notes is None else self._notes.ordered, new, answer)

    async def answered_order(self, row: int, patience: float) -> Order:
        """Return the order in *row* when every crawler has taken it up, or as it is after *patience* seconds."""
        order = await self._read(table.order, row)
        for _ in range(int(patience / ASK_EVERY)):
            if order.answered is not None:
                break
            await asyncio.sleep(ASK_EVERY)
            order = await self._read(table.order, row)
        return order

    async def _read_gently(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Call *act* with the reading connection, then rest."""
        spent: list[float] = []
        found = await self._read(_timed(act, spent), *values, **named)
        await _rest(spent)
        return found

    async def _write_gently(
        self,
        act: Callable[Concatenate[Connection, Sequence[Row], P], int],
        rows: Sequence[Row],
        *values: P.args,
        **named: P.kwargs,
    ) -> int:
        """Call *act* for *rows*, `WRITTEN_AT_ONCE` in each transaction, and return the sum of its results.

        A process that is interrupted while it holds the lock of the database makes the crawl wait, so it holds it for
        a few milliseconds at most. SQLite does not wait for the disk here: the answer to the order, which follows, is
        synced, and all before it.
        """
        count = 0
        for first in range(0, len(rows), WRITTEN_AT_ONCE):
            some = rows[first : first + WRITTEN_AT_ONCE]
            spent: list[float] = []
            count += await self._write_unsynced(_timed(act, spent), some, *values, **named)
            await _rest(spent)
        return count

    async def exclude(self, regex: str, matches: Callable[[str], bool]) -> int:
        """Exclude the waiting URLs that match *regex*, and return how many; *matches* says which do."""
        after = count = 0
        while (page := await self._read_gently(excluding.page, excluding.WAITING, after, matches)).last:
            after = page.last
            count += await self._write_gently(excluding.exclude, [row for row, _ in page.found], regex)
        return count

    async def put_first(self, matches: Callable[[str], bool]) -> int:
        """Let the waiting URLs that match go before all pages of their hosts, and return how many."""
        after = count = 0
        while (page := await self._read_gently(excluding.page, excluding.WAITING, after, matches)).last:
            after = page.last
            count += await self._write_gently(excluding.put_first, [row for row, _ in page.found])
        return count

    async def take_back(self, regex: str) -> int:
        """Let the URLs wait again that the rule *regex* has excluded, and return how many."""
        after = count = 0
        while rows := await self._read_gently(excluding.excluded, regex, after):
            after = rows[-1]
            count += await self._write_gently(excluding.take_back, rows)
        return count

    async def include(self, regex: str, matches: Callable[[str], bool], scope: Scope | Scopes) -> int:
        """Let refused and excluded URLs wait that match *regex* and that *scope* accepts; return how many."""
        count, after, last = 0, 0, ""
        while (excluded := await self._read_gently(including.excluded_page, after, matches, scope)).last:
            after = excluded.last
            count += await self._write_gently(including.revive, [row for row, _ in excluded.found], regex)
        while (refused := await self._read_gently(including.refused_page, last, matches, scope)).last:
            last = refused.last
            count += await self._write_gently(including.add, refused.found)
        return count

    async def take_out(self, regex: str, matches: Callable[[str], bool], scope: Scope | Scopes) -> int:
        """Exclude the waiting URLs that *regex* brought in, by the *scope* without it, and return how many."""
        after = count = 0
        while (page := await self._read_gently(including.waiting_page, regex, after, matches, scope)).last:
            after = page.last
            count += await self._write_gently(including.take_out, page.found)
        await self._write(including.forget, regex)
        return count

    async def links_not_kept(self) -> int:
        """Return the number of refused links that are only counted."""
        return await self._read(including.not_kept)

    async def amend_answer(self, row: int, answer: str) -> None:
        """Replace the answer to the order in *row*."""
        await self._write(table.amend, row, answer)

    async def orders(self) -> list[Order]:
        """Return all orders, oldest first."""
        return await self._read(table.orders)

    async def newest_order(self) -> int:
        """Return the row of the newest order; 0 if there is none."""
        return await self._read(table.newest)

    async def orders_to_take_up(self, after: int) -> list[Order]:
        """Return the orders behind the row *after*, and those before it that a crawler has not taken up.

        The latter are those that a crash left open, or that another crawler has still to take up.
        """
        return await self._read(table.to_take_up, after)

    async def take_up(self, answers: Mapping[int, str], now: float) -> None:
        """Note that we have taken up the orders with these *answers*, by row.

        The first answer that a crawler gives is kept. An order is done when every living crawler has taken it up.
        """
        await self._write(table.take_up, self._crawler, answers, now)

    async def latest_pause(self) -> Order | None:
        """Return the latest of the orders that pause the crawl and let it go on; None if there is none."""
        return await self._read(table.latest_pause)

    async def is_paused(self) -> bool:
        """Return True if a person has paused the crawl.

        That is so until `archiver go`, over any number of runs.
        """
        return await self._read(table.is_paused)


def _timed(act: Callable[Concatenate[Connection, P], T], spent: list[float]) -> Callable[Concatenate[Connection, P], T]:
    """Return *act*, which then also adds its seconds to *spent*: those in which it has the lock of the database."""

    def timed(db: Connection, /, *values: P.args, **named: P.kwargs) -> T:
        began = time.monotonic()
        try:
            return act(db, *values, **named)
        finally:
            spent.append(time.monotonic() - began)

    return timed


async def _rest(spent: Sequence[float]) -> None:
    """Leave processor, disk and database to the crawl for a multiple of the seconds *spent*."""
    await asyncio.sleep(sum(spent) * (1 / SHARE - 1))
