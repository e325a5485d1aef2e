"""Measure orders for a crawl at full speed: the time to their answers, and what an exclusion costs the crawl.

    PYTHONPATH=. python bench/orders.py --pages 8000 --waiting 1000000

nginx serves a made site. The queue also holds many URLs of another host that are due much later; half of them match the
rule. Nothing is pinned to a core. An order is answered by the crawl; its time is that between the two times in its row.
The rate is that of captures a second, while the exclusion runs and in as much time before it.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import testsite
from measure import environment, middle, spread, table
from serving import files

LATER = 4e9  # seconds since the epoch
ORDERS = 10
QUEUE = """
WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < ?)
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, due)
SELECT 'http://later.example/' || CASE n % 2 WHEN 0 THEN 'left' ELSE 'right' END || '/some-long-name-of-a-page/' || n,
       ?, 'L', 'L', 1, 0, 2, ? FROM series
"""
CAPTURES = "SELECT count(*) FROM captures WHERE timestamp BETWEEN ? AND ?"
COMMAND = (sys.executable, "-m", "archiver")
FULL_SPEED = ("--rate", "0", "--host-concurrency", "64", "--concurrency", "64", "--min-free-disk", "0")


def did(*arguments: str) -> str:
    """Run a command of archiver to its end and return what it prints."""
    ran = subprocess.run([*COMMAND, *arguments], env=environment(), capture_output=True, text=True, check=True)
    return ran.stdout


def fill(database: Path, number: int) -> None:
    """Queue *number* URLs that are due much later."""
    with closing(sqlite3.connect(database)) as db:
        host = db.execute("INSERT INTO hosts (key) VALUES ('http://later.example') RETURNING id").fetchone()[0]
        db.execute(QUEUE, (number, host, LATER))
        db.commit()


def rate(database: Path, begin: float, end: float) -> float:
    """Return the captures a second between two times."""
    with closing(sqlite3.connect(database)) as db:
        return float(db.execute(CAPTURES, (begin * 1e6, end * 1e6)).fetchone()[0]) / (end - begin)


def wait_for(database: Path, captures: int) -> None:
    """Wait until the crawl has so many captures."""
    while True:
        with closing(sqlite3.connect(database)) as db:
            if db.execute("SELECT count(*) FROM captures").fetchone()[0] >= captures:
                return
        time.sleep(0.1)


def main() -> None:
    """Crawl, give orders, exclude; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=8000)
    parser.add_argument("--waiting", type=int, default=1_000_000)
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
                began = time.time()
                answer = did("exclude", name, "/left/").strip()
                ended = time.time()
                alive = process.poll() is None
                before, meanwhile = rate(database, 2 * began - ended, began), rate(database, began, ended)
                process.terminate()
            rows = [json.loads(line) for line in did("orders", name, "--json").splitlines()]
            with closing(sqlite3.connect(database)) as db:
                times = [row[0] for row in db.execute("SELECT answered - given FROM orders WHERE verb = 'set'")]
    assert alive, "the site is too small: the crawl has ended before the exclusion"
    head = ("figure", "value")
    table(
        f"{len(rows)} orders, {given.waiting:,} URLs waiting",
        head,
        [
            ("seconds from order to answer (least to most)", spread(times)),
            ("… and the longest", f"{max(times):.2f}"),
            ("seconds of the preview command", f"{shown:.1f}"),
            ("seconds of the exclusion command", f"{ended - began:.1f}"),
            ("captures a second before it", f"{before:.0f}"),
            ("captures a second meanwhile", f"{meanwhile:.0f} ({100 * meanwhile / max(before, 1e-9) - 100:+.0f} %)"),
        ],
    )
    print(preview, answer, f"median {middle(times):.2f} s", sep="\n")


if __name__ == "__main__":
    main()
