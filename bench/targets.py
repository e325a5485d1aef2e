"""Fill in the table of targets in docs/explanation/performance.md from the results of bench/run.py.

A row keeps its text if its case or its peer was not run, or if it is measured elsewhere and filled in by hand.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from clients import OURS
from measure import ROOT, middle

Figures = dict[str, Any]
HEAD = ("figure", "target", "reached", "measured", "case")
UNKNOWN = "not measured yet"


class Target(NamedTuple):
    """A row: the target, the case that measures it, and a function that reads the result from its figures."""

    figure: str
    target: str
    case: str
    reached: Callable[[Figures], str]


def good(figures: Figures, client: str) -> list[Figures]:
    """Return the valid runs of a client."""
    return [run for run in figures["runs"].get(client, ()) if not run["fault"]]


def faster(figures: Figures, peer: str, per: str) -> str:
    """Return how many times as many URLs per unit of *per* (cpu or wall) as *peer*, round by round."""
    pairs = zip(figures["runs"][OURS], figures["runs"].get(peer, ()), strict=False)
    counted = [(ours, theirs) for ours, theirs in pairs if not ours["fault"] and not theirs["fault"]]
    each = [ours["done"] / ours[per] / (theirs["done"] / theirs[per]) for ours, theirs in counted]
    return f"{middle(each):.3g} times" if each else UNKNOWN


def memory(figures: Figures, client: str) -> str:
    """Return the peak of memory."""
    return f"{middle([run['megabytes'] for run in good(figures, client)]):.0f} MB"


def largest(figures: Figures) -> str:
    """Return the name of the largest crawl of the case memory."""
    return str(max(figures["runs"], key=int))


def reader(figures: Figures, name: str, peer: str) -> str:
    """Return how many times the CPU time of *peer* a reader takes, round by round."""
    pairs = zip(figures["runs"][name], figures["runs"].get(peer, ()), strict=False)
    each = [ours["cpu"] / theirs["cpu"] for ours, theirs in pairs if not ours["fault"] and not theirs["fault"]]
    return f"{middle(each):.2f} times" if each else UNKNOWN


MANY = f"{OURS}, robots.txt after 0 s"


def hosts(figures: Figures) -> str:
    """Return how long ten thousand hosts took, with a quick robots.txt."""
    run = figures["runs"][MANY][0]
    return "void" if run["fault"] else f"{run['wall']:.0f} s"


def connection(figures: Figures) -> str:
    """Return the memory of one connection."""
    return f"{figures['kilobytes'][MANY]:.0f} KB"


def by_hand(figures: Figures) -> str:
    """Mark a row that another program measures."""
    return UNKNOWN


TARGETS = (
    Target(
        "URLs per CPU second on one core, against `wget --warc-file` in the same run",
        "1.5 times",
        "cpu",
        lambda figures: faster(figures, "wget", "cpu"),
    ),
    Target(
        "URLs per CPU second, against Scrapy with a WARC pipeline and JOBDIR",
        "10 times",
        "cpu",
        lambda figures: faster(figures, "scrapy", "cpu"),
    ),
    Target(
        "URLs per second of wall time, 100 ms latency, 64 connections to one host, against wget",
        "40 times",
        "latency",
        lambda figures: faster(figures, "wget", "wall"),
    ),
    Target(
        "size of the archive, against gzip level 6 of the same records",
        "at most 1.04 times",
        "cpu",
        lambda figures: f"{figures['size against gzip']:.3f} times",
    ),
    Target("memory at its peak, 5,338 URLs", "at most 120 MB", "cpu", lambda figures: memory(figures, OURS)),
    Target(
        "memory at its peak, 50,000 URLs",
        "at most 150 MB",
        "memory",
        lambda figures: f"{memory(figures, largest(figures))} ({int(largest(figures)):,} URLs)",
    ),
    Target("memory with 10 million URLs waiting", "at most 400 MB", "", by_hand),
    Target("links a second into a frontier of 10 million URLs, 90 % of them seen before", "60,000", "", by_hand),
    Target("resume with 10 million URLs waiting, until the first request", "less than 2 s", "", by_hand),
    Target(
        "`archiver --help`",
        "less than 0.3 s",
        "start",
        lambda figures: f"{middle([run['wall'] for run in good(figures, OURS)]):.2f} s",
    ),
    Target("10,000 hosts, one page each that takes 5 s, at once: all done", "within 15 s", "hosts", hosts),
    Target("10,000 hosts: memory of a connection", "less than 40 KB", "hosts", connection),
    Target(
        "small pages beside a file of 5 GB keep of their rate",
        "at least 80 %",
        "large",
        lambda figures: f"{figures['beside'] / figures['without']:.0%}" if "beside" in figures else UNKNOWN,
    ),
    Target(
        "1,000 hosts with ten URLs beside one with a million: beyond the time that their own politeness needs",
        "at most 20 %",
        "fairness",
        lambda figures: f"{figures['took'] / figures['needed'] - 1:.0%}" if not figures["faults"] else UNKNOWN,
    ),
    *(
        Target(
            f"CPU time of `{name}`, against `{peer}`",
            f"at most {most} times",
            "readers",
            partial(reader, name=name, peer=program),
        )
        for name, peer, program, most in (
            ("verify", "warcio check", "warcio check", "0.8"),
            ("index", "cdxj-indexer -s", "cdxj-indexer", "0.5"),
            ("pack --no-text", "wacz create", "wacz create", "0.7"),
            ("pack", "wacz create --detect-pages --text", "wacz create with texts", "0.35"),
        )
    ),
    Target(
        "CPU time of `export` with 5,000 pages",
        "at most 5 s",
        "readers",
        lambda figures: f"{middle([run['cpu'] for run in good(figures, 'export')]):.1f} s",
    ),
)


def filled(line: str, results: Path) -> str:
    """Return a line of the document; a row of the table with its latest result."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    row = next((each for each in TARGETS if each.figure == cells[0]), None)
    source = results / f"{row.case}.json" if row else Path()
    if row is None or not row.case or not source.exists():
        return line
    figures = json.loads(source.read_text())
    reached = row.reached(figures)
    return line if reached == UNKNOWN else written((row.figure, row.target, reached, figures["date"], f"`{row.case}`"))


def written(cells: tuple[str, ...]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Fill in the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--results", type=Path, default=ROOT / "build/bench", help="(%(default)s)")
    arguments.add_argument(
        "--document", type=Path, default=ROOT / "docs/explanation/performance.md", help="(%(default)s)"
    )
    given = arguments.parse_args()
    lines = given.document.read_text(encoding="utf-8").splitlines()
    first = lines.index(written(HEAD)) + 2  # below the line under the head
    known = {line.split(" | ")[0].removeprefix("| "): line for line in lines[first:] if line.startswith("| ")}
    after = next(
        number for number in range(first, len(lines) + 1) if not lines[number : number + 1] or not lines[number]
    )
    empty = {
        each.figure: written((each.figure, each.target, UNKNOWN, "", f"`{each.case}`" if each.case else ""))
        for each in TARGETS
    }
    rows = [filled(known.get(each.figure, empty[each.figure]), given.results) for each in TARGETS]
    given.document.write_text("\n".join([*lines[:first], *rows, *lines[after:], ""]), encoding="utf-8")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
