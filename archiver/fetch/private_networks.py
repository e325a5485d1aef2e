"""The guard of a crawl's connections (SSRF): a public page must not lead the crawler into a private network.

The guard checks a host written as an address, every answer of the name servers, and the peer address of a connection
before a request is sent on it. What it allows stays allowed. A private address is fetched only if a person wrote it as
a seed or named it with `--allow-private`. A name that resolves to one must be named by `--allow-private`, as seeds can
come from others and DNS answers change. Link-local addresses and the metadata services of clouds are never fetched.
Secrets meant for the seeds' hosts are sent nowhere else.

The table of special addresses is IANA's registries written out, because the notion of "global" in Python's library
differs between versions. An address that embeds another one (IPv4-mapped, NAT64, 6to4, Teredo) is as special as the
address where its packets may end. Unlisted IPv6 addresses are refused outside of the allocated space; all other
unlisted addresses are public.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypedDict

from archiver import url
from archiver.errors import Failure, FetchError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class ResolveResult(TypedDict):
    """An address of a host, as resolvers return it."""

    hostname: str
    host: str  # the address
    port: int
    family: int
    proto: int
    flags: int


# (network, description): the first network that contains an address describes it.
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
METADATA = "a metadata service of a cloud"
NEVER = tuple(
    (ip_network(network), word)
    for network, word in (
        ("169.254.0.0/16", "a link-local address"),  # AWS, Azure, Google and others: 169.254.169.254
        ("fe80::/10", "a link-local address"),
        ("fd00:ec2::/32", METADATA),  # AWS
        ("fd20:ce::254/128", METADATA),  # Google
        ("100.100.100.200/32", METADATA),  # Alibaba
        ("192.0.0.192/32", METADATA),  # Oracle
        ("168.63.129.16/32", METADATA),  # Azure; a public address
    )
)
UNICAST = IPv6Network("2000::/3")  # all space allocated for the public internet
NAT64 = IPv6Network("64:ff9b::/96")
_REMEMBERED = 1 << 14  # hosts; a crawl of ten thousand asks for each several times


@lru_cache(_REMEMBERED)
def never(address: Address) -> str:
    """Return what *address* is, in words, if no setting allows it; "" otherwise."""
    for each in (address, *embedded(address)):
        for network, word in NEVER:
            if each.version == network.version and each in network:
                return word
    return ""


@lru_cache(_REMEMBERED)
def special(address: Address) -> str:
    """Return what is special about *address*, in words; "" for a public address."""
    inner = embedded(address)
    if inner:
        word = next(filter(None, map(special, inner)), "")
        return f"{word}, embedded in another" if word else ""
    known = SPECIAL_V4 if isinstance(address, IPv4Address) else SPECIAL_V6
    for network, word in known:
        if address in network:
            return word
    return "" if isinstance(address, IPv4Address) or address in UNICAST else "a reserved address (RFC 4291)"


def embedded(address: Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses where packets to *address* may end: mapped, NAT64, 6to4; Teredo's server and client."""
    if isinstance(address, IPv4Address):
        return ()
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()


@lru_cache(_REMEMBERED)
def spelled_address(host: str) -> Address | None:
    """Return the address written as *host* (in a canonical URL or from a socket); None if it is a name."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def normalized_host(host: str) -> str:
    """Return *host* in the form used for comparison: no brackets, no final dot, lower case."""
    return host.strip("[]").rstrip(".").lower()


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Private hosts that the user allows, by name, address or network."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "AllowedHosts":
        """Parse *entries* of the settings."""
        names: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                names.add(normalized_host(entry))
        return cls(frozenset(names), tuple(networks))

    def refusal(self, host: str, address: Address) -> str:
        """Return in words why *host* may not be fetched at *address*; "" if it may."""
        word = special(address)
        if not word or self.names_host(host):
            return ""
        inner = [one for one in embedded(address) if special(one)]
        if self._holds(address) or (inner and all(map(self._holds, inner))):
            return ""
        return f"{address} is {word}"

    def names_host(self, host: str) -> bool:
        """Return True if *host* is allowed by its name."""
        return normalized_host(host) in self.names

    def _holds(self, address: Address) -> bool:
        return any(address in network for network in self.networks if network.version == address.version)


def is_localhost(host: str) -> bool:
    """True if the name *host* means this machine, whatever a name server says (RFC 6761)."""
    return normalized_host(host) == "localhost" or normalized_host(host).endswith(".localhost")


def is_private_name(host: str) -> bool:
    """True if the name *host* by its spelling belongs to a private network: one label, or a local top-level domain."""
    name = normalized_host(host)
    return name.endswith(PRIVATE_NAMES) or "." not in name


PRIVATE_NAMES = (".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".localdomain")
REMEDY = "use --allow-private {host} to allow it"


class AddressGuard:
    """Decides which hosts may be fetched at which addresses; refuses with `FetchError`."""

    def __init__(self, allowed: Iterable[str], seeds: Iterable[str], insecure: Iterable[str] = ()) -> None:
        self._allowed = AllowedHosts.parse(allowed)
        self._insecure = frozenset(
            map(normalized_host, insecure)
        )  # hosts that get secrets even if their certificate is invalid
        self._seed_addresses: set[str] = set()  # hosts of seeds written as addresses, or as localhost
        self._seed_origins: set[str] = set()  # origins of seeds, and the variants that count as the same
        self.add_seeds(seeds)

    def add_seeds(self, seeds: Iterable[str]) -> None:
        """Trust the hosts of *seeds* (canonical URLs), and allow those written as addresses."""
        for seed in seeds:
            host = url.host(seed)
            scheme, _, authority = url.origin(seed).partition("://")
            for each in {authority, authority.removeprefix("www."), f"www.{authority}"}:
                self._seed_origins |= {f"{scheme}://{each}", f"https://{each}"}
            if spelled_address(host) is not None or is_localhost(host):
                self._seed_addresses.add(normalized_host(host))

    def trusts(self, origin: str) -> bool:
        """True if *origin* may receive what is meant for the seeds.

        That is the origin of a seed, with or without www., http or https. What is meant for an https seed is never sent
        over http.
        """
        return origin in self._seed_origins

    def may_send_secrets(self, origin: str, *, verified: bool) -> bool:
        """True if *origin* of a seed may receive secrets: its certificate is *verified*, or a setting allows it."""
        return verified or normalized_host(url.host(f"{origin}/")) in self._insecure

    def check(self, host: str, address: str | None = None) -> None:
        """Raise `FetchError` if *host* may not be fetched at *address* (default: the address that *host* itself is)."""
        place = spelled_address(address or host)
        if place is None:
            return
        at = "" if spelled_address(host) is not None else f"{host} resolves to a private address: "
        if word := never(place):
            raise FetchError(Failure.PRIVATE, f"{at}{place} is {word}, which is never fetched")
        if self._is_seed_address(host, place):
            return
        if refusal := self._allowed.refusal(host, place):
            raise FetchError(Failure.PRIVATE, f"{at}{refusal}; {REMEDY.format(host=normalized_host(host))}")

    def check_name(self, host: str) -> None:
        """Raise `FetchError` if *host*, which a proxy would look up, is private by its spelling."""
        if is_localhost(host):
            self.check(host, "127.0.0.1")
        elif spelled_address(host) is None and is_private_name(host) and not self._allowed.names_host(host):
            name = normalized_host(host)
            raise FetchError(Failure.PRIVATE, f"{name} is a name of private networks; {REMEDY.format(host=name)}")

    def choose(self, host: str, found: list[ResolveResult]) -> list[ResolveResult]:
        """Return the entries of *found* that are allowed for *host*; refuse *host* if there is none."""
        allowed = [each for each in found if self._is_allowed(host, each["host"])]
        if found and not allowed:
            self.check(host, found[0]["host"])
        return allowed

    def _is_allowed(self, host: str, address: str) -> bool:
        place = spelled_address(address)
        if place is None or never(place):
            return False
        return self._is_seed_address(host, place) or not self._allowed.refusal(host, place)

    def _is_seed_address(self, host: str, place: Address) -> bool:
        """True if a seed names *host* as a literal address, or as localhost on a loopback *place*."""
        return normalized_host(host) in self._seed_addresses and (
            spelled_address(host) is not None or place.is_loopback
        )
