"""`--browser`: what scripts send while pages are shown (POST, headers) is sent by the crawl, stored, and replayed."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.ask import Ask
from archiver.model import ExitCode
from fixtures import browser
from fixtures.archives import rows
from fixtures.command import archiver, running
from fixtures.debian import NotToBeHad
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.log import Row
from fixtures.pywb_server import archiver_replay
from fixtures.rawserver import NOT_FOUND, RawServer, Route, Sendable, keep
from fixtures.replay_comparison import Viewer, compared, look
from fixtures.replayweb_page import hosted
from fixtures.sites import PIXEL, message, ok, redirect

pytestmark = SLOW_IN_BROWSER
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--speculative", "off")
PAGE = """<!doctype html><title>Posts</title><div id=app></div><script>
const told = []
const post = async (path, body, headers) => {
    const answer = await fetch("/" + path, { method: "POST", body, headers })
    told.push(await answer.text())
}
const start = async () => {
    await post("graph" + "ql", JSON.stringify({ query: "query { items }", variables: { page: 1 } }),
        { "Content-Type": "application/json", "X-Requested-With": "XMLHttpRequest", Accept: "application/json",
          "X-Of-User": "2" })
    await post("graph" + "ql", JSON.stringify({ query: "query { items }", variables: { page: 2 } }),
        { "Content-Type": "application/json" })
    await post("form", new URLSearchParams({ a: "1", b: "two words", c: "\\u00e9#&" }))
    const data = new FormData()
    data.append("x", "1")
    await post("multi" + "part", data)
    await post("text", "hello world & more", { "Content-Type": "text/plain" })
    document.getElementById("app").innerHTML = told.join("<br>") + '<img src="/drawn-' + 'a.gif">'
}
start()
</script>"""
POSTS = ("/graphql", "/graphql", "/form", "/multipart", "/text")


def posted(row: Row) -> Sendable:
    """Answer each POST with what was sent, and the picture."""
    if row.target.startswith("/drawn-"):
        return ok(PIXEL, "image/gif")
    if not row.request.startswith(b"POST "):
        return keep(NOT_FOUND)
    body = re.sub(rb"-{4,}\w+", b"--boundary", row.request.partition(b"\r\n\r\n")[2])
    return ok(f"{row.target}: {body.decode()}", "text/plain")


@pytest.fixture(name="site")
def served_site() -> Iterator[RawServer]:
    with RawServer({"/": ok(PAGE)}, otherwise=posted) as server:
        yield server


def crawled(folder: Path, *words: str) -> str:
    ran = archiver("crawl", *words, *OPTIONS, cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return ran.stderr


def verified(folder: Path) -> None:
    ran = archiver("verify", "c", cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stdout + ran.stderr


def sent(site: RawServer) -> list[str]:
    """Return the targets of the POST requests, in order."""
    return [row.target for row in site.log if row.request.startswith(b"POST ")]


@pytest.mark.replay
def test_posts_are_sent_once_and_replayed(tmp_path: Path, site: RawServer) -> None:
    crawled(tmp_path, site.url(), "--browser", "auto", "--header", "X-Of-User: 1")
    assert sent(site) == [*POSTS]
    first = next(row.request for row in site.log if row.target == "/graphql")
    assert b"\r\nX-Requested-With: XMLHttpRequest\r\n" in first
    assert first.count(b"\r\nAccept: ") == first.count(b"\r\nAccept: application/json\r\n") == 1
    assert first.count(b"\r\nX-Of-User: ") == first.count(b"\r\nX-Of-User: 1\r\n") == 1
    assert b"\r\nReferer: " + site.url().encode() in first
    check_replays(tmp_path, site)


def check_replays(folder: Path, site: RawServer) -> None:
    """No request fails in pywb and in replayweb.page."""
    verified(folder)
    looked = archiver("look", "c", cwd=folder)
    assert looked.returncode == ExitCode.DONE, looked.stdout
    assert archiver("pack", "c", "-o", "c.wacz", cwd=folder).returncode == ExitCode.DONE

    async def replayed() -> None:
        async with browser.opened(folder / "profile") as shown:
            live = await look(shown, site.url(), site.url())
            site.routes, site.otherwise = {}, keep(NOT_FOUND)
            with archiver_replay(folder / "c") as wayback:
                viewer = Viewer(wayback.root, wayback.address, f"{wayback.root}static/")
                found = await compared(shown, viewer, site.url(), live, patience=0)
                assert (found.failed, found.outside) == ([], [])
            try:
                async with hosted(folder / "c.wacz") as host:
                    viewer = Viewer(host.root, host.address, f"{host.root}replay/static/")
                    found = await compared(shown, viewer, site.url(), live, patience=0)
                    assert (found.failed, found.outside) == ([], [])
            except NotToBeHad as reason:
                pytest.skip(f"passed in pywb; replayweb.page: {reason}")

    asyncio.run(replayed())


VALUES = """<!doctype html><title>Values</title><div id=app></div><script>
const bodies = [
    { a: null, b: 1 }, { a: true, b: [false, null, true] }, { c: { d: 1.0, e: 2.5, f: -3 }, list: [1, null, "x"] },
    { a: "\u00e9 & #", b: 0, n: 12345678901 }, [{ q: null, v: { after: null } }, { q: "x" }],
]
const start = async () => {
    for (const body of bodies) for (const type of ["application/json", "text/plain"]) {
        const asked = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": type } }
        const text = await (await fetch("/" + "values", asked)).text()
        document.getElementById("app").append(text, document.createElement("br"))
    }
}
start()
</script>"""


@pytest.mark.replay
def test_values_that_are_no_text_have_the_keys_of_the_replays(tmp_path: Path) -> None:
    """The numbers, booleans and nulls of JSON are written as in JavaScript."""
    with RawServer({"/": ok(VALUES)}, otherwise=posted) as site:
        crawled(tmp_path, site.url(), "--browser", "auto")
        check_replays(tmp_path, site)


SPELLINGS = """<!doctype html><title>Spellings</title><div id=app></div><script>
const start = async () => {
    for (const part of ["list/a%2", "list?of=a%2"]) for (const letter of ["f", "F"]) {
        const text = await (await fetch("/" + part + letter + "b")).text()
        document.getElementById("app").append(text, document.createElement("br"))
    }
}
start()
</script>"""


@pytest.mark.replay
def test_a_url_is_asked_for_as_the_page_spells_it(tmp_path: Path) -> None:
    """%2f and %2F mean the same (RFC 3986, 6.2.2.1), but replayweb.page compares the letters, as some servers do."""

    def told(row: Row) -> Sendable:
        return ok(row.target.upper(), "text/plain") if row.target.startswith("/list") else keep(NOT_FOUND)

    with RawServer({"/": ok(SPELLINGS)}, otherwise=told) as site:
        crawled(tmp_path, site.url(), "--browser", "auto")
        found = sorted(row.target for row in site.log if row.target.startswith("/list"))
        assert found == ["/list/a%2Fb", "/list/a%2fb", "/list?of=a%2Fb", "/list?of=a%2fb"]
        check_replays(tmp_path, site)


ASKING = """<!doctype html><title>Headers</title><div id=app></div><script>
const get = async (address, headers) => (await fetch(address, { headers })).text()
const start = async () => {
    const app = document.getElementById("app")
    app.textContent += await get("/" + "api", { Accept: "application/json", "X-Requested-With": "XMLHttpRequest" })
    app.textContent += await get("/" + "old", { Accept: "application/json", Authorization: "Bearer own" })
    app.textContent += await get("FAR" + "far", { Accept: "text/x", Authorization: "Bearer own", "X-Own": "1" })
    app.textContent += await get("/" + "mine", { "X-Mine": "of the page", "Accept-Language": "fr" })
    document.title = app.textContent
}
start()
</script>"""


def checked(row: Row) -> Sendable:
    """Answer as an API does that tells its clients by their headers."""
    head = row.request.decode("latin-1").lower()
    if row.target == "/old":
        return redirect("/new")
    if row.target == "/api" and "x-requested-with: xmlhttprequest" not in head:
        return keep(message("403 Forbidden", b"no", content_type="text/plain"))
    if row.target == "/new" and "authorization: bearer own" not in head:
        return keep(message("401 Unauthorized", b"no", content_type="text/plain"))
    if row.target in ("/api", "/new") and "\r\naccept: application/json\r\n" not in head:
        return keep(message("406 Not Acceptable", b"no", content_type="text/plain"))
    return ok(f"{row.target} ", "application/json") if row.target in ANSWERED else keep(NOT_FOUND)


ANSWERED = ("/api", "/new", "/far", "/mine")


def lines_of(site: RawServer, target: str) -> list[str]:
    """Return the header lines of the only request for *target*."""
    [row] = [row for row in site.log if row.target == target]
    return row.request.decode("latin-1").partition("\r\n\r\n")[0].split("\r\n")[1:]


def test_headers_of_scripts_are_sent_and_made_again(tmp_path: Path, site: RawServer) -> None:
    site.routes = {"/": ok(ASKING.replace("FAR", site.url("", "localhost") + "/"))}
    site.otherwise = checked
    words = ("--accept-language", "de", "--header", "X-Mine: of the user", "--allow-private", "localhost")
    crawled(tmp_path, site.url(), "--browser", "auto", *words)
    titles = "SELECT title, rounds, missing FROM views"
    assert rows(tmp_path / "c", titles) == [("/api /new /far /mine", 2, 0)]
    assert not any(line.startswith("Authorization") for line in lines_of(site, "/far"))
    assert {"Accept: text/x", "X-Own: 1", f"Origin: {site.url().rstrip('/')}"} <= set(lines_of(site, "/far"))
    mine = [line for line in lines_of(site, "/mine") if line.startswith(("X-Mine", "Accept-Language"))]
    assert sorted(mine) == ["Accept-Language: fr", "X-Mine: of the user"]
    assert archiver("look", "c", cwd=tmp_path).returncode == ExitCode.DONE
    kept = "SELECT urls.url, ask FROM asks JOIN urls ON urls.id = asks.url WHERE urls.url NOT LIKE '%/mine' ORDER BY 1"
    asks = rows(tmp_path / "c", kept)
    assert len(asks) == 4
    (tmp_path / "c/crawl.db").unlink()
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert [(address, sent_of(ask)) for address, ask in rows(tmp_path / "c", kept)] == [
        (address, sent_of(ask)) for address, ask in asks
    ]
    verified(tmp_path)


def sent_of(ask: object) -> set[tuple[str, str]]:
    return set(Ask.of_text(str(ask)).fields)


def test_a_lost_database_and_a_lost_index_are_made_again(tmp_path: Path, site: RawServer) -> None:
    """The records hold all that is needed: the same URLs, and the same index lines."""
    crawled(tmp_path, site.url(), "--browser", "auto")
    index = tmp_path / "c/indexes/index.cdxj"
    before = index.read_bytes()
    urls = rows(tmp_path / "c", "SELECT url, state, path FROM urls WHERE priority >= 0 ORDER BY url")
    (tmp_path / "c/crawl.db").unlink()
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert rows(tmp_path / "c", "SELECT url, state, path FROM urls WHERE priority >= 0 ORDER BY url") == urls
    index.unlink()
    assert archiver("index", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert index.read_bytes() == before
    verified(tmp_path)


@pytest.mark.parametrize("requests", [2, 4, 6])
def test_a_kill_sends_nothing_twice_that_was_answered(tmp_path: Path, site: RawServer, requests: int) -> None:
    reached = site.log.holds(requests)
    with running("crawl", site.url(), *OPTIONS, "--browser", "auto", cwd=tmp_path) as process:
        reached.wait(120)
        process.kill()
        process.communicate(timeout=120)
    ran = archiver("resume", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert sorted(set(sent(site))) == sorted(set(POSTS))
    assert len(sent(site)) <= len(POSTS) + 1  # the one in flight
    assert archiver("look", "c", cwd=tmp_path).returncode == ExitCode.DONE
    verified(tmp_path)


def test_what_is_not_sent(tmp_path: Path, site: RawServer) -> None:
    """Mutations, what is for other hosts, and beacons."""
    far = site.url("/far", "localhost")
    mutation = json.dumps({"query": "mutation { buy }"})
    site.routes = {
        "/": ok(
            f"<!doctype html><div id=app></div><script>fetch('/graphql', {{method: 'POST', body: '{mutation}'}});"
            f"fetch('{far}', {{method: 'POST', body: 'a'}}); navigator.sendBeacon('/beacon', 'b');"
            "fetch('/put', {method: 'PUT', body: 'c'})</script>"
        )
    }
    crawled(tmp_path, site.url(), "--browser", "auto")
    assert sent(site) == []
    assert [row.target for row in site.log if row.target not in ("/", "/robots.txt")] == []


def test_look_queues_posts_too(tmp_path: Path, site: RawServer) -> None:
    crawled(tmp_path, site.url())
    for _ in range(len(POSTS) + 1):  # each answer leads to the next request
        if archiver("look", "c", "--fetch", cwd=tmp_path).returncode == ExitCode.DONE:
            break
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert sent(site) == [*POSTS]
    verified(tmp_path)


def test_posts_can_be_switched_off(tmp_path: Path, site: RawServer) -> None:
    crawled(tmp_path, site.url(), "--browser", "auto", "--browser-post", "off")
    assert sent(site) == []


def test_robots_txt_is_asked_about_the_url_that_is_sent(tmp_path: Path, site: RawServer) -> None:
    routes: dict[str, Route] = {"/robots.txt": ok("User-agent: *\nDisallow: /*?\nDisallow: /form\n", "text/plain")}
    site.routes = {**site.routes, **routes}
    crawled(tmp_path, site.url(), "--browser", "auto")
    assert sent(site) == ["/graphql", "/graphql"]  # the script of the page ends when /form fails


def test_no_get_refers_to_the_answer_of_a_post(tmp_path: Path, site: RawServer) -> None:
    """A replay looks an original up by its URL, and would find nothing."""
    same = "the same long answer " * 200
    script = "fetch('/po' + 'st', {method: 'POST', body: '1'}).then(() => fetch('/ge' + 't'))"
    site.routes = {
        "/": ok(f"<!doctype html><div id=app></div><script>{script}</script>"),
        "/post": ok(same, "text/plain"),
        "/get": ok(same, "text/plain"),
    }
    crawled(tmp_path, site.url(), "--browser", "auto", "--dedup-min-size", "1")
    assert rows(tmp_path / "c", "SELECT count(*) FROM captures WHERE revisit <> ''") == [(0,)]
    verified(tmp_path)
