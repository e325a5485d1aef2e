"""Idle connections that wait for their next exchange. The most recent one is used first, the oldest closed first.

Their number and idle time are limited, with one timer for all. The server may have closed a connection while it was
idle: the caller has to check.
"""

import asyncio
import math
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

IDLE = 15.0  # seconds until an idle connection is closed; servers commonly close theirs after 5 to 75
MOST = 1024  # connections; each takes a descriptor, with TLS also some 50 KB


class Closable(Protocol):
    """A connection in the pool."""

    def close(self) -> None:
        """Close the connection."""


Connection = TypeVar("Connection", bound=Closable)


class IdleConnections(Generic[Connection]):
    """Idle connections by origin, at most *most*; close it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: float = math.inf) -> None:
        self._loop = loop
        self._most = most
        self._since: OrderedDict[Connection, tuple[str, float]] = OrderedDict()  # the longest idle first, as …
        self._stacks: dict[str, list[Connection]] = {}  # … in each of these
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return the number of idle connections."""
        return len(self._since)

    def put(self, origin: str, connection: Connection) -> None:
        """Add *connection* to *origin*."""
        self._since[connection] = origin, self._loop.time()
        self._stacks.setdefault(origin, []).append(connection)
        if len(self._since) > min(self._most, MOST):
            self._close_oldest()
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE, self._expire)

    def take(self, origin: str) -> Connection | None:
        """Return the connection to *origin* that was added last; None if there is none."""
        stack = self._stacks.get(origin)
        if stack is None:
            return None
        connection = stack.pop()
        if not stack:
            del self._stacks[origin]
        del self._since[connection]
        return connection

    def drop(self, origin: str) -> None:
        """Close all idle connections to *origin*."""
        while (connection := self.take(origin)) is not None:
            connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        while self._since:
            self._close_oldest()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_oldest(self) -> None:
        """Close the connection that has been idle longest."""
        connection, (origin, _) = self._since.popitem(last=False)
        stack = self._stacks[origin]
        del stack[0]
        if not stack:
            del self._stacks[origin]
        connection.close()

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._since:
            since = next(iter(self._since.values()))[1]
            if since + IDLE > now:
                self._timer = self._loop.call_at(since + IDLE, self._expire)
                return
            self._close_oldest()
