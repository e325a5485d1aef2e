"""Regular expressions of the user on URLs of strangers: whatever meets, an answer comes soon. Pure.

A pattern that cannot take long is tried by Python's own `re`; any other one by `regex`, which understands the same and
can be told to give up. What took too long a few times is given less from then on, so that a page of such URLs passes.
"""

import re
from enum import Enum
from typing import Final, Literal

LONGEST_EASY = 2000  # characters of a URL on which one repetition cannot take long: some milliseconds at worst
PATIENCE = 0.1  # seconds of computing for one pattern on one URL …
TRIES = 20  # … so often …
IMPATIENCE = 0.002  # … and from then on; an honest pattern needs a hundredth of this

_REPEATS = re.compile(r"[*+{]")
_LOOKS_BACK = re.compile(r"\\[1-9]|\(\?P=")


class _Slow(Enum):
    SLOW = "slow"


SLOW: Final = _Slow.SLOW


class Pattern:
    """One pattern, and the *rule* that it stands for."""

    def __init__(self, rule: str, text: str) -> None:
        import regex  # noqa: PLC0415 - half as large as all of this package, for those only who give a pattern

        self.rule = rule
        easy = len(_REPEATS.findall(text)) <= 1 and not _LOOKS_BACK.search(text)
        self._easy = re.compile(text) if easy else None
        self._patient = regex.compile(text)
        self._given_up = 0

    def found_in(self, address: str) -> bool | Literal[_Slow.SLOW]:
        """Whether the pattern is found in *address*; `SLOW` where that took too long to tell."""
        if self._easy is not None and len(address) <= LONGEST_EASY:
            return self._easy.search(address) is not None
        seconds = PATIENCE if self._given_up < TRIES else IMPATIENCE
        try:
            return self._patient.search(address, timeout=seconds, concurrent=True) is not None
        except TimeoutError:
            self._given_up += 1
            return SLOW
