"""Traps: parts of a site that go on without end and bring nothing. Pure; the year is an argument.

A page is *barren* if all that it shows beyond its own URL was shown before on its site. Suspicion delays: what looks
like a trap goes to the end of its host's queue, the later the more barren pages its pattern has brought. It is fetched
all the same, until the site's budget of barren pages is spent; only then is the rest of what is suspicious held. A
pattern that is not proved barren is tried even then.

A copy is neither barren nor fruitful: a page that repeats what few others show. Each text excuses few pages, so no trap
lives on copies.

These count as content: text, images, data and numbers that are new. One number alone counts only if a page of another
pattern named the URL; otherwise an endless counter would be new for ever. A page that names several new pages of
another pattern is a list, and answers for them, if it brought something or is the first of its own pattern. Variants of
a known URL (another session id, another order of the query) have tallies of their own, so they cost no real page.
A folder's listing shows only links. It is fruitful once a file that it names brings something; files go before folders.
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
from archiver.policy.content_ids import PROVEN, ContentIds, brings, may_bring
from archiver.policy.dead_ends import HOPELESS, LEVELS, MISSING, FormPages, Mazes, is_in_vain
from archiver.policy.novelty import Novelty, PageNovelty
from archiver.policy.patterns.leaves import LAST, LONG_LIST, Leaves
from archiver.policy.patterns.redirects import Pageless, Redirects
from archiver.policy.patterns.tallies import SITE, PatternTallies
from archiver.policy.unlisted import UnlistedPages
from archiver.policy.url_forms import (
    VARIANT,
    UrlShape,
    directory_of,
    ids_in,
    is_entry,
    is_session,
    is_varied,
    likeness,
    list_of,
    odd,
    page_of,
)

_OF_URLS = ("max-repeats", "max-segments", "max-url-length", "max-years-ahead")
RULES = (*_OF_URLS, "trap-budget", "pattern-budget", "directory-budget", "traps")  # the beginning of each rule
POOR = 1 << 16  # barren pages: half a megabyte; a power of two, like …
KNOWN = 1 << 18  # … pages that were linked to: two megabytes
VARIANTS = 1 << 16  # URLs without their ids, each with its first variant: a megabyte
SHARE = 5  # the site may have one more barren page for so many fruitful ones; for each one, if their URLs are single
TRIES = 32  # patterns of a site that may be tried in vain after its budget is spent; one that brings news goes on
A_LIST = 5  # new pages of one pattern that a page must link to, to answer for them

FORMS = "traps: on: a form that is the same under each URL"
Tallies = tuple[PatternTally, ...]
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
        self._tallies = PatternTallies()
        self._mazes = Mazes()
        self._leaves = Leaves()
        self._unlisted = UnlistedPages()
        self._ids = ContentIds(VARIANTS if self._on else 1)
        self._novelty = Novelty(self._leaves.variety) if self._on else None
        self._forms = FormPages(self._is_known)
        self._pageless = Pageless(Redirects(self._forms, self._is_known, self._tallies.get))
        self._tries: Counter[str] = Counter()  # of each site, in vain
        self._poor = array("q", bytes(8 * (POOR if self._on else 1)))  # hashes; inverted for one number alone
        self._known = array("q", bytes(8 * (KNOWN if self._on else 1)))
        self.learn(known)

    def take(self, settings: TrapSettings) -> None:
        """Use the numbers in *settings* from now on."""
        self._settings = settings

    def learn(self, known: Iterable[PatternTally]) -> None:
        """Take from *known* the barren pages that a person now allows per pattern, and counts that are higher."""
        if self._on:
            ours = [tally for tally in known if not self._is_saved(tally)]
            self._tallies.learn(ours, self._settings.barren_pages)

    def _is_saved(self, tally: PatternTally) -> bool:
        """Take back counts that are saved beside the tallies. Return False if *tally* has none."""
        return self._leaves.restore(tally) or self._mazes.restore(tally)

    def suspicious_sites(self) -> set[str]:
        """Return the origins with a suspicious pattern, of which `recall` wants to know the links."""
        return self._tallies.suspicious_sites()

    def recall(self, links: Iterable[tuple[str, str]]) -> None:
        """Take in the *links* that earlier runs queued, each as the URLs of the page and of the target."""
        named: dict[str, list[str]] = {}
        for page, target in links:
            named.setdefault(page, []).append(target)
        for page, targets in named.items():
            self.met((page, *targets))
            if len(targets) >= A_LIST:
                self._leaves.listed(page, targets)

    @property
    def calm(self) -> bool:
        """True if nothing is suspicious. Then, of the URLs that were taken before, only variants can matter."""
        return not (self._tallies.levels or self._has_budgets or self._forms.any_spent or self._pageless.any_late)

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
        again = self._ids.is_variant(address)
        if rule or again or not self.calm or self.is_poor(via):
            names = self._names(address, varies=again)
            alone = Suspicion(2 if again and not ids_in(address) else int(bool(rule)), rule)
            return self._placed(address, self._standing(address, via, names, alone))
        return self._placed(address, FREE)

    def waits(self, address: str, via: str) -> Suspicion:
        """Return the suspicion against a page that is already queued. See `judge`."""
        if not self._on:
            return FREE
        if self.calm:
            return self._placed(address, FREE)
        return self._placed(address, self._standing(address, via, self._names(address), FREE))

    def _is_known(self, address: str) -> bool:
        """Return True if a page named *address*."""
        return self._known[hash(address) & (KNOWN - 1)] == hash(address)

    def _placed(self, address: str, standing: Suspicion) -> Suspicion:
        """Return *standing*, one level later for an unlisted page. That never holds it."""
        if standing.rule or not self._unlisted.likely(address):
            return standing
        return Suspicion(standing.level + 1)

    def is_poor(self, address: str) -> bool:
        """Return True if *address* is a page that showed nothing new."""
        return self._on and address != "" and self._poor[hash(address) & (POOR - 1)] == hash(address)

    def is_barren(self, address: str) -> bool:
        """Return True if *address* is a page that counts as barren: it showed nothing new, or one number alone."""
        number = hash(address)
        return self._on and address != "" and self._poor[number & (POOR - 1)] in {number, ~number}

    def saw(self, page: PageEvidence) -> Tallies:
        """Count an archived page. Return the changed tallies of its pattern, its family and its site."""
        if self._novelty is None:
            return ()
        if page.markup:
            self._unlisted.saw(page.url, unlisted=page.unlisted)
        shape, family = names = self._names(page.url)
        own = likeness(page.url).pattern
        self._pageless.found(shape)
        self._ids.saw(page.url, own, shape)
        on = likeness(page.via).pattern if page.via else ""
        same = on == own
        first = shape not in self._tallies and not self.is_poor(page.via)
        known, where = self._known, KNOWN - 1
        new = [
            lead for lead in page.leads if known[hash(lead) & where] != hash(lead) and not self._ids.is_variant(lead)
        ]
        worth = self._novelty.worth(page.url, own, page.text, markup=page.markup, varied=is_varied(page.url, new))
        if worth is PageNovelty.NUMBER and (same or self.is_poor(page.via)):
            worth = PageNovelty.COUNTER  # one number, and only pages of its own pattern link here
        leads_on = worth is not PageNovelty.NEW and self._leads_on(own, family, new)
        if page.markup:
            self._forms.saw(page.url, page.via, page.text, None if leads_on else worth)
        if leads_on:
            worth = PageNovelty.NEW
            self._tallies.led((shape, family))
        if worth is PageNovelty.NEW and self._mazes.saw(page.url, page.leads, new, page.via):
            worth = PageNovelty.NOTHING
        if worth is PageNovelty.COPY and (same or not self._is_single(page.url, shape)):
            worth = PageNovelty.NOTHING
        is_barren = worth is PageNovelty.NOTHING or worth is PageNovelty.COUNTER
        if is_barren:
            number = hash(page.url)
            self._poor[number & (POOR - 1)] = number if worth is PageNovelty.NOTHING else ~number
        self._leaves.saw(page.url, new, names, barren=is_barren)
        suspicious = self._tallies.level(shape) or self._tallies.level(family)
        counts = (*self._mazes.tallies(page.url), *(self._leaves.tallies(names) if suspicious else ()))
        by_file = worth is PageNovelty.NEW and is_entry(page.url, page.via) and self.is_barren(page.via)
        forgiven = self._forgive(page.via) if by_file else ()
        listed = self._listed(own, new) if worth is PageNovelty.NEW or first else ()
        ends = self._leaves.has(page.url, page.via, names, proven=True) and self._tallies.level(on) < LONG_LIST
        return (*counts, *forgiven, *listed, *self._count(page.url, names, worth, ends=ends))

    def missed(self, address: str, status: int, target: str = "") -> None:
        """Count an error, or a redirect to *target*. It speaks against its pattern as long as that has no pages."""
        if not self._on or (status not in MISSING and not target):
            return
        shape = self._names(address).pattern
        if (tally := self._tallies.get(shape)) is None or not tally.visits:
            self._pageless.saw(address, shape, target, self._settings.barren_pages)

    def saw_part(self, address: str, via: str, content: int) -> Tallies:
        """Count the requisite *address* of the page *via*, if that was barren. New *content* speaks for its pattern.

        Known content speaks against it, unless a program answers the same to each query: pages only set it to work.
        """
        if self._novelty is None or not self.is_barren(via):
            return ()
        origin, answer = url.origin(via), hash((page_of(address), content))
        if self._novelty.is_new(origin, content):
            self._novelty.is_new(origin, answer)
            return self._forgive(via)
        if not self.is_poor(via) or not self._novelty.is_new(origin, answer):
            return ()
        return self._count(via, self._names(via), PageNovelty.NOTHING)

    def _standing(self, address: str, via: str, names: UrlShape, alone: Suspicion) -> Suspicion:
        """Return the suspicion against *address* by the tallies of its patterns; *alone* is the one by its URL."""
        (shape, family), (level, rule, _) = names, alone
        tally = self._tallies.get(shape)
        if self._has_budgets and (over := self._over_budget(shape, family)):
            return over
        if self._settings.trap_budget and (form := self._forms.spent(address, tally) or self._pageless.to_forms(shape)):
            return self._held(form, form, tally, FORMS)
        if brings(tally) or (is_entry(address, via) and not (level or rule or self._tallies.level(shape))):
            return FREE
        whole = list_of(address, via)
        level = max(level, self._tallies.level(shape), self._of_family(names, tally, whole))
        if not level and not whole and self.is_poor(via):
            level = 1
        spent = level > 0 and self._is_spent(address, shape, odd=bool(rule))
        if level and not rule and self._leaves.has(address, via, names, proven=not spent):
            return Suspicion(LAST)
        if spent:
            tried = rule or not may_bring(tally) or self._tries[url.origin(address)] >= TRIES
            if tried:
                self._leaves.hold(address)
            return self._held(shape, family, tally, rule) if tried else Suspicion(len(LEVELS))
        for dead in self._pageless.late(shape):
            if dead.may_hold(shape) and self._is_spent(address, shape, odd=False, cost=dead.of_site(address)):
                return self._held(shape, shape, tally, f"trap-budget: {self._settings.trap_budget} {dead.name}")
            level = max(level, dead.level(shape))
        return Suspicion(level)

    def _of_family(self, names: UrlShape, tally: PatternTally | None, whole: str) -> int:
        """Return how late a page goes for its family; a page of the list *whole* goes as that does."""
        level = self._tallies.level(names.family)
        if tally is not None and (tally.visits >= PROVEN or (tally.fruitful > 1 and may_bring(tally))):
            level = min(level, 1)  # the pattern speaks for itself
        if not level or not whole or names.family.endswith(VARIANT):
            return level
        of_list = likeness(whole)
        return min(level, max(self._tallies.level(of_list.pattern), self._tallies.level(of_list.family)))

    def _held(self, shape: str, family: str, tally: PatternTally | None, rule: str) -> Suspicion:
        """Return the suspicion that holds a URL after the site's budget is spent, unless the pattern was released."""
        for each in map(self._tallies.get, (shape, family)):
            if each is not None and each.released > max(0, each.barren - each.listed):
                return Suspicion(len(LEVELS))
        held = shape if tally is not None and tally.visits > 1 else family
        return Suspicion(len(LEVELS), rule or f"trap-budget: {self._settings.trap_budget}", held)

    def _is_spent(self, address: str, shape: str, *, odd: bool, cost: int | None = None) -> bool:
        """Return True if barren pages, or *cost*, have used up the budget of the site for URLs like *address*."""
        budget = self._settings.trap_budget
        site = self._tallies.get(SITE + url.origin(address))
        if not budget or site is None:
            return False
        share = 1 if not odd and self._is_single(address, shape) else SHARE
        return (site.barren if cost is None else cost) >= max(budget, site.fruitful // share)

    def _is_single(self, address: str, shape: str) -> bool:
        """Return True if *address* has no query, is no variant, and its pattern is not known to bring nothing."""
        tally = self._tallies.get(shape)
        in_vain = tally is not None and tally.barren >= PROVEN and tally.fruitful * HOPELESS < tally.barren
        return "?" not in address and not shape.endswith(VARIANT) and not in_vain

    def _over_budget(self, shape: str, family: str) -> Suspicion | None:
        """Return the suspicion if the settings limit the pages of *shape* or *family* and the limit is reached."""
        pages, below = self._settings.pattern_budget, self._settings.directory_budget
        for what, budget, name in (("pattern", pages, shape), ("directory", below, directory_of(family))):
            tally = self._tallies.get(name)
            if budget and tally is not None and tally.visits >= budget + tally.released:
                return Suspicion(len(LEVELS), f"{what}-budget: {budget}", name)
        return None

    def _names(self, address: str, *, varies: bool | None = None) -> UrlShape:
        """Return the pattern and the family that *address* counts for. Variants of known URLs have their own."""
        found = likeness(address)
        if not (self._ids.is_variant(address) if varies is None else varies):
            return found
        name = self._ids.tally_of(address, found.pattern, VARIANT, self._tallies.get)
        return UrlShape(name, found.family + VARIANT)

    def _leads_on(self, shape: str, kin: str, new: Iterable[str]) -> bool:
        """Return True if one of the *new* links has another pattern, whose pages mostly brought something."""
        for lead in new:
            pattern, family = likeness(lead)
            if page_of(pattern) == page_of(shape) or is_session(lead):
                continue
            if not self._tallies.has_brought(pattern, "" if family == kin else family):
                continue
            if "?" not in lead or not self._is_known(page_of(lead)):  # a known page with another query is not new
                return True
        return False

    def _listed(self, shape: str, new: Iterable[str]) -> Tallies:
        """Let a page answer for its *new* links if many have one other pattern. Return the changed tallies."""
        found: Counter[str] = Counter()
        for lead in new:
            pattern = likeness(lead).pattern
            if pattern not in {shape, lead} and page_of(pattern) != page_of(shape):
                found[pattern] += 1
        changed = []
        for pattern, number in found.items():
            tally = self._tallies.get(pattern) or PatternTally(pattern, 0, 0, 0)
            if number >= A_LIST and not is_in_vain(tally):
                changed.append(self._kept(tally._replace(listed=tally.listed + number)))
        return tuple(changed)

    def _count(self, address: str, names: UrlShape, worth: PageNovelty, *, ends: bool = False) -> Tallies:
        """Count one more page of *worth*. Return the changed tallies. If it *ends*, it costs its site no budget."""
        (shape, family), site = names, SITE + url.origin(address)
        tally = self._tallies.get(shape) or PatternTally(shape, 0, 0, 0)
        barren = worth is PageNovelty.NOTHING or worth is PageNovelty.COUNTER
        barren = barren or (worth is PageNovelty.NUMBER and tally.fruitful % SHARE == 4)
        news = worth is not PageNovelty.COPY and worth is not PageNovelty.NOTHING and worth is not PageNovelty.COUNTER
        answered = barren and tally.barren < tally.listed and not is_in_vain(tally)
        if barren and not tally.barren and self._is_spent(address, shape, odd=True):
            self._tries[url.origin(address)] += 1
        changed = []
        for name in dict.fromkeys((shape, family, site)):
            known = self._tallies.get(name) or PatternTally(name, 0, 0, 0)
            costs = barren and (name == shape or not answered) and not (ends and name == site)
            counted = known._replace(
                visits=known.visits + 1,
                fruitful=known.fruitful + news,
                streak=known.streak + costs if barren else 0,
                barren=known.barren + costs,
            )
            changed.append(self._kept(counted))
        if (directory := directory_of(family)) != family:
            known = self._tallies.get(directory) or PatternTally(directory, 0, 0, 0)
            changed.append(self._kept(known._replace(visits=known.visits + 1)))
        return tuple(changed)

    def _forgive(self, address: str) -> Tallies:
        """Count a page as fruitful that had counted as barren. Return the changed tallies."""
        self._poor[hash(address) & (POOR - 1)] = 0
        self._forms.forgive(address)
        shape, family = self._names(address)
        known = (self._tallies.get(name) for name in dict.fromkeys((shape, family, SITE + url.origin(address))))
        return tuple(
            self._kept(tally._replace(fruitful=tally.fruitful + 1, streak=0, barren=max(0, tally.barren - 1)))
            for tally in known
            if tally is not None
        )

    def _kept(self, tally: PatternTally) -> PatternTally:
        return self._tallies.keep(tally, self._settings.barren_pages)
