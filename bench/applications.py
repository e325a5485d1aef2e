"""Measure whether the replay of web applications asks for anything that the archive does not have.

    python bench/applications.py                       # all applications of fixtures/applications
    python bench/applications.py leaflet vite-react    # those that you name
    python bench/applications.py --ways plain auto     # those ways to archive
    python bench/applications.py --no-replay           # rounds and sockets only

Each way archives the same pages of the same server. Then the server ends, pywb and replayweb.page replay each archive,
and one judge (fixtures/replay_judge.py) counts the requests that no capture answers.
"""

import argparse
import json
import math
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from measure import table
from peers.browser_recorder import record
from sockets import BrowserSockets

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.applications.serving import seeds, served
from fixtures.applications.table import APPLICATIONS, Application
from fixtures.command import archiver
from fixtures.debian import NotToBeHad
from fixtures.replay_judge import JudgedPage, judged_in_pywb, judged_in_replayweb

OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--allow-private", "127.0.0.2")
DONE = (0, 8)
MOST_ROUNDS = 8
PATIENCE = 3600.0  # seconds for one run, on a machine that has other work
FOUND = 7  # the exit code of `look` when something is missing
FIRST = "plain"  # the way that the second one begins with
RESULTS = Path("build/bench/applications.json")


@dataclass(frozen=True)
class Outcome:
    """The archive that one way made of one application, and what its replay lacks."""

    application: str
    way: str
    pages: int
    requests: int  # that reached the server
    seconds: float
    rounds: tuple[int, ...] = ()  # of each page that was shown, or of all of them together, until nothing came any more
    sockets: int = 0  # of the browser, which has no network
    routeless: int = 0  # times that it looked for a route, of which there is none
    looks: int = 0  # at its sockets
    pywb: "Replayed | None" = None
    replayweb: "Replayed | None" = None
    fault: str = ""


@dataclass(frozen=True)
class Replayed:
    """What the pages of an archive lack in one replay."""

    whole: int  # pages that lack nothing
    asked: int
    missing: tuple[str, ...]
    volatile: int
    lost: tuple[str, ...]  # URLs in the archive that the replay does not rewrite
    elsewhere: tuple[str, ...]  # URLs of hosts in the real web, which nothing could fetch


def replayed(pages: Iterable[JudgedPage]) -> Replayed:
    """Return the sum of the judged *pages*."""
    found = list(pages)
    return Replayed(
        sum(page.whole for page in found),
        sum(page.asked for page in found),
        tuple(sorted({url for page in found for url in page.missing})),
        len({url for page in found for url in page.volatile}),
        tuple(sorted({url for page in found for url in page.lost})),
        tuple(sorted({url for page in found for url in page.elsewhere})),
    )


def crawled(folder: Path, urls: list[str], *options: str) -> tuple[int, ...]:
    """Crawl *urls* into *folder*; no rounds."""
    ran = archiver("crawl", *urls, *OPTIONS, *options, cwd=folder, timeout=PATIENCE)
    assert ran.returncode in DONE, ran.stderr[-500:]
    return ()


def shown(folder: Path, urls: list[str]) -> tuple[int, ...]:
    """Crawl *urls* with `--browser auto`; return for each page the views until one got all answers in time."""
    crawled(folder, urls, "--browser", "auto")
    with (folder / "c" / "indexes" / "index.cdxj").open() as index:
        entries = [json.loads(line.split(" ", 2)[2])["url"] for line in index if not line.startswith("!")]
    pages = [url for url in entries if url.startswith("urn:pageinfo:")]
    told = [archiver("get", "c", url, cwd=folder) for url in pages]
    return tuple(1 + json.loads(ran.stdout)["late"] for ran in told)


def looked(folder: Path, urls: list[str]) -> tuple[int, ...]:
    """Go on with the crawl of *folder* until `look` finds nothing that could be fetched; return how often it did."""
    for number in range(MOST_ROUNDS):
        ran = archiver("look", "c", "--fetch", *urls, cwd=folder, timeout=PATIENCE)
        if ran.returncode != FOUND or "to continue: " not in ran.stdout:
            assert ran.returncode in (0, FOUND), ran.stderr[-500:]
            return (number,)
        assert archiver("resume", "c", cwd=folder, timeout=PATIENCE).returncode in DONE
    return (MOST_ROUNDS,)


def recorded(folder: Path, urls: list[str]) -> tuple[int, ...]:
    """Record *urls* as browsertrix does."""
    record(urls, folder / "c", folder / "profile")
    return ()


WAYS: dict[str, Callable[[Path, list[str]], tuple[int, ...]]] = {
    FIRST: crawled,
    "look": looked,
    "auto": shown,
    "recorder": recorded,
}


def measured(application: Application, ways: Iterable[str], folder: Path, *, judged: bool) -> list[Outcome]:
    """Return the outcome of each of *ways*; *judged*: with what its replays lack. Raises `NotToBeHad`."""
    outcomes = []
    with served(application, folder / "site") as server:
        urls = seeds(application, server)
        for way in ways:
            work = folder / way
            if way == "look":
                shutil.copytree(folder / FIRST, work)
            else:
                work.mkdir()
            began, before = time.monotonic(), len(server.log)
            outcome = Outcome(application.name, way, len(urls), 0, 0.0)
            with BrowserSockets() as sockets:
                try:
                    outcome = replace(outcome, rounds=WAYS[way](work, urls))
                except AssertionError as error:
                    outcome = replace(outcome, fault=str(error))
            outcome = replace(outcome, sockets=sockets.number, looks=sockets.looks)
            outcome = replace(outcome, routeless=sum(sockets.routeless.values()))
            spent = time.monotonic() - began
            outcomes.append(replace(outcome, seconds=spent, requests=len(server.log) - before))
    return [judgement(each, folder, urls) if judged and not each.fault else each for each in outcomes]


def judgement(outcome: Outcome, folder: Path, urls: list[str]) -> Outcome:
    """Return *outcome* with what its replays lack."""
    collection = folder / outcome.way / "c"
    pages = judged_in_pywb(collection, urls, folder / f"pywb-{outcome.way}")
    packed = archiver("pack", "c", "-o", "c.wacz", cwd=collection.parent)
    if packed.returncode:
        return replace(outcome, pywb=replayed(pages), fault=packed.stderr[-500:])
    again = judged_in_replayweb(collection, urls, folder / f"replayweb-{outcome.way}")
    faults = {page.fault for page in (*pages, *again) if page.fault}
    return replace(outcome, pywb=replayed(pages), replayweb=replayed(again), fault="; ".join(sorted(faults)))


def print_table(outcomes: list[Outcome], ways: list[str]) -> None:
    """Print the pages of each application that lack nothing, and the sums."""
    rows = []
    for name in dict.fromkeys(each.application for each in outcomes):
        by_way = {each.way: each for each in outcomes if each.application == name}
        cells = [cell(by_way[way]) for way in ways]
        requests = [str(by_way[way].requests) for way in ways]
        rows.append((name, *cells, ", ".join(requests)))
    for name, of in (("all, pywb", in_pywb), ("all, replayweb.page", in_replayweb)):
        rows.append((name, *(share(outcomes, way, of) for way in ways), ""))
    requests = [str(sum(each.requests for each in outcomes if each.way == way)) for way in ways]
    rows.append(("seconds", *(f"{sum(one.seconds for one in outcomes if one.way == way):.0f}" for way in ways), ""))
    rows.append(("requests", *requests, ""))
    rows.append(("rounds: median, 95 %, most", *(rounds(outcomes, way) for way in ways), ""))
    rows.append(("sockets of the browser, looks", *(sockets(outcomes, way) for way in ways), ""))
    head = ("application", *ways, f"requests: {', '.join(ways)}")
    table("Pages whose replay asks for nothing missing, in pywb and in replayweb.page", head, rows)


def in_pywb(outcome: Outcome) -> int:
    """Return the pages that lack nothing in pywb."""
    return outcome.pywb.whole if outcome.pywb else 0


def in_replayweb(outcome: Outcome) -> int:
    """Return the pages that lack nothing in replayweb.page."""
    return outcome.replayweb.whole if outcome.replayweb else 0


def cell(outcome: Outcome) -> str:
    """Return the pages of *outcome* that lack nothing, in both replays."""
    return f"{in_pywb(outcome)} and {in_replayweb(outcome)} of {outcome.pages}"


def share(outcomes: list[Outcome], way: str, whole: Callable[[Outcome], int]) -> str:
    """Return the pages of *way* that lack nothing, and their share."""
    mine = [each for each in outcomes if each.way == way]
    found, pages = sum(map(whole, mine)), sum(each.pages for each in mine)
    return f"{found} of {pages} ({found / pages:.0%})" if pages else ""


def rounds(outcomes: list[Outcome], way: str) -> str:
    """Return the median, the 95th percentile and the largest number of rounds."""
    found = sorted(number for each in outcomes if each.way == way for number in each.rounds)
    if not found:
        return ""
    return f"{found[(len(found) - 1) // 2]}, {found[math.ceil(len(found) * 0.95) - 1]}, {found[-1]} (of {len(found)})"


def sockets(outcomes: list[Outcome], way: str) -> str:
    """Return the sockets of the browsers without a network, and the looks at them."""
    mine = [each for each in outcomes if each.way == way and each.looks]
    return f"{sum(each.sockets for each in mine)}, {sum(each.looks for each in mine)}" if mine else ""


def main() -> None:
    """Measure, print the table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("applications", nargs="*", metavar="APPLICATION", help="default: all")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--no-replay", action="store_true", help="count rounds and sockets only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    unknown = set(given.applications) - APPLICATIONS.keys()
    if unknown:
        parser.error(f"no such application: {', '.join(sorted(unknown))}")
    if "look" in given.ways and FIRST not in given.ways:
        parser.error(f"look goes on with the crawl of {FIRST}; name both")
    ways = [way for way in WAYS if way in given.ways]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that servers and browsers end too
    outcomes: list[Outcome] = []
    for name in given.applications or APPLICATIONS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = measured(APPLICATIONS[name], ways, Path(folder), judged=not given.no_replay)
            except NotToBeHad as reason:
                print(f"{name}: left out; {reason}", file=sys.stderr)
                continue
        for each in found:
            print(f"  {name}, {each.way}: {each.seconds:.1f} s, {each.requests} requests {each.fault}", file=sys.stderr)
            for viewer, one in (("pywb", each.pywb), ("replayweb.page", each.replayweb)):
                if one is not None:
                    lacks = f"lacks {one.missing[:9]}, {one.volatile} volatile, not rewritten {one.lost[:3]}"
                    lacks += f", of other hosts {one.elsewhere[:3]}" if one.elsewhere else ""
                    print(f"    {viewer}: {one.whole} of {each.pages}, {lacks}", file=sys.stderr, flush=True)
        outcomes += found
        given.results.parent.mkdir(parents=True, exist_ok=True)
        date = datetime.now(UTC).date().isoformat()
        given.results.write_text(json.dumps({"date": date, "outcomes": [asdict(each) for each in outcomes]}, indent=1))
    print_table(outcomes, ways)
    sys.exit(any(each.fault for each in outcomes))


if __name__ == "__main__":
    main()
