"""Options and arguments that commands share, and help in groups with examples. Settings as options are elsewhere."""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from archiver.errors import ArchiveError, ConfigError
from archiver.url import DATABASE_SCHEMES

GENERAL = "General"
HELP_WIDTH = 100
EACH_LINE = "Print JSON, one object per line."  # help of --json for a list
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}

Example = tuple[str, str]  # a command line, and what it does
MOST_OFFERED = 100  # hosts or URLs for completion
Completion = Callable[[click.Context, click.Parameter, str], list[str]]
Check = Callable[[click.Context, click.Parameter, Any], Any]


def complete_hosts(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the hosts of the crawl that the command line names."""
    sql = "SELECT key FROM hosts WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
    found = (each for scheme in ("http", "https") for each in _selected(context, sql, f"{scheme}://{incomplete}"))
    return sorted({key.partition("://")[2] for key in found})


def complete_urls(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the URLs of the crawl that the command line names."""
    sql = "SELECT url FROM urls WHERE url >= ? AND url < ? ORDER BY url LIMIT ?"
    return _selected(context, sql, incomplete)


def _selected(context: click.Context, sql: str, beginning: str) -> list[str]:
    """Return the texts with *beginning* that *sql* selects from the crawl of the command line, if it can be read."""
    from archiver.cli.directory import named_crawl

    found = context.params.get("place") or context.params.get("directory")
    places = [found] if found else [place_of(text) for text in context.args[:1]]  # not parsed before an open option
    with suppress(ArchiveError, ConfigError, OSError):
        for place in places:
            with named_crawl(place).read() as db:
                rows = db.execute(sql, (beginning, beginning + chr(sys.maxunicode), MOST_OFFERED))
                return [str(text) for (text,) in rows]
    return []


class GroupedCommand(click.Command):
    """A command whose help shows options in groups, and examples below them."""

    def __init__(self, *arguments: Any, examples: Sequence[Example] = (), **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, a section for each group."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "title", GENERAL), []).append(record)
        from archiver.config.settings import TITLES

        for title in sorted(sections, key=[*TITLES.values(), GENERAL].index):
            with formatter.section(title):
                formatter.write_dl(sections[title], col_max=34)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


def write_examples(examples: Iterable[Example], formatter: click.HelpFormatter) -> None:
    """Write a section of examples: what each one does as a comment, then the command line."""
    with formatter.section("Examples"):
        for line, meaning in examples:
            formatter.write_text(f"# {meaning}")
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def define_command(
    name: str, callback: Callable[..., int], text: str, params: list[click.Parameter], *examples: Example
) -> GroupedCommand:
    """Return the command *name* with its help *text* and *examples*."""
    return GroupedCommand(
        name, callback=callback, help=text, params=params, examples=examples, context_settings=CONTEXT
    )


def directory_argument() -> click.Argument:
    """Return the argument DIR."""
    return click.Argument(["directory"], metavar="DIR", type=click.Path(path_type=Path))


def crawl_argument() -> click.Argument:
    """Return the argument that names a crawl: by its directory, or by the address of its frontier."""
    return click.Argument(["place"], metavar="DIR|ADDRESS", type=place_of)


def place_of(text: str) -> Path | str:
    """Return the directory or the address of a crawl."""
    if not text.startswith(DATABASE_SCHEMES):
        return Path(text)
    return database_of(text)


def database_of(text: str) -> str:
    """Return the address of a database in PostgreSQL. Raises `ConfigError`."""
    from archiver.config.addresses import DATABASE

    return str(DATABASE.parse(text))


def seed_lists_option() -> click.Option:
    """Return the option that names files of seeds."""
    text = (
        "Read seeds from a file, stdin or a URL: lines with a URL and its own settings, a table (CSV), JSON, a "
        "sitemap, feed, bookmarks, CDX, CDXJ or WARC. Repeatable."
    )
    return click.Option(["--seeds"], multiple=True, metavar="FILE|URL|-", help=text)


def output_option(metavar: str, text: str) -> click.Option:
    """Return the option that names the file or directory to write."""
    return click.Option(["-o", "--output"], type=click.Path(path_type=Path), metavar=metavar, help=text)


def store_option(text: str) -> click.Option:
    """Return the option that names a store."""
    return click.Option(["--store"], type=_store, metavar="STORE", help=text)


def _store(text: str) -> str:
    from archiver.config.settings import STORE

    try:
        return str(STORE.parse(text))
    except ConfigError as error:
        raise ConfigError(f"--store: {error}") from None


def config_option(words: str) -> click.Option:
    """Return the option for a file with settings; *words* say which ones."""
    return click.Option(["--config"], type=click.Path(path_type=Path), metavar="FILE", help=words)


def port_option(default: int) -> click.Option:
    """Return the option for the port on which a command listens."""
    text = f"Listen on port N; 0 picks a free one. [default: {default}]"
    return click.Option(["--port"], type=click.IntRange(0, 65535), default=default, metavar="N", help=text)


def json_option(text: str = "Print JSON.") -> click.Option:
    """Return the option for output in JSON."""
    return click.Option(["--json", "as_json"], is_flag=True, help=text)


def host_option(*, several: bool = True, check: Check | None = None) -> click.Option:
    """Return the option that names a host. click calls *check* with the value."""
    more = " Repeatable." if several else ""
    text = f"Only URLs of this host: example.org, example.org:8443.{more}"
    return click.Option(
        ["--host"], multiple=several, metavar="HOST", callback=check, help=text, shell_complete=complete_hosts
    )


def check_host_names(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hosts *given*. Raises `ConfigError` if one cannot be a host."""
    for host in given:
        if not host.strip() or "/" in host:
            raise ConfigError(f"--host {host!r} is not a host; write it like example.org or example.org:8443")
    return given


def last_status_option() -> click.Option:
    """Return the option that names statuses of the last answer."""
    text = (
        "Only URLs whose last answer had this status: 404, 4xx for a class, 0xx for no usable status, or several: "
        "404,5xx. Repeatable."
    )
    return click.Option(["--status", "statuses"], multiple=True, metavar="N", help=text)


def verbosity_options() -> list[click.Parameter]:
    """Return the options for more or less output."""
    return [
        click.Option(
            ["-v", "--verbose"], count=True, help="Print a line for each URL and host. -vv: debug messages too."
        ),
        click.Option(["-q", "--quiet"], count=True, help="Print only how the crawl ended. -qq: only errors."),
    ]


def verbosity(values: dict[str, Any]) -> int:
    """Return how much to print: 0 by default, more with -v, less with -q."""
    return int(values["verbose"] - values["quiet"])
