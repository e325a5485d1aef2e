"""URLs whose percent escapes are in small letters: asked for as they are written, compared in capitals."""

from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import NOT_FOUND, RawServer, Route, keep
from fixtures.sites import message, ok, page, redirect

LINKS = ("/caf%c3%a9", "/old%2Fx", "/secret%c3%a9", "/no%c3%a9", "/deep/%e2%82%ac?q=%2f")
ROBOTS = "User-agent: *\nDisallow: /secret%C3%A9\n"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[str]]:
    """A crawl of a server that tells the letters of escapes apart, and redirects one spelling to the other."""
    folder = tmp_path_factory.mktemp("escapes")
    routes: dict[str, Route] = {each: ok(page(each, [])) for each in ("/old%2fx", *LINKS)}
    routes |= {"/robots.txt": ok(ROBOTS, "text/plain"), "/": ok(page("Home", [*LINKS]))}
    routes["/old%2Fx"] = redirect("/old%2fx")
    with RawServer(routes, keep(NOT_FOUND)) as site:
        done = archiver(
            *("crawl", site.url(), "-o", "c", "--rate", "0", "--probe", "off", "--exclude", "no%C3%A9"),
            *("--allow-private", "127.0.0.1"),
            cwd=folder,
        )
        assert done.returncode == ExitCode.DONE, done.stderr
        return folder, site.url(), [row.target for row in site.log]


def test_each_url_is_asked_for_as_it_is_written(crawled: tuple[Path, str, list[str]]) -> None:
    asked = sorted(set(crawled[2]) - {"/", "/robots.txt", "/favicon.ico"})
    assert asked == ["/caf%c3%a9", "/deep/%e2%82%ac?q=%2f", "/old%2Fx", "/old%2fx"]


@pytest.mark.parametrize(
    ("named", "said"),
    [("caf%C3%A9", "/caf%c3%a9"), ("deep/%E2%82%AC?q=%2F", "/deep/%e2%82%ac?q=%2f"), ("secret%C3%A9", "Disallow")],
)
def test_a_person_may_write_it_otherwise(crawled: tuple[Path, str, list[str]], named: str, said: str) -> None:
    folder, home, _ = crawled
    found = archiver("explain", "c", home + named, cwd=folder)
    assert (found.returncode, said in found.stdout) == (ExitCode.DONE, True), found.stdout


def test_captures_are_found_in_both_spellings(crawled: tuple[Path, str, list[str]]) -> None:
    folder, home, _ = crawled
    for named in ("caf%C3%A9", "caf%c3%a9"):
        assert "/caf%c3%a9" in archiver("ls", "c", home + named, cwd=folder).stdout
        assert archiver("get", "c", home + named, cwd=folder).returncode == ExitCode.DONE


PERCENT = "<title>Operator %</title><p>It returns what is left of a division</p>"
STRAY: dict[str, Route] = {
    "/": ok(page("Home", ["/operator%.html", "/100%", "/is-there%.html", "/?q=5%", "/caf%c3%a9"])),
    "/operator%.html": keep(message("400 Bad Request", b"no")),
    "/operator%25.html": ok(PERCENT),
    "/100%": keep(message("400 Bad Request", b"no")),
    "/is-there%.html": ok(page("There")),
    "/?q=5%": keep(message("400 Bad Request", b"no")),
    "/caf%c3%a9": keep(message("400 Bad Request", b"no")),
}


def test_a_percent_sign_that_a_server_refuses_is_escaped(tmp_path: Path) -> None:
    with RawServer(STRAY, keep(NOT_FOUND)) as site:
        crawl(tmp_path, site.url())
        asked = [row.target for row in site.log if row.target != "/robots.txt"]
    assert sorted(asked) == sorted([*STRAY, "/100%25"])  # only after 400, once, and only in the path
    assert rows(tmp_path, "SELECT status FROM urls WHERE url LIKE '%operator%25.html'") == [(200,)]
    assert rows(tmp_path, "SELECT count(*) FROM urls WHERE status = 404 AND hop <> 'X' AND url LIKE '%100%'") == [(0,)]
