"""Who is asked together, and how: `--polite-by` and `--host-limit` for each host that is leased.

Hosts at one address, or of one registered domain, are a circle where that is wished; those for which different limits
hold never are. An address is looked up when a host is leased; one that cannot be looked up is alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase

from archiver import url
from archiver.config.settings import PolitenessSettings
from archiver.frontier.port import HostRow
from archiver.politeness import Terms

FIRST = 1  # request at once on a host of which nothing is known, so that it is seen how long its answers take unhurried


class Circles:
    """*domain_of* a host name and *address_of* an origin say what hosts have in common."""

    def __init__(
        self,
        settings: PolitenessSettings,
        domain_of: Callable[[str], str],
        address_of: Callable[[str], Awaitable[str]],
    ) -> None:
        self._settings = settings
        self._domain_of = domain_of
        self._address_of = address_of

    async def terms(self, rows: Sequence[HostRow]) -> list[Terms]:
        """How each of *rows* may be asked, and with whom together."""
        addresses: Sequence[str] = [""] * len(rows)
        if self._settings.polite_by == "ip":
            addresses = await asyncio.gather(*(self._address_of(row.key) for row in rows))
        return [self._terms(row.key, address) for row, address in zip(rows, addresses, strict=True)]

    def _terms(self, key: str, address: str) -> Terms:
        settings, name = self._settings, url.host(f"{key}/")
        rate, concurrency, pattern = settings.rate, settings.host_concurrency, ""
        for limit in settings.host_limit:
            if fnmatchcase(name, limit.pattern):
                rate, concurrency, pattern = limit.rate, limit.concurrency or concurrency, limit.pattern
                break
        shared = self._domain_of(name) if settings.polite_by == "domain" else address
        return Terms(rate, concurrency, FIRST, f"{settings.polite_by} {shared} {pattern}" if shared else "")
