"""Which archived pages a crawl shows in a browser (`--browser`), and which URLs a page never asks for twice. Pure.

A page without scripts asks for nothing that its markup does not name, so it is not shown. Of the others, those that
scripts fill go first, and always. Where views bring nothing, only a sample of the pages is shown. See
docs/decisions/0064-browser-in-the-crawl.md.
"""

import re
from collections import Counter
from collections.abc import Iterable
from enum import IntEnum

from archiver.policy.url_forms import pattern


class ViewNeed(IntEnum):
    """How much a page needs a browser; smaller goes first."""

    EMPTY = 0  # scripts fill it: it has next to no text, or an empty place for an application
    LAZY = 1  # it has parts that scripts load later
    SCRIPTED = 2  # it has scripts
    NONE = 3


FEW = 200  # characters of text; a page with fewer says nothing by itself

_SCRIPTS = re.compile(rb"<script\b|\son[a-z]{3,20}\s*=", re.IGNORECASE)
_EMPTY_PLACE = re.compile(
    rb"""<(?:div|main|section|app-root|body)\b[^<>]{0,400}?\bid\s*=\s*["']?"""
    rb"""(?:app|root|main|react-root|__next|__nuxt|___gatsby|___docusaurus|svelte|sveltekit|q-app|ember-app|redoc"""
    rb"""|swagger-ui|storybook-root|single-spa)["']?[^<>]{0,400}>\s{0,400}</|<app-root\b[^<>]{0,400}>\s{0,400}</""",
    re.IGNORECASE,
)
_LAZY = re.compile(
    rb"""\sdata-(?:src|srcset|original|lazy|lazy-src|bg|background|background-image|url|href|load|endpoint|feed)\s*="""
    rb"""|\bclass\s*=\s*["'][^"'<>]{0,200}\b(?:lazy|lazyload|infinite|load-more|loadmore)\b"""
    rb"""|<noscript\b[^<>]{0,50}>[^<]{0,300}javascript|\bhx-(?:get|trigger)\s*=|<(?:video|audio)\b[^<>]{0,400}>\s{0,100}</"""
    rb"""|\bIntersectionObserver\b|<turbo-frame\b|\bx-data\s*=|\bng-app\b|<astro-island\b|\bdata-reactroot\b""",
    re.IGNORECASE,
)
_TAG = re.compile(rb"<(?:!--|/?([a-zA-Z][a-zA-Z0-9-]{0,20}))")
_UNSEEN = frozenset((b"script", b"style", b"noscript", b"template", b"svg", b"head", b"title"))


def need_of(page: bytes) -> ViewNeed:
    """Return how much the page that begins with *page* needs a browser."""
    if _SCRIPTS.search(page) is None:
        return ViewNeed.NONE
    if has_empty_place(page) or text_length(page, FEW) < FEW:
        return ViewNeed.EMPTY
    return ViewNeed.LAZY if _LAZY.search(page) is not None else ViewNeed.SCRIPTED


def has_empty_place(page: bytes) -> bool:
    """Return True if *page* has an empty place for an application that fills it."""
    return _EMPTY_PLACE.search(page) is not None


def text_length(page: bytes, most: int) -> int:
    """Return the bytes of text that *page* shows without scripts, spaces aside; at least *most* are enough."""
    place = total = 0
    closed: set[bytes] = set()  # elements without an end: to look for it again would take long
    while place < len(page) and total < most:
        found = _TAG.search(page, place)
        end = found.start() if found else len(page)
        total += sum(map(len, page[place:end].split()))
        if found is None:
            break
        name = (found[1] or b"").lower()
        if not found[1]:
            place = page.find(b"-->", found.end())
        elif name in _UNSEEN and name not in closed and page[found.start() + 1 : found.start() + 2] != b"/":
            place = _end_of(page, name, found.end())
            if place < 0:
                if name != b"head":  # whose end may be left out
                    break
                closed.add(name)
                place = page.find(b">", found.end())
        else:
            place = page.find(b">", found.end())
        if place < 0:
            break
        place += 1
    return total


def _end_of(page: bytes, name: bytes, start: int) -> int:
    """Return the place of the end tag of the element *name*; -1 if there is none."""
    for form in (b"</" + name, b"</" + name.upper()):
        if (place := page.find(form, start)) >= 0:
            return page.find(b">", place)
    return -1


FIRST = 3  # pages of each pattern that are shown in any case …
FIRST_OF_HOST = 12  # … until so many pages of a host have brought nothing
SAMPLE = 50  # then one page in so many is shown
MAX_PATTERNS = 100_000  # remembered; pages of a further pattern are a pattern together


class ViewSample:
    """Chooses the pages to show by what earlier views of the same pattern and the same host have brought.

    Pages that scripts fill are always shown. A page that is left out may be chosen later, when a page of its pattern
    has brought something.
    """

    def __init__(self, *, every: bool) -> None:
        """*every*: show all pages, also those without scripts."""
        self._every = every
        self._shown: Counter[str] = Counter()  # views by pattern
        self._fruitful: set[str] = set()  # patterns with a view that brought something
        self._barren: Counter[str] = Counter()  # views that brought nothing, by host, since one that did
        self._left_out: Counter[str] = Counter()  # pages in a row, by host
        self._dense: Counter[str] = Counter()  # views on a dense screen too, by pattern, since one that brought URLs

    def takes(self, host: str, shape: str, need: ViewNeed) -> bool:
        """Return True if a page of *host* with the pattern *shape* is to be shown; count it as shown or left out."""
        shape = self._known(shape)
        if not self._chosen(host, shape, need):
            self._left_out[host] += 1
            return False
        self._shown[shape] += 1
        return True

    def _chosen(self, host: str, shape: str, need: ViewNeed) -> bool:
        if self._every or need is ViewNeed.EMPTY:
            return True
        if need is ViewNeed.NONE:
            return False
        if shape in self._fruitful:
            return True
        if self._shown[shape] < FIRST and self._barren[host] < FIRST_OF_HOST:
            return True
        if self._left_out[host] >= SAMPLE - 1:
            self._left_out[host] = 0
            return True
        return False

    def ended(self, host: str, shape: str, *, brought: bool) -> bool:
        """Learn from a view; return True if all pages of its pattern that were left out are to be shown now."""
        shape = self._known(shape)
        if not brought:
            self._barren[host] += 1
            return False
        self._barren[host] = 0
        if shape in self._fruitful:
            return False
        self._fruitful.add(shape)
        return True

    def takes_dense(self, shape: str) -> bool:
        """Return True if a page that reads how dense the screen is, is to be shown on a dense one too."""
        return self._every or self._dense[self._known(shape)] < FIRST

    def ended_dense(self, shape: str, *, brought: bool) -> None:
        """Learn from a view on a dense screen; *brought*: the page asked there for URLs that the crawl did not know."""
        shape = self._known(shape)
        self._dense[shape] = 0 if brought else self._dense[shape] + 1

    def _known(self, shape: str) -> str:
        return shape if shape in self._shown or len(self._shown) < MAX_PATTERNS else ""


MAX_VOLATILE = 10_000  # patterns


class VolatileUrls:
    """Patterns of URLs that differ each time a page is shown, so that no replay asks for one again.

    Such URLs contain the milliseconds that have passed, or numbers from a source of chance that a replay cannot seed.
    """

    def __init__(self) -> None:
        self._patterns: set[str] = set()

    def saw(self, before: Iterable[str], after: Iterable[str]) -> None:
        """Learn from two views of a page: the URLs that only the one *before* asked for, and only the one *after*."""
        both = {pattern(one) for one in before} & {pattern(one) for one in after}
        self._patterns.update(sorted(both)[: max(0, MAX_VOLATILE - len(self._patterns))])

    def covers(self, address: str) -> bool:
        """Return True if *address* has a volatile pattern."""
        return bool(self._patterns) and pattern(address) in self._patterns
