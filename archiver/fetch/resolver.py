"""The answers of the name servers: asked for in a bounded way, seen by the guard before any use, and remembered.

Each answer is kept until a connection that it led to has told the archive of it, once.
"""

import asyncio
import errno
import socket
import time
from collections import OrderedDict
from functools import partial
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from archiver.errors import Failure, FetchError
from archiver.fetch.guard import Guard
from archiver.fetch.lookup import Lookups
from archiver.model import Lookup

MAX_KNOWN = 4096  # answers remembered, a name and some addresses each
TTL = 300.0  # seconds; as long as browsers keep an address at most

Key = tuple[str, int, int]  # host name, port, and family of addresses


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
        _remember(self._answers, key, Answer(Lookup(key[0], addresses, asked)))
        return chosen

    def answer(self, host: str, port: int) -> Answer | None:
        """The latest answer by which *host* was found; None where it was not looked up."""
        return self._answers.get((host.rstrip("."), port))

    async def close(self) -> None:
        """Close the other one."""
        await self._resolver.close()


class RememberingResolver(AbstractResolver):
    """Asks another resolver once, however many want to know, and remembers what it says; close it.

    All that is asked goes through *lookups*, which bounds it.
    """

    def __init__(self, resolver: AbstractResolver, lookups: Lookups) -> None:
        self._resolver = resolver
        self._lookups = lookups
        self._found: OrderedDict[Key, tuple[float, list[ResolveResult]]] = OrderedDict()  # with when they are old
        self._asking: dict[Key, asyncio.Task[list[ResolveResult]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of *host*."""
        key = host, port, int(family)
        until, found = self._found.get(key, (0.0, []))
        if time.monotonic() < until:
            return found
        task = self._asking.get(key)
        if task is None:  # a task of its own, for the one who asked first may be called off
            task = self._asking[key] = asyncio.create_task(self._ask(key, known=until > 0))
            task.add_done_callback(partial(self._asked, key))
        return await asyncio.shield(task)

    async def first(self, host: str, port: int) -> str:
        """Return the first address of *host*; `FetchError` where there is none."""
        try:
            found = await self.resolve(host, port, socket.AF_UNSPEC)
        except (OSError, UnicodeError) as error:
            raise FetchError(Failure.DNS, unresolved(host, error)) from error
        return found[0]["host"] if found else ""

    def forget(self) -> None:
        """Forget all answers."""
        self._found.clear()

    async def close(self) -> None:
        """Ask nothing more."""
        asking = [*self._asking.values()]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._lookups.close()
        await self._resolver.close()

    def _asked(self, key: Key, task: "asyncio.Task[Any]") -> None:
        del self._asking[key]
        if not task.cancelled():
            task.exception()  # perhaps nobody waits for it any more

    async def _ask(self, key: Key, *, known: bool) -> list[ResolveResult]:
        host, port, family = key
        look_up = partial(self._resolver.resolve, host, port, socket.AddressFamily(family))
        try:
            found: list[ResolveResult] = await self._lookups.bounded(host, look_up, known=known)
        except TimeoutError as error:
            raise OSError(errno.ETIMEDOUT, "no name server answers") from error
        _remember(self._found, key, (time.monotonic() + TTL, found))
        return found


def _remember(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    known.pop(key, None)
    known[key] = value
    if len(known) > MAX_KNOWN:
        known.popitem(last=False)


def unresolved(host: str, error: Exception) -> str:
    """Return in words why *host* has no address."""
    if isinstance(error, OSError) and error.errno == errno.ETIMEDOUT:
        return f"no name server answers for {host}"
    return f"host name {host} does not resolve"
