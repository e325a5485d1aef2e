"""Threads that read for the control room, and answers that take long.

The threads do not keep the process from ending, so a long query holds up no one.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from archiver.errors import ArchiveError, ConfigError

SHARE = 20.0  # a slow answer is used for so many times as long as it took …
FRESH = 5.0  # … and at least for so many seconds
PATIENCE = 0.1  # seconds that a request waits for a slow answer that is not known yet

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what *act* returns in a thread of its own. For what only reads: the thread may end with the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            found = act(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            _tell(loop, future, partial(future.set_exception, error))
        else:
            _tell(loop, future, partial(future.set_result, found))

    threading.Thread(target=work, daemon=True).start()
    return await future


def _tell(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]", how: Callable[[], None]) -> None:
    """Call *how* in *loop*, unless no one waits any more."""
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(lambda: None if future.done() else how())


class SlowAnswer:
    """An answer that takes long to find, so it is found in the background and kept for a while."""

    def __init__(self, find: Callable[[], dict[str, Any]]) -> None:
        self._find = find
        self._found: dict[str, Any] | None = None
        self._until = 0.0
        self._task: asyncio.Task[None] | None = None
        self._failed: ArchiveError | ConfigError | None = None

    async def get(self) -> dict[str, Any] | None:
        """Return the latest answer; None if it is not known yet. Raises what kept it from being found."""
        if self._task is None and time.monotonic() >= self._until:
            self._task = asyncio.create_task(self._work())
        if self._task is not None:
            await asyncio.wait([self._task], timeout=PATIENCE)
        if self._failed is not None:
            raise self._failed
        return self._found

    async def _work(self) -> None:
        start = time.monotonic()
        try:
            self._found, self._failed = await in_thread(self._find), None
        except (ArchiveError, ConfigError) as error:
            self._failed = error
        finally:
            took = time.monotonic() - start
            self._until = time.monotonic() + max(FRESH, took * SHARE)
            self._task = None

    def close(self) -> None:
        """Stop waiting for an answer."""
        if self._task is not None:
            self._task.cancel()
