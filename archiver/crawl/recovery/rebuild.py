"""Makes a new database for a collection from its WARC files.

`Rebuild` reads, from offset 0, every WARC file that this program wrote, and the imported files of an adopted crawl.
Files of earlier crawls belong to their databases below DIR/crawls and are skipped. The crawl then continues where it
was. URLs that no WARC mentions (because they never answered, or robots.txt forbids them) are queued again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from archiver.collection import reindex, safe_paths
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.settings_file import put_settings
from archiver.config.settings import Settings
from archiver.crawl.hooks.hooks import vouched_hooks
from archiver.crawl.recovery.adoption import Unread, VisitAdoption, held_before, payloads_before
from archiver.crawl.recovery.quarantine import replace_database, set_database_aside
from archiver.crawl.recovery.recover import finished, mended, ours, own_files, publish, unread
from archiver.crawl.recovery.takeover import adopted_files
from archiver.crawl.rules import visit_rules_of
from archiver.crawl.visit_rules import VisitRules
from archiver.frontier.address import SharedFrontier, machine_of, write_address
from archiver.frontier.port import Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.storage import DRAFT, OPEN, open_file, storage
from archiver.warc.warcinfo import holds_records

ReportProgress = Callable[[int, int, int], None]  # files done, files in all, visits so far

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """The result of a rebuild."""

    visits: int
    files: int
    mended: tuple[str, ...]  # files from which something was taken out
    foreign: tuple[str, ...]  # files of other programs, left as they are
    blank: tuple[str, ...]  # files without any record, left as they are


class Rebuild:
    """Fills a new frontier from the WARC files of a collection."""

    def __init__(
        self, layout: Layout, frontier: Frontier, rules: VisitRules, report: ReportProgress = lambda *_: None
    ) -> None:
        self._layout = layout
        self._frontier = frontier
        self._rules = rules
        self._report = report

    async def run(self) -> RebuildResult:
        """Read every file. Afterwards each has its final name, and the frontier knows it as closed."""
        adoption = VisitAdoption(self._frontier, self._rules, payloads_before(self._layout))
        found = own_files(self._layout)
        foreign = sorted(path.name for path in found if not path.name.endswith(OPEN) and not ours(path))
        names = [(path, path.name.removesuffix(OPEN)) for path in found if path.name not in foreign]
        own = (unread(path, name, lenient=True) for path, name in names)
        files = sorted((*own, *adopted_files(self._layout)), key=attrgetter("began"))
        cut: list[str] = []
        done = 0
        self._report(done, len(files), adoption.adopted)
        async for file in adoption.read_all(self._mended(files, cut), self._layout.spool):
            with storage(file.path):
                if file.foreign or publish(file.path, file.name):
                    await self._frontier.settle((), (finished(file.path.with_name(file.name), file.name),))
            done += 1
            self._report(done, len(files), adoption.adopted)
        blank = [name for name in foreign if not _holds_records(self._layout.archive / name)]
        others = [name for name in foreign if name not in blank]
        return RebuildResult(adoption.adopted, len(files), tuple(cut), tuple(others), tuple(blank))

    def _mended(self, files: Iterable[Unread], cut: list[str]) -> Iterator[Unread]:
        """Yield *files*, each when what is not whole has been taken out of it; add the names of such files to *cut*."""
        for file in files:
            with storage(file.path):
                if not file.foreign and mended(file.path, file.name, 0, self._layout, lenient=True):
                    cut.append(file.name)
            yield file


def _holds_records(path: Path) -> bool:
    with storage(path), open_file(path) as file:
        return holds_records(file)


async def rebuilt(directory: Path, settings: Settings, report: ReportProgress, text: str = "") -> RebuildResult:
    """Build a new database and index from the WARC files in *directory*; the old crawl.db is kept under damaged/.

    If *settings* name a PostgreSQL database, which must be empty, it is made there. The new one is put in place in one
    step, when it is complete. *text*, if any, becomes crawl.toml.
    """
    layout = safe_paths.make_folders(directory)
    with Lock(layout.lock), vouched_hooks(layout, settings) as hooks:
        layout.forget_drafts()
        draft = layout.database.with_name(f"{layout.database.name}{DRAFT}")
        address, machine = settings.limits.frontier, machine_of(layout.database)
        place = SharedFrontier(address, machine, 0) if address else draft
        async with await SqliteFrontier.open(place) as frontier:
            await frontier.add_seeds(settings.seeds)
            result = await Rebuild(layout, frontier, visit_rules_of(settings, hooks=hooks), report).run()
            if not settings.dedup.dedup_from and (
                lost := await frontier.queue_again_without_payload(held_before(layout))
            ):
                log.warning("the payloads of %d revisits are lost; their URLs wait to be visited again", lost)
            await asyncio.to_thread(reindex.rebuild, directory)
            await frontier.mark_indexed()
        if address:
            set_database_aside(layout)
            write_address(layout.database, address, machine)
        else:
            replace_database(layout, draft)
        if text:
            put_settings(layout, text)
        with suppress(OSError):  # as at the end of a crawl
            layout.spool.rmdir()
        return result
