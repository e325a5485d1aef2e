"""Sizes and folders of the benchmarks, and the parts that several share: the made site, and a crawl of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import archives
import testsite
from clients import AT_ONCE, Client
from measure import Run, in_turn, measure

FAULTS = "faults"  # key in a case's result: why some of its figures do not count


def size(default: float, words: str) -> Any:
    """Return a field of the plan, which is also an option of the command line."""
    return field(default=default, metadata={"help": words})


@dataclass(frozen=True)
class Plan:
    """Sizes of all cases; `SMALL` is for a quick test of the benchmarks themselves."""

    folder: Path
    rounds: int = size(3, "of each client, in turn")
    pages: int = size(5000, "of the site")
    many: int = size(50_000, "pages of the large site of case memory")
    delay: float = size(0.1, "seconds before each answer in case latency")
    at_once: int = size(64, "connections in case latency")
    patience: float = size(30, "seconds after which a peer is stopped in case latency, where its rate is known")
    hosts: int = size(10_000, "in case hosts")
    answer: float = size(5, "seconds before each page in case hosts")
    large: int = size(5_000_000_000, "bytes of the large file in case large")
    line: float = size(100_000_000, "bytes of it in a second")
    around: float = size(20, "seconds before and after it")
    crowd: int = size(1000, "small hosts in case fairness")
    big: int = size(1_000_000, "URLs of the big host in case fairness")
    interval: float = size(10, "seconds between two requests of a host in case fairness")

    def site(self, pages: int) -> tuple[Path, list[str]]:
        """Return a site of so many pages, made on first use, and the paths of its URLs."""
        folder = self.folder / f"site-{pages}"
        listed = folder / "urls.txt"  # written last
        if not listed.exists():
            paths = testsite.make(folder / "www", pages)
            listed.write_text("\n".join(paths))
        return folder / "www", listed.read_text().split("\n")


SMALL: dict[str, float] = {
    "rounds": 1,
    "pages": 10,
    "many": 12,
    "delay": 0.002,
    "at_once": 8,
    "hosts": 30,
    "answer": 0.1,
    "large": 20_000_000,
    "line": 20_000_000,
    "around": 0.5,
    "crowd": 5,
    "big": 50,
    "interval": 0.05,
}


def crawled(client: Client, seed: str, paths: Sequence[str], folder: Path, at_once: int = AT_ONCE) -> Run:
    """Crawl a site once with one client; the run counts only if it is complete."""
    run = measure(client.command(seed, at_once), folder, good=client.good)
    wanted = [seed + path[1:] for path in paths]
    fault = run.fault or archives.missing(folder, wanted)
    return replace(run, done=len(paths), stored=archives.megabytes(folder), fault=fault)


def race(clients: Sequence[Client], seed: str, paths: Sequence[str], plan: Plan) -> dict[str, list[Run]]:
    """Crawl the same site with all clients in turn."""
    folder = plan.folder / "client"
    return in_turn({each.name: partial(crawled, each, seed, paths, folder) for each in clients}, plan.rounds)


def faults(runs: dict[str, list[Run]]) -> list[str]:
    """Return why some runs do not count."""
    return [f"{name}: {run.fault}" for name, each in runs.items() for run in each if run.fault]
