"""One of several crawlers of a crawl, as a process of its own; `serve` is its program.

It starts before the crawl is opened, and waits at a socket for its task. Then it reads orders of one byte each, and
sends messages. If the orders end, the supervisor is gone, so the crawler cuts its requests, commits what it has and
ends. The terminal's signals are for the supervisor alone, but Ctrl+Z stops all processes. The open lock file of the
collection comes with the task, so no other run begins before all crawlers have ended.
"""

import asyncio
import gc
import json
import logging
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from archiver.collection.live import Live
from archiver.config.settings import Settings
from archiver.crawl.stats import CrawlEnding, Snapshot
from archiver.errors import ArchiveError
from archiver.extract import import_readers

if TYPE_CHECKING:
    from archiver.crawl.hooks.hooks import HookSource

_PROGRAM = """
import sys, json, signal
for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # at once: to import what follows takes a moment
    signal.signal(getattr(signal, name), signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from archiver.crawl.crawler_process import serve
serve()
"""
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
DRAIN, CUT, LOOK = b"d", b"c", b"l"
LENGTH = struct.Struct(">Q")
LONGEST_MESSAGE = 1 << 24  # bytes
SNAPSHOT_EVERY = 0.25  # seconds
ENDING = 60.0  # seconds for a crawler to commit what it has, once the supervisor gives up
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
    orders: int  # the newest order that *settings* know
    log_level: int
    hooks: "HookSource | None" = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The crawler has ended and stored everything."""

    stop: CrawlEnding | None  # why it stopped; None: nothing was left
    last: Snapshot
    live: Live


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


Message = Snapshot | Live | Ended | Failed | Logged


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
        self._waiting: queue.SimpleQueue[Message | type[Message] | None] = queue.SimpleQueue()
        self._figures: dict[type[Message], Message] = {}  # the newest of each kind; in the queue is its type
        self._replacing = threading.Lock()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        """Send *message*. A snapshot or figures that still wait are replaced by newer ones."""
        if not isinstance(message, Snapshot | Live):
            self._waiting.put(message)
            return
        with self._replacing:
            if type(message) not in self._figures:
                self._waiting.put(type(message))
            self._figures[type(message)] = message

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
                if isinstance(message, type):
                    with self._replacing:
                        message = self._figures.pop(message)
                rest = memoryview(packed(message))
                while rest:
                    rest = rest[self._pipe.write(rest) or 0 :]


class CrawlerProcess:
    """The process of a crawler, as its supervisor sees it. It waits until `begin`, and ends if this process does."""

    def __init__(self, channel: socket.socket, wait: Callable[[], int], pid: int) -> None:
        """*wait* returns the exit code when the process *pid* has ended."""
        self._channel = channel
        self._wait = wait
        self._pid = pid
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @classmethod
    def started(cls) -> "CrawlerProcess":
        """Start a process with an interpreter of its own."""
        ours, theirs = socket.socketpair()
        path = json.dumps([path or str(Path.cwd()) for path in sys.path])
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own program, with our own path
                [sys.executable, "-P", "-c", _PROGRAM, path], stdin=theirs.fileno()
            )
        return cls(ours, process.wait, process.pid)

    @classmethod
    def forked(cls, others: Iterable["CrawlerProcess"]) -> "CrawlerProcess":
        """Start a process as a copy of this one, without its ends of the sockets of *others*."""
        ours, theirs = socket.socketpair()
        numbers = [getattr(signal, name) for name in _SIGNALS]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        pid = os.fork()
        if not pid:
            try:
                for number in numbers:
                    signal.signal(number, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                ours.close()
                for each in others:
                    each.disconnect()
                os.dup2(theirs.fileno(), 0)
                theirs.close()
                serve()
            finally:
                os._exit(1)  # whatever happens, the copy never goes on as the command that it was made of
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return cls(ours, partial(_exit_code, pid), pid)

    async def begin(self, task: CrawlerTask, lock: int) -> None:
        """Give the process its *task*; it shares the open file *lock* from now on."""
        with suppress(OSError):  # it has ended already, which we see when we read
            socket.send_fds(self._channel, [_TASK], [lock])
        self._streams = await asyncio.open_unix_connection(sock=self._channel)
        self.order(packed(task))

    def order(self, order: bytes) -> None:
        """Give an order to the process, if it runs."""
        if self._streams is not None:
            with suppress(OSError, RuntimeError):  # it has ended meanwhile
                self._streams[1].write(order)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the messages of the process until it ends."""
        assert self._streams is not None
        pipe, _ = self._streams
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = LENGTH.unpack(await pipe.readexactly(LENGTH.size))[0]
                yield pickle.loads(await pipe.readexactly(min(size, LONGEST_MESSAGE)))  # noqa: S301 - from our own process

    async def ended(self) -> int:
        """Wait until the process has ended, which it does at the latest now; return its exit code."""
        if self._streams is not None:
            with suppress(OSError, RuntimeError):
                self._streams[1].write_eof()  # it cuts its requests then
        else:
            self.disconnect()
        waiting = asyncio.ensure_future(asyncio.to_thread(self._wait))
        if not (await asyncio.wait((waiting,), timeout=ENDING))[0]:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(self._pid, signal.SIGKILL)
        code = await waiting
        if self._streams is not None:
            self._streams[1].close()
        return code

    def disconnect(self) -> None:
        """Close the socket to the process."""
        self._channel.close()

    def dismiss(self) -> None:
        """End the process if it waits for its task."""
        if self._streams is None and self._channel.fileno() >= 0:
            self.disconnect()
            self._wait()


_TASK = b"t"  # comes with the lock


def _exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextmanager
def crawler_processes(number: int) -> Iterator[list[CrawlerProcess]]:
    """Start so many processes, which wait for their tasks; those that get none end with the block.

    On Linux they are copies of this one, if it has only one thread: they need not import everything again.
    """
    started: list[CrawlerProcess] = []
    alone = sys.platform == "linux" and len([*Path("/proc/self/task").iterdir()]) == 1
    if alone:
        import_readers()
    try:
        for _ in range(number):
            started.append(CrawlerProcess.forked(started) if alone else CrawlerProcess.started())
        yield started
    finally:
        for each in started:
            each.dismiss()


def serve() -> NoReturn:
    """Crawl as the task says that comes through the socket at standard input."""
    try:
        os.dup2(2, 1)  # nothing else may be written to the output of the command
        _serve()
    except Exception:  # noqa: BLE001 - the process ends in any case
        traceback.print_exc()
    finally:
        with suppress(Exception):  # the terminal may be gone
            sys.stderr.flush()
        os._exit(0)  # the thread that waits for orders cannot be ended


def _serve() -> None:
    channel = socket.socket(fileno=0)
    begun, held, *_ = socket.recv_fds(channel, len(_TASK), 1)
    if not begun:
        return  # the crawl did not begin
    for each in held:  # the lock; it stays open until the end
        os.set_inheritable(each, False)
    orders, output = FileIO(channel.detach()), FileIO(os.dup(0), "w")
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
    from archiver.crawl.live.publish import seconds  # noqa: PLC0415 - as late as what it imports

    loop = asyncio.get_running_loop()
    async with join_crawl(task) as (crawl, figures):
        gc.freeze()  # what exists now lives until the end; the collector need not look at it again
        act = {DRAIN: crawl.drain, CUT: crawl.cut, LOOK: crawl.look}

        def obey() -> None:
            order = DRAIN
            while order:
                try:
                    order = orders.read(1) or b""
                except OSError:  # the supervisor was killed before it had read all messages
                    order = b""
                with suppress(RuntimeError):  # the crawl has just ended, and its loop with it
                    loop.call_soon_threadsafe(act.get(order, crawl.cut))

        threading.Thread(target=obey, daemon=True).start()

        async def describe() -> None:
            async for delay in seconds():
                messages.put(figures.live(delay))

        showing = [loop.create_task(each) for each in (_show(crawl.snapshot, messages), describe())]
        try:
            stop = await crawl.work()
        finally:
            for each in showing:
                each.cancel()
        last = crawl.snapshot()
    return Ended(stop, last, figures.live(0.0))


async def _show(snapshot: Callable[[], Snapshot], messages: Messages) -> None:
    while True:
        messages.put(snapshot())
        await asyncio.sleep(SNAPSHOT_EVERY)
