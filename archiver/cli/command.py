"""What the definitions of all commands are made of.

A definition is light: what a command does is imported when it is called, so that `archiver --help` answers at once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from archiver.cli.options import HELP_WIDTH, Example, GroupedCommand

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
