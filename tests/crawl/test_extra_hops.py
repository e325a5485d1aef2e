"""One hop out: the pages that a site links to, with what they need to be shown, and no further."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, stored
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import NOT_FOUND, RawServer, keep
from fixtures.sites import PIXEL, ok, page, redirect

HOME, FIRST, SECOND = "127.0.0.1", "127.0.0.2", "127.0.0.3"
PRIVATE = (FIRST, SECOND)


@pytest.fixture(name="web")
def three_hosts() -> Iterator[RawServer]:
    """A site of three pages; the host that it links to; and one that only that host links to."""
    with RawServer({}, keep(NOT_FOUND), hosts=(HOME, FIRST, SECOND)) as server:
        first, second = server.url("", FIRST), server.url("", SECOND)
        sheet = ok("@import 'more.css'; p { background: url(i.gif) }", "text/css")
        server.routes = {
            f"//{HOME}/": ok(page("Home", ["/a.html"])),
            f"//{HOME}/a.html": ok(page("A", ["/b.html"], body=f'<iframe src="{first}/frame.html"></iframe>')),
            f"//{HOME}/b.html": ok(page("B", [f"{first}/x.html", f"{first}/moved"])),
            f"//{FIRST}/x.html": ok(
                page("X", ["/y.html", f"{second}/z.html", server.url("/home.html")], ["/i.gif"], ["/s.css"])
            ),
            f"//{FIRST}/y.html": ok(page("Y", ["/further.html"])),
            f"//{FIRST}/frame.html": ok(page("Frame", ["/from-frame.html"])),
            f"//{FIRST}/moved": redirect("/moved.html"),
            f"//{FIRST}/moved.html": ok(page("Moved", ["/from-moved.html"])),
            f"//{FIRST}/s.css": sheet,
            f"//{FIRST}/more.css": ok("p { background: url(deep.gif) }", "text/css"),
            f"//{FIRST}/i.gif": ok(PIXEL, "image/gif"),
            f"//{FIRST}/deep.gif": ok(PIXEL, "image/gif"),
            f"//{SECOND}/z.html": ok(page("Z", [f"{first}/further.html"])),
            f"//{HOME}/home.html": ok(page("Back", ["/"])),
        }
        yield server


def outside(server: RawServer) -> set[str]:
    """What the other hosts were asked for."""
    return {f"{row.host}{row.target}" for row in server.log if row.host != HOME and row.target != "/robots.txt"}


FRAME = {f"{FIRST}/frame.html"}
ONE = FRAME | {
    f"{FIRST}/{name}" for name in ("x.html", "moved", "moved.html", "s.css", "more.css", "i.gif", "deep.gif")
}
TWO = ONE | {f"{FIRST}/y.html", f"{FIRST}/from-moved.html", f"{SECOND}/z.html"}
THREE = TWO | {f"{FIRST}/further.html"}


@pytest.mark.parametrize(("hops", "expected"), [(0, FRAME), (1, ONE), (2, TWO), (3, THREE), (9, THREE)])
def test_as_many_links_out_as_is_said(hops: int, expected: set[str], web: RawServer, tmp_path: Path) -> None:
    assert go(tmp_path, web, extra_hops=hops) == expected
    home = {row.target for row in web.log if row.host == HOME}
    assert ("/home.html" in home) == (hops > 0)  # a page of the site that only another host links to


def go(folder: Path, web: RawServer, **values: Any) -> set[str]:
    assert crawl(folder, web.url(), allow_private=PRIVATE, **values).code is ExitCode.DONE
    return outside(web)


def test_one_page_and_what_it_links_to(web: RawServer, tmp_path: Path) -> None:
    web.routes = {**web.routes, f"//{HOME}/": ok(page("Home", ["/a.html", web.url("/y.html", FIRST)]))}
    assert go(tmp_path, web, extra_hops=1, scope="page") == FRAME | {f"{FIRST}/y.html"}
    assert {row.target for row in web.log if row.host == HOME} == {"/robots.txt", "/", "/a.html"}


def test_the_limit_of_depth_is_one_of_the_site(web: RawServer, tmp_path: Path) -> None:
    assert go(tmp_path, web, extra_hops=1, max_depth=2) == ONE
    assert "/home.html" not in {row.target for row in web.log if row.host == HOME}
    assert go(tmp_path / "less", web, extra_hops=1, max_depth=1, exclude=("frame",)) == ONE  # nothing new


def test_other_limits_hold_outside(web: RawServer, tmp_path: Path) -> None:
    found = go(tmp_path, web, extra_hops=1, exclude=("moved",), page_requisites=False)
    assert found == {f"{FIRST}/x.html"}


def test_seeds_with_settings_of_their_own(web: RawServer, tmp_path: Path) -> None:
    listed = tmp_path / "seeds"
    listed.write_text(f"{web.url()} exclude=/home\n")
    options = ("--rate", "0", "--probe", "off", "--extra-hops", "1", "--allow-private", FIRST, "-q")
    done = archiver("crawl", "--seeds", str(listed), "-o", "c", *options, cwd=tmp_path)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert outside(web) == ONE
    assert "/home.html" not in {row.target for row in web.log if row.host == HOME}


def test_it_is_resumed_rebuilt_crawled_again_and_explained(web: RawServer, tmp_path: Path) -> None:
    options = ("--rate", "0", "--probe", "off", "--extra-hops", "1", "--host-concurrency", "1")
    private = ("--allow-private", FIRST, "--allow-private", SECOND)
    archiver("crawl", web.url(), "-o", "c", "--max-urls", "4", *options, *private, cwd=tmp_path)
    assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.LIMIT
    assert archiver("resume", "c", "--max-urls", "0", cwd=tmp_path).returncode == ExitCode.DONE
    assert outside(web) == ONE
    assert len(web.log) == len({(row.host, row.target) for row in web.log})
    told = archiver("explain", "c", web.url("/x.html", FIRST), cwd=tmp_path).stdout
    assert "extra-hops: 1" in told
    assert "extra-hops: 1" in archiver("explain", "c", web.url("/y.html", FIRST), cwd=tmp_path).stdout
    before = rows(tmp_path / "c", "SELECT url, state, off_scope_hops FROM urls ORDER BY url")
    (tmp_path / "c" / "crawl.db").unlink()
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert rows(tmp_path / "c", "SELECT url, state, off_scope_hops FROM urls ORDER BY url") == before
    asked = len(web.log)
    assert archiver("recrawl", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert {f"{row.host}{row.target}" for row in list(web.log)[asked:]} >= ONE
    assert outside(web) == ONE
    assert {each.url for each in stored(tmp_path / "c")} >= {web.url("/x.html", FIRST), web.url("/deep.gif", FIRST)}
