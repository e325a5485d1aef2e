"""Takes up what other processes write into the frontier while the crawl runs.

Commands queue URLs again, add seeds and give orders. Other crawlers of the same crawl find URLs of our hosts and fetch
robots.txt files that ours share. We look every second, which costs next to nothing, and read only after someone has
written. A further seed is not handed out before a look could see it (`GRACE`), so a scope that knows the seed judges
its links.

Every crawler takes up every order, in the sequence of their rows. An order that has its answer is in force in all of
them. A paused crawl starts no request; those under way end. It stays paused until a person lets it go on, over any
number of runs, because the order is a row of the database. A signal, a limit or an order to stop ends a run that is
paused. An order to stop is for the run that takes it up, and for no later one.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from archiver.clock import Clock
from archiver.crawl.dispatcher import Dispatcher
from archiver.crawl.orders.live_settings import LiveSettings
from archiver.frontier.orders.table import LOOK_EVERY, NOW, Order, Verb
from archiver.frontier.port import Frontier
from archiver.humanize import printable
from archiver.policy.schedule import Schedule

Renew = Callable[[Sequence[str], Sequence[str]], Awaitable[None]]  # takes the newest seeds, and all further ones


@dataclass(frozen=True, slots=True)
class OrderedStop:
    """The end of a run that a person has ordered."""

    reason: str
    cut: bool  # requests under way are cut, and their URLs stay queued


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
        self.stop: OrderedStop | None = None

    def stop_by(self, who: str) -> None:
        """End this run, because a hook asks for it."""
        self.stop = self.stop or OrderedStop(f"stopped by {who}", cut=False)

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
            case Verb.STOP:
                return self._stop(order)
            case Verb.NOTE:
                return "noted"
            case Verb.FIRST | Verb.RETRY | Verb.ADD:  # the command does it, and then we read the queue again
                return "in force"
            case _:
                if order.id > self._known:
                    await self._live.put(order)
                return "in force"

    def _stop(self, order: Order) -> str:
        """Note that *order* ends this run. One from before it meant an earlier run, which has ended."""
        if order.id <= self._known:
            return "the run had ended already"
        cut = NOW in order.arguments
        self.stop = OrderedStop(f"stopped by {printable(order.who)}", cut or (self.stop is not None and self.stop.cut))
        return "stopping: requests under way are cut" if cut else "stopping: no request starts; those under way end"


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

    @property
    def stop(self) -> OrderedStop | None:
        """The end of this run, if a person has ordered it."""
        return self._orders.stop

    def look_soon(self) -> None:
        """Look at the next call, because others have certainly written something."""
        self.next_look = -1.0

    async def take_orders(self) -> None:
        """Take up orders, and nothing else that others have written: for a run that is about to end."""
        if (await self._frontier.written_by_others()).rows or self._dispatcher.shares:
            await self._orders.take_up()

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
