"""Shown: which things the pages of a host, of a directory and of a pattern have shown. Pure, and bounded in memory.

A thing is a number below `NUMBERS`. It lies in one place, with the directory and the pattern that showed it first; only
where others show it too does it lie in one more place for each of them. What does not fit is forgotten, and new again.
"""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

NUMBERS = 1 << 60
PLACES = 1 << 19  # four megabytes
_WHERE = PLACES - 1
_SHORT = 1 << 16  # of directories and patterns, so many are told apart
_WHOSE = _SHORT * _SHORT - 1  # the part of a place that says who showed a thing first …
_WHICH = NUMBERS - 1 - _WHOSE  # … and the part that says which thing it is


class News(NamedTuple):
    """Whether a page showed something new."""

    to_host: bool
    to_directory: bool
    to_pattern: bool


class Shown:
    """Remembers what was shown."""

    def __init__(self) -> None:
        self._places = array("q", bytes(8 * PLACES))

    def news(self, things: Iterable[int], host: str, directory: str, pattern: str) -> News:
        """What a page of these shows that was not shown before; it is from now on."""
        places, of_host = self._places, hash(host) % NUMBERS
        owner = hash(directory) % _SHORT * _SHORT + hash(pattern) % _SHORT
        new, by_other_directories, by_other_patterns = False, [], []
        for thing in things:
            key = thing ^ of_host
            where, mine = key & _WHERE, key & _WHICH | owner
            other = places[where] ^ mine
            if other > _WHOSE:
                places[where] = mine
                new = True
            elif other:
                if other >= _SHORT:
                    by_other_directories.append(thing)
                if other % _SHORT:
                    by_other_patterns.append(thing)
        to_directory = self.is_new(by_other_directories, directory) or new
        to_pattern = self.is_new(by_other_patterns, pattern) or new
        return News(new, to_directory, to_pattern)

    def is_new(self, things: Iterable[int], group: str) -> bool:
        """Whether one of *things* was not shown in *group*; they are from now on."""
        places, of_group, new = self._places, hash(group) % NUMBERS, False
        for thing in things:
            key = thing ^ of_group
            mine = key & _WHICH
            if places[key & _WHERE] != mine:
                places[key & _WHERE] = mine
                new = True
        return new
