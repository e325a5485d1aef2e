"""The command `archiver`, and the one place where an exception becomes a line and an exit code."""

import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from archiver import __version__
from archiver.cli import crawl_commands, garbage, look_commands, read_commands, share_commands, suggest
from archiver.cli.options import CONTEXT, write_examples
from archiver.cli.terminal import complain
from archiver.errors import ArchiveError, ConfigError
from archiver.model import ExitCode

# As a person needs them.
ORDER = (
    "crawl resume recrawl status report explain urls retry add verify ls get replay pack export import index rebuild"
)


class CommandGroup(click.Group):
    """The command `archiver`, whose help begins with what a person does first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they are needed."""
        del ctx
        return sorted(self.commands, key=ORDER.split().index)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise ConfigError(suggest.command(name, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(
            (
                ("archiver crawl https://example.org/", "archive a site into collections/example.org"),
                ("archiver resume collections/example.org", "go on after Ctrl+C, a crash or a limit"),
                ("archiver replay collections/example.org", "look at it in a browser"),
            ),
            formatter,
        )


@click.group(cls=CommandGroup, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="archiver", message="%(prog)s %(version)s")
def archiver() -> None:
    """Archive web sites: every byte as it crossed the wire, into WARC files that replay.

    A crawl can be stopped or killed at any moment and goes on as if nothing had happened. DIR is the directory of a
    crawl. Results go to stdout, everything else to stderr.
    """


_DEFINED = (crawl_commands, look_commands, read_commands, share_commands)
for _command in (command for module in _DEFINED for command in module.COMMANDS):
    archiver.add_command(_command)

# What a person can mend, and no bug.
_MENDABLE = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOSPC, errno.EDQUOT))


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out *arguments* and return the exit code; only a bug raises."""
    try:
        code = archiver.main(arguments, prog_name="archiver", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    except click.MissingParameter as error:
        called = error.ctx.command_path if error.ctx is not None else "archiver"
        complain(f"{error.format_message().rstrip('.')}; how it is called is told by: {called} --help")
        return ExitCode.USAGE
    except (click.ClickException, ConfigError) as error:
        complain(suggest.refused(error) if isinstance(error, click.UsageError) else _told(error))
        return ExitCode.USAGE
    except ArchiveError as error:
        complain(str(error))
        return ExitCode.STORAGE
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return ExitCode.STOPPED
    except OSError as error:  # of a path that was looked at before anything was begun, or of a help text
        if error.errno not in _MENDABLE:
            raise
        complain(f"{error.filename or 'stdout cannot be written'}: {error.strerror}")
        return ExitCode.USAGE if error.errno == errno.ENAMETOOLONG else ExitCode.STORAGE
    return int(code or ExitCode.DONE)


def _told(error: Exception) -> str:
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def main() -> NoReturn:
    """The command `archiver`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends in order, as Ctrl+C does; a crawl has its own way
    garbage.search_seldom()
    _mend_streams()
    sys.exit(run())


def _mend_streams() -> None:
    """A closed stream (`2>&-`) takes everything, and no name is unwritable where the terminal is not UTF-8."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as we live
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
