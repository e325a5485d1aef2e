"""Ids in URLs: those that name a session, of which one page has many URLs, and those that name content. Pure.

A page whose URL differs from a known one in ids alone may be that page in another session, or another thing: a change
or a file that is named by its hash. What such pages bring tells. So each pattern has a tally of its own for each answer
to the question which of its ids are known from pages that were fetched. With a session, pages bring nothing whatever
is known. A file in a code browser brings something unless its own hash is known, in whatever change it is shown.

Invariant: what is forgotten counts as new.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator

from archiver.model import PatternTally
from archiver.policy.url_forms import ids_in, variant

KNOWN = 1 << 16  # ids: half a megabyte
TRIED = 8  # places for a URL without its ids; only if others have taken all of these is one forgotten
PROVEN = 8  # fruitful pages of a pattern; from then on we suspect it only if a third of its pages are barren
MOST_PAGES = 2000  # remembered with the tally that they counted for
MOST_IDS = 8  # of a URL, which are compared

TallyOf = Callable[[str], PatternTally | None]  # of a pattern


def brings(tally: PatternTally | None) -> bool:
    """Return True if the pages of *tally* have proved to bring something."""
    return tally is not None and tally.fruitful >= PROVEN and tally.fruitful > 2 * tally.barren


def may_bring(tally: PatternTally | None) -> bool:
    """Return True if too few pages of *tally* were barren to prove that the others bring nothing."""
    return tally is None or not tally.barren or tally.fruitful > 2 * tally.barren


class ContentIds:
    """The ids in the URLs of fetched pages, and up to *variants* URLs without their ids. Not thread-safe."""

    def __init__(self, variants: int) -> None:
        self._variants = array("q", bytes(16 * variants))
        self._known = array("q", bytes(8 * KNOWN))
        self._counted = dict[str, str]()

    def is_variant(self, address: str) -> bool:
        """Return True if a URL was taken that differs only in ids or in the order of its query."""
        common = variant(address)
        if not common:
            return False
        key, itself, places = hash(common), hash(address), len(self._variants) // 2
        for step in range(TRIED):
            place = 2 * ((key + step) % places)
            if self._variants[place] == key:
                return self._variants[place + 1] != itself
            if not self._variants[place]:
                break
        else:
            place = 2 * (key % places)
        self._variants[place], self._variants[place + 1] = key, itself
        return False

    def saw(self, address: str, shape: str, counted: str) -> None:
        """Remember the ids in *address*, a page of the pattern *shape* that the tally *counted* counts."""
        for number in _numbers(address, shape):
            self._known[number & KNOWN - 1] = number
        if counted != shape:
            self._counted[address] = counted
            if len(self._counted) > MOST_PAGES:
                self._counted.pop(next(iter(self._counted)))

    def tally_of(self, address: str, shape: str, end: str, tally: TallyOf) -> str:
        """Return the name of the tally for *address*, a variant of the pattern *shape*; such names have this *end*."""
        if address in self._counted:
            return self._counted[address]
        names = [f"{shape}{kind}{end}" for kind in self._kinds(address, shape)]
        return next((name for name in names if brings(tally(name))), names[0])

    def _kinds(self, address: str, shape: str) -> Iterator[str]:
        """Yield which of the ids in *address* are known, such as `#1#3`; "" for none.

        Then what it is if one more of them is, as a page with fewer known ids is at least as likely to be new.
        """
        found = [self._known[number & KNOWN - 1] == number for number in _numbers(address, shape)]
        places = [at for at, is_known in enumerate(found, 1) if is_known]
        yield _named(places)
        for at, is_known in enumerate(found, 1):
            if not is_known:
                yield _named([*places, at])


def _named(places: Iterable[int]) -> str:
    return "".join(f"#{at}" for at in sorted(places))


def _numbers(address: str, shape: str) -> list[int]:
    return [hash((shape, at, word)) for at, word in enumerate(ids_in(address)[:MOST_IDS])]
