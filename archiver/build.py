"""The one place where a crawl is put together, read from top to bottom; the shutdown is the same in reverse."""

import asyncio
import contextlib
import itertools
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.allowance import Allowance
from archiver.archive import inside
from archiver.archive.crawllog import CrawlLog
from archiver.archive.index import INDEX, Index
from archiver.archive.layout import DRAFT, Layout, replace_file, storage
from archiver.archive.lock import Lock
from archiver.archive.others import OtherIndex, indexes_of
from archiver.archive.room import Room
from archiver.archive.vouching import vouch
from archiver.archive.writer import Archive
from archiver.background import stand_back
from archiver.config.settings import (
    DedupSettings,
    FetchSettings,
    PolitenessSettings,
    Settings,
)
from archiver.crawl.blocked_hosts import BlockedHosts
from archiver.crawl.changes import Changes, Renew
from archiver.crawl.circles import Circles
from archiver.crawl.clock import Clock
from archiver.crawl.commit import Committer
from archiver.crawl.dedup import Deduplicated, Earlier
from archiver.crawl.feed import Feed
from archiver.crawl.lane import LARGE, Books, InForce, Lane
from archiver.crawl.leftover import Leftover
from archiver.crawl.lifetime import Crawl, Parts
from archiver.crawl.network import Network, Patience
from archiver.crawl.recall import Recall
from archiver.crawl.rulebook import Rulebook
from archiver.disk import opened as opened_file
from archiver.earlier import Memory, remembered, rounds
from archiver.earlier.validators import given_by_hand
from archiver.errors import ConfigError
from archiver.fetch.client import Fetcher, user_agent
from archiver.fetch.guard import Guard
from archiver.fetch.lookup import Lookups
from archiver.fetch.spool import SpoolFolder
from archiver.frontier.elsewhere import Elsewhere, gather
from archiver.frontier.payloads import Payloads
from archiver.frontier.port import Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.identity import identity_of, next_serial
from archiver.outage import Outage
from archiver.outcome import LONGEST_PARK
from archiver.politeness import Whole
from archiver.reader_process import MARK, Mark, ReaderProcess, suspects
from archiver.robots import product_token
from archiver.schedule import Schedule
from archiver.stats import duration
from archiver.terms import learned_terms, owners, scope_for, terms_of, with_seeds
from archiver.visit import Terms
from archiver.warc.records import RecordIds

if TYPE_CHECKING:
    from archiver.recover import Rebuilt, Tell

EARLIER_CRAWLS = 10  # in which a payload is looked for: each is one more question for a batch
CAPTURES_AT_ONCE = 5000  # rows held while an index is made again

log = logging.getLogger(__name__)


@asynccontextmanager
async def opened(
    directory: Path, settings: Settings, *, resume: bool, text: str = "", read: str = ""
) -> AsyncIterator[Crawl]:
    """A crawl in *directory*, ready to run: new, or (with *resume*) brought to where it was left.

    *text*, if any, becomes its crawl.toml, as soon as no other process can have anything to do with it. *read*, if any,
    is what that file held when *settings* were made of it; where it has been changed since, nothing is begun.
    """
    clock = Clock()
    layout = _made(directory, settings)
    async with AsyncExitStack() as stack:
        lock = Lock(layout.lock)
        stack.callback(lock.release)
        if not resume:
            put_settings(layout, text, read)
        frontier = await SqliteFrontier.open(layout.database)
        stack.push_async_callback(frontier.close)
        known = await _agreed(layout, frontier, text, read) if resume else []
        terms = await learned_terms(settings, frontier)
        index = Index(layout.indexes)
        if resume:
            await catch_up(layout, frontier, terms, clock.now())
            await restore_index(layout, frontier, index)
        memory = await _memory(stack, layout, frontier, clock.now())
        await frontier.add_seeds(settings.seeds)
        guard = Guard(settings.fetch.allow_private, settings.seeds, settings.fetch.insecure_secrets)
        fetcher = _fetcher(stack, layout, settings, guard)
        books = Books(index, CrawlLog(layout.log), clock)
        stack.callback(books.abandon)  # after a good end there is nothing left to abandon
        in_force = InForce(terms, memory)
        lanes = _lanes(
            layout, settings, books, in_force, clock, await asyncio.to_thread(_others, layout, settings.dedup)
        )
        for lane in lanes:
            stack.callback(lane.abandon)
        schedule = _schedule(settings.politeness, clock.now(), resume=resume or memory is not None)
        rulebook = Rulebook(settings.politeness, product_token(user_agent(settings.fetch)))
        feed = Feed(frontier, schedule, rulebook, in_force, Allowance.of(settings.limits))
        room = Room(layout, settings.limits.min_free_disk, lambda: fetcher.spooled, lambda: fetcher.largest)
        network = Network(frontier, schedule, fetcher, clock, _patience(settings), Outage())
        circles = Circles(settings.politeness, owners, settings.seeds)
        blocked = BlockedHosts(frontier, schedule, clock)
        feed.attach(circles.terms, (network.recall, blocked.recall))
        renew = _renewal(layout, settings, in_force, (guard.welcome, circles.welcome))
        changes = Changes(frontier, feed, (*known, *settings.seeds), renew)
        recall, leftover = _recollection(stack, settings.fetch, memory, frontier, in_force)
        committer = Committer(frontier, *lanes, clock)
        parts = Parts(frontier, schedule, feed, fetcher, committer, room, network, blocked, changes, recall, leftover)
        yield Crawl(parts, settings.limits, clock)
        await close_files(layout, frontier, lanes, books)


async def _memory(stack: AsyncExitStack, layout: Layout, frontier: Frontier, now: float) -> Memory | None:
    """Return what earlier crawls of the collection hold; *frontier* learns how their hosts were asked."""
    memory = stack.enter_context(remembered(layout))
    if memory is not None:
        await frontier.inherit(memory.manners(now))
    return memory


def _made(directory: Path, settings: Settings) -> Layout:
    """The collection in *directory*, which remembers the other archives that were named for it here."""
    layout = inside.made(directory)
    vouch(layout, settings.dedup.dedup_from)
    return layout


async def catch_up(layout: Layout, frontier: SqliteFrontier, terms: Terms, now: float) -> None:
    """Bring *frontier* to what the run before has left on disk, and its waits to the clock of this one."""
    from archiver.recover import Recovery  # noqa: PLC0415 - a hundredth of a second, for those only who resume

    recovered = await Recovery(layout, frontier, terms).run()
    if ahead := await frontier.set_back(now, LONGEST_PARK):
        log.warning("the clock stands %s before the latest answer; waits are moved along", duration(ahead))
    if recovered.adopted:
        log.info("%d visits were stored but not settled; they are now", recovered.adopted)


def _recollection(
    stack: AsyncExitStack, settings: FetchSettings, memory: Memory | None, frontier: Frontier, in_force: InForce
) -> tuple[Recall, Leftover | None]:
    """What the crawl asks of earlier ones of its collection, in a thread that *stack* ends; no *memory*: nothing."""
    if memory is None:
        return Recall(), None
    thread = ThreadPoolExecutor(1, "earlier")
    stack.callback(thread.shutdown, cancel_futures=True)
    conditional = settings.conditional and not given_by_hand(settings.header)
    return Recall(memory, thread) if conditional else Recall(), Leftover(memory, frontier, in_force, thread)


def _fetcher(stack: AsyncExitStack, layout: Layout, settings: Settings, guard: Guard) -> Fetcher:
    """The fetcher, which *stack* closes, and after it the threads that spool what it brings."""
    spooling = ThreadPoolExecutor(2, "spool", stand_back)
    stack.callback(spooling.shutdown)
    spool = SpoolFolder(layout.spool, settings.limits.min_free_disk)
    fetcher = Fetcher(settings.fetch, guard, spool, settings.warc.digest, spooling, Lookups(owners))
    stack.push_async_callback(fetcher.close)
    return fetcher


def _patience(settings: Settings) -> Patience:
    return Patience(settings.fetch.retries, settings.limits.offline_patience, settings.politeness.host_patience)


def _schedule(settings: PolitenessSettings, now: float, *, resume: bool) -> Schedule:
    """The schedule; after a run before, starts are counted as if that had made all it might until *now*."""
    shared = settings.third_party_rate or settings.rate
    rates = (settings.rate, shared, settings.global_rate, *(limit.rate for limit in settings.host_limit))
    interval = max((rate.interval for rate in rates if rate.starts), default=0.0)
    not_before = now + interval if resume and interval else 0.0
    whole = Whole(settings.global_rate, settings.bandwidth)
    return Schedule(settings.rate, settings.host_concurrency, not_before=not_before, whole=whole)


def put_settings(layout: Layout, text: str, read: str = "") -> None:
    """*text*, if any, is crawl.toml from now on, for certain; *read*, if any, is what it has to hold until now."""
    if read and _text(layout.settings) != read:
        raise ConfigError(f"{layout.settings} was changed in this very moment; call archiver resume again")
    if text:
        replace_file(layout.settings, lambda file: file.writelines((text.encode(),)), private=True)
    with contextlib.suppress(OSError):  # not there yet, or not ours to change
        layout.settings.chmod(0o600)  # an older version left it for all to read


def _text(path: Path) -> str:
    with storage(path), opened_file(path) as file:
        return file.read().decode()


async def _agreed(layout: Layout, frontier: SqliteFrontier, text: str, read: str) -> list[str]:
    """The seeds that the crawl begins with; whoever adds one from now on finds *text* in crawl.toml, and is heard."""
    async with frontier.alone():
        put_settings(layout, text, read)
        return await frontier.seeds()


def _renewal(
    layout: Layout, settings: Settings, in_force: InForce, hosts: Iterable[Callable[[Sequence[str]], None]]
) -> Renew:
    """What further seeds mean for a crawl that runs: all of *hosts* welcome them, and new terms are in force."""

    async def renew(newest: Sequence[str], further: Sequence[str]) -> None:
        for welcome in hosts:
            welcome(newest)
        scope = await asyncio.to_thread(lambda: scope_for(with_seeds(settings, further, layout)))
        scope.welcome(in_force.terms.scope.welcomed)
        in_force.terms = replace(in_force.terms, scope=scope)

    return renew


async def rebuilt(directory: Path, settings: Settings, tell: "Tell", text: str = "") -> "Rebuilt":
    """A new crawl.db from the WARC files in *directory*, and a new index; the old ones are kept under damaged/.

    The new database is put in place in one step, when it is complete. *text* as for `opened`.
    """
    from archiver.archive import reindex  # noqa: PLC0415 - a crawl needs neither
    from archiver.recover import Rebuilding, held_before, replace_database  # noqa: PLC0415 - as above

    layout = inside.made(directory)
    with ExitStack() as stack:
        lock = Lock(layout.lock)
        stack.callback(lock.release)
        layout.forget_drafts()
        if text:
            put_settings(layout, text)
        draft = layout.database.with_name(f"{layout.database.name}{DRAFT}")
        frontier = await SqliteFrontier.open(draft)
        try:
            await frontier.add_seeds(settings.seeds)
            result = await Rebuilding(layout, frontier, terms_of(settings), tell).run()
            if not settings.dedup.dedup_from and (lost := await frontier.again_without_payload(held_before(layout))):
                log.warning("the payloads of %d revisits are lost; their URLs wait to be visited again", lost)
            await asyncio.to_thread(reindex.rebuild, directory)
            await frontier.mark_indexed()
        finally:
            await frontier.close()
        replace_database(layout, draft)
        with contextlib.suppress(OSError):  # as at the end of a crawl
            layout.spool.rmdir()
        return result


def _lanes(
    layout: Layout, settings: Settings, books: Books, in_force: InForce, clock: Clock, others: Sequence[OtherIndex]
) -> tuple[Lane, Lane]:
    """A quick lane and a slow one; file serials are common to both."""
    identity = identity_of(settings)
    serials = itertools.count(next_serial(layout))
    indexes, folders = [one.cdxj for one in others], [one.folders for one in others]
    suspected = suspects(layout.spool)

    def lane(*, slow: bool) -> Lane:
        archive = Archive(
            layout.archive,
            identity,
            serials=lambda: next(serials),
            now=lambda: time.time_ns() // 1000,
            new_id=RecordIds(os.urandom),
        )
        mark = Mark(layout.spool / MARK.format(int(slow)))
        read = ReaderProcess(most=0 if slow else LARGE, mark=mark, suspected=suspected)
        if settings.dedup.dedup == "off":
            return Lane(archive, books, in_force, clock, read, slow=slow)
        earlier = Earlier(Elsewhere(layout.scratch, indexes), folders) if others else None
        past = [folder.database for folder in rounds(layout)[:EARLIER_CRAWLS]]
        known = [Payloads(layout.database), *(Payloads(path, at_rest=True) for path in past)]
        once = Deduplicated(archive, known, settings.dedup.dedup_min_size, earlier)
        return Lane(once, books, in_force, clock, read, slow=slow)

    return lane(slow=False), lane(slow=True)


def _others(layout: Layout, settings: DedupSettings) -> tuple[OtherIndex, ...]:
    """The other archives whose payloads count as stored, which can be found from now on."""
    if settings.dedup == "off":
        return ()
    others = indexes_of(settings.dedup_from, layout.directory)
    if others:
        draft = layout.scratch.with_name(f"{layout.scratch.name}{DRAFT}")
        gather(layout.scratch, draft, [one.cdxj for one in others])
    return others


async def restore_index(layout: Layout, frontier: Frontier, index: Index) -> None:
    """The lines of every closed file that index.cdxj does not hold for certain, from the database or from the file."""
    from archiver.archive import reindex  # noqa: PLC0415 - a hundredth of a second, for those only who resume

    index.forget_runs()
    lost = not (layout.indexes / INDEX).exists()
    if lost:
        if any(file.indexed for file in await frontier.files()):
            log.warning("%s is missing; it is made again from the database", layout.indexes / INDEX)
        await frontier.forget_index()
    for file in await frontier.files():
        if file.indexed or not file.closed:
            continue
        after = -1
        while captures := await frontier.captures(file.name, after, CAPTURES_AT_ONCE):
            index.add(captures)
            after = captures[-1].response.offset
        after = -1
        while resources := await frontier.resources(file.name, after, CAPTURES_AT_ONCE):
            index.add(resources)
            after = resources[-1].span.offset
        index.close_file(file.name)
    await asyncio.to_thread(reindex.add_others, index, layout, await frontier.files(), all_of_them=lost)


async def close_files(layout: Layout, frontier: Frontier, lanes: tuple[Lane, Lane], books: Books) -> None:
    """Every file gets its final name, the index is made one, and the database is told, in this order."""
    for lane in lanes:
        await frontier.settle((), await lane.close())
    await asyncio.to_thread(books.close)
    await frontier.mark_indexed()
    with contextlib.suppress(OSError):  # something foreign lies in it: not ours to remove
        layout.spool.rmdir()
