"""Run a crawl: the event loop, the signals, the display, and the limit of open files.

The first signal lets requests in flight finish, the second cuts them, the third ends the process at once. This holds
from before the crawl is opened until its reports are written; a signal that comes early is passed on later.
"""

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from archiver.cli.progress import Display, follow
from archiver.cli.terminal import complain
from archiver.collection.index import MERGE_WIDTH
from archiver.config.settings import Settings, with_values
from archiver.crawl.commit import ROOM, ROOM_LARGE
from archiver.crawl.crawler_process import event_loop
from archiver.crawl.stats import Snapshot
from archiver.fetch.spool import IN_MEMORY
from archiver.fetch.wire import MOST_IDLE
from archiver.model import ExitCode

THIRD = 3
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class RunEnd(Protocol):
    """The end of a run."""

    @property
    def code(self) -> ExitCode:
        """The exit code."""

    @property
    def reason(self) -> str:
        """The reason in words."""


class Stoppable(Protocol):
    """Something that makes requests until it is stopped."""

    def drain(self) -> None:
        """Start no new request; let those in flight finish."""

    def cut(self) -> None:
        """Cut requests in flight."""


class RunningCrawl(Stoppable, Protocol):
    """A crawl that can be run and stopped."""

    async def run(self) -> RunEnd:
        """Crawl until it ends."""

    def snapshot(self) -> Snapshot:
        """Return the current state of the crawl."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run and its last snapshot."""

    ended: RunEnd
    last: Snapshot
    began: float  # before it was opened


class StopSignals:
    """Counts the signals: the first drains the crawl, the second cuts requests, the third ends the process."""

    def __init__(
        self, drain_timeout: float, exit_process: Callable[[int], object] = os._exit, again: str = "archiver resume"
    ) -> None:
        """*again*: the command that recovers what the process has written when it ends at once."""
        self._drain_timeout = drain_timeout
        self._again = again
        self._exit = exit_process
        self._count = 0
        self._closed = False
        self._first = asyncio.Event()
        self._second = asyncio.Event()

    async def stop(self, crawl: Stoppable) -> None:
        """Drain *crawl* after the first signal, cut it after the second; signals that came before count too."""
        await self._first.wait()
        crawl.drain()
        await self._second.wait()
        crawl.cut()

    def close(self) -> None:
        """Note that the crawl has ended and only its reports remain. A third signal still ends the process."""
        self._closed = True

    def signalled(self) -> None:
        """Act on one more signal."""
        self._count += 1
        if self._closed and self._count < THIRD:
            complain("the crawl has ended; writing its reports")
        elif self._count == 1:
            complain(
                f"stopping: waiting up to {self._drain_timeout:g} s for requests in flight; Ctrl+C again cuts them"
            )
            self._first.set()
        elif self._count == 2:
            complain("stopping: cutting requests in flight; Ctrl+C again ends the process at once")
            self._second.set()
        else:
            complain(f"ended at once; {self._again} recovers what was written")
            self._exit(int(ExitCode.STOPPED))


def run_crawl(
    opening: AbstractAsyncContextManager[RunningCrawl],
    display: Display | None,
    drain_timeout: float,
    afterwards: Callable[[RunResult], T],
) -> T:
    """Run the crawl that *opening* opens, on uvloop if there is one, and return *afterwards* of its result."""

    async def run_and_finish(stop: StopSignals) -> T:
        with handle_signals(stop):
            outcome = await _run(opening, display, stop)
            stop.close()
            return await asyncio.to_thread(afterwards, outcome)

    with asyncio.Runner(loop_factory=event_loop()) as runner:
        return runner.run(run_and_finish(StopSignals(drain_timeout)))


async def _run(
    opening: AbstractAsyncContextManager[RunningCrawl], display: Display | None, stop: StopSignals
) -> RunResult:
    began = time.time()
    async with opening as crawl:
        gc.freeze()  # what exists now lives until the end; the collector need not look at it again
        stopping = asyncio.create_task(stop.stop(crawl))
        await asyncio.sleep(0)  # a signal that came before takes effect first
        try:
            async with follow(crawl.snapshot, display):
                ended = await crawl.run()
        finally:
            stopping.cancel()
        last = crawl.snapshot()
    return RunResult(ended, last, began)


@contextmanager
def handle_signals(stop: StopSignals) -> Iterator[None]:
    """Pass the signals of this process on to *stop* while the block runs."""
    loop = asyncio.get_running_loop()
    numbers = [number for number in SIGNALS if not _is_ignored(number)]
    try:
        for number in numbers:
            loop.add_signal_handler(number, stop.signalled)
    except NotImplementedError:  # Windows
        for number in numbers:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.signalled))
        yield
        return
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _is_ignored(number: signal.Signals) -> bool:
    """Return whether the process ignores a closed terminal because `nohup` started it."""
    return number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN


FILES_PER_REQUEST = 3  # a socket, a spool file, and an idle connection
MAX_EXTRA = MOST_IDLE  # idle connections, and spool files of large answers; `fetch.spool` refuses further ones
EXTRA_PER_REQUEST = 2  # those two
BASE_FILES = 32  # streams, event loop, lock, two database connections, two WARCs, crawl.log, and those of libraries
RESERVE = BASE_FILES + (MERGE_WIDTH + 1) + (ROOM // IN_MEMORY + ROOM_LARGE)  # last: spooled, waiting for the writer
MAX_LIMIT = 1 << 20  # a higher limit has no use; some systems allow a thousand million


def open_files_needed(concurrency: int) -> int:
    """Return how many open files *concurrency* requests at once may need."""
    return RESERVE + concurrency + EXTRA_PER_REQUEST * min(concurrency, MAX_EXTRA)


def fitting_concurrency(limit: int | None, concurrency: int) -> int:
    """Return the highest concurrency up to *concurrency* for which *limit* open files suffice, but at least 1."""
    if limit is None:
        return concurrency
    left = limit - RESERVE
    return max(
        1, min(concurrency, max(min(left // FILES_PER_REQUEST, MAX_EXTRA), left - EXTRA_PER_REQUEST * MAX_EXTRA))
    )


def raise_open_files_limit(concurrency: int) -> int | None:
    """Raise the limit of open files as far as allowed and return it; None if there is no limit."""
    if sys.platform == "win32":
        return None
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    bound = MAX_LIMIT if hard == resource.RLIM_INFINITY else hard
    for wanted in (min(bound, MAX_LIMIT), min(bound, open_files_needed(concurrency))):
        if wanted > soft:
            with suppress(OSError, ValueError):  # macOS has another limit, which it does not report
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return wanted
    return soft


def within_open_files(settings: Settings) -> Settings:
    """Return *settings* with no more concurrency than this process may have open files and sockets for."""
    limit = raise_open_files_limit(settings.limits.concurrency)
    fits = fitting_concurrency(limit, settings.limits.concurrency)
    if fits == settings.limits.concurrency:
        return settings
    complain(
        f"only {limit} open files are allowed (ulimit -n), so this run uses --concurrency {fits} instead of "
        f"{settings.limits.concurrency}, which needs {open_files_needed(settings.limits.concurrency)}"
    )
    return with_values(settings, {"concurrency": fits})
