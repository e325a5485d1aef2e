"""Memory and rate over the size of the crawl: one crawl of the site, and one of a large one, looked at all the time."""

from clients import CLIENTS, OURS
from crawllog import requests
from measure import Run, as_json, table
from plan import FAULTS, Plan, crawled, faults
from serving import files

POINTS = 40  # of each curve


def measured(plan: Plan) -> dict[str, object]:
    """Crawl both sites, and put the course of memory beside the log of the crawl."""
    runs: dict[str, list[Run]] = {}
    curves, rows = {}, []
    for pages in (plan.pages, plan.many):
        www, paths = plan.site(pages)
        folder = plan.folder / "client"
        with files(www, plan.folder / "nginx") as seed:
            run = crawled(CLIENTS[OURS], seed, paths, folder)
        runs[str(len(paths))] = [run]
        curves[str(len(paths))] = curve(run, sorted(asked.until for asked in requests(folder / "out/logs/crawl.log")))
        rate = len(paths) / run.cpu
        rows.append((str(len(paths)), f"{run.megabytes:.0f}", f"{rate:.0f}", f"{len(paths) / run.wall:.0f}"))
    table("one crawl of each size", ("URLs", "peak MB", "URLs per CPU s", "URLs per s of wall time"), rows)
    return {"runs": as_json(runs), "curves": curves, FAULTS: faults(runs)}


def curve(run: Run, done: list[float]) -> list[tuple[int, float, float]]:
    """So many URLs done; the rate since the point before; the megabytes at that moment."""
    points = []
    step = max(1, len(done) // POINTS)
    for number in range(step, len(done), step):
        took = done[number] - done[number - step]
        at = done[number] - run.began
        memory = min(run.course, key=lambda sample: abs(sample[0] - at), default=(0.0, 0.0))[1]
        points.append((number, step / took if took else 0.0, memory))
    return points
