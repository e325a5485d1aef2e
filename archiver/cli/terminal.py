"""Where words go: results to stdout, so that they can be piped; everything else to stderr.

Nothing that is written can end the program: a closed terminal or a broken pipe only ends the talking.
"""

import math
import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from archiver.stats import printable

_HELD_BACK = 0.1  # seconds for which a result may wait for more of them
_LONGEST = 2000  # characters of a message, which is one line whatever is in it


def say(message: str) -> None:
    """One line for a person."""
    _write_error(printable(" ".join(message.splitlines()), _LONGEST))


def complain(message: str) -> None:
    """One line that says what is wrong."""
    say(f"archiver: {message}")


def show(lines: list[str]) -> None:
    """Lines for a person; the names in them are harmless already."""
    _write_error("\n".join(lines))


def result(text: str) -> None:
    """What was asked for."""
    results([text.removesuffix("\n")])


def results(lines: Iterable[str]) -> None:
    """What was asked for, a line soon after it is there; ends when whoever reads has seen enough."""
    flushed = -math.inf
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
            if (now := time.monotonic()) - flushed > _HELD_BACK:
                sys.stdout.flush()
                flushed = now
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at its end, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_error(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
