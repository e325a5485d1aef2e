"""`--browser`: kill -9 of the crawl at each named step of a view, and of the browser. Nothing is lost or twice."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import running
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.flag import Gate
from fixtures.forks import Forks
from fixtures.log import Row
from fixtures.rawserver import NOT_FOUND, Answer, RawServer, Sendable, keep
from fixtures.sites import PIXEL, message, ok
from fixtures.steps import VIEWS

pytestmark = SLOW_IN_BROWSER
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--speculative", "off")
SHELL = "<!doctype html><title>Application</title><div id=app></div><script src=/app.js></script>"
APP = """
const get = async name => (await fetch("/" + ["a", "pi"].join("") + "/" + name)).json()
const app = document.getElementById("app")
const start = async () => {
    const item = location.pathname.match(/item.(\\d+)/)
    if (!item) return app.innerHTML = (await get("list")).map(each => `<a href="/item/${each}">Item</a>`).join(" ")
    await get("item-" + item[1])
    app.innerHTML = `<img src="/picture/${item[1]}-${Math.floor(Math.random() * 1e6)}.gif">`
}
start()
"""
ALL = {"/", "/app.js", "/api/list", "/item/0", "/item/1", "/api/item-0", "/api/item-1", "/picture/0", "/picture/1"}
QUICK = {"view-chosen", "found-url-queued", "view-to-be-saved"}  # of the steps; the others take part in long runs


def anything(row: Row) -> Sendable:
    if row.target.startswith("/picture/"):
        return ok(PIXEL, "image/gif")
    return ok(SHELL) if row.target.startswith("/item/") else keep(NOT_FOUND)


@pytest.fixture(name="site")
def served_site() -> Iterator[RawServer]:
    data = {f"/api/item-{n}": ok("{}", "application/json") for n in range(2)}
    routes = {"/": ok(SHELL), "/app.js": ok(APP, "text/javascript"), "/api/list": ok("[0, 1]", "application/json")}
    with RawServer(routes | data, otherwise=anything) as server:
        yield server


def check(folder: Path, site: RawServer, again: int) -> None:
    """All is archived once; at most *again* requests, which were under way, were sent twice."""
    asked = Counter(row.target for row in site.log if row.target != "/robots.txt")
    assert {target.partition("-")[0] if "picture" in target else target for target in asked} == ALL
    assert len(asked) == len(ALL), "the pictures of a page depend on chance, which a second view must not change"
    assert sum(asked.values()) - len(asked) <= again, asked.most_common(3)
    assert rows(folder / "c", "SELECT url FROM captures GROUP BY url, language HAVING count(*) > 1") == []
    assert rows(folder / "c", "SELECT url FROM urls WHERE state <> 'archived' AND priority >= 0") == []
    assert rows(folder / "c", "SELECT DISTINCT state, missing, ended FROM views") == [("done", 0, "")]


@pytest.mark.parametrize(
    "step", [pytest.param(each.name, marks=() if each.name in QUICK else pytest.mark.long) for each in VIEWS]
)
def test_the_crawl_is_killed(tmp_path: Path, site: RawServer, forks: Forks, step: str) -> None:
    ran = forks.run("crawl", site.url(), *OPTIONS, "--browser", "auto", cwd=tmp_path, step=step)
    assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said
    ran = forks.run("resume", "c", cwd=tmp_path)
    assert ran.code == ExitCode.DONE, ran.said
    check(tmp_path, site, again=2)
    ran = forks.run("verify", "c", cwd=tmp_path)
    assert ran.code == ExitCode.DONE, ran.said


def test_the_browser_is_killed(tmp_path: Path, site: RawServer) -> None:
    """While a request of a page is held; the crawl starts another one and shows the page again."""
    gate = Gate()
    answer = message("200 OK", b"[0, 1]", content_type="application/json")
    site.routes = {**site.routes, "/api/list": Answer((answer[:20], gate, answer[20:]))}
    held = site.log.holds(4)  # robots.txt, the page, its script, and what the script asks for
    with running("crawl", site.url(), *OPTIONS, "--browser", "auto", cwd=tmp_path) as process:
        held.wait(120)
        assert kill_browsers(process.pid)
        gate.open()
        _, said = process.communicate(timeout=120)
    assert process.returncode == ExitCode.DONE, said
    assert "the browser ended" in said
    check(tmp_path, site, again=0)


def kill_browsers(parent: int) -> int:
    """Kill the browsers that the process *parent* has started; return how many there were."""
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and b"remote-debugging-pipe" in (folder / "cmdline").read_bytes():
                os.killpg(int(folder.name), signal.SIGKILL)
                killed += 1
    return killed
