"""Gives an order to a crawl, and waits for its answer if the crawl runs.

An order is a row of the database. A running crawl looks every second, acts and answers in the row. If no process
crawls, the order is done at once, and the next run begins with it.
"""

import getpass
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.cli.directory import check_changeable, crawl_lock, named_crawl, resume_hint
from archiver.cli.terminal import result
from archiver.collection.named_crawl import NamedCrawl
from archiver.collection.settings_file import read_settings
from archiver.config import toml
from archiver.config.secret_settings import in_common
from archiver.config.settings import Settings, with_values
from archiver.frontier import machines
from archiver.frontier.address import host_name, shared_frontier, write_address
from archiver.frontier.orders import table
from archiver.frontier.orders.table import NewOrder, Order, Verb
from archiver.humanize import printable
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.frontier.connections import Worker
    from archiver.frontier.sqlite import SqliteFrontier

PATIENCE = 15.0  # seconds until we no longer wait for the answer of a running crawl
LONGEST = 10_000  # characters of an answer


@dataclass(frozen=True, slots=True)
class Wanted:
    """An order that a command is about to give."""

    verb: Verb
    arguments: Sequence[str] = ()
    later: str = ""  # the answer if no process crawls
    change: Callable[[Settings], Settings] | None = None  # of the stored settings
    work: Callable[["SqliteFrontier"], Awaitable[str]] | None = None  # done when it is in force; returns the answer


def who() -> str:
    """Return the user and the machine."""
    try:
        return f"{getpass.getuser()}@{host_name()}"
    except (OSError, KeyError):  # of a user that has no name, as in some containers
        return f"@{host_name()}"


def give(place: Path | str, wanted: Wanted) -> ExitCode:
    """Give the order *wanted* to the crawl at *place*, do its work, and print what comes of it."""
    import asyncio

    crawl = named_crawl(place)
    check_changeable(crawl)
    with crawl_lock(crawl) as running:
        order = asyncio.run(_given(crawl, wanted, running=running))
    print_answer(order, crawl, running=running)
    return ExitCode.DONE


def print_answer(order: Order, crawl: NamedCrawl, *, running: bool) -> None:
    """Print what came of *order*."""
    if order.answered is None:
        result("the running crawl has not answered yet; archiver orders shows its answer")
        return
    hint = "" if running or order.verb == Verb.PAUSE else resume_hint(1, crawl, running=False)
    result(f"{printable(order.answer, LONGEST)}{hint}")


async def _given(crawl: NamedCrawl, wanted: Wanted, *, running: bool) -> Order:
    from archiver.frontier.sqlite import SqliteFrontier

    async with await SqliteFrontier.open(crawl.frontier) as frontier:
        now = time.time() + await frontier.clock_ahead()
        new = NewOrder(wanted.verb, tuple(wanted.arguments), who(), now)
        async with frontier.exclusive_transaction() as writer:
            if wanted.change is not None:
                await rewrite(crawl, writer, wanted.change)
            number = await writer.run(table.give, new, None if running else wanted.later)
        order = await frontier.answered_order(number, PATIENCE)
        if wanted.work is not None:
            await frontier.amend_answer(number, await wanted.work(frontier))
            order = await frontier.answered_order(number, 0.0)
        return order


async def rewrite(crawl: NamedCrawl, writer: "Worker", change: Callable[[Settings], Settings]) -> None:
    """Change the settings of *crawl*: crawl.toml, and those in the database if several machines can crawl.

    Called while no other process can write either of them. The file is written first, so a crash before the order is
    stored loses nothing: the next run begins with the change.
    """
    if crawl.layout is not None:
        from archiver.crawl.rules import put_settings

        before = with_values(Settings(), read_settings(crawl.layout.settings))
        if (after := change(before)) != before:
            put_settings(crawl.layout, toml.render(after))
    if not crawl.address:
        return
    revision, text, _ = await writer.run(machines.settings)
    if not text:
        return
    common = with_values(Settings(), toml.parse(text, "the settings in the database"))
    if (new := in_common(change(common))) != common:
        newest = await writer.run(machines.put_settings, toml.render(new), revision)
        here = None if crawl.layout is None else shared_frontier(crawl.layout.database)
        if crawl.layout is not None and here is not None and here.revision == revision:
            write_address(crawl.layout.database, here.address, here.machine, newest)
