"""The settings of a running crawl, and what is replaced when one of them changes.

The rules of visits are replaced as one value. Limits on hosts are retuned in place: the latest starts and what the
throttles have learned stay, so a changed rate never lets two requests through together, and a lower one holds from the
next start on. Every crawler does this for itself; the order is answered when all have.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from archiver.collection.layout import Layout
from archiver.config.live_settings import (
    OF_THE_MACHINE,
    live_values,
    with_block,
    with_exclude,
    with_include,
    with_live_values,
)
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.budget import Budget
from archiver.crawl.dispatcher import Dispatcher
from archiver.crawl.requests import RequestLimits, Requests
from archiver.crawl.rules import CurrentRules, GroupsOfHosts, settings_now, with_seeds
from archiver.crawl.secrets import Secrets
from archiver.crawl.visit_rules import HostVisitRules
from archiver.fetch.private_networks import AddressGuard
from archiver.frontier.orders.table import UNDO, Order, Verb
from archiver.frontier.port import Frontier
from archiver.policy.domains import scope_for
from archiver.policy.quotas import Quotas
from archiver.policy.schedule import Schedule


class Stored(NamedTuple):
    """The places where the settings of the crawl are."""

    layout: Layout
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class MadeOfSettings:
    """The parts of a crawler that depend on settings which may change."""

    rules: CurrentRules
    sent: SettingsByHost  # what requests are made of, with the secrets
    secrets: Secrets
    guard: AddressGuard
    groups: GroupsOfHosts
    schedule: Schedule
    dispatcher: Dispatcher
    requests: Requests
    budget: Budget


def with_orders(settings: Settings, orders: Iterable[Order], after: int) -> Settings:
    """Return *settings* with what those of *orders* have set that came *after* that row."""
    for order in orders:
        if order.id > after:
            settings = _with_order(settings, order)
    return settings


def _with_order(settings: Settings, order: Order) -> Settings:
    match order.verb:
        case Verb.SET:
            return with_live_values(settings, order.arguments)
        case Verb.EXCLUDE:
            return with_exclude(settings, order.arguments[0], undo=UNDO in order.arguments[1:])
        case Verb.INCLUDE:
            return with_include(settings, order.arguments[0], undo=UNDO in order.arguments[1:])
        case Verb.BLOCK | Verb.UNBLOCK:
            return with_block(settings, order.arguments[0], undo=order.verb == Verb.UNBLOCK)
    return settings


class LiveSettings:
    """Changes the settings of one crawler while it runs."""

    def __init__(self, stored: Stored, parts: MadeOfSettings, part_of: Callable[[Settings], Settings]) -> None:
        """*part_of* returns the part of this crawler in limits that are divided between several."""
        self._stored = stored
        self._parts = parts
        self._part_of = part_of
        self._base = parts.rules.visit_rules.settings.common  # without seeds that were added meanwhile
        self._further: Sequence[str] = ()

    async def add_seeds(self, newest: Sequence[str], further: Sequence[str]) -> None:
        """Crawl with the *newest* seeds too; *further* are all that were added since the crawler began."""
        self._further = further
        self._parts.guard.add_seeds(newest)
        self._parts.groups.add_seeds(newest)
        await self._renew()

    async def put(self, order: Order) -> None:
        """Take up what *order* changes."""
        self._base = self._with(order)
        await self._renew()
        parts, settings = self._parts, self._parts.rules.visit_rules.settings.common
        parts.groups.take(settings.politeness)
        parts.requests.take(RequestLimits.of(settings.limits))
        parts.budget.take(settings, parts.schedule)
        parts.schedule.retune(settings.politeness.bandwidth)
        quotas = Quotas(parts.rules.visit_rules.settings)
        for host in tuple(parts.schedule.hosts()):
            host.memory.blocked = bool(quotas.block(host.key))
            if host.memory.blocked:
                parts.schedule.clear(host.id)
        await parts.dispatcher.regroup()
        await parts.dispatcher.reread()

    def _with(self, order: Order) -> Settings:
        """Return our settings with what *order* changes, of whose divided limits we take our part."""
        whole = _with_order(self._base, order)
        values = live_values(order.arguments, self._base) if order.verb == Verb.SET else {}
        part = self._part_of(whole).limits
        changed = {name: getattr(part, name) for name in OF_THE_MACHINE if name in values}
        return replace(whole, limits=replace(whole.limits, **changed))

    async def _renew(self) -> None:
        """Replace the rules of visits, and the settings that others look up."""
        parts = self._parts
        rules = parts.rules.visit_rules
        grown = (
            with_seeds(self._base, self._further, await settings_now(*self._stored)) if self._further else self._base
        )
        rules.settings.take(grown)
        parts.sent.take(parts.secrets.filled(grown))
        scope = await asyncio.to_thread(scope_for, grown)
        scope.add_moved_seeds(rules.scope.moved_seeds)
        if rules.traps is not None:
            with rules.lock:
                rules.traps.take(grown.traps)
        parts.rules.visit_rules = replace(rules, scope=scope, common=HostVisitRules.of(grown))
