"""Memory and rate over the size of the crawl: a crawl of the site and one of a large site, sampled all the time."""

from bisect import bisect_left
from collections.abc import Sequence

from clients import CLIENTS, OURS
from crawllog import requests
from measure import Moment, Run, as_json, table
from plan import FAULTS, Plan, crawled, faults
from serving import files

POINTS, LEAST = 25, 200  # of each curve, and URLs between two of them: visits end in bursts


def measured(plan: Plan) -> dict[str, object]:
    """Crawl both sites and join the course of memory with the crawl log."""
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
    """Return the URLs done, the URLs per CPU second since the previous point, and the megabytes at each point."""
    points = []
    step = max(LEAST, len(done) // POINTS)
    before = between(run.course, done[0] - run.began) if done else None
    for number in range(step, len(done), step):
        now = between(run.course, done[number] - run.began)
        if before and now:
            points.append((number, step / max(now.cpu - before.cpu, 0.001), now.megabytes))
        before = now
    return points


def between(course: Sequence[Moment], at: float) -> Moment | None:
    """Return the interpolated sample at this moment."""
    place = bisect_left(course, at, key=lambda look: look.at)
    if not 0 < place < len(course):
        return None
    earlier, later = course[place - 1], course[place]
    share = (at - earlier.at) / (later.at - earlier.at)
    return Moment(at, later.megabytes, earlier.cpu + share * (later.cpu - earlier.cpu))
