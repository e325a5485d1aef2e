"""Network choices as settings name them: every right form, wrong forms in one line, and what contradicts itself."""

import re
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.addresses import (
    DNS_SERVER,
    IP_VERSION,
    RESOLVE,
    SOURCE_ADDRESS,
    HostAddresses,
    NameServer,
    host_addresses,
    name_server,
)
from archiver.config.host_rules import HOST_RULE
from archiver.config.option_types import OptionType
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.errors import ConfigError, FetchError
from archiver.fetch.dns import interleaved
from archiver.fetch.name_servers import entry
from archiver.fetch.network import LONGEST_LOOK_UP, GivenAddresses, LocalEnds, Timeouts
from archiver.fetch.proxy import ProxyRoutes


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (RESOLVE, "Example.ORG=192.0.2.1", "example.org=192.0.2.1"),
        (RESOLVE, " example.org.:8443 = 2001:DB8:0::1 , 192.0.2.1,192.0.2.1", "example.org:8443=2001:db8::1,192.0.2.1"),
        (RESOLVE, "bücher.example=::1", "xn--bcher-kva.example=::1"),
        (RESOLVE, "localhost=127.0.0.2", "localhost=127.0.0.2"),
        (DNS_SERVER, "192.0.2.53", "192.0.2.53"),
        (DNS_SERVER, "192.0.2.53:53", "192.0.2.53"),
        (DNS_SERVER, "127.0.0.1:5353", "127.0.0.1:5353"),
        (DNS_SERVER, "2001:db8::53", "[2001:db8::53]"),
        (DNS_SERVER, "[2001:db8::53]", "[2001:db8::53]"),
        (DNS_SERVER, "[::1]:5353", "[::1]:5353"),
        (SOURCE_ADDRESS, "127.0.0.2", "127.0.0.2"),
        (SOURCE_ADDRESS, " 0:0::1 ", "::1"),
        (SOURCE_ADDRESS, "", ""),
        (IP_VERSION, 4, "4"),
        (IP_VERSION, "6", "6"),
        (IP_VERSION, "any", "any"),
    ],
)
def test_right_forms(kind: OptionType, text: object, value: str) -> None:
    assert kind.parse(text) == value
    assert kind.parse(value) == value


WRONG = {
    RESOLVE: (
        *("", "example.org", "example.org=", "=192.0.2.1", "example.org=other.example", "192.0.2.1=192.0.2.2"),
        *("[::1]=::2", "example.org:0=192.0.2.1", "example.org:x=192.0.2.1", "example.org:65536=192.0.2.1"),
        *("example.org:443:192.0.2.1", "*.example.org=192.0.2.1", "http://a.example=192.0.2.1", "a=192.0.2.1,", 5),
        *("a.example=fe80::1%eth0", "a b=192.0.2.1", "u@a.example=192.0.2.1", "0x7f.1=192.0.2.1", "a=192.0.2.1:80"),
    ),
    DNS_SERVER: (
        *("", "dns.example", "192.0.2.53:", "192.0.2.53:0", "192.0.2.53:99999", "[192.0.2.53]:53", "[::1", "::1]", 53),
        *("[::1]53", "[::1]:", "[::1]:x", "192.0.2.53:5:3", "tls://192.0.2.53", "fe80::1%eth0", "::1]:53"),
    ),
    SOURCE_ADDRESS: ("eth0", "192.0.2.1:80", "192.0.2.0/24", "fe80::1%eth0", 1),
    IP_VERSION: ("", "5", 46, True, 4.0, "ipv4"),
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in WRONG.items() for text in texts])
def test_wrong_forms(kind: OptionType, text: object) -> None:
    with pytest.raises(ConfigError, match=re.escape(kind.right)) as caught:
        kind.parse(text)
    assert "\n" not in str(caught.value)


ADDRESSES = (st.ip_addresses(v=4) | st.ip_addresses(v=6)).map(str)
PORTS = st.integers(1, 65535)


@given(st.sampled_from(["a.example", "xn--bcher-kva.example"]), PORTS | st.just(0), st.lists(ADDRESSES, min_size=1))
def test_host_addresses_are_read_as_they_are_written(host: str, port: int, addresses: list[str]) -> None:
    one = HostAddresses(host, port, tuple(dict.fromkeys(addresses)))
    assert host_addresses(str(one)) == one


@given(ADDRESSES, PORTS)
def test_dns_servers_are_read_as_they_are_written(address: str, port: int) -> None:
    one = NameServer(address, port)
    assert name_server(str(one)) == one


@given(st.text(), st.sampled_from(list(WRONG)))
def test_any_text_is_read_or_refused(text: str, kind: OptionType) -> None:
    try:
        value = kind.parse(text)
    except ConfigError:
        return
    assert kind.parse(value) == value


def test_addresses_of_a_host_add_up_and_those_of_a_port_go_first() -> None:
    known = GivenAddresses(("a.example=192.0.2.1", "a.example=::1,192.0.2.1", "a.example:81=192.0.2.2"))
    assert known.of("a.example", 80) == ("192.0.2.1", "::1")
    assert known.of("a.example.", 443) == ("192.0.2.1", "::1")
    assert known.of("a.example", 81) == ("192.0.2.2",)
    assert known.of("www.a.example", 80) == ()


def _routes(**values: object) -> ProxyRoutes:
    return ProxyRoutes(SettingsByHost(with_values(Settings(), values)))


@pytest.mark.parametrize(
    ("entry", "proxy", "rules", "says"),
    [
        ("a.example=192.0.2.1", (), (), ""),
        ("a.example=192.0.2.1", ("socks5://p:1",), (), ""),
        ("a.example=192.0.2.1", ("socks4://p:1",), (), ""),
        ("a.example=192.0.2.1", ("http://p:1",), ("*.example proxy=none",), ""),
        ("a.example=192.0.2.1", ("http://p:1",), (), "proxy http://p:1 looks the name up"),
        ("a.example:8443=192.0.2.1", ("socks5h://p:1",), (), "proxy socks5h://p:1 looks the name up"),
        ("a.example:443=192.0.2.1", (), ("https://a.example proxy=http://p:1",), "proxy http://p:1 looks the name up"),
        ("a.onion=192.0.2.1", (), (), "only a proxy that resolves names leads to .onion"),
    ],
)
def test_an_address_that_a_proxy_would_not_use_is_refused(
    entry: str, proxy: tuple[str, ...], rules: tuple[str, ...], says: str
) -> None:
    routes = _routes(proxy=proxy, host=tuple(map(HOST_RULE.parse, rules)))
    if not says:
        GivenAddresses((entry,)).check(routes)
        return
    with pytest.raises(ConfigError, match=re.escape(f"resolve {entry}: {says}")):
        GivenAddresses((entry,)).check(routes)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"source_address": "127.0.0.1", "ip_version": "6"}, "source-address 127.0.0.1 is an IPv4 address, but"),
        ({"source_address": "::1", "ip_version": "4"}, "source-address ::1 is an IPv6 address, but ip-version is 4"),
        ({"source_address": "192.0.2.1"}, "source-address 192.0.2.1: connections cannot leave by it ("),
        ({"host": (HOST_RULE.parse("a source-address=192.0.2.1"),)}, "name an address of this machine"),
        ({"ip_version": "6", "host": (HOST_RULE.parse("a source-address=127.0.0.1"),)}, "but ip-version is 6"),
    ],
)
def test_a_local_end_that_cannot_be(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        LocalEnds(SettingsByHost(with_values(Settings(), values)))


def test_local_ends_are_those_of_the_host() -> None:
    rules = ("a.example source-address=127.0.0.2", "b.example ip-version=6", "* ip-version=6")
    ends = LocalEnds(SettingsByHost(with_values(Settings(), {"host": tuple(map(HOST_RULE.parse, rules[:2]))})))
    assert [ends.of(f"http://{name}.example").place for name in "abc"] == [("127.0.0.2", 0), None, None]
    assert [ends.of(f"http://{name}.example").family.name for name in "abc"] == ["AF_INET", "AF_INET6", "AF_UNSPEC"]
    both = LocalEnds(SettingsByHost(with_values(Settings(), {"host": tuple(map(HOST_RULE.parse, rules))})))
    with pytest.raises(FetchError, match="is an IPv4 address, but ip-version is 6"):
        both.of("http://a.example")
    for origin in ("http://127.0.0.1:80", "https://127.0.0.1"):
        with pytest.raises(FetchError, match=r"^127\.0\.0\.1 is not an IPv6 address"):
            both.of(origin)


def test_dns_servers_get_the_longest_time_that_any_host_has() -> None:
    rules = tuple(map(HOST_RULE.parse, ("a dns-timeout=40 rate=1", "b dns-timeout=20", "c rate=1")))
    assert Timeouts(SettingsByHost(with_values(Settings(), {"host": rules}))).longest_look_up() == 40
    assert Timeouts(SettingsByHost(Settings())).longest_look_up() == LONGEST_LOOK_UP


@given(st.lists(ADDRESSES, max_size=20))
def test_families_take_turns(addresses: list[str]) -> None:
    found = [each["host"] for each in interleaved([entry("a", address, 80) for address in addresses])]
    assert sorted(found) == sorted(addresses)
    for version in (IPv4Address, IPv6Address):
        mark = version is IPv6Address
        assert [each for each in found if (":" in each) == mark] == [
            each for each in addresses if (":" in each) == mark
        ]
    families = [":" in each for each in found]
    least = min(families.count(True), families.count(False))
    assert families[:1] == [":" in each for each in addresses[:1]]
    assert all(families[2 * n] != families[2 * n + 1] for n in range(least))
