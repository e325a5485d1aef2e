"""What a site is asked for although nothing names it: sitemaps and its icon, once, where nothing says better."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archiver.frontier import totals
from archiver.model import ExitCode
from archiver.policy.speculative import MOST_FOLDERS
from fixtures.archives import rows, stored
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.log import Row
from fixtures.rawserver import NOT_FOUND, RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page, redirect

ICON = "/favicon.ico"
SITEMAPS = {"/sitemap.xml", "/sitemap_index.xml"}
UNNAMED = {ICON, *SITEMAPS}
HOME = ok(page("Home", ["/a.html"]))
PAGES: dict[str, Route] = {"/": HOME, "/a.html": ok(page("A", ["/"]))}


def here(row: Row) -> str:
    """The site as the client calls it."""
    found = re.search(rb"\r\nhost: *([^\r]*)", row.request, re.IGNORECASE)
    return f"http://{found[1].decode()}" if found else ""


def sitemap(*targets: str, media_type: str = "application/xml") -> Route:
    def answer(row: Row) -> Sendable:
        entries = "".join(f"<url><loc>{here(row)}{target}</loc></url>" for target in targets)
        return ok(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>', media_type)

    return answer


def robots(text: str) -> Route:
    return lambda row: ok(text.replace("HERE", here(row)), "text/plain")


def asked(
    folder: Path, routes: Mapping[str, Route], seed: str = "/", expected: ExitCode = ExitCode.DONE, **values: Any
) -> list[str]:
    """What a crawl of *routes* asks for, robots.txt aside."""
    with RawServer(routes, keep(NOT_FOUND)) as server:
        assert crawl(folder, server.url(seed), **{"probe": "on", **values}).code is expected
        return [target for target in server.log.targets() if target != "/robots.txt"]


def test_a_site_is_asked_once_and_last_for_what_nothing_names(tmp_path: Path) -> None:
    names = [f"/{letter * 3}.html" for letter in "abcdefghijkl"]
    many: dict[str, Route] = {"/": ok(page("Home", names)), **{name: ok(page(name, ["/"])) for name in names}}
    found = asked(tmp_path, many, host_concurrency=1, traps="off")  # they delay pages that look alike
    assert Counter(found).most_common(1)[0][1] == 1
    assert set(found) == many.keys() | UNNAMED
    assert UNNAMED.isdisjoint(found[:-3])


def test_what_only_a_sitemap_names_is_archived(tmp_path: Path) -> None:
    found = asked(tmp_path, PAGES | {"/sitemap.xml": sitemap("/only.html"), "/only.html": ok(page("Only"))})
    assert "/only.html" in found
    index = asked(
        tmp_path / "index",
        PAGES
        | {
            "/sitemap_index.xml": lambda row: ok(
                f"<sitemapindex><sitemap><loc>{here(row)}/s.xml</loc></sitemap></sitemapindex>", "text/html"
            ),
            "/s.xml": sitemap("/only.html", media_type="text/plain"),
            "/only.html": ok(page("Only", ["/further.html"])),
        },
    )
    assert {"/only.html", "/further.html", "/s.xml"} <= set(index)


def test_what_a_site_names_is_not_guessed(tmp_path: Path) -> None:
    ours: Route = robots("User-agent: *\nSitemap: HERE/ours.xml\n")
    named = PAGES | {"/robots.txt": ours, "/ours.xml": sitemap("/a.html")}
    assert set(asked(tmp_path / "robots", named)) == {"/", "/a.html", "/ours.xml", ICON}
    linked = PAGES | {"/": ok('<link rel=sitemap href="/ours.xml"><a href=/a.html>a</a>'), "/ours.xml": sitemap()}
    assert set(asked(tmp_path / "page", linked)) == {"/", "/a.html", "/ours.xml", ICON}
    icon = page("Home").replace("<h1>", '<link rel="SHORTCUT ICON" href="/i.png"><h1>')
    shown: dict[str, Route] = {"/": ok(icon), "/i.png": ok(b"icon", "image/png")}
    assert set(asked(tmp_path / "icon", shown)) == {"/", "/i.png", *SITEMAPS}
    none: dict[str, Route] = {"/": ok(icon.replace("/i.png", "data:,"))}
    assert set(asked(tmp_path / "none", none)) == {"/", *SITEMAPS}
    later = shown | {"/": ok(icon + "<a href=/a.html>a</a>"), "/a.html": ok(page("A"))}  # a browser asks there
    assert ICON in asked(tmp_path / "later", later)


BELOW = "/blog/sitemap.xml"


def test_a_site_below_a_path_is_asked_for_its_own_sitemap(tmp_path: Path) -> None:
    blog: dict[str, Route] = {
        "/blog/": ok(page("Blog", ["/blog/a/"])),
        "/blog/a/": ok(page("A")),
        "/blog/only.html": ok(page("Only")),
        BELOW: sitemap("/blog/only.html", media_type="text/html"),
    }
    assert set(asked(tmp_path / "below", blog, "/blog/")) == blog.keys() | UNNAMED  # and of no other folder
    moved = blog | {"/blog": redirect("/blog/")}
    assert set(asked(tmp_path / "moved", moved, "/blog")) == moved.keys() | UNNAMED
    assert BELOW in asked(tmp_path / "index", {"/blog/index.php?x=1": blog["/blog/"]}, "/blog/index.php?x=1")
    assert BELOW not in asked(tmp_path / "page", {"/blog/a.html": blog["/blog/"]}, "/blog/a.html")
    assert BELOW not in asked(tmp_path / "off", blog, "/blog/", probe="off")
    linked = blog | {"/blog/": ok('<link rel=sitemap href="/blog/ours.xml">')}
    assert set(asked(tmp_path / "linked", linked, "/blog/")) == {"/blog/", "/blog/ours.xml", ICON}
    named = blog | {"/robots.txt": robots("Sitemap: HERE/ours.xml\nSitemap: HERE/blog/sitemap.xml.gz\n")}
    assert BELOW not in asked(tmp_path / "robots", named, "/blog/")
    other = blog | {"/robots.txt": robots("Sitemap: HERE/ours.xml\n")}
    assert BELOW in asked(tmp_path / "other", other, "/blog/")


def test_a_host_with_many_seeds_is_asked_for_few_sitemaps(tmp_path: Path) -> None:
    homes: dict[str, Route] = {f"/{number}/": ok(page(f"Home {number}")) for number in range(30)}
    with RawServer(homes, keep(NOT_FOUND)) as server:
        crawl(tmp_path, *(server.url(home) for home in homes), probe="on")
        found = [target for target in server.log.targets() if target.endswith("/sitemap.xml")]
    assert len(found) == len(set(found)) == 1 + MOST_FOLDERS


def test_robots_txt_is_obeyed(tmp_path: Path) -> None:
    closed = PAGES | {"/robots.txt": ok("User-agent: *\nDisallow: /sitemap\nDisallow: /favicon.ico\n", "text/plain")}
    assert set(asked(tmp_path / "closed", closed)) == PAGES.keys()
    assert set(asked(tmp_path / "ignored", closed, robots="ignore")) == PAGES.keys() | UNNAMED


def test_what_is_not_there_is_no_fault_of_the_site(tmp_path: Path) -> None:
    broken = PAGES | {
        "/sitemap.xml": keep(message("500 Internal Server Error", b"no")),
        ICON: b"",
        "/sitemap_index.xml": b"",
    }
    asked(tmp_path, broken, retries=0)
    assert rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'failed'") == [(0,)]
    assert rows(tmp_path, "SELECT count(*) FROM pattern_tallies WHERE pattern LIKE 'speculative%'") == [(0,)]
    with totals.open_totals(tmp_path) as db:
        assert totals.totals(db).failed == 0


def test_a_page_in_the_place_of_a_sitemap_leads_nowhere(tmp_path: Path) -> None:
    soft: Route = ok("<!doctype html><title>Sorry</title><a href=/from-soft>home</a>")
    assert "/from-soft" not in asked(tmp_path, PAGES | dict.fromkeys(UNNAMED, soft))


def test_the_limits_of_a_crawl_hold(tmp_path: Path) -> None:
    assert set(asked(tmp_path / "page", PAGES, scope="page")) == {"/", ICON}
    assert set(asked(tmp_path / "depth", PAGES, max_depth=0)) == {"/", ICON}
    assert set(asked(tmp_path / "hops", PAGES, max_hops=0)) == {"/"}
    assert set(asked(tmp_path / "text", PAGES, page_requisites=False)) == PAGES.keys() | SITEMAPS
    assert set(asked(tmp_path / "exclude", PAGES, exclude=(r"\.ico$", "sitemap"))) == PAGES.keys()
    assert set(asked(tmp_path / "off", PAGES, probe="off")) == PAGES.keys()
    below: dict[str, Route] = {"/docs/": ok(page("Docs")), "/sitemap.xml": sitemap("/docs/b.html", "/other.html")}
    prefix = set(asked(tmp_path / "prefix", below, "/docs/", scope="prefix"))
    assert prefix == {"/docs/", "/docs/b.html", "/docs/sitemap.xml", *UNNAMED}


def test_a_third_party_is_not_asked(tmp_path: Path) -> None:
    with RawServer({}, keep(NOT_FOUND), hosts=("127.0.0.2",)) as other:
        frame = other.url("/frame.html")
        other.routes = {"/frame.html": ok(page("Frame"))}
        site: dict[str, Route] = {
            "/": ok(f'<iframe src="{frame}"></iframe><a href=/gone>x</a>'),
            "/gone": redirect(frame),
        }
        asked(tmp_path, site, allow_private=("127.0.0.2",))
        assert set(other.log.targets()) == {"/robots.txt", "/frame.html"}


def test_a_site_whose_home_is_missing_may_have_a_sitemap(tmp_path: Path) -> None:
    lost: dict[str, Route] = {"/sitemap.xml": sitemap("/a.html"), "/a.html": ok(page("A"))}
    assert set(asked(tmp_path, lost, expected=ExitCode.NO_SEED)) == {"/", "/a.html", *UNNAMED}


def test_a_resumed_crawl_does_not_ask_again(tmp_path: Path) -> None:
    named = PAGES | {"/robots.txt": robots("Sitemap: HERE/ours.xml"), "/ours.xml": sitemap()}
    with RawServer(named, keep(NOT_FOUND)) as server:
        crawl(tmp_path, server.url(), probe="on", max_urls=1, host_concurrency=1)
        assert crawl(tmp_path, server.url(), probe="on", resume=True).code is ExitCode.DONE
        found = Counter(server.log.targets())
    assert found == {"/robots.txt": 1, "/": 1, "/a.html": 1, "/ours.xml": 1, ICON: 1}


def test_a_recrawl_asks_again_and_explain_says_why(tmp_path: Path) -> None:
    with RawServer(PAGES | {ICON: ok(b"icon", "image/x-icon")}, keep(NOT_FOUND)) as server:
        for command in (("crawl", server.url(), "-o", "c", "--rate", "0"), ("recrawl", "c")):
            done = archiver(*command, cwd=tmp_path)
            assert done.returncode == ExitCode.DONE, done.stderr
        told = archiver("explain", "c", server.url(ICON), cwd=tmp_path).stdout
        found = Counter(server.log.targets())
    assert [found[target] for target in ("/", ICON, *SITEMAPS)] == [2, 2, 2, 2]
    assert "probe: on" in told
    assert len({each.digest for each in stored(tmp_path / "c") if each.url.endswith(ICON)}) == 1
