"""Patterns that come to an end, because their pages name few new URLs or none. Pure.

A trap goes on because its pages name new URLs. The entries of a dictionary or the plots of a map name none, so there
are no more of them than their lists name. However alike they are, we hold them only if their lists are held. With a
query they may be forms or views of other pages, so they must differ from each other too.

The words of a thesaurus name each other. The more of them are fetched, the fewer of their links are new: on average
less than one a page, or ever fewer. Each page of a trap names at least one.

A resumed crawl goes on with these counts: those of suspicious patterns are saved beside the tallies, under names of
their own. Which pages are lists follows from the links that the crawl has queued.
Invariant: what is forgotten is requested once more.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from archiver.model import PatternTally
from archiver.policy.dead_ends import HOPELESS, LEVELS, MOST_PLACES
from archiver.policy.patterns.variety import Variety
from archiver.policy.url_forms import VARIANT, UrlShape, likeness, page_of

SEVERAL = 2  # pages of a pattern that speak for it; one alone says no more than its family
PROOF = 8  # pages of a pattern that lead no further
A_LIST = 5  # new pages of one family, or that differ only in their query, that a page names to be a list of them
LONG_LIST = 2  # level of a pattern of lists; from there on, what they name costs the site its budget
FEW = 0.9  # new URLs that a page names of late: fewer than one, so the pattern ends
FALLING = 0.6  # new URLs that a page names of late, against the pages before: a pattern that may end
LATELY = 64  # pages that "of late" is about, …
BEFORE = 512  # … and those that they are compared with
ENOUGH = 128  # pages with new URLs after which we trust these numbers
THOUSANDTHS = 1000  # averages are saved as whole numbers
ENDINGS = "endings "  # begins the saved name of a pattern's barren pages that lead on, and of those that do not
DISCOVERIES = "discoveries "  # begins the saved name of how many new URLs the pages of a pattern name
LAST = len(LEVELS) + 2  # level: after the latest lists, also if these are unlisted


@dataclass(slots=True)
class _Discovery:
    """How many new URLs a page of one pattern names: the moving averages over few and over many pages."""

    pages: int = 0
    leading: int = 0  # pages that named a new URL; views of other pages never do
    lately: float = 0.0
    before: float = 0.0

    def count(self, new: int) -> None:
        """Take in a page that names so many *new* URLs."""
        self.pages += 1
        self.leading += new > 0
        self.lately += (new - self.lately) / min(self.pages, LATELY)
        self.before += (new - self.before) / min(self.pages, BEFORE)

    def ends(self) -> bool:
        """Return True if the pages named new URLs, but of late so few or so many fewer that they come to an end."""
        return self.leading >= ENOUGH and self.lately < max(FEW, FALLING * self.before)


class Leaves:
    """Counts how many new URLs pages name, by pattern and family. Not thread-safe."""

    def __init__(self) -> None:
        self.variety = Variety()
        self._discoveries: dict[str, _Discovery] = {}
        self._lead_on: Counter[str] = Counter()
        self._end: Counter[str] = Counter()
        self._held: set[str] = set()
        self._lists: set[tuple[str, str]] = set()  # pages, with the family that they list, or the page with a query

    def saw(self, address: str, new: Sequence[str], names: UrlShape, *, barren: bool) -> None:
        """Take in the page at *address*, with links to *new* pages, which counts for *names*."""
        counts = self._lead_on if new else self._end
        for name in names:
            if barren and (name in counts or len(counts) < MOST_PLACES):
                counts[name] += 1
            if name in self._discoveries or (barren and len(self._discoveries) < MOST_PLACES):
                self._discoveries.setdefault(name, _Discovery()).count(len(new))
        if len(new) >= A_LIST:
            self.listed(address, new)

    def listed(self, address: str, new: Sequence[str]) -> None:
        """Remember what the page at *address* is a list of. It names *new* pages, at least five."""
        own = likeness(address).pattern
        named = Counter(shape.family for shape in map(likeness, new) if shape.pattern != own)
        named.update(_by_query(lead) for lead in new if "?" in lead and page_of(likeness(lead).pattern) != page_of(own))
        for name, number in named.items():
            if number >= A_LIST and len(self._lists) < MOST_PLACES:
                self._lists.add((address, name))

    def tallies(self, names: UrlShape) -> Iterator[PatternTally]:
        """Yield the counts for *names* that have several pages, to save them. `restore` takes them back."""
        for name in dict.fromkeys(names):
            leads_on, end = self._lead_on[name], self._end[name]
            if leads_on + end < SEVERAL:
                continue
            yield PatternTally(ENDINGS + name, leads_on + end, leads_on, int(self.variety.differs(name)), end)
            if (found := self._discoveries.get(name)) is not None:
                lately, before = (round(THOUSANDTHS * average) for average in (found.lately, found.before))
                yield PatternTally(DISCOVERIES + name, found.pages, found.leading, lately, before)

    def restore(self, tally: PatternTally) -> bool:
        """Take back the counts in *tally*, unless ours are higher. Return False if it has no counts of this kind."""
        kind, space, name = tally.pattern.partition(" ")
        if kind + space == DISCOVERIES:
            mine = self._discoveries.get(name)
            if tally.visits > mine.pages if mine is not None else len(self._discoveries) < MOST_PLACES:
                lately, before = tally.streak / THOUSANDTHS, tally.barren / THOUSANDTHS
                self._discoveries[name] = _Discovery(tally.visits, tally.fruitful, lately, before)
            return True
        if kind + space != ENDINGS:
            return False
        if tally.visits > self._lead_on[name] + self._end[name] and len(self._end) < MOST_PLACES:
            self._lead_on[name], self._end[name] = tally.fruitful, tally.barren
            if tally.streak:
                self.variety.restore(name)
        return True

    def hold(self, address: str) -> None:
        """Remember that URLs such as *address* are held, so the pages that they name are no longer known."""
        if len(self._held) < MOST_PLACES:
            self._held.update(likeness(address))

    def has(self, address: str, via: str, names: UrlShape, *, proven: bool) -> bool:
        """Return True if *address* is of a pattern that comes to an end, and *via* is not held.

        Either *via* is a list, and *address* leads no further; unless this is to be *proven*, it is enough that nothing
        speaks against it. Or pages like *address* name ever fewer new URLs.
        """
        if via.count("/") < 3 or names.family.endswith(VARIANT):
            return False
        if "?" in address and not self.variety.differs(names.pattern):
            return False
        if not self._held.isdisjoint(likeness(via)):
            return False
        own = self._end[names.pattern] + self._lead_on[names.pattern]
        known = names.pattern if own >= SEVERAL else names.family
        if (discovery := self._discoveries.get(known)) is not None and discovery.ends():
            return True
        if not self._is_listed(address, via, names.family):
            return False
        leads_on = self._lead_on[known]
        return (leads_on - 1) * HOPELESS <= self._end[known] and (not proven or self._end[known] >= PROOF)

    def _is_listed(self, address: str, via: str, family: str) -> bool:
        """Return True if *via* is a list of pages like *address*. With a query, it must name several that differ there.

        Forms and other views of pages have a query too, but differ in their path, or no page names several of them.
        """
        if "?" in address:
            return (via, _by_query(address)) in self._lists
        return likeness(via).family != family or (via, family) in self._lists


def _by_query(address: str) -> str:
    """Return what URLs have in common that differ only in the values of their query."""
    return f"{page_of(address)}?{likeness(address).pattern.partition('?')[2]}"
