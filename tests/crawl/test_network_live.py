"""Whole crawls with network choices: the same politeness and records, whatever address answers."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from archiver.config.option_types import Rate
from archiver.model import ExitCode
from fixtures.archives import resources, states, stored, warcs
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.dns_server import DnsServer, Fault, by_family
from fixtures.rawserver import RawServer
from fixtures.sites import PIXEL, ok, page, tree
from fixtures.thread_delay import MOST_JITTER

QUIET = ("--rate", "0", "--probe", "off", "-q")


def _peers(directory: Path) -> set[bytes]:
    """Every WARC-IP-Address."""
    lines = [line for path in warcs(directory) for line in gzip.decompress(path.read_bytes()).split(b"\r\n")]
    return {line.split(b": ")[1] for line in lines if line.startswith(b"WARC-IP-Address: ")}


def test_given_addresses_as_a_user_types_them(tmp_path: Path) -> None:
    """robots.txt comes from there too, and `resume` goes on there."""
    site = tree(12)
    routes = {**site.routes, "/robots.txt": ok("User-agent: *\nDisallow: /nothing\n", "text/plain")}
    with RawServer(routes, hosts=("127.0.0.2", "127.0.0.3")) as server:
        url = server.url("/", "a.example")
        entry = ("--resolve", f"A.example:{server.port}=127.0.0.9,127.0.0.2")
        ran = archiver("crawl", url, "-o", "c", *QUIET, *entry, "--max-urls", "5", cwd=tmp_path)
        assert "use --allow-private a.example" in ran.stdout + ran.stderr + str(states(tmp_path / "c"))
        assert not server.log, "a given address allows nothing by itself"
        allow = ("--allow-private", "a.example")
        ran = archiver("crawl", url, "-o", "d", *QUIET, *entry, *allow, "--max-urls", "5", cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        ran = archiver("resume", "d", "--max-urls", "0", *QUIET[-1:], cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert {row.host for row in server.log} == {"127.0.0.2"}
        assert server.log.targets()[0] == "/robots.txt"
    assert set(states(tmp_path / "d").values()) == {"archived"}
    assert _peers(tmp_path / "d") == {b"127.0.0.2"}
    assert not [uri for uri, _ in resources(tmp_path / "d") if uri.startswith("dns:")]
    assert f'resolve = ["a.example:{server.port}=127.0.0.9,127.0.0.2"]' in (tmp_path / "d" / "crawl.toml").read_text()


@pytest.mark.parametrize(
    ("options", "peer"),
    [(("-4",), b"127.0.0.1"), (("-6",), b"::1"), (("--ipv4",), b"127.0.0.1"), (("--ip-version", "6"), b"::1")],
)
def test_short_forms_choose_the_version_of_ip(tmp_path: Path, options: tuple[str, ...], peer: bytes) -> None:
    with (
        RawServer({"/": ok(page("Front"))}, hosts=("127.0.0.1", "::1")) as server,
        DnsServer(by_family("127.0.0.1", "::1")) as names,
    ):
        url, private = server.url("/", "a.example"), ("--allow-private", "a.example", "--dns-server", names.name)
        ran = archiver("crawl", url, "-o", "c", *QUIET, *private, *options, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert len({kind for _, _, kind in names.asked}) == 1
    assert _peers(tmp_path / "c") >= {peer}
    assert _peers(tmp_path / "c") <= {peer, names.name.encode()}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-4", "-6"), "-4, -6 and --ip-version contradict each other; give one of them"),
        (("-4", "--ip-version", "6"), "-4, -6 and --ip-version contradict each other"),
        (("-6", "--source-address", "127.0.0.1"), "source-address 127.0.0.1 is an IPv4 address, but ip-version is 6"),
        (("--source-address", "192.0.2.1"), "name an address of this machine"),
        (("--dns-server", "dns.example"), "--dns-server: 'dns.example' is not the address of a DNS server"),
        (("--resolve", "a.example"), "--resolve: 'a.example' is not a host name and its addresses (www.example.org="),
        (("--resolve", "a.example=::1", "--proxy", "http://p:1"), "resolve a.example=::1: proxy http://p:1 looks"),
    ],
)
def test_wrong_choices_end_with_one_line(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    ran = archiver("crawl", "http://127.0.0.1:9/", "-o", "c", *options, cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_a_failing_address_uses_up_no_retry(tmp_path: Path) -> None:
    """Without retries all is archived, and each record names the address that answered."""
    with (
        RawServer(tree(20).routes, hosts=("127.0.0.3",)) as server,
        DnsServer(by_family("127.0.0.2", "127.0.0.3", "::1")) as names,
    ):
        choices: dict[str, Any] = {
            "dns_server": (names.name,),
            "allow_private": ("a.example",),
            "retries": 0,
            "robots": "ignore",
        }
        ending = crawl(tmp_path, server.url("/", "a.example"), **choices)
    assert ending.code is ExitCode.DONE, ending.reason
    assert set(states(tmp_path).values()) == {"archived"}
    assert len(stored(tmp_path)) == len(server.log) == len(states(tmp_path))
    assert b"127.0.0.3" in _peers(tmp_path)
    [(uri, block)] = [each for each in resources(tmp_path) if each[0].startswith("dns:")]
    assert uri == "dns:a.example"
    assert all(address in block for address in (b"127.0.0.2", b"127.0.0.3", b"::1"))


def test_a_dns_server_that_fails_at_first_costs_no_page(tmp_path: Path) -> None:
    left = [Fault.SERVFAIL, Fault.SERVFAIL]
    with (
        RawServer({"/": ok(page("Front"))}) as server,
        DnsServer(lambda _, kind: left.pop() if left else ["127.0.0.1"] if kind == "A" else []) as names,
    ):
        choices: dict[str, Any] = {
            "dns_server": (names.name,),
            "allow_private": ("a.example",),
            "robots": "ignore",
            "retries": 3,
        }
        ending = crawl(tmp_path, server.url("/", "a.example"), **choices)
    assert ending.code is ExitCode.DONE, ending.reason
    assert set(states(tmp_path).values()) == {"archived"}


def test_a_host_of_its_own_leaves_by_its_own_address(tmp_path: Path) -> None:
    with RawServer({"/dot.gif": ok(PIXEL, "image/gif")}) as server:
        front = ok(page("Front", images=[server.url("/dot.gif", "b.example")]))
        server.routes = {"/": front, "/dot.gif": ok(PIXEL, "image/gif")}
        names = [word for name in "ab" for word in ("--resolve", f"{name}.example=127.0.0.1")]
        private = [word for name in "ab" for word in ("--allow-private", f"{name}.example")]
        rules = ("--source-address", "127.0.0.5", "--host", "b.example source-address=127.0.0.6 ip-version=4")
        url = server.url("/", "a.example")
        ran = archiver("crawl", url, "-o", "c", *QUIET, *names, *private, *rules, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        came = {(row.client, row.name) for row in server.log}
        assert {client for client, name in came if name.startswith("a.")} == {"127.0.0.5"}
        assert {client for client, name in came if name.startswith("b.")} == {"127.0.0.6"}
    told = archiver("explain", "c", server.url("/dot.gif", "b.example"), cwd=tmp_path).stdout
    assert "source-address: 127.0.0.6 (host[0] b.example)" in told
    assert "ip-version: 4 (host[0] b.example)" in told


@pytest.mark.alone
def test_names_share_a_rate_by_the_address_that_answers(tmp_path: Path) -> None:
    """Half of the names have another address in front, which refuses: their rate is that of the address they reach."""
    victim, rate = "127.0.0.2", 10

    def addresses(name: str, kind: str) -> list[str]:
        if kind == "AAAA":
            return []
        return [f"127.0.1.{name[1:].partition('.')[0]}", victim] if int(name[1:].partition(".")[0]) % 2 else [victim]

    with (
        RawServer(hosts=("127.0.0.1", victim), otherwise=ok(PIXEL, "image/gif")) as server,
        DnsServer(addresses) as names,
    ):
        away = [server.url("/dot.gif", f"i{number}.victim{number}.example") for number in range(3 * rate)]
        server.routes = {"//127.0.0.1/": ok(page("Front", images=away))}
        choices: dict[str, Any] = {
            "dns_server": (names.name,),
            "robots": "ignore",
            "traps": "off",
            "allow_private": ("127.0.0.0/8",),
        }
        crawl(tmp_path, server.url(), rate=Rate(rate), **choices)
        arrived = sorted(row.arrived for row in server.log if row.host == victim)
    assert len(arrived) == 3 * rate
    assert max(sum(0 <= later - first < 1 - MOST_JITTER for later in arrived) for first in arrived) <= rate
