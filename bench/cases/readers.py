"""The CPU time of the programs that read an archive, beside that of their peers: warcio, cdxj-indexer and wacz."""

import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from clients import archiver, others
from measure import as_json, in_turn, measure, middle, ratios, spread, table
from plan import FAULTS, Plan, faults
from serving import files

NEEDS = "pip install warcio cdxj-indexer wacz"
PEERS = {  # `export` and `report` have none
    "verify": "warcio check",
    "index": "cdxj-indexer",
    "pack --no-text": "wacz create",
    "pack": "wacz create with texts",
}


def commands(collection: Path, warcs: Sequence[str]) -> dict[str, list[str]]:
    """Return the command of each reader, ours and the peers that are installed; each runs in an empty folder."""
    ours, tools, name = [sys.executable, "-m", "archiver"], Path(others()).parent, str(collection)
    peers = {
        "warcio check": ["warcio", "check", *warcs],
        "cdxj-indexer": ["cdxj-indexer", "-s", "-o", "index.cdxj", *warcs],
        "wacz create": ["wacz", "create", *warcs, "-o", "out.wacz"],
        "wacz create with texts": ["wacz", "create", *warcs, "-o", "out.wacz", "--detect-pages", "--text"],
    }
    here = {peer: [str(tools / line[0]), *line[1:]] for peer, line in peers.items() if (tools / line[0]).exists()}
    for peer in peers.keys() - here.keys():
        print(f"{peer} is left out; it needs: {NEEDS}", file=sys.stderr)
    return {
        "verify": [*ours, "verify", name],
        "index": [*ours, "index", name],
        "pack --no-text": [*ours, "pack", name, "-o", "out.wacz", "--no-text"],
        "pack": [*ours, "pack", name, "-o", "out.wacz"],
        "export": [*ours, "export", name, "--to", "out"],
        "report": [*ours, "report", name],
        **here,
    }


def measured(plan: Plan) -> dict[str, object]:
    """Crawl the site once, then run all readers in turn."""
    www, paths = plan.site(plan.pages)
    folder = plan.folder / "crawl"
    with files(www, plan.folder / "nginx") as seed:
        crawl = measure(archiver(seed), folder)
    collection = plan.folder / "collection"
    shutil.rmtree(collection, ignore_errors=True)
    (folder / "out").rename(collection)
    found = commands(collection, sorted(map(str, (collection / "archive").iterdir())))
    readers = {name: partial(measure, command, plan.folder / "client") for name, command in found.items()}
    runs = in_turn(readers, plan.rounds)
    rows = []
    for name, each in runs.items():
        good = [run for run in each if not run.fault]
        peer = PEERS.get(name, "")
        beside = spread(ratios(runs, name, peer, lambda run: run.cpu)) if peer in runs else ""
        rows.append((name, spread([run.cpu for run in good]), f"{middle([run.megabytes for run in good]):.0f}", beside))
    head = ("reader", "CPU s", "peak MB", "times the CPU time of its peer")
    table(f"an archive of {len(paths)} URLs, medians of {plan.rounds} rounds (least to most)", head, rows)
    return {"urls": len(paths), "runs": as_json(runs), FAULTS: [*faults({"crawl": [crawl]}), *faults(runs)]}
