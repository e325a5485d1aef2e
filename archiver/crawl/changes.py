"""What other processes write into the frontier while the crawl runs: URLs that are due again, and further seeds.

Looks every second, which costs next to nothing, and reads only where somebody has written. A further seed is
not handed out before a look could see it (`GRACE`), so what it leads to is judged by a scope that knows it.
"""

from collections.abc import Awaitable, Callable, Sequence

from archiver.crawl.feed import Feed
from archiver.frontier.port import Frontier

LOOK_EVERY = 1.0  # seconds
GRACE = 2 * LOOK_EVERY  # seconds after which a seed that was added from outside may be fetched

Renew = Callable[[Sequence[str], Sequence[str]], Awaitable[None]]  # given the newest seeds, and all that came further


class Changes:
    """Takes up what came; *seeds* were known when the terms were made, *renew* puts others in force."""

    def __init__(self, frontier: Frontier, feed: Feed, seeds: Sequence[str], renew: Renew) -> None:
        self.next_look = 0.0
        self._frontier = frontier
        self._feed = feed
        self._known = set(seeds)
        self._further: list[str] = []
        self._renew = renew

    async def look(self, now: float, *, at_once: bool = False) -> bool:
        """Take up what others have written since the last look, if it is time for one; whether there was anything."""
        if now < self.next_look and not at_once:
            return False
        self.next_look = now + LOOK_EVERY
        if not await self._frontier.written_by_others():
            return False
        new = [seed for seed in await self._frontier.seeds() if seed not in self._known]
        if new:
            self._known.update(new)
            self._further += new
            await self._renew(new, self._further)
            await self._feed.reclass()
        await self._feed.reread()
        return True
