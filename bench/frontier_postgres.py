"""Measure the frontier alone in PostgreSQL, beside the one in SQLite: settling with several clients, and leasing.

    PYTHONPATH=. python bench/frontier_postgres.py --urls 2000000

It starts a PostgreSQL server of its own, fills a database of each kind, and prints a table. A client is a process that
settles batches of visits of its own hosts; a tenth of their links lead to hosts of others. Every commit is synced. The
clients, the server and this program share all cores. CPU time is that of all threads of a client.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from time import monotonic, process_time

import psycopg

from archiver.frontier.address import write_address
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Capture, Claim, Event, FileState, Hop, NewUrl, Settlement, Span
from fixtures.postgres import running

BATCH, LINKS, NEW = 64, 30, 3  # visits committed together, links of a page, and new ones among them
HOSTS = 1000
COMMON = 400  # links that most pages of a site have
RARE = 6  # known links of a page that other pages do not have, with --links site
FILL_HOSTS = "INSERT INTO hosts (id, key) SELECT n, 'https://host' || n || '.example.net' FROM series"
FILL_URLS = """
INSERT INTO urls (id, url, host, state, hop, path, depth, off_scope_hops, priority, via, seed)
SELECT n, 'https://host' || (n % {hosts} + 1) || '.example.net/section/page-' || n || '.html', n % {hosts} + 1,
       'waiting', 'L', 'LLL', 3, 0, 4, 1, 1 FROM series
"""
COUNT = "UPDATE hosts SET waiting = {each}"
WARM = 4  # batches that do not count
LEASED = 256


def address_of(number: int) -> str:
    """Return the URL in row *number*."""
    return f"https://host{number % HOSTS + 1}.example.net/section/page-{number}.html"


def scripts(urls: int, hosts: int, series: str) -> list[str]:
    """Return statements that fill a database; *series* counts to a number."""
    first, second = (series.format(last) for last in (hosts, urls))
    each = COUNT.format(each=urls // hosts)
    return [f"{first} {FILL_HOSTS}", f"{second} {FILL_URLS.format(hosts=hosts)}", each]


def fill_sqlite(path: Path, urls: int, hosts: int) -> None:
    """Fill the database at *path*."""
    series = "WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {})"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        (trigger,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'urls_added'").fetchone()
        db.execute("BEGIN")
        db.execute("DROP TRIGGER urls_added")
        for sql in scripts(urls, hosts, series):
            db.execute(sql)
        db.execute(trigger)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def fill_postgres(address: str, urls: int, hosts: int) -> None:
    """Fill the database at *address*, as autovacuum would leave it."""
    series = "WITH series (n) AS (SELECT generate_series(1, {}))"
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("ALTER TABLE urls DISABLE TRIGGER urls_added")
        for sql in scripts(urls, hosts, series):
            db.execute(sql.encode())
        db.execute("ALTER TABLE urls ENABLE TRIGGER urls_added")
        for table in ("hosts", "urls"):
            db.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}".encode())
        db.execute("VACUUM ANALYZE")
        db.execute("CHECKPOINT")


class Visits:
    """Batches of visits of one client, whose hosts are its own."""

    def __init__(self, client: int, clients: int, urls: int, *, anywhere: bool) -> None:
        self._chance = random.Random()  # each round visits other rows
        self._client, self._clients = client, clients
        self._urls = urls
        self._anywhere = anywhere
        self._common = [self._link(self._any_row()) for _ in range(COMMON)]
        self._name = f"client{client}-{random.SystemRandom().getrandbits(40):x}"
        self._visited: set[int] = set()
        self._number = 0

    def _own_host(self) -> int:
        return self._client + self._clients * self._chance.randrange(HOSTS // self._clients)

    def _row(self, host: int) -> int:
        return host + HOSTS * self._chance.randrange(1, self._urls // HOSTS)

    def _any_row(self) -> int:
        return self._row(self._own_host() if self._chance.random() < 0.9 else self._chance.randrange(HOSTS))

    def _link(self, row: int) -> NewUrl:
        return NewUrl(address_of(row), Hop.LINK, "LLL", 3, 0, 4)

    def _new(self) -> NewUrl:
        self._number += 1
        host = self._any_row() % HOSTS + 1
        return NewUrl(f"https://host{host}.example.net/{self._name}/{self._number}", Hop.LINK, "LLLL", 4, 0, 5)

    def batch(self) -> tuple[list[Settlement], list[FileState]]:
        """Return the next batch."""
        visits = []
        while len(visits) < BATCH:
            row = self._row(self._own_host())
            if row in self._visited:
                continue
            self._visited.add(row)
            claim = Claim(row, address_of(row), row % HOSTS + 1, Hop.LINK, "LLL", 3, 0, 4)
            found = [self._new() for _ in range(NEW)]
            rare = LINKS - NEW if self._anywhere else RARE
            found += [self._link(self._any_row()) for _ in range(rare)]
            found += self._chance.choices(self._common, k=LINKS - len(found))
            visits.append(self._settlement(claim, tuple(found)))
        return visits, [FileState(f"{self._name}.warc.gz", self._number * 5000, closed=False)]

    def _settlement(self, claim: Claim, found: tuple[NewUrl, ...]) -> Settlement:
        at = self._number * 5000
        spans = Span(at, 4000), Span(at + 4000, 400), Span(at + 4400, 600)
        digest = f"sha1:{self._chance.getrandbits(160):040X}"
        name = f"{self._name}.warc.gz"
        capture = Capture(claim.url, 10**15 + at, 200, "text/html", digest, 12000, 12300, name, *spans)
        return Settlement(claim, Event.CAPTURE, 200, found=found, capture=capture, settled=1e9, duration=0.1)


async def settle(path: Path, visits: Visits, batches: int) -> None:
    """Settle *batches* after a line on standard input, and print clock and CPU time of that."""
    made = [visits.batch() for _ in range(WARM + batches)]
    async with await SqliteFrontier.open(path) as frontier:
        await frontier.join()
        for settlements, files in made[:WARM]:
            await frontier.settle(settlements, files)
        print("ready", flush=True)
        sys.stdin.readline()
        started, used = monotonic(), process_time()
        for settlements, files in made[WARM:]:
            await frontier.settle(settlements, files)
        print(json.dumps((started, monotonic(), process_time() - used)), flush=True)


def race(path: Path, clients: int, given: argparse.Namespace) -> tuple[float, float]:
    """Let *clients* settle at the same time; return visits a second, and milliseconds of CPU of a client a visit."""
    words = ("--client", str(path), "--urls", str(given.urls), "--batches", str(given.batches), "--links", given.links)
    pipe = subprocess.PIPE
    begun = [
        subprocess.Popen(
            [sys.executable, __file__, *words, "--number", f"{each}/{clients}"], stdin=pipe, stdout=pipe, text=True
        )
        for each in range(clients)
    ]
    try:
        for each in begun:
            assert each.stdout is not None
            each.stdout.readline()
        for each in begun:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        times = [json.loads(each.communicate(timeout=600)[0]) for each in begun]
    finally:
        for each in begun:
            each.kill()
            each.wait()
    visits = clients * given.batches * BATCH
    clock = max(end for _, end, _ in times) - min(start for start, _, _ in times)
    return visits / clock, sum(cpu for _, _, cpu in times) / visits * 1e3


async def lease(path: Path) -> list[float]:
    """Return the seconds that it takes to find and lease hosts, several times; another crawler has some."""
    times = []
    async with await SqliteFrontier.open(path) as other, await SqliteFrontier.open(path) as frontier:
        for each in (other, frontier):
            await each.join()
        rows = await other.due_hosts(2e9, LEASED, ())
        await other.lease({row.id: str(row.id) for row in rows})
        leased: set[int] = set()
        for _ in range(20):
            started = monotonic()
            rows = await frontier.due_hosts(2e9, LEASED, leased)
            got = await frontier.lease({row.id: str(row.id) for row in rows})
            times.append(monotonic() - started)
            assert len(got) == LEASED
            leased |= got.keys()
    return times


def spread(values: list[float], form: str) -> str:
    """Return the median, the least and the most of *values*."""
    return " ".join(("{:" + form + "}").format(each) for each in (median(values), min(values), max(values)))


async def _made(path: Path) -> None:
    await (await SqliteFrontier.open(path)).close()


def prepared(folder: Path, new_database: Callable[[], str], urls: int, hosts: int) -> Iterator[tuple[str, Path]]:
    """Yield the name of each engine and the place of its database, which is filled."""
    for name in ("SQLite", "PostgreSQL"):
        path = folder / f"{name}-{hosts}" / "crawl.db"
        path.parent.mkdir()
        address = new_database() if name == "PostgreSQL" else ""
        write_address(path, address)
        asyncio.run(_made(path))
        if address:
            fill_postgres(address, urls, hosts)
        else:
            fill_sqlite(path, urls, hosts)
        yield name, path


def compare(given: argparse.Namespace) -> None:
    """Fill databases, measure and print."""
    with tempfile.TemporaryDirectory(prefix="frontier-") as made, running("512MB") as server:
        folder = Path(made)
        if given.batches:
            places = list(prepared(folder, server.new_database, given.urls, HOSTS))
            kinds = [(name, path, clients) for name, path in places for clients in (1, 4)]
            found: dict[tuple[str, int], list[tuple[float, float]]] = {}
            for _ in range(given.rounds):
                for name, path, clients in kinds:
                    found.setdefault((name, clients), []).append(race(path, clients, given))
            for (name, clients), rounds in found.items():
                base = found["SQLite", clients]
                rates, cpu = ([each[part] for each in rounds] for part in (0, 1))
                ratio = [one[0] / other[0] for one, other in zip(rounds, base, strict=True)]
                costs = [one[1] / other[1] for one, other in zip(rounds, base, strict=True)]
                print(
                    f"{name}, clients: {clients}; {spread(rates, ',.0f')} visits/s, {spread(ratio, '.2f')} of SQLite;"
                )
                print(f"    CPU {spread(cpu, '.3f')} ms a visit, {spread(costs, '.2f')} of SQLite", flush=True)
        if given.hosts:
            for name, path in prepared(folder, server.new_database, given.hosts, given.hosts):
                times = [1e3 * each for each in asyncio.run(lease(path))]
                print(f"{name}, {given.hosts:,} hosts wait: {spread(times, '.1f')} ms to lease {LEASED}", flush=True)


def main() -> None:
    """Measure, or be a client."""
    parser = argparse.ArgumentParser(description="What a frontier in PostgreSQL costs. Figures: median, least, most.")
    parser.add_argument("--urls", type=int, default=200_000)
    parser.add_argument("--hosts", type=int, default=1_000_000, help="hosts that wait while some are leased; 0: none")
    parser.add_argument("--batches", type=int, default=40, help="batches of each client in a round; 0: none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--links", choices=("site", "anywhere"), default="site", help="where known links lead")
    parser.add_argument("--client", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--number", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client is None:
        compare(given)
        return
    client, clients = map(int, given.number.split("/"))
    visits = Visits(client, clients, given.urls, anywhere=given.links == "anywhere")
    asyncio.run(settle(given.client, visits, given.batches))


if __name__ == "__main__":
    main()
