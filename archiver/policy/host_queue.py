"""What the schedule keeps of each leased host: its queue, and the circles in which it shares a pace. Pure.

A host is in one circle with those that are asked together with it (of one registered domain, say), and in a second
one, its place, with those that have the same address. The address is known after a look-up, so the place comes later.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network

from archiver.model import Claim
from archiver.policy.limits import Politeness, RateLimiter
from archiver.policy.throttle import UNTAUGHT, Throttle, ThrottleState

SITE_BITS = 64  # of an IPv6 address: one machine commonly has all addresses of such a network


@dataclass(slots=True, eq=False)
class PolitenessGroup:
    """Hosts that are asked together: they share pace, concurrency, and what was learned."""

    key: str
    pace: RateLimiter
    temper: Throttle
    members: int = 0  # that are leased
    active: int = 0
    started: int = 0  # of the active ones: requests that have begun
    promised: float = float("-inf")  # when one more may begin, if all that were handed out do
    waiting: list[tuple[int, int]] = field(default_factory=list)  # heap of (turn, host); may hold outdated entries
    noted: tuple[float, int, int] | None = None  # when the first of those is looked at, its turn and host

    @property
    def full(self) -> bool:
        """Whether no more requests at once may be made."""
        return self.active >= self.temper.width

    def opens(self, now: float) -> float:
        """When one more request may be handed out, not before *now*; infinity while as many as may be are active."""
        return float("inf") if self.full else max(self.pace.next(now), self.promised)

    def first(self, queues: Mapping[int, "HostQueue"]) -> tuple[int, int] | None:
        """Return the turn and the number of the host that waits longest, and forget those that wait no more."""
        while self.waiting:
            turn, host = self.waiting[0]
            queue = queues.get(host)
            if queue is not None and queue.waits_for is self and queue.turn == turn:
                return turn, host
            heapq.heappop(self.waiting)
        return None

    def promise(self, now: float) -> None:
        """One more request is on its way to its start."""
        self.active += 1
        gap = self.pace.gap
        self.promised = max(self.promised, now - gap / 2) + gap

    def over(self) -> None:
        """A request has ended, or was never begun."""
        self.active -= 1
        if not self.active:  # nothing is on its way to a start: the pace itself knows everything
            self.started, self.promised = 0, float("-inf")
        elif self.started:
            self.started = min(self.started - 1, self.active)
        else:
            self.promised -= self.pace.gap


@dataclass(slots=True)
class HostQueue:
    """One leased host."""

    key: str
    circle: PolitenessGroup
    terms: Politeness
    parked: float  # not one request before
    turn: int  # of hosts that are due at the same time the one that waits longest goes first
    place: PolitenessGroup | None = None  # the hosts at its address, where it shares with them
    waits_for: PolitenessGroup | None = None  # the one of its circles that lets it go on, where only that is missing
    proven: bool = False  # its latest answer came quickly
    asleep: bool = False  # one request at a time
    rested: float = float("-inf")  # until then it waits because of our work, not because it wants to
    held: bool = False  # by a limit: what waits is not asked for in this run
    paused: bool = False  # it refuses us: as above
    window: list[tuple[int, int, Claim]] = field(default_factory=list)  # heap by priority, then age
    outstanding: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)  # outstanding at any time since the refill under way began
    active: int = 0
    done: int = 0
    waiting: int = 0  # in the frontier, as of the latest refill
    later: float = float("inf")  # when the frontier has more that is due
    stale: bool = True  # the frontier has something that the window has not

    @property
    def circles(self) -> tuple[PolitenessGroup, ...]:
        """All that it is in."""
        return (self.circle,) if self.place is None else (self.circle, self.place)

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.window or self.active or self.outstanding or self.stale or self.asleep)

    def teach(self, lesson: Callable[[Throttle], None]) -> bool:
        """Let all its circles learn *lesson*; whether its own has learned anything."""
        before = self.circle.temper.lesson
        for circle in self.circles:
            lesson(circle.temper)
            circle.pace.heed(circle.temper.rate)
        return self.circle.temper.lesson != before

    def next(self, now: float) -> float:
        """The earliest time, not before *now*, at which a request may start by the pace of its circles."""
        return max(circle.pace.next(now) for circle in self.circles)

    @property
    def own(self) -> float:
        """When the next URL may be handed out by its circles' leave; infinity while that takes news of this host."""
        if self.asleep and self.active:
            return float("inf")
        if not self.window:
            return float("inf") if self.stale else self.later
        return self.parked

    def last(self, now: float) -> tuple[float, PolitenessGroup]:
        """Which of its circles opens last, and when."""
        opens = self.circle.opens(now)
        if self.place is None or (near := self.place.opens(now)) < opens:
            return opens, self.circle
        return near, self.place

    def due(self, now: float) -> float:
        """When the next URL may be handed out; infinity while there is none, or the concurrency is used up."""
        return max(self.own, self.last(now)[0])


class PolitenessGroups:
    """All circles by their keys, those included that no leased host is in while their pace still counts."""

    def __init__(self, not_before: float) -> None:
        self._not_before = not_before
        self._circles: dict[str, PolitenessGroup] = {}

    def of(self, key: str, lesson: ThrottleState, terms: Politeness) -> PolitenessGroup:
        """Return the circle called *key*, made by *terms* if it is not there, which knows *lesson* at least."""
        circle = self._circles.get(key)
        if circle is None:
            pace = RateLimiter(terms.rate, not_before=self._not_before)
            temper = Throttle(terms.rate, terms.concurrency, lesson, first=terms.first)
            circle = self._circles[key] = PolitenessGroup(key, pace, temper)
        elif circle.temper.lesson == UNTAUGHT != lesson:
            circle.temper = Throttle(terms.rate, terms.concurrency, lesson, first=terms.first)
        circle.pace.heed(circle.temper.rate)
        return circle

    def get(self, key: str) -> PolitenessGroup | None:
        """Return the circle called *key*, if it is there."""
        return self._circles.get(key)

    def forget(self, most: int, now: float) -> None:
        """Where there are more than *most*, drop those that have no member and whose pace says nothing any more."""
        if len(self._circles) > most:
            for key, each in [*self._circles.items()]:
                if not each.members and each.pace.forgettable(now):
                    del self._circles[key]


def place_of(address: str) -> str:
    """What hosts at *address* have in common: the address, or its network in IPv6; "" if it is none."""
    try:
        read = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(read, IPv6Address):
        inner = read.ipv4_mapped
        return str(inner) if inner is not None else str(ip_network((read, SITE_BITS), strict=False))
    return str(read)
