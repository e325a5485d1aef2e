"""Pages that lead nowhere: patterns that bring nothing, missing pages, forms that repeat themselves, mazes. Pure.

A form to log in and return, to report a post or to answer one is the same page under each URL but for the page that it
returns to, or the number that it is about. After a few in a row, we hold the others, whatever is left of the site's
budget for barren pages. A page counts as such a form only if all of this holds:

- It has a form that is sent by POST and takes with it the page to return to, or a value of the URL.
- It has the words and images of an earlier page of its pattern, apart from words of their URLs and of the titles of the
  pages that the forms are about.
- It has no password field, unless its URL names a page to return to: it may be a wall before a real page.
- It has no empty place that a script fills.

Each other page of the pattern makes us more patient with it, as in doubt a page is real.
Invariant: what is forgotten is requested once more.
"""

import re
from base64 import b64decode
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import unquote

from archiver import url
from archiver.model import PatternTally
from archiver.policy.content_ids import brings
from archiver.policy.novelty import READ_ALL, PageNovelty
from archiver.policy.page_blocks import (
    PageModel,
    form_action,
    hidden_values,
    page_model,
    posted_forms,
    title_words,
)
from archiver.policy.url_forms import likeness, page_of, values_in, values_of_query
from archiver.policy.views import has_empty_place

RETURNS = 10  # the same forms in a row that name a page to return to, and …
ABOUT = 20  # … those about a number, after which we hold the others
MOST_PATTERNS = 256  # of pages with such forms
MOST_MODELS = 3  # forms of one pattern that differ: to log in, to sign up
MOST_FORMS = 16  # of a page that are read
TITLES = 64  # of pages of one pattern that are remembered, since forms may quote them, …
MOST_TITLES = 8192  # … and of all patterns
MAZE = 100  # pages of one directory that led only to new URLs; beyond, such pages count as barren
MAZES = "maze "  # begins the saved name of such a directory
SHALLOW = 3  # such pages in a row, with the home page, that do not count
MOST_PLACES = 20_000  # directories, patterns and sites
IN_VAIN = 200  # barren pages of a pattern after which lists no longer answer for it, …
HOPELESS = 20  # … if fewer than one in so many brought something
MISSING = frozenset((400, 404, 405, 410, 422, 500, 501))  # errors of one page, not of a visitor or for a while
LEVELS = (0, 64, 256, 600)  # barren pages; at each of these counts a pattern goes later

_PASSWORD = re.compile(rb"""\btype\s*=\s*["']?password\b""", re.IGNORECASE)
_NUMBERED = re.compile("[0-9]")
_BASE64 = re.compile("[0-9A-Za-z+/_-]{4,2000}={0,2}")


@dataclass(slots=True)
class _Pattern:
    """The pages of one pattern, from the first one with a form on."""

    models: list[PageModel] = field(default_factory=list)
    others: int = 0  # pages that were no form, or another one
    row: int = 0  # pages with the same form since
    bound: int = RETURNS

    def is_spent(self) -> bool:
        return self.row >= self.bound * (1 + self.others)


class FormPages:
    """Counts pages that are the same form. *is_known* tells if a page of the crawl named a URL. Not thread-safe."""

    def __init__(self, is_known: Callable[[str], bool]) -> None:
        self._is_known = is_known
        self._patterns: OrderedDict[str, _Pattern] = OrderedDict()
        self._spent: set[str] = set()
        self._titles: dict[str, frozenset[bytes]] = {}
        self._titled: Counter[str] = Counter()

    @property
    def any_spent(self) -> bool:
        """True if URLs of some pattern are held."""
        return bool(self._spent)

    def spent(self, address: str, tally: PatternTally | None = None) -> str:
        """Return the pattern of *address* of which enough forms were seen, or "". *tally*: of its own pattern.

        A pattern that brings something, and has other pages than such forms, is none.
        """
        visits = tally.visits if tally is not None and brings(tally) else 0
        return next((name for name in _names(address) if self._is_spent(name, visits)), "") if self._spent else ""

    def _is_spent(self, name: str, visits: int) -> bool:
        known = self._patterns.get(name) if name in self._spent else None
        return known is not None and 2 * known.row >= visits

    def saw(self, address: str, via: str, page: bytes, worth: PageNovelty | None) -> None:
        """Count the *page* at *address*, which *via* names. It is *worth* so much; None: it leads to new pages."""
        bound = 0 if worth is None or worth is PageNovelty.NUMBERS else self._enough(address, via, page)
        if bound == ABOUT and worth in {PageNovelty.NUMBER, PageNovelty.COUNTER}:
            bound = 0
        model = None
        if bound:
            quoted = self._titles_about(address, via)
            model = page_model(page[:READ_ALL], address, quoted, whole=bound == ABOUT)
        self._remember_title(address, page)
        for name in _names(address) if self._patterns or model is not None else ():
            if name in self._patterns or model is not None:
                self._count(name, bound, model, exact=bound == ABOUT and worth is PageNovelty.NEW)

    def _titles_about(self, address: str, via: str) -> frozenset[bytes]:
        """Return the words in the titles of *via* and of the page that *address* names."""
        root = f"{url.origin(address)}/"
        values = [each for value in values_of_query(address) for each in (value, _decoded(value)) if each]
        pages = {via, page_of(address), *(url.join(root, value.partition("#")[0]) for value in values)}
        return frozenset[bytes]().union(*(self._titles[each] for each in pages if each in self._titles))

    def _remember_title(self, address: str, page: bytes) -> None:
        own = likeness(address).pattern
        if self._titled[own] < TITLES and len(self._titles) < MOST_TITLES:
            self._titled[own] += 1
            self._titles[address] = title_words(page)

    def forgive(self, address: str) -> None:
        """Count the page at *address* as another one: it has an image that is new."""
        for name in _names(address):
            if name in self._patterns and self._patterns[name].row:
                self._count(name, 0, None)

    def _count(self, name: str, bound: int, model: PageModel | None, *, exact: bool = False) -> None:
        """Count a page for the pattern *name*. *exact*: it is no form if it has numbers of its own."""
        known = self._patterns.pop(name, None)
        found = self._patterns[name] = known or _Pattern()
        found.bound = max(found.bound, bound)
        if model is not None and any(
            model.is_like(each) and (not exact or model.has_numbers_of(each)) for each in found.models
        ):
            found.row += 1
        else:
            found.row = 0
            found.others += known is not None
            if model is not None:
                found.models = [model, *found.models][:MOST_MODELS]
        if found.is_spent():
            self._spent.add(name)
        else:
            self._spent.discard(name)
        if len(self._patterns) > MOST_PATTERNS:
            gone, _ = self._patterns.popitem(last=False)
            self._spent.discard(gone)

    def _enough(self, address: str, via: str, page: bytes) -> int:
        """Return how many forms such as this *page* are enough; 0 if it is no such form."""
        if "?" not in address and _NUMBERED.search(url.path(address)) is None:  # a form has nothing to take from it
            return 0
        forms = list(islice(posted_forms(page[:READ_ALL]), MOST_FORMS)) if b"<form" in page or b"<FORM" in page else []
        if not forms or has_empty_place(page):
            return 0
        back = self._returns_to(address, via)
        if back and any(_takes(form, back, address) for form in forms):
            return RETURNS
        if _PASSWORD.search(page) is not None:
            return 0
        values = [each for each in values_in(address) if _NUMBERED.search(each)]
        return ABOUT if any(_takes_number(form, values, address) for form in forms) else 0

    def _returns_to(self, address: str, via: str) -> str:
        """Return the value in the query of *address* that names a page to return to, or that page itself, or ""."""
        chosen = likeness(address).pattern
        for value in values_of_query(address):
            if f"={value.lower()}" in chosen:  # ?do=login
                continue
            written = _decoded(value) or value
            target = None if value.isdigit() else url.join(f"{url.origin(address)}/", written.partition("#")[0])
            if target is None or not target.startswith(f"{url.origin(address)}/"):
                target = ""
            name = _folded(value)
            named = len(name) > 1 and not name.isdigit() and (f"/{name}" in _folded(via) or f"={name}" in _folded(via))
            if named or (target and (target == via or self._is_known(target))):
                return value
        return url.path(address) if _is_action(address) and self._is_known(page_of(address)) else ""


def _names(address: str) -> tuple[str, ...]:
    """Return the patterns that *address* counts for: its own, and that of the same action on any page."""
    own = likeness(address).pattern
    return (own, f"{url.origin(address)}/*?{own.partition('?')[2]}") if _is_action(address) else (own,)


def _is_action(address: str) -> bool:
    """Return True if the query of *address* has nothing but what a program is to do with a page: `?action=login`."""
    query = likeness(address).pattern.partition("?")[2]
    return query != "" and all("=" in part for part in query.split("&"))


def _folded(text: str) -> str:
    """Return *text* with a space for each of `+` and `_`, as in the names of pages."""
    return unquote(text).replace("+", " ").replace("_", " ")


def _takes(form: bytes, back: str, address: str) -> bool:
    """Return True if *form* takes the page *back* with it: in a field, or as it is sent to the page's own URL.

    A form that takes the whole URL of its page is one that each page has: to choose a language, to log in.
    """
    action, root = form_action(form, address), f"{url.origin(address)}/"
    if action == address or page_of(action) == url.join(root, back):
        return True
    wanted = {_folded(back), url.join(root, _decoded(back) or back)}
    sent = (*hidden_values(form), *values_of_query(action))
    return any({_folded(value), url.join(root, _decoded(value) or value)} & wanted for value in sent)


def _decoded(value: str) -> str:
    """Return the path or URL that *value* holds in base64, or ""."""
    if _BASE64.fullmatch(value) is None:
        return ""
    plain = value.rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 == 1:
        return ""
    found = b64decode(plain + "=" * (-len(plain) % 4))
    text = found.decode("utf-8", "replace")
    return text if text.isprintable() and text.startswith(("/", "http://", "https://")) else ""


def _takes_number(form: bytes, values: Sequence[str], address: str) -> bool:
    """Return True if *form* takes one of *values* with it."""
    if form_action(form, address) == address:
        return bool(values)
    sent = {*hidden_values(form), *values_in(form_action(form, address))}
    return any(value in sent for value in values)


class Mazes:
    """Counts the pages of each directory that lead only to URLs not named before, far from any other page.

    Home, categories, products and their variants may each lead only to new pages, on a site without a menu. So may the
    pages of a long list, whose entries in another directory lead no further.
    """

    def __init__(self) -> None:
        self._pages: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()  # pages that lead to no new ones, by directory
        self._depths: OrderedDict[str, int] = OrderedDict()  # how many such pages in a row led to a page, itself too
        self._restored: set[str] = set()  # directories that an earlier run found to be mazes

    def saw(self, address: str, leads: Sequence[str], new: Sequence[str], via: str = "") -> bool:
        """Return True if the page at *address* is one of very many that lead only to *new* ones of its *leads*."""
        home = f"{url.origin(address)}/"
        place = _directory(home, address)
        if not new and len(self._ends) < MOST_PLACES:
            self._ends[place] += 1
        others = len(leads) - leads.count(home) - leads.count(address) * (address != home)
        if len(new) < max(2, others):
            return False
        self._depths[address] = self._depths.get(via, SHALLOW if place in self._restored else 0) + 1
        if len(self._depths) > MOST_PLACES:
            self._depths.popitem(last=False)
        if via and (self._depths[address] <= SHALLOW or self._lists_ends(home, place, new)):
            return False
        if len(self._pages) < MOST_PLACES:
            self._pages[place] += 1
        return self._pages[place] > MAZE

    def tallies(self, address: str) -> tuple[PatternTally, ...]:
        """Return the counts for the directory of *address* if it is nearly a maze, to save them for `restore`."""
        place = _directory(f"{url.origin(address)}/", address)
        if (pages := self._pages[place]) < MAZE // 2:
            return ()
        return (PatternTally(MAZES + place, pages + self._ends[place], 0, 0, pages, self._ends[place]),)

    def restore(self, tally: PatternTally) -> bool:
        """Take back the counts in *tally*, unless ours are higher. Return False if it has no counts of this kind."""
        kind, space, place = tally.pattern.partition(" ")
        if kind + space != MAZES:
            return False
        if tally.barren > self._pages[place] and len(self._pages) < MOST_PLACES:
            self._pages[place], self._ends[place] = tally.barren, tally.listed
            if tally.barren > MAZE:
                self._restored.add(place)
        return True

    def _lists_ends(self, home: str, place: str, new: Sequence[str]) -> bool:
        """Return True if one of the *new* pages is in another directory, and most pages there led no further."""
        others = {_directory(home, each) for each in new} - {place}
        return any(self._ends[each] > max(1, self._pages[each]) for each in others)


def _directory(home: str, address: str) -> str:
    """Return the first directory of *address* below *home*."""
    return home + address[len(home) :].partition("?")[0].rpartition("/")[0].partition("/")[0]


class MissingPages:
    """Counts errors in place of pages, by pattern, as long as no page of the pattern is there. Not thread-safe.

    Links that lead nowhere cost no other page of the site its place, so they have a budget of their own.
    """

    name = "missing pages"

    def __init__(self) -> None:
        self._missing: OrderedDict[str, int] = OrderedDict()
        self._sites: Counter[str] = Counter()
        self._late: set[str] = set()

    @property
    def any_late(self) -> bool:
        """True if some pattern is suspicious for that."""
        return bool(self._late)

    def missed(self, address: str, shape: str, patience: int) -> None:
        """Count an error for *address*, of the pattern *shape*, which goes later after as many as *patience*."""
        count = self._missing[shape] = self._missing.pop(shape, 0) + 1
        if len(self._sites) < MOST_PLACES:
            self._sites[url.origin(address)] += 1
        if patience and count >= patience:
            self._late.add(shape)
        if len(self._missing) > MOST_PLACES:
            self._late.discard(self._missing.popitem(last=False)[0])

    def found(self, shape: str) -> None:
        """A page of the pattern *shape* is there, so the missing ones no longer speak against the others."""
        if self._missing.pop(shape, 0):
            self._late.discard(shape)

    def count(self, shape: str) -> int:
        """Return how many pages of the pattern *shape* are missing."""
        return self._missing.get(shape, 0)

    def level(self, shape: str) -> int:
        """Return how late a page of the pattern *shape* goes for those that are missing."""
        return _level(self._missing[shape]) if shape in self._late else 0

    def may_hold(self, shape: str) -> bool:
        """Return True if pages of the pattern *shape* may be held after the budget is spent."""
        return shape in self._late

    def of_site(self, address: str) -> int:
        """Return how many pages are missing on the site of *address*, of patterns that had no page by then."""
        return self._sites[url.origin(address)]


def lateness(tally: PatternTally, patience: int) -> int:
    """Return how late the pages of a pattern or a family go."""
    cost = tally.barren - (0 if is_in_vain(tally) else tally.listed)
    if not patience or cost < patience:
        return 0
    if tally.fruitful > tally.barren:
        return int(tally.streak >= patience)
    return _level(cost)


def _level(cost: int) -> int:
    return sum(cost >= bound for bound in LEVELS)


def is_in_vain(tally: PatternTally) -> bool:
    """Return True if no list answers for the pages of *tally* any more: so many of them brought nothing."""
    return tally.barren >= IN_VAIN and tally.fruitful * HOPELESS < tally.barren
