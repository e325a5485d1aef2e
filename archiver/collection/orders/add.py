"""Adds seeds to a crawl, whether it is stopped or running, and notes that as an order.

Settings are read and replaced while the database is locked, so two changes cannot overwrite each other: crawl.toml, and
those in the database if several machines can crawl.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from shlex import join
from typing import TYPE_CHECKING

from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl, check_changeable, crawl_lock
from archiver.collection.named_files import file_uses, secret_uses, vouch
from archiver.collection.orders.given import BEGUN, GivenOrder, change_common, kept, user
from archiver.collection.settings_file import put_settings, read_settings
from archiver.config import toml
from archiver.config.secret_settings import secret_sources
from archiver.config.seeds import (
    ABOUT_KEYS,
    SeedList,
    SeedSetting,
    combine_seed_settings,
    combined,
    conflict,
    contradiction,
    lines,
    read_seed,
)
from archiver.config.settings import Settings, with_values
from archiver.config.tls import TLS_KEYS
from archiver.errors import ConfigError
from archiver.frontier.orders import table
from archiver.frontier.orders.table import GRACE, NewOrder, Order, Verb
from archiver.humanize import count

if TYPE_CHECKING:
    from archiver.frontier.connection import Connection

AT_START = ("auth", "proxy", *TLS_KEYS)  # settings that a crawl reads when it starts


def described_seeds(texts: Iterable[str], command: str) -> SeedList:
    """Return the seeds in *texts*, the lines of a list. Raises `ConfigError` if one has more than a description.

    Settings such as `header` may name files and secrets: only *command* may give them.
    """
    found: dict[str, SeedSetting | None] = {}
    for text in _written(texts):
        address, own = read_seed(text)
        if own is not None and own.effective:
            key = own.effective[0][0]
            raise ConfigError(f"{address}: {key} cannot be given here, only {', '.join(ABOUT_KEYS)}; use {command}")
        known = found.get(address)
        if known is not None and own is not None:
            if what := contradiction(known, own):
                raise ConfigError(f"{address}: given twice with different {what}s; keep one of them")
            own = combined(known, own)
        found[address] = own or known
    return SeedList(tuple(found), tuple(own for own in found.values() if own is not None))


def _written(texts: Iterable[str]) -> Iterator[str]:
    """Yield *texts* without comments and empty ones. One of several lines stays, so that it is refused."""
    for text in texts:
        if len(text.splitlines()) > 1:
            yield text
        else:
            yield from (line for _, line in lines(text))


def add_seeds(crawl: NamedCrawl, given: SeedList, words: Sequence[str], *, who: str = "") -> GivenOrder:
    """Add the seeds *given* to *crawl*, and note that as an order of *who*, by default the user of this process.

    *words*: how a command line names them. Raises `ConfigError` with one line if they cannot be added.
    """
    import asyncio  # noqa: PLC0415 - slow to import, and the help of a command needs none of it

    check_changeable(crawl)
    new = NewOrder(Verb.ADD, kept(words), who or user())
    with crawl_lock(crawl) as running:
        order, number = asyncio.run(_added(crawl, given, new, running=running))
    return GivenOrder(order, running, join(("archiver", Verb.ADD, crawl.name, *new.arguments)), number)


async def _added(crawl: NamedCrawl, given: SeedList, new: NewOrder, *, running: bool) -> tuple[Order, int]:
    """Return the order with its answer, and the number of new seeds.

    Writes the settings first: a crash before the seeds are written cannot lose one.
    """
    from archiver.frontier.sqlite import SqliteFrontier  # noqa: PLC0415 - slow to import

    if crawl.layout is None:
        _check_kept(given, crawl)
    async with await SqliteFrontier.open(crawl.frontier) as frontier:
        async with frontier.exclusive_transaction() as writer:
            before = None
            if crawl.address:
                before = await change_common(crawl, writer, lambda settings: _with_seeds(settings, given))
            if crawl.layout is not None:
                before = _grow_file(crawl.layout, given, running=running)
            now = await writer.run(_clock) if crawl.address else time.time()
            row = await writer.run(table.give, replace(new, given=now), BEGUN)
        assert before is not None
        soon = running or crawl.address  # a crawl that begins at this moment must know the scope first
        number = await frontier.add_seeds(given.urls, now + GRACE if soon else now)
        await frontier.amend_answer(row, _answer(before, given, number))
        return await frontier.answered_order(row, 0.0), number


def _answer(before: Settings, given: SeedList, number: int) -> str:
    """Return how many seeds are new, and of how many others the settings have changed."""
    known, own = set(before.seeds), {one.url: one for one in before.scope.seed}
    pairs = [(own.get(one.url, SeedSetting(one.url, ())), one) for one in given.own if one.url in known]
    changed = sum(bool(new.effective) and new.effective != old.effective for old, new in pairs)
    others = f"; {len(given.urls) - number} known already" if number < len(given.urls) else ""
    if changed:
        others += f", {changed} of them with new settings from the next archiver resume on"
    texts = [[key for key in ABOUT_KEYS if new.has(key) and new.get(key) != old.get(key, "")] for old, new in pairs]
    if described := [each for each in texts if each]:
        keys = (key for key in ABOUT_KEYS if any(key in each for each in described))
        both = " and " if all(each == described[0] for each in described) else " or "
        others += f", {len(described)} of them with a new {both.join(keys)}"
    return f"{count(number, 'seed')} added{others}"


def _grow_file(layout: Layout, given: SeedList, *, running: bool) -> Settings:
    """Add seeds to crawl.toml; return the settings that it had."""
    before = with_values(Settings(), read_settings(layout.settings))
    new = _with_seeds(before, given)
    if running:
        _check_running(new, given)
    if new != before:
        put_settings(layout, toml.render(new))
        secrets = set(secret_uses(new)).difference(secret_uses(before))
        vouch(layout, (*file_uses(with_values(Settings(), {"seed": given.own})), *sorted(secrets)))
    return before


def _clock(db: "Connection") -> float:
    return db.now()


def _check_running(settings: Settings, given: SeedList) -> None:
    """Refuse settings of *given* that a crawl reads when it starts, because they protect what it sends."""
    for own in settings.scope.seed:
        if own.url in given.urls and (what := _at_start(own)):
            raise ConfigError(f"{own.url}: {what} cannot be given to a crawl that runs; stop it, add, and resume")


def _check_kept(given: SeedList, crawl: NamedCrawl) -> None:
    """Refuse settings of *given* that the database does not hold, where there is no directory to hold them."""
    for own in given.own:
        if what := _at_start(own):
            raise ConfigError(f"{own.url}: {crawl.name} cannot hold {what}; name a directory of the crawl")


def _at_start(own: SeedSetting) -> str:
    """Return the setting in *own* that a crawl reads when it starts; "" if there is none."""
    if key := next((key for key, _ in own.given if key in AT_START), ""):
        return key
    return "a header with a secret from elsewhere" if secret_sources(with_values(Settings(), {"seed": (own,)})) else ""


def _with_seeds(settings: Settings, given: SeedList) -> Settings:
    own = combine_seed_settings(settings.scope.seed, given.own)
    if wrong := conflict(own):
        raise ConfigError(wrong)
    seeds = tuple(dict.fromkeys((*settings.seeds, *given.urls)))
    return replace(settings, seeds=seeds, scope=replace(settings.scope, seed=own))
