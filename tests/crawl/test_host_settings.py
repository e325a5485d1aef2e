"""Settings of single hosts in whole crawls, judged by what the servers saw and what is archived."""

from pathlib import Path

from archiver.config.host_rules import HOST_RULE
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl
from fixtures.log import Log
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page

TRUNCATED = "SELECT urls.url, truncated FROM captures JOIN urls ON urls.id = captures.url"
HOSTS = ("127.0.0.1", "127.0.0.2")


def requests(log: Log, host: str) -> list[bytes]:
    return [row.request for row in log if row.name == host]


def test_each_host_gets_the_headers_of_its_rule(tmp_path: Path) -> None:
    site: dict[str, Route] = {"/": ok(page("Front", ["/two"])), "/two": ok(page("Two"))}
    rules = tuple(
        HOST_RULE.parse(text)
        for text in ("127.0.0.2 user-agent=Reader header='X-For: two'", "127.0.0.* header='X-For: all' header='X-B: c'")
    )
    with RawServer(site, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        assert crawl(tmp_path, *seeds, host=rules, contact="https://me.example/").code is ExitCode.DONE
        one, two = (requests(server.log, host) for host in HOSTS)
    assert len(one) == len(two) == 3
    assert all(b"X-For: all\r\nX-B: c\r\n" in request and b"archiver/" in request for request in one)
    assert all(b"X-For: two\r\n" in request and b"User-Agent: Reader\r\n" in request for request in two)
    assert not any(b"X-B" in request for request in two)


def test_a_response_is_cut_by_the_limit_of_its_host(tmp_path: Path) -> None:
    with RawServer({"/": ok("x" * 50_000, "text/plain")}, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        rules = (HOST_RULE.parse("127.0.0.2 max-response-size=10k"),)
        crawl(tmp_path, *seeds, host=rules, robots="ignore", dedup="off")
    received = {(url, truncated) for url, truncated in rows(tmp_path, TRUNCATED)}
    assert received == {(seeds[0], ""), (seeds[1], "length")}
