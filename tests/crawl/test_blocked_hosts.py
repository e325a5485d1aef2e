"""Sites that refuse us, and sites that only look so: real crawls, the verdict, and what a resume does."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.config import toml
from archiver.config.option_types import Rate
from archiver.model import ExitCode
from archiver.policy import block_pages
from fixtures.archives import rows, states
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl, settings
from fixtures.log import Row
from fixtures.rawserver import Answer, RawServer, Route, Sendable, in_turn, keep
from fixtures.sites import message, ok, page
from fixtures.thread_delay import MOST_JITTER

AT_ONCE = 2  # requests that may be under way when a site begins to refuse them
FORBIDDEN = keep(message("403 Forbidden", b"<title>403 Forbidden</title>no", content_type="text/html"))
CHALLENGE = keep(
    message(
        "403 Forbidden",
        b"<html><head><title>Just a moment...</title></head>Enable JavaScript and cookies to continue</html>",
        content_type="text/html",
        server="cloudflare",
    )
)


def turning(pages: int, after: int, refusal: Answer) -> dict[str, Route]:
    """A site of so many linked *pages* that answers *refusal* to everything *after* so many answers."""
    names = [f"/p{number}" for number in range(pages)]
    given = 0

    def route(name: str) -> Callable[[Row], Answer]:
        def answer(_: Row) -> Answer:
            nonlocal given
            given += 1
            return ok(page(name, names)) if given <= after else refusal

        return answer

    return {name: route(name) for name in ["/", *names]}


def test_a_site_that_challenges_every_link(tmp_path: Path) -> None:
    names = [f"/p{number}" for number in range(60)]
    with RawServer({"/": ok(page("Home", names)), **dict.fromkeys(names, CHALLENGE)}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", "--rate", "0", "-q", "--strict", cwd=tmp_path)
        asked = server.log.targets()
        assert ran.returncode == ExitCode.TROUBLE, ran.stderr
        assert len(asked) < 50
        words = " ".join(ran.stderr.split())
        assert f"blocked {server.url().rstrip('/')} started to block us at " in words
        assert " UTC after 1 page (403 on " in words
        assert "Cloudflare); it is paused with " in words
        assert "archiver retry o --blocked && archiver resume o --rate 1/5" in ran.stderr
        log = (tmp_path / "o" / "logs" / "crawl.log").read_text()
        assert log.count(" blocked:Cloudflare") == sum(name in names for name in asked)
        told = json.loads(archiver("report", "o", "--json", cwd=tmp_path).stdout)["verdict"]
        assert told["pages"]["blocked"] == {"403": sum(name in names for name in asked)}
        waiting = [url for url, state in states(tmp_path / "o").items() if state == "waiting" and "/p" in url]
        assert len(waiting) == 60 - sum(name in names for name in asked)
        listed = archiver("urls", "o", "--blocked", cwd=tmp_path).stdout.splitlines()
        assert len(listed) == told["pages"]["blocked"]["403"]
        blocked = "SELECT count(*) FROM captures WHERE blocked = 'Cloudflare'"
        marked = rows(tmp_path / "o", blocked)
        assert archiver("rebuild", "o", cwd=tmp_path).returncode == ExitCode.DONE  # the records say it all again
        assert rows(tmp_path / "o", blocked) == marked
    assert archiver("verify", "o", cwd=tmp_path).returncode == ExitCode.DONE


def test_a_site_that_begins_to_refuse_us_goes_on_when_it_lets_us(tmp_path: Path) -> None:
    """Paused, resumed in vain, and resumed when the site has forgiven us: not a page is lost."""
    routes = turning(80, 20, FORBIDDEN)
    with RawServer(routes) as server:
        ending = crawl(tmp_path, server.url())
        assert ending.code is ExitCode.DONE
        assert ending.reason == f"blocked: {server.url().rstrip('/')} refuses us, and its URLs wait"
        assert len(server.log.targets()) < 60
        ((refuses, paused),) = rows(tmp_path, "SELECT blocked_since > 0, paused FROM hosts")
        assert (refuses, paused) == (1, 1)
        before = len(server.log.targets())
        assert crawl(tmp_path, server.url(), resume=True).reason.startswith("blocked: ")
        assert len(server.log.targets()) - before < 10
        waiting = next(url for url, state in states(tmp_path).items() if state == "waiting")
        (tmp_path / "crawl.toml").write_text(toml.render(settings(server.url())))
        explained = archiver("explain", str(tmp_path), waiting, cwd=tmp_path).stdout
        assert "the next run: its host refuses us and is paused" in explained
        status = archiver("status", str(tmp_path), cwd=tmp_path).stdout
        assert "after 20 pages (403 on " in status
        assert "refuses us, paused" in status
        for name in [*routes]:
            routes[name] = ok(page(name))
        ran = archiver("retry", str(tmp_path), "--blocked", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE
        assert crawl(tmp_path, server.url(), resume=True).reason == "done"
        assert rows(tmp_path, "SELECT blocked_since, paused FROM hosts") == [(0, 0)]
    assert rows(tmp_path, "SELECT DISTINCT state, status FROM urls WHERE priority >= 0") == [("archived", 200)]
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE


def test_a_quick_site_is_asked_for_little_once_it_refuses(tmp_path: Path) -> None:
    """Without a rate: a refusal counts before it is committed, or dozens of requests would come in between."""
    with RawServer(turning(200, 20, FORBIDDEN)) as server:
        ran = archiver("crawl", server.url(), "-o", "o", "--rate", "0", "--probe", "off", cwd=tmp_path)
        asked = server.log.targets()
    assert ran.returncode == ExitCode.DONE
    assert " and is paused; its URLs wait for archiver resume" in ran.stderr
    assert "archiver retry o --blocked && archiver resume o --rate 1/5" in ran.stderr
    assert len(asked) - 1 - 20 <= block_pages.ENOUGH_PLAIN + block_pages.SLOWER_AT + 1  # robots.txt aside


@pytest.mark.parametrize("fields", [{}, {"retry_after": "3"}], ids=["429", "429 with Retry-After"])
def test_a_site_that_wants_fewer_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    """Slowed down by each refusal, paused when they do not end, and complete when the site gives its pages again."""
    monkeypatch.setattr(block_pages, "OVERLOAD", 4.0)  # seconds that 429 must last; a minute is long for a test
    limit = keep(message("429 Too Many Requests", b"slow down", content_type="text/html", **fields))
    routes = turning(80, 20, limit)
    with RawServer(routes) as server:
        ending = crawl(tmp_path, server.url(), rate=Rate(0), host_concurrency=AT_ONCE, probe="off")
        assert ending.reason == f"blocked: {server.url().rstrip('/')} refuses us, and its URLs wait"
        arrived = [row.arrived for row in server.log][21:]  # after robots.txt and 20 pages
        assert len(arrived) <= 2 * block_pages.ENOUGH_OVERLOADED + AT_ONCE
        at_once = sum(later - arrived[0] < (3 if fields else 1) - MOST_JITTER for later in arrived)
        assert at_once <= AT_ONCE
        (tmp_path / "crawl.toml").write_text(toml.render(settings(server.url())))
        status = " ".join(archiver("status", str(tmp_path), cwd=tmp_path).stdout.split())
        assert "after 20 pages (429 on " in status
        assert re.search(r"it is paused with \d+ URLs waiting", status)
        assert "--blocked && archiver resume " in status
        before = len(server.log.targets())
        assert crawl(tmp_path, server.url(), resume=True).reason.startswith("blocked: ")
        assert len(server.log.targets()) - before < 10
        for name in [*routes]:
            routes[name] = ok(page(name))
        assert archiver("retry", str(tmp_path), "--blocked", cwd=tmp_path).returncode == ExitCode.DONE
        assert crawl(tmp_path, server.url(), resume=True).reason == "done"
    assert rows(tmp_path, "SELECT DISTINCT state, status FROM urls WHERE priority >= 0") == [("archived", 200)]
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE


@pytest.mark.parametrize("late_page", [False, True], ids=["late refusals", "late page"])
def test_refusals_of_requests_that_were_under_way_at_the_pause_count_too(tmp_path: Path, *, late_page: bool) -> None:
    """The command of the verdict fetches them as well."""
    late = Answer((0.3, message("403 Forbidden", b"no")))
    answers = in_turn(FORBIDDEN) if late_page else in_turn(*[late] * 2, *[FORBIDDEN] * 8, late)
    last_good = Answer((0.3, message("200 OK", page("last").encode(), content_type="text/html")))
    routes = turning(200, 60, FORBIDDEN)
    good = 0

    def some_late(route: Route) -> Callable[[Row], Sendable]:
        def answer(row: Row) -> Sendable:
            nonlocal good
            given = route(row) if callable(route) else route
            if given is FORBIDDEN:
                return answers(row)
            good += 1
            return last_good if late_page and good == 60 else given

        return answer

    with RawServer({name: some_late(route) for name, route in routes.items()}) as server:
        ending = crawl(tmp_path, server.url(), rate=Rate(0), host_concurrency=16, probe="off")
        assert ending.code is ExitCode.DONE
    ((refused,),) = rows(tmp_path, "SELECT count(*) FROM captures WHERE status = 403")
    assert rows(tmp_path, "SELECT count(*) FROM captures WHERE blocked <> ''") == [(refused,)]
    assert rows(tmp_path, "SELECT status FROM urls WHERE path = ''") == [(200,)]


def test_pages_that_were_refused_with_status_200_are_fetched_again(tmp_path: Path) -> None:
    """Only that they are all alike shows the block. The verdict counts them, and its command fetches them."""
    refusal = ok("<title>Blocked</title><h1>Your address is blocked</h1><p>Too many requests.</p>")
    routes = turning(40, 12, refusal)
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", "--rate", "0", "-q", "--probe", "off", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        asked = len(server.log.targets()) - 1 - 12  # robots.txt and the pages aside
        words = " ".join(ran.stderr.split())
        assert re.search(r"after 12 pages \(200 on (\d+) of the last \1\)", words), words
        (alike,) = rows(tmp_path / "o", "SELECT count(*) FROM captures WHERE blocked <> ''")
        assert alike == (asked,)
        assert f"{asked} challenge or block pages (200)" in words
        for name in [*routes]:
            routes[name] = ok(page(name))
        assert archiver("retry", "o", "--blocked", cwd=tmp_path).returncode == ExitCode.DONE
        ran = archiver("resume", "o", "-q", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert "verdict   41 pages: 41 ok" in ran.stderr
        served = archiver("get", "o", server.url("/p20"), cwd=tmp_path).stdout
    assert "<title>/p20</title>" in served


def test_the_first_page_counts_as_given_although_it_was_asked_for_in_vain_later(tmp_path: Path) -> None:
    """A seed that was archived stays a good seed: the exit code is not 6."""
    with RawServer(turning(40, 12, FORBIDDEN)) as server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert server.log.targets().count("/") == 2
    assert rows(tmp_path, "SELECT status FROM urls WHERE path = ''") == [(200,)]


def test_a_closed_directory_costs_no_other_page(tmp_path: Path) -> None:
    closed = [f"/private/{number}" for number in range(70)]
    names = [f"/p{number}" for number in range(70)]
    routes: dict[str, Route] = {name: ok(page(name)) for name in names}
    routes |= {"/": ok(page("Home", [*closed, *names])), **dict.fromkeys(closed, FORBIDDEN)}
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url()).reason == "done"
        asked = server.log.targets()
        assert {*closed, *names} <= set(asked)
        assert asked.count("/") <= 4
    assert rows(tmp_path, "SELECT count(*) FROM captures WHERE blocked <> ''") == [(0,)]


@pytest.mark.parametrize("status", ["500 Internal Server Error", "403 Forbidden", "404 Not Found"])
def test_every_second_page_is_broken(tmp_path: Path, status: str) -> None:
    names = [f"/p{number}" for number in range(60)]
    broken = keep(message(status, b"no", content_type="text/html"))
    routes: dict[str, Route] = {name: broken if place % 2 else ok(page(name)) for place, name in enumerate(names)}
    with RawServer({"/": ok(page("Home", names)), **routes}) as server:
        assert crawl(tmp_path, server.url()).reason == "done"
        assert sorted(server.log.targets()) == sorted(["/robots.txt", "/", *names])


def test_a_challenge_as_the_seed_is_no_usable_answer(tmp_path: Path) -> None:
    shown = ok("<title>Just a moment...</title><p>Checking your browser before accessing the site.")
    with RawServer({"/": shown}) as server:
        ran = archiver("crawl", server.url(), "-o", "o", "--rate", "0", "-q", cwd=tmp_path)
    assert ran.returncode == ExitCode.NO_SEED
    assert "1 challenge or block page (200)" in ran.stderr


def test_other_hosts_go_on(tmp_path: Path) -> None:
    """A host that refuses us does not end the crawl of the others."""
    names = [f"/p{number}" for number in range(40)]
    with (
        RawServer(turning(60, 15, CHALLENGE)) as bad,
        RawServer({name: ok(page(name, names)) for name in names}) as good,
    ):
        ending = crawl(tmp_path, bad.url(), good.url("/p0"))
        assert ending.reason.startswith("blocked: ")
        assert set(names) <= set(good.log.targets())


def test_guesses_that_are_forbidden_raise_no_doubt(tmp_path: Path) -> None:
    """Stores of files answer 403 where there is nothing, and scripts name much that is not there."""
    script = "\n".join(f'load("/data/{number}.json")' for number in range(30))
    routes = {"/": ok(page("Home", body='<script src="/app.js"></script>')), "/app.js": ok(script, "text/javascript")}
    with RawServer(routes, otherwise=FORBIDDEN) as server:
        assert crawl(tmp_path, server.url()).reason == "done"
        asked = server.log.targets()
        assert sum(target.startswith("/data/") for target in asked) > 20
        assert asked.count("/") == 1
