"""The interface between the crawl and the frontier.

The frontier holds the URL queue, the seen-set and the outcome of each URL. Settlements are committed in batches, one
transaction each. When a method returns, its changes are durable.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

from archiver.frontier.orders.table import NewOrder, Order
from archiver.model import Capture, Claim, Cookie, FileState, NewUrl, PatternTally, Resource, Robots, Settlement
from archiver.policy.limits import UNTAUGHT, ThrottleState
from archiver.policy.quotas import NO_QUOTAS, HeldBack, Quotas
from archiver.policy.retry import NO_BACKOFF, HostBackoff

InheritedThrottle = tuple[str, float, float, float, float, str]  # key, not before, rate, its limit, concurrency, reason


class EarlierFind(NamedTuple):
    """A URL of an earlier crawl that is in scope now, and the URLs that led to it then."""

    new: NewUrl
    via: str
    seed: str


class CrawlLimits(NamedTuple):
    """The limits on the whole crawl; 0 is no limit."""

    urls: int = 0
    step: float = 0.0  # seconds between two starts
    bandwidth: int = 0  # bytes a second


class Wish(NamedTuple):
    """What a crawler has spent since it asked last, and what it would like."""

    in_hand: int  # URLs that it has handed out, and that are not settled
    urls: int  # further URLs
    starts: int
    received: int  # bytes


class Grant(NamedTuple):
    """What a crawler may spend until it asks again."""

    urls: int
    used_up: bool  # no crawler will get a URL any more
    starts: tuple[float, ...]  # seconds from now
    paid_in: float  # seconds until the bandwidth has had time for everything that was received


LEASE = 60.0  # seconds from a renewal to the end of all leases of a crawler
NO_THROTTLES: Mapping[int, ThrottleState] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host with waiting URLs. `robots` is None until robots.txt was fetched."""

    id: int
    key: str  # scheme and authority
    not_before: float  # seconds since the epoch: no request before this time
    robots: Robots | None
    throttle: ThrottleState = UNTAUGHT
    backoff: HostBackoff = NO_BACKOFF
    asked: float = 0.0  # when `robots` was fetched; infinity while it is queued again
    answered: bool = False  # at least once, in any run
    blocked_since: float = 0.0  # seconds since the epoch: first of a run of refusals; 0: not blocked


@dataclass(frozen=True, slots=True)
class UrlWindow:
    """The next URLs of one host, by priority and age."""

    claims: tuple[Claim, ...]
    later: float  # when the earliest of the others is due; infinity if there is none
    waiting: int  # URLs of this host that wait
    visited: int = 0  # URLs of this host that count for its quota …
    received: int = 0  # … and bytes, in all runs


@dataclass(frozen=True, slots=True)
class HostWindow:
    """Return the next *most* URLs of *host*; with *prerequisites* only those that lead to a robots.txt."""

    host: int
    most: int
    prerequisites: bool


class Written(NamedTuple):
    """What other processes have written."""

    rows: bool  # anything
    orders: bool  # URLs that wait again, seeds, or the target of a seed's redirect
    cookies: bool  # of whole domains


@dataclass(frozen=True, slots=True)
class Settled:
    """The changes that a committed batch made."""

    hosts: frozenset[int]  # that have new URLs
    added: int  # URLs queued: new ones, and each robots.txt queued since the last batch
    resolved: frozenset[int]  # hosts whose robots.txt was fetched, or redirects
    again: int = 0  # of those added, archived URLs that a redirect led back to with other cookies
    lost: frozenset[int] = frozenset()  # URLs whose states have not changed, because their hosts' leases were lost


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of URLs in each state, and the bytes received. A robots.txt counts only while it waits."""

    waiting: int
    archived: int
    failed: int
    excluded: int
    visited: int  # URLs visited at least once, robots.txt aside
    received: int  # bytes of all responses
    good_seeds: int  # that gave a 2xx or 3xx answer, which is stored
    held: int = 0  # as suspected traps


@dataclass(frozen=True, slots=True)
class FileRow:
    """A WARC file as the database knows it."""

    name: str
    committed: int
    closed: bool
    indexed: bool
    digest: str  # `sha256:hex` of a closed file; "" where it is not known
    modified: int  # nanoseconds since the epoch, when the digest was true


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of settled URLs: those that match every field that is not empty. Of status and failure one is enough."""

    urls: tuple[str, ...] = ()  # canonical
    hosts: tuple[str, ...] = ()  # example.org, example.org:8443 or https://example.org
    statuses: tuple[tuple[int, int], ...] = ()  # of the last answer, first and last of a range
    failures: tuple[str, ...] = ()  # words of errors.Failure
    blocked: bool = False  # only those whose last answer was a challenge or block page
    truncated: bool = False  # only those whose last answer was incomplete or did not decode


class SharedSettings(NamedTuple):
    """The settings that all machines of a crawl have in common."""

    revision: int  # raised by each change; 0: there are none
    text: str  # as in crawl.toml, without secrets
    secrets: str = ""  # names of headers that each machine must have itself


class Frontier(Protocol):
    """The URL queue and seen-set of one crawl."""

    async def add_seeds(self, seeds: Sequence[str], due: float = 0.0) -> int:
        """Queue *seeds* (canonical URLs) and return how many were new.

        With *due*, new seeds wait until then, and settled URLs that become seeds are queued again.
        """

    async def seeds(self) -> list[str]:
        """Return all seeds in the order given."""

    async def queue_again(self, wanted: Selection) -> int:
        """Queue the settled URLs that *wanted* selects again, with no tries, and return how many.

        Uses short transactions, because a crawl may be running. If robots.txt was the reason, it is fetched again.
        """

    async def written_by_others(self) -> Written:
        """Return what other processes have written since the last call. The first call returns nothing."""

    async def orders_to_take_up(self, after: int) -> list[Order]:
        """Return the orders behind the row *after*, and those before it that a crawler has not taken up."""

    async def take_up(self, answers: Mapping[int, str], now: float) -> None:
        """Note that we have taken up the orders with these *answers*."""

    async def give_order(self, new: NewOrder, answer: str | None) -> int:
        """Write the order *new* and return its row. *answer*: what came of it, if no crawler has to take it up."""

    async def latest_pause(self) -> Order | None:
        """Return the latest of the orders that pause the crawl and let it go on; None if there is none."""

    async def is_paused(self) -> bool:
        """Return True if a person has paused the crawl."""

    async def cookies(self, domains: Sequence[str]) -> list[Cookie]:
        """Return the cookies of *domains* (host names)."""

    async def bring_cookies(self, loaded: Sequence[Cookie], earlier: Sequence[Cookie]) -> None:
        """Write the cookies that the user *loaded*, and before the first capture those of the *earlier* crawl too."""

    async def host_named(self, key: str) -> HostRow:
        """Return the host *key* (scheme and authority), which gets a row if it has none."""

    async def pause_until_login(self, hosts_to_pause: Sequence[int], page: str = "", reason: str = "") -> None:
        """Pause these hosts for this run, because a person must log in first. *page*: where no login works any more."""

    async def note_low_disk(self, reason: str) -> None:
        """Write down that the disk is low, if anyone wants to know."""

    async def robots_to_ask(self, leased: Collection[int]) -> list[int]:
        """Return those of the *leased* hosts whose robots.txt is not known and not queued."""

    async def due_hosts(
        self, now: float, most: int, leased: Collection[int], quotas: Quotas = NO_QUOTAS
    ) -> list[HostRow]:
        """Return at most *most* hosts with a due URL, by the time until which they waited, so that we may lease them.

        Without *leased*, which are our own, and without those of other crawlers. For a host that has used up its
        quota, only robots.txt and its redirects count.
        """

    async def waits(self, quotas: Quotas = NO_QUOTAS) -> bool:
        """Return True if any URL waits that may be asked for, now or later, by us or another crawler."""

    async def join(self, name: str = "") -> None:
        """Become a crawler, with no lease. All leases of a crawler end `LEASE` seconds after it joined or renewed.

        *name* is the same whenever this crawler joins again, and no other crawler has it at the same time.
        """

    async def act_for(self, name: str) -> None:
        """Settle as the latest crawler of this *name*, which has died, would have done. Then `leave` for it."""

    async def share(self, most: int, crawlers: int) -> int:
        """Return how many hosts each crawler may lease, so that all get the same number; at most *most*.

        *crawlers*: will join at least.
        """

    async def draw(self, limits: CrawlLimits, wish: Wish) -> Grant:
        """Take what *wish* says off what all crawlers may spend together, as far as there is so much."""

    async def waiting(self, hosts: Collection[int]) -> dict[int, int]:
        """Return the number of URLs that wait on each of *hosts*."""

    async def lease(self, wanted: Mapping[int, str]) -> dict[int, float]:
        """Lease hosts with their politeness groups and return those that we have now.

        If another crawler has had the group, say how many seconds ago it may have started a request; else infinity.
        A power cut may undo this and the other changes of leases, since it ends all crawlers.
        """

    async def renew(self) -> bool:
        """Renew all leases; return False if another crawler has taken one over, so that they are lost."""

    async def give_back(self, last_starts: Mapping[str, float]) -> None:
        """Give groups back, with the number of seconds since their latest requests started."""

    async def leave(self, last_starts: Mapping[str, float]) -> None:
        """Give all groups back, *last_starts* as in `give_back`, and crawl no more."""

    async def held_back(self, quotas: Quotas) -> HeldBack:
        """Return what keeps hosts from being asked, in words."""

    async def host(self, host: int) -> HostRow:
        """Return one host."""

    async def hosts(self, hosts: Collection[int]) -> list[HostRow]:
        """Return *hosts*, in this order."""

    async def has_answered(self, host: int) -> bool:
        """Return True if *host* has answered in this run or an earlier one."""

    async def correct_waits(self, now: float, longest: float) -> float:
        """Correct all waits if the clock was set back. It says *now*; no wait may be longer than *longest*.

        Returns the number of seconds by which the latest answer lies in the future.
        """

    async def ask_robots_of(self, wanted: Collection[int]) -> list[HostRow]:
        """Queue robots.txt of the *wanted* hosts before everything else, even if fetched before; return the hosts.

        Known rules apply until the new answer is stored. If robots.txt was unreachable, nothing may be fetched until
        then. All in one transaction.
        """

    async def window(self, host: int, now: float, most: int, *, prerequisites: bool) -> UrlWindow:
        """Return the next *most* URLs of *host*; with *prerequisites* only those that lead to a robots.txt."""

    async def windows(self, wanted: Sequence[HostWindow], now: float) -> list[UrlWindow]:
        """Return the next URLs of many hosts, in the order of *wanted*."""

    async def next_due(self, now: float) -> float:
        """Return the time when the next URL becomes due after *now*; infinity if there is none."""

    async def settle(
        self,
        settlements: Sequence[Settlement],
        files: Sequence[FileState],
        throttles: Mapping[int, ThrottleState] = NO_THROTTLES,
        resources: Sequence[Resource] = (),
    ) -> Settled:
        """Commit a batch of visits, the sizes of the WARC files, and the *throttles* of hosts by row.

        *resources* are records in these files that belong to no visit. If the lease of a host was lost, only captures
        are entered for its settlements; `Settled.lost` names their URLs.
        """

    async def save_backoff(self, host: int, backoff: HostBackoff) -> None:
        """Save the backoff of *host*; `NO_BACKOFF` clears it.

        This and the next methods, which decide about a host, do nothing if its lease was lost.
        """

    async def give_up(self, host: int, failure: str, note: str, now: float) -> int:
        """Mark the waiting URLs of *host* as failed, except those that lead to a robots.txt; return how many."""

    async def ask_again(self, host: int, page: tuple[int, int] | None) -> tuple[int, int] | None:
        """Queue an archived *page* of *host* again, or another; return its row and status, or None."""

    async def pause(self, host: int, since: float, asked: tuple[int, int] | None) -> None:
        """Pause *host* for this run, which blocks us *since* then; 0: no longer. *asked*: from `ask_again`."""

    async def record_visits(self, visits: Sequence[Claim]) -> list[Claim]:
        """Add rows for those URLs of *visits* that have none, and return the claims with their rows."""

    async def unknown(self, addresses: Collection[str]) -> set[str]:
        """Return those of *addresses* that have no row."""

    async def enqueue_earlier(self, recalled: Sequence[EarlierFind]) -> int:
        """Queue URLs of an earlier crawl and return how many were new."""

    async def inherit_throttles(self, inherited: Sequence[InheritedThrottle]) -> None:
        """Use the throttles of an earlier crawl for hosts that have no row yet."""

    async def begin_run(self, now: float) -> None:
        """Record that a run starts. Unpause the hosts that the previous run paused, and forget all its leases."""

    async def enter_run(self, directory: str, files: Collection[str], now: float) -> float:
        """Join the run of other machines, or begin one that they can join; return when it began.

        *directory*: of this machine, with its host; *files*: the WARC files in it.
        """

    async def settings(self) -> SharedSettings:
        """Return the settings that all machines have in common."""

    async def put_settings(self, text: str, expected: int, secrets: str | None = None) -> int:
        """Replace the settings of revision *expected* by *text*; return their new revision."""

    async def others_run(self) -> bool:
        """Return True if another machine crawls."""

    async def note_alive(self) -> None:
        """Note that this machine is alive, if there are several."""

    async def crawlers(self) -> list[str]:
        """Return the names of the crawlers of this machine that have not left, if there are several machines."""

    async def end_run(self, code: int, reason: str, now: float) -> bool:
        """Record how the run ended, and why; return True if it goes on, on other machines."""

    async def counts(self) -> Counts:
        """Return the counts of the whole crawl."""

    async def pattern_tallies(self, most: int) -> list[PatternTally]:
        """Return the tallies of at most *most* URL patterns, those that may be forgotten first at the beginning."""

    async def tallies_of(self, host: str) -> list[PatternTally]:
        """Return the tallies of at most a thousand URL patterns of *host* (scheme and authority)."""

    async def latest_links(self, sites: Collection[str]) -> list[tuple[str, str]]:
        """Return the latest links that were queued within *sites* (scheme and authority), each as (page, target)."""

    async def seed_redirects(self) -> list[tuple[str, str]]:
        """Return (target, seed) for the redirects of seeds."""

    async def files(self) -> list[FileRow]:
        """Return all WARC files of this machine."""

    async def captures(self, warc: str, after: int, most: int) -> list[Capture]:
        """Return at most *most* captures in the file *warc* behind offset *after*, in order."""

    async def resources(self, warc: str, after: int, most: int) -> list[Resource]:
        """Return at most *most* records of no visit in the file *warc* behind offset *after*, in order."""

    async def latest_resource(self, beginning: str) -> Resource | None:
        """Return the newest record of no visit whose URI starts with *beginning*."""

    async def mark_indexed(self) -> None:
        """Record that index.cdxj has the lines of all closed files."""

    async def forget_index(self) -> None:
        """Record that index.cdxj is missing."""

    async def views_left(self) -> int:
        """Return the number of pages that a browser is to show."""

    async def close(self) -> None:
        """Close the database. It is a single file then."""
