"""Where words go: results to stdout, so that they can be piped; everything else to stderr.

A closed terminal or a broken pipe only ends the talking; a result that cannot be written otherwise is an error.

How far a long reading is, on a terminal; nothing in a pipe.
"""

import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self, TextIO

from archiver.errors import ArchiveError
from archiver.humanize import printable

WIDTH = 100  # columns where there is no terminal
_HELD_BACK = 0.1  # seconds for which a result may wait for more of them
_LONGEST = 2000  # characters of a message, which is one line whatever is in it
_SECRETS = re.compile(r"(?<=//)[^/?#\"'\s]*@|(?<![\w@])[^/@:\"'\s\\]+:[^/@\"'\s\\]+@")


def say(message: str) -> None:
    """One line for a person."""
    _write_error(printable(without_secrets(" ".join(message.splitlines())), _LONGEST))


def complain(message: str) -> None:
    """One line that says what is wrong."""
    say(f"archiver: {message}")


def without_secrets(text: str) -> str:
    """*text* without the names and passwords in front of hosts: `https://user:word@host/` has them."""
    return _SECRETS.sub("…@", text)


def show(lines: list[str]) -> None:
    """Lines for a person; the names in them are harmless already."""
    _write_error("\n".join(lines))


def width() -> int:
    """Return the columns of the terminal on stderr, 100 where there is none."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def colours(stream: TextIO) -> bool:
    """Whether *stream* is a terminal that shows colours, and its owner wants any (NO_COLOR)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def result(text: str) -> None:
    """What was asked for."""
    results([text.removesuffix("\n")])


def results(lines: Iterable[str]) -> bool:
    """What was asked for, a line soon after it is there; whether all was read, or whoever reads had seen enough."""
    flushed = -math.inf
    for line in lines:
        if not written(sys.stdout.write, f"{line}\n"):
            return False
        if (now := time.monotonic()) - flushed > _HELD_BACK:
            if not written(sys.stdout.flush):
                return False
            flushed = now
    return written(sys.stdout.flush)


def written(write: Callable[..., object], *what: object) -> bool:
    """Whether *write*, which writes *what* to stdout, did; False when whoever reads has seen enough.

    Raises `ArchiveError` where stdout cannot be written, as on a full disk.
    """
    try:
        write(*what)
    except OSError as error:
        # Python flushes stdout once more at its end, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise ArchiveError(f"stdout cannot be written: {error.strerror or error}") from None
        return False
    return True


def _write_error(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


_ERASE = "\r\x1b[K"  # to the start of the line, which is cleared


class ProgressLine:
    """One line, which is gone at the end."""

    def __init__(self) -> None:
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._write(_ERASE)

    def show(self, text: str) -> None:
        """Show *text* in the place of what was shown before."""
        if sys.stderr.isatty():
            self._shown = True
            self._write(f"{_ERASE}{text}")

    @staticmethod
    def _write(text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            sys.stderr.write(text)
            sys.stderr.flush()
