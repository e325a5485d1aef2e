"""Measure --processes: wall time and CPU time for each URL of several hosts, side by side with one process.

    python bench/processes.py --hosts 8 --pages 600 --processes 2 --rounds 3

nginx serves several made sites with different content, each at an address of its own. Nothing is pinned to a core, so
nginx takes its part of all of them. In the last row as many crawls run at the same time, each of its part of the
hosts. They share nothing, so no crawler on this machine can do better.
"""

import argparse
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import archives
import testsite
from clients import AT_ONCE, SLOTS, archiver
from measure import Run, in_turn, measure, middle, ratios, spread, table
from serving import files

ONE = "1 process"
PORT = 18999  # at every address
AT_ALL_HOSTS = ("--host-concurrency", str(AT_ONCE), "--concurrency")


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
        names = [f"127.0.0.{number + 1}" for number in range(given.hosts)]
        paths = {name: testsite.make(folder / "www" / name, given.pages, seed) for seed, name in enumerate(names)}
        with files(folder / "www" / "$server_addr", folder / "nginx", f"listen {PORT};"):
            seeds = [f"http://{name}:{PORT}/" for name in names]
            wanted = [f"http://{name}:{PORT}{path}" for name in names for path in paths[name]]

            def run(number: int) -> Run:
                options = ("--processes", str(number), *AT_ALL_HOSTS, str(given.processes * SLOTS * AT_ONCE))
                done = measure(archiver(*seeds, at_once=AT_ONCE, options=options), folder / "client")
                return replace(done, done=len(wanted), fault=done.fault or archives.missing(folder / "client", wanted))

            def apart() -> Run:
                parts = [seeds[part :: given.processes] for part in range(given.processes)]
                folders = [folder / "client" / str(part) for part in range(given.processes)]
                crawls = " ".join(f"({_command(part, at)}) &" for part, at in zip(parts, folders, strict=True))
                done = measure(["sh", "-c", f"{crawls} wait"], folder / "client")
                lacks = (archives.missing(at, _of(wanted, part)) for part, at in zip(parts, folders, strict=True))
                return replace(done, done=len(wanted), fault=done.fault or "; ".join(filter(None, lacks)))

            several, alone = f"{given.processes} processes", f"{given.processes} crawls that share nothing"
            ways = {ONE: partial(run, 1), several: partial(run, given.processes), alone: apart}
            runs = in_turn(ways, given.rounds)
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
    title = f"{given.hosts} hosts with {len(wanted)} URLs in all, medians of {given.rounds} rounds"
    table(title, ("crawl", "URLs per s", "µs of CPU per URL", "times the URLs per s", "times the CPU", "faults"), rows)


def _command(seeds: Sequence[str], folder: Path) -> str:
    """Return the command of the shell that crawls *seeds* in *folder*."""
    crawl = shlex.join(archiver(*seeds, at_once=AT_ONCE, options=(*AT_ALL_HOSTS, str(SLOTS * AT_ONCE))))
    return f"mkdir {folder} && cd {folder} && {crawl}"


def _of(addresses: Sequence[str], seeds: Sequence[str]) -> list[str]:
    """Return those of *addresses* that lie below one of *seeds*."""
    return [address for address in addresses if address.startswith(tuple(seeds))]


if __name__ == "__main__":
    main()
