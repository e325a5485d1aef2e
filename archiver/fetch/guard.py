"""The guard of a crawl's connections: a page of the public web does not reach inside.

Asked three times: for a host that is written as an address, for every answer of the name servers, and for the address
at the other end of a connection, before a byte of a request is sent on it. Whom it lets pass once, it always will. A
seed's own host may be inside, as far as it was when it was first looked up: a name that was public then stays public,
however its addresses change. And what a person confides to the hosts of the seeds is for nobody else.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from archiver import url
from archiver.addresses import Allowed, is_inside, named, read
from archiver.errors import Failure, FetchError

if TYPE_CHECKING:
    from aiohttp.abc import ResolveResult

REMEDY = "--allow-private {host} would take it"


class Guard:
    """Knows who may be asked at which address; refuses with `FetchError`."""

    def __init__(self, allowed: Iterable[str], seeds: Iterable[str], insecure: Iterable[str] = ()) -> None:
        self._allowed = Allowed.read(allowed)
        self._insecure = frozenset(map(named, insecure))  # hosts that are confided in whatever their certificate
        self._seeds: set[str] = set()  # host names, of which nobody knows yet where they are
        self._insiders: set[str] = set()  # hosts of seeds that are inside
        self._confidants: set[str] = set()  # the origins of seeds, and those that count as one with them
        self.welcome(seeds)

    def welcome(self, seeds: Iterable[str]) -> None:
        """The hosts of *seeds* (canonical URLs) may be inside, and are trusted."""
        for seed in seeds:
            host = url.host(seed)
            scheme, _, authority = url.origin(seed).partition("://")
            for each in {authority, authority.removeprefix("www."), f"www.{authority}"}:
                self._confidants |= {f"{scheme}://{each}", f"https://{each}"}
            address = read(host)
            if address is None:
                self._seeds.add(named(host))
            else:
                self._insiders.add(named(host))

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
        if place is None or named(host) in self._insiders:
            return
        if refusal := self._allowed.refusal(host, place):
            at = "" if read(host) is not None else f"{host} leads inside: "
            raise FetchError(Failure.PRIVATE, f"{at}{refusal}; {REMEDY.format(host=named(host))}")

    def choose(self, host: str, found: "list[ResolveResult]") -> "list[ResolveResult]":
        """Those of *found* at which *host* may be asked; there is one at least, or *host* is refused."""
        name = named(host)
        places = [read(each["host"]) for each in found]
        if name in self._seeds and found:
            self._seeds.discard(name)
            if is_inside([place for place in places if place is not None]):
                self._insiders.add(name)
        if name in self._insiders:
            return found
        allowed = [
            each for each, place in zip(found, places, strict=True) if place and not self._allowed.refusal(host, place)
        ]
        if found and not allowed:
            self.check(host, found[0]["host"])
        return allowed
