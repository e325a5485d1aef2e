"""What a crawl does when its disk gets full: it stops in order, or pauses until there is room (--on-low-disk).

A pause is an order that the crawl gives itself, so it survives whatever orders survive, and `archiver orders` lists it
with the reason, which no person gives. The crawl goes on by itself only if it has paused itself: a pause of a person
stays. If a person lets it go on although the disk is low, it does, down to the last reserve.
"""

import asyncio
import logging
from collections.abc import Callable

from archiver.clock import Clock
from archiver.collection.disk_space import LAST_RESERVE, LOOK_EVERY, DiskSpace
from archiver.config.settings import SettingsByHost
from archiver.crawl.processes import NUMBER
from archiver.frontier.address import host_name
from archiver.frontier.orders.table import NewOrder, Order, Verb
from archiver.frontier.port import Frontier
from archiver.policy.schedule import Schedule

ALONE = "archiver"  # gives the orders of a single crawler
ROOM = 1.25  # of the floor: a paused crawl goes on when so much is free, so that it does not pause again at once

log = logging.getLogger(__name__)


def _machine(who: str) -> str:
    """Return the name of the machine of a crawler, without the number of the crawler."""
    return who.rpartition("@")[0].rpartition(NUMBER)[0]


class LowDisk:
    """Watches the disks of one crawler."""

    def __init__(
        self,
        space: DiskSpace,
        places: tuple[Frontier, Schedule],
        clock: Clock,
        settings: SettingsByHost,
        crawler: tuple[str, float],
    ) -> None:
        """*crawler*: its name, if others crawl too and must take up its orders; when its run began (Unix time)."""
        name, self._began = crawler
        self._space = space
        self._frontier, self._schedule = places
        self._clock = clock
        self._settings = settings
        self._shared = name != ""
        self._who = f"{name or ALONE}@{host_name()}"
        self._warned = False  # the crawl has paused because of the shortage that there is
        self._looked = False

    async def keep(self, end: Callable[[str], None], cut: Callable[[], None]) -> None:
        """Pause the crawl or call *end* before the disk is full; call *cut* if requests under way may not fit."""
        noted = False  # once in a run
        while True:
            low, last = self._space.shortage(), self._space.shortage(LAST_RESERVE)
            self._warned = self._warned and bool(low)
            if self._settings.common.limits.on_low_disk == "pause":
                await self._pause_or_go(low, last)
            elif low:
                end(low)
            if last:
                cut()
            if low and not noted:
                noted = True
                await self._frontier.note_low_disk(low)
            await asyncio.sleep(LOOK_EVERY)

    async def _pause_or_go(self, low: str, last: str) -> None:
        first, self._looked = not self._looked, True
        if not (low or self._schedule.paused):
            return
        latest = await self._frontier.latest_pause()
        if first and latest is not None and self._is_let_go(latest):
            self._warned = True
        if latest is None or latest.verb != Verb.PAUSE:
            if low and (last or not self._warned):
                self._warned = True
                await self._give(Verb.PAUSE, low, "paused: no request starts; those under way end")
                log.warning("%s; the crawl pauses until there is room, or archiver go", low)
        elif self._is_own(latest):
            self._warned = bool(low)  # a person may let the crawl go on all the same
            if not self._space.shortage(ROOM):
                await self._give(Verb.GO, "there is room on the disk again", "the crawl goes on")
                log.warning("there is room on the disk again; the crawl goes on")

    def _is_own(self, order: Order) -> bool:
        """Return True if a crawler of this machine has given *order*, maybe in a run with another number of them."""
        name, _, host = order.who.rpartition("@")
        ours = not self._shared or name == ALONE or _machine(order.who) == _machine(self._who)
        return bool(order.arguments) and host == host_name() and ours

    def _is_let_go(self, order: Order) -> bool:
        """Return True if *order* is a person's, since this run began, to go on; another crawler has paused before."""
        return order.verb == Verb.GO and not order.arguments and order.given >= self._began

    async def _give(self, verb: Verb, why: str, answer: str) -> None:
        new = NewOrder(verb, (why,), self._who, self._clock.now())
        await self._frontier.give_order(new, None if self._shared else answer)
        self._schedule.paused = await self._frontier.is_paused()
