"""The frontier in one SQLite file, through aiosqlite: one connection writes, one reads.

WAL mode, so `status` and a replay may look while the crawl runs; every commit is synced. A `sqlite3` error is
our storage's fault and becomes `ArchiveError`, which names the file.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path

import aiosqlite

from archiver import url
from archiver.adapting import Lesson
from archiver.allowance import FREE, Allowance
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import again, asking, clocks, learning, limits, settling, tallies, trouble, ways
from archiver.frontier.migrations import APPLICATION_ID, VERSION, script
from archiver.frontier.port import NOTHING_NEW, Counts, FileRow, HostRow, Selection, Settled, Window
from archiver.model import Capture, Claim, FileState, Hop, PatternTally, Robots, Settlement, Span, Truncation
from archiver.slumber import Slumber

NEVER = float("inf")
CHECKED = 64 << 20  # bytes of a database that is looked through whenever it is opened: some tenths of a second

CLAIM_COLUMNS = """
SELECT urls.id, urls.url, urls.host, urls.hop, urls.path, urls.depth, urls.strays, urls.tries, via.url, seed.url,
       urls.priority
FROM urls LEFT JOIN urls AS via ON via.id = urls.via LEFT JOIN urls AS seed ON seed.id = urls.seed
"""
HOST_COLUMNS = """
SELECT hosts.id, hosts.key, hosts.parked, hosts.robots, robots.status, robots.body,
       hosts.rate, hosts.rate_limit, hosts.width, hosts.slowed, hosts.failing, hosts.pause,
       CASE WHEN hosts.robots_next IS NULL THEN hosts.robots_at ELSE 9e999 END, hosts.received > 0
FROM hosts LEFT JOIN robots ON robots.url = hosts.robots_url
"""
DUE_HOSTS = f"""{HOST_COLUMNS}
WHERE hosts.waiting > 0 AND hosts.parked <= ? AND hosts.id NOT IN (SELECT value FROM json_each(?))
  AND {limits.HAS_DUE}
ORDER BY hosts.parked, hosts.id LIMIT ?
"""  # noqa: S608  a constant


class SqliteFrontier:
    """Open it with `opened`."""

    def __init__(self, path: Path, writer: aiosqlite.Connection, reader: aiosqlite.Connection) -> None:
        self._path = path
        self._writer = writer
        self._reader = reader
        self._turn = asyncio.Lock()
        self._version = -1  # of the data, as of the latest look for what others have written

    @classmethod
    async def open(cls, path: Path) -> "SqliteFrontier":
        """The frontier at *path*, made if it is not there, its schema brought up to date."""
        with _translated(path):
            with closing(sqlite3.connect(path)):
                pass  # what cannot be opened fails here, not in aiosqlite's thread, which would outlive its loop
            async with AsyncExitStack() as stack:
                writer = await stack.enter_async_context(aiosqlite.connect(path, isolation_level=None))
                await _prepare(path, writer)
                await _check(path, writer)
                reader = await stack.enter_async_context(aiosqlite.connect(path, isolation_level=None))
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
        async with self._transaction() as db:
            if due:
                await again.come_back_as_seeds(db, seeds, due)
            keys = sorted({url.origin(seed) for seed in seeds})
            await db.executemany("INSERT OR IGNORE INTO hosts (key) VALUES (?)", [(key,) for key in keys])
            rows = [(seed, url.origin(seed), due) for seed in seeds]
            await db.executemany(
                """INSERT INTO urls (url, host, hop, path, depth, strays, priority, due)
                   VALUES (?, (SELECT id FROM hosts WHERE key = ?), 'L', '', 0, 0, 1, ?)
                   ON CONFLICT (url) DO UPDATE SET hop = 'L', path = '', depth = 0, strays = 0, priority = 1, via = NULL
                   WHERE state = 'waiting' AND priority >= 0""",
                rows,
            )
            await db.executemany("UPDATE urls SET seed = id WHERE url = ? AND path = ''", [(seed,) for seed in seeds])
            position = await self._one(db, "SELECT count(*) FROM seeds")
            await db.executemany(
                "INSERT OR IGNORE INTO seeds (url, position) VALUES ((SELECT id FROM urls WHERE url = ?), ?)",
                [(seed, int(position[0]) + number) for number, seed in enumerate(seeds)],
            )
            after = await self._one(db, "SELECT count(*) FROM seeds")
            return int(after[0]) - int(position[0])

    async def seeds(self) -> list[str]:
        """Every seed, in the order given."""
        rows = await self._rows("SELECT urls.url FROM seeds JOIN urls ON urls.id = seeds.url ORDER BY position")
        return [str(row[0]) for row in rows]

    async def again(self, wanted: Selection) -> int:
        """Make the URLs that *wanted* means due again, as if never tried; how many they are."""
        keys = await self._rows("SELECT id, key FROM hosts") if wanted.hosts else []
        hosts = again.named_hosts(((int(row[0]), str(row[1])) for row in keys), wanted.hosts)
        after = count = 0
        while rows := [int(row[0]) for row in await self._rows(*again.question(wanted, hosts, after))]:
            after = rows[-1]
            async with self._transaction() as db:
                count += await again.come_back(db, rows)
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
        async with self._transaction():
            yield

    async def due_hosts(
        self, now: float, most: int, leased: Collection[int], allowance: Allowance = FREE
    ) -> list[HostRow]:
        """Hosts with a URL that is due, longest parked first, without those in *leased*."""
        rows = await self._rows(DUE_HOSTS, (now, json.dumps(list(leased)), *allowance.bounds, now, now, most))
        return [_host(row) for row in rows]

    async def held_back(self, allowance: Allowance) -> str:
        """Which limit of the *allowance* holds how many URLs of how many hosts back, in words; "" where none does."""
        rows = await self._rows(limits.REACHED, allowance.bounds)
        return " and ".join(limits.words(allowance, *row) for row in rows)

    async def host(self, host: int) -> HostRow:
        """One host as it stands now."""
        rows = await self._rows(f"{HOST_COLUMNS} WHERE hosts.id = ?", (host,))
        return _host(rows[0])

    async def has_answered(self, host: int) -> bool:
        """Whether *host* has ever answered, in this run or an earlier one."""
        return bool(await self._rows("SELECT 1 FROM hosts WHERE id = ? AND received > 0", (host,)))

    async def set_back(self, now: float, longest: float) -> float:
        """Keep every wait as long as it was meant, where the clock says *now* and has been set back since it began."""
        async with self._transaction() as db:
            return await clocks.set_back(db, now, longest)

    async def ask_robots(self, host: int) -> HostRow:
        """Put robots.txt of *host* into its queue, before everything else; if it was answered already, once more."""
        async with self._transaction() as db:
            await asking.ask(db, host)
            return _host(await self._one(db, f"{HOST_COLUMNS} WHERE hosts.id = ?", (host,)))

    async def window(self, host: int, now: float, most: int, *, prerequisites: bool) -> Window:
        """The next *most* URLs of *host*; only those that lead to a robots.txt with *prerequisites*."""
        which = "AND urls.priority < 0" if prerequisites else ""
        order = f"""{CLAIM_COLUMNS}
            WHERE urls.host = ? AND urls.state = 'waiting' AND urls.due <= ? {which}
            ORDER BY urls.priority, urls.id LIMIT ?"""
        rows = await self._rows(order, (host, now, most))
        counted = await self._rows(
            f"""SELECT (SELECT min(due) FROM urls
                        WHERE host = hosts.id AND state = 'waiting' AND due > 0 AND due > ? {which}),
                       waiting, spent, received
                FROM hosts WHERE id = ?""",  # noqa: S608  a constant
            (now, host),
        )
        due, *numbers = counted[0]
        return Window(tuple(map(_claim, rows)), NEVER if due is None else float(due), *numbers)

    async def next_due(self, now: float) -> float:
        """When the next URL is due that is not due *now*; infinity where none waits for its time."""
        rows = await self._rows(
            """SELECT min(due) FROM urls WHERE state = 'waiting' AND due > 0 AND due > ?
               UNION ALL SELECT min(parked) FROM hosts WHERE waiting > 0 AND parked > ?""",
            (now, now),
        )
        return min((float(row[0]) for row in rows if row[0] is not None), default=NEVER)

    async def settle(
        self,
        settlements: Sequence[Settlement],
        files: Sequence[FileState],
        lessons: Mapping[int, Lesson] = NOTHING_NEW,
    ) -> Settled:
        """Commit what a batch of visits means, how far the WARC files are written, and what hosts have taught us."""
        async with self._transaction() as db:
            await ways.keep(db, lessons)
            return await settling.settle(db, settlements, files)

    async def doze(self, host: int, slumber: Slumber) -> None:
        """Keep how *host* fails, or that it does not any more."""
        async with self._transaction() as db:
            await ways.doze(db, host, slumber)

    async def give_up(self, host: int, failure: str, note: str, now: float) -> int:
        """All that waits on *host* has failed, but what leads to a robots.txt; how many URLs that were."""
        count, more = 0, True
        while more:
            async with self._transaction() as db:
                given_up = await ways.give_up(db, host, failure, note, now)
            count, more = count + given_up, given_up == ways.AT_ONCE
        return count

    async def learn(self, visits: Sequence[Claim]) -> list[Claim]:
        """Make the URLs of *visits* known, those that are not, as the claims say; the claims as they stand then."""
        async with self._transaction() as db:
            await learning.learn(db, visits)
        found = []
        for visit in visits:
            rows = await self._rows(f"{CLAIM_COLUMNS} WHERE urls.url = ?", (visit.url,))
            found.append(_claim(rows[0]))
        return found

    async def counts(self) -> Counts:
        """The account of the whole crawl."""
        states = {row[0]: int(row[1]) for row in await self._rows("SELECT state, count(*) FROM urls GROUP BY state")}
        visited = await self._rows("SELECT count(*) FROM urls WHERE tries > 0 AND priority >= 0")
        received = await self._rows("SELECT coalesce(sum(received), 0) FROM captures")
        seeds = await self._rows(
            "SELECT count(*) FROM seeds JOIN urls ON urls.id = seeds.url WHERE urls.state = 'archived'"
        )
        return Counts(
            waiting=states.get("waiting", 0),
            archived=states.get("archived", 0),
            failed=states.get("failed", 0),
            excluded=states.get("excluded", 0),
            visited=int(visited[0][0]),
            received=int(received[0][0]),
            seeds_archived=int(seeds[0][0]),
        )

    async def tallies(self, most: int) -> list[PatternTally]:
        """What patterns of URLs have brought, at most *most*, those first that may be forgotten first."""
        return tallies.read(await self._rows(tallies.NEWEST, (most,)))

    async def moved(self) -> list[tuple[str, str]]:
        """Where redirects of seeds led, each with the seed."""
        return [(str(row[0]), str(row[1])) for row in await self._rows(tallies.MOVED)]

    async def files(self) -> list[FileRow]:
        """Every WARC file."""
        rows = await self._rows("SELECT name, committed, closed, indexed, digest, modified FROM warcs ORDER BY id")
        return [FileRow(row[0], int(row[1]), bool(row[2]), bool(row[3]), row[4], int(row[5])) for row in rows]

    async def captures(self, warc: str, after: int, most: int) -> list[Capture]:
        """Captures in the file *warc* that begin behind offset *after*, in order, at most *most*."""
        rows = await self._rows(
            """SELECT urls.url, timestamp, captures.status, mime, payload_digest, payload_length, received, warcs.name,
                      offset, response_length, request_length, metadata_length, truncated
               FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
               WHERE warcs.name = ? AND offset > ? ORDER BY offset LIMIT ?""",
            (warc, after, most),
        )
        return [_capture(row) for row in rows]

    async def mark_indexed(self) -> None:
        """Every closed file's lines stand in index.cdxj now."""
        async with self._transaction() as db:
            await db.execute("UPDATE warcs SET indexed = 1 WHERE closed = 1")

    async def forget_index(self) -> None:
        """index.cdxj is gone."""
        async with self._transaction() as db:
            await db.execute("UPDATE warcs SET indexed = 0")

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        async with self._turn:
            with _translated(self._path):
                await self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    await self._writer.execute("COMMIT")
                except BaseException:
                    await self._writer.rollback()
                    raise

    async def _rows(self, sql: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        with _translated(self._path):
            return list(await self._reader.execute_fetchall(sql, values))

    @staticmethod
    async def _one(db: aiosqlite.Connection, sql: str, values: Sequence[object] = ()) -> sqlite3.Row:
        async with db.execute(sql, values) as cursor:
            row = await cursor.fetchone()
        if row is None:
            raise LookupError(f"no row: {sql} {values}")
        return row


async def _prepare(path: Path, db: aiosqlite.Connection) -> None:
    application = int((await SqliteFrontier._one(db, "PRAGMA application_id"))[0])  # noqa: SLF001  its own module
    version = int((await SqliteFrontier._one(db, "PRAGMA user_version"))[0])  # noqa: SLF001
    tables = int((await SqliteFrontier._one(db, "SELECT count(*) FROM sqlite_master"))[0])  # noqa: SLF001
    if tables and application != APPLICATION_ID:
        raise ConfigError(f"{path} is an SQLite database, but not one of archiver's crawls")
    if version > VERSION:
        raise ConfigError(
            f"{path} has schema version {version}, this archiver knows up to {VERSION}; use a newer archiver"
        )
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "busy_timeout = 10000",
        "cache_size = -65536",
        "temp_store = MEMORY",
    ):
        await db.execute(f"PRAGMA {pragma}")
    for step in range(version + 1, VERSION + 1):
        await db.executescript(script(step))


async def _check(path: Path, db: aiosqlite.Connection) -> None:
    """Name a damaged database before anything is built on it; of a large one SQLite itself does, when it meets it."""
    size = await SqliteFrontier._one(db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")  # noqa: SLF001
    if int(size[0]) <= CHECKED:
        said = (await SqliteFrontier._one(db, "PRAGMA quick_check(1)"))[0]  # noqa: SLF001
        if said != "ok":
            raise ArchiveError(f"{path}: {trouble.damaged(str(said), path)}")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # a broken promise of ours, not of the disk
    except sqlite3.Error as error:
        raise ArchiveError(f"{path}: {trouble.words(error, path)}") from error


def _claim(row: sqlite3.Row) -> Claim:
    return Claim(
        id=row[0],
        url=row[1],
        host=row[2],
        hop=Hop(row[3]),
        path=row[4],
        depth=row[5],
        strays=row[6],
        tries=row[7],
        via=row[8],
        seed=row[9] or "",
        priority=row[10],
    )


def _host(row: sqlite3.Row) -> HostRow:
    known = {
        "unknown": None,
        "known": Robots(row[4] or 404, row[5] or b""),
        "unreachable": Robots(row[4] or 0, row[5] or b""),
    }
    slumber = Slumber(row[10], row[11], row[2] if row[11] else 0.0)
    return HostRow(row[0], row[1], row[2], known[row[3]], Lesson(*row[6:10]), slumber, row[12], bool(row[13]))


def _capture(row: sqlite3.Row) -> Capture:
    offset = row[8]
    return Capture(
        url=row[0],
        timestamp=row[1],
        status=row[2],
        mime=row[3],
        payload_digest=row[4],
        payload_length=row[5],
        received=row[6],
        warc=row[7],
        response=Span(offset, row[9]),
        request=Span(offset + row[9], row[10]),
        metadata=Span(offset + row[9] + row[10], row[11]),
        truncated=Truncation(row[12]) if row[12] else None,
    )
