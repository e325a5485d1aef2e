"""Gives an order to a crawl, and waits for its answer if the crawl runs.

An order is a row of the database. A running crawl looks every second, acts and answers in the row. If no process
crawls, the order is done at once, and the next run begins with it.
"""

import getpass
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archiver.cli.directory import check_changeable, crawl_lock, named_crawl, resume_hint
from archiver.cli.terminal import result
from archiver.collection.named_crawl import NamedCrawl
from archiver.frontier.address import host_name
from archiver.frontier.orders.table import NewOrder, Order, Verb
from archiver.humanize import printable
from archiver.model import ExitCode

PATIENCE = 15.0  # seconds until we no longer wait for the answer of a running crawl
LONGEST = 10_000  # characters of an answer


@dataclass(frozen=True, slots=True)
class Wanted:
    """An order that a command is about to give."""

    verb: Verb
    arguments: Sequence[str] = ()
    later: str = ""  # the answer if no process crawls


def who() -> str:
    """Return the user and the machine."""
    try:
        return f"{getpass.getuser()}@{host_name()}"
    except (OSError, KeyError):  # of a user that has no name, as in some containers
        return f"@{host_name()}"


def give(place: Path | str, wanted: Wanted) -> ExitCode:
    """Give the order *wanted* to the crawl at *place*, and print what comes of it."""
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
        number = await frontier.give_order(new, None if running else wanted.later)
        return await frontier.answered_order(number, PATIENCE)
