"""`archiver exclude`, `include` and `first`: take out, bring in or put first the URLs that match a pattern."""

from collections.abc import Sequence
from pathlib import Path

import click

from archiver.cli.directory import named_crawl
from archiver.cli.options import crawl_argument, define_command
from archiver.cli.orders.giving import give_and_print
from archiver.cli.terminal import results
from archiver.collection.orders.give import Preview, preview
from archiver.config.option_types import words_of
from archiver.config.presets import WITHOUT
from archiver.errors import ConfigError
from archiver.frontier.orders.table import Verb
from archiver.humanize import printable
from archiver.model import ExitCode

LONGEST = 2000  # characters of a URL


def exclude(
    place: Path | str, regex: str | None, *, without: Sequence[str] = (), dry_run: bool, undo: bool
) -> ExitCode:
    """Exclude URLs of the crawl at *place* that match *regex* or are on a list; or say which, or take that back."""
    lists = dict.fromkeys(WITHOUT + name for name in words_of(without))
    rules = [*([] if regex is None else [regex]), *lists]
    if not rules:
        raise ConfigError("nothing to exclude: give a regular expression, or --without with an exclude list")
    if not _looks(dry_run=dry_run, undo=undo):
        return max(give_and_print(place, Verb.EXCLUDE, (rule,), undo=undo) for rule in rules)
    for rule in rules:
        found = preview(named_crawl(place), Verb.EXCLUDE, rule)
        head = f"{_part(found)} waiting URLs would be excluded; {found.archived:,} archived URLs match too, and stay"
        _show(head if len(rules) == 1 else f"{rule}: {head}", found)
    return ExitCode.DONE


def include(place: Path | str, regex: str, *, dry_run: bool, undo: bool) -> ExitCode:
    """Bring URLs that match *regex* into the crawl at *place*; or say which, or take that back."""
    if not _looks(dry_run=dry_run, undo=undo):
        return give_and_print(place, Verb.INCLUDE, (regex,), undo=undo)
    found = preview(named_crawl(place), Verb.INCLUDE, regex)
    warning = f"; {found.warning}" if found.warning else ""
    return _show(f"{_part(found)} refused and excluded URLs would wait{warning}", found)


def _looks(*, dry_run: bool, undo: bool) -> bool:
    if dry_run and undo:
        raise ConfigError("--dry-run cannot be used with --undo")
    return dry_run


def _part(found: Preview) -> str:
    return f"{found.matching:,} of {'' if found.complete else 'the first '}{found.of:,}"


def _show(head: str, found: Preview) -> ExitCode:
    results((head, *(printable(address, LONGEST) for address in found.examples)))
    return ExitCode.DONE


def first(place: Path | str, regex: str) -> ExitCode:
    """Let waiting URLs of the crawl at *place* that match *regex* go first."""
    return give_and_print(place, Verb.FIRST, (regex,))


COMMAND = define_command(
    "exclude",
    exclude,
    """Exclude URLs from a crawl, including queued ones.

    REGEX becomes a rule in DIR/crawl.toml, like one of --exclude; a ready-made list becomes one of --without. A running
    crawl applies it within seconds; then waiting URLs that match are excluded. Requests in flight finish. Seeds and
    archived URLs stay. Prints the number of URLs.

    archiver urls --state excluded lists the URLs, archiver retry DIR URL still fetches one of them.
    """,
    [
        crawl_argument(),
        click.Argument(["regex"], metavar="[REGEX]", required=False),
        click.Option(
            ["--without"],
            multiple=True,
            metavar="SET[,SET]",
            help="Exclude the URLs on these ready-made lists; see docs/reference/exclude-lists.md.",
        ),
        click.Option(["--dry-run"], is_flag=True, help="Print what would be excluded, and change nothing."),
        click.Option(["--undo"], is_flag=True, help="Remove the rule, and queue exactly the URLs that it excluded."),
    ],
    ("archiver exclude collections/example.org '/calendar/' --dry-run", "see what a rule would exclude"),
    ("archiver exclude collections/example.org '/calendar/'", "exclude it"),
    ("archiver exclude collections/example.org '/calendar/' --undo", "undo that"),
    ("archiver exclude collections/example.org --without wikis", "exclude forms and histories of a wiki"),
)

INCLUDE = define_command(
    "include",
    include,
    """Include URLs that the rules of a crawl leave out.

    REGEX becomes a rule in DIR/crawl.toml, like one of --include. A running crawl applies it within seconds. Then all
    rules are applied again to refused links, and to URLs that archiver exclude removed and no rule excludes any more.
    Those that match and are accepted are queued. Rules that exclude, limits of depth and robots.txt still hold.

    Only a sample of the refused links is kept, a thousand per rule and host. The others are found again only when their
    pages are fetched again: archiver retry DIR --status 2xx, or archiver recrawl DIR. Prints how many there are.
    """,
    [
        crawl_argument(),
        click.Argument(["regex"], metavar="REGEX"),
        click.Option(["--dry-run"], is_flag=True, help="Print what would be queued, and change nothing."),
        click.Option(
            ["--undo"],
            is_flag=True,
            help="Remove the rule, and exclude the waiting URLs that it added. What was fetched stays.",
        ),
    ],
    ("archiver include collections/example.org '//docs\\.example\\.net/' --dry-run", "see what a rule would add"),
    ("archiver include collections/example.org '//docs\\.example\\.net/'", "fetch it"),
    ("archiver include collections/example.org '//docs\\.example\\.net/' --undo", "undo that"),
)

FIRST = define_command(
    "first",
    first,
    """Fetch some waiting URLs before the others.

    Waiting URLs that match REGEX go before all other pages of their hosts. A running crawl obeys within seconds. Links
    that are found later keep their usual order. Prints the number of URLs.
    """,
    [crawl_argument(), click.Argument(["regex"], metavar="REGEX")],
    ("archiver first collections/example.org '/news/2026/'", "fetch these before the rest"),
)
