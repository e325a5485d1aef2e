"""Network choices of the user: time limits, addresses of hosts, DNS servers, and this machine's end of connections.

`race` connects to a host with several addresses: the first one that answers wins (RFC 8305).
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol, TypeVar

from aiohappyeyeballs import AddrInfoType, addr_to_addr_infos, start_connection

from archiver import url
from archiver.config.addresses import ANY, LOCAL_KEYS, HostAddresses, NameServer, host_addresses, name_server
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.errors import ConfigError, Failure, FetchError
from archiver.fetch.private_networks import spelled_address
from archiver.fetch.proxy import ProxyRoutes

NEXT_ADDRESS = 0.25  # seconds after which the next address is tried beside the last one
LONGEST_LOOK_UP = 15.0  # seconds until we stop waiting; systems give up after 10 to 30

Connected_co = TypeVar("Connected_co", covariant=True)

_FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6, ANY: socket.AF_UNSPEC}


class Timeouts:
    """The time limits that hosts have for look-ups and connections."""

    def __init__(self, settings: SettingsByHost) -> None:
        self.settings = settings

    def connect(self, origin: str) -> float:
        """Return the seconds that a new connection to *origin* may take."""
        settings = self.settings.of(origin)
        return settings.network.connect_timeout or settings.fetch.timeout

    def look_up(self, origin: str) -> float | None:
        """Return the seconds for a look-up that has a limit of its own; None if the connection's limit includes it."""
        network = self.settings.of(origin).network
        return (network.dns_timeout or LONGEST_LOOK_UP) if network.dns_timeout or network.connect_timeout else None

    def longest_look_up(self) -> float:
        """Return the longest of the limits that `look_up` can return."""
        return max(LONGEST_LOOK_UP, *(each.network.dns_timeout for each in _all_settings(self.settings.common)))


@dataclass(frozen=True, slots=True)
class LocalEnd:
    """This machine's end of connections: their family, and the address that they leave by ("": the system chooses)."""

    family: socket.AddressFamily = socket.AF_UNSPEC
    address: str = ""

    @property
    def place(self) -> tuple[str, int] | None:
        """The address and port to bind to."""
        return (self.address, 0) if self.address else None


class LocalEnds:
    """The local end of connections to each host. Raises `ConfigError` if an address is not of this machine."""

    def __init__(self, settings: SettingsByHost) -> None:
        self._settings = settings
        for each in _all_settings(settings.common):
            end = _local_end(each)
            if end.place is not None:
                _check(end)

    def of(self, origin: str) -> LocalEnd:
        """Return the local end of connections to *origin*; raise `FetchError` if *origin* is of the other family."""
        try:
            end = _local_end(self._settings.of(origin))
        except ConfigError as error:  # two rules for hosts contradict each other
            raise FetchError(Failure.CONNECT, str(error)) from None
        spelled = spelled_address(url.host(f"{origin}/")) if end.family else None
        if spelled is not None and _FAMILIES[str(spelled.version)] != end.family:
            raise FetchError(
                Failure.CONNECT, f"{spelled} is not an {family_name(end.family)} address, as the settings want"
            )
        return end


def family_name(family: int) -> str:
    """Return "IPv4", "IPv6", or "IP" for both."""
    return {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}.get(socket.AddressFamily(family), "IP")


def _all_settings(common: Settings) -> list[Settings]:
    """Return the settings of the crawl, and those that each rule for hosts and each seed leads to alone."""
    own = (*(rule.given for rule in common.politeness.host), *(seed.given for seed in common.scope.seed))
    found = [
        {key.replace("-", "_"): value for key, value in each if key in LOCAL_KEYS or key == "dns-timeout"}
        for each in own
    ]
    return [common, *(with_values(common, each) for each in found if each)]


def _local_end(settings: Settings) -> LocalEnd:
    address, version = settings.network.source_address, settings.network.ip_version
    if not address:
        return LocalEnd(_FAMILIES[version])
    own = str(ip_address(address).version)
    if version not in (ANY, own):
        raise ConfigError(f"source-address {address} is an IPv{own} address, but ip-version is {version}; change one")
    return LocalEnd(_FAMILIES[own], address)


def _check(end: LocalEnd) -> None:
    try:
        with socket.socket(end.family, socket.SOCK_STREAM) as probe:
            probe.bind((end.address, 0))
    except OSError as error:
        raise ConfigError(
            f"source-address {end.address}: connections cannot leave by it ({error.strerror or error}); "
            "name an address of this machine"
        ) from None


class GivenAddresses:
    """The addresses that the user gives to hosts, in place of look-ups."""

    def __init__(self, given: tuple[str, ...]) -> None:
        self.entries: tuple[HostAddresses, ...] = tuple(map(host_addresses, given))
        self._known: dict[tuple[str, int], tuple[str, ...]] = {}
        for each in self.entries:
            key = each.host, each.port
            self._known[key] = tuple(dict.fromkeys((*self._known.get(key, ()), *each.addresses)))

    def of(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of *host* at *port*; () if it must be looked up."""
        if not self._known:
            return ()
        name = host.rstrip(".")
        return self._known.get((name, port)) or self._known.get((name, 0), ())

    def check(self, routes: ProxyRoutes) -> None:
        """Raise `ConfigError` if an entry could have no effect, because a proxy of *routes* looks its host up."""
        for each in self.entries:
            for scheme, usual in (("http", 80), ("https", 443)):
                port = f":{each.port}" if each.port not in (0, usual) else ""
                try:
                    proxy = routes.of(f"{scheme}://{each.host}{port}")
                except FetchError as error:
                    raise ConfigError(f"resolve {each}: {error.reason}") from None
                if proxy is not None and proxy.resolves:
                    raise ConfigError(
                        f"resolve {each}: proxy {proxy.name} looks the name up, so this address would not be used; "
                        f"use socks5, or --host '{each.host} proxy=none'"
                    )


def name_servers(settings: Settings) -> tuple[NameServer, ...]:
    """Return the DNS servers to ask in place of the system's."""
    return tuple(map(name_server, settings.network.dns_server))


class Connect(Protocol[Connected_co]):
    """Makes a connection of a socket, with a TLS handshake or not."""

    def __call__(self, *, sock: socket.socket) -> Awaitable[Connected_co]:
        """Return the connection; raise OSError if it fails."""


async def race(
    places: Sequence[AddrInfoType], leave_by: tuple[str, int] | None, connect: Connect[Connected_co], seconds: float
) -> Connected_co:
    """Return what *connect* makes of a socket to the first of *places* that answers; raise OSError if none does.

    A place that refuses, or where *connect* fails, is followed by the next one at once. *leave_by*: our own address.
    *seconds*: the time that the caller waits, of which *connect* gets a share at each place.
    """
    places = [*dict.fromkeys(places)]
    share = seconds / len(places)
    while True:
        connected = await start_connection(
            places, local_addr_infos=addr_to_addr_infos(leave_by), happy_eyeballs_delay=NEXT_ADDRESS
        )
        peer: object = None
        try:
            peer = connected.getpeername()
            async with asyncio.timeout(share if len(places) > 1 else None):
                return await connect(sock=connected)
        except ssl.SSLCertVerificationError:  # the caller decides; the other addresses probably show the same one
            connected.close()
            raise
        except OSError:
            connected.close()
            places = [each for each in places if each[4] != peer][: len(places) - 1]
            if not places:
                raise
        except BaseException:
            connected.close()
            raise


def check_network(settings: Settings) -> None:
    """Raise `ConfigError` if network choices in *settings* cannot be used on this machine, or together."""
    LocalEnds(SettingsByHost(settings))
    GivenAddresses(settings.network.resolve).check(ProxyRoutes(SettingsByHost(settings)))
