"""Guesses in whole crawls: asked for last, on the site alone, and no fault of the site where they are wrong."""

import gzip
import json
import re
from pathlib import Path

from archiver.frontier import totals
from archiver.model import ExitCode
from fixtures.archives import rows, stored
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import Answer, End, RawServer, Route, keep
from fixtures.sites import message, ok, page

JS = "text/javascript"
GONE = keep(message("404 Not Found", b"<a href=/from-404>none</a>", content_type="text/html"))
SITE: dict[str, Route] = {
    "/": ok(
        page(
            "First", ["/a.html"], body="<script>f('/wrong.png', '/img/late.png')</script><script src=/app.js></script>"
        )
    ),
    "/a.html": ok(page("Second", ["/b.html"])),
    "/b.html": ok(page("Third", images=["/img/late.png"])),
    "/app.js": ok(
        'import "./lib/module.js";x="/theme.css";y="//elsewhere.test/z.png"\n//# sourceMappingURL=app.js.map', JS
    ),
    "/lib/module.js": ok('import "./deeper.js"', JS),
    "/lib/deeper.js": ok('x="/soft.json"', JS),
    "/theme.css": ok("a{background:url(/img/bg.png)}", "text/css"),
    "/img/bg.png": ok(b"bg", "image/png"),
    "/img/late.png": ok(b"late", "image/png"),
    "/soft.json": ok("<a href=/from-soft-404>no such file</a>"),
    "/wrong.png": GONE,
}
CERTAIN = {"/", "/a.html", "/b.html", "/app.js", "/img/late.png"}
GUESSED = {"/lib/module.js", "/lib/deeper.js", "/theme.css", "/soft.json", "/wrong.png"}


def test_guesses_are_asked_for_last_and_only_on_the_site(tmp_path: Path) -> None:
    with RawServer(SITE) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1).code is ExitCode.DONE
        asked = [target for target in server.log.targets() if target != "/robots.txt"]
        home = server.url()[:-1]
    assert set(asked) == CERTAIN | GUESSED | {"/img/bg.png"}
    assert len(asked) == len(set(asked))
    assert asked.index("/wrong.png") > max(map(asked.index, ("/app.js", "/a.html")))  # that its page names too
    assert {each.url.removeprefix(home): each.status for each in stored(tmp_path)}["/wrong.png"] == "404"
    hops = rows(tmp_path, "SELECT substr(url, instr(url, '/img')), hop FROM urls WHERE url LIKE '%/img/%'")
    assert set(hops) == {("/img/late.png", "E"), ("/img/bg.png", "E")}  # what a page names is no guess any more
    wrong = rows(tmp_path, "SELECT pattern, visits - fruitful FROM pattern_tallies WHERE pattern LIKE 'speculative %'")
    assert wrong == [(f"speculative {home}", 2)]
    assert set(rows(tmp_path, "SELECT url, rule FROM refusals")) == {
        ("http://elsewhere.test/z.png", "speculative: site"),
        (f"{home}/app.js.map", "source-maps: false"),
    }


def test_the_metadata_record_says_what_was_a_guess_and_where_it_stood(tmp_path: Path) -> None:
    with RawServer(SITE) as server:
        crawl(tmp_path, server.url(), max_urls=3, host_concurrency=1)
    text = b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "archive").glob("*.gz"))
    found = re.findall(rb"outlink: http://[^/]+(/\S+) X (\S+)", text)
    assert (b"/img/late.png", b"script/string") in found
    assert (b"/lib/module.js", b"script/import") in found
    assert (b"/app.js.map", b"script/sourcemap") in found


def test_without_guesses(tmp_path: Path) -> None:
    with RawServer(SITE) as server:
        assert crawl(tmp_path, server.url(), speculative="off").code is ExitCode.DONE
        assert set(server.log.targets()) - {"/robots.txt"} == CERTAIN


def test_a_site_where_guesses_are_wrong_is_soon_left_alone(tmp_path: Path) -> None:
    routes: dict[str, Route] = {"/": ok("<script src=/a.js></script>")}
    routes["/a.js"] = ok(f"x={[f'/{n}.png' for n in range(300)]}", JS)
    with RawServer(routes, GONE) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1).code is ExitCode.DONE
        assert 21 <= sum(target.endswith(".png") for target in server.log.targets()) < 100
    failed = rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'failed'")
    assert failed == [(0,)]


def test_a_guess_without_an_answer_is_told_apart(tmp_path: Path) -> None:
    routes: dict[str, Route] = {
        "/": ok("<script>f('/never.json', '/late.json')</script>"),
        "/never.json": Answer((), End.CLOSE),
    }
    with RawServer(routes, GONE) as server:
        done = archiver("crawl", server.url(), "-o", str(tmp_path / "c"), "--retries", "0", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        never = server.url("/never.json")
    assert rows(tmp_path / "c", "SELECT url, state, failure FROM urls WHERE state NOT IN ('archived')") == [
        (never, "excluded", "disconnect")
    ]
    asked = archiver("explain", str(tmp_path / "c"), never, cwd=tmp_path)
    assert "speculative, and no answer came" in asked.stdout
    asked = archiver("explain", str(tmp_path / "c"), never.replace("never", "late"), cwd=tmp_path)
    assert "speculative: site" in asked.stdout
    with totals.open_totals(tmp_path / "c") as db:
        assert totals.failures(db) == [("speculative, disconnect", 1)]
        assert totals.totals(db).failed == 0


def shell(title: str) -> Route:
    return ok(f"<!doctype html><title>{title}</title><script src=../js/contents.js></script><h1>{title}</h1>")


def test_a_help_system_of_scripts_is_archived_whole(tmp_path: Path) -> None:
    """Its frames hold scripts alone; 300 pages stand in markup, 300 in a list, and 300 names of files are wrong."""
    markup = "".join(rf"<li><a href=\"topics/m{n}.html\">{n}</a>" for n in range(300))
    bookmarks = ",".join('{title:"%d",url:"topics/b%d.html"}' % (n, n) for n in range(300))  # noqa: UP031  braces
    wrong = [f"/wrong/{n}.png" for n in range(300)]
    routes: dict[str, Route] = {
        "/help/": ok("<frameset><frame src=toc.html><frame src=topics/start.html></frameset>"),
        "/help/toc.html": ok("<p id=toc><script src=js/contents.js></script><script src=js/bookmarks.js></script>"),
        "/help/js/contents.js": ok(f'e.innerHTML="{markup}";l({wrong})', JS),
        "/help/js/bookmarks.js": ok(f"b=[{bookmarks}]", JS),
        "/help/topics/start.html": shell("Start"),
    }
    routes |= {f"/help/topics/{kind}{n}.html": shell(f"{kind} {n}") for kind in "mb" for n in range(300)}
    with RawServer(routes, GONE) as server:
        assert crawl(tmp_path, server.url("/help/"), host_concurrency=1).code is ExitCode.DONE
        asked = server.log.targets()
    assert {target for target in asked if target.startswith("/help/")} == set(routes)
    assert sum(target.startswith("/wrong/") for target in asked) < 100  # 20, and those asked for before these count
    assert rows(tmp_path, "SELECT count(*) > 200 FROM urls WHERE state = 'excluded'") == [(1,)]
    said = archiver("status", str(tmp_path), cwd=tmp_path).stdout
    assert re.search("601 pages: 601 ok", said), said
    assert re.search(r"2\d\d URLs named only in scripts were skipped, such as \S+/wrong/\d+\.png", said), said
    assert "next to no links" not in said


def test_a_table_of_contents_in_json_leads_on(tmp_path: Path) -> None:
    """It may mean the page's folder or its own: soon it shows which, and the other one is given up."""
    toc = json.dumps({"items": [{"title": str(n), "href": f"topics/{n}.html"} for n in range(150)]})
    routes: dict[str, Route] = {
        "/docs/": ok("<div id=app></div><script src=js/app.js></script>"),
        "/docs/js/app.js": ok("fetch('data/toc.json').then(show)", JS),
        "/docs/data/toc.json": ok(toc, "application/json"),
    }
    routes |= {f"/docs/topics/{n}.html": ok(page(f"Topic {n}", ["extra.html"])) for n in range(150)}
    routes["/docs/topics/extra.html"] = ok(page("Extra", []))
    with RawServer(routes, GONE) as server:
        assert crawl(tmp_path, server.url("/docs/"), host_concurrency=1).code is ExitCode.DONE
        asked = server.log.targets()
    assert set(routes) <= set(asked)
    assert 20 < sum(target.startswith("/docs/data/topics/") for target in asked) < 100


def test_an_application_whose_addresses_have_no_extension_leads_on(tmp_path: Path) -> None:
    """Its script reads a list of stories, and opens pages on a click; what it sends is not requested."""
    app = (
        "fetch('/api/stories').then(r => r.json()).then(show);\n"
        "about.onclick = () => { location.href = '/about' }; team.href = '/team';\n"
        'for (let i = 1; i < 3; i++) { box.innerHTML += `<a href="/archive/${i}">${i}</a>` };\n'
        "like.onclick = () => fetch('/stories/one/like', {method: 'POST'});\n"
        "out.onclick = () => { location = '/logout' };\n"
        "save.onclick = () => $.ajax({url: '/drafts', data: {x: 1}, type: 'PUT'});"
    )
    routes: dict[str, Route] = {
        "/": ok("<div id=app></div><script src=/js/app.js></script>"),
        "/js/app.js": ok(app, JS),
        "/about": ok(page("About", ["/about/history"])),
        **{path: ok(page(path)) for path in ("/team", "/about/history", "/stories/one", "/stories/two/")},
        **{path: ok(page(path)) for path in ("/archive/1", "/archive/2")},
    }
    with RawServer(routes, GONE) as server:
        two = {"title": "Two", "page": server.url("/stories/two/")}
        stories = [{"title": "One", "url": "/stories/one"}, two, {"page": "http://elsewhere.test/stories"}]
        routes["/api/stories"] = ok(json.dumps({"all": stories, "next": "/api/stories?page=2"}), "application/json")
        routes["/api/stories?page=2"] = ok(json.dumps({"all": [], "next": None}), "application/json")
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        asked = set(server.log.targets())
    assert asked - {"/robots.txt", "/sitemap.xml", "/sitemap_index.xml", "/favicon.ico"} == set(routes)


def test_a_splash_page_leads_on(tmp_path: Path) -> None:
    routes: dict[str, Route] = {
        "/": ok("<script>setTimeout(\"top.location.href='home.html'\", 3000)</script>"),
        "/home.html": ok("<select onchange='location = this.value'><option value=a.html></select>"),
        "/a.html": ok("<body onload=\"MM_preloadImages('x.gif','y.gif')\">"),
        "/x.gif": ok(b"x", "image/gif"),
        "/y.gif": ok(b"y", "image/gif"),
    }
    with RawServer(routes, GONE) as server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        assert set(server.log.targets()) == {*routes, "/robots.txt"}
