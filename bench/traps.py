"""Measure what the trap rules keep and cost: `python bench/traps.py`.

It crawls each family of real sites and each trap of `fixtures/` without a network, by the rules of a real crawl, and
prints tables. With --stops, each crawl stops after so many requests and is resumed.

--cost FOLDER measures the CPU time for the text of one page: median and minimum of nine rounds over the HTML files
below FOLDER.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

TOP = Path(__file__).parents[1]
sys.path.insert(0, str(TOP))

from archiver.policy.novelty import Novelty  # noqa: E402
from archiver.policy.url_forms import pattern  # noqa: E402 - the project need not be installed
from fixtures import endless_sites, near_copies, scarce_sites, trap_lookalikes  # noqa: E402 - need not be installed
from fixtures.simulated_crawl import Simulation  # noqa: E402

MOST_PAGES = 400
ROUNDS = 9


def rows(stops: Sequence[int]) -> Iterator[str]:
    """Yield the table in Markdown, of crawls that stop after so many requests and are resumed."""
    yield "| real site | real pages | kept | requests |\n|---|---:|---:|---:|\n"
    families = list(map(trap_lookalikes.named_family, trap_lookalikes.FAMILIES))
    others = {**near_copies.SITES, **scarce_sites.SITES}
    for family in (*families, *(trap_lookalikes.family(name, site()) for name, site in others.items())):
        simulation = _crawled(family.site, stops)
        kept = family.real & {trap_lookalikes.plain(target) for target in simulation.asked}
        yield f"| {family.name} | {len(family.real):,} | {len(kept):,} | {len(simulation.asked):,} |\n"
    yield "\n| trap | requests until it is held | URLs held |\n|---|---:|---:|\n"
    traps = {name: endless_sites.alone(name) for name in endless_sites.TRAPS}
    traps |= {name: site() for name, site in {**near_copies.TRAPS, **scarce_sites.TRAPS}.items()}
    for name, site in traps.items():
        simulation = _crawled(site, stops)
        yield f"| {name} | {len(simulation.asked):,} | {sum(simulation.held.values()):,} |\n"


def _crawled(site: trap_lookalikes.Site, stops: Sequence[int]) -> Simulation:
    simulation = Simulation(site)
    for stop in stops:
        simulation.run(stop)
    return simulation.run()


def cost(folder: Path) -> str:
    """Return microseconds per page below *folder*, and for pages with possible variants, which are kept longer."""
    pages = [path.read_bytes() for path in sorted(folder.rglob("*.html"))[:MOST_PAGES]]
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for varied, found in times.items():
            found.append(_round(pages, varied=varied))
    mean = sum(map(len, pages)) / len(pages)
    once, again = (
        f"{statistics.median(found) * 1e6:.0f} µs a page (at best {min(found) * 1e6:.0f})" for found in times.values()
    )
    return f"{once}; {again} if it may have variants; {len(pages)} pages of {mean / 1000:.0f} kB on the average"


def _round(pages: list[bytes], *, varied: bool) -> float:
    novelty = Novelty()
    begun = time.process_time()
    for number, page in enumerate(pages):
        address = f"http://example.org/page/{number}"
        novelty.worth(address, pattern(address), page, markup=True, varied=varied)
    return (time.process_time() - begun) / len(pages)


def main() -> None:
    """Print the tables, or the cost of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cost", type=Path, metavar="FOLDER")
    parser.add_argument("--stops", type=int, nargs="+", default=(), metavar="N")
    asked = parser.parse_args()
    print(cost(asked.cost) if asked.cost else "".join(rows(asked.stops)))


if __name__ == "__main__":
    main()
