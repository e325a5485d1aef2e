"""What earlier crawls have of a URL that is about to be asked for again: looked up beside the event loop."""

import asyncio
from concurrent.futures import Executor

from archiver.earlier import Memory, Version
from archiver.model import Claim
from archiver.visit import is_robots


class Recall:
    """Asks *memory* in *thread*; without them nothing is known of any URL."""

    def __init__(self, memory: Memory | None = None, thread: Executor | None = None) -> None:
        self._memory = memory
        self._thread = thread

    async def version(self, claim: Claim) -> Version | None:
        """What is stored of the URL of *claim*, if it can be asked for under conditions; rules are always asked for."""
        if self._memory is None or is_robots(claim):
            return None
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._memory.version, claim.url)
