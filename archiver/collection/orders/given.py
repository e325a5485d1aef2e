"""An order that was given, and how one that needs no crawler is done: it is written, done, and answered."""

import getpass
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from archiver.collection.named_crawl import NamedCrawl
from archiver.collection.settings_file import check_length
from archiver.config import toml
from archiver.config.secret_settings import in_common
from archiver.config.settings import Settings, with_values
from archiver.frontier import machines
from archiver.frontier.address import host_name, shared_frontier, write_address
from archiver.frontier.orders.table import MOST_KEPT, NewOrder, Order
from archiver.humanize import count

if TYPE_CHECKING:
    from archiver.frontier.connections import Worker
    from archiver.frontier.sqlite import SqliteFrontier

BEGUN = "begun; it has no answer if its command was ended meanwhile"

Change = Callable[[Settings], Settings]
Work = Callable[["SqliteFrontier"], Awaitable[tuple[int, str]]]  # returns the number of URLs, and the answer


@dataclass(frozen=True, slots=True)
class GivenOrder:
    """An order that was given; `order.answered` is None if the running crawl has not answered yet."""

    order: Order
    running: bool  # a process crawled when it was given
    command: str  # what a person would type
    urls: int = 1  # that have changed; 1 where that is not known


def user() -> str:
    """Return the user and the machine."""
    try:
        return f"{getpass.getuser()}@{host_name()}"
    except (OSError, KeyError):  # of a user that has no name, as in some containers
        return f"@{host_name()}"


def kept(words: Iterable[str]) -> tuple[str, ...]:
    """Return *words* as the row of an order keeps them: of very many, the first ones and the number of the others."""
    found, size, left = list[str](), 0, 0
    for word in words:
        size += len(word)
        if size <= MOST_KEPT:
            found.append(word)
        else:
            left += 1
    return (*found, *((f"… and {count(left, 'more word')}",) if left else ()))


async def done_at_once(crawl: NamedCrawl, new: NewOrder, work: Work) -> tuple[Order, int]:
    """Write the order *new* to *crawl* and do its *work*, which no crawler need know of; return it and the URLs."""
    from archiver.frontier.sqlite import SqliteFrontier  # noqa: PLC0415 - slow to import

    async with await SqliteFrontier.open(crawl.frontier) as frontier:
        now = time.time() + await frontier.clock_ahead()
        number = await frontier.give_order(replace(new, given=now, arguments=kept(new.arguments)), BEGUN)
        urls, answer = await work(frontier)
        await frontier.amend_answer(number, answer)
        return await frontier.answered_order(number, 0.0), urls


async def change_common(crawl: NamedCrawl, writer: "Worker", change: Change) -> Settings | None:
    """Change the settings that all machines have in common; return those that they had, None if there are none.

    Called in a transaction of *writer* that excludes others. The directory of *crawl* goes on to agree with them if it
    did before.
    """
    revision, text, _ = await writer.run(machines.settings)
    if not text:
        return None
    before = with_values(Settings(), toml.parse(text, "the settings in the database"))
    if (new := in_common(change(before))) != before:
        changed = toml.render(new)
        check_length(changed)
        newest = await writer.run(machines.put_settings, changed, revision)
        here = None if crawl.layout is None else shared_frontier(crawl.layout.database)
        if crawl.layout is not None and here is not None and here.revision == revision:
            write_address(crawl.layout.database, here.address, here.machine, newest)
    return before
