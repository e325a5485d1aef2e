"""Puts a crawl together, in one place to be read from top to bottom; the shutdown is the same in reverse."""

import asyncio
import itertools
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archiver.clock import Clock
from archiver.collection import safe_paths
from archiver.collection.crawl_log import CrawlLog
from archiver.collection.dedup_sources import OtherIndex, indexes_of
from archiver.collection.disk_space import DiskSpace
from archiver.collection.earlier_crawls import EarlierCrawls, open_earlier_crawls
from archiver.collection.index import Index
from archiver.collection.layout import Layout, rounds
from archiver.collection.live import Live, Tally
from archiver.collection.lock import Lock
from archiver.collection.named_files import archive_use, event_uses, file_uses, secret_uses, store_uses, vouch
from archiver.collection.records import warc_files
from archiver.collection.settings_file import put_settings
from archiver.collection.store import Store, Uploads
from archiver.collection.writer import Archive
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.batch_writer import LARGE, BatchWriter, Journal, lower_priority
from archiver.crawl.budget import Budget, SharedBudget
from archiver.crawl.commit import Committer, FileWriter, close_files, finish_index
from archiver.crawl.crawler_process import CrawlerProcess, CrawlerTask
from archiver.crawl.dedup import DedupWriter, ExternalArchives, gathered
from archiver.crawl.dispatcher import Dispatcher, HostPolicies, RobotsCache
from archiver.crawl.engine import Crawl, Parts
from archiver.crawl.events import note_events, report_events
from archiver.crawl.hooks.hooks import Hooks, HookSource, opened_hooks
from archiver.crawl.host_health import BlockedHosts, FailureLimits, HostHealth
from archiver.crawl.leases import Leases
from archiver.crawl.live.figures import CrawlFigures
from archiver.crawl.live.publish import Publication, published
from archiver.crawl.live.tally import earlier_tally
from archiver.crawl.login.form_login import FormLogin
from archiver.crawl.login.logins import Logins
from archiver.crawl.orders.live_settings import LiveSettings, MadeOfSettings, Stored
from archiver.crawl.orders.low_disk import LowDisk
from archiver.crawl.outside_changes import OutsideChanges, TakenOrders
from archiver.crawl.processes import FIRST, Supervisor, part_for, shares_settings
from archiver.crawl.reader_process import MARK, Mark, ReaderProcess, suspects
from archiver.crawl.recrawl import EarlierLookups, SitemapSource, UndiscoveredUrls, may_condition, may_leave_out
from archiver.crawl.requests import RequestLimits, Requests
from archiver.crawl.rules import (
    NOTHING_MORE,
    CurrentRules,
    GroupsOfHosts,
    Provided,
    given_cookies,
    identity_of,
    learned_rules,
    next_serial,
    owners,
    put_cookies,
    schedule_of,
)
from archiver.crawl.secrets import Secrets, read_secrets
from archiver.crawl.shared_settings import agree_on_settings
from archiver.fetch.client import Fetcher
from archiver.fetch.dns import Lookups
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.spool import SpoolFolder, Spooling
from archiver.frontier.address import host_name
from archiver.frontier.dedup import ExternalIndex, Payloads
from archiver.frontier.port import Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.policy.quotas import Quotas
from archiver.policy.retry import NetworkState
from archiver.storage import OPEN, close_to_others, is_private

if TYPE_CHECKING:
    from archiver.crawl.views.stage import PageViews
from archiver.warc.records import RecordIds

EARLIER_CRAWLS = 10  # in which we look for a payload: each costs one more query for a batch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A collection that is ready for a crawler."""

    layout: Layout
    settings: Settings
    secrets: Secrets
    frontier: SqliteFrontier
    rules: CurrentRules
    index: Index
    known: tuple[str, ...]  # seeds that *rules* know
    orders: int  # the newest order that *settings* know
    others: tuple[OtherIndex, ...]  # archives whose payloads count as stored
    clock: Clock
    began: float  # our run, in seconds since the epoch
    run_began: float  # the same, but of the first machine
    resume: bool  # hosts may have been asked just before
    together: bool = False  # with other machines
    crawler: tuple[str, int] = "", 0  # our name, if others share the frontier, and how many there are at least


class Opening(NamedTuple):
    """The way a crawl is opened: see `open_crawl`."""

    resume: bool
    text: str
    read: str
    together: bool = False  # crawlers on other machines may share the frontier


@asynccontextmanager
async def open_crawl(
    directory: Path, settings: Settings, *, resume: bool, text: str = "", read: str = "", by: Provided = NOTHING_MORE
) -> AsyncIterator[Crawl]:
    """Open the crawl in *directory*, ready to run: a new one, or with *resume* where the last run left it.

    *text*, if any, becomes its crawl.toml as soon as we hold the lock. *read*, if any, is the text that *settings*
    were parsed from; if crawl.toml has changed since, nothing begins. *by*: what the caller provides.
    """
    async with AsyncExitStack() as stack:
        opened, _ = await opened_collection(stack, directory, settings, by, Opening(resume, text, read))
        crawl, figures, writers, journal = await _put_together(stack, opened)
        await publish(stack, opened, figures.live, resume=resume)
        yield crawl
        await close_files(opened.layout, opened.frontier, writers, journal)


@asynccontextmanager
async def open_processes(
    directory: Path, settings: Settings, how: Opening, by: Provided, processes: Sequence[CrawlerProcess]
) -> AsyncIterator[Supervisor]:
    """Do the same for a crawl with a crawler in each of *processes*, which wait for their tasks."""
    async with AsyncExitStack() as stack:
        opened, lock = await opened_collection(stack, directory, settings, by, how)
        supervisor = Supervisor(opened, lock.fileno, processes)
        await publish(stack, opened, supervisor.live, resume=how.resume)
        yield supervisor
        await asyncio.to_thread(opened.index.finish)
        await finish_index(opened.layout, opened.frontier)


@asynccontextmanager
async def join_crawl(task: CrawlerTask) -> AsyncIterator[tuple[Crawl, CrawlFigures]]:
    """Open the running crawl that *task* describes, for one more crawler; yield also what describes it."""
    settings, layout = task.settings, Layout(task.directory)
    secrets = read_secrets(settings)
    async with AsyncExitStack() as stack:
        hooks = await opened_hooks(stack, task.hooks)
        frontier = await stack.enter_async_context(await SqliteFrontier.open(layout.database))
        note_events(frontier, settings, task.directory)
        memory = stack.enter_context(open_earlier_crawls(layout))
        rules = CurrentRules(await learned_rules(settings, frontier, secrets, hooks), memory)
        others = () if settings.dedup.dedup == "off" else indexes_of(settings.dedup.dedup_from, layout.directory)
        held = layout, settings, secrets, frontier, rules, Index(layout.indexes), task.known, task.orders, others
        clock = Clock(await frontier.clock_ahead())
        crawler = task.name, task.crawlers
        opened = Opened(*held, clock, task.began, task.began, task.resume, crawler=crawler)
        crawl, figures, writers, journal = await _put_together(stack, opened)
        yield crawl, figures
        for writer in writers:
            await frontier.settle((), await writer.close())
        await asyncio.to_thread(journal.leave)


async def opened_collection(
    stack: AsyncExitStack, directory: Path, settings: Settings, by: Provided, how: Opening
) -> tuple[Opened, Lock]:
    """Return the collection in *directory*, locked and recovered."""
    secrets, layout = read_secrets(settings), _made(directory, settings)
    lock = stack.enter_context(Lock(layout.lock))
    hooks = await opened_hooks(stack, HookSource.of(settings.hooks))
    if settings.warc.store:
        stack.callback(Uploads(layout, Store(settings.warc.store), lower_priority).close)
    put_cookies(layout, by.cookies)
    if not how.resume:
        put_settings(layout, how.text, how.read)
    frontier = await stack.enter_async_context(await SqliteFrontier.open(layout.database))
    await report_events(stack, frontier, settings, secrets, directory, by.result)
    clock = Clock(await frontier.clock_ahead())
    now = run_began = clock.now()
    if how.together:
        files = {path.name.removesuffix(OPEN) for path in warc_files(layout)}
        run_began = await frontier.enter_run(f"{host_name()}:{layout.directory.absolute()}", files, now)
    else:
        await frontier.run_alone()
    if shares_settings(settings):
        await agree_on_settings(layout, frontier, settings)
    known, orders = await _agreed(layout, frontier, how.text, how.read) if how.resume else ([], 0)
    visit_rules, index = await learned_rules(settings, frontier, secrets, hooks), Index(layout.indexes)
    if how.resume:
        from archiver.crawl.recovery.recover import catch_up  # noqa: PLC0415 - takes a hundredth of a second, and only resume needs it

        await catch_up(layout, frontier, visit_rules, index, now)
    rules = CurrentRules(visit_rules, await _memory(stack, layout, frontier, now))
    await frontier.prepare_views(settings.browser.browser, resume=how.resume)
    await frontier.add_seeds(settings.seeds)
    others = await asyncio.to_thread(gathered, layout, settings.dedup)
    held = layout, settings, secrets, frontier, rules, index, (*known, *settings.seeds), orders, others
    resume = how.resume or rules.memory is not None
    return Opened(*held, clock, clock.now(), run_began, resume, how.together), lock


async def _put_together(
    stack: AsyncExitStack, opened: Opened
) -> tuple[Crawl, CrawlFigures, Sequence[FileWriter], Journal]:
    """Return a crawl in *opened*, its figures, writers and their journal; *stack* abandons them after an error."""
    layout, settings, secrets = opened.layout, opened.settings, opened.secrets
    frontier, rules = opened.frontier, opened.rules
    clock, by_host, hooks = opened.clock, rules.visit_rules.settings, rules.visit_rules.hooks
    sent = SettingsByHost(secrets.filled(settings), by_host.answers)
    guard = AddressGuard(settings.fetch.allow_private, settings.seeds, settings.fetch.insecure_secrets)
    fetcher = fetcher_of(stack, layout, sent, guard, hooks)
    journal = Journal(opened.index, CrawlLog(layout.log, settings.events), clock)
    stack.callback(journal.abandon)  # after a good end there is nothing left to abandon
    archives = archives_of(opened)
    writers = writers_of(opened, archives, journal, clock)
    files: list[FileWriter] = [*writers]
    views = _views(opened, archives, journal, files)
    for each in files:
        stack.callback(each.abandon)
    name, crawlers = opened.crawler
    schedule = schedule_of(settings, opened.began, resume=opened.resume, crawlers=crawlers)
    space = DiskSpace(layout, settings.limits.min_free_disk, fetcher.spool_folder)
    room = LowDisk(space, (frontier, schedule), clock, by_host, (name, opened.began))
    health = HostHealth(frontier, schedule, fetcher, clock, _patience(by_host), NetworkState())
    resumed = opened.began if opened.resume else 0.0
    groups = GroupsOfHosts(settings.politeness, by_host, settings.seeds, hooks, resumed)
    robots = RobotsCache(by_host)
    blocked, leases = BlockedHosts(frontier, schedule, clock), Leases(frontier, schedule, clock, name, crawlers)
    earlier, undiscovered = _recollection(stack, opened)
    session = rules.visit_rules.session
    requests = Requests(fetcher, schedule, earlier, session, clock, RequestLimits.of(settings.limits))
    forms = FormLogin(requests, robots.refusing(schedule), secrets, (layout.private, identity_of(settings)))
    logins = Logins((frontier, schedule, session), clock, by_host, forms, owners)
    policies = HostPolicies(robots, groups, health, blocked, Quotas(by_host), logins, leases)
    dispatcher = Dispatcher(frontier, schedule, policies, rules)
    shared = name and SharedBudget(settings, frontier, schedule, clock, crawlers)
    budget = shared or Budget(settings.limits.max_urls)
    made = MadeOfSettings(rules, sent, secrets, guard, groups, schedule, dispatcher, requests, budget)
    live = LiveSettings(Stored(layout, frontier), made, part_for(name, crawlers))
    orders = TakenOrders(frontier, schedule, clock, opened.orders, live)
    if hooks is not None:
        await stack.enter_async_context(hooks.ending(orders.stop_by, layout, clock))
    changes = OutsideChanges(frontier, dispatcher, opened.known, live.add_seeds, orders)
    committer = Committer(frontier, schedule, writers, clock)
    work = frontier, schedule, dispatcher, fetcher, requests, committer, room, health, blocked, changes
    parts = Parts(*work, logins, leases, budget, undiscovered, views)
    crawl = Crawl(parts, by_host, clock)
    figures = CrawlFigures(crawl, schedule, committer, health.network, fetcher.spool_folder, clock)
    return crawl, figures, files, journal


async def publish(stack: AsyncExitStack, opened: Opened, figures: Callable[[float], Live], *, resume: bool) -> None:
    """Write *figures* to live.json until *stack* ends; with *resume* its counters go on."""
    before = await earlier_tally(opened.layout, opened.frontier, alone=not opened.together) if resume else Tally()
    machine = opened.frontier.machine or identity_of(opened.settings).host
    about = Publication(opened.layout, before, machine, opened.settings.warc.store)
    await stack.enter_async_context(published(about, figures))


def _views(
    opened: Opened, archives: Iterator[Archive], journal: Journal, writers: list[FileWriter]
) -> "PageViews | None":
    """Return the views of pages in a browser, if there are to be any, and add their writer to *writers*.

    The first of several crawlers shows them.
    """
    settings = opened.settings.browser
    if settings.browser == "off":
        return None
    from archiver.crawl.views.answers import StoredAnswers  # noqa: PLC0415 - most crawls need no browser
    from archiver.crawl.views.records import ViewWriter  # noqa: PLC0415 - see above
    from archiver.crawl.views.stage import PageViews  # noqa: PLC0415 - see above

    if opened.crawler[0] and not opened.crawler[0].endswith(FIRST):
        return PageViews((opened.frontier, None, None), opened.rules, settings, opened.clock)
    writer = ViewWriter(next(archives), journal, opened.frontier)
    writers.append(writer)
    answers = StoredAnswers(opened.layout, opened.others)
    return PageViews((opened.frontier, answers, writer), opened.rules, settings, opened.clock)


async def _memory(stack: AsyncExitStack, layout: Layout, frontier: Frontier, now: float) -> EarlierCrawls | None:
    """Return what earlier crawls of the collection hold.

    *frontier* learns how their hosts were asked, and their cookies. Those that the user gave replace them.
    """
    memory = stack.enter_context(open_earlier_crawls(layout))
    if memory is not None:
        await frontier.inherit_throttles(memory.inherited_throttles(now))
    earlier = memory.cookies(now) if memory is not None else []
    if (cookies := given_cookies(layout)) or earlier:
        if any(cookie.private for cookie in (*cookies, *earlier)):
            close_to_others(*layout.database_files(), layout.address)
        await frontier.bring_cookies(cookies, earlier)
        layout.loaded_cookies.unlink(missing_ok=True)
    return memory


def _made(directory: Path, settings: Settings) -> Layout:
    """Return the layout of *directory*, and note there which files of this machine it may use."""
    layout = safe_paths.make_folders(directory)
    uses = *map(archive_use, settings.dedup.dedup_from), *file_uses(settings), *secret_uses(settings)
    vouch(layout, (*uses, *store_uses(settings), *event_uses(settings)))
    return layout


def _recollection(stack: AsyncExitStack, opened: Opened) -> tuple[EarlierLookups | None, UndiscoveredUrls | None]:
    """Return the look-ups in earlier crawls of the collection, in a thread that *stack* ends."""
    frontier, rules, settings = opened.frontier, opened.rules, opened.rules.visit_rules.settings
    if (memory := rules.memory) is None:
        return None, None
    thread = ThreadPoolExecutor(1, "earlier")
    stack.callback(thread.shutdown, cancel_futures=True)
    common, run = settings.common.fetch, SitemapSource(frontier, opened.crawler[0])
    wanted = settings.any or may_condition(common) or may_leave_out(common)
    lookups = EarlierLookups(memory, thread, settings, rules.sitemap_dates, run) if wanted else None
    return lookups, UndiscoveredUrls(memory, frontier, rules, thread)


def fetcher_of(
    stack: AsyncExitStack, layout: Layout, by_host: SettingsByHost, guard: AddressGuard, hooks: Hooks | None
) -> Fetcher:
    """Return the fetcher; *stack* closes it, and then the threads that spool its responses."""
    spooling = ThreadPoolExecutor(2, "spool", lower_priority)
    stack.callback(spooling.shutdown)
    settings = by_host.common
    spool = SpoolFolder(layout.spool, settings.limits.min_free_disk)
    keep = None if hooks is None else hooks.keep
    fetcher = Fetcher(by_host, guard, Spooling(spool, settings.warc.digest, spooling), Lookups(owners), keep)
    stack.push_async_callback(fetcher.close)
    return fetcher


def _patience(by_host: SettingsByHost) -> FailureLimits:
    common = by_host.common
    return FailureLimits(by_host, common.limits.offline_patience, common.politeness.host_patience)


async def _agreed(layout: Layout, frontier: SqliteFrontier, text: str, read: str) -> tuple[list[str], int]:
    """Return the seeds and the newest order that the crawl begins with; it notices what is added from now on."""
    async with frontier.exclusive_transaction():
        put_settings(layout, text, read)
        return await frontier.seeds(), await frontier.newest_order()


def archives_of(opened: Opened) -> Iterator[Archive]:
    """Yield archives for the writers of this crawler; they share the serial numbers of their files."""
    layout, crawler = opened.layout, opened.crawler[0]
    identity = identity_of(opened.settings)
    if crawler:
        identity = replace(identity, host=crawler)
    if any(map(is_private, (layout.database, layout.address))):  # cookies of the user, as request records will have
        identity = replace(identity, private=True)
    serials = itertools.count(next_serial(layout))
    while True:
        yield Archive(
            layout.archive,
            identity,
            serials=lambda: next(serials),
            now=lambda: time.time_ns() // 1000,
            new_id=RecordIds(os.urandom),
        )


def writers_of(
    opened: Opened, archives: Iterator[Archive], journal: Journal, clock: Clock
) -> tuple[BatchWriter, BatchWriter]:
    """Return the quick writer and the slow one."""
    layout, settings, (crawler, _) = opened.layout, opened.settings, opened.crawler
    indexes, folders = [one.cdxj for one in opened.others], [one.folders for one in opened.others]
    suspected, hooks = suspects(layout.spool), opened.rules.visit_rules.hooks
    texts = hooks is not None and hooks.judges

    def writer(*, slow: bool) -> BatchWriter:
        archive = next(archives)
        mark = Mark(layout.spool / MARK.format(f"{crawler}{int(slow)}"))
        read = ReaderProcess(most=0 if slow else LARGE, mark=mark, suspected=suspected, texts=texts)
        if settings.dedup.dedup == "off":
            return BatchWriter(archive, journal, opened.rules, clock, read, slow=slow)
        earlier = ExternalArchives(ExternalIndex(layout.scratch, indexes), folders) if opened.others else None
        past = [folder.database for folder in rounds(layout)[:EARLIER_CRAWLS]]
        known = [Payloads(layout.database), *(Payloads(path, at_rest=True) for path in past)]
        once = DedupWriter(archive, known, settings.dedup.dedup_min_size, earlier)
        return BatchWriter(once, journal, opened.rules, clock, read, slow=slow)

    return writer(slow=False), writer(slow=True)
