"""`--browser`: pages are shown while the crawl runs, and what their scripts ask for is fetched by the crawl."""

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from archiver.model import ExitCode
from archiver.tools.wacz.pages import format_date
from fixtures.archives import rows
from fixtures.command import COMMAND, archiver, environment, running
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.flag import Gate
from fixtures.log import Row
from fixtures.rawserver import NOT_FOUND, Answer, RawServer, Route, Sendable, keep
from fixtures.sites import PIXEL, message, ok, page

pytestmark = SLOW_IN_BROWSER
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--speculative", "off")
ITEMS = 8
SHELL = "<!doctype html><title>Application</title><div id=app></div><script src=/app.js></script>"
APP = """
const get = async name => (await fetch("/" + ["a", "pi"].join("") + "/" + name)).json()
const show = text => { document.getElementById("app").innerHTML = text }
const start = async () => {
    const item = location.pathname.match(/item.(\\d+)/)
    if (!item) {
        const items = await get("list.json")
        return show(items.map(each => `<a href="/item/${each}">Item ${each}</a>`).join(" "))
    }
    const found = await get(`item-${item[1]}.json`)
    document.title = found.title
    show(`<h1>${found.title}</h1><img src="/picture/${item[1]}-${Math.floor(Math.random() * 1e6)}.gif">`)
}
start()
"""


def anything(row: Row) -> Sendable:
    """Answer the pages and pictures of the application."""
    if row.target.startswith("/item/"):
        return ok(SHELL)
    return ok(PIXEL, "image/gif") if row.target.startswith("/picture/") else keep(NOT_FOUND)


def application() -> dict[str, Route]:
    data = {f"/api/item-{n}.json": ok(f'{{"title": "Item {n}"}}', "application/json") for n in range(ITEMS)}
    listed = ok(str([*range(ITEMS)]), "application/json")
    return {"/": ok(SHELL), "/app.js": ok(APP, "text/javascript"), "/api/list.json": listed, **data}


@pytest.fixture(name="site")
def served_site() -> Iterator[RawServer]:
    with RawServer(application(), otherwise=anything) as server:
        yield server


def crawled(folder: Path, *words: str, code: ExitCode = ExitCode.DONE) -> str:
    ran = archiver("crawl", *words, *OPTIONS, cwd=folder)
    assert ran.returncode == code, ran.stderr
    return ran.stderr


def resumed(folder: Path, *words: str, code: ExitCode = ExitCode.DONE) -> str:
    ran = archiver("resume", "c", *words, cwd=folder)
    assert ran.returncode == code, ran.stderr
    return ran.stderr


def asked(site: RawServer) -> Counter[str]:
    """Return how often each target was requested, robots.txt aside."""
    return Counter(row.target for row in site.log if row.target != "/robots.txt")


def check_whole(folder: Path, site: RawServer, *, again: int = 0) -> None:
    """Everything is archived, nothing was requested twice but *again*, and a replay misses nothing."""
    found = asked(site)
    pictures = [target for target in found if target.startswith("/picture/")]
    others = {"/", "/app.js", "/api/list.json"}
    others |= {f"/item/{n}" for n in range(ITEMS)} | {f"/api/item-{n}.json" for n in range(ITEMS)}
    assert found.keys() == others | set(pictures)
    assert len(pictures) == ITEMS
    assert sum(found.values()) - len(found) <= again, found.most_common(3)
    looked = archiver("look", "c", "--all", cwd=folder)
    assert looked.returncode == ExitCode.DONE, looked.stdout + looked.stderr
    assert f"complete   {ITEMS + 1} pages" in looked.stdout
    stored = "SELECT count(DISTINCT uri) FROM resources WHERE uri LIKE 'urn:pageinfo:%' OR uri LIKE 'urn:text:%'"
    assert rows(folder / "c", stored) == [(2 * (ITEMS + 1),)]
    verified = archiver("verify", "c", cwd=folder)
    assert verified.returncode == ExitCode.DONE, verified.stdout + verified.stderr


def test_an_application_is_archived_whole(tmp_path: Path, site: RawServer) -> None:
    said = crawled(tmp_path, site.url(), "--browser", "auto", "--browser-screenshots", "on")
    assert f"browser   {ITEMS + 1} pages shown" in said
    check_whole(tmp_path, site)
    check_records(tmp_path, site)
    titles = "SELECT title FROM views JOIN urls ON urls.id = views.url WHERE urls.url LIKE '%/item/3'"
    assert rows(tmp_path / "c", titles) == [("Item 3",)]
    assert archiver("pack", "c", "-o", "c.wacz", cwd=tmp_path).returncode == ExitCode.DONE
    with ZipFile(tmp_path / "c.wacz") as package:
        pages = [json.loads(line) for line in package.read("pages/extraPages.jsonl").splitlines()[1:]]
    assert {(page["title"], page["text"]) for page in pages} == {(f"Item {n}", f"Item {n}") for n in range(ITEMS)}
    before = stored(tmp_path / "c")
    (tmp_path / "c/crawl.db").unlink()
    (tmp_path / "c/indexes/index.cdxj").unlink()
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("index", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert stored(tmp_path / "c") == before


def stored(directory: Path) -> tuple[list[tuple[object, ...]], bytes]:
    """Return what the database and the index know about the records of views."""
    found = rows(directory, "SELECT uri, timestamp FROM resources ORDER BY 1, 2")
    return found, (directory / "indexes/index.cdxj").read_bytes()


def check_records(folder: Path, site: RawServer) -> None:
    """The view of a page is stored: what it asked for, its text, and a picture."""
    address = site.url("/item/3")
    told = {kind: got(folder, f"urn:{kind}:{address}") for kind in ("pageinfo", "text", "view")}
    assert told["text"] == b"Item 3"
    assert told["view"].startswith(b"\xff\xd8\xff")
    info = json.loads(told["pageinfo"])
    of_page = "SELECT timestamp FROM captures JOIN urls ON urls.id = captures.url WHERE urls.url LIKE '%/item/3'"
    [captured] = rows(folder / "c", of_page)
    assert info["ts"] == format_date(int(str(captured[0])))
    assert (info["url"], info["title"], info["missing"], info["live"], info["ended"]) == (address, "Item 3", [], [], "")
    assert info["urls"][address] == {"status": 200, "mime": "text/html", "type": "document"}
    assert info["urls"][site.url("/api/item-3.json")] == {"status": 200, "mime": "application/json", "type": "xhr"}
    assert {each["type"] for each in info["urls"].values()} == {"document", "script", "xhr", "image"}


def got(folder: Path, uri: str) -> bytes:
    ran = archiver("get", "c", uri, "-o", "got", cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    data = (folder / "got").read_bytes()
    (folder / "got").unlink()
    return data


def test_a_crawl_without_a_browser_says_what_one_may_find(tmp_path: Path, site: RawServer) -> None:
    """And the command that it names fetches that, without asking for anything twice."""
    said = crawled(tmp_path, site.url())
    assert "has 1 script and hardly any links" in said
    assert "archiver resume c --browser auto" in said
    resumed(tmp_path, "--browser", "auto")
    check_whole(tmp_path, site)


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("requests", [2, 6, 20])
def test_a_kill_loses_nothing(tmp_path: Path, site: RawServer, processes: str, requests: int) -> None:
    reached = site.log.holds(requests)
    words = ("crawl", site.url(), *OPTIONS, "--browser", "auto", "--processes", processes)
    with running(*words, cwd=tmp_path) as process:
        reached.wait(120)
        process.kill()
        process.communicate(timeout=120)  # until the last crawler has closed the pipes
    resumed(tmp_path)
    check_whole(tmp_path, site, again=8)


def test_ctrl_c_ends_it_and_resume_goes_on(tmp_path: Path, site: RawServer) -> None:
    reached = site.log.holds(6)
    with running("crawl", site.url(), *OPTIONS, "--browser", "auto", cwd=tmp_path) as process:
        reached.wait(120)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == ExitCode.STOPPED, said
    assert "archiver resume c" in said
    status = archiver("status", "c", cwd=tmp_path).stdout
    assert "state     stopped" in status
    resumed(tmp_path)
    check_whole(tmp_path, site)


def test_robots_and_scope_hold(tmp_path: Path, site: RawServer) -> None:
    """What a rule forbids is not asked for, nor is a private address; a rule of the scope is named by explain."""
    scripts = "".join(f"fetch('/{name}/' + 'data.json');" for name in ("kept", "private", "no"))
    site.routes = {
        "/robots.txt": ok("User-agent: *\nDisallow: /private/\n", "text/plain"),
        "/kept/data.json": ok("{}", "application/json"),
    }
    with RawServer(hosts=("127.0.0.2",)) as other:
        scripts += f"new Image().src = '{other.url('/private.png')}'; new Image().src = 'http://169.254.169.254/latest'"
        site.routes = {
            **site.routes,
            "/": ok(f"<!doctype html><title>Rules</title><div id=app></div><script>{scripts}</script>"),
        }
        crawled(tmp_path, site.url(), "--browser", "auto", "--exclude", "/no/")
        assert other.log.targets() == []
    assert asked(site).keys() == {"/", "/kept/data.json"}
    explained = archiver("explain", "c", site.url("/no/data.json"), cwd=tmp_path).stdout
    assert "exclude" in explained
    assert rows(tmp_path / "c", "SELECT missing FROM views") == [(0,)]


def test_static_pages_are_not_shown(tmp_path: Path, site: RawServer) -> None:
    names = [f"/page-{n}.html" for n in range(20)]
    site.routes = {"/": ok(page("Start", names)), **{name: ok(page(name)) for name in names}}
    said = crawled(tmp_path, site.url(), "--browser", "auto")
    assert "shown" not in said
    assert rows(tmp_path / "c", "SELECT DISTINCT state, rounds FROM views") == [("left out", 0)]


def test_pages_whose_scripts_bring_nothing_are_sampled(tmp_path: Path, site: RawServer) -> None:
    names = [f"/page-{n}.html" for n in range(40)]
    text = "<script>document.title += '!'</script>" + "<p>words of a page that says much</p>" * 20
    site.routes = {"/": ok(page("Start", names, body=text)), **{name: ok(page(name, body=text)) for name in names}}
    crawled(tmp_path, site.url(), "--browser", "auto")
    [(shown,)] = rows(tmp_path / "c", "SELECT count(*) FROM views WHERE rounds > 0")
    assert shown == 1 + 3  # the start page, and three of the pattern
    resumed(tmp_path, "--browser", "all")
    assert rows(tmp_path / "c", "SELECT count(*) FROM views WHERE rounds = 0") == [(0,)]


def test_a_late_answer_shows_the_page_again(tmp_path: Path, site: RawServer) -> None:
    """The page gives up waiting for a URL, and goes on with it in a second view."""
    gate = Gate()
    answer = message("200 OK", b"{}", content_type="application/json")
    late = Answer((answer[:20], gate, answer[20:]))
    script = "fetch('/la' + 'te.json').then(answer => answer.json()).then(() => fetch('/af' + 'ter.json'))"
    site.routes = {
        "/": ok(f"<!doctype html><title>Late</title><div id=app></div><script>{script}</script>"),
        "/late.json": late,
        "/after.json": ok("{}", "application/json"),
    }
    shown_once = site.log.holds(3)
    with running(
        "crawl", site.url(), *OPTIONS, "--browser", "auto", "--browser-patience", "1", cwd=tmp_path
    ) as process:
        shown_once.wait(120)
        until(tmp_path / "c", "SELECT 1 FROM views WHERE rounds > 0")
        gate.open()
        _, said = process.communicate(timeout=120)
    assert process.returncode == ExitCode.DONE, said
    assert asked(site) == Counter(("/", "/late.json", "/after.json"))


def until(directory: Path, query: str) -> None:
    """Wait until *query* finds a row in the database of the running crawl."""
    end = time.monotonic() + 120
    while not rows(directory, query):
        assert time.monotonic() < end, query
        time.sleep(0.05)


def test_a_revisit_answers_too(tmp_path: Path, site: RawServer) -> None:
    """In a recrawl, payloads lie in the files of the crawl before; what scripts ask for is asked for again."""
    crawled(tmp_path, site.url(), "--browser", "auto", "--dedup-min-size", "1")
    before = asked(site)
    ran = archiver("recrawl", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    twice = asked(site)
    data = [target for target in before if not target.startswith("/picture/")]
    assert {target: twice[target] for target in data} == {target: 2 * before[target] for target in data}
    assert rows(tmp_path / "c", "SELECT DISTINCT state, missing FROM views") == [("done", 0)]


def test_urls_that_differ_each_time_are_not_fetched_for_ever(tmp_path: Path, site: RawServer) -> None:
    script = "fetch('/ping?time=' + performance.now() + performance.timeOrigin)"
    names = [f"/item/{n}" for n in range(30)]
    text = f"<!doctype html><title>Ping</title><div id=app></div><script>{script}</script>"
    site.routes = {"/": ok(page("Start", names)), **{name: ok(text) for name in names}}
    site.otherwise = lambda row: ok("pong", "text/plain") if row.target.startswith("/ping") else keep(NOT_FOUND)
    said = crawled(tmp_path, site.url(), "--browser", "auto")
    pings = [target for target in asked(site) if target.startswith("/ping")]
    assert 1 <= len(pings) <= 12
    assert "will not replay completely" not in said


def test_urls_that_defeat_caches_are_one(tmp_path: Path, site: RawServer) -> None:
    """As in a replay: pywb ignores such parameters, so one answer is enough for all pages."""
    script = "fetch('/da' + 'ta?id=1&_=' + (Date.now() + performance.timeOrigin).toFixed())"
    names = [f"/item/{n}" for n in range(5)]
    text = f"<!doctype html><title>Data</title><div id=app></div><script>{script}</script>"
    site.routes = {"/": ok(page("Start", names)), **{name: ok(text) for name in names}}
    site.otherwise = lambda row: ok("data", "text/plain") if row.target.startswith("/data") else keep(NOT_FOUND)
    crawled(tmp_path, site.url(), "--browser", "auto")
    assert len([target for target in asked(site) if target.startswith("/data")]) == 1
    looked = archiver("look", "c", "--all", cwd=tmp_path)
    assert looked.returncode == ExitCode.DONE, looked.stdout
    assert "volatile" not in looked.stdout


BEHAVIOR = """class Opened {
    static id = "Opened"
    static isMatch() { return location.pathname === "/" }
    static init() { return {} }
    async *run(ctx) {
        for (const each of ctx.Lib.xpathNodes("//button")) {
            await ctx.Lib.scrollAndClick(each, 10)
            yield ctx.Lib.getState(ctx, "opened", "opened")
        }
        throw new Error("wrong at the end")
    }
}
"""


def test_a_behavior_of_the_user_is_run(tmp_path: Path, site: RawServer) -> None:
    """Its path becomes absolute; in a collection for which this user did not name it, it is not read."""
    buttons = "".join(f"<button onclick=\"fetch('/api/' + 'item-{n}.json')\">{n}</button>" for n in range(3))
    site.routes = {**site.routes, "/": ok(f"<!doctype html><title>Buttons</title><div id=app></div>{buttons}")}
    (tmp_path / "opened.js").write_text(BEHAVIOR)
    said = crawled(tmp_path, site.url(), "--browser", "auto", "--behavior", "opened.js")
    assert asked(site).keys() == {"/", *(f"/api/item-{n}.json" for n in range(3))}
    assert said.count(f"--behavior {tmp_path}/opened.js: Error: wrong at the end") == 1
    assert json.loads(got(tmp_path, f"urn:pageinfo:{site.url()}"))["behavior"] == "Opened"
    (tmp_path / "c/named-files.known").unlink()
    refused = resumed(tmp_path, code=ExitCode.USAGE)
    assert f"you have not named behavior {tmp_path}/opened.js for this collection" in refused
    (tmp_path / "opened.js").write_text("class {")
    refused = resumed(tmp_path, "--behavior", "opened.js", code=ExitCode.USAGE)
    assert f"--behavior {tmp_path}/opened.js: line " in refused
    assert "write one class with static id" in refused


def test_what_cannot_be_shown(tmp_path: Path, site: RawServer) -> None:
    for words, message_ in (
        (("--browser", "some"), "'some' is not"),
        (("--browser-share", "0"), "is not a whole number from 1 to 100, such as 20%"),
        (("--browser-share", "101%"), "is not a whole number from 1 to 100, such as 20%"),
    ):
        ran = archiver("crawl", site.url(), *OPTIONS, *words, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE, ran.stderr
        assert message_ in ran.stderr
        assert "Traceback" not in ran.stderr
    assert not (tmp_path / "c").exists()


def test_without_a_browser_the_crawl_does_not_begin(tmp_path: Path, site: RawServer) -> None:
    words = [*COMMAND, "crawl", site.url(), *OPTIONS, "--browser", "auto"]
    bare = {**environment(), "PATH": str(tmp_path)}
    ran = subprocess.run(words, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    assert ran.returncode == ExitCode.USAGE, ran.stderr
    assert "no Chromium, Chrome, Edge or Brave is installed (on Debian and Ubuntu: apt install chromium)" in ran.stderr
    assert not (tmp_path / "c").exists()
