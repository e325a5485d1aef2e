"""Measure a frontier with many URLs: inserting links, refilling, finding due hosts, and a resume.

    python bench/frontier.py --urls 10000000 --directory /var/tmp/frontier

It makes DIRECTORY/crawl.db once (some minutes for ten million URLs, 2 GB) and prints a table. Everything goes through
the frontier as in a crawl, with every commit synced. CPU time is that of all threads.
"""

import argparse
import asyncio
import random
import resource
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic, process_time

from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Capture, Claim, Event, FileState, Hop, NewUrl, Settlement, Span

BATCH, LINKS, NEW = 64, 35, 3.5  # visits committed together, links of a page, and new ones among them
ROWS = 30  # URLs of a host that are found together
WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heath")
SECTIONS = ("articles", "news", "catalogue/products", "blog/archive", "forum/threads", "media/images", "about")
MOST_WAIT = 60.0  # seconds for the first request of a resume


def hosts(urls: int) -> list[tuple[str, int]]:
    """Return name and number of URLs of each host: a very large one, ten large ones, a thousand small ones."""
    sizes = [("https://www.example.org", urls * 2 // 5)]
    sizes += [(f"https://shop{number}.example.com", urls // 25) for number in range(10)]
    return sizes + [(f"https://host{number}.example.net", urls // 5000) for number in range(1000)]


def address(host: str, row: int, number: int) -> str:
    """Return a URL as sites have them: all different, in no order."""
    mixed = (number * 2654435761 + row * 97) & 0xFFFFFFFF
    words = f"{WORDS[mixed >> 8 & 7]}-{WORDS[mixed >> 16 & 7]}"
    return f"{host}/{SECTIONS[mixed % len(SECTIONS)]}/{words}/{mixed:08x}-{number}.html"


def rows(sizes: Sequence[tuple[str, int]]) -> Iterator[tuple[object, ...]]:
    """Yield rows of urls in the order in which a crawl finds them: some of one host, then some of another."""
    chance = random.Random(1)
    places = [row for row, (_, size) in enumerate(sizes) for _ in range(-(-size // ROWS))]
    chance.shuffle(places)
    done = [0] * len(sizes)
    for row in places:
        host, size = sizes[row]
        for number in range(done[row], min(size, done[row] + ROWS)):
            depth = 1 + number % 6
            state = "archived" if number % 20 == 0 else "waiting"
            yield address(host, row, number), row + 1, state, "L" * depth, depth, 1 + depth, int(state == "archived")
        done[row] += ROWS


def make(path: Path, urls: int) -> None:
    """Make the database with its own schema; tables derived from the rows are filled at the end."""
    asyncio.run(_made(path))
    sizes = hosts(urls)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -2000000"):
            db.execute(f"PRAGMA {pragma}")
        kept = "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = 'urls' AND type <> 'table' AND sql <> ''"
        parts = db.execute(kept).fetchall()
        for kind, name, _ in parts:
            db.execute(f"DROP {kind} {name}")
        db.execute("BEGIN")
        db.executemany("INSERT INTO hosts (id, key) VALUES (?, ?)", [(n, key) for n, (key, _) in enumerate(sizes, 1)])
        db.executemany(
            "INSERT INTO urls (url, host, state, hop, path, depth, off_scope_hops, priority, tries, via, seed) "
            "VALUES (?, ?, ?, 'L', ?, ?, 0, ?, ?, 1, 1)",
            rows(sizes),
        )
        db.execute("INSERT INTO seeds VALUES (1, 0)")
        for _, _, sql in parts:
            db.execute(sql)
        db.execute(
            "UPDATE hosts SET waiting = total - past, archived = past, visited = past FROM (SELECT host, "
            "count(*) AS total, sum(state = 'archived') AS past FROM urls GROUP BY host) WHERE host = hosts.id"
        )
        db.execute("COMMIT")


async def _made(path: Path) -> None:
    await (await SqliteFrontier.open(path)).close()


class Offers:
    """Batches of visits whose pages link to known URLs and to some new ones."""

    def __init__(self, path: Path, *, anywhere: bool) -> None:
        self._chance = random.Random()
        self._db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        self._last = self._db.execute("SELECT max(id) FROM urls").fetchone()[0]
        self._anywhere = anywhere
        self._common = self._known(400)
        self._name = f"bench-{self._chance.getrandbits(40):x}.warc.gz"
        self._number = 0

    def _known(self, count: int) -> list[NewUrl]:
        ids = [(self._chance.randrange(1, self._last),) for _ in range(count)]
        found = [self._db.execute("SELECT url, path, depth, priority FROM urls WHERE id = ?", row) for row in ids]
        return [NewUrl(url, Hop.LINK, path, depth, 0, priority) for url, path, depth, priority in map(next, found)]

    def _new(self) -> NewUrl:
        self._number += 1
        host = f"https://host{self._chance.randrange(200)}.example.net"
        return NewUrl(
            f"{host}/{self._name}/{self._chance.getrandbits(32):08x}-{self._number}", Hop.LINK, "LLL", 3, 0, 4
        )

    def batch(self) -> tuple[list[Settlement], list[FileState]]:
        """Return the next batch."""
        first = self._chance.randrange(1, self._last - 50 * BATCH)
        waiting = "SELECT id, url, host, path, depth FROM urls WHERE id > ? AND state = 'waiting' LIMIT ?"
        settlements = []
        for row, url, host, path, depth in self._db.execute(waiting, (first, BATCH)).fetchall():
            claim = Claim(row, url, host, Hop.LINK, path, depth, 0, 0)
            new = int(NEW) + (self._chance.random() < NEW % 1)
            rare = self._known(LINKS - new if self._anywhere else 6)
            found = [self._new() for _ in range(new)] + rare
            found += self._chance.choices(self._common, k=LINKS - len(found))
            settlements.append(self._settlement(claim, tuple(found)))
        return settlements, [FileState(self._name, self._number * 5000, closed=False)]

    def _settlement(self, claim: Claim, found: tuple[NewUrl, ...]) -> Settlement:
        self._number += 1
        at = self._number * 5000
        spans = Span(at, 4000), Span(at + 4000, 400), Span(at + 4400, 600)
        digest = f"sha1:{self._chance.getrandbits(160):040X}"
        capture = Capture(claim.url, 10**15 + at, 200, "text/html", digest, 12000, 12300, self._name, *spans)
        return Settlement(claim, Event.CAPTURE, 200, found=found, capture=capture, settled=1e9, duration=0.1)


async def insert(path: Path, batches: int, *, anywhere: bool) -> str:
    """Measure the insertion of links; the first quarter of the batches is a warm-up."""
    frontier = await SqliteFrontier.open(path)
    source = Offers(path, anywhere=anywhere)
    links = pages = 0
    clock = cpu = 0.0
    for number in range(-batches // 4, batches):
        settlements, files = source.batch()
        started, used = monotonic(), process_time()
        await frontier.settle(settlements, files)
        if number >= 0:
            clock, cpu = clock + monotonic() - started, cpu + process_time() - used
            links, pages = links + sum(len(each.found) for each in settlements), pages + len(settlements)
    await frontier.close()
    rates = f"{links / clock:9,.0f} links/s by the clock, {links / cpu:9,.0f} by CPU time"
    return f"{rates}, {cpu / pages * 1e6:6.0f} µs a page"


async def windows(path: Path) -> str:
    """Measure the look-up of the next URLs of the largest host and of a small one."""
    frontier = await SqliteFrontier.open(path)
    words = []
    for name, host in (("largest", 1), ("small", 1000)):
        used = process_time()
        for _ in range(100):
            await frontier.window(host, 2e9, 256, prerequisites=False)
        words.append(f"{name} host {(process_time() - used) * 10:5.2f} ms")
    await frontier.close()
    return ", ".join(words) + " for 256 URLs"


async def due(path: Path) -> str:
    """Measure the look-up of due hosts, with all but ten leased."""
    frontier = await SqliteFrontier.open(path)
    rows = await frontier.due_hosts(2e9, 1_000_000, ())
    leased = frozenset(row.id for row in rows[:-10])
    used = process_time()
    for _ in range(100):
        await frontier.due_hosts(2e9, 64, leased)
    await frontier.close()
    return f"{(process_time() - used) * 10:.2f} ms with {len(leased)} hosts leased"


async def resume(directory: Path) -> str:
    """Return the seconds of a whole `archiver resume` until its first request, and its memory then."""
    heard = asyncio.Event()

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set()
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        key = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with closing(sqlite3.connect(directory / "crawl.db")) as db, db:
            db.executescript("DELETE FROM captures; DELETE FROM warcs")  # of an earlier run of this: there are no files
            db.execute("INSERT INTO hosts (key, not_before) VALUES (?, -1)", (key,))  # goes first
        (directory / "crawl.toml").write_text(f'seeds = ["{key}/"]\nrate = "0"\n', "utf-8")
        command = (sys.executable, "-m", "archiver", "resume", str(directory), "-qq")
        started = monotonic()
        process = await asyncio.create_subprocess_exec(*command)
        try:
            await asyncio.wait_for(heard.wait(), MOST_WAIT)
            took = monotonic() - started
            status = Path(f"/proc/{process.pid}/status").read_text("ascii")  # noqa: ASYNC240
        finally:
            process.kill()
            await process.wait()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return f"{took:.2f} s until the first request, {peak / 1024:.0f} MB"


def main() -> None:
    """Make what is missing, measure, and print."""
    parser = argparse.ArgumentParser(description="What a frontier with many URLs costs.")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--batches", type=int, default=60)
    given = parser.parse_args()
    directory: Path = given.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "crawl.db"
    if not path.exists():
        started = monotonic()
        make(path, given.urls)
        print(f"made {given.urls:,} URLs, {path.stat().st_size >> 20} MB, in {monotonic() - started:.0f} s", flush=True)
    print("resume           ", asyncio.run(resume(directory)), flush=True)
    print("hosts that are due", asyncio.run(due(path)), flush=True)
    print("windows          ", asyncio.run(windows(path)), flush=True)
    for name, anywhere in (("a site's links    ", False), ("links of anywhere ", True)):
        print(name, asyncio.run(insert(path, given.batches, anywhere=anywhere)), flush=True)
    print(f"memory of all this {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main()
