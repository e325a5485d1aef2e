"""`archiver add`: add seeds to a crawl, whether it is stopped or running.

crawl.toml is read and replaced while the database is locked, so two changes cannot overwrite each other.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from archiver import humanize
from archiver.cli.directory import check_changeable, crawl_lock, read_settings, resume_hint, with_tls_paths
from archiver.cli.options import (
    SeedList,
    combine_seed_settings,
    define_command,
    directory_argument,
    read_seeds,
    seed_lists_option,
)
from archiver.cli.terminal import result
from archiver.collection.layout import Layout
from archiver.collection.named_files import secret_uses, tls_uses, vouch
from archiver.config import toml
from archiver.config.secret_settings import secret_sources
from archiver.config.seeds import conflict
from archiver.config.settings import Settings, with_values
from archiver.config.tls import TLS_KEYS
from archiver.errors import ConfigError
from archiver.model import ExitCode

AT_START = ("auth", "proxy", *TLS_KEYS)  # settings that a crawl reads when it starts


def add(directory: Path, urls: Sequence[str], seeds: Sequence[str]) -> ExitCode:
    """Add *urls*, and the URLs in the lists *seeds*, to the crawl in *directory*."""
    import asyncio

    if not urls and not seeds:
        raise ConfigError(
            "no URL: give one or more, or --seeds FILE; for example: archiver add DIR https://example.org/"
        )
    given = read_seeds(urls, seeds, ())
    check_changeable(directory)
    with crawl_lock(directory) as running:
        count, changed = asyncio.run(_add(directory, given, running=running))
    known = f"; {len(given.urls) - count} known already" if count < len(given.urls) else ""
    if changed:
        known += f", {changed} of them with new settings from the next archiver resume on"
    result(f"{humanize.count(count, 'seed')} added{known}{resume_hint(count, running=running)}")
    return ExitCode.DONE


async def _add(directory: Path, given: SeedList, *, running: bool) -> tuple[int, int]:
    """Return the number of new seeds, and of known seeds whose settings have changed.

    Writes crawl.toml first: a crash before the database is written cannot lose a seed.
    """
    from archiver.crawl.outside_changes import GRACE
    from archiver.crawl.rules import put_settings
    from archiver.frontier.sqlite import SqliteFrontier

    layout = Layout(directory)
    async with await SqliteFrontier.open(layout.database) as frontier:
        async with frontier.exclusive_transaction():
            settings = with_values(Settings(), read_settings(layout.settings))
            own = with_tls_paths(with_values(Settings(), {"seed": given.own})).scope.seed
            given = replace(given, own=own)
            new = _with_seeds(settings, given)
            if running:
                _check_running(new, given)
            if new != settings:
                put_settings(layout, toml.render(new))
                secrets = set(secret_uses(new)).difference(secret_uses(settings))
                vouch(layout, (*tls_uses(with_values(Settings(), {"seed": own})), *sorted(secrets)))
        now = time.time()
        known = set(settings.seeds)
        changed = sum(one.url in known and one not in settings.scope.seed for one in given.own)
        return await frontier.add_seeds(given.urls, now + GRACE if running else now), changed


def _check_running(settings: Settings, given: SeedList) -> None:
    """Refuse settings of *given* that a crawl reads when it starts, because they protect what it sends."""
    for own in settings.scope.seed:
        if own.url in given.urls:
            key = next((key for key, _ in own.given if key in AT_START), "")
            if key or secret_sources(with_values(Settings(), {"seed": (own,)})):
                what = key or "a header with a secret from elsewhere"
                raise ConfigError(f"{own.url}: {what} cannot be given to a crawl that runs; stop it, add, and resume")


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
        directory_argument(),
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        seed_lists_option(),
    ],
    ("archiver add collections/example.org https://blog.example.org/", "add a site to the same archive"),
    ("archiver add collections/example.org --seeds more.txt", "add the seeds in a file"),
)
