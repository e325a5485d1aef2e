"""Options and arguments that commands share: settings as options, help in groups with examples, and lists of seeds."""

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import Field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from archiver import url
from archiver.cli.terminal import say
from archiver.config.addresses import DATABASE, DATABASE_SCHEMES
from archiver.config.event_settings import ON
from archiver.config.option_types import BOOLEAN, OptionType
from archiver.config.seeds import SeedList, SeedSetting, lacks_scheme, listed, read_seed
from archiver.config.settings import STORE, TITLES, Settings, every_setting, key_of
from archiver.errors import ConfigError
from archiver.humanize import count

GENERAL = "General"
HELP_WIDTH = 100
EACH_LINE = "Print JSON, one object per line."  # help of --json for a list
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}
STDIN = "-"
TOO_LONG_SHOWN = 10  # messages about seeds that are too long
MAX_LIST = 256 * 1024 * 1024  # bytes: some millions of URLs; more is a mistake, such as a disk image

Example = tuple[str, str]  # a command line, and what it does
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
            )
        self.title = title


class _IPVersionOption(click.Option):
    """The short form of `--ip-version` that curl and wget have: -4 or -6."""

    def __init__(self, version: str) -> None:
        text = f"Connect over IPv{version} only: --ip-version {version}."
        super().__init__([f"-{version}", f"--ipv{version}"], is_flag=True, help=text)
        self.title = TITLES["network"]


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
        "Read seeds from a file or stdin: one URL per line, optionally followed by its own settings. # starts a "
        "comment. Repeatable."
    )
    return click.Option(["--seeds"], multiple=True, metavar="FILE|-", help=text)


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


def json_option(text: str = "Print JSON.") -> click.Option:
    """Return the option for output in JSON."""
    return click.Option(["--json", "as_json"], is_flag=True, help=text)


def host_option(*, several: bool = True, check: Check | None = None) -> click.Option:
    """Return the option that names a host. click calls *check* with the value."""
    more = " Repeatable." if several else ""
    text = f"Only URLs of this host: example.org, example.org:8443.{more}"
    return click.Option(["--host"], multiple=several, metavar="HOST", callback=check, help=text)


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


def read_seeds(urls: Sequence[str], lists: Sequence[str], configured: tuple[str, ...]) -> SeedList:
    """Return the seeds of the command line and of *lists*; those *configured* in the settings file if there are none.

    The settings file also holds the per-seed settings of its seeds, so they are not returned with them.
    """
    found: dict[str, None] = {}
    own: dict[str, SeedSetting] = {}
    for address, settings in (*map(_seed_argument, urls), *(one for name in lists for one in _seeds_in(name))):
        found[address] = None
        if settings is not None and own.setdefault(address, settings) != settings:
            raise ConfigError(f"{address}: given twice with different settings; give all of them once")
    if found:
        return SeedList(tuple(found), tuple(own.values()))
    if configured:
        return SeedList(configured, ())
    raise ConfigError("no URL: give one or more, or --seeds FILE; for example: archiver crawl https://example.org/")


def _seeds_in(name: str) -> list[tuple[str, SeedSetting | None]]:
    label = "stdin" if name == STDIN else name
    found = list(listed(_read_list(name), label))
    seeds = [each for each in found if each[1]]
    too_long = [message for message, address, _ in found if not address]
    for message in too_long[:TOO_LONG_SHOWN]:
        say(f"archiver: skipped: {message}")
    if len(too_long) > TOO_LONG_SHOWN:
        say(f"archiver: skipped: {len(too_long) - TOO_LONG_SHOWN} more seeds of {label} that are too long")
    if not seeds:
        raise ConfigError(f"{label}: no URL found; write one per line")
    without = sum(lacks_scheme(text) for text, _, _ in seeds)
    if without:
        say(f"archiver: {label}: {count(without, 'URL')} without a scheme, taken as http://")
    return [(address, own) for _, address, own in seeds]


def _seed_argument(text: str) -> tuple[str, SeedSetting | None]:
    if lacks_scheme(text) and _is_file(text):
        raise ConfigError(f"{text!r} is a file; if it lists seeds: --seeds {text}")
    address, own = read_seed(text)
    if lacks_scheme(text):
        say(f"archiver: {text} has no scheme; taken as {address}")
    return address, own


def _is_file(text: str) -> bool:
    with suppress(OSError):  # a URL may be longer than a path may be
        return Path(text).is_file()
    return False


def _read_list(name: str) -> str:
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(MAX_LIST + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(MAX_LIST + 1)
    except OSError as error:
        raise ConfigError(f"--seeds {name}: cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_LIST:
        raise ConfigError(f"--seeds {name}: longer than {MAX_LIST} bytes; this cannot be a list of URLs")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        label = "stdin" if name == STDIN else name
        raise ConfigError(f"{label}:{line}: not UTF-8; write one URL per line") from None


LOCAL_DOMAINS = ("localhost", "local", "lan", "internal", "home.arpa", "test", "invalid", "example")  # RFC 6761, 8375


def contact_warning(settings: Settings) -> str:
    """Return a warning if a public site is crawled without a contact; "" otherwise."""
    fetch = settings.fetch
    given = " ".join((fetch.user_agent, *fetch.header))
    if fetch.contact or "@" in given or "://" in given:
        return ""
    public = next((url.host(seed) for seed in settings.seeds if not _is_local(url.host(seed))), None)
    if public is None:
        return ""
    return (
        f"the owner of {public} cannot tell who is crawling; give a URL or mail address where they can reach you: "
        "--contact you@example.org"
    )


def _is_local(host: str) -> bool:
    """Return whether *host* is this machine or in a private network."""
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        labels = host.rstrip(".")
        return "." not in labels or labels.endswith(tuple(f".{name}" for name in LOCAL_DOMAINS))
