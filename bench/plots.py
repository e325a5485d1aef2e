"""Draw the plots of docs/explanation/performance.md: `python bench/plots.py`, after bench/run.py and bench/where.py."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import svg
from measure import ROOT


def rate(figures: dict[str, Any]) -> str:
    """Plot the rate over the size of the crawl."""
    curves = {name: [(done, each) for done, each, _ in points] for name, points in figures["curves"].items()}
    return svg.chart(named(curves), "URLs done", "URLs per CPU second")


def memory(figures: dict[str, Any]) -> str:
    """Plot memory over the size of the crawl."""
    curves = {name: [(done, held) for done, _, held in points] for name, points in figures["curves"].items()}
    return svg.chart(named(curves), "URLs done", "MB in memory")


def named(curves: dict[str, list[tuple[float, float]]]) -> dict[str, svg.Points]:
    """Return the curves, longest first, with readable names."""
    longest = sorted(curves, key=int, reverse=True)
    return {f"a site of {int(name):,} URLs": curves[name] for name in longest}


def where(figures: dict[str, Any]) -> str:
    """Plot the parts of one URL's time."""
    return svg.shares(figures["parts"], figures["unit"].replace("us", "µs"))


PLOTS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {  # by file: from which figures, and how
    "performance-rate.svg": ("memory.json", rate),
    "performance-memory.svg": ("memory.json", memory),
    "performance-where.svg": ("where.json", where),
}


def main() -> None:
    """Draw a plot for each file of figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--results", type=Path, default=ROOT / "build/bench", help="(%(default)s)")
    arguments.add_argument(
        "--to", type=Path, default=ROOT / "docs/explanation", help="the folder of the plots (%(default)s)"
    )
    given = arguments.parse_args()
    for name, (source, draw) in PLOTS.items():
        if (given.results / source).exists():
            figures = json.loads((given.results / source).read_text())
            (given.to / name).write_text(draw(figures), encoding="utf-8")
            print(given.to / name)
        else:
            print(f"{name} is left out: there is no {source} in {given.results}", file=sys.stderr)


if __name__ == "__main__":
    main()
