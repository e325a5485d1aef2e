"""The guard of a crawl's connections: a page of the public web does not reach inside.

Asked three times: for a host that is written as an address, for every answer of the name servers, and for the address
at the other end of a connection, before a byte of a request is sent on it. Whom it lets pass once, it always will.
An address inside is asked only where a person wrote it down as a seed, or named it with `--allow-private`; a name leads
there only if that names it, for seeds can come from others, and what a name leads to can change. Link-local addresses
and those at which clouds hand out keys are never asked. What a person confides to the seeds' hosts goes nowhere else.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from archiver import url
from archiver.addresses import Address, Allowed, is_localhost, named, never, read
from archiver.errors import Failure, FetchError

if TYPE_CHECKING:
    from aiohttp.abc import ResolveResult

REMEDY = "--allow-private {host} would take it"


class Guard:
    """Knows who may be asked at which address; refuses with `FetchError`."""

    def __init__(self, allowed: Iterable[str], seeds: Iterable[str], insecure: Iterable[str] = ()) -> None:
        self._allowed = Allowed.read(allowed)
        self._insecure = frozenset(map(named, insecure))  # hosts that are confided in whatever their certificate
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
            if read(host) is not None or is_localhost(host):
                self._written.add(named(host))

    def trusts(self, origin: str) -> bool:
        """Whether *origin* may see what is meant for the seeds: that of one, with or without www., http or https.

        What a seed of https is sent never goes over http.
        """
        return origin in self._confidants

    def may_confide(self, origin: str, *, verified: bool) -> bool:
        """Whether *origin* of a seed is sent what may be secret: it was *verified*, or a person allows it."""
        return verified or named(url.host(f"{origin}/")) in self._insecure

    def check(self, host: str, address: str | None = None) -> None:
        """Refuse *host* at *address*; without one: by itself, where it is written as one."""
        place = read(address or host)
        if place is None:
            return
        at = "" if read(host) is not None else f"{host} leads inside: "
        if word := never(place):
            raise FetchError(Failure.PRIVATE, f"{at}{place} is {word}, which is never asked")
        if self._is_written(host, place):
            return
        if refusal := self._allowed.refusal(host, place):
            raise FetchError(Failure.PRIVATE, f"{at}{refusal}; {REMEDY.format(host=named(host))}")

    def choose(self, host: str, found: "list[ResolveResult]") -> "list[ResolveResult]":
        """Those of *found* at which *host* may be asked; there is one at least, or *host* is refused."""
        allowed = [each for each in found if self._is_allowed(host, each["host"])]
        if found and not allowed:
            self.check(host, found[0]["host"])
        return allowed

    def _is_allowed(self, host: str, address: str) -> bool:
        place = read(address)
        if place is None or never(place):
            return False
        return self._is_written(host, place) or not self._allowed.refusal(host, place)

    def _is_written(self, host: str, place: Address) -> bool:
        """Whether a person wrote *host* down as a seed and could not but mean *place*."""
        return named(host) in self._written and (read(host) is not None or place.is_loopback)
