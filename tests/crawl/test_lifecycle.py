"""A crawl from its first claim to its ending: order, redirects, retries, misbehaviour, and when it is over."""

import socket
import threading
import time
from pathlib import Path

import pytest

from archiver.config.option_types import Rate
from archiver.model import ExitCode
from fixtures import badserver
from fixtures.archives import captured, rows, states, stored
from fixtures.badserver import BAD, ENDLESS, NO_ANSWER
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.flag import Flag, Gate
from fixtures.log import Row
from fixtures.rawserver import Answer, End, RawServer, Route, Sendable, in_turn, keep
from fixtures.sites import message, oddities, ok, page, redirect, tree


def _notes(directory: Path) -> dict[str, str]:
    return {str(url): str(note) for url, note in rows(directory, "SELECT url, note FROM urls")}


def test_breadth_first_and_requisites_before_further_pages(tmp_path: Path) -> None:
    """One request at a time, and time for each page's links to be known before the next turn."""
    site = tree(13, images=13, fanout=3)
    with RawServer(site.routes) as server:
        ending = crawl(tmp_path, server.url(), rate=Rate(20), host_concurrency=1, concurrency=1)
        order = server.log.targets()
    assert ending.code is ExitCode.DONE
    pages = [target for target in order if target == "/" or target.startswith("/p")]
    assert pages == ["/", *(f"/p{number}.html" for number in range(1, 13))]
    assert order[:3] == ["/robots.txt", "/", "/style.css"]
    for number in range(12):
        assert order.index(f"/i{number}.gif") < order.index(f"/p{number + 1}.html")


def test_many_seeds_before_what_they_lead_to(tmp_path: Path) -> None:
    routes: dict[str, Route] = {f"/seed/{number}": ok(page("Seed", [f"/page/{number}"])) for number in range(100)}
    routes |= {f"/page/{number}": ok(page("Page")) for number in range(100)}
    with RawServer(routes) as server:
        ending = crawl(tmp_path, *(server.url(f"/seed/{number}") for number in range(100)), host_concurrency=1)
        order = [target for target in server.log.targets() if target != "/robots.txt"]
    assert ending.code is ExitCode.DONE
    assert order[:100] == [f"/seed/{number}" for number in range(100)]
    assert sorted(order[100:]) == sorted(f"/page/{number}" for number in range(100))


def test_redirects_and_dead_ends(tmp_path: Path) -> None:
    site = oddities()
    with RawServer(site.routes) as server:
        ending = crawl(tmp_path, server.url(), retries=0)
        assert ending.code is ExitCode.DONE
        assert sorted(server.log.targets()) == sorted({*site.reachable, "/robots.txt"})
        assert [url for url, _ in captured(tmp_path)] == sorted(map(server.url, {*site.reachable, "/robots.txt"}))
        notes = _notes(tmp_path)
        assert notes[server.url("/itself")] == "redirect loop: back to itself"
        assert "not followed" in notes[server.url("/endless/10")]
        assert "not followed" not in notes[server.url("/endless/9")]


def test_a_loop_of_redirects_ends_in_a_row_that_says_so(tmp_path: Path) -> None:
    routes: dict[str, Route] = {f"/{number}": redirect(f"/{(number + 1) % 3}") for number in range(3)}
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url("/0")).code is ExitCode.DONE
        assert server.log.targets() == ["/robots.txt", "/0", "/1", "/2"]
        assert _notes(tmp_path)[server.url("/2")] == f"redirect loop: back to {server.url('/0')}"


def test_a_redirect_from_robots_txt_to_a_page_that_is_linked(tmp_path: Path) -> None:
    """Whoever comes first, the page is fetched once, and the crawl ends."""
    routes = {
        "/robots.txt": redirect("/page"),
        "/": ok(page("Start", ["/page", "/other"])),
        "/page": ok(page("Page")),
        "/other": ok(page("Other")),
    }
    with RawServer(routes) as server:
        ending = crawl(tmp_path, server.url(), server.url("/page"))
        assert ending.code is ExitCode.DONE
        assert sorted(server.log.targets()) == ["/", "/other", "/page", "/robots.txt"]


def test_an_overloaded_server_is_asked_again_and_both_answers_are_kept(tmp_path: Path) -> None:
    busy = keep(message("503 Service Unavailable", b"later", retry_after="1"))
    with RawServer({"/": in_turn(busy, ok("now"))}) as server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert server.log.targets() == ["/robots.txt", "/", "/"]
        assert server.log[2].arrived - server.log[1].arrived > 0.95
        assert [(each.status, each.body) for each in stored(tmp_path)[1:]] == [("503", b"later"), ("200", b"now")]
        assert states(tmp_path)[server.url()] == "archived"


def test_a_retry_does_not_wait_until_all_else_is_done(tmp_path: Path) -> None:
    """Its time has come while another host keeps the crawl busy."""
    gate = Gate()
    cut = Answer((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",), End.CLOSE)
    again = Flag()

    def whole(row: Row) -> Sendable:
        del row
        again.raise_()
        return ok("all of it")

    def open_when_asked_again() -> None:
        again.wait()
        gate.open()

    routes: dict[str, Route] = {"//127.0.0.2/": Answer((gate, b"HTTP/1.1 200 OK\r\n\r\n"), End.CLOSE)}
    routes["//127.0.0.1/"] = in_turn(cut, whole)
    with RawServer(routes, hosts=("127.0.0.1", "127.0.0.2")) as server:
        opener = threading.Thread(target=open_when_asked_again)
        opener.start()
        ending = crawl(tmp_path, server.url(), server.url(host="127.0.0.2"), robots="ignore")
        opener.join()
    assert ending.code is ExitCode.DONE


def test_a_server_that_comes_up_late(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    late = threading.Event()

    def serve() -> None:
        time.sleep(1)
        with RawServer({"/": ok("here")}, port=port):
            late.wait()

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        ending = crawl(tmp_path, f"http://127.0.0.1:{port}/", robots="ignore")
    finally:
        late.set()
        serving.join()
    assert ending.code is ExitCode.DONE
    assert [each.body for each in stored(tmp_path)] == [b"here"]


def test_everything_that_a_server_can_do_wrong_in_one_crawl(tmp_path: Path) -> None:
    routes = badserver.routes() | {f"/{name}": route for name, route in (NO_ANSWER | ENDLESS).items()}
    routes["/"] = ok(page("All", [target for target in routes if target != "/"]))
    with RawServer(routes) as server:
        ending = crawl(tmp_path, server.url(), retries=0, timeout=1.0, max_response_size=200_000, host_concurrency=8)
        assert ending.code is ExitCode.DONE
        found = states(tmp_path)
        for name in (*BAD, *ENDLESS):
            assert found[server.url(f"/{name}")] == "archived", name
        for name in NO_ANSWER:
            assert found[server.url(f"/{name}")] == "failed", name
        urls = [url for url, _ in captured(tmp_path)]
        assert len(urls) == len(set(urls))
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE


@pytest.mark.alone
@pytest.mark.parametrize("rate", [Rate(1, 3600.0), Rate(0)])
def test_it_ends_at_once_when_nothing_is_left(tmp_path: Path, rate: Rate) -> None:
    """Whatever the rate, the crawl does not wait for a turn that no URL needs."""
    with RawServer({"/": ok("all")}) as server:
        begun = time.monotonic()
        ending = crawl(tmp_path, server.url(), rate=rate, robots="ignore")
    assert ending.code is ExitCode.DONE
    assert time.monotonic() - begun < 500  # of the hour until the next turn


@pytest.mark.alone
def test_waiting_costs_no_time_of_the_processor(tmp_path: Path) -> None:
    busy = keep(message("503 Service Unavailable", b"later", retry_after="3"))
    with RawServer({"/": in_turn(busy, ok("now"))}) as server:
        begun, used = time.monotonic(), time.process_time()
        crawl(tmp_path, server.url())
        assert time.monotonic() - begun > 3
        assert time.process_time() - used < 1


@pytest.mark.alone
def test_work_that_waits_for_a_free_place_costs_no_time_of_the_processor(tmp_path: Path) -> None:
    """Every place is taken by one slow host while another host has much to do."""
    slow = Answer((2.0, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow"))
    routes: dict[str, Route] = {"//127.0.0.1/": slow, "//127.0.0.2/": ok(page("Much", [f"/{n}" for n in range(20)]))}
    with RawServer(routes, hosts=("127.0.0.1", "127.0.0.2")) as server:
        begun, used = time.monotonic(), time.process_time()
        seeds = (server.url(), server.url(host="127.0.0.2"))
        crawl(tmp_path, *seeds, concurrency=1, robots="ignore")
        assert time.monotonic() - begun > 2
        assert time.process_time() - used < 1


def test_no_seed(tmp_path: Path) -> None:
    """A name that does not resolve and a port where nobody listens are rows with their reasons."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    seeds = ("http://no-such-host.invalid/", f"http://127.0.0.1:{port}/")
    ran = archiver("crawl", *seeds, "-o", "c", "--retries", "0", cwd=tmp_path)
    assert ran.returncode == ExitCode.NO_SEED, ran.stderr
    assert "Traceback" not in ran.stderr
    found = rows(tmp_path / "c", "SELECT failure, note FROM urls WHERE path = '' ORDER BY id")
    assert found[0] == ("dns", "dns: host name no-such-host.invalid does not resolve")
    assert found[1][0] == "connect"
    assert str(found[1][1]).startswith("connect: ")
    assert set(states(tmp_path / "c").values()) == {"failed"}
