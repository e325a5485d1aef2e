"""URLs per CPU second on one core, memory, and the size of the archive, compared with plain gzip."""

import archives
from clients import OURS, chosen
from measure import as_json, middle, ratios, spread, table
from plan import FAULTS, Plan, faults, race
from serving import files


def measured(plan: Plan) -> dict[str, object]:
    """Crawl the site with each client in turn."""
    www, paths = plan.site(plan.pages)
    with files(www, plan.folder / "nginx") as seed:
        runs = race(chosen(("wget", "scrapy", "httrack")), seed, paths, plan)
    ours_last = archives.megabytes(plan.folder / "client")  # the files of the last run are still there
    size = ours_last / archives.by_gzip(plan.folder / "client")
    rows = []
    for name, each in runs.items():
        good = [run for run in each if not run.fault]
        pairs = [] if name == OURS else ratios(runs, OURS, name, lambda run: run.done / run.cpu)
        rows.append(
            (
                name,
                spread([run.done / run.cpu for run in good]),
                f"{middle([run.wall for run in good]):.2f}",
                f"{middle([run.megabytes for run in good]):.0f}",
                f"{middle([run.stored for run in good]):.1f}" if any(run.stored for run in good) else "none",
                spread(pairs) if pairs else "",
            )
        )
    head = ("client", "URLs per CPU s", "wall s", "peak MB", "archive MB", "ours is so many times as fast")
    table(f"{len(paths)} URLs, one core, medians of {plan.rounds} rounds (least to most)", head, rows)
    print(f"\nour archive is {size:.3f} times as large as gzip level {archives.LEVEL} makes the same records")
    return {"urls": len(paths), "size against gzip": size, "runs": as_json(runs), FAULTS: faults(runs)}
