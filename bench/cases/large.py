"""The effect of a large file on small pages of the same host, on one core.

The server makes pages without end, each after 100 ms. After a while they name one file of 5 GB, which arrives as fast
as a gigabit line carries it and does not compress. The rate of pages is measured before, during and after the
download. The start, in which the number of connections grows, does not count.
"""

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import archives
from clients import archiver
from crawllog import requests
from measure import as_json, measure, table
from plan import FAULTS, Plan, faults
from serving import slow
from slowserver import LARGE

DELAY = 0.1
PATIENCE = 10  # times the time that the line needs; then the run is stopped
GROWS = 0.3  # of the time before the file, in which the crawl finds the host's capacity


class Settled:
    """The time at which the large file first appeared in the crawl log, which means it is settled."""

    def __init__(self, log: Path, more: float) -> None:
        self.log, self.more, self.seen = log, more, 0
        self.moment = 0.0

    def __call__(self, at: float) -> bool:
        """Return True if that is long enough ago."""
        if not self.moment and self.log.exists():
            with self.log.open("rb") as file:
                file.seek(max(0, self.seen - len(LARGE)))
                if LARGE.encode() in file.read():
                    self.moment = time.time()
                self.seen = file.tell()
        return 0 < self.moment < time.time() - self.more


def measured(plan: Plan) -> dict[str, object]:
    """Run one crawl and read its log."""
    folder = plan.folder / "client"
    log = folder / "out/logs/crawl.log"
    settled = Settled(log, plan.around)
    options = ("--size", "2000", "--delay", str(DELAY), "--large", str(plan.large), "--line", str(plan.line))
    with slow(*options, "--large-after", str(plan.around)) as port:
        limit = str(2 * plan.around + PATIENCE * (1 + plan.large / plan.line))
        command = archiver(f"http://127.0.0.1:{port}/", options=("--traps", "off", "--max-time", limit))
        run = measure(command, folder, stop=settled)
    pages = sorted(asked.since for asked in requests(log) if asked.status == "200" and not asked.url.endswith(LARGE))
    run = replace(run, done=len(pages), stored=archives.megabytes(folder), fault=run.fault or unfinished(folder, plan))
    runs = {"archiver": [run]}
    if run.fault:
        return {"runs": as_json(runs), FAULTS: faults(runs)}
    begins = next(asked.since for asked in requests(log) if asked.url.endswith(LARGE))
    ends = settled.moment
    without = rate(pages, (pages[0] + plan.around * GROWS, begins), (ends, pages[-1])) or float("nan")
    beside = rate(pages, (begins, ends))
    moments = [begins, *(page for page in pages if begins <= page < ends), ends]
    pause = max(later - earlier for earlier, later in pairwise(moments))
    rows = [
        ("without, pages per s", f"{without:.1f}"),
        (f"beside it for {ends - begins:.1f} s, pages per s", f"{beside:.1f}"),
        ("share kept", f"{beside / without:.0%}"),
        ("longest time in which no page was asked for, s", f"{pause:.1f}"),
    ]
    table(f"a file of {plan.large / 1e9:g} GB at {plan.line / 1e6:g} MB/s among small pages", ("", ""), rows)
    figures = {"without": without, "beside": beside, "seconds": ends - begins, "pause": pause}
    return {**figures, "runs": as_json(runs), FAULTS: []}


def rate(pages: list[float], *spans: tuple[float, float]) -> float:
    """Return pages per second of those requested within these spans."""
    seconds = sum(max(0.0, until - since) for since, until in spans)
    return sum(since <= page < until for page in pages for since, until in spans) / (seconds or 1.0)


def unfinished(folder: Path, plan: Plan) -> str:
    """Return why the large file does not count: the archive does not hold it whole."""
    for record in (each for path in archives.warcs(folder) for each in archives.records(path)):
        if record.field(b"WARC-Type") == "response" and record.field(b"WARC-Target-URI").endswith(LARGE):
            body = record.length - record.begins.index(b"\r\n\r\n") - 4
            return "" if body == plan.large else f"void: {body} bytes of {plan.large} are in the archive"
    return "void: the large file is not in the archive"
