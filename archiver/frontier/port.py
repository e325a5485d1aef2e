"""What the crawl asks of a frontier: a handful of verbs, the same for every database.

The frontier is the one place where the seen-set, the waiting URLs and what became of each are kept. Settlements
are committed in batches, each batch in one transaction; what a verb has returned from is durable.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

from archiver.model import Capture, Claim, FileState, NewUrl, PatternTally, Resource, Robots, Settlement
from archiver.policy.host_backoff import AWAKE, HostBackoff
from archiver.policy.limits import FREE, Allowance
from archiver.policy.throttle import UNTAUGHT, ThrottleState

InheritedThrottle = tuple[
    str, float, float, float, float, str
]  # key of a host, parked until, rate, its limit, width, and why


class EarlierFind(NamedTuple):
    """A URL of an earlier crawl that scope takes now, and what led to it then."""

    new: NewUrl
    via: str
    seed: str


NOTHING_NEW: Mapping[int, ThrottleState] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host that has URLs waiting. `robots` is None as long as no answer is in; then it says what came."""

    id: int
    key: str  # scheme and authority
    parked: float  # seconds since the epoch; not one request before
    robots: Robots | None
    lesson: ThrottleState = UNTAUGHT
    slumber: HostBackoff = AWAKE
    asked: float = 0.0  # when `robots` was; infinity while it is asked for again
    answered: bool = False  # ever, whatever it was asked for
    refuses: float = 0.0  # seconds since the epoch: since when it refuses us; 0: it does not


@dataclass(frozen=True, slots=True)
class UrlWindow:
    """The next URLs of one host, by priority and age."""

    claims: tuple[Claim, ...]
    later: float  # when the earliest of the others is due; infinity where there is none
    waiting: int  # all that wait on this host
    spent: int = 0  # URLs of this host that count for its allowance …
    received: int = 0  # … and bytes, in all runs


@dataclass(frozen=True, slots=True)
class HostWindow:
    """The next *most* URLs of *host*; only those that lead to a robots.txt with *prerequisites*."""

    host: int
    most: int
    prerequisites: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """What a committed batch changed."""

    hosts: frozenset[int]  # that have new URLs
    added: int  # URLs that wait and did not before: new ones, and each robots.txt asked for since the last batch
    resolved: frozenset[int]  # hosts whose robots.txt is answered now, or has moved


@dataclass(frozen=True, slots=True)
class Counts:
    """How many URLs are in each state, and what was received so far. A robots.txt counts only while it waits."""

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
    """Which settled URLs are meant: all that fit each of these that is not empty; a status or a failure is enough."""

    urls: tuple[str, ...] = ()  # canonical
    hosts: tuple[str, ...] = ()  # example.org, example.org:8443 or https://example.org
    statuses: tuple[tuple[int, int], ...] = ()  # of the last answer, first and last of a range
    failures: tuple[str, ...] = ()  # words of errors.Failure
    blocked: bool = False  # only those whose last answer was a challenge or block page


class Frontier(Protocol):
    """The verbs."""

    async def add_seeds(self, seeds: Sequence[str], due: float = 0.0) -> int:
        """Make *seeds* (canonical URLs) known and waiting; how many were new.

        With *due* none of the new ones may be fetched before, and URLs that were settled as no seeds wait again.
        """

    async def seeds(self) -> list[str]:
        """Every seed, in the order given."""

    async def again(self, wanted: Selection) -> int:
        """Make the URLs that *wanted* means due again, as if never tried; how many they are.

        In short transactions, for a crawl may be running. Where robots.txt was the reason, that is asked for again.
        """

    async def written_by_others(self) -> bool:
        """Whether another process has written since this was asked last; the first time it cannot be known."""

    async def robots_to_ask(self, hosts: Collection[int]) -> list[int]:
        """Those of *hosts* whose robots.txt nobody has asked for, or that is to be asked for again from the start."""

    async def due_hosts(
        self, now: float, most: int, leased: Collection[int], allowance: Allowance = FREE
    ) -> list[HostRow]:
        """Hosts with a URL that is due, longest parked first, without those in *leased*.

        Of hosts that have used up their *allowance*, only what leads to a robots.txt counts.
        """

    async def held_back(self, allowance: Allowance) -> str:
        """Which limit of the *allowance* holds how many URLs of how many hosts back, in words; "" where none does."""

    async def host(self, host: int) -> HostRow:
        """One host as it stands now."""

    async def hosts(self, hosts: Collection[int]) -> list[HostRow]:
        """Each of *hosts* as it stands now, in this order."""

    async def has_answered(self, host: int) -> bool:
        """Whether *host* has ever answered, in this run or an earlier one."""

    async def set_back(self, now: float, longest: float) -> float:
        """Keep every wait as long as it was meant, where the clock says *now* and has been set back since it began.

        No wait is longer than *longest*. Returns by how many seconds the latest answer lies in the future.
        """

    async def ask_robots_of(self, hosts: Collection[int]) -> list[HostRow]:
        """Put the robots.txt of each of *hosts* into its queue, before everything else; if it was answered, once more.

        Rules that are known hold until the new answer is in; where it could not be had nothing may be fetched
        meanwhile. All in one transaction; their rows, in this order.
        """

    async def window(self, host: int, now: float, most: int, *, prerequisites: bool) -> UrlWindow:
        """The next *most* URLs of *host*; only those that lead to a robots.txt with *prerequisites*."""

    async def windows(self, wanted: Sequence[HostWindow], now: float) -> list[UrlWindow]:
        """The next URLs of many hosts, in the order of *wanted*."""

    async def next_due(self, now: float) -> float:
        """When the next URL is due that is not due *now*; infinity where none waits for its time."""

    async def settle(
        self,
        settlements: Sequence[Settlement],
        files: Sequence[FileState],
        lessons: Mapping[int, ThrottleState] = NOTHING_NEW,
        resources: Sequence[Resource] = (),
    ) -> Settled:
        """Commit what a batch of visits means, how far the WARC files are written, and what hosts have taught us.

        *resources* are records in these files that belong to no visit.
        """

    async def doze(self, host: int, slumber: HostBackoff) -> None:
        """Keep how *host* fails, or that it does not any more."""

    async def give_up(self, host: int, failure: str, note: str, now: float) -> int:
        """All that waits on *host* has failed, but what leads to a robots.txt; how many URLs that were."""

    async def ask_again(self, host: int, page: tuple[int, int] | None) -> tuple[int, int] | None:
        """Let a page wait once more that *host* gave (its row and status), *page* or another; None: it gave nothing."""

    async def pause(self, host: int, since: float, asked: tuple[int, int] | None) -> None:
        """*host* refuses us *since* then: nothing is asked of it in this run; 0: it does not refuse us any more.

        *asked* is what `ask_again` gave.
        """

    async def learn(self, visits: Sequence[Claim]) -> list[Claim]:
        """Make the URLs of *visits* known, those that are not, as the claims say; the claims as they stand then."""

    async def unknown(self, addresses: Collection[str]) -> set[str]:
        """Those of *addresses* that the crawl has never heard of."""

    async def recall(self, recalled: Sequence[EarlierFind]) -> int:
        """URLs of an earlier crawl wait from now on; how many were not known."""

    async def inherit(self, manners: Sequence[InheritedThrottle]) -> None:
        """Hosts of which nothing is known are asked as gently as an earlier crawl has learned."""

    async def begin_run(self, now: float) -> None:
        """Note that a run begins; hosts that were paused in the one before may be asked again."""

    async def end_run(self, code: int, reason: str, now: float) -> None:
        """Note how the run ended, and why."""

    async def counts(self) -> Counts:
        """The account of the whole crawl."""

    async def tallies(self, most: int) -> list[PatternTally]:
        """What patterns of URLs have brought, at most *most*, those first that may be forgotten first."""

    async def moved(self) -> list[tuple[str, str]]:
        """Where redirects of seeds led, each with the seed."""

    async def files(self) -> list[FileRow]:
        """Every WARC file."""

    async def captures(self, warc: str, after: int, most: int) -> list[Capture]:
        """Captures in the file *warc* that begin behind offset *after*, in order, at most *most*."""

    async def resources(self, warc: str, after: int, most: int) -> list[Resource]:
        """Records that belong to no visit in the file *warc* behind offset *after*, in order, at most *most*."""

    async def latest_resource(self, beginning: str) -> Resource | None:
        """The one that was stored last of those whose URI begins so."""

    async def mark_indexed(self) -> None:
        """Every closed file's lines stand in index.cdxj now."""

    async def forget_index(self) -> None:
        """index.cdxj is gone."""

    async def close(self) -> None:
        """Everything is committed; the database is one file again."""
