"""Cookies in whole crawls: sites that need them, who gets them, that a crash loses none, and hostile sites."""

import signal
from pathlib import Path

import pytest

from archiver.config.host_rules import HOST_RULE
from archiver.model import ExitCode
from archiver.policy.cookies import DOMAIN_BYTES, DOMAIN_COOKIES
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl
from fixtures.forks import Forks
from fixtures.log import Log, Row
from fixtures.rawserver import RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page
from fixtures.steps import COMMIT

HOSTS = ("127.0.0.1", "127.0.0.2")


def cookies_of(log: Log) -> dict[str, str]:
    """The Cookie field of each request: target and value, "" if it has none."""
    found = {}
    for row in log:
        lines = [line for line in row.request.split(b"\r\n") if line.lower().startswith(b"cookie:")]
        assert len(lines) <= 1
        found[f"{row.name}{row.target}"] = lines[0].partition(b": ")[2].decode("latin-1") if lines else ""
    return found


def front(*names: str) -> Route:
    return ok(page("Front", names), **{"set-cookie": "seen=1; Path=/"})


def test_a_site_gets_the_cookie_that_it_set(tmp_path: Path) -> None:
    site: dict[str, Route] = {
        "/": front("/a/one", "/b"),
        "/a/one": ok(page("One", ["/a/two"]), **{"set-cookie": "part=a; Max-Age=60"}),
        "/a/two": ok(page("Two")),
        "/b": ok(page("B")),
    }
    with RawServer(site) as server:
        assert crawl(tmp_path, server.url()).code is ExitCode.DONE
        sent = cookies_of(server.log)
    assert sent == {
        "127.0.0.1/robots.txt": "",
        "127.0.0.1/": "",
        "127.0.0.1/a/one": "seen=1",
        "127.0.0.1/a/two": "part=a; seen=1",
        "127.0.0.1/b": "seen=1",
    }
    stored = rows(tmp_path, "SELECT domain, path, name, value, expires IS NULL FROM cookies ORDER BY path")
    assert [tuple(row) for row in stored] == [("127.0.0.1", "/", "seen", "1", 1), ("127.0.0.1", "/a", "part", "a", 0)]


def test_cookies_can_be_off_for_all_or_for_one_host(tmp_path: Path) -> None:
    site: dict[str, Route] = {"/": front("/one"), "/one": ok(page("One"))}
    with RawServer(site, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        crawl(tmp_path / "one", *seeds, host=(HOST_RULE.parse("127.0.0.2 cookies=off"),), robots="ignore")
        assert cookies_of(server.log)["127.0.0.1/one"] == "seen=1"
        assert cookies_of(server.log)["127.0.0.2/one"] == ""
    with RawServer(site) as server:
        crawl(tmp_path / "all", server.url(), cookies="off")
        assert set(cookies_of(server.log).values()) == {""}
    assert not rows(tmp_path / "all", "SELECT * FROM cookies")


def test_another_host_gets_no_cookie(tmp_path: Path) -> None:
    with RawServer({"/": ok(page("Other"))}, hosts=("127.0.0.2",)) as other:
        image = f'<img src="{other.url("/i.png", "127.0.0.2")}">'
        site: dict[str, Route] = {"/": ok(page("Front", body=image), **{"set-cookie": "secret=1; Path=/"})}
        with RawServer(site) as server:
            crawl(tmp_path, server.url(), robots="ignore", allow_private=("127.0.0.2",))
        assert cookies_of(other.log) == {"127.0.0.2/i.png": ""}


def test_a_cookie_header_of_the_user_replaces_those_of_the_site(tmp_path: Path) -> None:
    with RawServer({"/": front("/one"), "/one": ok(page("One"))}) as server:
        crawl(tmp_path, server.url(), header=("Cookie: mine=1",), robots="ignore")
        assert cookies_of(server.log)["127.0.0.1/one"] == "mine=1"


def test_a_resumed_crawl_still_has_its_cookies(tmp_path: Path) -> None:
    with RawServer({"/": front("/one"), "/one": ok(page("One"))}) as server:
        assert crawl(tmp_path, server.url(), max_urls=1).code is ExitCode.LIMIT
        assert crawl(tmp_path, server.url(), resume=True).code is ExitCode.DONE
        assert cookies_of(server.log)["127.0.0.1/one"] == "seen=1"


def members_only() -> dict[str, Route]:
    """A site that shows its pages only to those who have come through its login."""
    pages = [f"/{number}" for number in range(8)]

    def inside(row: Row) -> Sendable:
        return (
            ok(page("Inside", pages))
            if b"Cookie: login=1\r\n" in row.request
            else keep(message("403 No", b"no", content_type="text/html"))
        )

    return {
        "/": ok(page("Login", pages), **{"set-cookie": "login=1; Path=/; HttpOnly"}),
        **dict.fromkeys(pages, inside),
    }


@pytest.mark.slow
@pytest.mark.parametrize("step", [step.name for step in COMMIT])
@pytest.mark.parametrize("loaded", [False, True])
def test_after_a_kill_the_crawl_is_still_logged_in(
    tmp_path: Path,
    forks: Forks,
    step: str,
    loaded: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Whether the site or the user brought the cookie."""
    (tmp_path / "c.txt").write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tlogin\t1\n")
    options = ("-o", "c", "--rate", "0", "--host-concurrency", "1", "--min-free-disk", "0", "-qq")
    given = ("--load-cookies", "c.txt") if loaded else ()
    site = members_only()
    if loaded:
        site["/"] = site["/0"]
    with RawServer(site) as server:
        ran = forks.run("crawl", server.url(), *options, *given, cwd=tmp_path, step=step, passing=3)
        assert ran.code in (-signal.SIGKILL, ExitCode.DONE), ran.said
        done = forks.run("resume", "c", "-qq", cwd=tmp_path)
        assert done.code == ExitCode.DONE, done.said
    sql = "SELECT DISTINCT captures.status FROM captures WHERE mime = 'text/html'"
    found = rows(tmp_path / "c", sql)
    assert found == [(200,)]


@pytest.mark.slow
def test_a_cookie_bomb_is_bounded(tmp_path: Path) -> None:
    """10,000 cookies in one megabyte of headers: a few are kept, and the next requests stay small."""
    fields = "".join(f"Set-Cookie: n{number}={'v' * 70}; Path=/\r\n" for number in range(10_000))
    body = page("Front", ["/one", "/two"]).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    many = head[: head.index("n1000=")] + "x=1\r\n\r\n"
    site: dict[str, Route] = {"/": keep(many.encode() + body), "/one": keep(head.encode() + body), "/two": ok("2")}
    with RawServer(site) as server:
        assert crawl(tmp_path, server.url(), host_concurrency=1).code is ExitCode.DONE
        sent = cookies_of(server.log)
    assert 0 < sent["127.0.0.1/one"].count("=") <= DOMAIN_COOKIES
    assert len(sent["127.0.0.1/two"]) < DOMAIN_BYTES + 3 * DOMAIN_COOKIES
    sizes = [len(str(pair)) for (pair,) in rows(tmp_path, "SELECT name || value FROM cookies")]
    assert 0 < len(sizes) <= DOMAIN_COOKIES
    assert sum(sizes) <= DOMAIN_BYTES


@pytest.mark.slow
def test_a_thousand_hosts_that_each_set_cookies(tmp_path: Path) -> None:
    """Each gets its own back. Names cost a look-up, so these hosts are addresses."""
    hosts = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(1000)]

    def front(row: Row) -> Sendable:
        host = row.host
        fields = {"set-cookie": f"own={host}; Path=/"}
        if row.target == "/two":
            assert f"Cookie: own={host}\r\n".encode() in row.request
            return ok("two")
        return ok(page("Front", ["/two"]), **fields)

    with RawServer({"/": front, "/two": front}, hosts=("0.0.0.0",)) as server:
        seeds = [server.url("/", host) for host in hosts]
        ending = crawl(tmp_path, *seeds, robots="ignore", probe="off", concurrency=50, max_response_size=1000)
        assert ending.code is ExitCode.DONE
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT domain) FROM cookies") == [(1000, 1000)]
    assert rows(tmp_path, "SELECT count(*) FROM urls WHERE status = 200") == [(2000,)]
