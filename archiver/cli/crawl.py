"""`archiver crawl`, `resume` and `recrawl`: start a crawl, continue it, and crawl a site again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archiver.cli.config.setting_options import crawl_options, profile_option, setting_options
from archiver.cli.options import (
    config_option,
    define_command,
    directory_argument,
    output_option,
    seed_lists_option,
    verbosity,
    verbosity_options,
)
from archiver.cli.watch.beside import watch_options, watch_request
from archiver.cli.watch.metrics import metrics_options, metrics_request
from archiver.config.secret_settings import OF_EACH_MACHINE

if TYPE_CHECKING:
    from archiver.cli.start import CrawlRequest


def _crawl(urls: tuple[str, ...], seeds: tuple[str, ...], output: Path | None, since: Path | None, **rest: Any) -> int:
    from archiver.cli.config.sources import given_by_user
    from archiver.cli.start import CrawlRequest, crawl, recrawl

    request = CrawlRequest(
        urls,
        seeds,
        output,
        given_by_user(rest),
        verbosity(rest),
        rest["load_cookies"],
        watch=watch_request(rest),
        metrics=metrics_request(rest),
    )
    return crawl(request) if since is None else recrawl(since, request)


TRUST = click.Option(
    ["--trust-settings"],
    is_flag=True,
    help="Open the files and send the secrets that crawl.toml names, even if someone else wrote it, or you by hand.",
)


COMMAND = define_command(
    "crawl",
    _crawl,
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
            help="Crawl again into the collection DIR, as archiver recrawl does, but from these URLs.",
        ),
        seed_lists_option(),
        config_option("Read settings from a file such as crawl.toml. Options override it."),
        profile_option(),
        *crawl_options(),
        *watch_options(),
        *metrics_options(),
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
    ("archiver crawl --keep-status 2xx https://example.org/", "download no long error pages"),
    ("archiver crawl --profile gentle https://example.org/", "spare a small server"),
    ("archiver crawl --metrics 9321 https://example.org/", "serve metrics at http://127.0.0.1:9321/metrics"),
    (
        "archiver crawl --since collections/example.org https://example.org/news/",
        "crawl a site again from another seed",
    ),
)


def _resume(directory: Path, **rest: Any) -> int:
    from archiver.cli.start import resume

    return resume(directory, _request(rest))


def _request(given: dict[str, Any]) -> "CrawlRequest":
    """Return the request to go on with a crawl that is there already."""
    from archiver.cli.config.sources import given_by_user
    from archiver.cli.start import CrawlRequest

    cookies, trusted = given["load_cookies"], given["trust_settings"]
    watch, metrics = watch_request(given), metrics_request(given)
    return CrawlRequest((), (), None, given_by_user(given), verbosity(given), cookies, trusted, watch, metrics)


RESUME = define_command(
    "resume",
    _resume,
    """Continue a crawl after Ctrl+C, a crash or a limit.

    The settings are those of DIR/crawl.toml. Options override them and are written back.
    """,
    [directory_argument(), *crawl_options(), *watch_options(), *metrics_options(), TRUST],
    ("archiver resume collections/example.org", "continue"),
    ("archiver resume collections/example.org --max-urls 100000 --rate 10", "continue with other settings"),
)


def _join(address: str, output: Path | None, name: str, **rest: Any) -> int:
    from archiver.cli.config.sources import given_by_user
    from archiver.cli.start import CrawlRequest, join

    metrics, trusted = metrics_request(rest), rest["trust_settings"]
    given = given_by_user(rest, OF_EACH_MACHINE)
    request = CrawlRequest((), (), output, given, verbosity(rest), (), trusted, None, metrics)
    return join(address, name, request)


JOIN = define_command(
    "join",
    _join,
    """Crawl with the other machines of a crawl in PostgreSQL.

    Seeds and settings are those of the crawl; you can only change settings of this machine. Its WARC files are written
    to DIR. Press Ctrl+C to leave: the others go on. archiver resume DIR joins again.
    """,
    [
        click.Argument(["address"], metavar="postgresql://…"),
        output_option("DIR", "Write to DIR. Default: collections/ and the host of the first seed."),
        click.Option(["--name"], default="", metavar="NAME", help="Name this machine. Default: its host name."),
        config_option("Read settings from a file, such as the crawl.toml of another machine with its secrets."),
        *setting_options(OF_EACH_MACHINE - {"frontier"}),
        *verbosity_options(),
        *metrics_options(),
        TRUST,
    ],
    ("archiver join postgresql://crawl@db.example/crawl", "crawl on this machine too"),
    (
        "archiver join postgresql://crawl@db.example/crawl -o /data/crawl --processes auto",
        "use all cores of this machine, and write to /data/crawl",
    ),
)


def _recrawl(directory: Path, **rest: Any) -> int:
    from archiver.cli.start import recrawl

    return recrawl(directory, _request(rest))


RECRAWL = define_command(
    "recrawl",
    _recrawl,
    """Crawl a site again into the same collection, so that you can replay each date.

    The seeds and settings are those of DIR/crawl.toml; options override them. Where a server supports it (ETag,
    Last-Modified), archiver requests only what has changed, and never stores an unchanged payload twice. It also
    requests URLs of earlier crawls that are no longer linked. DIR/reports/changes.tsv lists what is new, changed, gone
    and unchanged. The database, settings and reports of earlier crawls are kept in DIR/crawls.
    """,
    [directory_argument(), profile_option(), *crawl_options(), *watch_options(), *metrics_options(), TRUST],
    ("archiver recrawl collections/example.org", "archive the same site again, as it is today"),
    ("archiver recrawl collections/example.org --no-conditional", "request every body again"),
    ("archiver recrawl collections/example.org --newer-sitemap", "skip what its sitemap dates before our last capture"),
    ("archiver recrawl collections/example.org --changed-only", "request often what changed often"),
)
