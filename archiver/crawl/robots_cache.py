"""What robots.txt says to the leased hosts, and what that means: a URL is held back, or only noted, or let through.

Rules are used for a day; that a robots.txt could not be had is believed for an hour, and not at all by a new run. A
large file is read in another thread, so that the crawl goes on meanwhile.
"""

import asyncio
from dataclasses import replace

from archiver.config.settings import PolitenessSettings
from archiver.crawl.visit import ROBOTS_EXCLUDED, Visited
from archiver.errors import Failure, FetchError
from archiver.extract.exchange import is_robots
from archiver.frontier.port import HostRow
from archiver.model import Claim, Robots
from archiver.policy.robots import Rules

DAY = 86_400.0  # seconds for which rules may be used (RFC 9309 §2.4)
HOUR = 3600.0  # … and for which it is believed that there is nobody to ask
SMALL = 16 << 10  # bytes that are read at once: some milliseconds


class RobotsCache:
    """The rules of every leased host that has answered."""

    def __init__(self, settings: PolitenessSettings, token: str) -> None:
        self.asks = settings.robots != "ignore"  # whether robots.txt is asked for at all
        self._obeys = settings.robots == "obey"
        self._cap = settings.crawl_delay_cap
        self._token = token
        self._rules: dict[int, Rules] = {}
        self._asked: dict[int, float] = {}  # when these were had; infinity while they are asked for again
        self._errors: dict[int, FetchError] = {}
        self._began = float("inf")  # this run

    def begin(self, now: float) -> None:
        """The run has begun by *now*."""
        self._began = min(self._began, now)

    def gated(self, host: int) -> bool:
        """Whether *host* may be asked for nothing but its robots.txt."""
        return self.asks and host not in self._rules

    def is_stale(self, row: HostRow, now: float) -> bool:
        """Whether the answer in *row*, of a host that has one, is to be asked for again."""
        unreachable = row.robots is not None and not 200 <= row.robots.status < 500
        return self._too_old(row.asked, now, unreachable=unreachable)

    def aged(self, host: int, now: float) -> bool:
        """Whether what is known of *host* is to be asked for again; says so once."""
        rules = self._rules.get(host)
        if rules is None or not self._too_old(self._asked[host], now, unreachable=rules.unreachable):
            return False
        self._asked[host] = float("inf")
        return True

    async def learn(self, row: HostRow) -> float:
        """Take in what *row* says; seconds of Crawl-delay to be kept."""
        if row.robots is None:
            return 0.0
        if len(row.robots.body) <= SMALL:
            rules = Rules(row.robots, self._token)
        else:
            rules = await asyncio.to_thread(Rules, row.robots, self._token)
        self._rules[row.id], self._asked[row.id] = rules, row.asked
        if rules.unreachable:
            self._errors[row.id] = _unreachable(row.robots)
        return min(rules.delay, self._cap) if self._cap else rules.delay

    def forget(self, host: int) -> None:
        """Nothing is known of *host* any more."""
        for known in (self._rules, self._asked, self._errors):
            known.pop(host, None)

    def refusal(self, claim: Claim) -> Visited | None:
        """What becomes of *claim* without a request: its host's robots.txt forbids it, or could not be had."""
        rule = self._forbids(claim) if self._obeys else ""
        if not rule:
            return None
        if not self._rules[claim.host].unreachable:
            return Visited(claim, forbidden=f"robots.txt forbids it: {rule}")
        return Visited(claim, error=self._errors[claim.host], final=True)

    def observed(self, visited: Visited | None) -> Visited | None:
        """*visited*, noted where robots.txt would have forbidden it, if that is all that is to be done about it."""
        if visited is None or visited.exchange is None or self._obeys or not self._forbids(visited.claim):
            return visited
        exchange = visited.exchange
        return replace(visited, exchange=replace(exchange, notes=(*exchange.notes, ROBOTS_EXCLUDED)))

    def _forbids(self, claim: Claim) -> str:
        rules = self._rules.get(claim.host)
        return "" if rules is None or is_robots(claim) else rules.refusal(claim.url)

    def _too_old(self, asked: float, now: float, *, unreachable: bool) -> bool:
        if unreachable and asked < self._began:
            return True
        return asked + (HOUR if unreachable else DAY) <= now


def _unreachable(robots: Robots) -> FetchError:
    """Why a host may not be asked for anything (RFC 9309 §2.3.1.4); no answer at all is told as what it was."""
    if robots.status:
        reason = f"robots.txt answered {robots.status} until --robots-patience was over, so nothing may be fetched"
        return FetchError(Failure.ROBOTS, reason)
    word, _, reason = robots.body.decode("utf-8", "replace").partition(": ")
    known = word in {failure.value for failure in Failure}
    return FetchError(Failure(word) if known else Failure.ROBOTS, reason or "robots.txt could not be had")
