"""Applies the robots.txt of the leased hosts: a URL is let through, refused, or only noted.

We use rules for a day. A robots.txt that could not be fetched counts for an hour, and not at all in a new run. A large
file is parsed in another thread, so that the crawl goes on meanwhile.
"""

import asyncio
from dataclasses import replace

from archiver.config.settings import PolitenessSettings
from archiver.crawl.visit import ROBOTS_EXCLUDED, Visited
from archiver.errors import Failure, FetchError
from archiver.extract.exchange import is_robots
from archiver.frontier.port import HostRow
from archiver.model import Claim, Robots
from archiver.policy.leased_host import LeasedHost, RobotsAnswer
from archiver.policy.robots import Rules

DAY = 86_400.0  # seconds for which rules may be used (RFC 9309 §2.4)
HOUR = 3600.0  # … and for which we believe that robots.txt cannot be fetched
SMALL = 16 << 10  # bytes that are parsed at once: some milliseconds


class RobotsCache:
    """Keeps the rules of every leased host that has answered, and applies them."""

    def __init__(self, settings: PolitenessSettings, token: str) -> None:
        self.asks = settings.robots != "ignore"  # True if we fetch robots.txt at all
        self._obeys = settings.robots == "obey"
        self._cap = settings.crawl_delay_cap
        self._token = token
        self._began = float("inf")  # this run

    def begin(self, now: float) -> None:
        """Note that the run has begun by *now*."""
        self._began = min(self._began, now)

    def gated(self, host: LeasedHost) -> bool:
        """Return True if *host* may be asked for nothing but its robots.txt."""
        return self.asks and host.robots is None

    def is_stale(self, row: HostRow, now: float) -> bool:
        """Return True if the answer in *row*, of a host that has one, is to be fetched again."""
        unreachable = row.robots is not None and not 200 <= row.robots.status < 500
        return self._too_old(row.asked, now, unreachable=unreachable)

    def expire(self, host: LeasedHost, now: float) -> bool:
        """Return True, once, if the rules of *host* have become too old and are to be fetched again."""
        known = host.robots
        if known is None or not self._too_old(known.asked, now, unreachable=known.rules.unreachable):
            return False
        host.robots = replace(known, asked=float("inf"))
        return True

    async def read(self, row: HostRow) -> RobotsAnswer | None:
        """Parse the robots.txt in *row*, if it has been answered."""
        if row.robots is None:
            return None
        if len(row.robots.body) <= SMALL:
            rules = Rules(row.robots, self._token)
        else:
            rules = await asyncio.to_thread(Rules, row.robots, self._token)
        return RobotsAnswer(rules, row.asked, _unreachable(row.robots) if rules.unreachable else None)

    def delay(self, answer: RobotsAnswer) -> float:
        """Return the Crawl-delay to keep, in seconds."""
        delay = answer.rules.delay
        return min(delay, self._cap) if self._cap else delay

    def refusal(self, host: LeasedHost, claim: Claim) -> Visited | None:
        """Return the visit that *claim* becomes without a request, if robots.txt forbids it or could not be fetched."""
        rule = _forbids(host, claim) if self._obeys else ""
        if not rule or host.robots is None:
            return None
        if host.robots.error is None:
            return Visited(claim, forbidden=f"robots.txt forbids it: {rule}")
        return Visited(claim, error=host.robots.error, final=True)

    def observed(self, host: LeasedHost, visited: Visited | None) -> Visited | None:
        """Add a note to *visited* if robots.txt would have forbidden it and we only observe that."""
        if visited is None or visited.exchange is None or self._obeys or not _forbids(host, visited.claim):
            return visited
        exchange = visited.exchange
        return replace(visited, exchange=replace(exchange, notes=(*exchange.notes, ROBOTS_EXCLUDED)))

    def _too_old(self, asked: float, now: float, *, unreachable: bool) -> bool:
        if unreachable and asked < self._began:
            return True
        return asked + (HOUR if unreachable else DAY) <= now


def _forbids(host: LeasedHost, claim: Claim) -> str:
    return "" if host.robots is None or is_robots(claim) else host.robots.rules.refusal(claim.url)


def _unreachable(robots: Robots) -> FetchError:
    """Return why a host may not be asked for anything (RFC 9309 §2.3.1.4)."""
    if robots.status:
        reason = f"robots.txt answered {robots.status} until --robots-patience was over, so nothing may be fetched"
        return FetchError(Failure.ROBOTS, reason)
    word, _, reason = robots.body.decode("utf-8", "replace").partition(": ")
    known = word in {failure.value for failure in Failure}
    return FetchError(Failure(word) if known else Failure.ROBOTS, reason or "robots.txt could not be fetched")
