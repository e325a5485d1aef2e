"""Established connections that wait for their next exchange: the latest is taken first, the longest idle are given up.

They are bounded in number and in time, by one timer for all. One that died meanwhile is still here: whoever takes
it has to look.
"""

import asyncio
import math
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

IDLE = 15.0  # seconds an unused connection is kept; servers commonly close theirs after 5 to 75
MOST = 1024  # connections; each holds a descriptor, and over TLS some 50 KB


class Closable(Protocol):
    """What can be kept here."""

    def close(self) -> None:
        """It is used no more."""


Kept = TypeVar("Kept", bound=Closable)


class IdleConnections(Generic[Kept]):
    """Idle connections by origin, *most* or fewer; close it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: float = math.inf) -> None:
        self._loop = loop
        self._most = most
        self._since: OrderedDict[Kept, tuple[str, float]] = OrderedDict()  # the longest idle first, and so …
        self._stacks: dict[str, list[Kept]] = {}  # … in each of these
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self._since)

    def put(self, origin: str, kept: Kept) -> None:
        """*kept* waits from now on."""
        self._since[kept] = origin, self._loop.time()
        self._stacks.setdefault(origin, []).append(kept)
        if len(self._since) > min(self._most, MOST):
            self._give_up()
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE, self._expire)

    def take(self, origin: str) -> Kept | None:
        """The connection to *origin* that was put here last; None where there is none."""
        stack = self._stacks.get(origin)
        if stack is None:
            return None
        kept = stack.pop()
        if not stack:
            del self._stacks[origin]
        del self._since[kept]
        return kept

    def drop(self, origin: str) -> None:
        """Close all that wait for *origin*."""
        while (kept := self.take(origin)) is not None:
            kept.close()

    def close(self) -> None:
        """Close all."""
        while self._since:
            self._give_up()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        """Close the one that has waited longest."""
        kept, (origin, _) = self._since.popitem(last=False)
        stack = self._stacks[origin]
        del stack[0]
        if not stack:
            del self._stacks[origin]
        kept.close()

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._since:
            since = next(iter(self._since.values()))[1]
            if since + IDLE > now:
                self._timer = self._loop.call_at(since + IDLE, self._expire)
                return
            self._give_up()
