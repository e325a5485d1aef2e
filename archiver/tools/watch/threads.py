"""Threads that read for the control room. They do not keep the process from ending, so a long query holds up no one."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

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
