"""Wall time with answers of 100 ms and 64 connections to one host: how well a crawler uses waiting time.

A peer with one connection would need minutes; it is stopped once its rate is known. Ours always crawls the whole
site, start and end included.
"""

from dataclasses import replace
from functools import partial

import archives
from clients import OURS, Client, chosen
from measure import Run, as_json, in_turn, measure, middle, ratios, spread, table
from plan import FAULTS, Plan, crawled, faults
from serving import slow


def measured(plan: Plan) -> dict[str, object]:
    """Crawl the site with each client in turn from a slow server."""
    www, paths = plan.site(plan.pages)
    folder = plan.folder / "client"
    with slow("--root", str(www), "--delay", str(plan.delay), "--robots-delay", str(plan.delay)) as port:
        seed = f"http://127.0.0.1:{port}/"

        def run(client: Client) -> Run:
            if client.name == OURS:
                return crawled(client, seed, paths, folder, plan.at_once)
            part = measure(
                client.command(seed, plan.at_once), folder, good=client.good, stop=lambda at: at > plan.patience
            )
            return replace(part, done=len(archives.fetched(folder)), stored=archives.megabytes(folder))

        runs = in_turn({each.name: partial(run, each) for each in chosen(("wget", "scrapy"))}, plan.rounds)
    rows = []
    for name, each in runs.items():
        good = [run for run in each if not run.fault]
        pairs = [] if name == OURS else ratios(runs, OURS, name, lambda run: run.done / run.wall)
        rates = spread([run.done / run.wall for run in good])
        rows.append((name, f"{middle([run.done for run in good]):.0f}", rates, spread(pairs) if pairs else ""))
    title = f"{plan.delay:g} s before each answer, {plan.at_once} connections, medians of {plan.rounds} rounds"
    table(title, ("client", "URLs fetched", "URLs per s of wall time", "ours is so many times as fast"), rows)
    return {"delay": plan.delay, "connections": plan.at_once, "runs": as_json(runs), FAULTS: faults(runs)}
