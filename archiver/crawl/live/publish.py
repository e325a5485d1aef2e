"""Writes live.json once a second while a crawl runs. If that fails, it is logged once, and the crawl goes on.

A failure at the very beginning or end of a run is not logged: on a full disk the crawl itself says what is wrong.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from archiver.collection.layout import Layout
from archiver.collection.live import ENDED, EVERY, LONGEST_TEXT, MOST_WARNINGS, Live, LiveWarning, Tally, write_live
from archiver.collection.store import unsent
from archiver.errors import ArchiveError
from archiver.storage import free

LOOKS = 4  # at the delay of the event loop, between two versions of the file
STORE_SHARE = 200  # the files that the store lacks are looked for in at most a 200th of the time …
STORE_EVERY = 10.0  # … and not more often than after so many seconds
PROGRAM = "archiver"  # the logger above all others

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Publication:
    """What live.json says besides the figures of the crawlers."""

    layout: Layout
    before: Tally  # of earlier runs
    machine: str
    store: str = ""  # address of the store; "": there is none


class RecentWarnings(logging.Handler):
    """Keeps the last warnings, and passes them on to where they would have gone without it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: deque[LiveWarning] = deque(maxlen=MOST_WARNINGS)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of *record*."""
        self.kept.append(LiveWarning(record.created, record.getMessage()[:LONGEST_TEXT]))
        alone = logging.getLogger(PROGRAM).handlers == [self] and not logging.getLogger().handlers
        if alone and logging.lastResort is not None:
            logging.lastResort.handle(record)


async def seconds() -> AsyncIterator[float]:
    """Yield once a second, with the longest delay of the event loop in it."""
    loop = asyncio.get_running_loop()
    while True:
        longest = 0.0
        for _ in range(LOOKS):
            due = loop.time() + EVERY / LOOKS
            await asyncio.sleep(EVERY / LOOKS)
            longest = max(longest, loop.time() - due)
        yield longest


class LiveFile:
    """Writes live.json."""

    def __init__(self, publication: Publication, figures: Callable[[float], Live]) -> None:
        """*figures* takes the delay of the event loop and returns the crawl as it is now."""
        self._publication = publication
        self._figures = figures
        self._warnings = RecentWarnings()
        self._writing = threading.Lock()  # one version after the other
        self._failed = False
        self._backlog, self._look_at = 0, 0.0

    async def begin(self) -> None:
        """Write it for the first time, and note warnings from now on."""
        logging.getLogger(PROGRAM).addHandler(self._warnings)
        await self._publish(0.0)

    async def keep(self) -> None:
        """Write it once a second."""
        async for delay in seconds():
            if (error := await self._publish(delay)) and not self._failed:
                self._failed = True
                log.warning("live.json cannot be written, so the crawl cannot be watched: %s", error)

    async def end(self) -> None:
        """Write that the run has ended."""
        logging.getLogger(PROGRAM).removeHandler(self._warnings)
        await self._publish(0.0, ended=True)

    async def _publish(self, delay: float, *, ended: bool = False) -> Exception | None:
        """Write it; return what went wrong."""
        try:
            live = self._figures(delay)
            if ended:
                live = replace(live, state=ENDED, active=0, rate=0.0, hosts=(), waits={}, waiting_for="")
            await asyncio.to_thread(self._write, replace(live, warnings=tuple(self._warnings.kept)))
        except Exception as error:  # noqa: BLE001 - the crawl does not depend on the file
            return error
        return None

    def _write(self, live: Live) -> None:
        publication = self._publication
        layout = publication.layout
        with self._writing:
            live = replace(
                live,
                written=time.time(),
                disk_free=min(free(layout.directory), free(layout.archive)),
                store_backlog_bytes=self._store_backlog(ended=live.state == ENDED),
                total=publication.before + live.total,
                machine=publication.machine,
            )
            write_live(layout, live)

    def _store_backlog(self, *, ended: bool) -> int:
        """Return the bytes of finished WARC files that the store lacks, as far as we have looked."""
        layout, store = self._publication.layout, self._publication.store
        if store and (ended or time.monotonic() >= self._look_at):
            began = time.monotonic()
            with suppress(ArchiveError, OSError):  # a file was just renamed
                self._backlog = sum(path.stat().st_size for path, _ in unsent(layout, store.rstrip("/"), others=False))
            spent = time.monotonic() - began
            self._look_at = began + max(STORE_EVERY, STORE_SHARE * spent)
        return self._backlog


@asynccontextmanager
async def published(publication: Publication, figures: Callable[[float], Live]) -> AsyncIterator[None]:
    """Write live.json once a second while the block runs, and at its end that the run is over."""
    file = LiveFile(publication, figures)
    await file.begin()
    writing = asyncio.create_task(file.keep(), name="live.json")
    try:
        yield
    finally:
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        await file.end()
