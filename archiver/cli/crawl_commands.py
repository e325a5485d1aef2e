"""The commands that make a crawl, go on with it, or change what it is to do."""

from pathlib import Path
from typing import Any

import click

from archiver.cli.options import (
    command,
    directory,
    given_settings,
    host_option,
    last_status,
    lists,
    output,
    setting_options,
    verbosity,
    voices,
)
from archiver.errors import ConfigError, Failure


def _crawl(urls: tuple[str, ...], seeds: tuple[str, ...], output: Path | None, since: Path | None, **rest: Any) -> int:
    from archiver.cli.crawl import CrawlRequest, crawl, recrawl  # noqa: PLC0415 - see `command`

    wish = CrawlRequest(urls, seeds, output, rest["config"], given_settings(rest), verbosity(rest))
    return crawl(wish) if since is None else recrawl(since, wish)


def _recrawl(directory: Path, **rest: Any) -> int:
    from archiver.cli.crawl import CrawlRequest, recrawl  # noqa: PLC0415 - see `command`

    return recrawl(directory, CrawlRequest((), (), None, None, given_settings(rest), verbosity(rest)))


def _resume(directory: Path, **rest: Any) -> int:
    from archiver.cli.crawl import resume  # noqa: PLC0415 - see `command`

    return resume(directory, given_settings(rest), verbosity(rest))


def _retry(directory: Path, urls: tuple[str, ...], *, blocked: bool, held: bool, **chosen: tuple[str, ...]) -> int:
    from archiver.cli.retry import Retry, retry, retry_held  # noqa: PLC0415 - see `command`

    if held:
        if blocked or any(chosen.values()):
            raise ConfigError(
                "--held: does not go with --host, --status, --failure or --blocked; right would be "
                "archiver retry DIR --held [PATTERN]"
            )
        return retry_held(directory, urls)
    return retry(directory, Retry(urls, chosen["host"], chosen["status"], chosen["failure"], blocked))


def _add_seeds(directory: Path, urls: tuple[str, ...], seeds: tuple[str, ...]) -> int:
    from archiver.cli.retry import add  # noqa: PLC0415 - see `command`

    return add(directory, urls, seeds)


def _rebuild(directory: Path) -> int:
    from archiver.cli.rebuild import rebuild  # noqa: PLC0415 - see `command`

    return rebuild(directory)


_CRAWL = command(
    "crawl",
    _crawl,
    """Archive a site, or several, each from a seed URL.

    Crawls breadth first, with what a page needs before the next page, and ends by itself when nothing is left. Ctrl+C
    lets requests in flight finish and ends in order; archiver resume goes on.
    """,
    [
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        output("DIR", "Where to put the crawl. Default: collections/ and the host of the first seed."),
        click.Option(
            ["--since"],
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Crawl again what is archived in DIR, into DIR, as archiver recrawl DIR does; URLs are its seeds.",
        ),
        lists(),
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Take settings from a file such as crawl.toml; options go before it.",
        ),
        *setting_options(),
        *voices(),
    ],
    ("archiver crawl https://example.org/", "archive one host into collections/example.org"),
    ("archiver crawl --scope prefix https://example.org/blog/ -o blog", "one part of a site, into ./blog"),
    ("archiver crawl --seeds list.txt --scope page", "only the pages listed, with what they need to be shown"),
    (
        "archiver crawl --rate 30/60 --host-concurrency 1 --contact me@example.org https://example.org/",
        "more gently",
    ),
    ("archiver crawl --exclude '/calendar/' --max-depth 5 --max-time 3600 https://example.org/", "within limits"),
    ("archiver crawl --since collections/example.org https://example.org/news/", "again, with another seed"),
)
_RESUME = command(
    "resume",
    _resume,
    """Go on with a crawl that was stopped, was killed, or has reached a limit.

    The settings are those of DIR/crawl.toml; options given here go before them and are written back.
    """,
    [directory(), *setting_options(), *voices()],
    ("archiver resume collections/example.org", "go on"),
    ("archiver resume collections/example.org --max-urls 100000 --rate 10", "go on with other settings"),
)
_RECRAWL = command(
    "recrawl",
    _recrawl,
    """Crawl again what is archived in DIR, into DIR, so that each date can be replayed.

    The seeds and settings are those of DIR/crawl.toml; options given here go before them. Servers are asked only for
    what has changed, where they can tell (ETag, Last-Modified); what they say has not changed is not stored twice. What
    was archived and is linked no more is asked for too. DIR/reports/changes.tsv says what is new, changed, gone and
    unchanged. What belongs to the crawl before alone is kept in DIR/crawls.
    """,
    [directory(), *setting_options(), *voices()],
    ("archiver recrawl collections/example.org", "the same site once more, as it is today"),
    ("archiver recrawl collections/example.org --no-conditional", "with every body sent again"),
)
_RETRY = command(
    "retry",
    _retry,
    """Queue URLs again that failed, or whose answer is not the one you want.

    All that failed or were excluded; with --status or --blocked also archived ones that were answered so; or the URLs
    given, whatever became of them. Where a robots.txt was in the way, it is asked for again first. Tries count from 0.
    A crawl that runs takes them up within seconds; otherwise archiver resume does. Prints how many they are.

    With --held: URLs that were held as a suspected trap, all of them, or those of a PATTERN that archiver status
    names. The pages that named them are not fetched again, and their pattern gets another budget.
    """,
    [
        directory(),
        click.Argument(["urls"], nargs=-1, metavar="[URL|PATTERN]..."),
        click.Option(
            ["--held"], is_flag=True, help="Those that were held as a suspected trap, of these PATTERNs or all."
        ),
        host_option(),
        last_status(),
        click.Option(
            ["--failure"],
            multiple=True,
            type=click.Choice([failure.value for failure in Failure]),
            help="Only those that failed in this way. May be given more than once.",
        ),
        click.Option(
            ["--blocked"],
            is_flag=True,
            help="Only those whose last answer was a challenge or block page, archived as it came.",
        ),
    ],
    ("archiver retry collections/example.org", "all that failed or were excluded"),
    ("archiver retry collections/example.org --status 5xx,429", "what the server could not answer then"),
    ("archiver retry collections/example.org --blocked", "what the site refused to show us"),
    ("archiver retry collections/example.org --host img.example.org --failure timeout", "one host that was down"),
    ("archiver retry collections/example.org https://example.org/a", "this URL, archived or not"),
    ("archiver retry collections/example.org --held", "all that was held as a suspected trap"),
    ("archiver retry collections/example.org --held 'https://example.org/item/N'", "what is held of this pattern"),
)
_ADD = command(
    "add",
    _add_seeds,
    """Add seeds to a crawl, stopped or running.

    They are written to DIR/crawl.toml, and the scope grows with them. A crawl that runs takes them up within seconds;
    otherwise archiver resume does. A URL that the crawl knows already, but not as a seed, is visited once more.
    """,
    [
        directory(),
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        lists(),
    ],
    ("archiver add collections/example.org https://blog.example.org/", "one more site into the same archive"),
    ("archiver add collections/example.org --seeds more.txt", "those listed"),
)
_REBUILD = command(
    "rebuild",
    _rebuild,
    """Make DIR/crawl.db anew from the WARC files, where it is lost or damaged.

    Every visit that lies whole in a WARC file is known again, and archiver resume goes on where the crawl was; what was
    damaged is fetched again then. Nothing is deleted: the old database, and what is damaged in a WARC file, is kept
    in DIR/damaged. The index is made anew too, and crawl.toml where it is missing.
    """,
    [directory()],
    ("archiver rebuild collections/example.org", "then: archiver resume collections/example.org"),
)

COMMANDS = (_CRAWL, _RESUME, _RECRAWL, _RETRY, _ADD, _REBUILD)
