"""`archiver retry` and `archiver add`: what a person changes in a crawl, be it stopped or running.

A stopped crawl is locked meanwhile. A running one is told by the database itself: it looks every second whether
somebody has written. crawl.toml is read and replaced while the database is held, so no two changes of it cross.
"""

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from archiver import humanize
from archiver.cli import directory as place
from archiver.cli.explain import meant, spelled, tell_scheme, with_other_scheme
from archiver.cli.seeds import SeedList, gathered, together
from archiver.cli.terminal import result
from archiver.cli.urls import spans
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.crawl.build import put_settings
from archiver.crawl.dispatcher import GRACE
from archiver.errors import ConfigError
from archiver.frontier import held, totals, url_lookup
from archiver.frontier.port import Selection
from archiver.frontier.sqlite import SqliteFrontier
from archiver.humanize import printable
from archiver.model import ExitCode, State
from archiver.storage import DRAFT


@dataclass(frozen=True, slots=True)
class Retry:
    """Which URLs to try again, as it was typed."""

    urls: tuple[str, ...]
    hosts: tuple[str, ...]
    statuses: tuple[str, ...]
    failures: tuple[str, ...]
    blocked: bool  # those whose last answer was a challenge or block page


def retry(directory: Path, wish: Retry) -> ExitCode:
    """Make URLs of the crawl in *directory* due again."""
    statuses = tuple(spans(wish.statuses))
    for text in wish.urls:
        spelled(text)  # what is no URL is refused before anything else is looked at
    settings = _check(directory)
    wanted = Selection(_known(directory, wish.urls, settings), wish.hosts, statuses, wish.failures, wish.blocked)
    _check_hosts(directory, wanted.hosts)
    with _held(directory) as running:
        count = asyncio.run(_again(directory, wanted))
    result(f"{humanize.count(count, 'URL')} due again{_next(count, running=running)}")
    return ExitCode.DONE


def retry_held(directory: Path, wanted: Sequence[str]) -> ExitCode:
    """Make held URLs due, those that *wanted* means, or all; and allow their patterns another budget."""
    settings = _check(directory)
    with totals.open_totals(directory) as db:
        there = held.held_patterns(db)
        meant_by = [text if "*" in text or "://" not in text else _spelled_or_given(text) for text in wanted]
        chosen = held.chosen(there, (*wanted, *meant_by))
        single = [] if chosen else [text for text in meant_by if _is_held(db, text)]
    if wanted and not (chosen or single):
        named = "; held are " + ", ".join(each.pattern for each in there[:5]) if there else "; nothing is held"
        raise ConfigError(f"--held: nothing that is held is called {printable(wanted[0])}{printable(named, 1000)}")
    with _held(directory) as running:
        count = asyncio.run(_again(directory, Selection(tuple(single)))) if single else 0
        count += asyncio.run(_released(directory, chosen, settings.traps.trap_budget))
    result(f"{humanize.count(count, 'URL')} released{_next(count, running=running)}")
    return ExitCode.DONE


def _spelled_or_given(text: str) -> str:
    try:
        return spelled(text)
    except ConfigError:  # a pattern need not be a URL
        return text


def _is_held(db: sqlite3.Connection, address: str) -> bool:
    row = url_lookup.known(db, address)
    return row is not None and row.state is State.HELD


async def _released(directory: Path, chosen: Sequence[held.HeldPattern], budget: int) -> int:
    frontier = await SqliteFrontier.open(Layout(directory).database)
    try:
        return sum([await frontier.release(each, budget) for each in chosen])
    finally:
        await frontier.close()


def add(directory: Path, urls: Sequence[str], lists: Sequence[str]) -> ExitCode:
    """Add seeds to the crawl in *directory*."""
    if not urls and not lists:
        raise ConfigError(
            "no URL: give one or more, or --seeds FILE; for example: archiver add DIR https://example.org/"
        )
    given = gathered(urls, lists, ())
    _check(directory)
    with _held(directory) as running:
        count, changed = asyncio.run(_added(directory, given, running=running))
    known = f"; {len(given.urls) - count} already there" if count < len(given.urls) else ""
    if changed:
        known += f", {changed} of them with other settings from the next archiver resume on"
    result(f"{humanize.count(count, 'seed')} added{known}{_next(count, running=running)}")
    return ExitCode.DONE


def _check(directory: Path) -> Settings:
    """Refuse what holds no crawl that could be changed; the settings of the one that there is."""
    place.check_is_directory(directory)
    layout = Layout(directory)
    if not place.holds_crawl(directory):
        raise ConfigError(totals.without_crawl(directory))
    settings = with_values(Settings(), place.read_settings(layout.settings))
    if not layout.database.exists() or not totals.begun(directory):
        raise ConfigError(
            f"{directory}: its crawl has not begun; archiver resume begins it, and then it can be changed"
        )
    return settings


def _known(directory: Path, urls: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """*urls* in the spelling of the crawl; refuses those that it does not know: nothing would be done."""
    with totals.open_totals(directory) as db:
        found = [meant(db, text, settings) for text in urls]
        for address in found:
            if url_lookup.known(db, address) is None:
                other = with_other_scheme(db, address, settings)
                right = (
                    f"{other} is in it"
                    if other and url_lookup.known(db, other)
                    else "archiver explain says why, archiver add makes it a seed"
                )
                raise ConfigError(f"{address} is not in the crawl, so it cannot be tried again; {right}")
    for text, address in zip(urls, found, strict=True):
        tell_scheme(text, address)
    return tuple(dict.fromkeys(found))


def _check_hosts(directory: Path, hosts: Sequence[str]) -> None:
    """Refuse names that the crawl does not know, as above."""
    with totals.open_totals(directory) as db:
        for host in hosts:
            if not url_lookup.keys(db, host):
                raise ConfigError(f"--host {host}: the crawl knows no such host; right would be a name as example.org")


@contextmanager
def _held(directory: Path) -> Iterator[bool]:
    """The crawl is ours, or another process works in it: whether one does."""
    layout = Layout(directory)
    try:
        lock = Lock(layout.lock)
    except ConfigError:
        if layout.database.with_name(f"{layout.database.name}{DRAFT}").exists():
            raise ConfigError(f"{layout.database} is being made anew; call again when that is done") from None
        yield True
        return
    try:
        yield False
    finally:
        lock.release()


async def _again(directory: Path, wanted: Selection) -> int:
    frontier = await SqliteFrontier.open(Layout(directory).database)
    try:
        return await frontier.again(wanted)
    finally:
        await frontier.close()


async def _added(directory: Path, given: SeedList, *, running: bool) -> tuple[int, int]:
    """How many seeds are new, and how many that are not have other settings now.

    crawl.toml first: what it names is never forgotten, whatever happens before the database has it.
    """
    layout = Layout(directory)
    frontier = await SqliteFrontier.open(layout.database)
    try:
        async with frontier.alone():
            settings = with_values(Settings(), place.read_settings(layout.settings))
            changed = _with_seeds(settings, given)
            if changed != settings:
                put_settings(layout, toml.render(changed))
        now = time.time()
        there = set(settings.seeds)
        others = sum(one.url in there and one not in settings.scope.seed_setting for one in given.own)
        return await frontier.add_seeds(given.urls, now + GRACE if running else now), others
    finally:
        await frontier.close()


def _with_seeds(settings: Settings, given: SeedList) -> Settings:
    own = together(settings.scope.seed_setting, given.own)
    seeds = tuple(dict.fromkeys((*settings.seeds, *given.urls)))
    return replace(settings, seeds=seeds, scope=replace(settings.scope, seed_setting=own))


def _next(count: int, *, running: bool) -> str:
    if not count:
        return ""
    return "; the crawl, which is running, takes it up within seconds" if running else "; go on with archiver resume"
