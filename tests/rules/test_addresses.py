"""Special addresses: every range of IANA's registries, its ends, and the forms that hide one."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.fetch.private_networks import (
    SPECIAL_V4,
    SPECIAL_V6,
    AllowedHosts,
    normalized_host,
    special,
    spelled_address,
)

NOBODY = AllowedHosts()

PUBLIC = (
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.31.196.1",  # AS112, which anybody may ask
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "203.0.112.255",
    "223.255.255.255",
    "2600::",
    "2001:200::1",
    "2606:2800:220:1:248:1893:25c8:1946",
    "2620:4f:8000::1",
    "3ffe::1",
)

SPECIAL = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "this network",
    "10.0.0.0": "private",
    "10.255.255.255": "private",
    "100.64.0.0": "shared",
    "100.127.255.255": "shared",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.169.254": "link-local",  # where clouds keep their keys
    "172.16.0.0": "private",
    "172.31.255.255": "private",
    "192.0.0.8": "protocols",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4 relay",
    "192.168.0.0": "private",
    "192.168.255.255": "private",
    "198.18.0.0": "benchmarks",
    "198.19.255.255": "benchmarks",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::2": "reserved",
    "::127.0.0.1": "reserved",  # IPv4-compatible, given up long ago
    "::ffff:0:127.0.0.1": "reserved",  # IPv4-translated
    "64:ff9b:1::1": "local NAT64",
    "100::1": "discards",
    "100:0:0:1::1": "reserved",
    "2001:2::1": "protocols",
    "2001:10::1": "protocols",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "5f00::1": "segment",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fe80::1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "::ffff:127.0.0.1": "loopback address, embedded in another",
    "::ffff:10.1.2.3": "private",
    "64:ff9b::10.1.2.3": "private",
    "64:ff9b::169.254.169.254": "link-local",
    "2002:7f00:1::": "loopback",
    "2002:c0a8:101::1": "private",
    "2001:0:0a00:1::f7f7:f7f7": "private",  # Teredo, whose server is 10.0.0.1
    "2001:0:4136:e378:8000:63bf:3f57:fefe": "private",  # Teredo, whose client is 192.168.1.1
}


@pytest.mark.parametrize("text", PUBLIC)
def test_public(text: str) -> None:
    assert special(ip_address(text)) == ""


@pytest.mark.parametrize("text", ["::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1"])
def test_public_in_another_form(text: str) -> None:
    assert special(ip_address(text)) == ""


@pytest.mark.parametrize(("text", "word"), SPECIAL.items())
def test_special(text: str, word: str) -> None:
    assert word in special(ip_address(text))


@pytest.mark.parametrize("network", [network for network, _ in (*SPECIAL_V4, *SPECIAL_V6)], ids=str)
def test_both_ends_of_each_range(network: object) -> None:
    assert isinstance(network, type(SPECIAL_V4[0][0]) | type(SPECIAL_V6[0][0]))
    for place in (network[0], network[-1]):
        if not (isinstance(place, IPv6Address) and place.teredo):
            assert special(place), place


@given(st.ip_addresses(v=4))
def test_addresses_that_python_calls_special_are_not_public(address: IPv4Address) -> None:
    assert special(address) or not (
        address.is_private or address.is_reserved or address.is_multicast or address.is_loopback
    )


@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_as_special_as_itself(address: IPv4Address) -> None:
    inside = bool(special(address))
    number = int(address)
    for form in (
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | (number << 80) | 1),
    ):
        assert bool(special(form)) is inside, form


@given(st.ip_addresses(v=6))
def test_unallocated_addresses_are_not_public(address: IPv6Address) -> None:
    if not special(address):
        assert address.ipv4_mapped or int(address) >> 125 == 1 or int(address) >> 32 == 0x64FF9B << 64


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://017700000001/", "127.0.0.1"),
        ("http://127.1./", "127.0.0.1"),
        ("http://%31%32%37.0.0.1/", "127.0.0.1"),
        ("http://①②⑦.0.0.1/", "127.0.0.1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"),
        ("http://[0:0::1]/", "::1"),
    ],
)
def test_unusual_spellings_of_an_address_are_recognized(written: str, host: str) -> None:
    address = url.canonical(written)
    assert address is not None
    place = spelled_address(url.host(address))
    assert str(place) == str(ip_address(host))
    assert place is not None
    assert NOBODY.refusal(url.host(address), place)


def test_a_name_is_no_address() -> None:
    assert spelled_address("example.org") is None
    assert spelled_address("1.2.3.4.example.org") is None


def test_names_are_normalized_for_comparison() -> None:
    assert normalized_host("[::1]") == "::1"
    assert normalized_host("Wiki.Intranet.") == "wiki.intranet"


@pytest.mark.parametrize(
    ("entries", "host", "address", "taken"),
    [
        ((), "a.example", "10.0.0.5", False),
        ((), "a.example", "93.184.216.34", True),
        (("a.example",), "a.example", "10.0.0.5", True),
        (("a.example",), "A.example.", "10.0.0.5", True),
        (("a.example",), "b.a.example", "10.0.0.5", False),
        (("a.example",), "ba.example", "10.0.0.5", False),
        (("10.0.0.5",), "a.example", "10.0.0.5", True),
        (("10.0.0.5",), "10.0.0.5", "10.0.0.5", True),
        (("10.0.0.5",), "10.0.0.6", "10.0.0.6", False),
        (("10.0.0.0/8",), "a.example", "10.9.9.9", True),
        (("10.0.0.0/8",), "a.example", "11.0.0.1", True),
        (("10.0.0.0/8",), "a.example", "127.0.0.1", False),
        (("10.0.0.0/8",), "a.example", "::ffff:10.1.1.1", True),
        (("10.0.0.0/8",), "a.example", "::1", False),
        (("fd00::/8",), "a.example", "fd00::1", True),
        (("0.0.0.0/0",), "a.example", "::1", False),
        (("0.0.0.0/0",), "a.example", "64:ff9b::7f00:1", True),
        # Teredo with a server that is named and a client that is not: both must be.
        (("10.0.0.0/8",), "a.example", "2001:0:a00:1::80ff:fffe", False),
        (("10.0.0.0/8", "127.0.0.0/8"), "a.example", "2001:0:a00:1::80ff:fffe", True),
    ],
)
def test_allowed_hosts(entries: tuple[str, ...], host: str, address: str, *, taken: bool) -> None:
    refusal = AllowedHosts.parse(entries).refusal(host, ip_address(address))
    assert (refusal == "") is taken
    assert taken or refusal.startswith(f"{ip_address(address)} is ")
