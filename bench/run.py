"""Run the benchmarks: `python bench/run.py [CASE…]`, by default all of them.

Each case runs archiver, and its peers in turn if there are any. It checks that every crawl was complete, prints a
table, and writes its figures to CASE.json in the folder that --results names. Figures of an incomplete crawl are
void, and the exit code is then 1.
"""

import argparse
import json
import signal
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import measure
from cases import cpu, fairness, hosts, large, latency, memory, readers, start
from plan import FAULTS, SMALL, Plan

CASES = {
    "cpu": cpu,
    "latency": latency,
    "memory": memory,
    "hosts": hosts,
    "large": large,
    "fairness": fairness,
    "readers": readers,
    "start": start,
}


def options() -> argparse.Namespace:
    """Parse the command line; every size of the plan is an option."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("case", nargs="*", choices=[[], *CASES], help=", ".join(CASES))
    arguments.add_argument("--small", action="store_true", help="sizes of a look whether everything works, on any core")
    arguments.add_argument("--results", type=Path, default=measure.ROOT / "build/bench", help="(%(default)s)")
    arguments.add_argument("--folder", type=Path, help="work here, and keep the sites that are made for the next time")
    for each in fields(Plan)[1:]:
        words = f"{each.metadata['help']} ({each.default})"
        arguments.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), help=words)
    return arguments.parse_args()


def main() -> None:
    """Run the cases."""
    given = options()
    sizes = {each.name: getattr(given, each.name) for each in fields(Plan)[1:]}
    sizes = {name: value for name, value in sizes.items() if value is not None}
    if given.small:
        sizes = {**SMALL, **sizes}
    else:
        measure.settle_down()
    given.results.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # clients and servers end with this program
    wrong: list[str] = []
    with nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory() as folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        plan = Plan(Path(folder).resolve(), **sizes)
        for name in given.case or CASES:
            print(f"{name} …", file=sys.stderr)
            figures = CASES[name].measured(plan)
            wrong += [f"{name}: {fault}" for fault in figures[FAULTS]]
            figures["date"] = datetime.now(UTC).date().isoformat()
            (given.results / f"{name}.json").write_text(json.dumps(figures, indent=1))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
