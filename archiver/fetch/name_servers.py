"""The DNS servers that the user names with `--dns-server`, asked in place of the system's resolver.

dnspython makes the messages, retries over TCP what was truncated, and goes on to the next server if one is silent or
fails. The servers get only names: not those of /etc/hosts, and not `localhost`, which is this machine (RFC 6761).
What they answer passes the same guard as any other answer.
"""

import asyncio
import errno
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from archiver.config.addresses import NameServer
from archiver.fetch.private_networks import ResolveResult, is_localhost

PATIENCE = 1.0  # seconds that the addresses of one family wait for those of the other
DISCARD = 9  # the port of a service that does not matter: no packet is sent


class Resolver(Protocol):
    """Looks names up."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of *host*; raise OSError if there are none."""

    async def close(self) -> None:
        """End what it has begun."""


class NameServerError(OSError):
    """The DNS servers answer with errors; the message names them."""


class NameServers:
    """Looks names up by *servers*, which get *seconds* for each; *system* knows this machine's own names."""

    def __init__(self, servers: Sequence[NameServer], system: Resolver, seconds: float) -> None:
        self._servers = servers
        self._system = system
        self._seconds = seconds
        self._resolver: Any = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of *host*, those of IPv6 first if this machine has a route there."""
        if is_localhost(host):
            return await self._system.resolve(host, port, family)
        families = (socket.AF_INET6, socket.AF_INET) if family == socket.AF_UNSPEC else (family,)
        asking = [asyncio.create_task(self._addresses(host, each)) for each in families]
        try:
            done, late = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            if late:
                useful = any(each.exception() is None and each.result() for each in done)
                await asyncio.wait(late, timeout=PATIENCE if useful else None)
        finally:
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        answers = [each for each in asking if not each.cancelled()]
        found = [address for each in answers if each.exception() is None for address in each.result()]
        if not found:
            raise next(filter(None, (each.exception() for each in answers)), OSError(None, f"{host} has no address"))
        if ":" in found[0] and not _has_route(found[0]):
            found.sort(key=lambda address: ":" in address)
        return [entry(host, address, port) for address in found]

    async def close(self) -> None:
        """Do nothing: each look-up closes its sockets."""

    async def _addresses(self, host: str, family: socket.AddressFamily) -> list[str]:
        import dns.asyncresolver  # noqa: PLC0415 - takes a tenth of a second, and few crawls need it
        import dns.exception  # noqa: PLC0415
        import dns.nameserver  # noqa: PLC0415

        if self._resolver is None:
            self._resolver = dns.asyncresolver.Resolver(configure=False)
            self._resolver.nameservers = [
                dns.nameserver.Do53Nameserver(each.address, each.port) for each in self._servers
            ]
            self._resolver.lifetime = self._seconds
        kind = "AAAA" if family == socket.AF_INET6 else "A"
        try:
            answer = await self._resolver.resolve(host, kind, raise_on_no_answer=False, search=False)
        except dns.resolver.LifetimeTimeout as error:
            raise OSError(errno.ETIMEDOUT, "no DNS server answers") from error
        except dns.resolver.NoNameservers as error:
            raise NameServerError(_faults(error.kwargs.get("errors", ()))) from error
        except dns.exception.DNSException as error:  # there is no such name, or it cannot be one
            raise OSError(None, f"{host} does not exist") from error
        return [each.address for each in answer.rrset or ()]


def _faults(errors: Sequence[tuple[Any, ...]]) -> str:
    """Return in words how each server failed; *errors* are those of dnspython: address, over TCP, port, and error."""
    faults = dict.fromkeys(
        f"{NameServer(_address(where), port)}: {_words(what)}" for where, _, port, what, *_ in errors
    )
    return "; ".join(faults)


def _address(server: str) -> str:
    return server.removeprefix("Do53:").partition("@")[0]


def _words(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def entry(host: str, address: str, port: int) -> ResolveResult:
    """Return *address* as resolvers do."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)


def _has_route(address: str) -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.connect((address, DISCARD))
        return True
    return False
