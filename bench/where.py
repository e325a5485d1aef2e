"""Show where the CPU time of one URL goes: `python bench/where.py [--pages 2000]`.

py-spy samples a crawl of the made site two hundred times a second. `--raw FILE` reads an earlier recording (`--format
raw`). Each sample counts for the innermost function of the program, so a library's time counts for its caller. The
shares of all samples, times the cost of a URL without profiling, are the microseconds in `where.json`. They include
work outside the interpreter lock (compression, digests, the database).
"""

import argparse
import json
import linecache
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import measure
from clients import AT_ONCE, CLIENTS, OURS
from measure import middle, pinned, table
from plan import Plan, crawled
from serving import files

IMPORTS = "imports and start"
PARTS = {  # by package, or by package and module; a library's time counts for its caller
    "fetch": ("fetch", "http"),
    "reading links": ("extract",),
    "judging links": ("policy",),
    "texts for traps": ("policy/novelty",),
    "records": ("warc", "collection", "storage"),
    "frontier": ("frontier",),
    "visit and schedule": ("crawl", "policy/schedule", "policy/leased_host", "policy/limits", "policy/retry"),
    IMPORTS: ("crawl/build", "cli", "__main__", "config"),
}
PART_OF = {module: part for part, modules in PARTS.items() for module in modules}
LIBRARIES = {"aiohttp": "fetch", "aiosqlite": "frontier", "sqlite3": "frontier"}  # without a caller in the program
LOOP = "event loop"
REST = "the rest"
ORDER = (*(part for part in PARTS if part != IMPORTS), LOOP, REST, IMPORTS)
OUR_FRAME = re.compile(r"(?:^|[/(])archiver/((\w+)(?:/\w+)?)")
IMPORTING = ("<frozen importlib", "_find_and_load")
FRAME = re.compile(r" \(([^()]+):(\d+)\)$")
WAITS = re.compile(
    r"= (?:work_queue|tx)\.get\("
)  # the line at which a thread of an executor or of aiosqlite waits for work


def part(stack: str) -> str:
    """Return the part of the program for one sample, from its frames, outermost first."""
    if any(word in stack for word in IMPORTING):
        return IMPORTS
    inwards = stack.split(";")
    for frame in reversed(inwards):
        if (found := OUR_FRAME.search(frame)) and (name := PART_OF.get(found[1]) or PART_OF.get(found[2])):
            if name == IMPORTS and "asyncio" in stack:
                break  # the command that started the loop
            return name
    for library, name in LIBRARIES.items():
        if library in stack:
            return name
    return LOOP if "asyncio" in stack or "uvloop" in stack else REST


def idle(stack: str) -> bool:
    """Return True if a thread only waited for its turn on the core, to check for work."""
    innermost = FRAME.search(stack)
    return innermost is not None and WAITS.search(linecache.getline(innermost[1], int(innermost[2]))) is not None


def grouped(lines: Iterable[str]) -> dict[str, float]:
    """Return the share of each part in a profile of py-spy's raw format: frames joined by semicolons, and a number."""
    samples: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        if not idle(stack):
            samples[part(stack)] += int(count)
    whole = sum(samples.values()) or 1
    return {name: samples[name] / whole for name in ORDER if samples[name]}


def profile(plan: Plan, rounds: int) -> tuple[list[str], float]:
    """Profile one crawl of the site; return it and the CPU microseconds of a URL without profiling."""
    www, paths = plan.site(plan.pages)
    ours, folder, raw = CLIENTS[OURS], plan.folder / "client", plan.folder / "raw.txt"
    with files(www, plan.folder / "nginx") as seed:
        runs = [crawled(ours, seed, paths, folder) for _ in range(rounds)]
        for run in runs:
            if run.fault:
                sys.exit(run.fault)
        shutil.rmtree(folder)
        folder.mkdir()
        spy = ["py-spy", "record", "--rate", "200", "--format", "raw", "--full-filenames", "--output", str(raw), "--"]
        command = [*spy, *ours.command(seed, AT_ONCE)]
        subprocess.run(pinned(command), cwd=folder, env=measure.environment(), capture_output=True, check=True)
    return raw.read_text().splitlines(), 1e6 * middle([run.cpu for run in runs]) / len(paths)


def main() -> None:
    """Measure, print, and write the figures."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pages", type=int, default=5000)
    arguments.add_argument("--rounds", type=int, default=1, help="without the profiler (%(default)s)")
    arguments.add_argument("--raw", type=Path, help="a profile that is there already; the figures are then shares")
    arguments.add_argument("--results", type=Path, default=measure.ROOT / "build/bench", help="(%(default)s)")
    arguments.add_argument("--folder", type=Path, help="work here, and keep the site that is made for the next time")
    given = arguments.parse_args()
    unit = "%" if given.raw else "us"
    if given.raw:
        lines, each = given.raw.read_text().splitlines(), 100.0
    elif not shutil.which("py-spy"):
        sys.exit("this needs: pip install py-spy")
    else:
        measure.settle_down()
        with tempfile.TemporaryDirectory() as folder:
            work = given.folder or Path(folder)
            work.mkdir(parents=True, exist_ok=True)
            lines, each = profile(Plan(work.resolve(), pages=given.pages), given.rounds)
    parts = {name: share * each for name, share in grouped(lines).items()}
    table("where the time of one URL goes", ("part", unit), [(name, f"{part:.0f}") for name, part in parts.items()])
    given.results.mkdir(parents=True, exist_ok=True)
    figures = {"unit": unit, "parts": parts, "date": datetime.now(UTC).date().isoformat()}
    (given.results / "where.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
