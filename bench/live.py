"""Measure what live.json costs a crawl, and what a scrape of its metrics each second costs.

    python bench/live.py --pages 1000 --rounds 6     # whole crawls, in turn
    python bench/live.py --once                      # one version of the file, by the number of leased hosts

Whole crawls on a busy machine differ by more than the cost, so `--once` measures that directly: the processor time of
both threads that make one version. A crawl makes one a second.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import archives
import testsite
from clients import archiver
from measure import Run, in_turn, measure, ratios, settle_down, spread, table
from serving import files, free_port

WITHOUT, WITH, SCRAPED = "without live.json", "with live.json", "with live.json and a scrape each second"
NO_FILE = """
import sys
from archiver.crawl import build
async def nothing(*arguments, **named): pass
build._publish = nothing
from archiver.cli.entry import main
main()
"""
HOSTS = (1, 200, 2000, 12_000)
TIMES = 50


def without(command: list[str]) -> list[str]:
    """Return *command* with a crawl that writes no live.json."""
    return [command[0], "-c", NO_FILE, *command[3:]]


class Scraper:
    """Reads metrics once a second until it is closed."""

    def __init__(self, port: int) -> None:
        self.read = 0
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(1.0):
            with suppress(OSError), urllib.request.urlopen(self._url, timeout=5) as answer:
                self.read += b"archiver_urls" in answer.read()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()


def whole_crawls(pages: int, rounds: int) -> None:
    """Crawl in turn in each way; print a table."""
    settle_down()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        paths = testsite.make(folder / "www", pages)
        seed = stack.enter_context(files(folder / "www", folder / "nginx"))
        scrapes = []

        def run(name: str) -> Run:
            port = free_port()
            command = archiver(seed, options=("--metrics", str(port)) if name == SCRAPED else ())
            scraper = Scraper(port) if name == SCRAPED else None
            try:
                done = measure(without(command) if name == WITHOUT else command, folder / "client")
            finally:
                if scraper is not None:
                    scraper.close()
                    scrapes.append(scraper.read)
            missing = len(set(paths)) - len(archives.fetched(folder / "client"))
            assert missing <= 0, f"{missing} URLs are missing"
            assert (folder / "client/out/live.json").exists() == (name != WITHOUT)
            return replace(done, done=len(paths))

        runs = in_turn({name: lambda name=name: run(name) for name in (WITHOUT, WITH, SCRAPED)}, rounds)
    rows = []
    for name, all_runs in runs.items():
        times = ratios(runs, name, WITHOUT, lambda run: run.cpu)
        cpu, wall = [run.cpu for run in all_runs], [run.wall for run in all_runs]
        rows.append((name, spread(cpu), spread(wall), spread(times), f"{statistics.mean(times):.3f}"))
    print(f"{len(paths)} URLs; scrapes: {scrapes}")
    table("Whole crawls", ("crawl", "CPU s", "wall s", "CPU, times as much", "mean"), rows)


def one_version() -> None:
    """Print the processor time of one version of live.json, by the number of leased hosts."""
    rows = []
    for hosts in HOSTS:
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, "-c", ONE.format(hosts=hosts, times=TIMES, folder=folder)]
            said = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        *milliseconds, size = (float(word) for word in said.split())
        rows.append((f"{hosts:,}", *(f"{each:.2f}" for each in milliseconds), f"{size / 1e3:.0f}"))
    head = ("leased hosts", "look at the hosts, ms", "figures, ms", "JSON and file, ms", "a scrape, ms", "KB")
    table("One version", head, rows)


ONE = """
import statistics, time
from pathlib import Path
from archiver.clock import Clock
from archiver.collection.layout import Layout
from archiver.collection.live import live_text, write_live
from archiver.config.option_types import Rate
from archiver.crawl.live.figures import CrawlFigures
from archiver.crawl.live.tally import CommitTally
from archiver.crawl.stats import Snapshot
from archiver.fetch.spool import SpoolFolder
from archiver.model import Claim, Hop
from archiver.policy.retry import NetworkState
from archiver.policy.schedule import Schedule
from archiver.tools.metrics.exposition import OPENMETRICS, live_of, metrics_text

class Shown:
    def snapshot(self, *, hosts=True):
        return Snapshot("crawling", 1.0, 2, 3, 4, 5, 6, 7, 8.0)

class Commits:
    tally = CommitTally()

folder, clock = Path({folder!r}), Clock()
schedule = Schedule(Rate(1), 2)
for host in range({hosts}):
    schedule.lease(host, f"https://host-{{host}}.example.org", 0.0)
    schedule.begin_fill(host)
    claims = [Claim(10 * host + n, f"https://h{{host}}/{{n}}", host, Hop.LINK, "L", 1, 0, 0) for n in range(3)]
    schedule.fill(host, claims, float("inf"), 3, clock.now())
figures = CrawlFigures(Shown(), schedule, Commits(), NetworkState(), SpoolFolder(folder), clock)
looks, made, written, read = [], [], [], []
for _ in range({times}):
    a = time.thread_time(); figures._look(clock.now()); b = time.thread_time()
    live = figures.live(0.001); c = time.thread_time()
    write_live(Layout(folder), live); d = time.thread_time()
    metrics_text({{"": live_of(folder)}}, OPENMETRICS); e = time.thread_time()
    looks.append(b - a); made.append(c - b); written.append(d - c); read.append(e - d)
print(*(1000 * statistics.median(each) for each in (looks, made, written, read)), len(live_text(live)))
"""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--once", action="store_true", help="one version of the file, by the number of hosts")
    given = parser.parse_args()
    if given.once:
        one_version()
    else:
        whole_crawls(given.pages, given.rounds)


if __name__ == "__main__":
    main()
