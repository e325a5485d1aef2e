"""The answers of the name servers, as far as the guard lets a host be asked at them.

Each answer is kept until a connection that it led to has told the archive of it, once.
"""

import socket
import time
from collections import OrderedDict

from aiohttp.abc import AbstractResolver, ResolveResult

from archiver.fetch.guard import Guard
from archiver.model import Lookup

MAX_KNOWN = 4096  # answers remembered, a name and some addresses each; aiohttp itself remembers 1000


class Answer:
    """One look-up, for the first who tells of it."""

    __slots__ = ("_lookup",)

    def __init__(self, lookup: Lookup) -> None:
        self._lookup: Lookup | None = lookup

    def told(self) -> Lookup | None:
        """The look-up; None from the second time on."""
        lookup, self._lookup = self._lookup, None
        return lookup


class GuardedResolver(AbstractResolver):
    """Another resolver, whose answers the guard has seen: nobody connects to the others."""

    def __init__(self, guard: Guard, resolver: AbstractResolver) -> None:
        self._guard = guard
        self._resolver = resolver
        self._answers: OrderedDict[tuple[str, int], Answer] = OrderedDict()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of *host* at which it may be asked."""
        asked = time.time_ns() // 1000
        found = await self._resolver.resolve(host, port, family)
        chosen = self._guard.choose(host, found)
        addresses = tuple(each["host"].partition("%")[0] for each in found)  # without the zone, which is this machine's
        key = host.rstrip("."), port
        self._answers.pop(key, None)
        self._answers[key] = Answer(Lookup(key[0], addresses, asked))
        if len(self._answers) > MAX_KNOWN:
            self._answers.popitem(last=False)
        return chosen

    def answer(self, host: str, port: int) -> Answer | None:
        """The latest answer by which *host* was found; None where it was not looked up."""
        return self._answers.get((host.rstrip("."), port))

    async def close(self) -> None:
        """Close the other one."""
        await self._resolver.close()
