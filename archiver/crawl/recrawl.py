"""Uses what earlier crawls of the collection have archived.

`EarlierLookups` finds the stored version of a URL for a conditional request, in a thread beside the event loop.

`UndiscoveredUrls` queues URLs that earlier crawls have archived and that no link led to this time, when all else is
done: the only way to learn that they are gone. Scope and traps judge each URL as if the page that named it then named
it now. Our own guesses are not repeated. This needs no state of its own: URLs that the frontier knows are skipped.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from archiver.collection.earlier_crawls import EarlierCrawls, StoredVersion
from archiver.crawl.rules import CurrentRules
from archiver.crawl.visit import OTHER_VERSION, judged
from archiver.extract.exchange import is_robots
from archiver.frontier.earlier import EarlierUrl
from archiver.frontier.port import EarlierFind, Frontier
from archiver.model import LINK_OUTSIDE, Claim, Exchange, Hop, Link, Refusal
from archiver.policy.scope import is_guess


class EarlierLookups:
    """Looks up stored versions in *memory*, in *thread*; without them it finds none."""

    def __init__(self, memory: EarlierCrawls | None = None, thread: Executor | None = None) -> None:
        self._memory = memory
        self._thread = thread
        self._doubted: set[str] = set()  # URLs to fetch without conditions the next time

    async def version(self, claim: Claim) -> StoredVersion | None:
        """Return the stored version for a conditional request; None if there is none, or for a robots.txt."""
        if self._memory is None or is_robots(claim):
            return None
        if claim.url in self._doubted:
            self._doubted.discard(claim.url)
            return None
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._memory.version, claim.url)

    def doubted(self, claim: Claim, exchange: Exchange) -> Exchange:
        """Mark *exchange*, a 304 for another version than ours; its URL is fetched again without conditions."""
        self._doubted.add(claim.url)
        return replace(exchange, notes=(*exchange.notes, OTHER_VERSION))


AT_ONCE = 1000  # URLs judged and queued in one transaction

_HOPS = frozenset(Hop)


class UndiscoveredUrls:
    """Queues, portion by portion, the URLs that only *memory* knows."""

    def __init__(self, memory: EarlierCrawls, frontier: Frontier, rules: CurrentRules, thread: Executor) -> None:
        self._left: Iterator[list[EarlierUrl]] = memory.not_rediscovered(AT_ONCE)
        self._frontier = frontier
        self._rules = rules
        self._thread = thread

    async def hand_out(self, now: float) -> bool:
        """Queue the next URLs that this crawl has not seen; return False if none are left."""
        loop = asyncio.get_running_loop()
        while portion := await loop.run_in_executor(self._thread, next, self._left, None):
            unknown = await self._frontier.unknown([each.url for each in portion])
            wanted = [each for each in portion if each.url in unknown and not is_guess(each.path)]
            recalled = await loop.run_in_executor(self._thread, self._judged, wanted, now)
            if recalled and await self._frontier.enqueue_earlier(recalled):
                return True
        return False

    def _judged(self, wanted: Sequence[EarlierUrl], now: float) -> list[EarlierFind]:
        taken = []
        for each in wanted:
            link, parent = _as_found(each)
            verdict = judged(self._rules.terms, link, parent, now)
            if not isinstance(verdict, Refusal):
                taken.append(EarlierFind(verdict, each.via, each.seed))
        return taken


def _as_found(each: EarlierUrl) -> tuple[Link, Claim]:
    """Return the link that led to a URL then, and the page it was on; a seed counts as a link from itself."""
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
        off_scope_hops=max(0, each.off_scope_hops - {Hop.REQUISITE: 1, Hop.LINK: LINK_OUTSIDE}.get(hop, 0)),
        tries=0,
        seed=each.seed,
    )
    return Link(each.url, hop), parent
