"""The command `archiver`: what a person types, what is said in return, and the exit code. No logic of the crawl."""

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """The command `archiver`, imported when it is called: Ctrl+C may come in the tenth of a second which that takes."""
    try:
        from archiver.cli import entry  # noqa: PLC0415 - see above
    except KeyboardInterrupt:
        from archiver.model import ExitCode  # noqa: PLC0415 - see above

        if sys.stderr is not None:  # it may be closed
            sys.stderr.write("archiver: interrupted\n")
        sys.exit(ExitCode.STOPPED)
    entry.main()
