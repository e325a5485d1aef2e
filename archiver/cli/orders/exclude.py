"""`archiver exclude` and `archiver first`: exclude the waiting URLs that match a pattern, or fetch them first."""

from pathlib import Path

import click

from archiver.cli.directory import named_crawl
from archiver.cli.options import crawl_argument, define_command
from archiver.cli.orders.giving import give_and_print
from archiver.cli.terminal import results
from archiver.collection.orders import preview
from archiver.errors import ConfigError
from archiver.frontier.orders.table import Verb
from archiver.humanize import printable
from archiver.model import ExitCode

LONGEST = 2000  # characters of a URL


def exclude(place: Path | str, regex: str, *, dry_run: bool, undo: bool) -> ExitCode:
    """Exclude URLs of the crawl at *place* that match *regex*; or say which, or take that back."""
    if dry_run and undo:
        raise ConfigError("--dry-run cannot be used with --undo")
    if not dry_run:
        return give_and_print(place, Verb.EXCLUDE, (regex,), undo=undo)
    found = preview(named_crawl(place), Verb.EXCLUDE, regex)
    of = f"{found.of:,}" if found.complete else f"the first {found.of:,}"
    head = f"{found.matching:,} of {of} waiting URLs would be excluded; {found.archived:,} archived URLs match too"
    results((f"{head}, and stay", *(printable(address, LONGEST) for address in found.examples)))
    return ExitCode.DONE


def first(place: Path | str, regex: str) -> ExitCode:
    """Let waiting URLs of the crawl at *place* that match *regex* go first."""
    return give_and_print(place, Verb.FIRST, (regex,))


COMMAND = define_command(
    "exclude",
    exclude,
    """Exclude URLs of a crawl, also those that wait.

    REGEX becomes a rule of DIR/crawl.toml, as --exclude would. A running crawl takes it up within seconds; then waiting
    URLs that match are excluded. Requests under way end as usual. Seeds and archived URLs stay. Prints the number.

    archiver urls --state excluded lists the URLs, archiver retry DIR URL fetches one of them nevertheless.
    """,
    [
        crawl_argument(),
        click.Argument(["regex"], metavar="REGEX"),
        click.Option(["--dry-run"], is_flag=True, help="Print what would be excluded, and change nothing."),
        click.Option(["--undo"], is_flag=True, help="Remove the rule, and queue exactly the URLs that it excluded."),
    ],
    ("archiver exclude collections/example.org '/calendar/' --dry-run", "look what a rule would exclude"),
    ("archiver exclude collections/example.org '/calendar/'", "exclude it"),
    ("archiver exclude collections/example.org '/calendar/' --undo", "take that back"),
)

FIRST = define_command(
    "first",
    first,
    """Put waiting URLs of a crawl first.

    Waiting URLs that match REGEX go before all other pages of their hosts. A running crawl does that within seconds.
    Links that are found later go in their turn. Prints the number.
    """,
    [crawl_argument(), click.Argument(["regex"], metavar="REGEX")],
    ("archiver first collections/example.org '/news/2026/'", "fetch these before the rest"),
)
