"""The real command against a server with a log: rates and concurrency are judged by what the server saw."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from fixtures.command import archiver
from fixtures.log import Row
from fixtures.rawserver import Answer, RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page, redirect
from fixtures.thread_delay import ThreadDelay

pytestmark = pytest.mark.alone


def slowly(answer: Answer, seconds: float) -> Answer:
    """*answer*, after a while."""
    return Answer((seconds, *answer.pieces))  # type: ignore[misc]


def site(pages: int, seconds: float = 0.0) -> dict[str, Route]:
    """A front page with links to all others, each answered after *seconds*."""
    names = [f"/p{number}.html" for number in range(pages - 1)]
    answers: dict[str, Answer] = {"/": ok(page("Front", names)), **{name: ok(page(name)) for name in names}}
    return {name: slowly(answer, seconds) if seconds else answer for name, answer in answers.items()}


def crawl(folder: Path, urls: Iterable[str], *options: str) -> str:
    ran = archiver("crawl", *urls, "-o", "c", "--probe", "off", *options, cwd=folder)  # only what pages name
    assert ran.returncode in (0, 5), ran.stderr
    return ran.stderr


def states(folder: Path) -> dict[str, tuple[str, str]]:
    with closing(sqlite3.connect(folder / "c/crawl.db")) as db:
        return {url: (state, note) for url, state, note in db.execute("SELECT url, state, note FROM urls")}


def span(server: RawServer) -> float:
    times = [row.arrived for row in server.log]
    return max(times) - min(times)


@pytest.mark.parametrize(
    ("rate", "seconds", "concurrency", "pages"),
    [
        (1, 0.0, 2, 3),
        (1, 0.4, 6, 3),
        (5, 0.0, 1, 9),
        (5, 0.5, 6, 9),
        (30, 0.0, 2, 50),
        (30, 0.1, 6, 50),
        (30, 0.1, 1, 15),
        (200, 0.0, 6, 400),
        (200, 0.02, 2, 100),
    ],
)
def test_rate_and_concurrency_are_never_exceeded(
    tmp_path: Path, rate: int, seconds: float, concurrency: int, pages: int, late: ThreadDelay
) -> None:
    with RawServer(site(pages, seconds)) as server:
        crawl(tmp_path, [server.url()], f"--rate={rate}", f"--host-concurrency={concurrency}")
        assert len(server.log) == pages + 1
        assert server.log.most_starts(late.within(1)) <= rate
        assert server.log.most_at_once() <= concurrency
        possible = min(rate, concurrency / seconds) if seconds else rate
        assert span(server) < 1.6 * pages / possible + 2.5 or not late.calm  # it is not too slow either


def test_an_interval_of_its_own(tmp_path: Path, late: ThreadDelay) -> None:
    with RawServer(site(9)) as server:
        crawl(tmp_path, [server.url()], "--rate=2/0.5")
        assert server.log.most_starts(late.within(0.5)) <= 2


def test_rate_0_has_no_limit(tmp_path: Path, late: ThreadDelay) -> None:
    with RawServer(site(200, 0.01)) as server:
        crawl(tmp_path, [server.url()], "--rate=0", "--host-concurrency=4")
        assert len(server.log) == 201
        assert server.log.most_at_once() <= 4
        assert server.log.most_starts(1.0) > 60 or not late.calm


def test_hosts_have_their_own_rates_side_by_side(tmp_path: Path, late: ThreadDelay) -> None:
    hosts = ("127.0.0.1", "127.0.0.2")
    with RawServer(site(12), hosts=hosts) as server:
        crawl(tmp_path, [server.url("/", host) for host in hosts], "--rate=5", "--concurrency=2")
        for host in hosts:
            assert sum(row.host == host for row in server.log) == 13
            assert server.log.most_starts(late.within(1), host) <= 5
        assert server.log.most_starts(1.0) > 6 or not late.calm  # both at once
        assert span(server) < 5 or not late.calm


def test_slow_hosts_do_not_hold_up_a_quick_one(tmp_path: Path, late: ThreadDelay) -> None:
    """Three hosts have more to do than they may, with workers for three requests in all; another has all it wants."""
    hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
    routes: dict[str, Route] = {f"//{hosts[3]}/robots.txt": ok("User-agent: *\nAllow: /", "text/plain"), **site(8)}
    for host in hosts[:3]:
        routes[f"//{host}/robots.txt"] = ok("User-agent: *\nCrawl-delay: 1\n", "text/plain")
    with RawServer(routes, hosts=hosts) as server:
        urls = [server.url("/", host) for host in hosts]
        crawl(tmp_path, urls, "--rate=20", "--concurrency=3", "--host-concurrency=6", "--max-time=5")
        first = server.log[0].arrived
        quick = [row.arrived - first for row in server.log if row.host == hosts[3]]
        assert len(quick) == 9
        assert max(quick) < 3 or not late.calm
        for host in hosts[:3]:
            assert server.log.most_starts(late.within(1), host) <= 1


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
def test_retry_after_parks_the_host(tmp_path: Path, status: str, late: ThreadDelay) -> None:
    said: list[float] = []

    def once(row: Row) -> Sendable:
        if said:
            return ok(page("Now it works"))
        said.append(row.arrived)
        return keep(message(status, b"later\n", retry_after="2"))

    routes = {**site(12), "/p3.html": once}
    with RawServer(routes, hosts=("127.0.0.1", "127.0.0.2")) as server:
        urls = [server.url("/", host) for host in server.hosts]
        crawl(tmp_path, urls, "--rate=10", "--host-concurrency=1")
        parked = next(row.host for row in server.log if row.arrived == said[0])
        after = [row.arrived - said[0] for row in server.log if row.host == parked and row.arrived > said[0]]
        assert min(after) >= late.within(2)
        other = [row.arrived - said[0] for row in server.log if row.host != parked and row.arrived > said[0]]
        assert min(other) < 1 or not late.calm
        assert len(server.log.requests("/p3.html")) == 3
        assert {state for state, _ in states(tmp_path).values()} == {"archived"}


def test_crawl_delay(tmp_path: Path, late: ThreadDelay) -> None:
    robots = ok("User-agent: *\nCrawl-delay: 1\n", "text/plain")
    with RawServer({**site(4), "/robots.txt": robots}) as server:
        crawl(tmp_path, [server.url()], "--rate=50")
        assert server.log.most_starts(late.within(1)) == 1


def test_what_robots_txt_forbids_is_never_asked_for(tmp_path: Path) -> None:
    robots = ok("User-agent: *\nDisallow: /p1\nDisallow: /p2.html$\n", "text/plain")
    with RawServer({**site(15), "/robots.txt": robots}) as server:
        crawl(tmp_path, [server.url()], "--rate=0")
        forbidden = {"/p1.html", "/p2.html", "/p10.html", "/p11.html", "/p12.html", "/p13.html"}
        assert server.log.targets()[0] == "/robots.txt"
        assert set(server.log.targets()) == {"/robots.txt", *site(15)} - forbidden
        rows = states(tmp_path)
        assert {url for url, (state, _) in rows.items() if state == "excluded"} == set(map(server.url, forbidden))
        assert rows[server.url("/p2.html")] == ("excluded", "robots.txt forbids it: Disallow: /p2.html$")


def test_robots_ignore_asks_for_none(tmp_path: Path) -> None:
    robots = ok("User-agent: *\nDisallow: /\n", "text/plain")
    with RawServer({**site(5), "/robots.txt": robots}) as server:
        crawl(tmp_path, [server.url()], "--rate=0", "--robots=ignore")
        assert set(server.log.targets()) == set(site(5))


def test_robots_txt_on_another_host(tmp_path: Path) -> None:
    """Its rules hold for the host that sent us there, and say nothing of the host on which they lie."""
    here, there = "127.0.0.1", "127.0.0.2"
    with RawServer(site(5), hosts=(here, there)) as server:
        server.routes = {
            **site(5),
            f"//{here}/robots.txt": redirect("/step"),
            f"//{here}/step": redirect(server.url("/rules.txt", there)),
            f"//{there}/rules.txt": ok("User-agent: *\nDisallow: /p1\n", "text/plain"),
        }
        crawl(tmp_path, [server.url()], "--rate=0", f"--allow-private={there}")
        seen = [(row.host, row.target) for row in server.log]
        assert seen[:3] == [(here, "/robots.txt"), (here, "/step"), (there, "/rules.txt")]
        assert {target for host, target in seen if host == here} == {"/robots.txt", "/step", *site(5)} - {"/p1.html"}
        assert {target for host, target in seen if host == there} <= {"/rules.txt", "/robots.txt"}


def test_robots_txt_that_is_the_front_page(tmp_path: Path) -> None:
    with RawServer({**site(5), "/robots.txt": redirect("/")}) as server:
        crawl(tmp_path, [server.url()], "--rate=0")
        assert sorted(server.log.targets()) == sorted(["/robots.txt", *site(5)])


def test_robots_txt_that_is_a_page_nobody_knew_yet(tmp_path: Path) -> None:
    """It is read for rules when robots.txt leads there, and for links all the same."""
    routes = {
        "/robots.txt": redirect("/"),
        "/start/": ok(page("Start", ["/"])),
        "/": ok(page("Front", ["/deep"])),
        "/deep": ok(page("Deep")),
    }
    with RawServer(routes) as server:
        crawl(tmp_path, [server.url("/start/")], "--rate=0")
        assert sorted(server.log.targets()) == sorted(routes)


def test_robots_txt_without_end(tmp_path: Path) -> None:
    turns: dict[str, Route] = {f"/r{step}": redirect(f"/r{step + 1}") for step in range(9)}
    with RawServer({**site(3), "/robots.txt": redirect("/r0"), **turns}) as server:
        crawl(tmp_path, [server.url()], "--rate=0")
        assert set(server.log.targets()) == {"/robots.txt", *(f"/r{step}" for step in range(5)), *site(3)}


@pytest.mark.parametrize("answer", [keep(message("500 Internal Server Error")), b""])
def test_robots_txt_that_cannot_be_had_closes_the_host(tmp_path: Path, answer: Sendable) -> None:
    with RawServer({**site(3), "/robots.txt": answer}, hosts=("127.0.0.1",)) as server:
        ran = archiver("crawl", server.url(), "-o", "c", "--rate=0", "--retries=1", "--robots-patience=1", cwd=tmp_path)
        assert ran.returncode == 6, ran.stderr
        assert set(server.log.targets()) == {"/robots.txt"}
        state, note = states(tmp_path)[server.url("/")]
        assert state == "failed"
        assert note
