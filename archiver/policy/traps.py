"""Traps: parts of a site that go on without end and bring nothing. Pure; the year is an argument.

A page is *barren* if all that it shows beyond its own URL was shown before on its site. Suspicion delays: what looks
like a trap goes to the end of its host's queue, the later the more barren pages its pattern has brought. It is fetched
all the same, until the site's budget of barren pages is spent; only then is the rest of what is suspicious held.

A copy is neither barren nor fruitful: a page that repeats what few others show. Each text excuses few pages, so no trap
lives on copies.

These count as content: text, images, data and numbers that are new. One number alone counts only if a page of another
pattern named the URL; otherwise an endless counter would be new for ever. A page that names several new pages of
another pattern is a list, and answers for them, if it brought something or is the first of its own pattern. Variants of
a known URL (another session id, another order of the query) have tallies of their own, so they cost no real page.
Pages that the site keeps out of search engines go later too, but are never held for that.
Invariant: what is forgotten counts as new, so a bound of memory costs requests and never a page.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from archiver import url
from archiver.config.scope_settings import TrapSettings
from archiver.model import Hop, PatternTally
from archiver.policy.novelty import Novelty, PageNovelty
from archiver.policy.unlisted import UnlistedPages
from archiver.policy.url_forms import UrlShape, is_session, likeness, odd, page_of, variant

RULES = (
    "max-repeats",
    "max-segments",
    "max-url-length",
    "max-years-ahead",
    "trap-budget",
    "pattern-budget",
    "directory-budget",
    "traps",
)  # the beginning of each rule, in the words of the settings

VARIANT = "#variant"  # ends the tally names of variants of other URLs; no URL here has a fragment
SITE = "site "  # begins the tally name of a whole site
MOST_PATTERNS = 20_000  # in memory, and restored by a later run; the least recently seen is forgotten
POOR = 1 << 16  # barren pages: half a megabyte; a power of two, like …
KNOWN = 1 << 18  # … pages that were linked to: two megabytes
VARIANTS = 1 << 16  # URLs without their session ids, each with its first variant
SHARE = 5  # the site may have one more barren page for so many fruitful ones; for each one, if their URLs are single
PROVEN = 8  # fruitful pages of a pattern; from then on we suspect it only if a third of its pages are barren
A_LIST = 5  # new pages of one pattern that a page must link to, to answer for them
IN_VAIN = 200  # barren pages of a pattern after which lists no longer answer for it, …
HOPELESS = 20  # … if fewer than one in so many brought something
MAZE = 100  # pages of one directory that led only to new URLs; beyond, such pages count as barren
LEVELS = (0, 64, 256, 600)  # barren pages; at each of these counts a pattern goes later

_PAGES = frozenset((Hop.LINK, Hop.REDIRECT))


@dataclass(frozen=True, slots=True)
class PageEvidence:
    """The facts about an answered visit. *leads*: its links to pages of its host; *via*: the page that led to it."""

    url: str
    text: bytes
    leads: Sequence[str] = ()
    via: str = ""
    markup: bool = True  # True if it is HTML; anything else is compared as plain bytes
    unlisted: bool = False  # True if the site keeps it out of search engines


class Suspicion(NamedTuple):
    """The suspicion against a URL: how late it goes (0: in its turn), and the rule that holds it, or ""."""

    level: int
    rule: str = ""
    pattern: str = ""


FREE = Suspicion(0)


class Traps:
    """The tallies of the URL patterns of one crawl; *known*: those of earlier runs. Not thread-safe."""

    def __init__(self, settings: TrapSettings, known: Iterable[PatternTally] = ()) -> None:
        self._settings = settings
        self._on = settings.traps == "on"
        self._tallies: dict[str, PatternTally] = {}
        self._levels: dict[str, int] = {}  # of patterns and families that are suspicious
        self._mazes: Counter[str] = Counter()
        self._unlisted = UnlistedPages()
        self._variants = array("q", bytes(16 * (VARIANTS if self._on else 1)))
        self._novelty = Novelty() if self._on else None
        self._poor = array("q", bytes(8 * (POOR if self._on else 1)))
        self._known = array("q", bytes(8 * (KNOWN if self._on else 1)))
        for tally in known if self._on else ():
            self._keep(tally)

    def take(self, settings: TrapSettings) -> None:
        """Use the numbers in *settings* from now on."""
        self._settings = settings

    def learn(self, known: Iterable[PatternTally]) -> None:
        """Take from *known* the barren pages that a person now allows per pattern, and counts that are higher."""
        for tally in known if self._on else ():
            mine = self._tallies.get(tally.pattern)
            if mine is None or tally.visits > mine.visits:
                self._keep(tally)
            else:
                self._keep(mine._replace(released=tally.released))

    @property
    def calm(self) -> bool:
        """True if nothing is suspicious. Then, of the URLs that were taken before, only variants can matter."""
        return not self._levels and not self._has_budgets

    @property
    def _has_budgets(self) -> bool:
        return bool(self._settings.pattern_budget or self._settings.directory_budget)

    def met(self, addresses: Iterable[str]) -> None:
        """Remember *addresses* as linked to. All of them were accepted before."""
        if self._on:
            known, where = self._known, KNOWN - 1
            for number in map(hash, addresses):
                known[number & where] = number

    def judge(self, address: str, hop: Hop, via: str, year: int) -> Suspicion:
        """Return the suspicion against a link to *address* on the page *via*; *year* is the current one."""
        if not self._on or hop not in _PAGES:
            return FREE
        self._known[hash(address) & (KNOWN - 1)] = hash(address)
        rule = odd(address, self._settings, year)
        again = self._is_variant(address)
        if rule or again or self._levels or self._has_budgets or self.is_poor(via):
            alone = Suspicion(2 if again else int(bool(rule)), rule)
            return self._placed(address, self._standing(address, via, _names(address, varies=again), alone))
        return self._placed(address, FREE)

    def waits(self, address: str, via: str) -> Suspicion:
        """Return the suspicion against a page that is already queued. See `judge`."""
        if not self._on:
            return FREE
        if not self._levels and not self._has_budgets:
            return self._placed(address, FREE)
        return self._placed(address, self._standing(address, via, self._names(address), FREE))

    def _placed(self, address: str, standing: Suspicion) -> Suspicion:
        """Return *standing*, one level later for an unlisted page. That never holds it."""
        if standing.rule or not self._unlisted.likely(address):
            return standing
        return Suspicion(standing.level + 1)

    def is_poor(self, address: str) -> bool:
        """Return True if *address* is a page that showed nothing new."""
        return self._on and address != "" and self._poor[hash(address) & (POOR - 1)] == hash(address)

    def saw(self, page: PageEvidence) -> tuple[PatternTally, ...]:
        """Count an archived page. Return the changed tallies of its pattern, its family and its site."""
        if self._novelty is None:
            return ()
        if page.markup:
            self._unlisted.saw(page.url, unlisted=page.unlisted)
        shape, family = self._names(page.url)
        own = likeness(page.url).pattern
        same = page.via != "" and likeness(page.via).pattern == own
        first = shape not in self._tallies and not self.is_poor(page.via)
        known, where = self._known, KNOWN - 1
        new = [lead for lead in page.leads if known[hash(lead) & where] != hash(lead) and not self._is_variant(lead)]
        worth = self._novelty.worth(page.url, own, page.text, markup=page.markup, varied=_is_varied(page.url, new))
        if worth is PageNovelty.NUMBER and (same or self.is_poor(page.via)):
            worth = PageNovelty.COUNTER  # one number, and only pages of its own pattern link here
        if worth is not PageNovelty.NEW and new and self._leads_on(own, family, new):
            worth = PageNovelty.NEW
        if worth is PageNovelty.NEW and self._in_maze(page, new):
            worth = PageNovelty.NOTHING
        if worth is PageNovelty.COPY and (same or not self._is_single(page.url, shape)):
            worth = PageNovelty.NOTHING
        if worth is PageNovelty.NOTHING:
            self._poor[hash(page.url) & (POOR - 1)] = hash(page.url)
        listed = self._listed(own, new) if worth is PageNovelty.NEW or first else ()
        return (*listed, *self._count(page.url, shape, family, worth))

    def saw_part(self, via: str, content: int) -> tuple[PatternTally, ...]:
        """Count a requisite of the page *via*. New *content* speaks for the page's pattern, known content against it.

        It counts only if the page itself showed nothing new.
        """
        if self._novelty is None or not self.is_poor(via):
            return ()
        shape, family = self._names(via)
        if self._novelty.is_new(url.origin(via), content):
            self._poor[hash(via) & (POOR - 1)] = 0
            return self._forgive(via, shape, family)
        return self._count(via, shape, family, PageNovelty.NOTHING)

    def _standing(self, address: str, via: str, names: UrlShape, alone: Suspicion) -> Suspicion:
        """Return the suspicion against *address* by the tallies of its patterns; *alone* is the one by its URL."""
        (shape, family), (level, rule, _) = names, alone
        tally = self._tallies.get(shape)
        if self._has_budgets and (over := self._over_budget(shape, family)):
            return over
        if tally is not None and tally.fruitful >= PROVEN and tally.fruitful > 2 * tally.barren:
            return FREE
        of_family = self._levels.get(family, 0)
        if tally is not None and tally.visits >= PROVEN:  # the pattern speaks for itself
            of_family = min(of_family, 1)
        level = max(level, self._levels.get(shape, 0), of_family)
        if not level and self.is_poor(via):
            level = 1
        if not level or not self._is_spent(address, shape, odd=bool(rule)):
            return Suspicion(level)
        return self._held(shape, family, tally, rule)

    def _held(self, shape: str, family: str, tally: PatternTally | None, rule: str) -> Suspicion:
        """Return the suspicion that holds a URL after the site's budget is spent, unless the pattern was released."""
        several = tally is not None and tally.visits > 1
        for name in (shape, family):
            of_name = self._tallies.get(name)
            if of_name is not None and of_name.released > max(0, of_name.barren - of_name.listed):
                return Suspicion(len(LEVELS))
        return Suspicion(
            len(LEVELS), rule or f"trap-budget: {self._settings.trap_budget}", shape if several else family
        )

    def _is_spent(self, address: str, shape: str, *, odd: bool) -> bool:
        """Return True if the site of *address* has used up its budget of barren pages for URLs like this one."""
        budget = self._settings.trap_budget
        site = self._tallies.get(SITE + url.origin(address))
        if not budget or site is None:
            return False
        share = 1 if not odd and self._is_single(address, shape) else SHARE
        return site.barren >= max(budget, site.fruitful // share)

    def _is_single(self, address: str, shape: str) -> bool:
        """Return True if *address* has no query, is no variant, and its pattern is not known to bring nothing."""
        tally = self._tallies.get(shape)
        in_vain = tally is not None and tally.barren >= PROVEN and tally.fruitful * HOPELESS < tally.barren
        return "?" not in address and not shape.endswith(VARIANT) and not in_vain

    def _over_budget(self, shape: str, family: str) -> Suspicion | None:
        """Return the suspicion if the settings limit the pages of *shape* or *family* and the limit is reached."""
        settings = self._settings
        budgets = (
            ("pattern", settings.pattern_budget, shape),
            ("directory", settings.directory_budget, _directory(family)),
        )
        for what, budget, name in budgets:
            tally = self._tallies.get(name)
            if budget and tally is not None and tally.visits >= budget + tally.released:
                return Suspicion(len(LEVELS), f"{what}-budget: {budget}", name)
        return None

    def _names(self, address: str) -> UrlShape:
        return _names(address, varies=self._is_variant(address))

    def _is_variant(self, address: str) -> bool:
        """Return True if a URL was taken that differs only in session ids or in the order of its query."""
        common = variant(address)
        if not common:
            return False
        key, itself = hash(common), hash(address)
        place = 2 * (key & (VARIANTS - 1))
        if self._variants[place] == key:
            return self._variants[place + 1] != itself
        self._variants[place], self._variants[place + 1] = key, itself
        return False

    def _leads_on(self, shape: str, kin: str, new: Iterable[str]) -> bool:
        """Return True if one of the *new* links has another pattern, whose pages mostly brought something."""
        known, where = self._known, KNOWN - 1
        for lead in new:
            pattern, family = likeness(lead)
            if page_of(pattern) == page_of(shape) or is_session(lead):
                continue
            if not self._has_brought(pattern, "" if family == kin else family):
                continue
            number = hash(page_of(lead)) if "?" in lead else 0  # a known page with another query is not new
            if not number or known[number & where] != number:
                return True
        return False

    def _has_brought(self, pattern: str, family: str) -> bool:
        """Return True if most pages of *pattern* brought something. If none was seen, judge by *family*."""
        tally = self._tallies.get(pattern)
        if tally is None or not tally.visits:
            tally = self._tallies.get(family)
        return tally is not None and tally.fruitful > tally.barren

    def _in_maze(self, page: PageEvidence, new: Sequence[str]) -> bool:
        """Return True if *page* is one of very many in its directory that lead only to URLs not named before."""
        if len(new) < 2:
            return False
        home = f"{url.origin(page.url)}/"
        others = len(page.leads) - page.leads.count(home) - page.leads.count(page.url) * (page.url != home)
        if len(new) < others:
            return False
        place = home + page.url[len(home) :].partition("?")[0].rpartition("/")[0].partition("/")[0]
        if len(self._mazes) < MOST_PATTERNS:
            self._mazes[place] += 1
        return self._mazes[place] > MAZE

    def _listed(self, shape: str, new: Iterable[str]) -> tuple[PatternTally, ...]:
        """Let a page answer for its *new* links if many have one other pattern. Return the changed tallies."""
        found: Counter[str] = Counter()
        for lead in new:
            pattern = likeness(lead).pattern
            if pattern not in {shape, lead} and page_of(pattern) != page_of(shape):
                found[pattern] += 1
        changed = []
        for pattern, number in found.items():
            tally = self._tallies.get(pattern) or PatternTally(pattern, 0, 0, 0)
            in_vain = tally.barren >= IN_VAIN and tally.fruitful * HOPELESS < tally.barren
            if number >= A_LIST and not in_vain:
                changed.append(self._keep(tally._replace(listed=tally.listed + number)))
        return tuple(changed)

    def _count(self, address: str, shape: str, family: str, worth: PageNovelty) -> tuple[PatternTally, ...]:
        """Count one more page of *worth*. Return the changed tallies."""
        site = SITE + url.origin(address)
        tally = self._tallies.get(shape) or PatternTally(shape, 0, 0, 0)
        barren = worth in {PageNovelty.NOTHING, PageNovelty.COUNTER} or (
            worth is PageNovelty.NUMBER and tally.fruitful % SHARE == 4
        )
        answered = barren and tally.barren < tally.listed
        changed = []
        for name in dict.fromkeys((shape, family, site)):
            known = self._tallies.get(name) or PatternTally(name, 0, 0, 0)
            costs = barren and (name == shape or not answered)
            fruitful = known.fruitful + (worth in {PageNovelty.NEW, PageNovelty.NUMBERS, PageNovelty.NUMBER})
            streak = known.streak + costs if barren else 0
            changed.append(
                self._keep(
                    known._replace(
                        visits=known.visits + 1,
                        fruitful=fruitful,
                        streak=streak,
                        barren=known.barren + costs,
                    )
                )
            )
        if (directory := _directory(family)) != family:
            known = self._tallies.get(directory) or PatternTally(directory, 0, 0, 0)
            changed.append(self._keep(known._replace(visits=known.visits + 1)))
        return tuple(changed)

    def _forgive(self, address: str, shape: str, family: str) -> tuple[PatternTally, ...]:
        """Count a page as fruitful that had counted as barren. Return the changed tallies."""
        known = (self._tallies.get(name) for name in dict.fromkeys((shape, family, SITE + url.origin(address))))
        return tuple(
            self._keep(tally._replace(fruitful=tally.fruitful + 1, streak=0, barren=max(0, tally.barren - 1)))
            for tally in known
            if tally is not None
        )

    def _keep(self, tally: PatternTally) -> PatternTally:
        name = tally.pattern
        self._tallies.pop(name, None)
        self._tallies[name] = tally
        if len(self._tallies) > MOST_PATTERNS:
            gone = next(iter(self._tallies))
            self._levels.pop(gone, None)
            del self._tallies[gone]
        if level := self._level(tally):
            self._levels[name] = level
        else:
            self._levels.pop(name, None)
        return tally

    def _level(self, tally: PatternTally) -> int:
        """Return how late the pages of a pattern or a family go."""
        patience, cost = self._settings.barren_pages, tally.barren - tally.listed
        if not patience or tally.pattern.startswith(SITE) or cost < patience:
            return 0
        if tally.fruitful > tally.barren:
            return int(tally.streak >= patience)
        return sum(cost >= bound for bound in LEVELS)


def _names(address: str, *, varies: bool) -> UrlShape:
    """Return the pattern and the family that *address* counts for; variants of known URLs have tallies of their own."""
    found = likeness(address)
    return UrlShape(found.pattern + VARIANT, found.family + VARIANT) if varies else found


def _directory(family: str) -> str:
    """Return the directory of a *family*, whatever the queries of its URLs."""
    return family if family.endswith(VARIANT) else page_of(family)


def _is_varied(address: str, new: Iterable[str]) -> bool:
    """Return True if the page may have variants: another query or session, a print view, a reply form."""
    return "?" in address or bool(variant(address)) or any(lead.startswith(address) for lead in new)
