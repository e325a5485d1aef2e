"""Which hosts are asked together, and how: `--polite-by`, `--third-party-rate` and `--host-limit` for each leased host.

Hosts with different limits never share. A page can name any number of hosts that lead to one server. So hosts that
are no seeds share one rate by registered domain, and by address as soon as that is known.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from archiver import url
from archiver.config.settings import PolitenessSettings
from archiver.config.values import Rate
from archiver.frontier.port import HostRow
from archiver.politeness import Terms

RESERVE = 0.03  # of the interval of strangers: on a busy machine requests arrive closer to each other than they left
FIRST = 1  # request at once on a host of which nothing is known, so that it is seen how long its answers take unhurried


class Circles:
    """*load_domains* makes the function from a host name to its registered domain, when that is needed."""

    def __init__(
        self, settings: PolitenessSettings, load_domains: Callable[[], Callable[[str], str]], seeds: Iterable[str]
    ) -> None:
        self._settings = settings
        self._load_domains = load_domains
        self._domain_of: Callable[[str], str] | None = None
        self._seeds: set[str] = set()  # scheme aside: with each port
        self._names: set[str] = set()
        self._shared = settings.rate if settings.third_party_rate is None else settings.third_party_rate
        self.welcome(seeds)

    def welcome(self, seeds: Iterable[str]) -> None:
        """Ask each host of *seeds* (canonical URLs) for itself, with and without www."""
        for seed in seeds:
            authority = url.origin(seed).partition("://")[2]
            self._seeds |= {authority, authority.removeprefix("www."), f"www.{authority}"}
            self._names.add(url.host(seed))

    async def terms(self, rows: Sequence[HostRow]) -> list[Terms]:
        """Return how each of *rows* may be asked, and with which others together."""
        by_domain = self._settings.polite_by == "domain" or any(self._is_stranger(row.key) for row in rows)
        if by_domain and self._domain_of is None:
            self._domain_of = await asyncio.to_thread(self._load_domains)
        return [self._terms(row.key) for row in rows]

    def _is_stranger(self, key: str) -> bool:
        return self._shared.starts > 0 and key.partition("://")[2] not in self._seeds

    def _terms(self, key: str) -> Terms:
        settings, name = self._settings, url.host(f"{key}/")
        rate, concurrency, pattern = settings.rate, settings.host_concurrency, ""
        for limit in settings.host_limit:
            if fnmatchcase(name, limit.pattern):
                rate, concurrency, pattern = limit.rate, limit.concurrency or concurrency, limit.pattern
                break
        domain = self._domain_of(name) if self._domain_of is not None else ""
        stranger = self._is_stranger(key)
        if stranger and settings.polite_by == "domain" and self._domain_of is not None:
            stranger = domain not in map(self._domain_of, self._names)
        if stranger and not pattern:
            rate = slower(rate, self._shared)
            rate = Rate(rate.starts, rate.interval * (1 + RESERVE))
        circle = f"domain {domain} {pattern}" if stranger or settings.polite_by == "domain" else ""
        nearby = f"ip {pattern}" if stranger or settings.polite_by == "ip" else ""
        return Terms(rate, concurrency, FIRST, circle, nearby)


def slower(one: Rate, other: Rate) -> Rate:
    """Return the rate with fewer starts a second; 0 stands for no limit."""
    rates = [rate for rate in (one, other) if rate.starts]
    return min(rates, key=lambda rate: rate.starts / rate.interval, default=one)
