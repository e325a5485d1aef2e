"""Stores what views showed: a writer of its own, whose WARC files hold records of no visit.

The order is that of visits: append the records, sync them, list them in the index, then enter them in the database in
one transaction. So a crash loses nothing that the database knows, and recovery adopts whole records behind that.
"""

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from archiver.browser.page_info import ViewRecord
from archiver.collection.writer import Archive, NewResource
from archiver.crawl.batch_writer import Journal, StoredBatch
from archiver.frontier.port import Frontier
from archiver.model import FileState


class ViewWriter:
    """Writes the records of one view after the other."""

    def __init__(self, archive: Archive, journal: Journal, frontier: Frontier) -> None:
        self._archive = archive
        self._journal = journal
        self._frontier = frontier
        self._thread = ThreadPoolExecutor(1, "views")
        self._one = asyncio.Lock()  # the database must know one view before the next is written, or the file closed
        self._closed = False

    async def store(self, records: Iterable[ViewRecord]) -> None:
        """Store *records*, all with the date of now. If the caller is cancelled, this ends all the same."""
        now = time.time_ns() // 1000
        new = [NewResource(each.uri, now, each.type, each.block) for each in records]
        await asyncio.shield(asyncio.ensure_future(self._store(new)))

    async def _store(self, new: list[NewResource]) -> None:
        async with self._one:
            if not self._closed:
                stored = await asyncio.get_running_loop().run_in_executor(self._thread, self._append, new)
                await self._frontier.settle((), stored.files, resources=stored.resources)

    def _append(self, new: list[NewResource]) -> StoredBatch:
        written = self._archive.append_resources(new)
        stored = StoredBatch((), written.files, written.resources)
        self._journal.enter(stored)
        return stored

    async def close(self) -> tuple[FileState, ...]:
        """Finish the open file and end the thread."""
        async with self._one:
            self._closed = True
            files = await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()
        return files

    def _close(self) -> tuple[FileState, ...]:
        files = self._archive.close()
        self._journal.enter(StoredBatch((), files))
        return files

    def abandon(self) -> None:
        """Leave the file as it is."""
        self._thread.shutdown(cancel_futures=True)
        self._archive.abandon()
