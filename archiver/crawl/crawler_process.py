"""One of several crawlers of a crawl, as a process of its own; `serve` is its program.

It reads a task from standard input, and then orders of one byte each. If the input ends, the supervisor is gone, so the
crawler cuts its requests, commits what it has and ends. Messages go to standard output. The terminal's signals are for
the supervisor alone, but Ctrl+Z stops all processes. The task passes on the open lock file of the collection, so no
other run begins before all crawlers have ended.
"""

import asyncio
import gc
import logging
import os
import pickle
import queue
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from archiver.config.settings import Settings
from archiver.crawl.stats import CrawlEnding, Snapshot
from archiver.errors import ArchiveError

PROGRAM = """
import sys, json, signal
for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # at once: to import what follows takes a moment
    signal.signal(getattr(signal, name), signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from archiver.crawl.crawler_process import serve
serve()
"""
DRAIN, CUT = b"d", b"c"
LENGTH = struct.Struct(">Q")
SNAPSHOT_EVERY = 0.25  # seconds
UV_THREADS = "128"  # half of uvloop's threads resolve names; with the default of 4 a slow name server delays all

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrawlerTask:
    """Everything that a crawler must know to join a crawl."""

    directory: Path
    settings: Settings  # with its part of the limits
    name: str  # of this crawler
    crawlers: int  # in all
    began: float  # the run, in seconds since the epoch
    resume: bool  # the run continues an earlier one
    known: tuple[str, ...]  # seeds that *settings* and their scope know
    log_level: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The crawler has ended and stored everything."""

    stop: CrawlEnding | None  # why it stopped; None: nothing was left
    last: Snapshot


@dataclass(frozen=True, slots=True)
class Failed:
    """The crawler could not go on."""

    storage: bool  # by a fault of storage, not by a bug
    reason: str


@dataclass(frozen=True, slots=True)
class Logged:
    """One log record of the crawler."""

    logger: str
    level: int
    text: str


Message = Snapshot | Ended | Failed | Logged


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return a function that makes an event loop of uvloop; None where it is missing."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    os.environ.setdefault("UV_THREADPOOL_SIZE", UV_THREADS)
    return uvloop.new_event_loop


def packed(value: object) -> bytes:
    """Return *value* as a message for a pipe."""
    content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(content)) + content


class Messages(logging.Handler):
    """Sends messages in a thread of its own, so that a supervisor that is stopped does not stop the crawl too."""

    def __init__(self, pipe: FileIO) -> None:
        super().__init__()
        self._pipe = pipe
        self._waiting: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        """Send *message*; a snapshot only if nothing else waits."""
        if not (isinstance(message, Snapshot) and self._waiting.qsize()):
            self._waiting.put(message)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a log record."""
        self.put(Logged(record.name, record.levelno, self.format(record)))

    def finish(self) -> None:
        """Wait until everything is sent."""
        self._waiting.put(None)
        self._thread.join()

    def _send(self) -> None:
        with suppress(OSError):  # the supervisor is gone
            while (message := self._waiting.get()) is not None:
                rest = memoryview(packed(message))
                while rest:
                    rest = rest[self._pipe.write(rest) or 0 :]


def serve() -> None:
    """Crawl as the task on standard input says."""
    orders, output = FileIO(0), FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else may be written to that pipe
    task: CrawlerTask = pickle.loads(_read(orders, LENGTH.unpack(_read(orders, LENGTH.size))[0]))  # noqa: S301 - from our own process
    messages = Messages(output)
    _log_to(messages, task.log_level)
    try:
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            messages.put(runner.run(_crawled(task, orders, messages)))
    except ArchiveError as error:
        messages.put(Failed(storage=True, reason=str(error)))
    except Exception as error:  # noqa: BLE001 - a bug: the supervisor ends the crawl, and the traceback goes to stderr
        traceback.print_exc()
        messages.put(Failed(storage=False, reason=f"{type(error).__name__}: {error}"))
    messages.finish()
    sys.stderr.flush()
    os._exit(0)  # the thread that waits for orders cannot be ended


def _read(pipe: FileIO, size: int) -> bytes:
    found = b""
    while len(found) < size and (piece := pipe.read(size - len(found))):
        found += piece
    return found


def _log_to(messages: Messages, level: int) -> None:
    ours = logging.getLogger("archiver")
    ours.setLevel(level)
    ours.handlers, ours.propagate = [messages], False


async def _crawled(task: CrawlerTask, orders: FileIO, messages: Messages) -> Ended:
    from archiver.crawl.build import join_crawl  # noqa: PLC0415 - it imports this module

    loop = asyncio.get_running_loop()
    async with join_crawl(task) as crawl:
        gc.freeze()  # what exists now lives until the end; the collector need not look at it again
        act = {DRAIN: crawl.drain, CUT: crawl.cut}

        def obey() -> None:
            order = DRAIN
            while order:
                order = orders.read(1) or b""
                loop.call_soon_threadsafe(act.get(order, crawl.cut))

        threading.Thread(target=obey, daemon=True).start()
        showing = loop.create_task(_show(crawl.snapshot, messages))
        try:
            stop = await crawl.work()
        finally:
            showing.cancel()
        last = crawl.snapshot()
    return Ended(stop, last)


async def _show(snapshot: Callable[[], Snapshot], messages: Messages) -> None:
    while True:
        messages.put(snapshot())
        await asyncio.sleep(SNAPSHOT_EVERY)
