"""Recrawls that leave pages out: by the dates in sitemaps, and by how often a page changed."""

import csv
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from fixtures.archives import rows
from fixtures.command import archiver, ended, running
from fixtures.conditional_site import Page, served
from fixtures.flag import Gate
from fixtures.forks import Forks, Ran
from fixtures.log import Row
from fixtures.rawserver import Answer, RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page

pytestmark = pytest.mark.slow

OPTIONS = ("--rate", "0", "--probe", "off", "--retries", "0", "--min-free-disk", "0")
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
DAY = 86_400
LEFT_OUT = "SELECT url FROM urls WHERE state = 'excluded' AND failure = 'unchanged' ORDER BY url"


def day(age: float) -> str:
    """The day so many days ago."""
    return f"{datetime.fromtimestamp(time.time() - age * DAY, UTC):%Y-%m-%d}"


def sitemap(entries: Mapping[str, float | None]) -> bytes:
    """A sitemap with the age of each page in days; None: it gives no date."""
    dated = {page: "" if age is None else f"<lastmod>{day(age)}</lastmod>" for page, age in entries.items()}
    text = "".join(f"<url><loc>{page}</loc>{date}</url>" for page, date in dated.items())
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{text}</urlset>'
    return message("200 OK", body.encode(), content_type="application/xml")


def robots(server: RawServer, *sitemaps: str) -> Route:
    lines = "".join(f"Sitemap: {server.url(target)}\n" for target in sitemaps)
    return keep(message("200 OK", f"User-agent: *\nDisallow:\n{lines}".encode(), content_type="text/plain"))


class Countdown:
    """Counts requests, and does something at the last one."""

    def __init__(self, left: int) -> None:
        self._left = left
        self._lock = threading.Lock()

    def then(self, act: Callable[[], None], answer: Sendable) -> Route:
        """Return a route that gives *answer*; the last request of all such routes does *act*."""

        def route(_: Row) -> Sendable:
            with self._lock:
                self._left -= 1
                if self._left == 0:
                    act()
            return answer

        return route


def done(ran: Ran) -> None:
    assert ran.code == ExitCode.DONE, ran.said


def asked(server: RawServer, before: int) -> set[str]:
    return {row.target for row in list(server.log)[before:]}


def left_out(directory: Path, server: RawServer) -> set[str]:
    return {str(url).removeprefix(server.url("")) for (url,) in rows(directory, LEFT_OUT)}


def site(server: RawServer) -> dict[str, Route]:
    """Pages that the sitemap dates in each way; the seed links to them, and the old one to a page of its own."""
    linked = ["/old", "/today", "/undated", "/untrusted", "/unlisted", "/broken"]
    pages = {each: Page(page(each), etag=f'"{each}"') for each in [*linked, "/behind", "/forgotten"]}
    pages["/old"] = Page(page("Old", ["/behind"]))  # without a validator: only its date says that it is as it was
    pages["/"] = Page(page("Home", linked))
    dates = {"/": 90.0, "/old": 50.0, "/today": 0.0, "/undated": None, "/broken": 40.0, "/forgotten": 60.0}
    return {
        **served(pages),
        "/broken": keep(message("500 Internal Server Error", b"no\n", content_type="text/plain")),
        "/robots.txt": robots(server, "/dated.xml", "/same.xml"),
        "/dated.xml": keep(sitemap({server.url(each): age for each, age in dates.items()})),
        "/same.xml": keep(sitemap(dict.fromkeys((server.url("/untrusted"), server.url("/other")), 30.0))),
        "/other": keep(message("404 Not Found", b"no\n", content_type="text/plain")),
    }


def changes(directory: Path, server: RawServer) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with (directory / "reports" / "changes.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            found.setdefault(row["change"], set()).add(row["url"].removeprefix(server.url("")))
    return found


def test_what_a_sitemap_dates_before_its_capture_is_not_requested(tmp_path: Path, forks: Forks) -> None:
    directory = tmp_path / "c"
    with RawServer({}) as server:
        server.routes = site(server)
        done(forks.run("crawl", server.url(), "-o", "c", *OPTIONS, cwd=tmp_path))
        before = len(server.log)
        again = forks.run("recrawl", "c", "--newer-sitemap", *OPTIONS, cwd=tmp_path)
        done(again)
        requested = asked(server, before)
        assert left_out(directory, server) == {"/old", "/forgotten"}
        assert requested == {*site(server)} - {"/old", "/forgotten"}  # "/behind", which only the old page names, too
        assert rows(directory, "SELECT path FROM urls WHERE url LIKE '%/behind'") == [
            ("LL",)
        ]  # found in the stored page
        command = "archiver retry c --failure unchanged && archiver resume c"
        for said in (again.said, (directory / "reports" / "summary.txt").read_text()):
            assert "2 URLs were not requested again by --newer-sitemap or --changed-only, such as" in said
            assert command in said
        found = json.loads((directory / "reports" / "report.json").read_text())
        assert found["verdict"]["left_out_as_unchanged"] == found["changes"]["left out"] == 2
        assert command in [each["command"] for each in found["problems"]]
        assert command in (directory / "reports" / "report.html").read_text().replace("&amp;", "&")
        assert changes(directory, server)["left out"] == {"/old", "/forgotten"}
        explained = forks.run("explain", "c", server.url("/old"), cwd=tmp_path)
        assert "newer-sitemap: a sitemap dates it before its capture" in explained.said
        _check_command(directory, server, forks)
    assert verify([directory]).findings == ()


def _check_command(directory: Path, server: RawServer, forks: Forks) -> None:
    """A general retry leaves them alone; the command in the report fetches them, although the option still holds."""
    before = len(server.log)
    done(forks.run("retry", "c", cwd=directory.parent))
    done(forks.run("resume", "c", "-qq", cwd=directory.parent))
    assert asked(server, before) == set()
    done(forks.run("retry", "c", "--failure", "unchanged", cwd=directory.parent))
    done(forks.run("resume", "c", "-qq", cwd=directory.parent))
    assert asked(server, before) == {"/old", "/forgotten"}
    assert left_out(directory, server) == set()


def test_the_dates_are_known_after_a_stop(tmp_path: Path, forks: Forks) -> None:
    """The sitemap was read by the run before; a limit on URLs counts only what is requested."""
    with RawServer({}) as server:
        server.routes = site(server)
        done(forks.run("crawl", server.url(), "-o", "c", *OPTIONS, cwd=tmp_path))
        stopped = forks.run("recrawl", "c", "--newer-sitemap", "--max-urls", "3", *OPTIONS, cwd=tmp_path)
        assert stopped.code == ExitCode.LIMIT, stopped.said
        before = len(server.log)
        done(forks.run("resume", "c", "--max-urls", "0", *OPTIONS, cwd=tmp_path))
        assert {"/old", "/forgotten"}.isdisjoint(asked(server, before))
        assert left_out(tmp_path / "c", server) == {"/old", "/forgotten"}
        assert {"/robots.txt", "/dated.xml"}.isdisjoint(asked(server, before))
        done(forks.run("recrawl", "c", "--no-newer-sitemap", "-qq", *OPTIONS, cwd=tmp_path))
        assert left_out(tmp_path / "c", server) == set()


def test_a_process_knows_the_sitemaps_that_another_one_has_read(tmp_path: Path, forks: Forks) -> None:
    """One host has the sitemap of all. It answers late: each process has looked for sitemaps before."""
    gate, early = Gate(), Countdown(3)
    with ExitStack() as stack:
        servers = [stack.enter_context(RawServer({})) for _ in range(4)]
        urls = [server.url(target) for server in servers[1:] for target in ("/old", "/today")]
        listed = sitemap({url: 50.0 if url.endswith("old") else 0.0 for url in urls})
        pages = {name: keep(message("200 OK", page(name).encode())) for name in ("/old", "/today", "/early")}
        for server in servers[1:]:
            server.routes = {"/": keep(message("200 OK", page("Home", ["/early"]).encode())), **pages}
        listing = {"/": ok(page("Home")), "/robots.txt": robots(servers[0], "/all.xml")}
        servers[0].routes = {**listing, "/all.xml": keep(listed)}
        words = (*OPTIONS, "--processes", "2")
        done(forks.run("crawl", *(each.url() for each in servers), "-o", "c", *words, cwd=tmp_path))
        before = [len(server.log) for server in servers]
        for server in servers[1:]:
            server.routes = {**server.routes, "/early": early.then(gate.open, pages["/early"])}
        servers[0].routes = {**listing, "/all.xml": Answer((gate, listed))}
        done(forks.run("recrawl", "c", "--newer-sitemap", *words, cwd=tmp_path))
        for server, number in zip(servers[1:], before[1:], strict=True):
            assert asked(server, number) == {"/", "/robots.txt", "/early", "/today"}
    assert len(rows(tmp_path / "c", LEFT_OUT)) == 3


def test_a_damaged_copy_is_fetched_again(tmp_path: Path, forks: Forks) -> None:
    with RawServer({}) as server:
        server.routes = site(server)
        done(forks.run("crawl", server.url(), "-o", "c", *OPTIONS, cwd=tmp_path))
        (place,) = rows(
            tmp_path / "c",
            "SELECT warcs.name, offset, response_length FROM captures JOIN urls ON urls.id = captures.url "
            "JOIN warcs ON warcs.id = captures.warc WHERE urls.url LIKE '%/old'",
        )
        path, middle = tmp_path / "c" / "archive" / str(place[0]), int(str(place[1])) + int(str(place[2])) // 2
        whole = path.read_bytes()
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        before = len(server.log)
        done(forks.run("recrawl", "c", "--newer-sitemap", "-qq", *OPTIONS, cwd=tmp_path))
        assert "/old" in asked(server, before)
        assert left_out(tmp_path / "c", server) == {"/forgotten"}


def days_ago(days: int) -> tuple[str, ...]:
    """The words before a command that runs so many days ago."""
    faked = ("DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
    return ("env", f"LD_PRELOAD={LIBRARY}", f"FAKETIME=-{days}d", *faked)


@pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed, which sets the clock of one process")
def test_what_changed_often_is_requested_often(tmp_path: Path) -> None:
    """Three crawls, 30, 20 and 8 days ago, and one now."""

    def pages(version: int) -> dict[str, Route]:
        links = ["/changing", "/steady", *(["/unlinked"] if version == 0 else []), *(["/young"] if version > 1 else [])]
        found = {
            "/": Page(page("Home", links, body='<img src="/picture.png">')),
            "/changing": Page(page(f"Version {version}"), etag=f'"{version}"'),
            "/steady": Page(page("Steady", ["/below"]), etag='"s"'),
            "/below": Page(page("Below", body="<p>as ever</p>" * 200)),
            "/unlinked": Page(page("Unlinked"), etag='"u"'),
            "/young": Page(page("Young"), etag='"y"'),
            "/picture.png": Page("no picture", etag='"p"', media_type="image/png"),
        }
        return served(found)

    with RawServer({}) as server:
        words: tuple[str, ...] = ("crawl", server.url(), "-o", "c")
        for version, days in enumerate((30, 20, 8)):
            server.routes = pages(version)
            with running(*words, *OPTIONS, cwd=tmp_path, before=days_ago(days)) as process:
                code, err = ended(process, timeout=300)
            assert code == ExitCode.DONE, err
            words = ("recrawl", "c", "--changed-only")
        server.routes = pages(3)
        before = len(server.log)
        ran = archiver("recrawl", "c", "--changed-only", *OPTIONS, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        # The steady ones are unchanged for 22 days, so they wait for 11. The changing one changes every 11 days, and
        # the young one was visited once. What no page names any more is always requested, and so is the seed.
        assert left_out(tmp_path / "c", server) == {"/steady", "/below", "/picture.png"}
        assert asked(server, before) == {"/", "/robots.txt", "/changing", "/unlinked", "/young"}
        shown = archiver("explain", "c", server.url("/below"), cwd=tmp_path)
        assert "changed-only: unchanged for 22.0 days or more" in shown.stdout
    assert verify([tmp_path / "c"]).findings == ()
