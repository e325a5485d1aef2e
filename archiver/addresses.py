"""Addresses that the public web must not lead to: what is special about one, and whom a crawl may ask all the same.

Pure: no look-up, no socket, no clock. The table is IANA's registries of special addresses, written out, because the
library's own idea of "global" has changed between versions of Python. An address that carries another one inside
(IPv4-mapped, NAT64, 6to4, Teredo) is as special as the one that a packet to it may end at. What the table does not
know is refused where IPv6 has not been handed out at all, and is public elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# (network, what it is): the first that holds an address names it.
SPECIAL_V4 = tuple(
    (IPv4Network(network), word)
    for network, word in (
        ("0.0.0.0/32", "the unspecified address"),
        ("0.0.0.0/8", "an address of this network (RFC 791)"),
        ("10.0.0.0/8", "a private address (RFC 1918)"),
        ("100.64.0.0/10", "an address shared behind a provider (RFC 6598)"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address (RFC 1918)"),
        ("192.0.0.0/24", "an address for protocols (RFC 6890)"),
        ("192.0.2.0/24", "an address for documentation (RFC 5737)"),
        ("192.88.99.0/24", "a 6to4 relay (RFC 7526)"),
        ("192.168.0.0/16", "a private address (RFC 1918)"),
        ("198.18.0.0/15", "an address for benchmarks (RFC 2544)"),
        ("198.51.100.0/24", "an address for documentation (RFC 5737)"),
        ("203.0.113.0/24", "an address for documentation (RFC 5737)"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("240.0.0.0/4", "a reserved address (RFC 1112)"),
    )
)
SPECIAL_V6 = tuple(
    (IPv6Network(network), word)
    for network, word in (
        ("::/128", "the unspecified address"),
        ("::1/128", "a loopback address"),
        ("64:ff9b:1::/48", "a local NAT64 address (RFC 8215)"),
        ("100::/64", "an address that discards (RFC 6666)"),
        ("2001::/23", "an address for protocols (RFC 2928)"),
        ("2001:db8::/32", "an address for documentation (RFC 3849)"),
        ("3fff::/20", "an address for documentation (RFC 9637)"),
        ("5f00::/16", "a segment identifier (RFC 9602)"),
        ("fc00::/7", "a private address (RFC 4193)"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address (RFC 3879)"),
        ("ff00::/8", "a multicast address"),
    )
)
METADATA = "an address at which a cloud hands out keys"
NEVER = tuple(
    (ip_network(network), word)
    for network, word in (
        ("169.254.0.0/16", "a link-local address"),  # AWS, Azure, Google and others: 169.254.169.254
        ("fe80::/10", "a link-local address"),
        ("fd00:ec2::/32", METADATA),  # AWS
        ("fd20:ce::254/128", METADATA),  # Google
        ("100.100.100.200/32", METADATA),  # Alibaba
        ("192.0.0.192/32", METADATA),  # Oracle
        ("168.63.129.16/32", METADATA),  # Azure; a public one
    )
)
UNICAST = IPv6Network("2000::/3")  # all that has been handed out for the public network
NAT64 = IPv6Network("64:ff9b::/96")


@lru_cache(maxsize=4096)
def never(address: Address) -> str:
    """What *address* is, in words, if no setting lets a crawl ask it; "" where one does."""
    for each in (address, *carried(address)):
        for network, word in NEVER:
            if each.version == network.version and each in network:
                return word
    return ""


@lru_cache(maxsize=4096)
def special(address: Address) -> str:
    """What is special about *address*, in words; "" where it is one of the public network."""
    inner = carried(address)
    if inner:
        word = next(filter(None, map(special, inner)), "")
        return f"{word}, carried in another" if word else ""
    known = SPECIAL_V4 if isinstance(address, IPv4Address) else SPECIAL_V6
    for network, word in known:
        if address in network:
            return word
    return "" if isinstance(address, IPv4Address) or address in UNICAST else "a reserved address (RFC 4291)"


def carried(address: Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses at which a packet to *address* may end: mapped, NAT64, 6to4; Teredo's server and client."""
    if isinstance(address, IPv4Address):
        return ()
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()


@lru_cache(4096)
def read(host: str) -> Address | None:
    """The address that *host* (as a canonical URL or a socket has it) spells out; None where it is a name."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def named(host: str) -> str:
    """The one spelling by which host names are compared: no brackets, no dot at the end, lower case."""
    return host.strip("[]").rstrip(".").lower()


@dataclass(frozen=True, slots=True)
class Allowed:
    """The special hosts that a person has named: each by a name, an address, or a network."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, entries: Iterable[str]) -> "Allowed":
        """*entries* as the settings have them."""
        names: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                names.add(named(entry))
        return cls(frozenset(names), tuple(networks))

    def refusal(self, host: str, address: Address) -> str:
        """Why *host* may not be asked at *address*, in words; "" where it may."""
        word = special(address)
        if not word or named(host) in self.names:
            return ""
        inner = [one for one in carried(address) if special(one)]
        if self._holds(address) or (inner and all(map(self._holds, inner))):
            return ""
        return f"{address} is {word}"

    def _holds(self, address: Address) -> bool:
        return any(address in network for network in self.networks if network.version == address.version)


def is_localhost(host: str) -> bool:
    """Whether the name *host* means this machine, whatever a name server says (RFC 6761)."""
    return named(host) == "localhost" or named(host).endswith(".localhost")


def is_inside(addresses: Sequence[Address]) -> bool:
    """Whether a name that leads to *addresses* is one of the inside: not one of them is public."""
    return bool(addresses) and all(map(special, addresses))
