"""The frontier in one SQLite file."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from archiver.frontier import (
    captures,
    cookies,
    hosts,
    leases,
    links,
    machines,
    outcomes,
    retry,
    settle,
    url_lookup,
    url_queue,
)
from archiver.frontier.connection import Connection
from archiver.frontier.connections import Act, Database, ViewRows, execute
from archiver.frontier.links import Found, RecentLinks, Revision
from archiver.frontier.orders.stored import StoredOrders
from archiver.frontier.port import (
    NO_THROTTLES,
    Counts,
    CrawlLimits,
    EarlierFind,
    FileRow,
    Grant,
    HostRow,
    HostWindow,
    InheritedThrottle,
    Selection,
    Settled,
    UrlWindow,
    Wish,
    Written,
)
from archiver.frontier.retry import HeldPattern, StoredElsewhere
from archiver.frontier.settle import PUT_OFF, Portion
from archiver.model import Capture, Claim, Cookie, Event, FileState, PatternTally, Refusal, Resource, Settlement
from archiver.policy.limits import ThrottleState
from archiver.policy.quotas import NO_QUOTAS, BlockedByPerson, HeldBack, Quotas
from archiver.policy.retry import HostBackoff
from archiver.storage import bare

P = ParamSpec("P")
T = TypeVar("T")


class SqliteFrontier(ViewRows, StoredOrders):
    """The frontier of one crawl. Use `SqliteFrontier.open` to open it."""

    def __init__(self, opened: Database) -> None:
        super().__init__(opened)
        self._version = -1  # of the data, at the last check for writes of other processes
        self._recent = RecentLinks()  # only the writer's thread uses it, and the revisions
        self._links, self._orders, self._cookies = Revision("links"), Revision("orders"), Revision("cookies")
        self._robots_queued = 0  # since the last batch or count

    async def add_seeds(self, seeds: Sequence[str], due: float = 0.0) -> int:
        """Queue *seeds* and return how many were new. *due*: not before this time, and settled URLs again too."""
        return await self._write(self._rewrite, retry.add_seeds, seeds, due)

    async def seeds(self) -> list[str]:
        """Return all seeds in the order given."""
        return [str(row[0]) for row in await self._rows(retry.SEEDS)]

    async def queue_again(self, wanted: Selection) -> int:
        """Queue the settled URLs that *wanted* selects again, with no tries, and return how many."""
        keys = await self._rows("SELECT id, key FROM hosts") if wanted.hosts else []
        hosts = retry.named_hosts(((int(row[0]), str(row[1])) for row in keys), wanted.hosts)
        after = count = 0
        while rows := [int(row[0]) for row in await self._rows(*retry.selection_query(wanted, hosts, after))]:
            after = rows[-1]
            count += await self._write(self._rewrite, retry.queue_again, rows)
        return count

    async def release(self, pattern: HeldPattern, allowed: int) -> int:
        """Queue the URLs of a held pattern and return how many. *allowed* more of them may show nothing new."""
        count = 0
        while released := await self._write(self._rewrite, retry.release_held, pattern, 0 if count else allowed):
            count += released
        return count

    async def forget(self, machine: str, files: Sequence[str]) -> machines.Losses:
        """Write *machine* off with its lost *files*; return what was in them, which is due again."""
        return await self._write(self._rewrite, machines.forget, machine, files)

    async def queue_again_without_payload(self, stored: StoredElsewhere) -> int:
        """Queue URLs again whose payload is lost, and not *stored* elsewhere; return how many."""
        count = after = 0
        while found := await self._rows(retry.WITHOUT_PAYLOAD, (after, retry.AT_ONCE)):
            after = int(found[-1][0])
            count += await self._write(self._rewrite, retry.queue_again, retry.missing_payloads(found, stored))
        return count

    async def written_by_others(self) -> Written:
        """Return what others have written since the last call. The first call returns nothing."""
        return await self._on_writer(self._written)

    def _written(self, db: Connection) -> Written:
        before, self._version = self._version, db.writes_of_others()
        if before == self._version:
            return Written(rows=False, orders=False, cookies=False)
        orders, cookies = (each.raised_by_others(db) for each in (self._orders, self._cookies))
        return Written(before != -1, orders, cookies)

    async def cookies(self, domains: Sequence[str]) -> list[Cookie]:
        """Return the cookies of *domains*."""
        return await self._read(cookies.of_domains, domains)

    async def bring_cookies(self, loaded: Sequence[Cookie], earlier: Sequence[Cookie]) -> None:
        """Write the cookies that the user *loaded*, and before the first capture those of the *earlier* crawl too."""
        await self._write(cookies.bring, loaded, earlier)

    async def clear_cookies(self, domain: str) -> int:
        """Delete the cookies of *domain* and its subdomains, or with "" all; return how many."""
        return await self._write(cookies.clear, domain)

    async def host_named(self, key: str) -> HostRow:
        """Return the host *key* (scheme and authority), which gets a row if it has none."""
        return await self.host((await self._write(url_queue.hosts_of, (key,)))[key])

    async def robots_to_ask(self, leased: Collection[int]) -> list[int]:
        """Return those of the *leased* hosts whose robots.txt is not known and not queued."""
        return await self._read(hosts.robots_to_ask, leased)

    async def due_hosts(
        self, now: float, most: int, leased: Collection[int], quotas: Quotas = NO_QUOTAS
    ) -> list[HostRow]:
        """Return at most *most* hosts with a due URL that we may lease, by the time until which they waited."""
        return await self._read(url_queue.due_hosts, now, most, leased, quotas, self._crawler)

    async def waits(self, quotas: Quotas = NO_QUOTAS) -> bool:
        """Return True if any URL waits that may be asked for, now or later, by us or another crawler."""
        return bool(await self._read(url_queue.due_hosts, leases.NEVER, 1, (), quotas, 0))

    async def join(self, name: str = "") -> None:
        """Become a crawler of this *name*, with no lease."""
        self._crawler = await self._write_unsynced(leases.join, name)

    async def act_for(self, name: str) -> None:
        """Settle as the latest crawler of this *name*, which has died, would have done."""
        self._crawler = await self._read(leases.latest, name)

    async def share(self, most: int, crawlers: int) -> int:
        """Return how many hosts each of at least so many *crawlers* may lease; at most *most*."""
        return await self._read(leases.share, most, crawlers)

    async def draw(self, limits: CrawlLimits, wish: Wish) -> Grant:
        """Take what *wish* says off what all crawlers may spend together, as far as there is so much."""
        return await self._write_unsynced(leases.draw, self._crawler, limits, wish)

    async def waiting(self, hosts: Collection[int]) -> dict[int, int]:
        """Return the number of URLs that wait on each of *hosts*."""
        return await self._read(url_queue.waiting, hosts)

    async def lease(self, wanted: Mapping[int, str]) -> dict[int, float]:
        """Lease hosts with their groups; return ours, and how many seconds ago another crawler may have asked them."""
        return await self._write_unsynced(leases.lease, self._crawler, wanted)

    async def renew(self) -> bool:
        """Renew all leases; return False if another crawler has taken one over, so that they are lost."""
        return await self._write_unsynced(leases.renew, self._crawler)

    async def give_back(self, last_starts: Mapping[str, float]) -> None:
        """Give groups back, with the number of seconds since their latest requests started."""
        await self._write_unsynced(leases.give_back, self._crawler, last_starts)

    async def leave(self, last_starts: Mapping[str, float]) -> None:
        """Give all groups back and crawl no more."""
        await self._write_unsynced(leases.leave, self._crawler, last_starts)
        self._crawler = 0

    async def held_back(self, quotas: Quotas) -> HeldBack:
        """Return what keeps hosts from being asked, in words."""
        return await self._read(url_queue.held_back, quotas)

    async def blocked_hosts(self, quotas: Quotas) -> list[BlockedByPerson]:
        """Return what waits because a person has blocked it, by pattern."""
        return await self._read(url_queue.blocked_hosts, quotas)

    async def host(self, host: int) -> HostRow:
        """Return one host."""
        return (await self.hosts((host,)))[0]

    async def hosts(self, hosts: Collection[int]) -> list[HostRow]:
        """Return *hosts*, in this order."""
        return await self._read(url_queue.host_rows, hosts)

    async def has_answered(self, host: int) -> bool:
        """Return True if *host* has answered in this run or an earlier one."""
        return bool(await self._rows("SELECT 1 FROM hosts WHERE id = ? AND received > 0", (host,)))

    async def correct_waits(self, now: float, longest: float) -> float:
        """Correct all waits if the clock, which says *now*, was set back; return by how many seconds."""
        return await self._write(hosts.correct_waits, now, longest)

    async def ask_robots_of(self, wanted: Collection[int]) -> list[HostRow]:
        """Queue robots.txt of the *wanted* hosts before everything else, even if fetched before; return the hosts."""
        rows, new = await self._write(hosts.queue_robots, wanted)
        self._robots_queued += new
        return rows

    async def window(self, host: int, now: float, most: int, *, prerequisites: bool) -> UrlWindow:
        """Return the next *most* URLs of *host*; with *prerequisites* only those that lead to a robots.txt."""
        return (await self.windows((HostWindow(host, most, prerequisites=prerequisites),), now))[0]

    async def windows(self, wanted: Sequence[HostWindow], now: float) -> list[UrlWindow]:
        """Return the next URLs of many hosts, in the order of *wanted*."""
        return await self._read(url_queue.windows, wanted, now)

    async def next_due(self, now: float) -> float:
        """Return the time when the next URL becomes due after *now*; infinity if there is none."""
        return await self._read(url_queue.next_due, now, self._crawler)

    async def settle(
        self,
        settlements: Sequence[Settlement],
        files: Sequence[FileState],
        throttles: Mapping[int, ThrottleState] = NO_THROTTLES,
        resources: Sequence[Resource] = (),
    ) -> Settled:
        """Commit a batch of visits, the sizes of the WARC files, and the *throttles* of hosts.

        Most links of a very long list are added first, in transactions of their own, so that others can write in
        between. After a crash there the visit is not settled; recovery settles it and adds the other links.
        """
        added, hosts = 0, frozenset[int]()
        portions, settlements = settle.portions(settlements)
        for portion in portions:
            new = await self._on_writer(self._add, portion)
            added, hosts = added + new.total(), hosts | new.keys()
        settled = await self._on_writer(self._settle, settlements, files, throttles, resources)
        asked, self._robots_queued = self._robots_queued, 0
        return replace(settled, added=settled.added + added + asked, hosts=settled.hosts | hosts)

    def _add(self, db: Connection, portion: Portion) -> Counter[int]:
        """Add the links of *portion* and return the number of new URLs by host."""
        with db.transaction():
            if self._links.raised_by_others(db):
                self._recent.forget()
            added, idle = url_queue.add_links(db, self._recent.select_new(*portion))
        self._recent.remember(idle)
        return added

    def _settle(
        self,
        db: Connection,
        settlements: Sequence[Settlement],
        files: Sequence[FileState],
        throttles: Mapping[int, ThrottleState],
        resources: Sequence[Resource],
    ) -> Settled:
        with db.transaction():
            if self._links.raised_by_others(db):
                self._recent.forget()
            lost = leases.lost(db, self._crawler, {*throttles, *(each.claim.host for each in settlements)})
            others = [each for each in settlements if each.claim.host in lost]
            own = [each for each in settlements if each.claim.host not in lost]
            hosts.save_throttles(db, {host: state for host, state in throttles.items() if host not in lost})
            settled, idle = settle.settle(db, own, files, self._recent)
            settle.add_captures(db, others)
            if settled.again or any(each.event in PUT_OFF for each in own):
                self._links.raise_by_one(db)
            if any(not cookie.host_only for each in own for cookie in each.cookies):
                self._cookies.raise_by_one(db)
            if any(url_queue.moves_seed(each.found) for each in own):
                self._orders.raise_by_one(db)
            settle.add_resources(db, resources)
            self._note_settled(db, own, files)
        self._recent.remember(idle)
        return replace(settled, lost=frozenset(each.claim.id for each in others))

    def _rewrite(
        self, db: Connection, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs
    ) -> T:
        """Call *act*, which changes rows in ways that make recent links invalid, ours and those of other processes."""
        self._recent.forget()
        self._links.raise_by_one(db)
        self._orders.raise_by_one(db)
        return act(db, *values, **named)

    async def save_backoff(self, host: int, backoff: HostBackoff) -> None:
        """Save the backoff of *host*; `NO_BACKOFF` clears it."""
        await self._decide(host, partial(hosts.save_backoff, backoff=backoff))

    async def give_up(self, host: int, failure: str, note: str, now: float) -> int:
        """Mark the waiting URLs of *host* as failed, except those that lead to a robots.txt; return how many."""
        count, more = 0, True
        while more:
            given_up = await self._decide(host, self._giving_up(failure, note, now, count))
            count, more = count + given_up, given_up == hosts.AT_ONCE
        return count

    async def ask_again(self, host: int, page: tuple[int, int] | None) -> tuple[int, int] | None:
        """Queue an archived *page* of *host* again, or another; return its row and status, or None."""
        page = page or await self._read(hosts.find_good_page, host)
        return page if page is not None and await self._write(self._rewrite, hosts.ask_again, page[0]) else None

    async def pause(self, host: int, since: float, asked: tuple[int, int] | None) -> None:
        """Pause *host* for this run, because it blocks us *since* then; 0: it does not block us any more."""
        await self._decide(host, self._pausing(since, asked))

    async def _decide(self, host: int, act: Act) -> int:
        """Call *act* for *host*, unless its lease was lost; return its number."""
        return await self._write(leases.decide, self._crawler, host, act) or 0

    async def record_visits(self, visits: Sequence[Claim]) -> list[Claim]:
        """Add rows for those URLs of *visits* that have none, and return the claims with their rows."""
        await self._write(self._rewrite, settle.record_visits, visits)
        return await self._read(links.claims, [visit.url for visit in visits])

    async def began(self) -> float:
        """Return the time of the first capture in seconds since the epoch; 0 if there is none."""
        return float((await self._rows("SELECT coalesce(min(timestamp), 0) / 1e6 FROM captures"))[0][0])

    async def unknown(self, addresses: Collection[str]) -> set[str]:
        """Return those of *addresses* that have no row."""
        return await self._read(url_queue.unknown, addresses)

    async def claim_of(self, address: str) -> Claim | None:
        """Return the row of *address*; None if there is none."""
        return None if await self.unknown((address,)) else (await self._read(links.claims, [address]))[0]

    async def add_links(self, found: Sequence[Found]) -> int:
        """Queue links that were found after their documents were settled; return how many are new."""
        return await self._write(self._rewrite, url_queue.add_found, found)

    async def add_refused(self, claim: Claim, refused: Sequence[Refusal]) -> None:
        """Count links that a view of *claim* has found and the scope refuses, and keep a sample of them."""
        await self._write(settle.refuse, [Settlement(claim, Event.CAPTURE, refused=tuple(refused))])

    async def enqueue_earlier(self, recalled: Sequence[EarlierFind]) -> int:
        """Queue URLs of an earlier crawl and return how many were new."""
        return await self._write(self._rewrite, url_queue.enqueue_earlier, recalled)

    async def inherit_throttles(self, inherited: Sequence[InheritedThrottle]) -> None:
        """Use the throttles of an earlier crawl for hosts that have no row yet."""
        await self._write(hosts.inherit_throttles, inherited)

    async def counts(self) -> Counts:
        """Return the counts of the whole crawl."""
        self._robots_queued = 0
        return Counts(*(await self._rows(outcomes.COUNTS))[0])

    async def pattern_tallies(self, most: int) -> list[PatternTally]:
        """Return the tallies of at most *most* URL patterns, those that may be forgotten first at the beginning."""
        return settle.pattern_tallies(await self._rows(settle.NEWEST, (most,)))

    async def tallies_of(self, host: str) -> list[PatternTally]:
        """Return the tallies of at most a thousand URL patterns of *host* (scheme and authority)."""
        return settle.pattern_tallies(await self._rows(retry.OF_HOST, retry.of_host(host)))

    async def latest_links(self, sites: Collection[str]) -> list[tuple[str, str]]:
        """Return the latest links that were queued within *sites* (scheme and authority), each as (page, target)."""
        return await self._read(url_lookup.latest_links, sites)

    async def seed_redirects(self) -> list[tuple[str, str]]:
        """Return (target, seed) for the redirects of seeds."""
        return await self._read(url_lookup.moved)

    async def files(self) -> list[FileRow]:
        """Return all WARC files of this machine."""
        rows = await self._rows(
            "SELECT name, committed, closed, indexed, digest, modified FROM warcs WHERE machine = ? ORDER BY id",
            (self.machine,),
        )
        return [
            FileRow(bare(row[0], self._name), int(row[1]), bool(row[2]), bool(row[3]), row[4], int(row[5]))
            for row in rows
        ]

    async def sitemaps(self, after: int, most: int) -> tuple[int, list[captures.CaptureRow]]:
        """Return at most *most* captures of sitemaps behind the row *after*, and the last row that was looked at."""
        return await self._read(captures.sitemaps, after, self.machine, most)

    async def captures(self, warc: str, after: int, most: int) -> list[Capture]:
        """Return at most *most* captures in the file *warc* behind offset *after*, in order."""
        return [captures.capture(row) for row in await self._rows(captures.IN_FILE, (warc, after, most))]

    async def resources(self, warc: str, after: int, most: int) -> list[Resource]:
        """Return at most *most* records of no visit in the file *warc* behind offset *after*, in order."""
        return captures.resource_rows(await self._rows(captures.RECORDS_IN_FILE, (warc, after, most)))

    async def latest_resource(self, beginning: str) -> Resource | None:
        """Return the newest record of no visit whose URI starts with *beginning*."""
        return next(iter(captures.resource_rows(await self._rows(captures.LATEST, (beginning, beginning)))), None)

    async def mark_indexed(self) -> None:
        """Record that index.cdxj has the lines of all closed files."""
        await self._write(execute, "UPDATE warcs SET indexed = 1 WHERE closed = 1 AND machine = ?", (self.machine,))

    async def forget_index(self) -> None:
        """Record that index.cdxj is missing."""
        await self._write(execute, "UPDATE warcs SET indexed = 0 WHERE machine = ?", (self.machine,))
