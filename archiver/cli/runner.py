"""A crawl in the hands of a person: the event loop, the signals, and the screen.

The first signal lets requests in flight finish, the second cuts them, the third ends the process at once. All
of it holds from before the crawl is opened until its reports are written; a signal that comes early is passed on later.

How many files and sockets a crawl may hold open, and what concurrency that allows.

The reserve is what may be open at once besides requests, at the worst; it is made of the bounds that hold elsewhere.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from archiver.cli import garbage
from archiver.cli.progress import Display, followed
from archiver.cli.terminal import complain
from archiver.collection.index import MERGE_WIDTH
from archiver.crawl.commit import ROOM, ROOM_LARGE
from archiver.crawl.stats import Snapshot
from archiver.fetch.pool import MOST as MOST_IDLE
from archiver.fetch.spool import IN_MEMORY
from archiver.model import ExitCode

THIRD = 3
LOOKUPS = "128"  # threads of uvloop, half of which look names up; with its own 4 a slow name server holds up all
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class RunEnd(Protocol):
    """How a run ended."""

    @property
    def code(self) -> ExitCode:
        """What the shell is told."""

    @property
    def reason(self) -> str:
        """The same for a person."""


class RunOptions(Protocol):
    """What this floor asks of a crawl."""

    async def run(self) -> RunEnd:
        """Crawl until it ends."""

    def snapshot(self) -> Snapshot:
        """The crawl as it is now."""

    def drain(self) -> None:
        """Start no new request; those in flight finish."""

    def cut(self) -> None:
        """Cut requests in flight."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended and what it had done."""

    ended: RunEnd
    last: Snapshot


class StopSignals:
    """Counts the signals and passes each on as what it means."""

    def __init__(self, patience: float, leave: Callable[[int], object] = os._exit) -> None:
        self._patience = patience
        self._leave = leave
        self._count = 0
        self._closed = False
        self._first = asyncio.Event()
        self._second = asyncio.Event()

    async def stop(self, crawl: RunOptions) -> None:
        """Drain *crawl* after the first signal, cut it after the second; signals that came before count too."""
        await self._first.wait()
        crawl.drain()
        await self._second.wait()
        crawl.cut()

    def close(self) -> None:
        """The crawl has ended and only its reports are left to write; a third signal still ends the process."""
        self._closed = True

    def signalled(self) -> None:
        """One more signal came."""
        self._count += 1
        if self._closed and self._count < THIRD:
            complain("the crawl has ended; its reports are being written")
        elif self._count == 1:
            complain(f"stopping: requests in flight may finish, for at most {self._patience:g} s; once more cuts them")
            self._first.set()
        elif self._count == 2:
            complain("stopping: requests in flight are cut; once more ends the process at once")
            self._second.set()
        else:
            complain("ended at once; archiver resume recovers what was written")
            self._leave(int(ExitCode.STOPPED))


def run_crawl(
    opening: AbstractAsyncContextManager[RunOptions],
    face: Display | None,
    patience: float,
    afterwards: Callable[[RunResult], T],
) -> T:
    """Run the crawl that *opening* opens, on the fastest event loop there is, then *afterwards* with its outcome."""

    async def attended(stop: StopSignals) -> T:
        with _listening(stop):
            outcome = await _attended(opening, face, stop)
            stop.close()
            return await asyncio.to_thread(afterwards, outcome)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(attended(StopSignals(patience)))


async def _attended(
    opening: AbstractAsyncContextManager[RunOptions], face: Display | None, stop: StopSignals
) -> RunResult:
    async with opening as crawl:
        garbage.spare_what_is_there()
        stopping = asyncio.create_task(stop.stop(crawl))
        await asyncio.sleep(0)  # a signal that came before takes effect first
        try:
            async with followed(crawl.snapshot, face):
                ended = await crawl.run()
        finally:
            stopping.cancel()
        last = crawl.snapshot()
    return RunResult(ended, last)


@contextmanager
def _listening(stop: StopSignals) -> Iterator[None]:
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


EACH = 3  # of a request: its socket, its spool file, and a connection that waits for the next one …
MOST_BESIDE = MOST_IDLE  # … of which there are never more; nor of spool files but for as many large answers at once …
BESIDE = 2  # … whose files are refused before they take what the archive needs (`fetch.spool`)
STANDING = 32  # streams, event loop, lock, two database connections, two WARCs, crawl.log, and what libraries keep
RESERVE = STANDING + (MERGE_WIDTH + 1) + (ROOM // IN_MEMORY + ROOM_LARGE)  # the last: spooled, waiting for the archive
MOST = 1 << 20  # more would be of no use; some systems allow a thousand million


def needed(concurrency: int) -> int:
    """Open files that *concurrency* requests at once may need."""
    return RESERVE + concurrency + BESIDE * min(concurrency, MOST_BESIDE)


def fitting(limit: int | None, concurrency: int) -> int:
    """The concurrency up to *concurrency* for which *limit* open files are enough, but at least 1."""
    if limit is None:
        return concurrency
    left = limit - RESERVE
    return max(1, min(concurrency, max(min(left // EACH, MOST_BESIDE), left - BESIDE * MOST_BESIDE)))


def raised(concurrency: int) -> int | None:
    """The limit of this process, raised as far as it may be; None where there is none."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    bound = MOST if hard == resource.RLIM_INFINITY else hard
    for wanted in (min(bound, MOST), min(bound, needed(concurrency))):
        if wanted > soft:
            with suppress(OSError, ValueError):  # macOS has one more bound, which it does not tell
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return wanted
    return soft
