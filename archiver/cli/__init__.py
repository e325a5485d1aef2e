"""The command line: one module per command, and what the commands share. No logic of the crawl is here.

A command imports what is slow to import in its functions, so that its help and its usage errors come at once.
"""

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command `archiver`. Importing it takes a tenth of a second, in which Ctrl+C must work too."""
    try:
        from archiver.cli import entry
    except KeyboardInterrupt:
        from archiver.model import ExitCode

        if sys.stderr is not None:  # it may be closed
            sys.stderr.write("archiver: interrupted\n")
        sys.exit(ExitCode.STOPPED)
    entry.main()
