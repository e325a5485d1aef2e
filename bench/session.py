"""Measure what cookies and Referer cost for each URL, against crawls with both off.

    python bench/session.py --pages 1000 --rounds 5
    python bench/session.py --pages 60 --rounds 3 --count   # instructions instead of seconds, with valgrind

nginx serves the made site twice: without cookies, and with a session cookie on each response. Counts of instructions
hardly vary, so they show small differences on a busy machine; a crawl takes some fifty times longer then.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import archives
import testsite
from clients import archiver
from measure import Run, environment, in_turn, measure, middle, ratios, settle_down, spread, table
from serving import files

OFF = ("--cookies", "off", "--referer", "off")
NEITHER, NO_COOKIES, COOKIES = "both off", "both on, no cookies", "both on, a session cookie"
SESSION = 'add_header Set-Cookie "session=0123456789abcdef0123456789abcdef; Path=/; HttpOnly" always;'
AT_ONCE = 4


def instructions(command: list[str], folder: Path) -> int:
    """Run *command* in an empty *folder*; return the instructions that it needed, as callgrind counts them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tool = ("valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/counts.%p")
    done = subprocess.run([*tool, *command], cwd=folder, env=environment(), capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.decode()[-2000:])
    found = (
        re.search(r"^(?:summary|totals): (\d+)", each.read_text(), re.MULTILINE) for each in folder.glob("counts.*")
    )
    return sum(int(each[1]) for each in found if each)


def main() -> None:
    """Crawl in turn in each way; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", action="store_true", help="count instructions with valgrind")
    given = parser.parse_args()
    settle_down()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        paths = testsite.make(folder / "www", given.pages)
        plain = stack.enter_context(files(folder / "www", folder / "nginx"))
        session = stack.enter_context(files(folder / "www", folder / "nginx2", SESSION))
        ways = {NEITHER: (plain, OFF), NO_COOKIES: (plain, ()), COOKIES: (session, ())}

        def check() -> None:
            missing = len(set(paths)) - len(archives.fetched(folder / "client"))
            assert missing <= 0, f"{missing} URLs are missing"

        def run(seed: str, options: tuple[str, ...]) -> Run:
            done = measure(archiver(seed, at_once=AT_ONCE, options=options), folder / "client")
            check()
            return replace(done, done=len(paths))

        if given.count:
            counted: dict[str, list[int]] = {name: [] for name in ways}
            for _ in range(given.rounds):
                for name, (seed, options) in ways.items():
                    command = archiver(seed, at_once=AT_ONCE, options=options)
                    counted[name].append(instructions(command, folder / "client"))
                    check()
            counts = {name: middle(each) for name, each in counted.items()}
            rows = [
                (name, f"{count / len(paths) / 1e3:.0f}", f"{count / counts[NEITHER]:.4f}")
                for name, count in counts.items()
            ]
            table(f"{len(paths)} URLs", ("way", "thousand instructions per URL", "times both off"), rows)
            return
        runs = in_turn({name: partial(run, *way) for name, way in ways.items()}, given.rounds)
    timed = [
        (
            name,
            f"{middle([one.cpu for one in each]) / len(paths) * 1e6:.0f}",
            spread(ratios(runs, name, NEITHER, lambda one: one.cpu)) if name != NEITHER else "",
        )
        for name, each in runs.items()
    ]
    head = ("way", "CPU µs per URL", "times both off")
    table(f"{len(paths)} URLs, medians of {given.rounds} rounds", head, timed)


if __name__ == "__main__":
    main()
