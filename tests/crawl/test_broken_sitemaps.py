"""Sitemaps that are missing or broken: the verdict names them, since no other document may name their pages."""

from pathlib import Path

import pytest

from fixtures.archives import rows
from fixtures.command import archiver
from fixtures.rawserver import RawServer, Route, keep
from fixtures.sites import message, ok, page, redirect

URLSET = "<urlset><url><loc>{}</loc></url>"
WHOLE = ok(f"{URLSET.format('/p')}</urlset>", "text/xml")

BROKEN: dict[str, tuple[Route, str]] = {
    "an error": (keep(message("500 Oops", b"x")), "(status 500)"),
    "missing": (keep(message("404 Not Found", b"x")), "(status 404)"),
    "cut": (ok(f"{URLSET.format('/p')}<url><loc>", "text/xml"), "(broken XML)"),
    "a login page": (ok(page("Log in")), "(it names no URL)"),
    "an answer that ends early": (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n<urlset/>", "(cut: disconnect)"),
}
GOOD: dict[str, Route] = {
    "whole": WHOLE,
    "empty": ok("<urlset></urlset>", "text/xml"),
    "a text": ok("http://127.0.0.1:9/p\n", "text/plain"),
    "elsewhere": redirect("/whole.xml"),
}


def crawled(folder: Path, sitemap: Route) -> str:
    routes: dict[str, Route] = {
        "/": ok(page("Home")),
        "/p": ok(page("P")),
        "/robots.txt": ok("User-agent: *\nSitemap: /map.xml\n", "text/plain"),
        "/map.xml": sitemap,
        "/whole.xml": WHOLE,
    }
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), "-o", "o", "--rate", "0", "--retries", "0", "--probe=off", cwd=folder)
    return " ".join(ran.stderr.split())


@pytest.mark.parametrize("name", BROKEN)
def test_a_sitemap_that_is_missing_or_broken_is_named(tmp_path: Path, name: str) -> None:
    answer, why = BROKEN[name]
    told = crawled(tmp_path, answer)
    assert "1 sitemap is missing or broken, such as http://" in told
    assert f"/map.xml {why}" in told
    assert "/map.xml && archiver resume o" in told
    assert (tmp_path / "o" / "crawl.db").exists()
    found = rows(tmp_path / "o", "SELECT count(*) FROM urls WHERE url LIKE '%/p'")
    assert found == [(int(name == "cut"),)]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_sitemap_is_not_named(tmp_path: Path, name: str) -> None:
    assert "missing or broken" not in crawled(tmp_path, GOOD[name])
