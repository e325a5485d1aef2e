"""Options and arguments that commands share: settings as options, help in groups with examples, and lists of seeds."""

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import Field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from archiver.config.addresses import DATABASE, DATABASE_SCHEMES
from archiver.config.event_settings import ON
from archiver.config.option_types import BOOLEAN, OptionType
from archiver.config.profiles import PROFILES, variable
from archiver.config.settings import STORE, TITLES, every_setting, key_of
from archiver.errors import ArchiveError, ConfigError

GENERAL = "General"
HELP_WIDTH = 100
EACH_LINE = "Print JSON, one object per line."  # help of --json for a list
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}

Example = tuple[str, str]  # a command line, and what it does
MOST_OFFERED = 100  # hosts or URLs for completion
Completion = Callable[[click.Context, click.Parameter, str], list[str]]
Check = Callable[[click.Context, click.Parameter, Any], Any]


class SettingOption(click.Option):
    """An option that sets one setting; `title` is its group in the help."""

    def __init__(self, title: str, entry: Field[Any]) -> None:
        key, kind = key_of(entry), entry.metadata["kind"]
        text = f"{entry.metadata['help']}{_default(entry)}"
        if kind is BOOLEAN:
            super().__init__([f"--{key}/--no-{key}"], default=None, help=text)
        elif kind is ON:  # two words, which are one text in crawl.toml
            super().__init__([f"--{key}"], nargs=2, metavar=kind.metavar, multiple=True, help=text, callback=_receivers)
        else:
            super().__init__(
                [f"--{key}"],
                type=_parser(key, kind),
                metavar=kind.metavar,
                multiple=entry.metadata["many"],
                help=text,
                shell_complete=_words_of(kind),
            )
        self.title = title


class _IPVersionOption(click.Option):
    """The short form of `--ip-version` that curl and wget have: -4 or -6."""

    def __init__(self, version: str) -> None:
        text = f"Connect over IPv{version} only: --ip-version {version}."
        super().__init__([f"-{version}", f"--ipv{version}"], is_flag=True, help=text)
        self.title = TITLES["network"]


def _words_of(kind: OptionType) -> Completion:
    """Return a completion of values of *kind*: of the last word where they are joined by commas."""

    def completion(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if "," in kind.metavar else ("", "", incomplete)
        known = before.split(",")
        return [f"{before}{comma}{word}" for word in kind.words if word.startswith(last) and word not in known]

    return completion


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


def _receivers(_context: click.Context, _option: click.Parameter, given: tuple[tuple[str, str], ...]) -> Any:
    """Return the value of `--on`. Events cannot have a space, which would be the end of them in crawl.toml."""
    parse = _parser("on", ON)
    return tuple(parse(f"{events.replace(' ', '')} {target}") for events, target in given)


def _parser(key: str, kind: OptionType) -> Callable[[str], Any]:
    """Return a function from text to value; its errors have the same words as those of crawl.toml."""

    def parse(text: str) -> Any:
        try:
            return kind.parse(text)
        except ConfigError as error:
            raise ConfigError(f"--{key}: {error}") from None

    return parse


def _default(entry: Field[Any]) -> str:
    if entry.metadata["many"]:
        return " Repeatable."
    written = entry.metadata["kind"].write(entry.default)
    if entry.metadata["kind"] is BOOLEAN:
        written = "yes" if written else "no"
    elif isinstance(written, float):
        written = f"{written:g}"
    return f" [default: {written}]" if written != "" else ""


def given_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Return those of the options' *values* that were given, even if the value is None (`--max-depth none`)."""
    source = click.get_current_context().get_parameter_source
    known = (entry.name for _, entry in every_setting() if entry.metadata["option"] and entry.name in values)
    given = {name: values[name] for name in known if source(name) is not ParameterSource.DEFAULT}
    versions = {version for version in ("4", "6") if values.get(f"ipv{version}")}
    versions |= {given["ip_version"]} if "ip_version" in given else set()
    if len(versions) > 1:
        raise ConfigError("-4, -6 and --ip-version contradict each other; give one of them, or none for both")
    if versions:
        given["ip_version"] = versions.pop()
    return given


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
                title = param.title if isinstance(param, SettingOption | _IPVersionOption) else GENERAL
                sections.setdefault(title, []).append(record)
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
    return DATABASE.parse(text) if text.startswith(DATABASE_SCHEMES) else Path(text)


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
    text = "Only URLs whose last answer had this status: 404, 4xx for a class, or several: 404,5xx. Repeatable."
    return click.Option(["--status", "statuses"], multiple=True, metavar="N", help=text)


def profile_option() -> click.Option:
    """Return the option that names a profile."""
    text = f"Start from the settings for a kind of crawl: {', '.join(PROFILES)}, or those of a profile of your own."
    name = variable("profile")
    return click.Option(["--profile"], metavar="NAME", envvar=name, help=text, shell_complete=_profiles)


def _profiles(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from archiver.cli.config.sources import own_profiles

    return [name for name in sorted({*PROFILES, *own_profiles()}) if name.startswith(incomplete)]


def crawl_options() -> list[click.Parameter]:
    """Return the options of a command that runs a crawl: one for every setting, and for more or less output."""
    return [
        *setting_options({key_of(entry) for _, entry in every_setting()}),
        _IPVersionOption("4"),
        _IPVersionOption("6"),
        click.Option(
            ["--load-cookies"],
            multiple=True,
            metavar="FILE",
            help="Send the cookies in a cookies.txt (as browser extensions, curl, wget and yt-dlp write it) or in "
            "Firefox's cookies.sqlite to their sites. They are kept in crawl.db. Repeatable.",
        ),
        *verbosity_options(),
    ]


def setting_options(keys: Collection[str]) -> list[click.Parameter]:
    """Return an option for each of those settings in *keys* that have one."""
    return [
        SettingOption(TITLES[name], entry)
        for name, entry in every_setting()
        if entry.metadata["option"] and key_of(entry) in keys
    ]


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
