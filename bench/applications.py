"""Measure whether the replay of web applications asks for anything that the archive does not have.

    python bench/applications.py                       # all applications of fixtures/applications
    python bench/applications.py leaflet vite-react    # those that you name
    python bench/applications.py --ways plain auto     # those ways to archive

Each way archives the same pages of the same server. Then the server ends, pywb and replayweb.page replay each archive,
and one judge (fixtures/replay_judge.py) counts the requests that no capture answers.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from measure import table
from peers.browser_recorder import record

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.applications.serving import seeds, served
from fixtures.applications.table import APPLICATIONS, Application
from fixtures.command import archiver
from fixtures.debian import NotToBeHad
from fixtures.replay_judge import JudgedPage, judged_in_pywb, judged_in_replayweb

OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--allow-private", "127.0.0.2")
DONE = (0, 8)
MOST_ROUNDS = 8
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
    rounds: int = 0
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


def replayed(pages: Iterable[JudgedPage]) -> Replayed:
    """Return the sum of the judged *pages*."""
    found = list(pages)
    return Replayed(
        sum(page.whole for page in found),
        sum(page.asked for page in found),
        tuple(sorted({url for page in found for url in page.missing})),
        len({url for page in found for url in page.volatile}),
        tuple(sorted({url for page in found for url in page.lost})),
    )


def crawled(folder: Path, urls: list[str], *options: str) -> int:
    """Crawl *urls* into *folder*; no rounds."""
    ran = archiver("crawl", *urls, *OPTIONS, *options, cwd=folder)
    assert ran.returncode in DONE, ran.stderr[-500:]
    return 0


def looked(folder: Path, urls: list[str]) -> int:
    """Go on with the crawl of *folder* until `look` finds nothing that could be fetched; return the rounds."""
    for number in range(1, MOST_ROUNDS + 1):
        ran = archiver("look", "c", "--fetch", *urls, cwd=folder)
        if ran.returncode != FOUND or "to continue: " not in ran.stdout:
            assert ran.returncode in (0, FOUND), ran.stderr[-500:]
            return number
        assert archiver("resume", "c", cwd=folder).returncode in DONE
    return MOST_ROUNDS


def recorded(folder: Path, urls: list[str]) -> int:
    """Record *urls* as browsertrix does."""
    record(urls, folder / "c", folder / "profile")
    return 0


WAYS: dict[str, Callable[[Path, list[str]], int]] = {
    FIRST: crawled,
    "look": looked,
    "auto": lambda folder, urls: crawled(folder, urls, "--browser", "auto"),
    "recorder": recorded,
}


def measured(application: Application, ways: Iterable[str], folder: Path) -> list[Outcome]:
    """Return the outcome of each of *ways*. Raises `NotToBeHad`."""
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
            try:
                outcome = replace(outcome, rounds=WAYS[way](work, urls))
            except AssertionError as error:
                outcome = replace(outcome, fault=str(error))
            spent = time.monotonic() - began
            outcomes.append(replace(outcome, seconds=spent, requests=len(server.log) - before))
    return [each if each.fault else judgement(each, folder, urls) for each in outcomes]


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


def main() -> None:
    """Measure, print the table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("applications", nargs="*", metavar="APPLICATION", help="default: all")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    unknown = set(given.applications) - APPLICATIONS.keys()
    if unknown:
        parser.error(f"no such application: {', '.join(sorted(unknown))}")
    if "look" in given.ways and FIRST not in given.ways:
        parser.error(f"look goes on with the crawl of {FIRST}; name both")
    ways = [way for way in WAYS if way in given.ways]
    outcomes: list[Outcome] = []
    for name in given.applications or APPLICATIONS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = measured(APPLICATIONS[name], ways, Path(folder))
            except NotToBeHad as reason:
                print(f"{name}: left out; {reason}", file=sys.stderr)
                continue
        for each in found:
            print(f"  {name}, {each.way}: {each.seconds:.1f} s, {each.requests} requests {each.fault}", file=sys.stderr)
            for viewer, one in (("pywb", each.pywb), ("replayweb.page", each.replayweb)):
                if one is not None:
                    lacks = f"lacks {one.missing[:9]}, {one.volatile} volatile, not rewritten {one.lost[:3]}"
                    print(f"    {viewer}: {one.whole} of {each.pages}, {lacks}", file=sys.stderr, flush=True)
        outcomes += found
        given.results.parent.mkdir(parents=True, exist_ok=True)
        date = datetime.now(UTC).date().isoformat()
        given.results.write_text(json.dumps({"date": date, "outcomes": [asdict(each) for each in outcomes]}, indent=1))
    print_table(outcomes, ways)
    sys.exit(any(each.fault for each in outcomes))


if __name__ == "__main__":
    main()
