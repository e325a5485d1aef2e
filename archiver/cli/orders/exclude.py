"""`archiver exclude` and `archiver first`: exclude the waiting URLs that match a pattern, or fetch them first."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archiver.cli.directory import check_changeable, named_crawl
from archiver.cli.options import crawl_argument, define_command
from archiver.cli.orders.giving import Wanted, give
from archiver.cli.terminal import result
from archiver.collection.named_crawl import NamedCrawl
from archiver.config.live_settings import with_exclude
from archiver.config.option_types import PATTERN, Pattern
from archiver.errors import ConfigError
from archiver.frontier.orders import excluding
from archiver.frontier.orders.table import UNDO, Verb
from archiver.humanize import count, printable
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.frontier.sqlite import SqliteFrontier

EXAMPLES = 10  # URLs that are printed
PREVIEW = 5.0  # seconds for each part of a preview
LONGEST = 2000  # characters of a URL


def exclude(place: Path | str, regex: str, *, dry_run: bool, undo: bool) -> ExitCode:
    """Exclude URLs of the crawl at *place* that match *regex*; or say which, or take that back."""
    if dry_run and undo:
        raise ConfigError("--dry-run cannot be used with --undo")
    matches = matching(regex)
    crawl = named_crawl(place)
    settings = check_changeable(crawl)
    if undo and regex not in settings.scope.exclude:
        raise ConfigError(f"{printable(regex, LONGEST)} is not a rule of this crawl; its crawl.toml has them all")
    if dry_run:
        return preview(crawl, matches)
    change = partial(with_exclude, regex=regex, undo=undo)
    work = partial(_taken_back, regex=regex) if undo else partial(_excluded, regex=regex, matches=matches)
    return give(place, Wanted(Verb.EXCLUDE, (regex, UNDO) if undo else (regex,), "in force", change, work))


def matching(regex: str) -> Callable[[str], bool]:
    """Return whether the scope refuses a URL by *regex*; one that takes too long is refused too."""
    try:
        pattern = Pattern("exclude", PATTERN.parse(regex))
    except ConfigError as error:
        raise ConfigError(f"REGEX: {error}") from None
    return lambda address: bool(pattern.found_in(address))


async def _excluded(frontier: "SqliteFrontier", regex: str, matches: Callable[[str], bool]) -> str:
    return f"{count(await frontier.exclude(regex, matches), 'waiting URL')} excluded"


async def _taken_back(frontier: "SqliteFrontier", regex: str) -> str:
    return f"{count(await frontier.take_back(regex), 'URL')} wait again"


def first(place: Path | str, regex: str) -> ExitCode:
    """Let waiting URLs of the crawl at *place* that match *regex* go first."""
    work = partial(_put_first, matches=matching(regex))
    return give(place, Wanted(Verb.FIRST, (regex,), "in force", work=work))


async def _put_first(frontier: "SqliteFrontier", matches: Callable[[str], bool]) -> str:
    return f"{count(await frontier.put_first(matches), 'waiting URL')} put first"


def preview(crawl: NamedCrawl, matches: Callable[[str], bool]) -> ExitCode:
    """Print what the rule would exclude."""
    with crawl.read() as db:
        waiting, found, examples = _counted(excluding.pages(db, excluding.WAITING, matches))
        _, archived, _ = _counted(excluding.pages(db, excluding.ARCHIVED, matches))
    result(f"{found:,} of {waiting} waiting URLs would be excluded; {archived:,} archived URLs match too, and stay")
    for address in examples:
        result(printable(address, LONGEST))
    return ExitCode.DONE


def _counted(pages: Iterator[excluding.Page]) -> tuple[str, int, list[str]]:
    """Return how many URLs were looked at, in words, how many match, and examples of these."""
    end, seen, found, examples = time.monotonic() + PREVIEW, 0, 0, list[str]()
    for page in pages:
        seen, found = seen + page.seen, found + len(page.found)
        examples += [address for _, address in page.found[: EXAMPLES - len(examples)]]
        if time.monotonic() > end:
            return f"the first {seen:,}", found, examples
    return f"{seen:,}", found, examples


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
