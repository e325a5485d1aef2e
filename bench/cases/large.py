"""What a large file does to the small pages that are fetched beside it, on one host and one core.

The server makes pages without end, each after 100 ms, and after a while names one file of 5 GB, which comes as fast as
a line of a gigabit carries it and does not compress. The rate of the pages is counted while it is under way, and
before and after; the beginning, in which the number of connections grows, does not count.
"""

from dataclasses import replace
from pathlib import Path

import archives
from clients import archiver
from crawllog import requests
from measure import as_json, measure, table
from plan import FAULTS, Plan, faults
from serving import slow
from slowserver import LARGE

DELAY = 0.1
LIMIT_REACHED = 5  # the exit code of a crawl that --max-time ended
GROWS = 0.3  # of the time before the file, in which the crawl finds out what the host bears
SLACK = 1.1


def measured(plan: Plan) -> dict[str, object]:
    """One crawl, and its log."""
    takes = plan.large / plan.line * SLACK + 1
    seconds = str(2 * plan.around + takes)
    folder = plan.folder / "client"
    options = ("--size", "2000", "--delay", str(DELAY), "--large", str(plan.large), "--line", str(plan.line))
    with slow(*options, "--large-after", str(plan.around)) as port:
        command = archiver(f"http://127.0.0.1:{port}/", options=("--traps", "off", "--max-time", seconds))
        run = measure(command, folder, good=(0, LIMIT_REACHED))
    pages, large = starts(folder / "out/logs/crawl.log")
    run = replace(
        run, done=len(pages), stored=archives.megabytes(folder), fault=run.fault or unfinished(folder, plan.large)
    )
    runs = {"archiver": [run]}
    if run.fault:
        print(run.fault)
        return {"runs": as_json(runs), FAULTS: faults(runs)}
    begins, ends = large
    without = rate(pages, (pages[0] + plan.around * GROWS, begins), (ends, pages[-1]))
    beside = rate(pages, (begins, ends))
    rows = [("without", f"{without:.1f}"), (f"beside it, {ends - begins:.1f} s", f"{beside:.1f}")]
    title = f"a file of {plan.large / 1e9:g} GB at {plan.line / 1e6:g} MB/s among small pages"
    table(title, ("", "pages per s"), [*rows, ("share kept", f"{beside / without:.0%}")])
    return {"without": without, "beside": beside, "seconds": ends - begins, "runs": as_json(runs), FAULTS: []}


def starts(log: Path) -> tuple[list[float], tuple[float, float]]:
    """When each page was asked for, in order, and from when to when the large file was under way."""
    pages, large = [], (0.0, 0.0)
    for asked in requests(log):
        if asked.url.endswith(LARGE):
            large = asked.since, asked.until
        elif asked.status == "200":
            pages.append(asked.since)
    return sorted(pages), large


def rate(pages: list[float], *spans: tuple[float, float]) -> float:
    """Pages in a second, of those asked for within these spans."""
    seconds = sum(max(0.0, until - since) for since, until in spans)
    return sum(since <= page < until for page in pages for since, until in spans) / (seconds or 1.0)


def unfinished(folder: Path, size: int) -> str:
    """Why the large file does not count: it is not in the archive as a whole."""
    for record in (each for path in archives.warcs(folder) for each in archives.records(path)):
        if record.field(b"WARC-Type") == "response" and record.field(b"WARC-Target-URI").endswith(LARGE):
            body = record.length - record.begins.index(b"\r\n\r\n") - 4
            return "" if body == size else f"void: {body} bytes of {size} are in the archive"
    return "void: the large file is not in the archive"
