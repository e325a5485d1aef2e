"""Shown: what the pages of a site have shown, by numbers, bounded in memory. Pure.

A number of 64 bits has one place in a table, which keeps 26 more bits of it and how often it came. What does not fit is
forgotten, and new again: that costs a request and loses nothing. The table is small so that it stays in the caches of
the processor: to wait for memory cost more than all else here.
"""

from array import array
from collections.abc import Iterable

PLACES = 1 << 20  # four megabytes
OFTEN = 15  # counted so far
_KEPT = 34  # the bits above these are kept, but for the four in which is counted


class Shown:
    """Remembers numbers of 64 bits."""

    def __init__(self, places: int = PLACES) -> None:
        self._places = array("i", bytes(4 * places))
        self._where = places - 1

    def times(self, thing: int) -> int:
        """How often *thing* was added before; now it is once more."""
        count = self.look(thing)
        self._places[thing & self._where] = (thing >> _KEPT & ~OFTEN) + min(count + 1, OFTEN)
        return count

    def look(self, thing: int) -> int:
        """How often *thing* was added."""
        known = self._places[thing & self._where]
        return known & OFTEN if known | OFTEN == thing >> _KEPT | OFTEN else 0

    def unseen(self, blocks: Iterable[bytes], salt: int) -> tuple[list[bytes], bool]:
        """Add *blocks*; return those that were not there, and whether some were that few pages have shown."""
        places, where, unseen, few = self._places, self._where, [], False
        for block in blocks:  # as `times`, without its calls
            thing = hash(block) ^ salt
            at = thing & where
            known, full = places[at], thing >> _KEPT | OFTEN
            if known | OFTEN != full or not known & OFTEN:
                places[at] = full - OFTEN + 1
                unseen.append(block)
            elif known != full:
                places[at] = known + 1
                few = True
        return unseen, few
