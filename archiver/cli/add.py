"""`archiver add`: add seeds to a crawl, whether it is stopped or running.

Settings are read and replaced while the database is locked, so two changes cannot overwrite each other: crawl.toml, and
those in the database if several machines can crawl.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archiver import humanize
from archiver.cli.config.seeds import SeedList, combine_seed_settings, read_seeds
from archiver.cli.directory import named_crawl, resume_hint, with_file_paths
from archiver.cli.options import (
    crawl_argument,
    define_command,
    seed_lists_option,
)
from archiver.cli.terminal import result
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl, check_changeable, crawl_lock
from archiver.collection.named_files import file_uses, secret_uses, vouch
from archiver.collection.settings_file import put_settings, read_settings
from archiver.config import toml
from archiver.config.secret_settings import in_common, secret_sources
from archiver.config.seeds import SeedSetting, conflict
from archiver.config.settings import Settings, with_values
from archiver.config.tls import TLS_KEYS
from archiver.errors import ConfigError
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.frontier.connection import Connection
    from archiver.frontier.connections import Worker

AT_START = ("auth", "proxy", *TLS_KEYS)  # settings that a crawl reads when it starts


def add(place: Path | str, urls: Sequence[str], seeds: Sequence[str]) -> ExitCode:
    """Add *urls*, and the URLs in the lists *seeds*, to the crawl at *place*."""
    import asyncio

    if not urls and not seeds:
        raise ConfigError(
            "no URL: give one or more, or --seeds FILE; for example: archiver add DIR https://example.org/"
        )
    given = read_seeds(urls, seeds, ())
    crawl = named_crawl(place)
    check_changeable(crawl)
    with crawl_lock(crawl) as running:
        count, changed = asyncio.run(_add(crawl, given, running=running))
    known = f"; {len(given.urls) - count} known already" if count < len(given.urls) else ""
    if changed:
        known += f", {changed} of them with new settings from the next archiver resume on"
    result(f"{humanize.count(count, 'seed')} added{known}{resume_hint(count, crawl, running=running)}")
    return ExitCode.DONE


async def _add(crawl: NamedCrawl, given: SeedList, *, running: bool) -> tuple[int, int]:
    """Return the number of new seeds, and of known seeds whose settings have changed.

    Writes the settings first: a crash before the seeds are written cannot lose one.
    """
    from archiver.crawl.outside_changes import GRACE
    from archiver.frontier.sqlite import SqliteFrontier

    own = with_file_paths(with_values(Settings(), {"seed": given.own})).scope.seed
    given = replace(given, own=own)
    if crawl.layout is None:
        _check_kept(given, crawl)
    async with await SqliteFrontier.open(crawl.frontier) as frontier:
        async with frontier.exclusive_transaction() as writer:
            before = await _grow_common(crawl, given, writer) if crawl.address else None
            if crawl.layout is not None:
                before = _grow_file(crawl.layout, given, running=running)
            now = await writer.run(_clock) if crawl.address else time.time()
        assert before is not None
        known = set(before.seeds)
        changed = sum(one.url in known and one not in before.scope.seed for one in given.own)
        soon = running or crawl.address  # a crawl that begins at this moment must know the scope first
        return await frontier.add_seeds(given.urls, now + GRACE if soon else now), changed


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


async def _grow_common(crawl: NamedCrawl, given: SeedList, writer: "Worker") -> Settings | None:
    """Add seeds to the settings that all machines have in common; return those that they had, None if there are none.

    The directory of *crawl* goes on to agree with them if it did before.
    """
    from archiver.frontier import machines
    from archiver.frontier.address import shared_frontier, write_address

    revision, text, _ = await writer.run(machines.settings)
    if not text:
        return None
    before = with_values(Settings(), toml.parse(text, "the settings in the database"))
    new = in_common(_with_seeds(before, given))
    if new != before:
        newest = await writer.run(machines.put_settings, toml.render(new), revision)
        here = None if crawl.layout is None else shared_frontier(crawl.layout.database)
        if crawl.layout is not None and here is not None and here.revision == revision:
            write_address(crawl.layout.database, here.address, here.machine, newest)
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


COMMAND = define_command(
    "add",
    add,
    """Add seeds to a crawl.

    The seeds are written to DIR/crawl.toml, and the scope grows with them. A running crawl starts on them within
    seconds; otherwise archiver resume does. A URL that the crawl knows, but not as a seed, is fetched again.
    """,
    [
        crawl_argument(),
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        seed_lists_option(),
    ],
    ("archiver add collections/example.org https://blog.example.org/", "add a site to the same archive"),
    ("archiver add collections/example.org --seeds more.txt", "add the seeds in a file"),
)
