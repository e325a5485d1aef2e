"""A site of traps, crawled whole: the crawl ends by itself, has every real page, and wastes little."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from archiver.config.values import Rate
from archiver.frontier import tallies
from archiver.model import ExitCode
from fixtures import traps
from fixtures.archives import rows
from fixtures.lifetimes import crawl
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page, redirect

RATE = Rate(100)  # a site with 650 URLs in seven seconds; what is under way when a trap is recognised is little


def _held_back(directory: Path) -> list[tuple[str, int, int, str]]:
    with closing(sqlite3.connect(directory / "crawl.db")) as db:
        return list(tallies.held_back(db))


def test_a_site_of_traps(tmp_path: Path) -> None:
    with traps.server() as server:
        assert crawl(tmp_path, server.url(), max_urls=2000, rate=RATE, host_concurrency=2).code is ExitCode.DONE
        asked = server.log.targets()
    assert traps.real() - set(asked) == set()
    wasted = [target for target in asked if traps.is_trap(target)]
    assert len(wasted) < len(asked) / 10, wasted
    assert len(asked) == len(set(asked))
    found = {rule.replace(server.url("/"), "/"): (links, urls) for rule, links, urls, _ in _held_back(tmp_path)}
    for pattern in ("/calendar/N/N", "/calendar/N/N/N", "/lost/N", "/s/H/article/N", "/article/N;jsessionid=H"):
        assert sum(found[f"barren-pages: 8: {pattern}"]) > 10, pattern
    assert found["traps: on: the same query in another order is taken"][0] > 10
    assert found["max-repeats: 3"][0] > 0


def test_a_later_run_knows_the_traps(tmp_path: Path) -> None:
    def months(server: RawServer) -> int:
        return sum(target.startswith("/calendar/") and target.count("/") == 3 for target in server.log.targets())

    with traps.server() as server:
        assert crawl(tmp_path, server.url(), max_urls=300, rate=RATE, host_concurrency=2).code is ExitCode.LIMIT
        known = rows(tmp_path, "SELECT fruitful, streak FROM tallies WHERE pattern LIKE '%/calendar/N/N'")
        assert known == [(1, 2)]
        before = months(server)
        assert crawl(tmp_path, server.url(), max_urls=400, rate=RATE, resume=True).code is ExitCode.LIMIT
        assert months(server) == before


def test_without_the_rules_there_is_no_end(tmp_path: Path) -> None:
    with traps.server() as server:
        assert crawl(tmp_path, server.url(), max_urls=1000, traps="off", drop_query=("none",)).code is ExitCode.LIMIT
        assert sum(map(traps.is_trap, server.log.targets())) > 150
    assert _held_back(tmp_path) == []


def _numbered(count: int, body: str) -> dict[str, Route]:
    """Pages of one pattern, each of which names the next one alone, and shows *body* with its number in it."""
    routes: dict[str, Route] = {
        f"/item/{n}": ok(page("Item", body=body.format(n=n, word="abcdefghij"[n % 10] * (n // 10 + 3))) + _next(n))
        for n in range(count)
    }
    return {**routes, "/": ok('<a href="/item/0">first</a>')}


def _next(number: int) -> str:
    return f'<a href="/item/{number + 1}">next</a>'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<p>Whatever is told about {word}</p>", 60),
        ('<img src="/picture/{n}.gif">', 60),
        ("<p>This is number {n}</p>", 60),
        ("<p>Nothing at all was found</p>", 9),
    ],
)
def test_what_is_nothing_new(tmp_path: Path, body: str, found: int) -> None:
    with RawServer(_numbered(60, body)) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1).code is ExitCode.DONE
        assert (
            len({target for target in server.log.targets() if target.startswith("/item/") and target != "/item/60"})
            == found
        )


def test_budgets(tmp_path: Path) -> None:
    with RawServer(_numbered(60, "<p>Whatever is told about {word}</p>")) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1, pattern_budget=20).code is ExitCode.DONE
        assert sum(target.startswith("/item/") for target in server.log.targets()) == 20
        assert _held_back(tmp_path) == [(f"pattern-budget: 20: {server.url('/item/N')}", 1, 0, server.url("/item/20"))]


@pytest.mark.parametrize(("kind", "reached"), [("follow", {"/there"}), ("seeds", {"/there", "/on"}), ("stop", set())])
def test_where_a_seed_redirects_to(tmp_path: Path, kind: str, reached: set[str]) -> None:
    with RawServer({}, hosts=("127.0.0.1", "127.0.0.2")) as server:
        server.routes = {
            "//127.0.0.1/": redirect(server.url("/there", host="127.0.0.2")),
            "//127.0.0.2/there": ok(page("There", ["/on"])),
            "//127.0.0.2/on": ok(page("On")),
        }
        crawl(tmp_path, server.url(), redirects=kind, robots="ignore", allow_private=("127.0.0.0/8",), max_urls=2)
        crawl(tmp_path, server.url(), redirects=kind, robots="ignore", allow_private=("127.0.0.0/8",), resume=True)
        assert {row.target for row in server.log if row.host == "127.0.0.2"} == reached
