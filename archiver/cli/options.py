"""The options of the commands, made from the list of settings, and help that is grouped and carries examples.

What the definitions of all commands are made of.

A definition is light: what a command does is imported when it is called, so that `archiver --help` answers at once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from archiver.config.option_types import BOOLEAN, OptionType
from archiver.config.settings import TITLES, every_setting, key_of
from archiver.errors import ConfigError

GENERAL = "General"
HELP_WIDTH = 100
Example = tuple[str, str]  # a command line, and what it does


class SettingOption(click.Option):
    """An option that sets one setting; `title` is its group in the help."""

    def __init__(self, title: str, entry: Field[Any]) -> None:
        key, kind = key_of(entry), entry.metadata["kind"]
        text = f"{entry.metadata['help']}{_default(entry)}"
        if kind is BOOLEAN:
            super().__init__([f"--{key}/--no-{key}"], default=None, help=text)
        else:
            super().__init__(
                [f"--{key}"],
                type=_reader(key, kind),
                metavar=kind.metavar,
                multiple=entry.metadata["many"],
                help=text,
            )
        self.title = title


def _reader(key: str, kind: OptionType) -> Callable[[str], Any]:
    """Text to value; a bad one is refused in the same words as in crawl.toml."""

    def read(text: str) -> Any:
        try:
            return kind.parse(text)
        except ConfigError as error:
            raise ConfigError(f"--{key}: {error}") from None

    return read


def _default(entry: Field[Any]) -> str:
    if entry.metadata["many"]:
        return " May be given more than once."
    written = entry.metadata["kind"].write(entry.default)
    if entry.metadata["kind"] is BOOLEAN:
        written = "yes" if written else "no"
    elif isinstance(written, float):
        written = f"{written:g}"
    return f" [default: {written}]" if written != "" else ""


def setting_options() -> list[click.Parameter]:
    """An option for every setting."""
    return [SettingOption(TITLES[name], entry) for name, entry in every_setting()]


def given_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Of the options' *values* those that were given, whatever is meant by them: `--max-depth none` is None."""
    source = click.get_current_context().get_parameter_source
    known = (entry.name for _, entry in every_setting())
    return {name: values[name] for name in known if source(name) is not ParameterSource.DEFAULT}


class GroupedCommand(click.Command):
    """A command whose help has its options in groups, and examples below them."""

    def __init__(self, *arguments: Any, examples: Sequence[Example] = (), **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, a section for each group."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                title = param.title if isinstance(param, SettingOption) else GENERAL
                sections.setdefault(title, []).append(record)
        for title in sorted(sections, key=_place):
            with formatter.section(title):
                formatter.write_dl(sections[title], col_max=34)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


def write_examples(examples: Iterable[Example], formatter: click.HelpFormatter) -> None:
    """A section of examples: each command line on its own, what it does below."""
    with formatter.section("Examples"):
        for line, meaning in examples:
            formatter.write_text(f"# {meaning}")
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def _place(title: str) -> int:
    return [*TITLES.values(), GENERAL].index(title)


EACH_LINE = "As JSON, an object on each line."  # the text for `json_option` of a list
Check = Callable[[click.Context, click.Parameter, Any], Any]
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}


def command(name: str, callback: Any, text: str, params: list[click.Parameter], *examples: Example) -> click.Command:
    """The command *name* with its help, whose first line stands in the list of commands too."""
    short, _, _ = text.partition("\n")
    return GroupedCommand(
        name,
        callback=callback,
        help=text,
        short_help=short,
        params=params,
        examples=examples,
        context_settings=CONTEXT,
    )


def directory() -> click.Argument:
    """The argument DIR."""
    return click.Argument(["directory"], metavar="DIR", type=click.Path(path_type=Path))


def lists() -> click.Option:
    """The option that names files of seeds."""
    text = "Take seeds from a file, or stdin: on each line a URL and its own settings, if any; # begins a comment."
    return click.Option(["--seeds"], multiple=True, metavar="FILE|-", help=text)


def output(metavar: str, text: str, *also: str) -> click.Option:
    """The option that names what is written."""
    return click.Option(["-o", "--output", *also], type=click.Path(path_type=Path), metavar=metavar, help=text)


def json_option(text: str = "As JSON.") -> click.Option:
    """The option for programs."""
    return click.Option(["--json"], is_flag=True, help=text)


def host_option(*, several: bool = True, check: Check | None = None) -> click.Option:
    """Return the option that names a host. *check* gets the value, as a callback of click."""
    more = " May be given more than once." if several else ""
    text = f"Only those of this host: example.org, example.org:8443.{more}"
    return click.Option(["--host"], multiple=several, metavar="HOST", callback=check, help=text)


def last_status() -> click.Option:
    """Return the option that names statuses of the last answer."""
    text = "Only those whose last answer had this status: 404, 4xx for a class, or several: 404,5xx."
    return click.Option(["--status"], multiple=True, metavar="N", help=text)


def voices() -> list[click.Parameter]:
    """The options that make a crawl say more, or less."""
    return [
        click.Option(["-v", "--verbose"], count=True, help="Say more: each host; twice: everything."),
        click.Option(["-q", "--quiet"], count=True, help="Say only how it ended; twice: nothing but errors."),
    ]


def verbosity(values: dict[str, Any]) -> int:
    """How much is to be said: 0 as a rule, more or less as the options say."""
    return int(values["verbose"] - values["quiet"])
