"""Ten thousand hosts at once, each with one page of 2 KB that takes five seconds.

Ours archives everything. The peers store nothing: a thread for each host, and a coroutine for each host on bare
aiohttp. All request robots.txt first. It is answered at once, and in a second variant as late as the page. The memory
of a connection is the peak of a process with all of them minus that with few, for each.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import archives
from clients import OURS, PEERS, archiver, others
from measure import Run, allow_files, as_json, measure, print_run, table
from plan import FAULTS, Plan, faults
from serving import slow
from slowserver import MOST

FEW = 20
FILES = 3  # that a connection may need at most


def seeds(count: int, port: int) -> list[str]:
    """Return one page on each of so many hosts, which are all this machine."""
    return [
        f"http://127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}:{port}/" for number in range(count)
    ]


def clients(at_once: int, listed: Path) -> dict[str, Sequence[str]]:
    """Return the command of each client."""
    options = (
        "--seeds",
        str(listed),
        "--scope",
        "page",
        "--allow-private",
        "127.0.0.0/8",
        "--concurrency",
        str(at_once),
        *("--probe", "off"),  # the peers ask for no icon either
    )
    return {
        "threads": [others(), str(PEERS / "threads.py"), str(listed)],
        "bare aiohttp": [others(), str(PEERS / "coroutines.py"), str(listed)],
        OURS: archiver(options=options),
    }


def one(name: str, plan: Plan, count: int, port: int) -> tuple[Run, int]:
    """Run one client on so many hosts; return the run and its most connections at once."""
    urls = seeds(count, port)
    listed, folder = plan.folder / "seeds.txt", plan.folder / "client"
    listed.write_text("\n".join(urls) + "\n")
    most(port)
    run = measure(clients(count, listed)[name], folder)
    if not run.fault and name == OURS:
        run = replace(run, done=count, stored=archives.megabytes(folder), fault=archives.missing(folder, urls))
    elif not run.fault:
        done = int(folder.with_suffix(".log").read_text().split()[-1])
        run = replace(run, done=done, fault="" if done == count else f"void: only {done} of {count} pages came")
    print_run(f"{count} hosts: {name}", run)
    return run, most(port)


def most(port: int) -> int:
    """Return the most connections at once since the last call."""
    with urlopen(f"http://127.0.0.1:{port}{MOST}") as answer:
        return int(answer.read())


def measured(plan: Plan) -> dict[str, object]:
    """Run each client on few hosts once, then on all of them with a quick robots.txt and with a slow one."""
    files = allow_files(2000 + FILES * plan.hosts)
    names = ("threads", "bare aiohttp", OURS)
    runs: dict[str, list[Run]] = {}
    kilobytes, rows = {}, []
    pages = ("--address", "0.0.0.0", "--pages", "1", "--delay", str(plan.answer))
    with slow(*pages) as port:
        few = {name: one(name, plan, min(FEW, plan.hosts), port) for name in names}
        runs |= {f"{name}, {FEW} hosts": [run] for name, (run, _) in few.items()}
    for robots in (0.0, plan.answer):
        with slow(*pages, "--robots-delay", str(robots)) as port:
            for name in names:
                run, connections = one(name, plan, plan.hosts, port)
                title = f"{name}, robots.txt after {robots:g} s"
                runs[title] = [run]
                alone, others_open = few[name]
                each = (run.megabytes - alone.megabytes) * 1024 / max(1, connections - others_open)
                kilobytes[title] = each
                figures = (f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.megabytes:.0f}", f"{connections}", f"{each:.1f}")
                rows.append((name, f"{robots:g}", *(figures if not run.fault else ("void", "", "", "", ""))))
    title = f"{plan.hosts} hosts, one page each after {plan.answer:g} s; {files} open files are allowed"
    head = (
        "client",
        "robots.txt after s",
        "all done after s",
        "CPU s",
        "peak MB",
        "connections at once",
        "KB for each",
    )
    table(title, head, rows)
    return {"files": files, "kilobytes": kilobytes, "runs": as_json(runs), FAULTS: faults(runs)}
