"""`archiver crawl`: start a crawl in a new directory."""

from pathlib import Path
from typing import Any

import click

from archiver.cli.options import (
    crawl_options,
    define_command,
    given_settings,
    output_option,
    seed_lists_option,
    verbosity,
)


def _run(urls: tuple[str, ...], seeds: tuple[str, ...], output: Path | None, since: Path | None, **rest: Any) -> int:
    from archiver.cli.start import CrawlRequest, crawl, recrawl

    request = CrawlRequest(urls, seeds, output, rest["config"], given_settings(rest), verbosity(rest))
    return crawl(request) if since is None else recrawl(since, request)


COMMAND = define_command(
    "crawl",
    _run,
    """Archive one or more sites, starting from seed URLs.

    Crawls breadth first and fetches the images, styles and scripts of a page before the next page. The crawl ends when
    no URL is left. Press Ctrl+C to stop: requests in flight finish, and archiver resume continues later.
    """,
    [
        click.Argument(["urls"], nargs=-1, metavar="[URL]..."),
        output_option("DIR", "Write the crawl to DIR. Default: collections/ and the host of the first seed."),
        click.Option(
            ["--since"],
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Crawl the site in DIR again, into DIR, as archiver recrawl does, with these URLs as seeds.",
        ),
        seed_lists_option(),
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Read settings from a file such as crawl.toml. Options override it.",
        ),
        *crawl_options(),
    ],
    ("archiver crawl https://example.org/", "archive one host into collections/example.org"),
    ("archiver crawl --scope prefix https://example.org/blog/ -o blog", "archive one part of a site into ./blog"),
    ("archiver crawl --seeds list.txt --scope page", "archive only the pages listed, with their images and styles"),
    (
        "archiver crawl --rate 30/60 --host-concurrency 1 --contact me@example.org https://example.org/",
        "send fewer requests: 30 per minute, one at a time",
    ),
    (
        "archiver crawl --exclude '/calendar/' --max-depth 5 --max-time 3600 https://example.org/",
        "leave out a part of the site, and stop after an hour",
    ),
    (
        "archiver crawl --since collections/example.org https://example.org/news/",
        "crawl a site again from another seed",
    ),
)
