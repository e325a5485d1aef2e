"""Measure the programs that read an archive beside their peers: CPU time, each in turn in one run.

    python bench/readers.py --collection DIR --rounds 3

DIR is a finished crawl, such as one of the site of bench/testsite.py. It is copied, because `index` writes into it. The
peers are warcio, cdxj-indexer and wacz (`pip install warcio cdxj-indexer wacz`) beside the interpreter that
BENCH_PYTHON names; those that are not installed are left out. `export` and `report` have no peer.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from clients import others
from measure import in_turn, measure, middle, ratios, settle_down, spread, table

PAIRS = {
    "verify": "warcio check",
    "index": "cdxj-indexer",
    "pack --no-text": "wacz create",
    "pack": "wacz create with texts",
}


def commands(collection: Path, warcs: Sequence[str]) -> dict[str, list[str]]:
    """Return the command of each reader, ours and the peers'; each runs in an empty folder."""
    ours, tools, name = [sys.executable, "-m", "archiver"], Path(others()).parent, str(collection)
    peers = {
        "warcio check": ["warcio", "check", *warcs],
        "cdxj-indexer": ["cdxj-indexer", "-s", "-o", "index.cdxj", *warcs],
        "wacz create": ["wacz", "create", *warcs, "-o", "out.wacz"],
        "wacz create with texts": ["wacz", "create", *warcs, "-o", "out.wacz", "--detect-pages", "--text"],
    }
    return {
        "verify": [*ours, "verify", name],
        "index": [*ours, "index", name],
        "pack --no-text": [*ours, "pack", name, "-o", "out.wacz", "--no-text"],
        "pack": [*ours, "pack", name, "-o", "out.wacz"],
        "export": [*ours, "export", name, "--to", "out"],
        "report": [*ours, "report", name],
        **{peer: [str(tools / line[0]), *line[1:]] for peer, line in peers.items() if (tools / line[0]).exists()},
    }


def main() -> int:
    """Copy the collection, run all readers in turn, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True, help="a finished crawl")
    parser.add_argument("--rounds", type=int, default=3, help="of each reader, in turn [3]")
    given = parser.parse_args()
    settle_down()
    with tempfile.TemporaryDirectory() as folder:
        collection = Path(folder, "collection")
        shutil.copytree(given.collection, collection)
        warcs = sorted(map(str, (collection / "archive").iterdir()))
        found = commands(collection, warcs)
        clients = {name: partial(measure, command, Path(folder, "client")) for name, command in found.items()}
        runs = in_turn(clients, given.rounds)
    rows = []
    for name, each in runs.items():
        peer = PAIRS.get(name, "")
        beside = spread(ratios(runs, name, peer, lambda run: run.cpu)) if peer in runs else ""
        good = [run for run in each if not run.fault]
        rows.append((name, spread([run.cpu for run in good]), f"{middle([run.megabytes for run in good]):.0f}", beside))
    head = ("reader", "CPU s", "peak MB", "times the CPU time of its peer")
    table(f"medians of {given.rounds} rounds (least to most)", head, rows)
    return int(any(run.fault for each in runs.values() for run in each))


if __name__ == "__main__":
    sys.exit(main())
