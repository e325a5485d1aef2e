"""The one place where a crawl is put together, read from top to bottom; the shutdown is the same in reverse."""

import asyncio
import contextlib
import itertools
import re
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import tldextract

from archiver import __version__
from archiver.archive.crawllog import CrawlLog
from archiver.archive.index import Index
from archiver.archive.layout import Layout
from archiver.archive.lock import Lock
from archiver.archive.writer import Archive, WarcIdentity
from archiver.config.settings import Settings, every_setting, key_of
from archiver.crawl.clock import Clock
from archiver.crawl.commit import Books, Committer, Lane
from archiver.crawl.feed import Feed
from archiver.crawl.lifetime import Crawl
from archiver.fetch.client import Fetcher, user_agent
from archiver.frontier.port import Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.recover import recover
from archiver.robots import product_token
from archiver.schedule import Schedule
from archiver.scope import Scope
from archiver.visit import Terms

CAPTURES_AT_ONCE = 5000  # rows held while an index is made again


@asynccontextmanager
async def opened(directory: Path, settings: Settings, *, resume: bool) -> AsyncIterator[Crawl]:
    """A crawl in *directory*, ready to run: new, or (with *resume*) brought to where it was left."""
    clock = Clock()
    layout = Layout(directory)
    async with AsyncExitStack() as stack:
        layout.make()
        lock = Lock(layout.lock)
        stack.callback(lock.release)
        frontier = await SqliteFrontier.open(layout.database)
        stack.push_async_callback(frontier.close)
        scope = Scope(settings.scope, settings.seeds, registered_domains())
        terms = Terms(scope, settings.fetch.retries)
        index = Index(layout.indexes)
        if resume:
            await recover(layout, frontier, terms, clock.now())
            await restore_index(layout, frontier, index)
        await frontier.add_seeds(settings.seeds)

        spooling = ThreadPoolExecutor(2, thread_name_prefix="spool")
        stack.callback(spooling.shutdown)
        fetcher = Fetcher(settings.fetch, layout.spool, settings.warc.digest, spooling)
        stack.push_async_callback(fetcher.close)
        books = Books(index, CrawlLog(layout.log), clock)
        lanes = _lanes(layout, settings, books, terms, clock)
        pace_from = clock.now() + settings.politeness.rate.interval if resume else 0.0
        schedule = Schedule(settings.politeness.rate, settings.politeness.host_concurrency, not_before=pace_from)
        feed = Feed(frontier, schedule, settings.politeness, product_token(user_agent(settings.fetch)))
        committer = Committer(frontier, *lanes)
        crawl = Crawl(frontier, schedule, feed, fetcher, committer, settings.limits, clock)
        try:
            yield crawl
        except BaseException:
            for lane in lanes:
                lane.abandon()
            books.abandon()
            raise
        await close_files(layout, frontier, lanes, books)


def registered_domains() -> Callable[[str], str]:
    """Host name to registered domain, by the list that comes with tldextract; the network is never asked."""
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
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
            now=lambda: int(clock.now() * 1_000_000),
            new_id=lambda: f"<urn:uuid:{uuid.uuid4()}>",
        )
        return Lane(archive, books, terms, clock)

    return lane(), lane()


def _next_serial(layout: Layout) -> int:
    numbers = (re.search(r"-\d{17}-(\d{5,})-", path.name) for path in layout.archive.iterdir())
    return max((int(found[1]) + 1 for found in numbers if found), default=0)


def _warcinfo(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What each file says of the crawl: who, why, by which software, and every setting in force."""
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
        for single in value if isinstance(value, tuple) else (value,):
            in_force.append(("setting", f"{key_of(entry)} = {single}"))
    seeds = [("seed", seed) for seed in settings.seeds]
    return tuple((name, value) for name, value in (*described, *in_force, *seeds) if value)


async def restore_index(layout: Layout, frontier: Frontier, index: Index) -> None:
    """The lines of every closed file that index.cdxj does not hold for certain, made again from the database."""
    index.forget_runs()
    if not (layout.indexes / "index.cdxj").exists():
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
    books.forget_runs()
    with contextlib.suppress(OSError):  # something foreign lies in it: not ours to remove
        layout.spool.rmdir()
