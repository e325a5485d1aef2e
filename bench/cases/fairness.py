"""One host with a million URLs and a thousand hosts with ten: the time until the small ones are done.

Each host gets one request in so many seconds. A small host needs robots.txt and ten pages, so at least ten intervals.
The crawl is stopped some intervals later, and its log tells when the last small host was done.
"""

from dataclasses import replace
from pathlib import Path

from cases.hosts import FILES, seeds
from clients import archiver
from crawllog import requests
from measure import allow_files, as_json, measure, table
from plan import FAULTS, Plan, faults
from serving import slow

PAGES = 10
MARGIN = 6  # intervals that the crawl may take longer
LIMIT_REACHED = 5  # exit code of a crawl that --max-time ended
START = 5.0  # seconds for the first request, and for a thousand hosts' first answers


def measured(plan: Plan) -> dict[str, object]:
    """Run one crawl and read its log."""
    needed = PAGES * plan.interval
    folder = plan.folder / "client"
    allow_files(2000 + FILES * plan.crowd)
    with slow("--address", "0.0.0.0", "--pages", str(PAGES)) as port:
        big = [f"http://127.0.0.1:{port}/big/{number}" for number in range(plan.big)]
        small = seeds(plan.crowd, port)
        (plan.folder / "seeds.txt").write_text("\n".join((*big, *small)) + "\n")
        options = ("--seeds", str(plan.folder / "seeds.txt"), "--rate", f"1/{plan.interval:g}")
        patience = ("--max-time", str(needed + MARGIN * plan.interval + START), "--allow-private", "127.0.0.0/8")
        run = measure(archiver(options=(*options, *patience)), folder, good=(0, LIMIT_REACHED))
    first, last, done = finished(folder / "out/logs/crawl.log", f"//127.0.0.1:{port}/")
    wanted = plan.crowd * PAGES
    void = "" if done == wanted else f"void: only {done} of {wanted} small pages were fetched when time was up"
    runs = {"archiver": [replace(run, done=done, fault=run.fault or void)]}
    took = last - first
    over = f"{took / needed - 1:+.1%}"
    head = ("small hosts' pages", "of", "needed s", "took s", "over", "CPU s")
    row = (str(done), str(wanted), f"{needed:.1f}", f"{took:.1f}", over, f"{run.cpu:.1f}")
    table(f"{plan.crowd} small hosts beside one with {plan.big} URLs, 1 request in {plan.interval:g} s", head, [row])
    return {"needed": needed, "took": took, "runs": as_json(runs), FAULTS: faults(runs)}


def finished(log: Path, big: str) -> tuple[float, float, int]:
    """Return when the first request started, when the last small page came, and the number of small pages."""
    first, last, done = float("inf"), float("-inf"), 0
    for asked in requests(log):
        first = min(first, asked.since)
        if big not in asked.url and asked.status == "200":
            last, done = max(last, asked.until), done + 1
    return first, last, done
