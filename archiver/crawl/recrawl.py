"""Recrawls a collection: ends the earlier crawl, and uses what earlier crawls have archived.

`set_aside` moves the files of the earlier crawl to a folder below DIR/crawls. The caller holds the lock. First that
crawl is recovered and closed, with its own settings, so that nothing of it is lost to the next one. Then the rename of
crawl.db decides, or of the file with the address of the database: before it nothing has changed, after it the next
crawl has begun, and any later run moves what is left to be moved. Each step can be interrupted and repeated. Nothing is
deleted but the leftovers of an interrupted switch-over.

`adjusted` fetches first what a sitemap calls newer than our latest capture. That changes only the order.
`EarlierLookups` finds the stored version of a URL for a conditional request, in a thread beside the event loop. By
`--newer-sitemap` and `--changed-only` it also leaves pages out. Then the links of the stored version are followed, as
after a 304. `archiver.policy.recrawl` has the rules.
`UndiscoveredUrls` queues URLs that earlier crawls have archived and that no link led to this time, when all else is
done: the only way to learn that they are gone. Scope and traps judge each URL as if the page that named it then named
it now. Our own guesses are not repeated. This needs no state of its own: URLs that the frontier knows are skipped.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from archiver import url
from archiver.clock import Clock
from archiver.collection import safe_paths
from archiver.collection.earlier_crawls import OK, EarlierCrawls, StoredVersion, given_by_hand, stamp_for
from archiver.collection.index import Index
from archiver.collection.index_search import GROWING
from archiver.collection.layout import NEXT, STAMP, Layout, rounds
from archiver.collection.lock import Lock
from archiver.collection.settings_file import put_settings
from archiver.config.fetch_settings import FetchSettings
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.reader_process import ReaderProcess
from archiver.crawl.rules import CurrentRules, learned_rules, put_cookies
from archiver.crawl.visit import OTHER_VERSION, Visited, conclude_unasked, judged_links
from archiver.crawl.visit_rules import VisitRules, judged_alone
from archiver.errors import ArchiveError, Failure
from archiver.extract.exchange import is_robots, referrer_policy
from archiver.extract.sitemap import modified, modified_until
from archiver.frontier.captures import CaptureRow, EarlierUrl
from archiver.frontier.port import EarlierFind, Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.humanize import second
from archiver.model import LINK_OUTSIDE, Claim, Cookie, Exchange, Hop, Link, Links, Refusal, Settlement
from archiver.policy import referrer
from archiver.policy.recrawl import DAY, PastVisit, SitemapDates, interval_of_change, is_due, is_older
from archiver.policy.scope import PRIORITY_PAGE, is_guess
from archiver.storage import DRAFT, open_file, replace_file, storage, sync_folder


@dataclass(frozen=True, slots=True)
class UnfinishedWork:
    """The work that a crawl left to the next one."""

    stamp: str  # the name of its folder
    waiting: int  # URLs


def switch_over(layout: Layout, stamp: str, text: str) -> None:
    """Move the crawl of *layout*, whose database is closed, to the folder *stamp*; *text* is the next crawl.toml."""
    if beside := [path for path in layout.database_files() if path != layout.database and path.exists()]:
        raise ArchiveError(f"{beside[0]} is there: another process has the database open")
    _forget_attempts(layout)
    folder = Layout(layout.earlier / stamp)
    with storage(folder.directory):
        folder.directory.mkdir(parents=True, exist_ok=True)
        sync_folder(layout.earlier)
        sync_folder(layout.directory)
        with open_file(layout.settings) as file:
            settings = file.read()
    replace_file(folder.settings, lambda file: file.writelines((settings,)), private=True)
    replace_file(folder.directory / NEXT, lambda file: file.writelines((text.encode(),)), private=True)
    if layout.address.exists():
        _move(layout.address, folder.address)
    else:
        _move(layout.database, folder.database)
    finish(layout)


def pending(layout: Layout) -> bool:
    """Return True if a switch-over was interrupted after the point of no return."""
    newest = _newest(layout)
    return newest is not None and (newest.directory / NEXT).exists() and not layout.has_frontier()


def finish(layout: Layout) -> None:
    """Move what an interrupted switch-over has left; the settings of the next crawl come last."""
    newest = _newest(layout)
    if newest is None or not pending(layout):
        return
    if layout.log.exists():
        with storage(newest.log):
            newest.log.parent.mkdir(exist_ok=True)
            sync_folder(newest.directory)
        _move(layout.log, newest.log)
    if layout.reports.exists():
        _move(layout.reports, newest.reports)
    _move(newest.directory / NEXT, layout.settings)


def _newest(layout: Layout) -> Layout | None:
    return next(iter(rounds(layout)), None)


def _move(source: Path, target: Path) -> None:
    """Rename *source* durably: even after a power cut it is in exactly one of the folders."""
    with storage(source):
        source.rename(target)
        sync_folder(target.parent)
        sync_folder(source.parent)


def _forget_attempts(layout: Layout) -> None:
    """Remove what failed attempts left: copies of settings in a folder without a database."""
    if not layout.earlier.is_dir():
        return
    with storage(layout.earlier):
        for folder in layout.earlier.iterdir():
            if not STAMP.fullmatch(folder.name) or Layout(folder).has_frontier():
                continue
            for name in (layout.settings.name, NEXT):
                for path in (folder / name, folder / (name + DRAFT)):
                    path.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()


async def set_aside(
    directory: Path, settings: Settings, text: str, read: str, cookies: Sequence[Cookie] = ()
) -> UnfinishedWork | None:
    """End the crawl in *directory*, and let the next one follow it with *text* as its crawl.toml; return what it left.

    *settings* are those of the crawl that ends, parsed from *read*; *cookies* of the user are kept for the next one.
    Returns None without a database: a crawl that has not begun only gets the new settings.
    """
    from archiver.crawl.recovery.recover import catch_up  # noqa: PLC0415 - slow to import, and a crawl imports this module

    layout = safe_paths.make_folders(directory)
    with Lock(layout.lock):
        put_settings(layout, "", read)
        put_cookies(layout, cookies)
        if not layout.has_frontier():
            put_settings(layout, text)
            return None
        async with await SqliteFrontier.open(layout.database) as frontier:
            rules = await learned_rules(settings, frontier)
            index = Index(layout.indexes)
            await catch_up(layout, frontier, rules, index, Clock().now())
            if any(layout.indexes.glob(f"{GROWING}*.cdxj")):
                await asyncio.to_thread(index.finish)
                await frontier.mark_indexed()
            counts, began = await frontier.counts(), await frontier.began()
        left = UnfinishedWork(stamp_for(layout, began, rounds(layout)), counts.waiting)
        layout.live.unlink(missing_ok=True)  # its counters are not those of the next crawl
        switch_over(layout, left.stamp, text)
        return left


def finish_switch_over(directory: Path) -> None:
    """Finish a switch-over that was interrupted, if there is one."""
    layout = Layout(directory)
    if pending(layout):
        with Lock(layout.lock):
            finish(layout)


MOST_SITEMAPS = 1000  # of earlier runs, each some hundredths of a second
MOST_DATES = 10_000  # entries of one sitemap that we look up: a tenth of a second


def adjusted(settlement: Settlement, links: Links, memory: EarlierCrawls, dates: SitemapDates) -> Settlement:
    """Release URLs that *memory* has from trap rules, and add the dates of a sitemap to *dates*.

    Pages that it calls newer get the priority of seeds.
    """
    note_dates(links, dates, settlement.settled)
    found = settlement.found
    if any(new.held for new in found):
        found = tuple(new._replace(held="") if new.held and memory.has(new.url) else new for new in found)
    leads = (link for link in links.links[:MOST_DATES] if link.hop is Hop.LINK)
    given = {link.url: date for link in leads if (date := modified(link.context))}
    newer = {address for address, date in given.items() if _is_newer(address, date, memory)}
    if newer:
        found = tuple(
            new._replace(priority=min(new.priority, PRIORITY_PAGE)) if new.url in newer else new for new in found
        )
    return settlement._replace(found=found)


def _is_newer(address: str, date: float, memory: EarlierCrawls) -> bool:
    taken = memory.newest(address)
    return taken is None or date > taken.timestamp / 1e6


def note_dates(links: Links, dates: SitemapDates, now: float) -> None:
    """Add the dates in *links* of one sitemap to *dates*."""
    found: dict[str, tuple[float, float]] = {}
    for address, _, context in links.links:
        first, last = modified(context), modified_until(context)
        if first is not None and last is not None:
            found[address] = first, last
    if found:
        dates.add(found, now)


def conclude_left_out(rules: VisitRules, visited: Visited, links: Links, now: float) -> Settlement:
    """Return the settlement of a page that was not requested, with the *links* of its stored version."""
    claim, head = visited.claim, visited.unmodified and visited.unmodified.head
    policy = referrer_policy(claim, head, links) if head else ""
    found, refused, hook_failed = judged_links(rules, claim, links, "" if policy == referrer.DEFAULT else policy, now)
    others = tuple(new for new in found if new.url != claim.url)
    settlement = conclude_unasked(rules, visited, now)
    note = "; ".join(filter(None, (settlement.note, hook_failed)))
    return settlement._replace(found=others, refused=tuple(refused), note=note)


def may_condition(settings: FetchSettings) -> bool:
    """Return True if requests may be made conditional; the user's own headers may do that already."""
    return settings.conditional and not given_by_hand(settings.header)


def may_leave_out(settings: FetchSettings) -> bool:
    """Return True if pages may be left out of a recrawl."""
    return settings.newer_sitemap or settings.changed_only


@dataclass(frozen=True, slots=True)
class SitemapSource:
    """The frontier that knows all sitemaps of a crawl, and the name of this crawler; "": there is no other one."""

    frontier: SqliteFrontier
    crawler: str


class EarlierLookups:
    """Looks up stored versions in *memory*, in *thread*."""

    def __init__(
        self, memory: EarlierCrawls, thread: Executor, settings: SettingsByHost, dates: SitemapDates, run: SitemapSource
    ) -> None:
        """*dates* come from the sitemaps that this crawler reads; those of *run* are read when they are needed."""
        self._memory = memory
        self._dates = dates
        self._run = run
        self._read_until = -1  # the row of a capture; no sitemap behind it has been read here
        self._reading = asyncio.Lock()
        self._thread = thread
        self._settings = settings
        self._doubted: set[str] = set()  # URLs to fetch without conditions the next time

    async def version(self, claim: Claim) -> StoredVersion | None:
        """Return the stored version for a conditional request; None if there is none.

        A robots.txt and a language variant are always fetched whole.
        """
        if is_robots(claim) or claim.language or not may_condition(self._settings.of(url.origin(claim.url)).fetch):
            return None
        if claim.url in self._doubted:
            self._doubted.discard(claim.url)
            return None
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._memory.version, claim.url)

    async def left_out(self, claim: Claim, now: float) -> Visited | None:
        """Return the visit without a request of a page that need not be requested; None if it is to be requested."""
        own = self._settings.of(url.origin(claim.url)).fetch
        if _is_always_requested(claim) or not may_leave_out(own):
            return None
        if own.newer_sitemap:
            await self._read_sitemaps()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._left_out, claim, own, now)

    def _left_out(self, claim: Claim, own: FetchSettings, now: float) -> Visited | None:
        history = self._memory.history(claim.url)
        if not history or history[0].meant != OK or history[0].truncated:
            return None
        why, captured = "", history[0].timestamp / 1e6
        if own.newer_sitemap and is_older(self._dates.modified(claim.url), captured):
            why = f"newer-sitemap: a sitemap dates it before its capture of {second(captured)}"
        visits = [PastVisit(each.timestamp / 1e6, (each.meant, each.digest)) for each in history]
        if own.changed_only and not why and not is_due(visits, now):
            days = interval_of_change(visits) / DAY
            why = f"changed-only: unchanged for {days:.1f} days or more between captures, last on {second(captured)}"
        stored = self._memory.version(claim.url, conditional=False) if why else None
        return None if stored is None else Visited(claim, forbidden=why, failure=Failure.UNCHANGED, unmodified=stored)

    async def _read_sitemaps(self) -> None:
        """Note the dates in sitemaps that earlier runs have stored, and since then those of other crawlers.

        A crawler that finds a page only in a sitemap has seen that sitemap: both are committed together.
        """
        if self._read_until >= 0 and not self._run.crawler:
            return
        async with self._reading:
            until, found = await self._run.frontier.sitemaps(max(self._read_until, 0), MOST_SITEMAPS)
            if self._read_until >= 0:  # its own have been noted
                found = [taken for taken in found if not taken.file.endswith(f"-{self._run.crawler}.warc.gz")]
            if found:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._note_dates, found)
            self._read_until = until

    def _note_dates(self, found: Sequence[CaptureRow]) -> None:
        """Note the dates in the sitemaps *found*; without one, pages are requested."""
        with closing(ReaderProcess(near=0)) as read:
            for taken in found:
                claim = Claim(0, taken.url, 0, Hop.MANIFEST, Hop.MANIFEST.value, 0, 0, 0)
                if not taken.revisit:
                    links = self._memory.links_at(taken, claim, read)
                else:
                    stored = self._memory.version(taken.url, conditional=False)
                    links = stored.links(claim, read) if stored is not None else Links()
                note_dates(links, self._dates, taken.timestamp / 1e6)

    def doubted(self, claim: Claim, exchange: Exchange) -> Exchange:
        """Mark *exchange*, a 304 for another version than ours; its URL is fetched again without conditions."""
        self._doubted.add(claim.url)
        return replace(exchange, notes=(*exchange.notes, OTHER_VERSION))


def _is_always_requested(claim: Claim) -> bool:
    """Return True for seeds and their redirects, sitemaps, robots.txt, and what was queued again or is no plain GET."""
    special = claim.again or claim.tries or claim.priority < 0 or claim.language or claim.ask is not None
    return bool(special) or claim.hop is Hop.MANIFEST or not claim.path.strip(Hop.REDIRECT) or is_robots(claim)


AT_ONCE = 1000  # URLs judged and queued in one transaction

_HOPS = frozenset(Hop)


class UndiscoveredUrls:
    """Queues, portion by portion, the URLs that only *memory* knows."""

    def __init__(self, memory: EarlierCrawls, frontier: Frontier, rules: CurrentRules, thread: Executor) -> None:
        self._left: Iterator[list[EarlierUrl]] = memory.not_rediscovered(AT_ONCE)
        self._frontier = frontier
        self._rules = rules
        self._thread = thread

    async def hand_out(self, now: float) -> bool:
        """Queue the next URLs that this crawl has not seen; return False if none are left."""
        loop = asyncio.get_running_loop()
        while portion := await loop.run_in_executor(self._thread, next, self._left, None):
            unknown = await self._frontier.unknown([each.url for each in portion])
            wanted = [each for each in portion if each.url in unknown and not is_guess(each.path)]
            recalled = await loop.run_in_executor(self._thread, self._judged, wanted, now)
            if recalled and await self._frontier.enqueue_earlier(recalled):
                return True
        return False

    def _judged(self, wanted: Sequence[EarlierUrl], now: float) -> list[EarlierFind]:
        taken = []
        for each in wanted:
            link, parent = _as_found(each)
            verdict = judged_alone(self._rules.visit_rules, link, parent, now)
            if not isinstance(verdict, Refusal):
                taken.append(EarlierFind(verdict, each.via, each.seed))
        return taken


def _as_found(each: EarlierUrl) -> tuple[Link, Claim]:
    """Return the link that led to a URL then, and the page it was on; a seed counts as a link from itself."""
    hop = Hop(each.path[-1]) if each.path else Hop.LINK
    before = each.path[:-1]
    way = Hop(before[-1]) if before[-1:] in _HOPS else Hop.LINK
    parent = Claim(
        id=0,
        url=each.via or each.seed or each.url,
        host=0,
        hop=way,
        path=before,
        depth=max(0, each.depth - (hop is Hop.LINK)),
        off_scope_hops=max(0, each.off_scope_hops - {Hop.REQUISITE: 1, Hop.LINK: LINK_OUTSIDE}.get(hop, 0)),
        tries=0,
        seed=each.seed,
    )
    return Link(each.url, hop), parent
