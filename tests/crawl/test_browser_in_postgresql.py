"""`--browser` with `--frontier`: the same views as with crawl.db, also after kill -9, and on one machine only."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver, running
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.flag import Gate
from fixtures.forks import Forks
from fixtures.log import Row
from fixtures.postgres import PostgresServer
from fixtures.rawserver import NOT_FOUND, Answer, RawServer, Route, Sendable, keep
from fixtures.several_hosts import crawlers
from fixtures.sites import PIXEL, message, ok, page
from fixtures.steps import VIEWS

pytestmark = [*SLOW_IN_BROWSER, pytest.mark.postgres]
OPTIONS = ("--rate", "0", "--probe", "off", "--min-free-disk", "0", "--speculative", "off")
ITEMS = 6
SHELL = "<!doctype html><title>Application</title><div id=app></div><script src=/app.js></script>"
APP = """
const get = async name => (await fetch("/" + ["a", "pi"].join("") + "/" + name)).json()
const start = async () => {
    const app = document.getElementById("app")
    const item = location.pathname.match(/item.(\\d+)/)
    if (!item) {
        const items = await get("list")
        await fetch("/sea" + "rch", { method: "POST", body: "all items", headers: { "Content-Type": "text/plain" } })
        await fetch("/in" + "fo", { headers: { Accept: "application/json", "X-Requested-With": "XMLHttpRequest" } })
        return app.innerHTML = items.map(each => `<a href="/item/${each}">Item ${each}</a>`).join(" ")
    }
    const found = await get("item-" + item[1])
    document.title = found.title
    app.innerHTML = `<h1>${found.title}</h1><img src="/picture/${item[1]}.gif">`
}
start()
"""
QUICK = {"found-url-queued", "view-to-be-saved"}  # of the steps; the others take part in long runs
LIST = message("200 OK", str([*range(ITEMS)]).encode(), content_type="application/json")


def anything(row: Row) -> Sendable:
    """Answer the pages and pictures of the application, and its POST."""
    if row.target == "/search" and row.request.startswith(b"POST "):
        return ok("found", "text/plain")
    if row.target.startswith("/picture/"):
        return ok(PIXEL, "image/gif")
    return ok(SHELL) if row.target.startswith("/item/") else keep(NOT_FOUND)


def application() -> dict[str, Route]:
    data = {f"/api/item-{n}": ok(f'{{"title": "Item {n}"}}', "application/json") for n in range(ITEMS)}
    listed = {"/api/list": keep(LIST), "/info": ok("{}", "application/json")}
    return {"/": ok(SHELL), "/app.js": ok(APP, "text/javascript"), **listed, **data}


def every_target() -> set[str]:
    items = {each for n in range(ITEMS) for each in (f"/item/{n}", f"/api/item-{n}", f"/picture/{n}.gif")}
    return {"/", "/app.js", "/api/list", "/info", "/search"} | items


@pytest.fixture(name="site")
def served_site() -> Iterator[RawServer]:
    with RawServer(application(), otherwise=anything) as server:
        yield server


@pytest.fixture(name="address")
def new_database(postgres_server: PostgresServer | None) -> str:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres_server.new_database()


def done(folder: Path, *words: str, code: ExitCode = ExitCode.DONE) -> str:
    """Run `archiver WORDS`; return what it said."""
    ran = archiver(*words, cwd=folder)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def asked(site: RawServer) -> Counter[str]:
    """Return how often each target was requested, robots.txt aside."""
    return Counter(row.target for row in site.log if row.target != "/robots.txt")


def account(directory: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return what a crawl has captured, and what it says of its views, without what depends on their order."""
    queries = {
        "urls": "SELECT url, state, path, status FROM urls ORDER BY 1",
        "captures": "SELECT urls.url, payload_digest, captures.status, revisit FROM captures "
        "JOIN urls ON urls.id = captures.url ORDER BY 1",
        "views": "SELECT urls.url, views.state, need, pattern, missing, title, ended FROM views "
        "JOIN urls ON urls.id = views.url ORDER BY 1",
        "brought": "SELECT CAST(sum(brought) AS INTEGER) FROM views",
        "records": "SELECT uri, mime FROM resources "
        "WHERE uri LIKE 'urn:pageinfo:%' OR uri LIKE 'urn:text:%' ORDER BY 1",
        "asks": "SELECT urls.url, ask FROM asks JOIN urls ON urls.id = asks.url ORDER BY 1",
    }
    return {name: rows(directory, query) for name, query in queries.items()}


def whole(folder: Path, site: RawServer, *, again: int = 0) -> None:
    """Everything is archived, nothing was requested twice but *again*, and a replay misses nothing."""
    found = asked(site)
    assert found.keys() == every_target()
    assert sum(found.values()) - len(found) <= again, found.most_common(3)
    assert rows(folder / "c", "SELECT url FROM urls WHERE state <> 'archived' AND priority >= 0") == []
    assert rows(folder / "c", "SELECT DISTINCT state, missing, ended FROM views") == [("done", 0, "")]
    assert rows(folder / "c", "SELECT count(*) FROM views") == [(ITEMS + 1,)]
    stored = "SELECT count(DISTINCT uri) FROM resources WHERE uri LIKE 'urn:pageinfo:%' OR uri LIKE 'urn:text:%'"
    assert rows(folder / "c", stored) == [(2 * (ITEMS + 1),)]
    assert not (folder / "c" / "crawl.db").exists()
    assert f"complete   {ITEMS + 1} pages" in done(folder, "look", "c", "--all")
    done(folder, "verify", "c")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_it_is_as_with_crawl_db(tmp_path: Path, site: RawServer, address: str, processes: str) -> None:
    browser = ("--browser", "auto", "--processes", processes)
    said = done(tmp_path, "crawl", site.url(), "-o", "c", *OPTIONS, *browser, "--frontier", address)
    assert f"browser   {ITEMS + 1} pages shown" in said
    whole(tmp_path, site)
    done(tmp_path, "crawl", site.url(), "-o", "in-file", *OPTIONS, *browser)
    assert account(tmp_path / "c") == account(tmp_path / "in-file")
    assert set(asked(site).values()) == {2}


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("requests", [2, 6, 14])
def test_a_kill_loses_nothing(tmp_path: Path, site: RawServer, address: str, processes: str, requests: int) -> None:
    reached = site.log.holds(requests)
    words = ("-o", "c", *OPTIONS, "--browser", "auto", "--processes", processes, "--frontier", address)
    with running("crawl", site.url(), *words, cwd=tmp_path) as process:
        reached.wait(120)
        process.kill()
        process.communicate(timeout=120)  # until the last crawler has closed the pipes
    done(tmp_path, "resume", "c")
    whole(tmp_path, site, again=8)


@pytest.mark.parametrize(
    "step", [pytest.param(each.name, marks=() if each.name in QUICK else pytest.mark.long) for each in VIEWS]
)
def test_a_kill_at_a_step_of_a_view(tmp_path: Path, site: RawServer, address: str, forks: Forks, step: str) -> None:
    words = ("-o", "c", *OPTIONS, "--browser", "auto", "--processes", "1", "--frontier", address)
    ran = forks.run("crawl", site.url(), *words, cwd=tmp_path, step=step)
    assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said
    done(tmp_path, "resume", "c")
    whole(tmp_path, site, again=8)


def test_the_crawler_that_shows_pages_is_killed(tmp_path: Path, site: RawServer, address: str) -> None:
    """While a request of a page is held. Another process takes its place, and the other crawler goes on meanwhile."""
    gate = Gate()
    site.routes = {**site.routes, "/api/list": Answer((LIST[:20], gate, LIST[20:]))}
    held = site.log.holds(4)  # robots.txt, the page, its script, and what the script asks for
    words = ("-o", "c", *OPTIONS, "--browser", "auto", "--processes", "2", "--frontier", address)
    with running("crawl", site.url(), *words, cwd=tmp_path) as process:
        held.wait(120)
        os.kill(shows_pages(process.pid), signal.SIGKILL)
        gate.open()
        _, said = process.communicate(timeout=300)
    assert process.returncode == ExitCode.DONE, said
    assert "~1 ended by signal SIGKILL; its files are recovered" in said
    whole(tmp_path, site, again=1)


def shows_pages(supervisor: int) -> int:
    """Return the crawler of *supervisor* that has started a browser."""
    end = time.monotonic() + 120
    while True:
        for crawler in crawlers(supervisor):
            for child in crawlers(crawler):
                if b"remote-debugging-pipe" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return crawler
        assert time.monotonic() < end
        time.sleep(0.05)


def test_pages_of_a_crawl_without_a_browser_are_shown_later(tmp_path: Path, site: RawServer, address: str) -> None:
    """By `look --fetch`, which queues what is missing, and by `resume --browser`."""
    done(tmp_path, "crawl", site.url(), "-o", "c", *OPTIONS, "--frontier", address)
    assert asked(site).keys() == {"/", "/app.js"}
    assert "1 URL queued" in done(tmp_path, "look", "c", "--fetch", code=ExitCode.FAULTS)
    done(tmp_path, "resume", "c")
    assert asked(site).keys() == {"/", "/app.js", "/api/list"}
    done(tmp_path, "retry", "c", site.url("/api/list"))
    done(tmp_path, "resume", "c", "--browser", "auto")
    whole(tmp_path, site, again=1)


def test_it_runs_on_one_machine(tmp_path: Path, site: RawServer, address: str) -> None:
    """No other can join, and one that has crawled with others shows no pages."""
    gate = Gate()
    site.routes = {**site.routes, "/api/list": Answer((LIST[:20], gate, LIST[20:]))}
    join = ("join", address, "-o", "other", "--name", "other", "--min-free-disk", "0")
    told = f"{address} holds a crawl that no further machine can join: with --browser auto it runs on one machine only"
    held = site.log.holds(4)
    words = ("-o", "c", *OPTIONS, "--browser", "auto", "--processes", "2", "--frontier", address)
    with running("crawl", site.url(), *words, cwd=tmp_path) as process:
        held.wait(120)
        assert told in done(tmp_path, *join, code=ExitCode.USAGE)
        copytree(tmp_path / "c", tmp_path / "copy", ignore=ignore_patterns("crawl.lock"))
        said = done(tmp_path, "resume", "copy", "--trust-settings", code=ExitCode.STORAGE)
        assert "other crawlers use this database" in said
        assert rows(tmp_path / "c", "SELECT DISTINCT ended FROM crawlers") == [(0,)]  # these go on
        gate.open()
        _, said = process.communicate(timeout=300)
    assert process.returncode == ExitCode.DONE, said
    whole(tmp_path, site)
    assert told in done(tmp_path, *join, code=ExitCode.USAGE)
    assert not (tmp_path / "other").exists()
    site.routes["/more"] = ok(page("More"))
    done(tmp_path, "resume", "c", "--browser", "off")
    done(tmp_path, "add", address, site.url("/more"))
    done(tmp_path, *join)
    assert rows(tmp_path / "c", "SELECT machine FROM warcs WHERE machine = 'other'") != []
    said = done(tmp_path, "resume", "c", "--browser", "auto", code=ExitCode.USAGE)
    assert "--browser auto: a crawl that shows pages runs on one machine, and other crawled too" in said
    done(tmp_path, "resume", "c")
