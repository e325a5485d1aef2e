"""`archiver add`: add seeds to a crawl, whether it is stopped or running."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from archiver.cli.config.named_files import with_file_paths
from archiver.cli.directory import named_crawl, resume_hint
from archiver.cli.options import crawl_argument, define_command, seed_lists_option
from archiver.cli.terminal import result
from archiver.collection.orders.add import add_seeds
from archiver.config.seeds import read_seed
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.humanize import printable
from archiver.model import ExitCode

LONGEST = 10_000  # characters of an answer


def add(place: Path | str, urls: Sequence[str], seeds: Sequence[str]) -> ExitCode:
    """Add *urls*, and the URLs in the lists *seeds*, to the crawl at *place*."""
    if not urls and not seeds:
        raise ConfigError(
            "no URL: give one or more, or --seeds FILE; for example: archiver add DIR https://example.org/"
        )
    from archiver.cli.config.seeds import read_seeds

    given = read_seeds(urls, seeds, ())
    crawl = named_crawl(place)
    given = replace(given, own=with_file_paths(with_values(Settings(), {"seed": given.own})).scope.seed)
    lists = [
        f"--seeds={Path(name.partition('?')[0]).name}" for name in seeds
    ]  # neither paths of this machine nor secrets
    added = add_seeds(crawl, given, (*lists, *(read_seed(text)[0] for text in urls)))
    result(f"{printable(added.order.answer, LONGEST)}{resume_hint(added.urls, crawl, running=added.running)}")
    return ExitCode.DONE


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
