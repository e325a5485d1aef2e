"""A site of traps, crawled whole: the crawl ends by itself, has every real page, and wastes little."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from archiver.cli.retry import retry
from archiver.collection.orders.retry import RetryRequest
from archiver.config.option_types import Rate
from archiver.crawl.recovery import rebuild
from archiver.frontier.retry import HeldPattern, held_patterns
from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from fixtures import endless_sites, near_copies, scarce_sites, site_of_traps, trap_lookalikes
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl, settings
from fixtures.log import Row
from fixtures.rawserver import NOT_FOUND, Answer, RawServer, Route, keep
from fixtures.sites import PIXEL, ok, page, redirect
from fixtures.trap_lookalikes import Moved, Site

HELD = "SELECT url, note FROM urls WHERE state = 'held' ORDER BY url"


def _held_patterns(directory: Path) -> list[HeldPattern]:
    with closing(sqlite3.connect(directory / "crawl.db")) as db:
        return held_patterns(db)


def _held(directory: Path) -> dict[str, HeldPattern]:
    """Return the held patterns by name; of one that two rules hold, the last."""
    return {each.pattern: each for each in _held_patterns(directory)}


def test_a_site_of_traps(tmp_path: Path) -> None:
    """Nothing real is missing, what six kinds of traps cost is bounded, and what is left waits to be released."""
    with site_of_traps.server() as server:
        ending = crawl(tmp_path, server.url(), max_urls=3000, trap_budget=150, rate=Rate(0), host_concurrency=2)
        assert ending.code is ExitCode.DONE
        asked = server.log.targets()
    assert site_of_traps.real() - set(asked) == set()
    assert sum(map(site_of_traps.is_trap, asked)) < 600  # the order in which answers come decides, a few dozen
    assert len(asked) == len(set(asked))
    found = _held_patterns(tmp_path)
    assert len({each.pattern for each in found}) > 3
    waiting = sum(each.urls for each in found)  # of one pattern, two rules may hold some URLs each
    assert waiting > 100
    assert rows(tmp_path, "SELECT sum(held) FROM hosts") == [(waiting,)]
    assert rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'held' AND via IS NULL") == [(0,)]


def test_a_later_run_knows_the_traps(tmp_path: Path) -> None:
    with site_of_traps.server() as server:
        crawl(tmp_path, server.url(), max_urls=3000, trap_budget=100, rate=Rate(0))
        before = _held(tmp_path)
        asked = len(server.log.targets())
        assert crawl(tmp_path, server.url(), trap_budget=100, rate=Rate(0), resume=True).code is ExitCode.DONE
        assert len(server.log.targets()) == asked
    assert _held(tmp_path) == before


def test_without_the_rules_there_is_no_end(tmp_path: Path) -> None:
    with site_of_traps.server() as server:
        assert crawl(tmp_path, server.url(), max_urls=1000, traps="off", drop_query=("none",)).code is ExitCode.LIMIT
        assert sum(map(site_of_traps.is_trap, server.log.targets())) > 150
    assert _held(tmp_path) == {}


def _numbered(count: int, body: str) -> dict[str, Route]:
    """Pages of one pattern, each of which names the next one alone, and shows *body* with its number in it."""
    routes: dict[str, Route] = {
        f"/item/{n}": ok(page("Item", body=body.format(n=n, word="abcdefghij"[n % 10] * (n // 10 + 3))) + _next(n))
        for n in range(count)
    }
    return {**routes, "/": ok('<a href="/item/0">first</a>')}


def _next(number: int) -> str:
    return f'<a href="/item/{number + 1}">next</a>'


def test_a_list_of_data_without_an_end(tmp_path: Path) -> None:
    """A script reads it, and each part names the next one."""
    routes: dict[str, Route] = {"/": ok("<script>fetch('/api/x?page=1').then(more)</script>")}
    for n in range(1, 600):
        part = f'{{"items": [], "links": {{"next": "/api/x?page={n + 1}"}}}}'
        routes[f"/api/x?page={n}"] = ok(part, "application/json")
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), trap_budget=30, rate=Rate(0)).code is ExitCode.DONE
        assert 30 < sum("/api/" in target for target in server.log.targets()) < 400
    assert [pattern.partition("/api/")[2] for pattern in _held(tmp_path)] == ["x?page"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<p>Whatever is told about {word}</p>", 60),
        ('<img src="/picture/{n}.gif">', 11),  # and as many images that are not there
        ("<p>This is number {n}</p>", 20),
        ("<p>Nothing at all was found</p>", 20),
    ],
)
def test_what_is_nothing_new(tmp_path: Path, body: str, found: int) -> None:
    with RawServer(_numbered(60, body)) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1, trap_budget=20).code is ExitCode.DONE
        asked = {target for target in server.log.targets() if target.startswith("/item/") and target != "/item/60"}
    assert found <= len(asked) <= found + 1


def test_pictures_answer_for_their_pages(tmp_path: Path) -> None:
    routes = _numbered(60, '<img src="/picture/{n}.gif">')
    routes |= {f"/picture/{n}.gif": ok(PIXEL + b"%d" % n, "image/gif") for n in range(60)}
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), trap_budget=20).code is ExitCode.DONE
        assert set(routes) <= set(server.log.targets())


def test_what_is_held_is_released_by_one_command(tmp_path: Path) -> None:
    """Page after page that shows nothing: each release fetches some more, and no page is fetched twice."""
    with RawServer(_numbered(60, "<p>Nothing at all was found</p>")) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1, trap_budget=20).code is ExitCode.DONE
        before = server.log.targets()
        (held,) = _held(tmp_path).values()
        assert (held.pattern, held.rule, held.urls) == (server.url("/item/N"), "trap-budget: 20", 1)
        assert rows(tmp_path, "SELECT url, failure FROM urls WHERE state = 'held'") == [(held.example, "trap")]
        (tmp_path / "crawl.toml").write_text(f'seeds = ["{server.url()}"]\ntrap-budget = 20\n')
        assert retry(tmp_path, RetryRequest((held.pattern,), held=True)) is ExitCode.DONE
        assert _held(tmp_path) == {}
        assert crawl(tmp_path, server.url(), trap_budget=20, resume=True).code is ExitCode.DONE
        after = server.log.targets()[len(before) :]
    assert 15 <= sum(target.startswith("/item/") for target in after) <= 25
    assert not set(before) & set(after)
    assert list(_held(tmp_path)) == [held.pattern]


def _served(site: Site) -> RawServer:
    """*site* over HTTP."""

    def answer(row: Row) -> Answer:
        body = site(row.target)
        if body is None:
            return keep(NOT_FOUND)
        if isinstance(body, Moved):
            return redirect(body.decode())
        return ok(body, "image/gif" if body.startswith(b"GIF") else "text/html")

    return RawServer({}, otherwise=answer)


def test_a_real_site_beside_traps(tmp_path: Path) -> None:
    """Over HTTP as without: every real page, and no more of the traps than the budget and what was under way."""
    family = trap_lookalikes.family("weather", trap_lookalikes.weather(20, 12))
    names = (
        "calendar with a page for each day",
        "search that offers longer queries",
        "relative links on soft 404 pages",
    )
    with _served(endless_sites.beside(family.site, *names)) as server:
        assert crawl(tmp_path, server.url(), rate=Rate(0), trap_budget=200).code is ExitCode.DONE
        asked = [target for target in server.log.targets() if target not in {"/robots.txt", "/favicon.ico"}]
    assert family.real <= set(asked)
    assert len(asked) - len(family.real) < 500
    assert _held(tmp_path)
    assert rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'waiting'") == [(0,)]


@pytest.mark.parametrize(
    ("site", "budget", "first"),
    [
        (near_copies.stamps(12, 50), 100, 300),  # a list names them, so they go after the lists
        (scarce_sites.thesaurus(1800), 800, 900),  # words that name each other, and ever fewer new ones
    ],
    ids=["near copies", "words"],
)
def test_a_later_run_fetches_all_pages_of_a_site_that_ends(tmp_path: Path, site: Site, budget: int, first: int) -> None:
    family = trap_lookalikes.family("site", site)
    with _served(family.site) as server:
        code = crawl(tmp_path, server.url(), rate=Rate(0), trap_budget=budget, max_urls=first).code
        assert code is ExitCode.LIMIT
        code = crawl(tmp_path, server.url(), rate=Rate(0), trap_budget=budget, resume=True).code
        assert code is ExitCode.DONE
        asked = server.log.targets()
    assert family.real <= set(asked)
    assert _held(tmp_path) == {}


def test_a_forum_with_a_session_in_every_link(tmp_path: Path) -> None:
    family = trap_lookalikes.named_family("forum with session ids in every link")
    with _served(family.site) as server:
        assert crawl(tmp_path, server.url(), rate=Rate(0), trap_budget=300).code is ExitCode.DONE
        assert family.real <= {trap_lookalikes.plain(target) for target in server.log.targets()}


def _forum(target: str) -> bytes | None:
    """Topics, each with a link to report it, which leads to a form to log in, and one to its last page."""
    kind, _, rest = target.removeprefix("/").partition("/")
    if target == "/":
        return page("Home", [f"/topic/{n}/" for n in range(100)]).encode()
    if kind == "login":
        form = '<form method="post"><p>Password</p><input type="password" name="word"></form>'
        return page("Log in", body=form).encode()
    number, _, what = rest.partition("/")
    if kind == "goto":
        return Moved(f"/topic/{number}/last".encode())
    if kind != "topic":
        return None
    if what == "report/":
        return Moved(f"/login/?next=%2Ftopic%2F{number}%2Freport%2F".encode())
    words = trap_lookalikes.prose(target)
    return page(
        "Topic", [] if what else [f"/topic/{number}/report/", f"/goto/{number}"], body=f"<p>{words}</p>"
    ).encode()


def test_redirects_to_a_form_that_is_held(tmp_path: Path) -> None:
    """Few are followed, the rest waits to be released; redirects to new pages are all followed."""
    with _served(_forum) as server:
        assert crawl(tmp_path, server.url(), rate=Rate(0), host_concurrency=1).code is ExitCode.DONE
        asked = set(server.log.targets())
        rest = [f"/topic/{n}/report/" for n in range(100) if f"/topic/{n}/report/" not in asked]
        assert {f"/topic/{n}/{what}" for n in range(100) for what in ("", "last")} <= asked
        assert len(rest) > 60
        held = _held(tmp_path)[server.url("/topic/N/report/")]
        assert (held.urls, held.rule) == (len(rest), "traps: on: a form that is the same under each URL")
        (tmp_path / "crawl.toml").write_text(f'seeds = ["{server.url()}"]\n')
        assert retry(tmp_path, RetryRequest((held.pattern,), held=True)) is ExitCode.DONE
        assert crawl(tmp_path, server.url(), rate=Rate(0), resume=True).code is ExitCode.DONE
        assert set(rest) <= set(server.log.targets())


def test_budgets(tmp_path: Path) -> None:
    with RawServer(_numbered(60, "<p>Whatever is told about {word}</p>")) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1, pattern_budget=20).code is ExitCode.DONE
        assert sum(target.startswith("/item/") for target in server.log.targets()) == 20
        name, example = server.url("/item/N"), server.url("/item/20")
        assert list(_held(tmp_path).values()) == [HeldPattern(name, "pattern-budget: 20", 1, example, 0, 20, 20)]


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


def test_a_lost_database_brings_held_urls_back(tmp_path: Path) -> None:
    """Those held when they were found, and those held when their turn came: no request is made for any of them."""
    routes: dict[str, Route] = {"/": ok('<a href="/item/0">first</a>')}
    routes |= {f"/item/{n}": ok(page("Item") + "".join(map(_next, range(n, n + 40)))) for n in range(99)}
    with RawServer(routes) as server:
        wanted = settings(server.url(), host_concurrency=1, trap_budget=20)
        assert crawl(tmp_path, server.url(), host_concurrency=1, trap_budget=20).code is ExitCode.DONE
        before, asked = rows(tmp_path, HELD), len(server.log)
        assert len(before) > 1
        assert rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'held' AND settled > 0") > [(0,)]
        asyncio.run(rebuild.rebuilt(tmp_path, wanted, lambda *_: None))
        assert crawl(tmp_path, server.url(), trap_budget=20, resume=True).code is ExitCode.DONE
        assert len(server.log) == asked
    assert {url for url, _ in rows(tmp_path, HELD)} == {url for url, _ in before}
    assert not verify([tmp_path]).findings
