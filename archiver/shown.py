"""Shown: what the pages of a site have shown, by numbers, bounded in memory. Pure.

A number lies in one place of a table, with how often it came; what does not fit is forgotten, and new again: that costs
a request and loses nothing.
"""

from array import array
from collections.abc import Iterable

PLACES = 1 << 20  # eight megabytes
OFTEN = 15  # counted so far


class Shown:
    """Remembers numbers of 64 bits."""

    def __init__(self, places: int = PLACES) -> None:
        self._places = array("q", bytes(8 * places))
        self._where = places - 1

    def times(self, thing: int) -> int:
        """How often *thing* was added before; now it is once more."""
        return self.add_all((thing,))[0]

    def look(self, thing: int) -> int:
        """How often *thing* was added."""
        known = self._places[thing >> 4 & self._where]
        return known & OFTEN if known >> 4 == thing >> 4 else 0

    def add_all(self, things: Iterable[int]) -> list[int]:
        """How often each of *things* was added before; now they are once more."""
        places, where, found = self._places, self._where, []
        for thing in things:
            at = thing >> 4 & where
            known = places[at]
            if known >> 4 == thing >> 4 and known:
                count = known & OFTEN
                if count < OFTEN:
                    places[at] = known + 1
                found.append(count)
            else:
                places[at] = thing & ~OFTEN | 1
                found.append(0)
        return found
