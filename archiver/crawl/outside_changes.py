"""Takes up what other processes write into the frontier while the crawl runs.

Commands queue URLs again and add seeds. Other crawlers of the same crawl find URLs of our hosts and fetch robots.txt
files that ours share. We look every second, which costs next to nothing, and read only after someone has written. A
further seed is not handed out before a look could see it (`GRACE`), so a scope that knows the seed judges its links.
"""

from collections.abc import Awaitable, Callable, Sequence

from archiver.crawl.dispatcher import Dispatcher
from archiver.frontier.port import Frontier

LOOK_EVERY = 1.0  # seconds
GRACE = 2 * LOOK_EVERY  # seconds after which a seed that was added from outside may be fetched

Renew = Callable[[Sequence[str], Sequence[str]], Awaitable[None]]  # takes the newest seeds, and all further ones


class OutsideChanges:
    """Takes up what other processes write."""

    def __init__(self, frontier: Frontier, dispatcher: Dispatcher, seeds: Sequence[str], renew: Renew) -> None:
        """*seeds* are known to the crawl rules; *renew* replaces the rules when there are more."""
        self.next_look = 0.0
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
