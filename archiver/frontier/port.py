"""What the crawl asks of a frontier: a handful of verbs, the same for every database.

The frontier is the one place where the seen-set, the waiting URLs and what became of each are kept. Settlements
are committed in batches, each batch in one transaction; what a verb has returned from is durable.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from archiver.model import Capture, Claim, FileState, Robots, Settlement


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host that has URLs waiting. `robots` is None as long as no answer is in; then it says what came."""

    id: int
    key: str  # scheme and authority
    parked: float  # seconds since the epoch; not one request before
    robots: Robots | None


@dataclass(frozen=True, slots=True)
class Window:
    """The next URLs of one host, by priority and age."""

    claims: tuple[Claim, ...]
    later: float  # when the earliest of the others is due; infinity where there is none
    waiting: int  # all that wait on this host


@dataclass(frozen=True, slots=True)
class Settled:
    """What a committed batch changed."""

    hosts: frozenset[int]  # that have new URLs
    added: int  # URLs that are new
    resolved: frozenset[int]  # hosts whose robots.txt is answered now, or has moved


@dataclass(frozen=True, slots=True)
class Counts:
    """How many URLs are in each state, and what was received so far."""

    waiting: int
    archived: int
    failed: int
    excluded: int
    visited: int  # URLs visited at least once, robots.txt aside
    received: int  # bytes of all responses
    seeds_archived: int


@dataclass(frozen=True, slots=True)
class FileRow:
    """A WARC file as the database knows it."""

    name: str
    committed: int
    closed: bool
    indexed: bool
    digest: str  # `sha256:hex` of a closed file; "" where it is not known
    modified: int  # nanoseconds since the epoch, when the digest was true


class Frontier(Protocol):
    """The verbs."""

    async def add_seeds(self, seeds: Sequence[str]) -> int:
        """Make *seeds* (canonical URLs) known and waiting; how many were new."""

    async def due_hosts(self, now: float, most: int, leased: Collection[int]) -> list[HostRow]:
        """Hosts with a URL that is due, longest parked first, without those in *leased*."""

    async def host(self, host: int) -> HostRow:
        """One host as it stands now."""

    async def has_answered(self, host: int) -> bool:
        """Whether *host* has ever answered, in this run or an earlier one."""

    async def set_back(self, now: float, longest: float) -> float:
        """Keep every wait as long as it was meant, where the clock says *now* and has been set back since it began.

        No wait is longer than *longest*. Returns by how many seconds the latest answer lies in the future.
        """

    async def ask_robots(self, host: int) -> HostRow:
        """Put robots.txt of *host* into its queue, before everything else, unless it is there or answered."""

    async def window(self, host: int, now: float, most: int, *, prerequisites: bool) -> Window:
        """The next *most* URLs of *host*; only those that lead to a robots.txt with *prerequisites*."""

    async def next_due(self, now: float) -> float:
        """When the next URL is due that is not due *now*; infinity where none waits for its time."""

    async def settle(self, settlements: Sequence[Settlement], files: Sequence[FileState]) -> Settled:
        """Commit what a batch of visits means, and how far the WARC files are written."""

    async def learn(self, visits: Sequence[Claim]) -> list[Claim]:
        """Make the URLs of *visits* known, those that are not, as the claims say; the claims as they stand then."""

    async def counts(self) -> Counts:
        """The account of the whole crawl."""

    async def files(self) -> list[FileRow]:
        """Every WARC file."""

    async def captures(self, warc: str, after: int, most: int) -> list[Capture]:
        """Captures in the file *warc* that begin behind offset *after*, in order, at most *most*."""

    async def mark_indexed(self) -> None:
        """Every closed file's lines stand in index.cdxj now."""

    async def forget_index(self) -> None:
        """index.cdxj is gone."""

    async def close(self) -> None:
        """Everything is committed; the database is one file again."""
