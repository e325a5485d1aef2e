"""How far a long reading is, on a terminal; nothing in a pipe."""

import sys
from contextlib import suppress
from typing import Self

_ERASE = "\r\x1b[K"  # to the start of the line, which is cleared


class Meter:
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
