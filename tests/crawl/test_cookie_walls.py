"""Cookie walls by redirect: the pages behind them are archived, a loop ends, and a kill changes neither."""

import re
import signal
from collections.abc import Callable
from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, states, stored
from fixtures.crawl_in_process import crawl
from fixtures.forks import Forks
from fixtures.log import Log, Row
from fixtures.rawserver import Answer, RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page, redirect
from fixtures.steps import COMMIT, RECOVERY

OPTIONS = ("-o", "c", "--rate", "0", "--host-concurrency", "1", "--min-free-disk", "0", "-qq")


def cookies_in(row: Row) -> dict[str, str]:
    """The cookies that a request sends."""
    found = re.search(rb"\r\nCookie: ([^\r]*)", row.request)
    parsed: SimpleCookie = SimpleCookie(found[1].decode() if found else "")
    return {name: morsel.value for name, morsel in parsed.items()}


def moved(location: str, cookie: str = "") -> Answer:
    """A redirect that may set a cookie."""
    if not cookie:
        return redirect(location)
    return keep(message("302 Found", b"moved", location=location, set_cookie=f"{cookie}; Path=/"))


def behind(wanted: str, wall: Callable[[Row], Sendable], answer: Answer) -> Route:
    """A route that gives *answer* to requests with the cookie *wanted*, and *wall* to others."""

    def route(row: Row) -> Sendable:
        sent = [f"{name}={value}" for name, value in cookies_in(row).items()]
        return answer if wanted in sent else wall(row)

    return route


def notes(directory: Path) -> dict[str, object]:
    return {str(url): note for url, note in rows(directory, "SELECT url, note FROM urls")}


def requested(log: Log) -> list[str]:
    return [target for target in log.targets() if target != "/robots.txt"]


def to_itself() -> dict[str, Route]:
    """A site whose pages redirect to themselves until they get a cookie."""
    pages = {"/": ok(page("Front", ["/a", "/b"])), "/a": ok(page("A")), "/b": ok(page("B"))}
    return {target: behind("seen=1", lambda row: moved(row.target, "seen=1"), here) for target, here in pages.items()}


def by_a_check() -> dict[str, Route]:
    """The same over a page that checks whether the browser keeps cookies."""
    pages = {"/": ok(page("Front", ["/a", "/b"])), "/a": ok(page("A")), "/b": ok(page("B"))}
    site = {target: behind("seen=1", lambda _: moved("/check"), here) for target, here in pages.items()}
    return {**site, "/check": moved("/", "seen=1")}


WAIT = "<title>Cookies</title><p>Please enable cookies, or <a href=%s>go on</a>.</p>"


def by_refresh(head: str, **fields: str) -> dict[str, Route]:
    """The same without redirects: a page asks the browser to load it again."""
    pages = {"/": ok(page("Front", ["/a", "/b"])), "/a": ok(page("A")), "/b": ok(page("B"))}
    return {
        target: behind(
            "seen=1",
            lambda row: ok((head + WAIT % row.target).encode(), set_cookie="seen=1; Path=/", **fields),
            here,
        )
        for target, here in pages.items()
    }


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        ('<meta http-equiv=refresh content="0; url=/">', {}),
        ('<meta http-equiv="Refresh" content="2">', {}),
        ("", {"refresh": "0"}),
        ("", {"refresh": "1; url=/"}),
    ],
)
def test_the_pages_behind_a_wall_that_refreshes_itself_are_archived(
    tmp_path: Path, forks: Forks, head: str, fields: dict[str, str]
) -> None:
    with RawServer(by_refresh(head, **fields)) as server:
        assert crawl(tmp_path / "c", server.url(), host_concurrency=1).code is ExitCode.DONE
        assert requested(server.log) == ["/", "/", "/a", "/b"]
    table = "SELECT url, state, status, note, tries, requeued FROM urls ORDER BY url"
    before = rows(tmp_path / "c", table)
    (tmp_path / "c/crawl.db").unlink()
    rebuilt = forks.archiver("rebuild", "c", cwd=tmp_path)
    assert rebuilt.returncode == ExitCode.DONE, rebuilt.stderr
    assert rows(tmp_path / "c", table) == before


def test_a_page_that_always_refreshes_itself_is_asked_three_times(tmp_path: Path) -> None:
    server = RawServer()
    server.routes = {"/": lambda _: ok(b"<meta http-equiv=refresh content=0>", set_cookie=f"n={len(server.log)}")}
    with server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert requested(server.log) == ["/"] * 3


@pytest.mark.parametrize("cookie", ["", "n=1; Max-Age=0"])
def test_a_page_that_refreshes_itself_without_a_new_cookie_is_asked_once(tmp_path: Path, cookie: str) -> None:
    fields = {"set_cookie": cookie} if cookie else {}
    with RawServer({"/": ok(b"<meta http-equiv=refresh content=60>", **fields)}) as server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert requested(server.log) == ["/"]


def test_a_page_with_links_that_refreshes_itself_is_asked_once(tmp_path: Path) -> None:
    news = b"<meta http-equiv=refresh content=300>" + page("News", [f"/{number}" for number in range(9)]).encode()
    with RawServer({"/": ok(news, set_cookie="n=1")}) as server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert requested(server.log).count("/") == 1


@pytest.mark.parametrize(("site", "order"), [(to_itself, ["/", "/"]), (by_a_check, ["/", "/check", "/"])])
def test_the_pages_behind_a_cookie_wall_are_archived(
    tmp_path: Path, site: Callable[[], dict[str, Route]], order: list[str]
) -> None:
    with RawServer(site()) as server:
        ending = crawl(tmp_path, server.url(), host_concurrency=1)
        assert ending.code is ExitCode.DONE
        assert requested(server.log) == [*order, "/a", "/b"]
        front = [each.status for each in stored(tmp_path) if each.url == server.url()]
    assert front == ["302", "200"]
    assert set(states(tmp_path).values()) == {"archived"}
    assert notes(tmp_path)[server.url()] == ""
    (counts,) = rows(tmp_path, "SELECT waiting, archived, visited FROM hosts")
    assert counts == (0, len(set(order)) + 3, len(set(order)) + 2)  # robots.txt is archived, too


def test_a_cookie_that_is_taken_back_opens_the_wall_too(tmp_path: Path) -> None:
    def front(row: Row) -> Sendable:
        return moved("/", "bad=1; Max-Age=0") if "bad" in cookies_in(row) else ok(page("Front"))

    site: dict[str, Route] = {"/login": ok(page("Login", ["/"]), set_cookie="bad=1; Path=/"), "/": front}
    with RawServer(site) as server:
        assert crawl(tmp_path, server.url("/login")).code is ExitCode.DONE
        assert requested(server.log) == ["/login", "/", "/"]


@pytest.mark.parametrize("back", ["/", "/check"])
def test_a_wall_that_never_opens_is_asked_three_times(tmp_path: Path, back: str) -> None:
    """Each answer sets another cookie."""
    server = RawServer()
    server.routes = {
        "/": lambda _: moved(back, f"n={len(server.log)}"),
        "/check": lambda _: moved("/", f"n={len(server.log)}"),
    }
    with server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert requested(server.log).count("/") == (3 if back == "/" else 2)
        assert requested(server.log).count("/check") <= 1
    assert set(states(tmp_path).values()) == {"archived"}


@pytest.mark.parametrize("cookie", ["", "seen=1; Max-Age=0", "seen=1; Domain=example.org", "seen=1; Path=/other"])
def test_without_a_cookie_for_it_a_loop_is_asked_once(tmp_path: Path, cookie: str) -> None:
    answer = keep(message("302 Found", b"", location="/", **({"set_cookie": cookie} if cookie else {})))
    with RawServer({"/": answer}) as server:
        crawl(tmp_path, server.url())
        assert requested(server.log) == ["/"]
    assert notes(tmp_path)[server.url()] == "redirect loop: back to itself"


def test_with_cookies_off_a_loop_is_asked_once(tmp_path: Path) -> None:
    with RawServer(to_itself()) as server:
        crawl(tmp_path, server.url(), cookies="off")
        assert requested(server.log) == ["/"]


@pytest.mark.slow
@pytest.mark.parametrize("site", [to_itself, by_a_check])
@pytest.mark.parametrize("step", [step.name for step in COMMIT])
def test_a_kill_in_front_of_the_wall_changes_nothing(
    tmp_path: Path, forks: Forks, step: str, site: Callable[[], dict[str, Route]]
) -> None:
    with RawServer(site()) as server:
        for passing in (2, 3):
            folder = tmp_path / str(passing)
            folder.mkdir()
            ran = forks.run("crawl", server.url(), *OPTIONS, cwd=folder, step=step, passing=passing)
            assert ran.code in (-signal.SIGKILL, ExitCode.DONE), ran.said
            ran = forks.run("resume", "c", "-qq", cwd=folder, step=RECOVERY[0].name)
            if ran.code:
                ran = forks.run("resume", "c", "-qq", cwd=folder)
            assert ran.code == ExitCode.DONE, ran.said
            # by date: on a busy machine the slow writer has a file of its own, so files are not in order
            last = {each.url: each.status for each in sorted(stored(folder / "c"), key=lambda each: each.date)}
            assert [last[server.url(target)] for target in ("/", "/a", "/b")] == ["200"] * 3
            verified = forks.run("verify", "c", cwd=folder)
            assert verified.code == ExitCode.DONE, verified.said


@pytest.mark.parametrize("site", [to_itself, by_a_check])
def test_a_rebuilt_database_says_the_same(tmp_path: Path, forks: Forks, site: Callable[[], dict[str, Route]]) -> None:
    tables = (
        "SELECT url, state, status, note, tries, requeued FROM urls ORDER BY url",
        "SELECT domain, path, name, value, expires, private FROM cookies ORDER BY name",
        "SELECT waiting, archived, visited FROM hosts",
    )
    with RawServer(site()) as server:
        assert crawl(tmp_path / "c", server.url()).code is ExitCode.DONE
        before = [rows(tmp_path / "c", table) for table in tables]
        (tmp_path / "c/crawl.db").unlink()
        rebuilt = forks.archiver("rebuild", "c", cwd=tmp_path)
        assert rebuilt.returncode == ExitCode.DONE, rebuilt.stderr
        assert [rows(tmp_path / "c", table) for table in tables] == before
        asked = len(server.log)
        assert forks.run("resume", "c", "-qq", cwd=tmp_path).code == ExitCode.DONE
        assert len(server.log) == asked
