"""How many visits of one pattern of URLs may be under way: no more than may turn out to bring nothing.

A trap is recognised when its pages are read, some time after they were asked for. Without this, whatever is fetched
meanwhile would be wasted, which is most where nothing limits the rate. A pattern that brings something is soon free.
"""

from collections import defaultdict
from collections.abc import Callable

from archiver.model import Claim

Room = Callable[[Claim], tuple[str, int]]  # the pattern of a claim, and how many of it may be under way; "": any number


class Caution:
    """Keeps count of what is under way, from the moment it is handed out until it is committed or comes back."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._patterns: dict[int, str] = {}  # of the claims under way
        self._under_way: defaultdict[str, int] = defaultdict(int)

    def premature(self, claim: Claim) -> bool:
        """Whether *claim* has to wait until another one of its pattern is over; if not, it is under way from now on."""
        pattern, room = self._room(claim)
        if not pattern:
            return False
        if self._under_way[pattern] >= room:
            return True
        self._under_way[pattern] += 1
        self._patterns[claim.id] = pattern
        return False

    def over(self, claim: Claim) -> None:
        """*claim* is under way no more."""
        pattern = self._patterns.pop(claim.id, "")
        if pattern:
            self._under_way[pattern] -= 1
            if not self._under_way[pattern]:
                del self._under_way[pattern]
