"""Measure the frontier alone over the number of its URLs, in SQLite and in PostgreSQL: leasing, windows and settling.

    PYTHONPATH=. python bench/many_urls.py --urls 200000 2000000 10000000 --folder DIR

It starts a PostgreSQL server of its own and fills a database of each kind: a hundred URLs a host, 30 % archived.
Then one client leases hosts, reads the URLs that wait on them, and settles batches of these. A page has 30 links: 3 are
new, 6 lead to known URLs, the others are on all pages of its site. A tenth of the first two kinds lead to other hosts.
Nothing of the database is in the client's memory before, and each host is visited only some times; a crawl does better.
"""

import argparse
import asyncio
import json
import random
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from time import monotonic

import psycopg
from frontier_postgres import BATCH, LEASED, LINKS, NEW, RARE, WARM

from archiver.frontier.address import shared_frontier, write_address
from archiver.frontier.port import HostWindow
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Capture, Claim, Event, FileState, Hop, NewUrl, Settlement, Span
from fixtures.postgres import running

PER_HOST = 100  # URLs
ARCHIVED = 30  # of these
WINDOW = 256  # URLs of one host that are read at once
ROUNDS = 20  # leases
ENGINES = "SQLite", "PostgreSQL"
URL = "'https://www.host' || {} || '.example.net/section/' || {} || '/some-long-name-of-a-page.html'"
FILL = (
    f"""{{series}} INSERT INTO hosts (id, key, waiting, archived, visited, received, robots)
    SELECT n, 'https://www.host' || n || '.example.net', {PER_HOST - ARCHIVED}, {ARCHIVED}, {ARCHIVED}, 370000, 'known'
    FROM series WHERE n <= {{hosts}}""",
    f"""{{series}} INSERT INTO urls (id, url, host, state, hop, path, depth, off_scope_hops, priority, via, seed, tries,
                                     status, settled)
    SELECT n, {URL.format("(n % {hosts} + 1)", "n")}, n % {{hosts}} + 1,
           CASE WHEN n <= {{archived}} THEN 'archived' ELSE 'waiting' END, 'L', 'LLL', 3, 0, 4, n / 10 + 1, 1,
           CASE WHEN n <= {{archived}} THEN 1 ELSE 0 END, CASE WHEN n <= {{archived}} THEN 200 ELSE 0 END,
           CASE WHEN n <= {{archived}} THEN 1.7e9 + n END FROM series""",
    """{series} INSERT INTO warcs (id, name, committed, closed, machine)
    SELECT n, 'crawl-20260101000000-' || n || '.warc.gz', 50000000, 1, 'db' FROM series
    WHERE n <= {archived} / 10000 + 1""",
    """{series} INSERT INTO captures (url, timestamp, status, mime, payload_digest, payload_length, warc, "offset",
                                      response_length, request_length, metadata_length, received, duration)
    SELECT n, 1700000000000000 + n, 200, 'text/html', 'sha1:' || {digest}, 12000, n / 10000 + 1, n % 10000 * 5000, 4000,
           400, 600, 12300, 0.1 FROM series WHERE n <= {archived}""",
)
SERIES_SQLITE = "WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {})"
SERIES_POSTGRES = "WITH series (n) AS (SELECT generate_series(1, {}))"
SETTINGS = {  # as docs/how-to/run-postgresql-for-a-crawl.md
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "lz4",
    "random_page_cost": "1.1",
}
SIZES = """
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i') ORDER BY 2 DESC
"""


def statements(urls: int, series: str, digest: str) -> Iterator[str]:
    """Yield what fills a database."""
    values = {"series": series.format(urls), "hosts": urls // PER_HOST, "archived": urls * ARCHIVED // PER_HOST}
    for sql in FILL:
        yield sql.format(**values, digest=digest)


def fill_sqlite(path: Path, urls: int) -> None:
    """Fill the database at *path*."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -2000000")
        kept = db.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type = 'trigger' OR (type = 'index' AND sql <> '')"
        ).fetchall()
        db.execute("BEGIN")
        for kind, name, _ in kept:
            db.execute(f"DROP {kind} {name}")
        for sql in statements(urls, SERIES_SQLITE, "hex(randomblob(16))"):
            db.execute(sql)
        for _, _, sql in kept:
            db.execute(sql)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def fill_postgres(address: str, urls: int, settings: Mapping[str, str]) -> None:
    """Fill the database at *address*, as autovacuum would leave it; indexes are made at the end."""
    with psycopg.connect(address, autocommit=True) as db:
        for name, value in settings.items():
            db.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        db.execute("SELECT pg_reload_conf()")
        db.execute("SET session_replication_role = replica")  # no triggers, no look-up of each foreign key
        db.execute("SET synchronous_commit = off")
        db.execute("SET maintenance_work_mem = '1GB'")
        kept = db.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('urls', 'captures')"
            " AND indexname NOT IN (SELECT conname FROM pg_constraint UNION SELECT 'urls_held')"  # made large here
        ).fetchall()
        db.execute("ALTER TABLE urls DROP CONSTRAINT urls_url")
        for name, _ in kept:
            db.execute(f"DROP INDEX {name}".encode())
        for sql in statements(urls, SERIES_POSTGRES, "upper(md5(n::text))"):
            db.execute(sql.encode())
        db.execute("ALTER TABLE urls ADD CONSTRAINT urls_url EXCLUDE USING hash (url WITH =)")
        for _, sql in kept:
            db.execute(sql.encode())
        for table in ("hosts", "urls", "warcs", "captures"):
            db.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}".encode())
        db.execute("VACUUM ANALYZE")
        db.execute("CHECKPOINT")


class Pages:
    """Visits of claimed URLs, with the links of their pages."""

    def __init__(self, urls: int) -> None:
        self._chance = random.Random(urls)
        self._hosts = urls // PER_HOST
        self._new = 0
        self._end = 0  # of the WARC file

    def batch(self, claims: Sequence[Claim]) -> tuple[list[Settlement], list[FileState]]:
        """Return the settlements of *claims*."""
        made = [self._settlement(each) for each in claims]
        return made, [FileState("crawl.warc.gz", self._end, closed=False)]

    def _host(self, page: Claim) -> int:
        return page.host if self._chance.random() < 0.9 else self._chance.randint(1, self._hosts)

    def _known(self, host: int, place: int) -> NewUrl:
        row = host - 1 + self._hosts * place
        address = f"https://www.host{host}.example.net/section/{row}/some-long-name-of-a-page.html"
        return NewUrl(address, Hop.LINK, "LLLL", 4, 0, 5)

    def _settlement(self, claim: Claim) -> Settlement:
        found = [self._known(claim.host, place + 1) for place in range(LINKS - NEW - RARE)]
        found += [self._known(self._host(claim), self._chance.randrange(1, PER_HOST)) for _ in range(RARE)]
        for _ in range(NEW):
            self._new += 1
            name = f"new/{self._new}/some-long-name-of-a-page-that-is-new.html"
            found.append(NewUrl(f"https://www.host{self._host(claim)}.example.net/{name}", Hop.LINK, "LLLL", 4, 0, 5))
        at, self._end = self._end, self._end + 5000
        digest = f"sha1:{self._chance.getrandbits(160):040X}"
        spans = Span(at, 4000), Span(at + 4000, 400), Span(at + 4400, 600)
        capture = Capture(claim.url, 18 * 10**14 + at, 200, "text/html", digest, 12000, 12300, "crawl.warc.gz", *spans)
        return Settlement(claim, Event.CAPTURE, 200, found=tuple(found), capture=capture, settled=1.8e9, duration=0.1)


async def leases(frontier: SqliteFrontier, rounds: int) -> tuple[list[Claim], list[float], list[float]]:
    """Lease hosts some times. Return URLs of the latest of them, the seconds of each lease and of its windows."""
    leased: set[int] = set()
    claims: list[Claim] = []
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        started = monotonic()
        rows = await frontier.due_hosts(2e9, LEASED, leased)
        got = await frontier.lease({row.id: str(row.id) for row in rows})
        between = monotonic()
        windows = await frontier.windows([HostWindow(each, WINDOW, prerequisites=False) for each in got], 2e9)
        times[0].append(between - started)
        times[1].append(monotonic() - between)
        assert len(got) == LEASED
        leased |= got.keys()
        claims = [claim for window in windows for claim in window.claims]
    return claims, *times


async def settled(frontier: SqliteFrontier, urls: int, claims: list[Claim], batches: int) -> list[float]:
    """Return the seconds that each of *batches* takes after the first ones."""
    pages = Pages(urls)
    random.Random(urls).shuffle(claims)
    assert len(claims) >= (WARM + batches) * BATCH
    times = []
    for number in range(WARM + batches):
        settlements, files = pages.batch(claims[number * BATCH : (number + 1) * BATCH])
        started = monotonic()
        result = await frontier.settle(settlements, files)
        times.append(monotonic() - started)
        assert result.added == NEW * BATCH
        assert await frontier.renew()
    return times[WARM:]


def load(address: str) -> dict[str, int]:
    """Return the bytes between this process and the server at *address*, those of its log, and whole pages in that."""
    if not address:
        return {}
    with psycopg.connect(address, autocommit=True) as db:
        row = db.execute("SELECT pg_current_wal_insert_lsn() - '0/0', wal_fpi FROM pg_stat_wal").fetchone()
        assert row is not None
        port = db.info.port
        command = "ss", "-tinH", "dport", f"= :{port}"
        words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    totals = {"bytes_sent": 0, "bytes_received": 0, "log bytes": int(row[0]), "whole pages": int(row[1])}
    for name, _, value in (word.partition(":") for word in words):
        if name in ("bytes_sent", "bytes_received"):
            totals[name] += int(value)
    return totals


def table_sizes(path: Path, address: str) -> list[tuple[str, int]]:
    """Return the bytes of the largest tables and indexes; of SQLite those of the file."""
    if not address:
        return [("crawl.db", path.stat().st_size)]
    with psycopg.connect(address, autocommit=True) as db:
        return [(str(name), int(size)) for name, size in db.execute(SIZES.encode())]


def milliseconds(times: Sequence[float]) -> tuple[float, float]:
    """Return the median of *times* and the limit that 95 % of them keep."""
    return median(times) * 1e3, quantiles(times, n=20, method="inclusive")[-1] * 1e3


async def measure(path: Path, urls: int, batches: int) -> dict[str, object]:
    """Return the figures of the database at *path*."""
    shared = shared_frontier(path)
    address = shared.address if shared else ""
    figures: dict[str, object] = {"engine": ENGINES[bool(address)], "urls": urls}
    sizes = table_sizes(path, address)
    figures["bytes a URL"] = {name: round(size / urls, 1) for name, size in sizes if size >= urls / 2}
    figures["bytes a URL in all"] = round(sum(size for _, size in sizes) / urls, 1)
    async with await SqliteFrontier.open(path) as frontier:
        await frontier.join()
        rounds = min(ROUNDS, urls // PER_HOST // LEASED - 1)
        claims, leased, windows = await leases(frontier, rounds)
        before = load(address)
        times = await settled(frontier, urls, claims, batches)
        after = load(address)
    for name, seconds in (("lease", leased), ("windows", windows), ("settle", times)):
        figures[f"{name} ms: median, p95"] = [round(each, 1) for each in milliseconds(seconds)]
    figures["visits/s"] = round(batches * BATCH / sum(times))
    if address:
        figures["a batch"] = {name: round((after[name] - before[name]) / (WARM + batches)) for name in before}
    return figures


async def _made(path: Path) -> None:
    await (await SqliteFrontier.open(path)).close()


def prepared(folder: Path, addresses: Sequence[str], urls: int, settings: Mapping[str, str]) -> Iterator[Path]:
    """Fill the database at each of *addresses*, "" for SQLite; yield its place, and delete it then."""
    for address in addresses:
        path = folder / "crawl" / "crawl.db"
        path.parent.mkdir()
        write_address(path, address)
        asyncio.run(_made(path))
        if address:
            fill_postgres(address, urls, settings)
        else:
            fill_sqlite(path, urls)
        yield path
        shutil.rmtree(path.parent)


def main() -> None:
    """Fill, measure and print."""
    parser = argparse.ArgumentParser(description="What a frontier costs over the number of its URLs.")
    parser.add_argument("--urls", type=int, nargs="+", default=[200_000, 2_000_000, 10_000_000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--batches", type=int, default=200, help="batches of 64 visits")
    parser.add_argument("--memory", default="1GB", help="shared_buffers of PostgreSQL")
    parser.add_argument("--folder", type=Path, help="where crawl.db is; PostgreSQL uses /tmp")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of PostgreSQL")
    given = parser.parse_args()
    settings = SETTINGS | dict(each.split("=", 1) for each in given.set)
    with tempfile.TemporaryDirectory(prefix="urls-", dir=given.folder) as made:
        for urls in given.urls:
            with running(given.memory) as server:
                addresses = [server.new_database() if each == ENGINES[1] else "" for each in given.engines]
                for path in prepared(Path(made), addresses, urls, settings):
                    started = monotonic()
                    print(json.dumps(asyncio.run(measure(path, urls, given.batches))), flush=True)
                    print(f"  measured in {monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
