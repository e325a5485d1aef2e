"""What earlier crawls have of a URL that is about to be asked for again: looked up beside the event loop."""

import asyncio
from concurrent.futures import Executor
from dataclasses import replace

from archiver.earlier import Memory, Version
from archiver.model import Claim, Exchange
from archiver.visit import OTHER_VERSION, is_robots


class Recall:
    """Asks *memory* in *thread*; without them nothing is known of any URL."""

    def __init__(self, memory: Memory | None = None, thread: Executor | None = None) -> None:
        self._memory = memory
        self._thread = thread
        self._doubted: set[str] = set()  # what is asked for whole the next time

    async def version(self, claim: Claim) -> Version | None:
        """What is stored of the URL of *claim*, if it can be asked for under conditions; rules are always asked for."""
        if self._memory is None or is_robots(claim):
            return None
        if claim.url in self._doubted:
            self._doubted.discard(claim.url)
            return None
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._memory.version, claim.url)

    def doubted(self, claim: Claim, exchange: Exchange) -> Exchange:
        """*exchange*, a 304 that names another version than ours; its URL is asked for again without conditions."""
        self._doubted.add(claim.url)
        return replace(exchange, notes=(*exchange.notes, OTHER_VERSION))
