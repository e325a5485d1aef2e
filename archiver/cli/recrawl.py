"""`archiver recrawl`: crawl a site again into the collection that holds it."""

from pathlib import Path
from typing import Any

from archiver.cli.options import crawl_options, define_command, directory_argument, given_settings, verbosity


def _run(directory: Path, **rest: Any) -> int:
    from archiver.cli.start import CrawlRequest, recrawl

    return recrawl(directory, CrawlRequest((), (), None, None, given_settings(rest), verbosity(rest)))


COMMAND = define_command(
    "recrawl",
    _run,
    """Crawl a site again into the same collection, so that you can replay each date.

    The seeds and settings are those of DIR/crawl.toml; options override them. Where a server supports it (ETag,
    Last-Modified), archiver requests only what has changed, and never stores an unchanged payload twice. It also
    requests URLs of earlier crawls that are no longer linked. DIR/reports/changes.tsv lists what is new, changed, gone
    and unchanged. The database, settings and reports of earlier crawls are kept in DIR/crawls.
    """,
    [directory_argument(), *crawl_options()],
    ("archiver recrawl collections/example.org", "archive the same site again, as it is today"),
    ("archiver recrawl collections/example.org --no-conditional", "request every body again"),
)
