"""A crawl in the hands of a person: the event loop, the signals, and the screen.

The first signal lets requests in flight finish, the second cuts them, the third ends the process at once. All
of it holds from before the crawl is opened until its reports are written; a signal that comes early is passed on later.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from archiver.cli.terminal import complain
from archiver.model import ExitCode
from archiver.progress import Face, followed
from archiver.stats import Snapshot

THIRD = 3
COLLECT = 10_000, 20, 20  # with Python's own thresholds a fifth of the time with many hosts is a search for cycles
LOOKUPS = "128"  # threads of uvloop, half of which look names up; with its own 4 a slow name server holds up all
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(Protocol):
    """How a run ended."""

    @property
    def code(self) -> ExitCode:
        """What the shell is told."""

    @property
    def reason(self) -> str:
        """The same for a person."""


class Running(Protocol):
    """What this floor asks of a crawl."""

    async def run(self) -> Ended:
        """Crawl until it ends."""

    def snapshot(self) -> Snapshot:
        """The crawl as it is now."""

    def drain(self) -> None:
        """Start no new request; those in flight finish."""

    def cut(self) -> None:
        """Cut requests in flight."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended and what it had done."""

    ended: Ended
    last: Snapshot


class Stop:
    """Counts the signals and passes each on as what it means."""

    def __init__(self, patience: float, leave: Callable[[int], object] = os._exit) -> None:
        self._patience = patience
        self._leave = leave
        self._count = 0
        self._closed = False
        self._crawl: Running | None = None

    def attach(self, crawl: Running) -> None:
        """From now on signals are for *crawl*, those that came before included."""
        self._crawl = crawl
        if self._count:
            crawl.drain()
        if self._count > 1:
            crawl.cut()

    def detach(self) -> None:
        """The crawl is closed; what is left is soon done, but a third signal still ends it."""
        self._crawl = None
        self._closed = True

    def signalled(self) -> None:
        """One more signal came."""
        self._count += 1
        if self._closed and self._count < THIRD:
            complain("the crawl has ended; its reports are being written")
        elif self._count == 1:
            complain(f"stopping: requests in flight may finish, for at most {self._patience:g} s; once more cuts them")
            if self._crawl:
                self._crawl.drain()
        elif self._count == 2:
            complain("stopping: requests in flight are cut; once more ends the process at once")
            if self._crawl:
                self._crawl.cut()
        else:
            complain("ended at once; archiver resume recovers what was written")
            self._leave(int(ExitCode.STOPPED))


def run(
    opening: AbstractAsyncContextManager[Running],
    face: Face | None,
    patience: float,
    afterwards: Callable[[Outcome], T],
) -> T:
    """Run the crawl that *opening* opens, on the fastest event loop there is, then *afterwards* with its outcome."""

    async def attended(stop: Stop) -> T:
        with _listening(stop):
            outcome = await _attended(opening, face, stop)
            stop.detach()
            return await asyncio.to_thread(afterwards, outcome)

    gc.set_threshold(*COLLECT)
    gc.freeze()  # what is there by now stays
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(attended(Stop(patience)))


async def _attended(opening: AbstractAsyncContextManager[Running], face: Face | None, stop: Stop) -> Outcome:
    async with opening as crawl:
        stop.attach(crawl)
        async with followed(crawl.snapshot, face):
            ended = await crawl.run()
        last = crawl.snapshot()
    return Outcome(ended, last)


@contextmanager
def _listening(stop: Stop) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    heard = [number for number in SIGNALS if not _kept_away(number)]
    try:
        for number in heard:
            loop.add_signal_handler(number, stop.signalled)
    except NotImplementedError:  # Windows
        for number in heard:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.signalled))
        yield
        return
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _kept_away(number: signal.Signals) -> bool:
    """Whether `nohup` started us: then a terminal that is closed is to end nothing."""
    return number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    os.environ.setdefault("UV_THREADPOOL_SIZE", LOOKUPS)
    return uvloop.new_event_loop
