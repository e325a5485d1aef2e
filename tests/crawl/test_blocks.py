"""Hosts that a person blocks: no request goes to them until the person takes it back, over kills and restarts."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver, running
from fixtures.postgres import PostgresServer
from fixtures.rawserver import RawServer, Route
from fixtures.several_hosts import captures
from fixtures.site_with_login import MEMBERS, PASSWORD, PLEASE, USER, MembersSite
from fixtures.sites import ok, page
from tests.crawl.test_orders import HOSTS, OPTIONS, did, linux, site

BLOCKED = HOSTS[1]
PAGES = 150


@pytest.fixture(name="way", params=["alone", pytest.param("processes", marks=linux), "postgres"])
def way_of_crawling(request: pytest.FixtureRequest, postgres_server: PostgresServer | None) -> tuple[str, ...]:
    """Return options for one process, for two, and for two with a queue in PostgreSQL."""
    if request.param == "postgres":
        if postgres_server is None:
            pytest.skip("PostgreSQL is not installed")
        return ("--processes", "2", "--frontier", postgres_server.new_database())
    return ("--processes", "2") if request.param == "processes" else ()


def test_a_host_that_is_blocked_while_the_crawl_is_logged_in_is_not_even_logged_in_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session has ended when its host is blocked: the crawl ends, and logs in again after the unblocking."""
    monkeypatch.setenv("SITE_PASSWORD", PASSWORD)
    members = MembersSite(pages_in_session=4)
    with RawServer(members.routes) as server:
        form = f"{server.url('/login')} user={USER} password=env:SITE_PASSWORD 'logged-out={PLEASE}' attempts=9"
        login = ("--login", form, "--insecure-secrets", "127.0.0.1", "--max-urls", "3")
        ran = archiver("crawl", *OPTIONS, *login, server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        assert members.answers["in"] == 1
        host = server.url("").split("/")[2].partition(":")[0]
        assert did("block", host, cwd=tmp_path).startswith("blocked: 1 host with ")
        asked = len(server.log)
        ran = archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
        assert (ran.returncode, len(server.log)) == (ExitCode.DONE, asked), ran.stderr
        assert f"because a person blocked {host}" in ran.stderr
        assert did("unblock", host, cwd=tmp_path).startswith("no longer blocked: 1 host with ")
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert members.answers["in"] > 1
    found = {url.rpartition("/")[2] for url in captures(tmp_path / "c") if "/member/" in url}
    assert found == {name.rpartition("/")[2] for name in MEMBERS}


def test_a_blocked_host_gets_no_request_until_it_is_unblocked(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer(site(PAGES), hosts=HOSTS) as server:

        def asked() -> int:
            return sum(row.host == BLOCKED for row in server.log)

        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, *way, *seeds, cwd=tmp_path) as process:
            server.log.holds(60).wait()
            assert did("block", BLOCKED, cwd=tmp_path).startswith("blocked: 1 host with ")
            server.log.holds(len(server.log) + 10).wait()  # what was under way has arrived
            before = asked()
            server.log.holds(len(server.log) + 40).wait()
            process.kill()
            process.communicate()
        ran = archiver("resume", "c", cwd=tmp_path)
        assert (ran.returncode, asked()) == (ExitCode.DONE, before), ran.stderr
        found = json.loads(did("status", "--json", cwd=tmp_path))
        left = rows(tmp_path / "c", "SELECT count(*) FROM urls WHERE state = 'waiting'")[0][0]
        assert found["totals"]["waiting"] == left != 0
        for text in (ran.stderr, did("status", cwd=tmp_path), did("report", cwd=tmp_path)):
            assert f"{left} URLs wait because a person blocked {BLOCKED}" in text
            assert f" {BLOCKED} && archiver resume " in text
            assert "URLs are waiting" not in text
            assert "URLs are queued" not in text
        assert f"archiver unblock DIR {BLOCKED}" in did("urls", "--state", "waiting", "--why", cwd=tmp_path)
        assert did("unblock", BLOCKED, cwd=tmp_path).startswith(f"no longer blocked: 1 host with {left} waiting URLs")
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert len(captures(tmp_path / "c")) == len(HOSTS) * (PAGES + 1)


def test_what_needs_the_rules_of_a_blocked_host_waits_too(tmp_path: Path) -> None:
    rules = {"/robots.txt": ok("", "text/plain"), "/": ok(page("B", []))}
    with RawServer(rules) as blocked:
        moved = f"HTTP/1.1 301 M\r\nLocation: {blocked.url('/robots.txt')}\r\nContent-Length: 0\r\n\r\n".encode()
        routes: dict[str, Route] = {**site(3), "/robots.txt": moved}
        with RawServer(routes) as server:
            origin = blocked.url("/").rstrip("/")
            options = ("-o", "c", "--probe", "off", "--min-free-disk", "0", "--block", origin)
            ran = archiver("crawl", *options, server.url(), blocked.url(), cwd=tmp_path)
            assert ran.returncode == ExitCode.NO_SEED, ran.stderr
            assert f"a person blocked {origin}" in ran.stderr
            assert not len(blocked.log)
            assert {row.target for row in server.log} == {"/robots.txt"}
            did("unblock", origin, cwd=tmp_path)
            ran = archiver("resume", "c", cwd=tmp_path)
            assert ran.returncode == ExitCode.DONE, ran.stderr
            assert len(server.log) == 5


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("block", "c", "http://"), "HOST: 'http://' is not a host name"),
        (("unblock", "c", "example.net"), "example.net is not blocked; no host is blocked"),
        (("note", "c", " "), "the note is empty"),
    ],
)
def test_a_wrong_order_changes_nothing(crawled: Path, words: Sequence[str], says: str) -> None:
    ran = archiver(*words, cwd=crawled)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (ExitCode.USAGE, 1)
    assert says in ran.stderr
    assert did("orders", cwd=crawled) == ""


def test_a_note_is_in_the_list_of_orders(crawled: Path) -> None:
    assert did("note", "slow on purpose\x1b[2J", cwd=crawled) == "noted\n"
    shown = did("orders", cwd=crawled)
    assert "slow on purpose" in shown
    assert "\x1b" not in shown
    assert json.loads(did("orders", "--json", cwd=crawled))["arguments"] == ["slow on purpose\x1b[2J"]


@pytest.fixture(name="crawled")
def a_crawl_that_is_done(tmp_path: Path) -> Path:
    """Return the folder of a crawl with one page."""
    with RawServer({"/": ok(page("Home", []))}) as server:
        ran = archiver("crawl", *OPTIONS, server.url(), cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return tmp_path
