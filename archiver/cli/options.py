"""The options of the commands, made from the list of settings, and help that is grouped and carries examples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field
from typing import Any

import click
from click.core import ParameterSource

from archiver.config.settings import TITLES, every_setting, key_of
from archiver.config.values import BOOLEAN, Kind
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


def _reader(key: str, kind: Kind) -> Callable[[str], Any]:
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
