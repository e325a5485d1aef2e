"""Network choices of one request: given addresses, DNS servers, the own address, IPv4 or IPv6, and the next address.

Addresses of a host work, refuse, or are silent: their queue of connections is full, so the kernel answers nothing.
"""

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import pytest

from archiver.config.host_rules import HOST_RULE
from archiver.errors import ConfigError, Failure, FetchError
from archiver.fetch.connection_errors import translated
from archiver.model import Exchange
from fixtures.dns_server import DnsServer, Fault, by_family
from fixtures.fetching import LOOPBACK, CountingGate, fetching, taken
from fixtures.name_servers import Names
from fixtures.ports import free_port
from fixtures.proxies import ScriptedProxy, microsocks, needs_microsocks
from fixtures.rawserver import RawServer, keep

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
ALLOWED = (*LOOPBACK, "a.example", "b.example")
FOREVER = 20.0
DELAY = 0.25  # seconds until the next address is tried (RFC 8305)
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


async def fetched(folder: Path, address: str, **settings: object) -> Exchange:
    async with fetching(folder, **{"timeout": FOREVER, "allow_private": ALLOWED, **settings}) as fetcher:
        exchange = await fetcher.fetch(address, CountingGate())
        assert taken(exchange) == ANSWER
        return exchange


def fetch(folder: Path, address: str, **settings: object) -> Exchange:
    return asyncio.run(fetched(folder, address, **settings))


def failure(folder: Path, address: str, **settings: object) -> tuple[Failure, str]:
    with pytest.raises(FetchError) as caught:
        fetch(folder, address, **settings)
    return caught.value.failure, caught.value.reason


@contextmanager
def silent(address: str, port: int) -> Iterator[None]:
    """Listen at *address*, with so many connections in the queue that no further one is answered."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(8):
            waiting = stack.enter_context(socket.socket(family))
            waiting.setblocking(False)
            waiting.connect_ex((address, port))
        yield


def given(host: str, *addresses: str) -> tuple[str, ...]:
    return (f"{host}={','.join(addresses)}",)


@BOTH
def test_a_given_address_is_used_and_no_look_up_is_recorded(tmp_path: Path, *, tls: bool) -> None:
    with RawServer(otherwise=keep(ANSWER), hosts=("127.0.0.2", "127.0.0.3"), tls=tls) as server:
        entries = (f"a.example:{server.port}=127.0.0.3", "a.example=127.0.0.2")
        exchange = fetch(tmp_path, server.url("/x", "a.example"), resolve=entries)
        other = fetch(tmp_path, server.url("/x", "b.example"), resolve=given("b.example", "127.0.0.2"))
        assert [row.host for row in server.log] == ["127.0.0.3", "127.0.0.2"]
        assert f"Host: a.example:{server.port}\r\n".encode() in server.log[0].request
    assert [each.peer.ip for each in (exchange, other)] == ["127.0.0.3", "127.0.0.2"]
    assert exchange.lookup is None


def test_politeness_knows_the_given_address(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path, resolve=given("a.example", "::1", "127.0.0.2"), host=rules) as fetcher:
            assert await fetcher.locate("http://a.example/") == "::1"
            assert await fetcher.locate("http://a.example:81/") == "127.0.0.2"

    rules = (HOST_RULE.parse("http://a.example:81 ip-version=4"),)
    asyncio.run(main())


def test_a_given_address_must_be_allowed_as_any_other(tmp_path: Path) -> None:
    with RawServer(otherwise=keep(ANSWER)) as server:
        url, entry = server.url("/", "a.example"), given("a.example", "127.0.0.1")
        remedy = "use --allow-private a.example to allow it"
        assert failure(tmp_path, url, resolve=entry, allow_private=()) == (
            Failure.PRIVATE,
            f"a.example resolves to a private address: 127.0.0.1 is a loopback address; {remedy}",
        )
        refused = failure(tmp_path, url, resolve=given("a.example", "169.254.169.254"))
        assert refused[0] is Failure.PRIVATE
        assert not server.log


ORDERS = [
    ("refuses", "works"),
    ("silent", "works"),
    ("refuses", "silent", "works"),
    ("silent", "silent", "refuses", "works"),
    ("works", "silent"),
]


@BOTH
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("way", ["resolve", "dns-server"])
def test_the_next_address_is_tried(tmp_path: Path, order: tuple[str, ...], way: str, *, tls: bool) -> None:
    """Within one request: none of the retries is used up, and no time limit passes."""
    addresses = [f"127.0.0.{number}" for number in range(2, 2 + len(order))]
    working = addresses[order.index("works")]
    with ExitStack() as stack:
        server = stack.enter_context(RawServer(otherwise=keep(ANSWER), hosts=(working,), tls=tls))
        for address, kind in zip(addresses, order, strict=True):
            if kind == "silent":
                stack.enter_context(silent(address, server.port))
        names = stack.enter_context(DnsServer(by_family(*addresses)))
        choice = {"resolve": given("a.example", *addresses)} if way == "resolve" else {"dns_server": (names.name,)}
        began = monotonic()
        exchange = fetch(tmp_path, server.url("/", "a.example"), **choice)
        took = monotonic() - began
        assert len(server.log) == 1
    assert exchange.peer.ip == working
    assert took >= DELAY * order[: order.index("works")].count("silent") - 0.05
    if way == "dns-server":
        assert exchange.lookup is not None
        assert exchange.lookup.addresses == tuple(addresses)


@pytest.mark.parametrize("six", ["works", "refuses", "silent"])
def test_ipv6_comes_first_and_ipv4_after_it(tmp_path: Path, six: str) -> None:
    hosts = ("127.0.0.1", "::1") if six == "works" else ("127.0.0.1",)
    with ExitStack() as stack:
        server = stack.enter_context(RawServer(otherwise=keep(ANSWER), hosts=hosts))
        if six == "silent":
            stack.enter_context(silent("::1", server.port))
        names = stack.enter_context(DnsServer(by_family("127.0.0.1", "::1")))
        exchange = fetch(tmp_path, server.url("/", "a.example"), dns_server=(names.name,))
    assert exchange.peer.ip == ("::1" if six == "works" else "127.0.0.1")
    assert exchange.lookup is not None
    assert exchange.lookup.addresses == ("::1", "127.0.0.1")


def test_if_all_addresses_refuse_the_request_fails_once(tmp_path: Path) -> None:
    url = f"http://a.example:{free_port()}/"
    reason = failure(tmp_path, url, resolve=given("a.example", "127.0.0.2", "127.0.0.3", "::1"))
    assert reason == (Failure.CONNECT, "Connection refused")


def test_a_host_with_very_many_addresses_is_tried_at_some_of_both_families(tmp_path: Path) -> None:
    """A hostile name server cannot make us connect to hundreds of addresses."""
    many = [f"127.0.1.{number}" for number in range(1, 250)]
    with RawServer(otherwise=keep(ANSWER), hosts=("::1",)) as server:
        exchange = fetch(tmp_path, server.url("/", "a.example"), resolve=given("a.example", *many, "::1"))
    assert exchange.peer.ip == "::1"
    with RawServer(otherwise=keep(ANSWER), hosts=("127.0.1.249",)) as server:
        url = server.url("/", "a.example")
        assert failure(tmp_path, url, resolve=given("a.example", *many))[0] is Failure.CONNECT
        assert not server.log


@BOTH
@pytest.mark.parametrize(("version", "address", "kind"), [("4", "127.0.0.1", "A"), ("6", "::1", "AAAA")])
def test_only_one_version_of_ip(tmp_path: Path, version: str, address: str, kind: str, *, tls: bool) -> None:
    with (
        RawServer(otherwise=keep(ANSWER), hosts=("127.0.0.1", "::1"), tls=tls) as server,
        DnsServer(by_family("127.0.0.1", "::1")) as names,
    ):
        url = server.url("/", "a.example")
        by_name = fetch(tmp_path, url, dns_server=(names.name,), ip_version=version, dns_timeout=FOREVER)
        assert {each for _, _, each in names.asked} == {kind}
        by_resolve = fetch(tmp_path, url, resolve=given("a.example", "127.0.0.1", "::1"), ip_version=version)
        rules = (HOST_RULE.parse(f"localhost ip-version={version}"),)
        by_system = fetch(tmp_path, server.url("/", "localhost"), host=rules) if version == "4" else by_name
        spelled = fetch(tmp_path, server.url("/", address), ip_version=version)
        assert {each.peer.ip for each in (by_name, by_resolve, by_system, spelled)} == {address}
        asked = len(server.log)
        wrong = server.url("/", "::1" if version == "4" else "127.0.0.1")
        assert failure(tmp_path, wrong, ip_version=version)[0] is Failure.CONNECT
        none = failure(
            tmp_path, url, resolve=given("a.example", "::1" if version == "4" else "127.0.0.1"), ip_version=version
        )
        assert none == (Failure.DNS, f"a.example has no IPv{version} address")
        assert len(server.log) == asked


@BOTH
def test_connections_leave_by_the_source_address(tmp_path: Path, *, tls: bool) -> None:
    with RawServer(otherwise=keep(ANSWER), hosts=("127.0.0.1", "::1"), tls=tls) as server:
        named, entries = server.url("/", "a.example"), given("a.example", "::1", "127.0.0.1")
        fetch(tmp_path, named, resolve=entries, source_address="127.0.0.2")
        fetch(tmp_path, server.url("/"), source_address="127.0.0.3")
        rules = (HOST_RULE.parse("a.example source-address=127.0.0.4"),)
        fetch(tmp_path, named, resolve=entries, source_address="127.0.0.5", host=rules)
        fetch(tmp_path, server.url("/", "localhost"), source_address="127.0.0.5", host=rules)
        assert [row.client for row in server.log] == [f"127.0.0.{number}" for number in (2, 3, 4, 5)]
        fetch(tmp_path, named, resolve=entries, source_address="::1")
        assert server.log[-1].client == "::1"
        assert failure(tmp_path, server.url("/"), source_address="::1")[0] is Failure.CONNECT


def test_a_source_address_of_another_machine_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^source-address 192\.0\.2\.1: connections cannot leave by it \("):
        fetch(tmp_path, "http://127.0.0.1/", source_address="192.0.2.1")


def test_an_address_where_tls_fails_is_followed_by_the_next(tmp_path: Path) -> None:
    with (
        ScriptedProxy((b"this is no TLS\r\n",)) as plain,
        RawServer(otherwise=keep(ANSWER), hosts=("127.0.0.2",), port=plain.port, tls=True) as server,
    ):
        url = server.url("/", "a.example")
        exchange = fetch(tmp_path, url, resolve=given("a.example", "127.0.0.1", "127.0.0.2"))
        assert plain.heard[0].startswith(b"\x16\x03"), "no TLS handshake"
        assert exchange.peer.ip == "127.0.0.2"
        assert failure(tmp_path, url, resolve=given("a.example", "127.0.0.1"))[0] is Failure.TLS


def test_an_address_that_is_named_twice_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "archiver.fetch.connection.SystemResolver", lambda _: Names(lambda _: ["127.0.0.1", "127.0.0.1"])
    )
    with ScriptedProxy((b"this is no TLS\r\n",)) as plain:
        assert failure(tmp_path, f"https://a.example:{plain.port}/")[0] is Failure.TLS
        assert len(plain.clients) == 1


def test_an_address_that_never_ends_its_handshake_leaves_time_for_the_next(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,  # the kernel accepts; no one answers
        RawServer(otherwise=keep(ANSWER), hosts=("127.0.0.2",), port=mute.getsockname()[1], tls=True) as server,
    ):
        addresses = given("a.example", "127.0.0.1", "127.0.0.2")
        exchange = fetch(tmp_path, server.url("/", "a.example"), resolve=addresses, connect_timeout=6.0)
        assert exchange.peer.ip == "127.0.0.2"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            OSError(errno.ETIMEDOUT, ""),
            Failure.CONNECT,
        ),  # not our own limit, after which a suspended machine tries again
        (OSError(errno.ECONNRESET, ""), Failure.CONNECT),
        (TimeoutError(), Failure.TIMEOUT),
        (ConnectionResetError("closed at once"), Failure.DISCONNECT),
    ],
)
def test_errors_of_the_system_while_connecting(error: OSError, kind: Failure) -> None:
    with pytest.raises(FetchError) as caught, translated():
        raise error
    assert caught.value.failure is kind


# DNS servers


@pytest.mark.parametrize("name", ["a.example", "a.example."])
def test_a_dns_server_is_asked_for_both_families(tmp_path: Path, name: str) -> None:
    with RawServer(otherwise=keep(ANSWER)) as server, DnsServer(by_family("127.0.0.1")) as names:
        exchange = fetch(tmp_path, server.url("/", name), dns_server=(names.name,))
    assert sorted(names.asked) == [("udp", "a.example", "A"), ("udp", "a.example", "AAAA")]
    assert exchange.lookup is not None
    assert (exchange.lookup.host, exchange.lookup.addresses) == ("a.example", ("127.0.0.1",))
    assert exchange.peer.ip == "127.0.0.1"


def test_an_alias_leads_to_addresses(tmp_path: Path) -> None:
    with (
        RawServer(otherwise=keep(ANSWER)) as server,
        DnsServer(lambda _, kind: ["c.example", "d.example", "127.0.0.1"] if kind == "A" else ["c.example"]) as names,
    ):
        assert fetch(tmp_path, server.url("/", "a.example"), dns_server=(names.name,)).peer.ip == "127.0.0.1"


def test_what_udp_truncates_is_asked_again_over_tcp(tmp_path: Path) -> None:
    many = [f"127.0.0.{number}" for number in range(1, 200)]
    with RawServer(otherwise=keep(ANSWER)) as server, DnsServer(lambda *_: Fault.TRUNCATED, many) as names:
        exchange = fetch(tmp_path, server.url("/", "a.example"), dns_server=(names.name,))
    assert ("tcp", "a.example", "A") in names.asked
    assert exchange.lookup is not None
    assert exchange.lookup.addresses == tuple(many)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault.SILENT, "no name server answers for a.example"),
        (Fault.OTHER_QUESTION, "no name server answers for a.example"),  # a forged answer changes nothing
        (Fault.GARBAGE, "no name server answers for a.example"),
        (Fault.SERVFAIL, "host name a.example does not resolve ({}: SERVFAIL)"),
        (Fault.REFUSED, "host name a.example does not resolve ({}: REFUSED)"),
        (Fault.NXDOMAIN, "host name a.example does not resolve"),
        (None, "host name a.example does not resolve"),
    ],
)
def test_a_dns_server_that_fails(tmp_path: Path, fault: Fault | None, says: str) -> None:
    with DnsServer(lambda *_: [] if fault is None else fault) as names:
        found = failure(tmp_path, "http://a.example/", dns_server=(names.name,), dns_timeout=0.5)
    assert found == (Failure.DNS, says.format(names.name))


def test_a_port_without_a_dns_server(tmp_path: Path) -> None:
    server = f"127.0.0.1:{free_port()}"
    found = failure(tmp_path, "http://a.example/", dns_server=(server,), dns_timeout=0.5)
    assert found == (Failure.DNS, "no name server answers for a.example")


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.SERVFAIL, Fault.GARBAGE])
def test_the_next_dns_server_is_asked(tmp_path: Path, fault: Fault) -> None:
    with (
        RawServer(otherwise=keep(ANSWER)) as server,
        DnsServer(lambda *_: fault) as bad,
        DnsServer(by_family("127.0.0.1")) as good,
    ):
        exchange = fetch(tmp_path, server.url("/", "a.example"), dns_server=(bad.name, good.name))
        assert exchange.peer.ip == "127.0.0.1"
        assert bad.asked


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.SERVFAIL, Fault.NXDOMAIN])
def test_a_server_that_knows_nothing_of_ipv6(tmp_path: Path, fault: Fault) -> None:
    with (
        RawServer(otherwise=keep(ANSWER)) as server,
        DnsServer(lambda _, kind: ["127.0.0.1"] if kind == "A" else fault) as names,
    ):
        assert fetch(tmp_path, server.url("/", "a.example"), dns_server=(names.name,)).peer.ip == "127.0.0.1"


def test_a_dns_server_cannot_lead_inside(tmp_path: Path) -> None:
    with RawServer(otherwise=keep(ANSWER)) as server, DnsServer(by_family("127.0.0.1", "::1")) as names:
        url = server.url("/", "a.example")
        kind, reason = failure(tmp_path, url, dns_server=(names.name,), allow_private=())
        assert kind is Failure.PRIVATE
        assert reason.startswith("a.example resolves to a private address: ")
        assert not server.log


def test_localhost_is_this_machine_whatever_a_dns_server_says(tmp_path: Path) -> None:
    with RawServer(otherwise=keep(ANSWER)) as server, DnsServer(by_family("127.0.0.9")) as names:
        assert fetch(tmp_path, server.url("/", "localhost"), dns_server=(names.name,)).peer.ip == "127.0.0.1"
        assert not names.asked


@pytest.mark.parametrize("name", ["a" * 64 + ".example", ".".join(["abcdefgh"] * 30)])
def test_a_name_that_cannot_be_one(tmp_path: Path, name: str) -> None:
    with DnsServer(by_family("127.0.0.1")) as names:
        assert failure(tmp_path, f"http://{name}/", dns_server=(names.name,))[0] is Failure.DNS
        assert not names.asked


# Proxies


@needs_microsocks
@BOTH
def test_given_addresses_and_dns_servers_find_the_site_behind_socks5(tmp_path: Path, *, tls: bool) -> None:
    """The first address refuses, so the proxy is asked for the second one."""
    with (
        RawServer(otherwise=keep(ANSWER), hosts=("127.0.0.3",), tls=tls) as server,
        DnsServer(by_family("127.0.0.2", "127.0.0.3")) as names,
        microsocks("127.0.0.77") as port,
    ):
        url, proxy = server.url("/", "a.example"), (f"socks5://127.0.0.1:{port}",)
        one = fetch(tmp_path, url, proxy=proxy, resolve=given("a.example", "127.0.0.2", "127.0.0.3"))
        two = fetch(tmp_path, url, proxy=proxy, dns_server=(names.name,))
        assert [each.peer.ip for each in (one, two)] == ["127.0.0.3", "127.0.0.3"]
        assert (one.lookup, two.lookup is None) == (None, False)
        assert {row.client for row in server.log} == {"127.0.0.77"}
        refused = failure(tmp_path, url, proxy=proxy, resolve=given("a.example", "127.0.0.3"), allow_private=())
        assert refused[0] is Failure.PRIVATE
        none = failure(tmp_path, url, proxy=proxy, resolve=given("a.example", "127.0.0.3"), ip_version="6")
        assert none == (Failure.DNS, "a.example has no IPv6 address")


def test_an_address_that_is_silent_behind_socks5_leaves_time_for_the_next(tmp_path: Path) -> None:
    def connect(request: bytes) -> bytes:
        return b"" if request[4:8] == bytes((127, 0, 0, 2)) else b"\5\0\0\1\0\0\0\0\0\0"

    with ScriptedProxy((b"\5\0", connect, ANSWER), hang=True) as proxy:
        settings = {"proxy": (f"socks5://127.0.0.1:{proxy.port}",), "connect_timeout": 4.0}
        exchange = fetch(
            tmp_path, "http://a.example/", resolve=given("a.example", "127.0.0.2", "127.0.0.3"), **settings
        )
    assert exchange.peer.ip == "127.0.0.3"


@pytest.mark.parametrize("kind", ["http", "socks5h"])
def test_a_given_address_that_a_proxy_would_not_use_is_refused(tmp_path: Path, kind: str) -> None:
    proxy = f"{kind}://127.0.0.1:1"
    with pytest.raises(ConfigError, match="looks the name up, so this address would not be used"):
        fetch(tmp_path, "http://a.example/", proxy=(proxy,), resolve=given("a.example", "127.0.0.1"))


def test_dns_servers_are_not_asked_for_what_a_proxy_looks_up(tmp_path: Path) -> None:
    with ScriptedProxy((ANSWER,)) as proxy, DnsServer(by_family("127.0.0.1")) as names:
        settings = {"proxy": (f"http://127.0.0.1:{proxy.port}",), "dns_server": (names.name,)}
        assert fetch(tmp_path, "http://a.example/", **settings).peer.ip is None
        assert proxy.heard[0].startswith(b"GET http://a.example/ ")
        assert not names.asked


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("http", (ANSWER,)),
        ("http", (b"HTTP/1.1 200 OK\r\n\r\n",)),  # for https; then there is no TLS
        ("socks5", (b"\5\0", b"\5\0\0\1\0\0\0\0\0\0", ANSWER)),
        ("socks4", (b"\0\x5a\0\0\0\0\0\0", ANSWER)),
    ],
)
def test_connections_to_a_proxy_leave_by_the_source_address(
    tmp_path: Path, kind: str, pieces: tuple[bytes, ...]
) -> None:
    is_tunnel = kind == "http" and len(pieces[0]) != len(ANSWER)
    with ScriptedProxy(pieces) as proxy:
        settings = {"proxy": (f"{kind}://127.0.0.1:{proxy.port}",), "source_address": "127.0.0.2"}
        if is_tunnel:
            failure(tmp_path, "https://a.example/", **settings)
        else:
            entries = () if kind == "http" else given("a.example", "127.0.0.9")
            fetch(tmp_path, "http://a.example/", resolve=entries, **settings)
        assert set(proxy.clients) == {"127.0.0.2"}
