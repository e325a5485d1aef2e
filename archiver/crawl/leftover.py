"""What earlier crawls have archived, and nothing has led to in this one: asked for when all else is done.

Only so it is known what is gone. Scope and traps judge each URL as if the page that named it then named it now; what
was only a guess of ours is not asked for again. Needs no state of its own: what the frontier knows is not handed out.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor

from archiver.crawl.lane import InForce
from archiver.earlier import Memory
from archiver.frontier.past import Archived
from archiver.frontier.port import Frontier
from archiver.frontier.recalling import Recalled
from archiver.model import LINK_OUTSIDE, Claim, Hop, Link, Refusal
from archiver.scope import is_guess
from archiver.visit import judged

AT_ONCE = 1000  # URLs looked at in one go, and handed out in one transaction

_HOPS = frozenset(Hop)


class Leftover:
    """Hands the frontier, portion by portion, what *memory* has."""

    def __init__(self, memory: Memory, frontier: Frontier, in_force: InForce, thread: Executor) -> None:
        self._left: Iterator[list[Archived]] = memory.left(AT_ONCE)
        self._frontier = frontier
        self._in_force = in_force
        self._thread = thread

    async def hand_out(self, now: float) -> bool:
        """Let the next URLs wait that nobody has asked for; False where there are none left."""
        loop = asyncio.get_running_loop()
        while portion := await loop.run_in_executor(self._thread, next, self._left, None):
            unknown = await self._frontier.unknown([each.url for each in portion])
            wanted = [each for each in portion if each.url in unknown and not is_guess(each.path)]
            recalled = await loop.run_in_executor(self._thread, self._judged, wanted, now)
            if recalled and await self._frontier.recall(recalled):
                return True
        return False

    def _judged(self, wanted: Sequence[Archived], now: float) -> list[Recalled]:
        taken = []
        for each in wanted:
            link, parent = _as_found(each)
            verdict = judged(self._in_force.terms, link, parent, now)
            if not isinstance(verdict, Refusal):
                taken.append(Recalled(verdict, each.via, each.seed))
        return taken


def _as_found(each: Archived) -> tuple[Link, Claim]:
    """The link that led to a URL then, and the page on which it stood; what was a seed counts as a link of its own."""
    hop = Hop(each.path[-1]) if each.path else Hop.LINK
    before = each.path[:-1]
    way = Hop(before[-1]) if before[-1:] in _HOPS else Hop.LINK
    parent = Claim(
        id=0,
        url=each.via or each.seed or each.url,
        host=0,
        hop=way,
        path=before,
        depth=max(0, each.depth - (hop is Hop.LINK)),
        strays=max(0, each.strays - {Hop.REQUISITE: 1, Hop.LINK: LINK_OUTSIDE}.get(hop, 0)),
        tries=0,
        seed=each.seed,
    )
    return Link(each.url, hop), parent
