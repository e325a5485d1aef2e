"""The command line: one module per command, and what the commands share. No logic of the crawl is here."""

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command `archiver`. Importing it takes a tenth of a second, in which Ctrl+C must work too."""
    try:
        from archiver.cli import entry  # noqa: PLC0415 - Ctrl+C must work during the import
    except KeyboardInterrupt:
        from archiver.model import ExitCode  # noqa: PLC0415 - Ctrl+C must work during the import

        if sys.stderr is not None:  # it may be closed
            sys.stderr.write("archiver: interrupted\n")
        sys.exit(ExitCode.STOPPED)
    entry.main()
