"""Makes a crawl out of what another program left: its WARC files, which are imported already, and its queue.

The other program's queue only adds URLs. What is archived is shown by the captures alone: each capture is settled like
a visit of our own, so its links are read and judged by the settings here. A URL that the other program calls fetched
but that has no capture waits. The database is made beside its place and put there in one step.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, Protocol

from archiver import url
from archiver.collection import safe_paths
from archiver.collection.earlier_crawls import files_of
from archiver.collection.imports import adopted_names, imported_files, write_imports
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.settings_file import put_settings
from archiver.config import toml
from archiver.config.settings import Settings
from archiver.crawl.recovery.adoption import Unread, VisitAdoption, held_before
from archiver.crawl.recovery.quarantine import replace_database, set_database_aside
from archiver.crawl.recovery.recover import finished, unread
from archiver.crawl.rules import visit_rules_of
from archiver.frontier import adopted
from archiver.frontier.address import SharedFrontier, machine_of, write_address
from archiver.frontier.adopted import AdoptedState, AdoptedUrl
from archiver.frontier.port import Counts
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Claim, Hop, Link, Refusal
from archiver.policy.scope import Scope
from archiver.policy.seed_scopes import Scopes
from archiver.storage import DRAFT, storage

BATCH = 1000  # URLs that one transaction adds
LONGEST_URL = 64 << 10  # characters; browsers accept two megabytes, servers some kilobytes
LONGEST_NOTE = 500  # characters of why a URL failed
SHOWN = 200  # characters of a URL in a message
ROBOTS = "/robots.txt"

Report = Callable[[str], None]


class QueueSource(Protocol):
    """The queue and the seen-set of another program."""

    def urls(self) -> Iterator[AdoptedUrl]:
        """Yield every URL, as it is written there. A URL may come several times. Can be called again."""


class Placed(NamedTuple):
    """What became of the URLs in a queue."""

    urls: int  # that the queue named, each as often as it named it
    unusable: int  # no http or https URL, or too long
    example: str  # the first of these


@dataclass(frozen=True, slots=True)
class TakeoverResult:
    """The result of a takeover."""

    placed: Placed
    visits: int  # captures that were settled
    in_doubt: int  # URLs that were fetched, but wait because they have no whole capture
    failed: int  # URLs that the other program gave up
    counts: Counts


async def taken_over(
    layout: Layout, settings: Settings, source: QueueSource, warcs: Iterable[str], report: Report
) -> TakeoverResult:
    """Make the database of a crawl with *settings* from *source* and the imported files *warcs*, and crawl.toml.

    An existing database is kept under damaged/.
    """
    safe_paths.make_folders(layout.directory)
    with Lock(layout.lock):
        layout.forget_drafts()
        _mark(layout, frozenset(warcs))
        draft = layout.database.with_name(f"{layout.database.name}{DRAFT}")
        address, machine = settings.limits.frontier, machine_of(layout.database)
        async with await SqliteFrontier.open(SharedFrontier(address, machine, 0) if address else draft) as frontier:
            result = await _Takeover(layout, settings, frontier, report).run(source)
        if address:
            set_database_aside(layout)
            write_address(layout.database, address, machine)
        else:
            replace_database(layout, draft)
        put_settings(layout, toml.render(settings))
        with suppress(OSError):  # as at the end of a crawl
            layout.spool.rmdir()
        return result


def _mark(layout: Layout, warcs: frozenset[str]) -> None:
    """Write into imports.json that the files *warcs* belong to the crawl, so that a rebuild reads them."""
    entries = imported_files(layout)
    marked = [replace(each, adopted=True) if each.name in warcs else each for each in entries]
    if marked != list(entries):
        write_imports(layout, marked)


def adopted_files(layout: Layout) -> list[Unread]:
    """Return the imported files that belong to the crawl of *layout*, in order of their beginning."""
    names = sorted(adopted_names(layout) - files_of(layout))  # not those of a crawl that was followed by others
    paths = [layout.archive / name for name in names if (layout.archive / name).exists()]
    found = [replace(unread(path, path.name), foreign=True) for path in paths]
    return sorted(found, key=attrgetter("began"))


class _Takeover:
    """One takeover, into an empty frontier."""

    def __init__(self, layout: Layout, settings: Settings, frontier: SqliteFrontier, report: Report) -> None:
        self._layout = layout
        self._settings = settings
        self._frontier = frontier
        self._rules = visit_rules_of(settings)
        self._seeds = frozenset(settings.seeds)
        self._report = report

    async def run(self, source: QueueSource) -> TakeoverResult:
        await self._frontier.add_seeds(self._settings.seeds)
        placed = await self._place(source)
        visits = await self._settle()
        if not self._settings.dedup.dedup_from:
            await self._frontier.queue_again_without_payload(held_before(self._layout))
        in_doubt, failed = await self._conclude(source)
        await self._frontier.mark_indexed()
        return TakeoverResult(placed, visits, in_doubt, failed, await self._frontier.counts())

    async def _place(self, source: QueueSource) -> Placed:
        """Add every URL of *source* to the queue."""
        count = unusable = 0
        example = ""
        for some in _batches(source.urls()):
            usable = [found for one in some if (found := _usable(one)) is not None]
            for one in some if len(usable) < len(some) else ():
                if _usable(one) is None:
                    unusable += 1
                    example = example or one.url[:SHOWN]
            usable = [one for one in usable if url.path(one.url) != ROBOTS]  # we ask for it ourselves
            count += len(some)
            judged = [
                one._replace(inside=self._scope.contains(one.url), excluded=self._excluded(one.url)) for one in usable
            ]
            async with self._frontier.exclusive_transaction() as writer:
                await writer.run(adopted.place, judged)
            self._report(f"reading the queue: {count} URLs so far")
        return Placed(count, unusable, example)

    def _excluded(self, address: str) -> str:
        """Return the rule that refuses *address* wherever it is linked; "" if none does, or it is a seed."""
        scope = self._rules.scope
        if address in self._seeds or not isinstance(scope, Scope) or not scope.excludes(address):
            return ""
        verdict = scope.judge(Link(address, Hop.LINK), Claim(0, self._settings.seeds[0], 0, Hop.LINK, "", 0, 0, 0))
        return verdict.rule if isinstance(verdict, Refusal) else ""

    @property
    def _scope(self) -> Scope | Scopes:
        return self._rules.scope

    async def _settle(self) -> int:
        """Settle the captures in the imported files."""
        adoption = VisitAdoption(self._frontier, self._rules, ())
        files = adopted_files(self._layout)
        done = 0
        async for file in adoption.read_all(files, self._layout.spool):
            with storage(file.path):
                await self._frontier.settle((), (finished(file.path, file.name),))
            done += 1
            self._report(f"reading: file {done} of {len(files)}, {adoption.adopted} captures so far")
        return adoption.adopted

    async def _conclude(self, source: QueueSource) -> tuple[int, int]:
        """Mark the URLs that failed; return how many were fetched but have no capture, and how many failed."""
        in_doubt = failed = 0
        for some in _batches(source.urls()):
            usable = [found for one in some if (found := _usable(one)) is not None]
            fetched = [one for one in usable if one.state is AdoptedState.FETCHED]
            lost = [one for one in usable if one.state is AdoptedState.FAILED]
            async with self._frontier.exclusive_transaction() as writer:
                failed += await writer.run(adopted.give_up, lost)
                in_doubt += (await writer.run(adopted.states, fetched)).get("waiting", 0)
        return in_doubt, failed


def _batches(urls: Iterator[AdoptedUrl]) -> Iterator[list[AdoptedUrl]]:
    while some := list(islice(urls, BATCH)):
        yield some


def _usable(one: AdoptedUrl) -> AdoptedUrl | None:
    """Return *one* with canonical addresses; None if it is no URL that we can ask for."""
    address = url.canonical(one.url) if len(one.url) <= LONGEST_URL else None
    if address is None:
        return None
    via = url.canonical(one.via[:LONGEST_URL]) or ""
    seed = url.canonical(one.seed[:LONGEST_URL]) or ""
    return one._replace(url=address, via="" if via == address else via, seed=seed, note=one.note[:LONGEST_NOTE])
