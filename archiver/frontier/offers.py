"""Links that were offered to the frontier before and would change nothing any more: nearly all of a page's.

What is kept of a URL is a link, committed by this process, than which its row is no farther and no later: then the
row is so for good, whatever becomes of it, and neither this link nor one that is no better can change it. That ends
only where rows are written anew, by seeds, by recovery, or by another process: then all is to be forgotten.
"""

from collections.abc import Iterable

from archiver.model import NewUrl
from archiver.scope import is_guess

MOST = 20_000  # links of a generation …
SIZE = 2 << 20  # … and characters in them; there are two generations

Found = tuple[NewUrl, int]  # a URL, and the row of the document that names it


class Offers:
    """Bounded: the links that were not asked for in a generation are forgotten with it."""

    def __init__(self, most: int = MOST, size: int = SIZE) -> None:
        self._most = most
        self._size = size
        self._young: dict[str, NewUrl] = {}
        self._old: dict[str, NewUrl] = {}
        self._weight = 0  # of the young ones

    def news(self, links: Iterable[NewUrl], via: int) -> list[Found]:
        """Those of *links*, which the document in row *via* names, that may change something."""
        known = self._young.get
        found: list[Found] = []
        for new in links:
            if known(new.url) is new:  # most links end here
                continue
            if not self._idle(new):
                found.append((new, via))
        return found

    def _idle(self, new: NewUrl) -> bool:
        before = self._young.get(new.url)
        if before is None:
            before = self._old.get(new.url)
            if before is None or (new != before and not no_better(new, before)):
                return False
            self._keep(before)
            return True
        return no_better(new, before)

    def remember(self, links: Iterable[NewUrl]) -> None:
        """*links* are committed, and the row of each is no farther and no later than it says."""
        for new in links:
            self._keep(new)

    def drop(self, address: str) -> None:
        """The row of *address* is held or goes later from now on: the next link to it may change that."""
        self._young.pop(address, None)
        self._old.pop(address, None)

    def forget(self) -> None:
        """Rows may have been written anew."""
        self._young, self._old, self._weight = {}, {}, 0

    def _keep(self, new: NewUrl) -> None:
        self._weight += len(new.url) + len(new.path)
        if self._weight > self._size or len(self._young) >= self._most:
            self._young, self._old, self._weight = {}, self._young, len(new.url) + len(new.path)
        self._young[new.url] = new


def far(new: NewUrl) -> tuple[bool, int, int]:
    """How far the way of *new* is: by a guess it is the farthest of all."""
    return is_guess(new.path), new.depth, new.strays


def no_better(new: NewUrl, other: NewUrl) -> bool:
    """Whether *new* leads no nearer and no sooner than *other*."""
    return new.priority >= other.priority and far(new) >= far(other)
