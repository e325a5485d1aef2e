"""A page cannot make the crawl flood somebody else's server, measured at that server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archiver.config.host_rules import HostRule
from archiver.config.option_types import Rate
from archiver.model import ExitCode
from fixtures.archives import states
from fixtures.crawl_in_process import crawl
from fixtures.name_servers import Names
from fixtures.rawserver import RawServer
from fixtures.sites import PIXEL, ok, page, redirect
from fixtures.thread_delay import MOST_JITTER

pytestmark = pytest.mark.alone

VICTIM = "127.0.0.2"
SEVERAL = tuple(f"127.0.0.{number}" for number in range(2, 10))
RATE = 15
COUNT = 3 * RATE


def at_one_address(_: str) -> list[str]:
    return [VICTIM]


def spread(name: str) -> list[str]:
    return [SEVERAL[sum(name.encode()) % len(SEVERAL)]]


def crawled(folder: Path, server: RawServer, **values: Any) -> None:
    chosen = {"rate": Rate(RATE), "traps": "off", "robots": "ignore", "allow_private": ("127.0.0.0/8",), **values}
    assert crawl(folder, server.url(), **chosen).code in (ExitCode.DONE, ExitCode.LIMIT)


def most_in_a_second(server: RawServer) -> int:
    """Of requests that came at the addresses of the victim, in any second."""
    arrived = sorted(row.arrived for row in server.log if row.host != "127.0.0.1")
    return max(sum(0 <= later - first < 1 - MOST_JITTER for later in arrived) for first in arrived)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("i{}.victim.example", at_one_address),  # wildcard names
        ("i.victim{}.example", at_one_address),  # as many domains
        ("i{}.victim.example", spread),  # one domain at several addresses
        ("user{}.github.io", at_one_address),  # a suffix below which everybody can have a name
    ],
)
@pytest.mark.parametrize("way", ["image", "redirect", "link"])
def test_names_of_one_server_share_a_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: Callable[[str], list[str]], way: str
) -> None:
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: Names(where))
    with RawServer(hosts=("127.0.0.1", *SEVERAL), otherwise=ok(PIXEL, "image/gif")) as server:
        away = [server.url("/dot.gif", name.format(number)) for number in range(COUNT)]
        if way == "redirect":
            hops = {f"/r{number}": redirect(target) for number, target in enumerate(away)}
            server.routes = {"//127.0.0.1/": ok(page("Front", images=list(hops))), **hops}
        else:
            front = page("Front", images=away) if way == "image" else page("Front", links=away)
            server.routes = {"//127.0.0.1/": ok(front)}
        crawled(tmp_path, server, scope="any")
        found = states(tmp_path)
        assert {found[url] for url in away} == {"archived"}
        assert most_in_a_second(server) <= RATE


def test_a_restart_does_not_begin_the_window_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: Names(at_one_address))
    with RawServer(hosts=("127.0.0.1", *SEVERAL), otherwise=ok(PIXEL, "image/gif")) as server:
        away = [server.url("/dot.gif", f"i.victim{number}.example") for number in range(COUNT)]
        server.routes = {"//127.0.0.1/": ok(page("Front", images=away))}
        crawled(tmp_path, server, max_urls=RATE - 2)
        crawled(tmp_path, server, resume=True)
        assert len([row for row in server.log if row.host == VICTIM]) == COUNT
        assert most_in_a_second(server) <= RATE


def test_a_rate_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: Names(at_one_address))
    with RawServer(hosts=("127.0.0.1", *SEVERAL), otherwise=ok(PIXEL, "image/gif")) as server:
        away = [server.url("/dot.gif", f"i{number}.victim.example") for number in range(12)]
        server.routes = {"//127.0.0.1/": ok(page("Front", images=away))}
        crawled(tmp_path, server, rate=Rate(0), third_party_rate=Rate(4))
        assert most_in_a_second(server) <= 4


def test_hosts_need_not_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where nobody wants it, nor the host of a seed, nor one for which another limit holds."""
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: Names(at_one_address))
    own = HostRule("i*", (("rate", Rate(50)), ("host-concurrency", 9)))
    cases: tuple[dict[str, Any], ...] = ({"third_party_rate": Rate(0)}, {"host": (own,)})
    for case, values in enumerate(cases):
        with RawServer(hosts=("127.0.0.1", *SEVERAL), otherwise=ok(PIXEL, "image/gif")) as server:
            away = [server.url("/dot.gif", f"i{number}.victim.example") for number in range(12)]
            server.routes = {"//127.0.0.1/": ok(page("Front", images=away))}
            crawled(tmp_path / str(case), server, rate=Rate(2), **values)
            assert most_in_a_second(server) > 2
