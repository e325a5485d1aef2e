"""Measure orders for a crawl at full speed: the time to their answers, and what an exclusion costs the crawl.

    PYTHONPATH=. python bench/orders.py --pages 8000 --waiting 1000000

nginx serves a made site. The queue also holds many URLs of it that come after all pages; half of them match the rule.
Nothing is pinned to a core. An order is answered by the crawl; its time is that between the two times in its row. What
an exclusion costs is seen in rounds: URLs are excluded and taken back in turn, each time between two stretches without
an order, and the ratios are those of a round.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import testsite
from measure import environment, spread, table
from serving import files

ORDERS = 10
QUIET = 5.0  # seconds of a stretch without an order
QUEUE = """
WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < ?)
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority)
SELECT ? || CASE n % 2 WHEN 0 THEN '/left' ELSE '/right' END || '/some-long-name-of-a-page/' || n, ?, 'L', 'L', 1, 0, 9
FROM series
"""
CAPTURES = "SELECT count(*) FROM captures WHERE timestamp BETWEEN ? AND ?"
COMMAND = (sys.executable, "-m", "archiver")
FULL_SPEED = ("--rate", "0", "--host-concurrency", "64", "--concurrency", "64", "--min-free-disk", "0")


def did(*arguments: str) -> str:
    """Run a command of archiver to its end and return what it prints."""
    ran = subprocess.run([*COMMAND, *arguments], env=environment(), capture_output=True, text=True, check=True)
    return ran.stdout


def fill(database: Path, number: int) -> None:
    """Queue *number* further URLs of the site behind its pages."""
    with closing(sqlite3.connect(database)) as db:
        host, key = db.execute("SELECT id, key FROM hosts ORDER BY id LIMIT 1").fetchone()
        db.execute(QUEUE, (number, key, host))
        db.commit()


class Window(NamedTuple):
    """A stretch of the crawl."""

    wall: float
    captures: int
    cpu: float  # seconds of all processes of the crawl

    @property
    def rate(self) -> float:
        """Return the captures a second."""
        return self.captures / self.wall

    @property
    def cost(self) -> float:
        """Return the milliseconds of CPU time of a capture."""
        return 1000 * self.cpu / max(self.captures, 1)


def used(process: int) -> float:
    """Return the CPU time of *process* and of its living children, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(used(int(child)) for child in children)


def during(process: int, database: Path, act: Callable[[], object]) -> Window:
    """Return what the crawl of *process* does while *act* runs."""
    cpu, began = used(process), time.time()
    act()
    ended, cpu = time.time(), used(process) - cpu
    with closing(sqlite3.connect(database)) as db:
        captures = db.execute(CAPTURES, (began * 1e6, ended * 1e6)).fetchone()[0]
    return Window(ended - began, captures, cpu)


def wait_for(database: Path, captures: int) -> None:
    """Wait until the crawl has so many captures."""
    while True:
        with closing(sqlite3.connect(database)) as db:
            if db.execute("SELECT count(*) FROM captures").fetchone()[0] >= captures:
                return
        time.sleep(0.1)


def rounds(process: int, crawl: Path, number: int) -> tuple[list[Window], list[Window]]:
    """Exclude half of what waits and take it back so often, each between two stretches without an order.

    Return the stretches without one, of which there is one more, and those with one.
    """
    name, database = str(crawl), crawl / "crawl.db"
    quiet, busy = [during(process, database, partial(time.sleep, QUIET))], list[Window]()
    for each in range(number):
        undo = ("--undo",) if each % 2 else ()
        busy.append(during(process, database, partial(did, "exclude", name, "/left/", *undo)))
        quiet.append(during(process, database, partial(time.sleep, QUIET)))
        print(f"{busy[-1]} between {quiet[-2]} and {quiet[-1]}", file=sys.stderr, flush=True)
    return quiet, busy


def main() -> None:
    """Crawl, give orders, exclude; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=8000)
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        testsite.make(folder / "www", given.pages)
        crawl = folder / "c"
        name, database = str(crawl), crawl / "crawl.db"
        with files(folder / "www", folder / "nginx") as seed:
            begun = [*COMMAND, "crawl", seed, "-o", name, "--max-urls", "1", *FULL_SPEED, "-qq"]
            subprocess.run(begun, env=environment(), check=False)
            fill(database, given.waiting)
            options = ("--max-urls", "0", "-qq")
            with subprocess.Popen([*COMMAND, "resume", name, *options], env=environment()) as process:
                wait_for(database, 300)
                for _ in range(ORDERS):
                    did("set", name, "concurrency=64")
                    time.sleep(0.37)  # not in step with the looks of the crawl
                shown = time.monotonic()
                preview = did("exclude", name, "/left/", "--dry-run").splitlines()[0]
                shown = time.monotonic() - shown
                quiet, busy = rounds(process.pid, crawl, given.rounds)
                alive = process.poll() is None
                process.terminate()
            with closing(sqlite3.connect(database)) as db:
                times = [row[0] for row in db.execute("SELECT answered - given FROM orders WHERE verb = 'set'")]
    assert alive, "the site is too small: the crawl has ended before the last exclusion"
    around = list(pairwise(quiet))
    rates = [2 * each.rate / (one.rate + two.rate) for each, (one, two) in zip(busy, around, strict=True)]
    costs = [2 * each.cost / (one.cost + two.cost) for each, (one, two) in zip(busy, around, strict=True)]
    table(
        f"{ORDERS} orders, {given.rounds} exclusions and undos, {given.waiting:,} URLs waiting",
        ("figure", "median (least to most)"),
        [
            ("seconds from order to answer", spread(times)),
            ("seconds of the preview command", f"{shown:.1f}"),
            ("seconds of a command", spread([each.wall for each in busy])),
            ("URLs judged a second", spread([given.waiting / each.wall for each in busy])),
            ("captures a second, without an order", spread([each.rate for each in quiet])),
            ("captures a second meanwhile, in the same round: times that", spread(rates)),
            ("CPU time of a capture meanwhile, in the same round: times that without", spread(costs)),
        ],
    )
    print(preview)


if __name__ == "__main__":
    main()
