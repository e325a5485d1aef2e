"""The one place where a crawl is put together, read from top to bottom; the shutdown is the same in reverse."""

import asyncio
import contextlib
import itertools
import logging
import re
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

from archiver import __version__
from archiver.archive import reindex
from archiver.archive.crawllog import CrawlLog
from archiver.archive.index import INDEX, Index
from archiver.archive.layout import DRAFT, Layout, replace_file
from archiver.archive.lock import Lock
from archiver.archive.room import Room
from archiver.archive.writer import Archive, WarcIdentity
from archiver.config.settings import Settings, every_setting, key_of
from archiver.config.toml import toml_value
from archiver.crawl.clock import Clock
from archiver.crawl.commit import Committer
from archiver.crawl.feed import Feed
from archiver.crawl.lane import Books, Lane
from archiver.crawl.lifetime import Crawl, Parts
from archiver.crawl.network import Network, Patience
from archiver.fetch.client import Fetcher, user_agent
from archiver.frontier.port import Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.outage import Outage
from archiver.outcome import LONGEST_PARK
from archiver.recover import Rebuilding, Rebuilt, Recovery, Tell, replace_database
from archiver.robots import product_token
from archiver.schedule import Schedule
from archiver.scope import Scope
from archiver.stats import duration
from archiver.visit import Terms

CAPTURES_AT_ONCE = 5000  # rows held while an index is made again

log = logging.getLogger(__name__)


@asynccontextmanager
async def opened(directory: Path, settings: Settings, *, resume: bool, text: str = "") -> AsyncIterator[Crawl]:
    """A crawl in *directory*, ready to run: new, or (with *resume*) brought to where it was left.

    *text*, if any, becomes its crawl.toml, as soon as no other process can have anything to do with it.
    """
    clock = Clock()
    layout = Layout(directory)
    async with AsyncExitStack() as stack:
        layout.make()
        lock = Lock(layout.lock)
        stack.callback(lock.release)
        if text:
            put_settings(layout, text)
        frontier = await SqliteFrontier.open(layout.database)
        stack.push_async_callback(frontier.close)
        terms = terms_of(settings)
        index = Index(layout.indexes)
        if resume:
            recovered = await Recovery(layout, frontier, terms).run()
            if ahead := await frontier.set_back(clock.now(), LONGEST_PARK):
                log.warning("the clock stands %s before the latest answer; waits are moved along", duration(ahead))
            if recovered.adopted:
                log.info("%d visits were stored but not settled; they are now", recovered.adopted)
            await restore_index(layout, frontier, index)
        await frontier.add_seeds(settings.seeds)

        spooling = ThreadPoolExecutor(2, thread_name_prefix="spool")
        stack.callback(spooling.shutdown)
        fetcher = Fetcher(settings.fetch, layout.spool, settings.warc.digest, spooling)
        stack.push_async_callback(fetcher.close)
        books = Books(index, CrawlLog(layout.log), clock)
        stack.callback(books.abandon)  # after a good end there is nothing left to abandon
        lanes = _lanes(layout, settings, books, terms, clock)
        for lane in lanes:
            stack.callback(lane.abandon)
        limited = resume and settings.politeness.rate.starts > 0
        pace_from = clock.now() + settings.politeness.rate.interval if limited else 0.0
        schedule = Schedule(settings.politeness.rate, settings.politeness.host_concurrency, not_before=pace_from)
        feed = Feed(frontier, schedule, settings.politeness, product_token(user_agent(settings.fetch)))
        room = Room(layout, settings.limits.min_free_disk, lambda: fetcher.spooled)
        patience = Patience(settings.fetch.retries, settings.limits.offline_patience)
        network = Network(frontier, schedule, fetcher, clock, patience, Outage())
        parts = Parts(frontier, schedule, feed, fetcher, Committer(frontier, *lanes), room, network)
        yield Crawl(parts, settings.limits, clock)
        await close_files(layout, frontier, lanes, books)


def put_settings(layout: Layout, text: str) -> None:
    """*text* is crawl.toml from now on, for certain."""
    replace_file(layout.settings, lambda file: file.writelines((text.encode(),)))


async def rebuilt(directory: Path, settings: Settings, tell: Tell, text: str = "") -> Rebuilt:
    """A new crawl.db from the WARC files in *directory*, and a new index; the old ones are kept under damaged/.

    The new database is put in place in one step, when it is complete. *text* as for `opened`.
    """
    layout = Layout(directory)
    with ExitStack() as stack:
        layout.make()
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
            await asyncio.to_thread(reindex.rebuild, directory)
            await frontier.mark_indexed()
        finally:
            await frontier.close()
        replace_database(layout, draft)
        with contextlib.suppress(OSError):  # as at the end of a crawl
            layout.spool.rmdir()
        return result


def terms_of(settings: Settings) -> Terms:
    """By what visits of this crawl are judged."""
    domain_of = registered_domains() if settings.scope.scope == "domain" else str
    return Terms(Scope(settings.scope, settings.seeds, domain_of), settings.fetch.retries)


def registered_domains() -> Callable[[str], str]:
    """Host name to registered domain, by the list that comes with tldextract; the network is never asked."""
    import tldextract  # noqa: PLC0415 - a fifth of a second, for those only who crawl a domain

    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    return lambda host: extract(host).top_domain_under_public_suffix or host


def _lanes(layout: Layout, settings: Settings, books: Books, terms: Terms, clock: Clock) -> tuple[Lane, Lane]:
    """One lane for small responses, one for large ones; file serials are common to both."""
    identity = WarcIdentity(
        prefix=settings.warc.warc_prefix,
        host=re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "localhost",
        size=settings.warc.warc_size,
        algorithm=settings.warc.digest,
        info=_warcinfo(settings),
    )
    serials = itertools.count(_next_serial(layout))

    def lane() -> Lane:
        archive = Archive(
            layout.archive,
            identity,
            serials=lambda: next(serials),
            now=lambda: time.time_ns() // 1000,
            new_id=lambda: f"<urn:uuid:{uuid.uuid4()}>",
        )
        return Lane(archive, books, terms, clock)

    return lane(), lane()


def _next_serial(layout: Layout) -> int:
    numbers = (re.search(r"-\d{17}-(\d{5,})-", path.name) for path in layout.archive.iterdir())
    return max((int(found[1]) + 1 for found in numbers if found), default=0)


def _warcinfo(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What each file says of the crawl: who, why, by which software, and the settings, as crawl.toml has them."""
    described = [
        ("software", f"archiver/{__version__}"),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
        ("hostname", socket.gethostname()),
        ("operator", settings.warc.operator),
        ("description", settings.warc.description),
        ("robots", settings.politeness.robots),
        ("http-header-user-agent", user_agent(settings.fetch)),
        ("http-header-from", settings.fetch.contact),
    ]
    in_force = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        write = entry.metadata["kind"].write
        values = [[write(one)] for one in value] if entry.metadata["many"] else [write(value)]
        in_force += [("setting", f"{key_of(entry)} = {toml_value(single)}") for single in values]
    seeds = [("seed", seed) for seed in settings.seeds]
    return tuple((name, value) for name, value in (*described, *in_force, *seeds) if value)


async def restore_index(layout: Layout, frontier: Frontier, index: Index) -> None:
    """The lines of every closed file that index.cdxj does not hold for certain, made again from the database."""
    index.forget_runs()
    if not (layout.indexes / INDEX).exists():
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
        index.close_file(file.name)


async def close_files(layout: Layout, frontier: Frontier, lanes: tuple[Lane, Lane], books: Books) -> None:
    """Every file gets its final name, the index is made one, and the database is told, in this order."""
    for lane in lanes:
        await frontier.settle((), await lane.close())
    await asyncio.to_thread(books.close)
    await frontier.mark_indexed()
    with contextlib.suppress(OSError):  # something foreign lies in it: not ours to remove
        layout.spool.rmdir()
