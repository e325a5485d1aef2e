"""`archiver recrawl`, and `archiver crawl --since`: crawl a site again into the collection that holds it.

Everything is checked before the previous crawl is set aside. `archiver.crawl.recrawl` says how that is done.
"""

import asyncio
from pathlib import Path
from typing import Any

from archiver.cli.directory import (
    check_dedup_sources,
    check_is_directory,
    check_resumable,
    finish_switch_over,
    settings_text,
)
from archiver.cli.options import (
    define_command,
    directory_argument,
    given_settings,
    setting_options,
    verbosity,
    verbosity_options,
)
from archiver.cli.start import (
    SILENT,
    CrawlRequest,
    ExistingCrawl,
    check_disk_space,
    new_settings,
    run_and_report,
    with_absolute_paths,
)
from archiver.cli.terminal import complain
from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.model import ExitCode


def recrawl(directory: Path, request: CrawlRequest) -> ExitCode:
    """Crawl the site in *directory* again, with its settings and seeds for all that *request* does not set."""
    if request.output is not None and request.output.resolve() != directory.resolve():
        raise ConfigError(
            f"-o {request.output}: a crawl since {directory} is written to that directory, so that both replay "
            "together; leave out -o"
        )
    check_is_directory(directory)
    finish_switch_over(directory)
    check_resumable(directory)
    layout = Layout(directory)
    read = settings_text(layout.settings)
    before = toml.parse(read, str(layout.settings))
    settings = new_settings(request, before)
    check_dedup_sources(directory, settings, request.given)
    settings = with_absolute_paths(settings, directory)
    check_disk_space(directory, settings)
    from archiver.crawl.recrawl import set_aside  # noqa: PLC0415 - slow to import; bad input is refused without it

    left = asyncio.run(set_aside(directory, with_values(Settings(), before), toml.render(settings), read))
    if left is not None and left.waiting and request.verbosity > SILENT:
        complain(
            f"the previous crawl ends with {left.waiting} URLs still queued; its database is kept in "
            f"{layout.earlier / left.stamp}"
        )
    return run_and_report(directory, settings, request.verbosity, ExistingCrawl(resume=False))


def _run(directory: Path, **rest: Any) -> int:
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
    [directory_argument(), *setting_options(), *verbosity_options()],
    ("archiver recrawl collections/example.org", "archive the same site again, as it is today"),
    ("archiver recrawl collections/example.org --no-conditional", "request every body again"),
)
