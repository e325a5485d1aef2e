"""Measure --processes: wall time and CPU time for each URL of several hosts, side by side with one process.

    python bench/processes.py --hosts 8 --pages 600 --processes 2 --rounds 3

nginx serves the same made site as several hosts, each at an address of its own. Nothing is pinned to a core, so nginx
takes its part of all of them.
"""

import argparse
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import archives
import testsite
from clients import AT_ONCE, archiver
from measure import Run, in_turn, measure, middle, ratios, spread, table
from serving import files

ONE = "1 process"
PORT = 18999  # at every address


def main() -> None:
    """Crawl in turn with one process and with several; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--pages", type=int, default=600, help="of each host")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = testsite.make(folder / "www", given.pages)
        names = [f"127.0.0.{number + 1}" for number in range(given.hosts)]
        with files(folder / "www", folder / "nginx", f"listen {PORT};") as seed:
            del seed
            seeds = [f"http://{name}:{PORT}/" for name in names]
            wanted = [one + path[1:] for one in seeds for path in paths]

            def run(number: int) -> Run:
                options = ("--processes", str(number), "--host-concurrency", str(AT_ONCE))
                done = measure(archiver(*seeds, at_once=AT_ONCE, options=options), folder / "client")
                return replace(done, done=len(wanted), fault=done.fault or archives.missing(folder / "client", wanted))

            several = f"{given.processes} processes"
            runs = in_turn({ONE: partial(run, 1), several: partial(run, given.processes)}, given.rounds)
    rows = [
        (
            name,
            f"{middle([one.done / one.wall for one in each]):.0f}",
            f"{middle([one.cpu / one.done for one in each]) * 1e6:.0f}",
            spread(ratios(runs, name, ONE, lambda one: one.done / one.wall)) if name != ONE else "",
            spread(ratios(runs, name, ONE, lambda one: one.cpu)) if name != ONE else "",
            "; ".join({one.fault for one in each if one.fault}),
        )
        for name, each in runs.items()
    ]
    title = f"{given.hosts} hosts with {len(paths)} URLs each, medians of {given.rounds} rounds"
    table(title, ("crawl", "URLs per s", "µs of CPU per URL", "times the URLs per s", "times the CPU", "faults"), rows)


if __name__ == "__main__":
    main()
