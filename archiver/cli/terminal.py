"""Write to stdout and stderr: results to stdout, so that they can be piped; everything else to stderr.

A closed terminal or broken pipe ends the output without an error. Any other failure to write a result is an error.
"""

import logging
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

WIDTH = 100  # columns if stdout or stderr is not a terminal
FLUSH_INTERVAL = 0.1  # seconds; results are flushed together
MAX_MESSAGE = 2000  # characters
_NAMED = r"(?!(?:[^/@:\"'\s]+:)?env:\w+@)"  # the password is in the environment
_DATABASE_USER = (
    r"(?!(?:(?<=postgres://)|(?<=postgresql://))[\w.~-]+@[^/@\s]*(?![^/\s]*@))"  # without a password; it is not secret
)
_SECRETS = re.compile(rf"(?<=//){_DATABASE_USER}{_NAMED}[^/?#\"'\s]*@|(?<![\w@]){_NAMED}[^/@:\"'\s\\]+:[^/@\"'\s\\]+@")


def say(message: str) -> None:
    """Print *message* on one line of stderr."""
    _write_error(printable(without_secrets(" ".join(message.splitlines())), MAX_MESSAGE))


def complain(message: str) -> None:
    """Print a warning or an error on one line of stderr."""
    say(f"archiver: {message}")


def without_secrets(text: str) -> str:
    """Return *text* without user names and passwords in URLs, as in `https://user:password@host/`."""
    return _SECRETS.sub("…@", text)


def show(lines: list[str]) -> None:
    """Print *lines* to stderr; names in them must be safe for a terminal already."""
    _write_error("\n".join(lines))


def width() -> int:
    """Return the columns of the terminal on stderr; 100 if it is not a terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def colours(stream: TextIO) -> bool:
    """Return whether to use colours on *stream*: it is a terminal that has them, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def result(text: str) -> None:
    """Print *text* to stdout."""
    results([text.removesuffix("\n")])


def results(lines: Iterable[str]) -> bool:
    """Print *lines* to stdout, each soon after it is ready. Returns False if the reader closed the pipe."""
    flushed = -math.inf
    for line in lines:
        if not try_write(sys.stdout.write, f"{line}\n"):
            return False
        if (now := time.monotonic()) - flushed > FLUSH_INTERVAL:
            if not try_write(sys.stdout.flush):
                return False
            flushed = now
    return try_write(sys.stdout.flush)


def try_write(write: Callable[..., object], *what: object) -> bool:
    """Call *write* with *what* and return whether it succeeded; False if the reader closed the pipe.

    Raises `ArchiveError` if stdout cannot be written, for example on a full disk.
    """
    try:
        write(*what)
    except OSError as error:
        # Python flushes stdout again when it exits; that must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise ArchiveError(f"stdout cannot be written: {error.strerror or error}") from None
        return False
    return True


def _write_error(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class StderrLog(logging.Handler):
    """Prints log records to stderr, made safe for a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print *record*."""
        for line in self.format(record).splitlines():
            say(line)


def log_to_stderr(*, debug: bool) -> None:
    """Print what archiver logs, but nothing that libraries log below a warning."""
    log = logging.getLogger("archiver")
    log.setLevel(logging.DEBUG if debug else logging.INFO)
    output = StderrLog()
    output.setFormatter(logging.Formatter("%(name)s: %(message)s" if debug else "%(message)s"))
    log.handlers = [output]


_ERASE = "\r\x1b[K"  # carriage return, erase line


class ProgressLine:
    """A progress line on a terminal, erased at the end. In a pipe it prints nothing."""

    def __init__(self) -> None:
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._write(_ERASE)

    def show(self, text: str) -> None:
        """Show *text* in place of the previous text."""
        if sys.stderr.isatty():
            self._shown = True
            self._write(f"{_ERASE}{text}")

    @staticmethod
    def _write(text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            sys.stderr.write(text)
            sys.stderr.flush()
