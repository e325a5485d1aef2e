"""What the definitions of all commands are made of.

A definition is light: what a command does is imported when it is called, so that `archiver --help` answers at once.
"""

from pathlib import Path
from typing import Any

import click

from archiver.cli.options import HELP_WIDTH, Example, GroupedCommand

EACH_LINE = "As JSON, an object on each line."  # the text for `json_option` of a list
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


def voices() -> list[click.Parameter]:
    """The options that make a crawl say more, or less."""
    return [
        click.Option(["-v", "--verbose"], count=True, help="Say more: each host; twice: everything."),
        click.Option(["-q", "--quiet"], count=True, help="Say only how it ended; twice: nothing but errors."),
    ]


def verbosity(values: dict[str, Any]) -> int:
    """How much is to be said: 0 as a rule, more or less as the options say."""
    return int(values["verbose"] - values["quiet"])
