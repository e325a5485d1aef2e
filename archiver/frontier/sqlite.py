"""The frontier in one SQLite file, through aiosqlite: one connection writes, one reads.

WAL mode, so `status` and a replay may look while the crawl runs; every commit is synced. A `sqlite3` error is
our storage's fault and becomes `ArchiveError`, which names the file.
"""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import aiosqlite

from archiver.errors import ArchiveError
from archiver.frontier import captures, database, enqueue, held, outcomes, retry, robots, url_queue
from archiver.frontier import captures as records
from archiver.frontier import hosts as clocks
from archiver.frontier import hosts as pausing
from archiver.frontier import hosts as ways
from archiver.frontier import settle as learning
from archiver.frontier import settle as settling
from archiver.frontier import settle as tallies
from archiver.frontier.database import Connection, connect, run_in_thread
from archiver.frontier.enqueue import RecentLinks
from archiver.frontier.held import HeldPattern
from archiver.frontier.port import (
    NOTHING_NEW,
    Counts,
    EarlierFind,
    FileRow,
    HostRow,
    HostWindow,
    InheritedThrottle,
    Selection,
    Settled,
    UrlWindow,
)
from archiver.frontier.retry import Held
from archiver.model import Capture, Claim, FileState, PatternTally, Resource, Settlement
from archiver.policy.host_backoff import HostBackoff
from archiver.policy.limits import FREE, Allowance
from archiver.policy.throttle import ThrottleState
from archiver.storage import bare, regular

P = ParamSpec("P")
T = TypeVar("T")


class SqliteFrontier:
    """Open it with `opened`."""

    def __init__(self, path: Path, writer: aiosqlite.Connection, reader: aiosqlite.Connection) -> None:
        self._path = path
        self._writer = writer
        self._reader = reader
        self._turn = asyncio.Lock()
        self._version = -1  # of the data, as of the latest look for what others have written
        self._offers = RecentLinks()  # for the thread of the writer alone
        self._offered = -1  # the version of the data as of which they hold
        self._asked = 0  # each robots.txt that began to wait, and that no account knows of yet

    @classmethod
    async def open(cls, path: Path) -> "SqliteFrontier":
        """The frontier at *path*, made if it is not there."""
        regular(path)
        with _translated(path):
            with closing(sqlite3.connect(path)):
                pass  # what cannot be opened fails here, not in aiosqlite's thread, which would outlive its loop
            async with AsyncExitStack() as stack:
                writer = await stack.enter_async_context(connect(path))
                await run_in_thread(writer, database.check_schema, path)
                await database.prepare(writer)
                await database.check_integrity(path, writer)
                reader = await stack.enter_async_context(connect(path))
                await run_in_thread(reader, database.guard, path)
                await reader.execute("PRAGMA query_only = 1")
                stack.pop_all()
        return cls(path, writer, reader)

    async def close(self) -> None:
        """Everything is committed; the write-ahead file becomes part of the database."""
        with _translated(self._path):
            try:
                await self._reader.close()
            finally:
                await self._writer.close()

    async def add_seeds(self, seeds: Sequence[str], due: float = 0.0) -> int:
        """Make *seeds* known and waiting; how many were new. With *due*: not before; settled URLs wait again too."""
        return await self._write(self._anew, retry.add_seeds, seeds, due)

    async def seeds(self) -> list[str]:
        """Every seed, in the order given."""
        return [str(row[0]) for row in await self._rows(retry.ALL)]

    async def again(self, wanted: Selection) -> int:
        """Make the URLs that *wanted* means due again, as if never tried; how many they are."""
        keys = await self._rows("SELECT id, key FROM hosts") if wanted.hosts else []
        hosts = retry.named_hosts(((int(row[0]), str(row[1])) for row in keys), wanted.hosts)
        after = count = 0
        while rows := [int(row[0]) for row in await self._rows(*retry.question(wanted, hosts, after))]:
            after = rows[-1]
            count += await self._write(self._anew, retry.come_back, rows)
        return count

    async def release(self, pattern: HeldPattern, allowed: int) -> int:
        """The URLs of a held pattern wait, and *allowed* more of them may bring nothing; how many they are."""
        count = 0
        while released := await self._write(self._anew, held.release, pattern, 0 if count else allowed):
            count += released
        return count

    async def again_without_payload(self, kept: Held) -> int:
        """Make URLs due whose answers are revisits of a payload that is lost, and not *kept* elsewhere; how many."""
        count = after = 0
        while found := await self._rows(retry.WITHOUT_PAYLOAD, (after, retry.AT_ONCE)):
            after = int(found[-1][0])
            count += await self._write(self._anew, retry.come_back, retry.lost(found, kept))
        return count

    async def written_by_others(self) -> bool:
        """Whether another process has written since this was asked last; the first time it cannot be known."""
        with _translated(self._path):
            async with self._turn, self._writer.execute("PRAGMA data_version") as cursor:
                (version,) = await cursor.fetchone() or (0,)
        before, self._version = self._version, int(version)
        return before not in {-1, self._version}

    async def robots_to_ask(self, hosts: Collection[int]) -> list[int]:
        """Those of *hosts* whose robots.txt nobody has asked for, or that is to be asked for again from the start."""
        rows = await self._rows(
            "SELECT id FROM hosts WHERE robots_url IS NULL AND id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(hosts)),),
        )
        return [int(row[0]) for row in rows]

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Meanwhile nobody else writes, neither into the database nor, by their own use of this, into crawl.toml."""
        with _translated(self._path):
            async with self._turn:
                await self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    await self._writer.execute("COMMIT")
                except BaseException:
                    await self._writer.rollback()
                    raise

    async def due_hosts(
        self, now: float, most: int, leased: Collection[int], allowance: Allowance = FREE
    ) -> list[HostRow]:
        """Hosts with a URL that is due, longest parked first, without those in *leased*."""
        return await self._read(url_queue.due_hosts, now, most, leased, allowance)

    async def held_back(self, allowance: Allowance) -> str:
        """Which limit of the *allowance* holds how many URLs of how many hosts back, in words; "" where none does."""
        rows = await self._rows(url_queue.REACHED, allowance.bounds)
        return " and ".join(url_queue.words(allowance, *row) for row in rows)

    async def host(self, host: int) -> HostRow:
        """One host as it stands now."""
        return (await self.hosts((host,)))[0]

    async def hosts(self, hosts: Collection[int]) -> list[HostRow]:
        """Each of *hosts* as it stands now, in this order."""
        return await self._read(url_queue.hosts, hosts)

    async def has_answered(self, host: int) -> bool:
        """Whether *host* has ever answered, in this run or an earlier one."""
        return bool(await self._rows("SELECT 1 FROM hosts WHERE id = ? AND received > 0", (host,)))

    async def set_back(self, now: float, longest: float) -> float:
        """Keep every wait as long as it was meant, where the clock says *now* and has been set back since it began."""
        return await self._write(clocks.set_back, now, longest)

    async def ask_robots_of(self, hosts: Collection[int]) -> list[HostRow]:
        """Put the robots.txt of each of *hosts* into its queue, before all else; if it was answered, once more."""
        rows, new = await self._write(_asked, hosts)
        self._asked += new
        return rows

    async def window(self, host: int, now: float, most: int, *, prerequisites: bool) -> UrlWindow:
        """The next *most* URLs of *host*; only those that lead to a robots.txt with *prerequisites*."""
        return (await self.windows((HostWindow(host, most, prerequisites=prerequisites),), now))[0]

    async def windows(self, wanted: Sequence[HostWindow], now: float) -> list[UrlWindow]:
        """The next URLs of many hosts, in the order of *wanted*."""
        return await self._read(url_queue.windows, wanted, now)

    async def next_due(self, now: float) -> float:
        """When the next URL is due that is not due *now*; infinity where none waits for its time."""
        return await self._read(url_queue.next_due, now)

    async def settle(
        self,
        settlements: Sequence[Settlement],
        files: Sequence[FileState],
        lessons: Mapping[int, ThrottleState] = NOTHING_NEW,
        resources: Sequence[Resource] = (),
    ) -> Settled:
        """Commit what a batch of visits means, how far the WARC files are written, and what hosts have taught us.

        Of very many links most are added before, in transactions of their own, between which others have their turn.
        Whatever happens in between, the visit that names them is not settled yet: recovery does it, and adds the rest.
        """
        added, hosts = 0, frozenset[int]()
        with _translated(self._path):
            portions, settlements = settling.portions(settlements)
            for portion in portions:
                async with self._turn:
                    new = await run_in_thread(self._writer, self._add, portion)
                added, hosts = added + new.total(), hosts | new.keys()
            async with self._turn:
                settled = await run_in_thread(self._writer, self._settle, settlements, files, lessons, resources)
        asked, self._asked = self._asked, 0
        return replace(settled, added=settled.added + added + asked, hosts=settled.hosts | hosts)

    def _add(self, db: Connection, portion: settling.Portion) -> Counter[int]:
        """Make the links of *portion* known; how many new URLs each host has got."""
        with db.transaction():
            self._forget_if_written(db)
            added, idle = enqueue.add_links(db, self._offers.news(*portion))
        self._offers.remember(idle)
        return added

    def _forget_if_written(self, db: Connection) -> None:
        (version,) = db.row("PRAGMA data_version")
        if version != self._offered:
            self._offers.forget()  # another process has written
            self._offered = version

    def _settle(
        self,
        db: Connection,
        settlements: Sequence[Settlement],
        files: Sequence[FileState],
        lessons: Mapping[int, ThrottleState],
        resources: Sequence[Resource],
    ) -> Settled:
        with db.transaction():
            self._forget_if_written(db)
            ways.keep(db, lessons)
            settled, idle = settling.settle(db, settlements, files, self._offers)
            records.keep(db, resources)
        self._offers.remember(idle)
        return settled

    def _anew(
        self, db: Connection, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs
    ) -> T:
        """What *act* returns, which writes rows anew."""
        self._offers.forget()
        return act(db, *values, **named)

    async def doze(self, host: int, slumber: HostBackoff) -> None:
        """Keep how *host* fails, or that it does not any more."""
        await self._write(ways.doze, host, slumber)

    async def give_up(self, host: int, failure: str, note: str, now: float) -> int:
        """All that waits on *host* has failed, but what leads to a robots.txt; how many URLs that were."""
        count, more = 0, True
        while more:
            given_up = await self._write(ways.give_up, host, failure, note, now)
            count, more = count + given_up, given_up == ways.AT_ONCE
        return count

    async def ask_again(self, host: int, page: tuple[int, int] | None) -> tuple[int, int] | None:
        """Let a page wait once more that *host* gave (its row and status), *page* or another; None: it gave nothing."""
        page = page or await self._read(pausing.gave, host)
        return page if page is not None and await self._write(self._anew, pausing.ask_again, page[0]) else None

    async def pause(self, host: int, since: float, asked: tuple[int, int] | None) -> None:
        """*host* refuses us *since* then: nothing is asked of it in this run; 0: it does not refuse us any more."""
        await self._write(pausing.pause, host, since, asked)

    async def learn(self, visits: Sequence[Claim]) -> list[Claim]:
        """Make the URLs of *visits* known, those that are not, as the claims say; the claims as they stand then."""
        await self._write(self._anew, learning.record_visits, visits)
        return await self._read(url_queue.claims, [visit.url for visit in visits])

    async def begin_run(self, now: float) -> None:
        """Note that a run begins; hosts that were paused in the one before may be asked again."""
        await self._write(outcomes.begin, now)

    async def end_run(self, code: int, reason: str, now: float) -> None:
        """Note how the run ended, and why."""
        await self._write(outcomes.end, code, reason, now)

    async def began(self) -> float:
        """Seconds since the epoch: the first capture; 0 where there is none."""
        return float((await self._rows("SELECT coalesce(min(timestamp), 0) / 1e6 FROM captures"))[0][0])

    async def unknown(self, addresses: Collection[str]) -> set[str]:
        """Those of *addresses* that the crawl has never heard of."""
        return await self._read(enqueue.unknown, addresses)

    async def recall(self, recalled: Sequence[EarlierFind]) -> int:
        """URLs of an earlier crawl wait from now on; how many were not known."""
        return await self._write(self._anew, enqueue.enqueue_earlier, recalled)

    async def inherit(self, manners: Sequence[InheritedThrottle]) -> None:
        """Hosts of which nothing is known are asked as gently as an earlier crawl has learned."""
        await self._write(enqueue.inherit, manners)

    async def counts(self) -> Counts:
        """The account of the whole crawl."""
        self._asked = 0
        return Counts(*(await self._rows(outcomes.COUNTS))[0])

    async def tallies(self, most: int) -> list[PatternTally]:
        """What patterns of URLs have brought, at most *most*, those first that may be forgotten first."""
        return tallies.pattern_tallies(await self._rows(tallies.NEWEST, (most,)))

    async def moved(self) -> list[tuple[str, str]]:
        """Where redirects of seeds led, each with the seed."""
        return [(str(row[0]), str(row[1])) for row in await self._rows(tallies.MOVED)]

    async def files(self) -> list[FileRow]:
        """Every WARC file."""
        rows = await self._rows("SELECT name, committed, closed, indexed, digest, modified FROM warcs ORDER BY id")
        return [
            FileRow(bare(row[0], self._path), int(row[1]), bool(row[2]), bool(row[3]), row[4], int(row[5]))
            for row in rows
        ]

    async def captures(self, warc: str, after: int, most: int) -> list[Capture]:
        """Captures in the file *warc* that begin behind offset *after*, in order, at most *most*."""
        return [captures.capture(row) for row in await self._rows(captures.IN_FILE, (warc, after, most))]

    async def resources(self, warc: str, after: int, most: int) -> list[Resource]:
        """Records that belong to no visit in the file *warc* behind offset *after*, in order, at most *most*."""
        return records.resource_rows(await self._rows(records.RECORDS_IN_FILE, (warc, after, most)))

    async def latest_resource(self, beginning: str) -> Resource | None:
        """The one that was stored last of those whose URI begins so."""
        return next(iter(records.resource_rows(await self._rows(records.LATEST, (beginning, beginning)))), None)

    async def mark_indexed(self) -> None:
        """Every closed file's lines stand in index.cdxj now."""
        await self._write(Connection.execute, "UPDATE warcs SET indexed = 1 WHERE closed = 1")

    async def forget_index(self) -> None:
        """index.cdxj is gone."""
        await self._write(Connection.execute, "UPDATE warcs SET indexed = 0")

    async def _write(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """What *act* returns, in a transaction of its own."""
        with _translated(self._path):
            async with self._turn:
                return await run_in_thread(self._writer, _whole, act, *values, **named)

    async def _read(self, act: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        """What *act* finds."""
        with _translated(self._path):
            return await run_in_thread(self._reader, act, *values, **named)

    async def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        return await self._read(Connection.rows, sql, values)


def _whole(db: Connection, act: Callable[Concatenate[Connection, P], T], /, *values: P.args, **named: P.kwargs) -> T:
    with db.transaction():
        return act(db, *values, **named)


def _asked(db: Connection, hosts: Collection[int]) -> tuple[list[HostRow], int]:
    before = url_queue.waiting(db, hosts)
    robots.ask(db, hosts)
    return url_queue.hosts(db, hosts), url_queue.waiting(db, hosts) - before


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # a broken promise of ours, not of the disk
    except sqlite3.Error as error:
        raise ArchiveError(f"{path}: {database.describe_error(error, path)}") from error
