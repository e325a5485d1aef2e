"""The limits on the whole crawl: --max-urls, --global-rate and --bandwidth, for one crawler or shared by several."""

import asyncio
from collections import deque
from collections.abc import Callable

from archiver.clock import Clock
from archiver.config.option_types import Rate
from archiver.config.settings import Settings
from archiver.frontier.port import CrawlLimits, Frontier, Wish
from archiver.policy.limits import LEAST_SLACK, SLACK, RateLimiter
from archiver.policy.schedule import Schedule

DRAW_EVERY = 0.25  # seconds
MOST_URLS = 64  # in hand beyond those under way
MOST_STARTS = 500  # in a second, of one crawler
LATE = 0.05  # of the interval of a rate: how late a reserved start may be used

NEVER = float("inf")


class Budget:
    """The URLs that one crawler alone may visit; *most*: 0 is no limit."""

    def __init__(self, most: int) -> None:
        self.spent = 0
        self._most = most or NEVER

    @property
    def full(self) -> bool:
        """True if no more URLs may be handed out now."""
        return self.spent >= self._most

    @property
    def used_up(self) -> bool:
        """True if no more URLs may be handed out in this run."""
        return self.full

    def begin(self, visited: int) -> None:
        """Count the URLs *visited* in earlier runs."""
        self.spent = visited

    def take(self, settings: Settings, schedule: Schedule) -> None:
        """Use the limits in *settings* from now on."""
        self._most = settings.limits.max_urls or NEVER
        schedule.starts.take(settings.politeness.global_rate)

    async def keep(self, changed: Callable[[], None]) -> None:
        """Do what must be done while the crawl runs; call *changed* when there is something new."""


class ReservedStarts(RateLimiter):
    """Starts that were reserved for this crawler. One that is not used soon is lost."""

    def __init__(self, rate: Rate, crawlers: int, not_before: float = 0.0) -> None:
        super().__init__(Rate(0), not_before=not_before)
        self._late = LATE * rate.interval
        window = rate.interval + max(rate.interval * SLACK, LEAST_SLACK) + self._late
        self.step = window / rate.starts  # so no interval has more starts, even if the first one is late
        self._crawlers = crawlers
        self._places: deque[float] = deque()
        self._now = 0.0  # when it was asked last

    @property
    def gap(self) -> float:
        """Seconds from one start to the next, if all crawlers get the same number."""
        return self.step * self._crawlers

    def next(self, now: float) -> float:
        """Return when a request may start; if nothing is reserved, when to ask again."""
        self._now = max(self._now, now)
        while self._places and self._places[0] + self._late < now:
            self._places.popleft()
        return max(super().next(now), self._places[0] if self._places else self._now + DRAW_EVERY)

    def count(self, now: float) -> None:
        """Use the first place up."""
        del now
        if self._places:
            self._places.popleft()

    def missing(self, now: float) -> int:
        """Return how many more places would be used before the next but one draw."""
        self.next(now)
        return max(0, min(MOST_STARTS, int(2 * DRAW_EVERY / self.step) + 1) - len(self._places))

    def reserve(self, places: list[float]) -> None:
        """Add *places*, which are later than those that are there."""
        self._places.extend(places)


class SharedBudget(Budget):
    """The part of this crawler in limits that it shares with others; it draws on them several times a second."""

    def __init__(self, settings: Settings, frontier: Frontier, schedule: Schedule, clock: Clock, crawlers: int) -> None:
        """*crawlers* share it, or more."""
        limits = settings.limits
        super().__init__(limits.max_urls)
        self._crawlers = crawlers
        self._frontier = frontier
        self._schedule = schedule
        self._clock = clock
        self._starts = schedule.starts if isinstance(schedule.starts, ReservedStarts) else None
        step = self._starts.step if self._starts is not None else 0.0
        self._limits = CrawlLimits(limits.max_urls, step, settings.politeness.bandwidth)
        self._used_up = False
        self._reported = 0  # bytes

    @property
    def used_up(self) -> bool:
        """True if no crawler may hand out more URLs in this run."""
        return self._used_up

    def begin(self, visited: int) -> None:
        """Hand out nothing before the first draw."""
        del visited
        self._most = 0 if self._limits.urls else NEVER

    def take(self, settings: Settings, schedule: Schedule) -> None:
        """Use the limits in *settings* from now on; starts that were reserved at another rate are lost."""
        limits, rate = settings.limits, settings.politeness.global_rate
        self._starts = ReservedStarts(rate, self._crawlers) if rate.starts else None
        schedule.starts = self._starts or RateLimiter(rate)
        step = self._starts.step if self._starts is not None else 0.0
        self._limits = CrawlLimits(limits.max_urls, step, settings.politeness.bandwidth)
        self._most, self._used_up = self.spent if limits.max_urls else NEVER, False

    async def keep(self, changed: Callable[[], None]) -> None:
        """Draw on the budget of all crawlers."""
        while True:
            if any(self._limits):
                await self._draw()
                changed()
            await asyncio.sleep(DRAW_EVERY)

    async def _draw(self) -> None:
        if self._limits.urls:
            self._most = self.spent  # nothing is handed out meanwhile
        hosts, received = tuple(self._schedule.hosts()), self._schedule.received_bytes
        began = self._clock.now()
        ready = sum(len(host.window) for host in hosts)
        starts = self._starts.missing(began) if self._starts is not None and self._schedule.active + ready else 0
        wish = Wish(
            sum(len(host.outstanding) for host in hosts), min(MOST_URLS, ready), starts, received - self._reported
        )
        grant = await self._frontier.draw(self._limits, wish)
        now, self._reported, self._used_up = self._clock.now(), received, grant.used_up
        if self._limits.urls:
            self._most = self.spent + grant.urls
        if self._starts is not None:
            self._starts.reserve([now + seconds for seconds in grant.starts])
        self._schedule.paid_until = max(self._schedule.paid_until, now + grant.paid_in)
