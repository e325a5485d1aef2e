"""The guard of a crawl's connections: a page of the public web does not reach inside.

Asked three times: for a host that is written as an address, for every answer of the name servers, and for the address
at the other end of a connection, before a byte of a request is sent on it. Whom it lets pass once, it always will.
An address inside is asked only where a person wrote it down as a seed, or named it with `--allow-private`; a name leads
there only if that names it, for seeds can come from others, and what a name leads to can change. Link-local addresses
and those at which clouds hand out keys are never asked. What a person confides to the seeds' hosts goes nowhere else.

Addresses that the public web must not lead to: what is special about one, and whom a crawl may ask all the same.

Pure: no look-up, no socket, no clock. The table is IANA's registries of special addresses, written out, because the
library's own idea of "global" has changed between versions of Python. An address that carries another one inside
(IPv4-mapped, NAT64, 6to4, Teredo) is as special as the one that a packet to it may end at. What the table does not
know is refused where IPv6 has not been handed out at all, and is public elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from archiver import url
from archiver.errors import Failure, FetchError

if TYPE_CHECKING:
    from aiohttp.abc import ResolveResult


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
def spelled_address(host: str) -> Address | None:
    """The address that *host* (as a canonical URL or a socket has it) spells out; None where it is a name."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def normalized_host(host: str) -> str:
    """The one spelling by which host names are compared: no brackets, no dot at the end, lower case."""
    return host.strip("[]").rstrip(".").lower()


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The special hosts that a person has named: each by a name, an address, or a network."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, entries: Iterable[str]) -> "AllowedHosts":
        """*entries* as the settings have them."""
        names: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                names.add(normalized_host(entry))
        return cls(frozenset(names), tuple(networks))

    def refusal(self, host: str, address: Address) -> str:
        """Why *host* may not be asked at *address*, in words; "" where it may."""
        word = special(address)
        if not word or normalized_host(host) in self.names:
            return ""
        inner = [one for one in carried(address) if special(one)]
        if self._holds(address) or (inner and all(map(self._holds, inner))):
            return ""
        return f"{address} is {word}"

    def _holds(self, address: Address) -> bool:
        return any(address in network for network in self.networks if network.version == address.version)


def is_localhost(host: str) -> bool:
    """Whether the name *host* means this machine, whatever a name server says (RFC 6761)."""
    return normalized_host(host) == "localhost" or normalized_host(host).endswith(".localhost")


def is_inside(addresses: Sequence[Address]) -> bool:
    """Whether a name that leads to *addresses* is one of the inside: not one of them is public."""
    return bool(addresses) and all(map(special, addresses))


REMEDY = "--allow-private {host} would take it"


class AddressGuard:
    """Knows who may be asked at which address; refuses with `FetchError`."""

    def __init__(self, allowed: Iterable[str], seeds: Iterable[str], insecure: Iterable[str] = ()) -> None:
        self._allowed = AllowedHosts.read(allowed)
        self._insecure = frozenset(
            map(normalized_host, insecure)
        )  # hosts that are confided in whatever their certificate
        self._written: set[str] = set()  # hosts of seeds that are written as addresses, or as localhost
        self._confidants: set[str] = set()  # the origins of seeds, and those that count as one with them
        self.welcome(seeds)

    def welcome(self, seeds: Iterable[str]) -> None:
        """Trust the hosts of *seeds* (canonical URLs), and ask those that are written as addresses."""
        for seed in seeds:
            host = url.host(seed)
            scheme, _, authority = url.origin(seed).partition("://")
            for each in {authority, authority.removeprefix("www."), f"www.{authority}"}:
                self._confidants |= {f"{scheme}://{each}", f"https://{each}"}
            if spelled_address(host) is not None or is_localhost(host):
                self._written.add(normalized_host(host))

    def trusts(self, origin: str) -> bool:
        """Whether *origin* may see what is meant for the seeds: that of one, with or without www., http or https.

        What a seed of https is sent never goes over http.
        """
        return origin in self._confidants

    def may_confide(self, origin: str, *, verified: bool) -> bool:
        """Whether *origin* of a seed is sent what may be secret: it was *verified*, or a person allows it."""
        return verified or normalized_host(url.host(f"{origin}/")) in self._insecure

    def check(self, host: str, address: str | None = None) -> None:
        """Refuse *host* at *address*; without one: by itself, where it is written as one."""
        place = spelled_address(address or host)
        if place is None:
            return
        at = "" if spelled_address(host) is not None else f"{host} leads inside: "
        if word := never(place):
            raise FetchError(Failure.PRIVATE, f"{at}{place} is {word}, which is never asked")
        if self._is_written(host, place):
            return
        if refusal := self._allowed.refusal(host, place):
            raise FetchError(Failure.PRIVATE, f"{at}{refusal}; {REMEDY.format(host=normalized_host(host))}")

    def choose(self, host: str, found: "list[ResolveResult]") -> "list[ResolveResult]":
        """Those of *found* at which *host* may be asked; there is one at least, or *host* is refused."""
        allowed = [each for each in found if self._is_allowed(host, each["host"])]
        if found and not allowed:
            self.check(host, found[0]["host"])
        return allowed

    def _is_allowed(self, host: str, address: str) -> bool:
        place = spelled_address(address)
        if place is None or never(place):
            return False
        return self._is_written(host, place) or not self._allowed.refusal(host, place)

    def _is_written(self, host: str, place: Address) -> bool:
        """Whether a person wrote *host* down as a seed and could not but mean *place*."""
        return normalized_host(host) in self._written and (spelled_address(host) is not None or place.is_loopback)
