"""Measure what proxies cost: CPU time and wall time for each URL, side by side with a direct crawl.

    python bench/proxies.py --pages 1000 --rounds 3

nginx serves the made site over http. Proxies run on the servers' core, which they share with nginx.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import archives
import testsite
from clients import AT_ONCE, archiver
from measure import Run, in_turn, measure, middle, ratios, settle_down, spread, table
from serving import files

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.proxies import STARTS, RestartedProxy

DIRECT = "direct"
LEAVES_BY = "127.0.0.77"


def main() -> None:
    """Crawl in turn without and with each proxy; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    settle_down()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        paths = testsite.make(folder / "www", given.pages)
        seed = stack.enter_context(files(folder / "www", folder / "nginx"))
        proxies = [stack.enter_context(RestartedProxy(program, LEAVES_BY, folder)) for program in STARTS]
        ways = {DIRECT: (), **{name: ("--proxy", proxy.url) for name, proxy in zip(STARTS, proxies, strict=True)}}

        def run(options: tuple[str, ...]) -> Run:
            done = measure(archiver(seed, at_once=AT_ONCE, options=options), folder / "client")
            missing = len(set(paths)) - len(archives.fetched(folder / "client"))
            assert missing <= 0, f"{missing} URLs are missing with {options}; {done.fault}"
            return replace(done, done=len(paths))

        runs = in_turn({name: partial(run, options) for name, options in ways.items()}, given.rounds)
    rows = [
        (
            name,
            f"{middle([one.cpu for one in each]) / len(paths) * 1e6:.0f}",
            f"{middle([len(paths) / one.wall for one in each]):.0f}",
            spread(ratios(runs, name, DIRECT, lambda one: one.cpu)) if name != DIRECT else "",
            spread(ratios(runs, name, DIRECT, lambda one: one.wall)) if name != DIRECT else "",
        )
        for name, each in runs.items()
    ]
    head = ("way", "CPU µs per URL", "URLs per s", "CPU, times direct", "wall time, times direct")
    table(f"{len(paths)} URLs, {AT_ONCE} connections, medians of {given.rounds} rounds", head, rows)


if __name__ == "__main__":
    main()
