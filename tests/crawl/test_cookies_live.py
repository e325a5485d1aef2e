"""Cookies in whole crawls: sites that need them, who gets them, and that a crash loses none."""

from pathlib import Path

from archiver.config.host_rules import HOST_RULE
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl
from fixtures.log import Log
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page

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
