"""Guesses in whole crawls: asked for last, on the site alone, and no fault of the site where they are wrong."""

import gzip
import re
from pathlib import Path

from archiver.frontier import account
from archiver.model import ExitCode
from fixtures.archives import rows, stored
from fixtures.command import archiver
from fixtures.lifetimes import crawl
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
    wrong = rows(tmp_path, "SELECT pattern, visits - fruitful FROM tallies WHERE pattern LIKE 'speculative %'")
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
    routes["/a.js"] = ok(f"x={[f'/{n}.png' for n in range(80)]}", JS)
    with RawServer(routes, GONE) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1).code is ExitCode.DONE
        assert 21 <= sum(target.endswith(".png") for target in server.log.targets()) < 60
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
    with account.opened(tmp_path / "c") as db:
        assert account.failures(db) == [("speculative, disconnect", 1)]
        assert account.totals(db).failed == 0
