"""Patterns whose URLs answer without a page: with errors, or with redirects that lead nowhere new. Pure.

Invariant: what is forgotten is requested once more.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator

from archiver import url
from archiver.policy.content_ids import TallyOf
from archiver.policy.dead_ends import HOPELESS, MOST_PLACES, RETURNS, FormPages, MissingPages, lateness
from archiver.policy.url_forms import likeness, spelling

AFTER_TARGET = 2  # levels; an unlisted page goes one level later
MOST_TARGETS = 4  # patterns of the new pages to which the redirects of one pattern lead; more are as good as real ones


_NONE = Counter[str]()


class Redirects:
    """Counts redirects by pattern. Not thread-safe.

    A redirect is in vain if the crawl knew its target before, or if pages of its target's pattern bring nothing. A
    pattern with any other redirect is never held. It waits until the first pages that it leads to are there.
    """

    name = "redirects to known pages"

    def __init__(self, forms: FormPages, is_known: Callable[[str], bool], tally_of: TallyOf) -> None:
        self._forms = forms
        self._is_known = is_known
        self._tally_of = tally_of
        self._to_known = MissingPages()
        self._targets: OrderedDict[str, Counter[str]] = OrderedDict()  # by pattern: new ones, as their first example
        self._bound = 0

    @property
    def any_late(self) -> bool:
        """True if some pattern may be suspicious."""
        return self._to_known.any_late or bool(self._bound)

    def saw(self, address: str, shape: str, target: str, patience: int) -> None:
        """Count the redirect from *address*, of the pattern *shape*, to *target*. See `MissingPages.missed`."""
        if spelling(target) == spelling(address):
            return
        known = self._is_known(target)
        if known or self._is_barren(target):
            self._to_known.missed(address, shape, patience)
        if known:
            return
        found = Counter(self._targets.pop(shape, _NONE))  # a copy: others may read it meanwhile
        own = likeness(target).pattern
        example = next((each for each in found if likeness(each).pattern == own), target)
        if example in found or len(found) < MOST_TARGETS:
            found[example] += 1
        self._targets[shape] = found
        if patience and found.total() >= patience:
            self._bound = patience
        if len(self._targets) > MOST_PLACES:
            self._targets.popitem(last=False)

    def found(self, shape: str) -> None:
        """A page of the pattern *shape* is there, so its redirects no longer speak against it."""
        self._to_known.found(shape)
        self._targets.pop(shape, None)

    def to_forms(self, shape: str) -> str:
        """Return *shape* if enough of its redirects led to forms that are the same, and none to a new page, or ""."""
        found = self._targets.get(shape, _NONE)
        return shape if found.total() >= RETURNS and all(map(self._forms.spent, found)) else ""

    def level(self, shape: str) -> int:
        """Return how late a URL of the pattern *shape* goes for its redirects."""
        found, late = self._targets.get(shape, _NONE), self._to_known.level(shape)
        if late and self._news(found) * HOPELESS >= self._to_known.count(shape):
            late = 0
        return max(late, self._behind(shape, found))

    def _behind(self, shape: str, found: Counter[str]) -> int:
        """Return how late a redirect goes to come after the first pages of its site that such redirects lead to."""
        if not 0 < self._bound <= found.total() or any(url.origin(each) != url.origin(shape) for each in found):
            return 0
        tallies = [self._tally_of(likeness(each).pattern) for each in found]
        if any(tally is not None and tally.fruitful > max(1, tally.barren) for tally in tallies):
            return 0
        return AFTER_TARGET + max((lateness(tally, self._bound) for tally in tallies if tally), default=0)

    def may_hold(self, shape: str) -> bool:
        """Return True if URLs of the pattern *shape* may be held after the budget is spent."""
        return self._to_known.level(shape) > 0 and not self._news(self._targets.get(shape, _NONE))

    def of_site(self, address: str) -> int:
        """Return how many redirects were in vain on the site of *address*."""
        return self._to_known.of_site(address)

    def _news(self, found: Counter[str]) -> int:
        """Return how many redirects led to new pages that may bring something."""
        return sum(count for each, count in found.items() if not self._is_barren(each))

    def _is_barren(self, target: str) -> bool:
        """Return True if pages such as *target* bring nothing."""
        tally = self._tally_of(likeness(target).pattern)
        barren = tally is not None and tally.barren >= RETURNS and tally.fruitful * HOPELESS < tally.barren
        return barren or self._forms.spent(target) != ""


class Pageless:
    """The patterns that have answered, and had no page. A page of theirs frees the others. Not thread-safe."""

    def __init__(self, redirects: Redirects) -> None:
        self._missing = MissingPages()
        self._redirects = redirects
        self.to_forms = redirects.to_forms

    @property
    def any_late(self) -> bool:
        """True if some pattern may be suspicious for that."""
        return self._missing.any_late or self._redirects.any_late

    def saw(self, address: str, shape: str, target: str, patience: int) -> None:
        """Count an error for *address*, of the pattern *shape*, or its redirect to *target*."""
        if target:
            self._redirects.saw(address, shape, target, patience)
        else:
            self._missing.missed(address, shape, patience)

    def found(self, shape: str) -> None:
        """A page of the pattern *shape* is there."""
        self._missing.found(shape)
        self._redirects.found(shape)

    def late(self, shape: str) -> Iterator[MissingPages | Redirects]:
        """Yield what makes URLs of the pattern *shape* go later."""
        if self.any_late:
            yield from (each for each in (self._missing, self._redirects) if each.level(shape))
