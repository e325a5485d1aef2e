"""Takes up what other processes write into the frontier while the crawl runs.

Commands queue URLs again, add seeds and give orders. Other crawlers of the same crawl find URLs of our hosts and fetch
robots.txt files that ours share. We look every second, which costs next to nothing, and read only after someone has
written. A further seed is not handed out before a look could see it (`GRACE`), so a scope that knows the seed judges
its links.

Every crawler takes up every order, in the sequence of their rows. An order that has its answer is in force in all of
them. A paused crawl starts no request; those under way end. It stays paused until a person lets it go on, over any
number of runs, because the order is a row of the database. Only a signal or a limit ends a run that is paused.
"""

from collections.abc import Awaitable, Callable, Sequence

from archiver.clock import Clock
from archiver.crawl.dispatcher import Dispatcher
from archiver.crawl.orders.live_settings import LiveSettings
from archiver.frontier.orders.table import Order, Verb
from archiver.frontier.port import Frontier
from archiver.policy.schedule import Schedule

LOOK_EVERY = 1.0  # seconds
GRACE = 2 * LOOK_EVERY  # seconds after which a seed that was added from outside may be fetched

Renew = Callable[[Sequence[str], Sequence[str]], Awaitable[None]]  # takes the newest seeds, and all further ones


class TakenOrders:
    """Takes up the orders of one crawler."""

    def __init__(self, frontier: Frontier, schedule: Schedule, clock: Clock, known: int, live: LiveSettings) -> None:
        """*known*: the newest order when the settings were read, which have what it and those before it asked for."""
        self._frontier = frontier
        self._schedule = schedule
        self._clock = clock
        self._known = known
        self._live = live
        self._begun = False

    async def take_up(self) -> None:
        """Take up what has been ordered since the last call, and answer it.

        The first call also finds out whether the crawl was paused before this run. Orders that are known but open need
        only an answer; to obey them again changes nothing.
        """
        orders = await self._frontier.orders_to_take_up(self._known)
        if orders or not self._begun:
            self._schedule.paused = await self._frontier.is_paused()
            self._begun = True
        if orders:
            answers = {order.id: await self._obey(order) for order in orders}
            self._known = max(self._known, *answers)
            await self._frontier.take_up(answers, self._clock.now())

    async def _obey(self, order: Order) -> str:
        """Do what *order* asks for, unless the run began with it, and return the answer."""
        match order.verb:
            case Verb.PAUSE:
                return "paused: no request starts; those under way end"
            case Verb.GO:
                return "the crawl goes on"
            case Verb.NOTE:
                return "noted"
            case Verb.FIRST:  # the command does it, and then we read the queue again
                return "in force"
            case _:
                if order.id > self._known:
                    await self._live.put(order)
                return "in force"


class OutsideChanges:
    """Takes up what other processes write."""

    def __init__(
        self, frontier: Frontier, dispatcher: Dispatcher, seeds: Sequence[str], renew: Renew, orders: TakenOrders
    ) -> None:
        """*seeds* are known to the crawl rules; *renew* replaces the rules when there are more."""
        self.next_look = 0.0
        self._orders = orders
        self._frontier = frontier
        self._dispatcher = dispatcher
        self._known = set(seeds)
        self._further: list[str] = []
        self._renew = renew

    def look_soon(self) -> None:
        """Look at the next call, because others have certainly written something."""
        self.next_look = -1.0

    async def look(self, now: float, *, at_once: bool = False) -> bool:
        """Take up what others have written since the last look, if it is time; return True if there was anything."""
        if now < self.next_look and not at_once:
            return False
        first, self.next_look = self.next_look == 0.0, now + LOOK_EVERY
        written = await self._frontier.written_by_others()
        if self._dispatcher.shares:
            await self._dispatcher.hear(now, cookies=written.cookies)
        if written.rows or first or self._dispatcher.shares:
            await self._orders.take_up()
        if not (written.orders or first):
            return False
        new = [seed for seed in await self._frontier.seeds() if seed not in self._known]
        if not (written.orders or new):  # seeds may have been added between the start of this process and now
            return False
        if new:
            self._known.update(new)
            self._further += new
            await self._renew(new, self._further)
            await self._dispatcher.regroup()
        await self._dispatcher.reread()
        return True
