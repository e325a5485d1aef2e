"""The scope of the seeds with one set of settings: which links belong to the archive, and by which rule.

Refused URLs never enter the queue. Each refusal names its rule in the words of the settings. The order of rules:
exclude, exclude-ext and the exclude lists, redirects in a row, hops and depth, include and the scope itself, then
requisites outside of it. Results that depend only on the URL are cached.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from archiver import url
from archiver.config import presets
from archiver.config.option_types import SLOW, Pattern, words_of
from archiver.config.scope_settings import ScopeSettings
from archiver.model import LINK_OUTSIDE, Claim, Hop, Link, NewUrl, Refusal
from archiver.policy.url_forms import Respelling

MAX_MANIFESTS = 3  # sitemaps in a row: an index, its sitemaps, and one more for those that nest against the rules
PATH_KEPT = 250  # hops of a path that are written out, after the number of earlier ones
Moved = tuple[str, str]  # where a redirect of a seed led, and the seed

REMEMBERED = 4096  # URLs that take long to judge, so that links on every page of a site are judged once
LONGEST_REMEMBERED = 512  # characters of such a URL: four megabytes at most

PRIORITY_PREREQUISITE = -1
PRIORITY_REQUISITE = 0  # before more pages, so that pages are complete early
PRIORITY_PAGE = 1  # plus one for each link on the path: breadth first
PRIORITY_GUESS = 1 << 20  # after all URLs that real links name

SOURCE_MAPS = frozenset(("script/sourcemap", "sourcemap", "x-sourcemap"))
OF_THE_SCRIPT = SOURCE_MAPS | {"script/import", "script/url"}  # relative to the script, not to a page
OUTSIDE = "which is outside the scope"  # the end of the note on a URL that redirects there
HOOK = "hook: judge"  # the rule of a link that a hook of the user refuses


def extend(path: str, hop: Hop) -> str:
    """Return the hop *path* plus *hop*. A very long path is abbreviated as in Heritrix: `12+LLL…`."""
    dropped, plus, letters = path.rpartition("+")
    letters += hop.value
    if len(letters) <= PATH_KEPT:
        return f"{dropped}{plus}{letters}"
    return f"{int(dropped or 0) + 1}+{letters[1:]}"


def hops(path: str) -> int:
    """Return the number of hops in the hop *path*, including those that are not written out."""
    dropped, _, letters = path.rpartition("+")
    return int(dropped or 0) + len(letters)


def redirects_in_a_row(path: str) -> int:
    """Return the number of redirects at the end of the hop *path*."""
    return len(path) - len(path.rstrip(Hop.REDIRECT))


@lru_cache(maxsize=1024)  # a page has many links, and a crawl few paths
def is_guess(path: str) -> bool:
    """Return True if only a script named the URL at the end of the hop *path*, redirects aside."""
    return path.rstrip(Hop.REDIRECT).endswith(Hop.SPECULATIVE)


def priority(path: str, depth: int) -> int:
    """Return the priority by hop *path* and *depth* (links from the seed). A redirect has that of its source."""
    match path.rstrip(Hop.REDIRECT)[-1:]:
        case Hop.PREREQUISITE:
            return PRIORITY_PREREQUISITE
        case Hop.REQUISITE:
            return PRIORITY_REQUISITE
        case Hop.SPECULATIVE:
            return PRIORITY_GUESS
        case _:
            return PRIORITY_PAGE + depth


class UrlFacts(NamedTuple):
    """The facts about a URL that do not depend on the link to it."""

    url: str  # as requested: without the parameters that the settings drop, in the order that they set
    rule: str  # that refuses it, or ""
    inside: bool  # of the scope itself, or included by a pattern
    at_home: bool  # on a host of the seeds, in scope or not
    slow: str  # the include pattern that took too long on it


class LinkContext(NamedTuple):
    """The facts about all links of one kind in one document."""

    rule: str  # that refuses them, or ""
    path: str
    depth: int
    priority: int


class Scope:
    """Judges links by one set of settings and seeds. *registered_domain* maps a host name to its domain."""

    def __init__(
        self,
        settings: ScopeSettings,
        seeds: Iterable[str],
        registered_domain: Callable[[str], str],
        remembered: int = REMEMBERED,
    ) -> None:
        self._settings = settings
        self._include = [Pattern(f"include[{n}]: {text}", text) for n, text in enumerate(settings.include)]
        self._exclude = [Pattern(f"exclude[{n}]: {text}", text) for n, text in enumerate(settings.exclude)]
        self._without = [(name, entry) for name in words_of(settings.without) for entry in presets.SETS[name].entries]
        self._endings = tuple(f".{ending}" for ending in words_of(settings.exclude_ext))
        self._surts = tuple(settings.scope_surt)
        self._refuses = bool(self._exclude or self._endings or self._without)
        self._whole_sites = settings.scope in {"host", "domain"} and not self._surts
        self._respelled = Respelling(settings.query, settings.drop_query)
        self._domain_of = lru_cache(maxsize=4096)(registered_domain)
        self._sites: set[str] = set()
        self._domains: set[str] = set()
        self._prefixes: tuple[str, ...] = ()
        self._pages: set[str] = set()
        self.moved_seeds: tuple[Moved, ...] = ()  # places that seeds have moved to
        self._outside = f"scope: {settings.scope}"
        self._by_host_alone = self._whole_sites and not self._include and not self._refuses and not settings.extra_hops
        self._remembered = lru_cache(maxsize=remembered)(self._worked_out)
        self._homes = lru_cache(maxsize=remembered)(self._is_home_host)
        self._step = lru_cache(maxsize=1024)(self._stepped)
        self._add(tuple(seeds))

    @property
    def judges_by_host(self) -> bool:
        """True if of two links to pages on one host, found in one document, both are accepted or neither is."""
        return self._by_host_alone

    def add_moved_seeds(self, moved: Iterable[Moved]) -> None:
        """Treat the places that seeds have *moved* to as seeds too, from now on."""
        new = tuple(one for one in moved if one not in self.moved_seeds)
        self.moved_seeds += new
        self._add(tuple(address for address, _ in new))
        self._remembered.cache_clear()
        self._homes.cache_clear()

    def judge(self, link: Link, parent: Claim, *, wanted: bool = False) -> NewUrl | Refusal:
        """Accept or refuse *link*, found in the document of *parent*. An accepted URL is normalized by the settings.

        *wanted*: the link is in scope, as if a pattern included it.
        """
        page = link.hop is Hop.SPECULATIVE and url.may_be_page(link.url)
        step = self._step(link.hop, parent.path, parent.depth, page)
        if self._by_host_alone and link.hop is Hop.LINK:  # a short form of the code below: most links are of this kind
            if step.rule:
                return Refusal(link.url, step.rule)
            if not wanted and not self._is_home(link.url):  # normalizing does not change the host
                return Refusal(link.url, self._outside)
            return NewUrl(self._respelled(link.url), link.hop, step.path, step.depth, 0, step.priority)
        moved = link.hop is Hop.REDIRECT or link.hop is Hop.PREREQUISITE
        about = _if_wanted(self._about(link.url, moved), wanted=wanted)
        off_scope_hops = self._off_scope_hops(link, parent, about)
        beyond = link.hop is Hop.LINK and bool(
            off_scope_hops
        )  # the limit of depth is one of the scope, and this is outside
        rule = about.rule or ("" if beyond and step.rule.startswith("max-depth") else step.rule)
        if rule:
            return Refusal(link.url, rule)
        if moved and not about.inside and (rule := self._leaving(link, parent)):
            return Refusal(link.url, rule)
        if page and not about.inside:
            return Refusal(link.url, self._outside)
        if rule := self._guessing(link, parent, about):
            return Refusal(link.url, rule)
        if off_scope_hops is None:
            limit = f"extra-hops: {self._settings.extra_hops}" if self._settings.extra_hops else self._outside
            return Refusal(link.url, f"{limit}{_slowly(about)}")
        if off_scope_hops % LINK_OUTSIDE > self._settings.requisite_hops:
            return Refusal(link.url, f"requisite-hops: {self._settings.requisite_hops}{_slowly(about)}")
        return NewUrl(about.url, link.hop, step.path, step.depth, off_scope_hops, step.priority)

    def unnamed(self, address: str, parent: Claim, *, shown: bool) -> NewUrl | None:
        """Return *address*, which no link names, for the page of *parent*, or None. Only its own site is asked.

        *shown*: a browser requests it to show that page. Otherwise it may lead to more pages, which we must want.
        """
        settings, about = self._settings, self._about(address, True)
        if about.rule or not (about.inside or about.at_home):
            return None
        if settings.max_hops is not None and hops(parent.path) >= settings.max_hops:
            return None
        if not settings.page_requisites if shown else settings.scope == "page" or settings.max_depth == 0:
            return None
        path = extend(parent.path, Hop.SPECULATIVE)
        return NewUrl(address, Hop.SPECULATIVE, path, parent.depth, 0, PRIORITY_GUESS)

    def contains(self, address: str) -> bool:
        """Return True if *address* is in the scope itself, or included by a pattern."""
        return self._about(address, True).inside

    def excludes(self, address: str) -> bool:
        """Return True if a rule refuses *address* wherever it is linked."""
        return bool(self._about(address, True).rule)

    def at_home(self, address: str) -> bool:
        """Return True if *address* is on a host of the seeds, in scope or not."""
        return self._about(address, True).at_home

    def _add(self, seeds: tuple[str, ...]) -> None:
        self._sites.update(map(url.site, seeds))
        self._domains.update(self._domain_of(url.host(seed)) for seed in seeds)
        self._prefixes = tuple(dict.fromkeys((*self._prefixes, *map(folder, seeds))))
        self._pages.update(map(url.in_capitals, seeds))

    def _about(self, given: str, as_it_is: bool) -> UrlFacts:  # noqa: FBT001  a key of the memory
        if self._by_host_alone or len(given) > LONGEST_REMEMBERED:
            return self._worked_out(given, as_it_is)
        return self._remembered(given, as_it_is)

    def _is_home(self, address: str) -> bool:
        slash = address.index("/", 8) + 1
        return self._homes(address[:slash]) if slash <= LONGEST_REMEMBERED else self._is_home_host(address)

    def _is_home_host(self, address: str) -> bool:
        if url.site(address) in self._sites:
            return True
        return self._settings.scope == "domain" and self._domain_of(url.host(address)) in self._domains

    def _worked_out(self, given: str, as_it_is: bool) -> UrlFacts:  # noqa: FBT001  a key of the memory
        address = given if as_it_is else self._respelled(given)
        rule = self._refused(address) if self._refuses else ""
        included, slow = self._included(address) if self._include else (False, "")
        home = included or self._is_home(address)
        inside = home if self._whole_sites else included or self._belongs(address, home=home)
        return UrlFacts(address, rule, inside, home, slow)

    def _belongs(self, address: str, *, home: bool) -> bool:
        if self._surts and url.form(address).startswith(self._surts):
            return True
        match self._settings.scope:
            case "any":
                return bool(self._pages)
            case "host" | "domain":
                return home
            case "prefix":
                return bare(address).startswith(self._prefixes)
            case _:
                return url.in_capitals(address) in self._pages

    def _included(self, address: str) -> tuple[bool, str]:
        """Return True if a pattern includes *address*, and the rule of a pattern that took too long, which does not."""
        slow = ""
        for pattern in self._include:
            found = pattern.found_in(address)
            if found is SLOW:
                slow = pattern.rule
            elif found:
                return True, ""
        return False, slow

    def _refused(self, address: str) -> str:
        """Return the rule that refuses every link to *address*, or "". A pattern that takes too long also refuses."""
        for pattern in self._exclude:
            found = pattern.found_in(address)
            if found:
                return f"{pattern.rule} (it took too long on this URL)" if found is SLOW else pattern.rule
        if self._endings:
            name = url.path(address).lower()
            if name.endswith(self._endings):
                return f"exclude-ext: {next(ending for ending in self._endings if name.endswith(ending))[1:]}"
        lower = address.lower()
        for name, entry in self._without:
            if entry.hits(address, lower):
                return f"without: {name}: {entry.pattern}"
        return ""

    def _stepped(self, hop: Hop, path: str, depth: int, page: bool) -> LinkContext:  # noqa: FBT001  a key of the memory
        """Return the context of links by *hop*. *page*: a script names what would be a page if it exists."""
        further = depth + (hop is Hop.LINK or page)
        longer = extend(path, hop)
        rule = self._too_far(hop, path, depth)
        if page and self._settings.speculative != "off":
            rule = self._too_far(Hop.LINK, path, depth)
        return LinkContext(rule, longer, further, priority(longer, further))

    def _too_far(self, hop: Hop, path: str, depth: int) -> str:
        """Return the rule that refuses *hop* at the end of *path*, *depth* links from the seed, or ""."""
        settings = self._settings
        if settings.max_hops is not None and hop is not Hop.PREREQUISITE and hops(path) >= settings.max_hops:
            return f"max-hops: {settings.max_hops}"
        match hop:
            case Hop.REDIRECT if redirects_in_a_row(path) >= min(settings.max_redirects, PATH_KEPT - 1):
                return f"max-redirects: {settings.max_redirects}"
            case Hop.LINK if settings.max_depth is not None and depth >= settings.max_depth:
                return f"max-depth: {settings.max_depth}"
            case Hop.MANIFEST if settings.max_depth == 0:
                return "max-depth: 0"
            case Hop.MANIFEST if path.count(Hop.MANIFEST) >= MAX_MANIFESTS:
                return f"sitemaps in sitemaps: at most {MAX_MANIFESTS} deep"
            case Hop.REQUISITE | Hop.SPECULATIVE if not settings.page_requisites:
                return "page-requisites: false"
            case Hop.SPECULATIVE if settings.speculative == "off":
                return "speculative: off"
        return ""

    def _leaving(self, link: Link, parent: Claim) -> str:
        """Return the rule that refuses a redirect out of the scope, or "". A seed that moved may extend the scope."""
        start = parent.path.rstrip(Hop.REDIRECT)
        if link.hop is not Hop.REDIRECT or start[-1:] not in {"", Hop.LINK} or self._settings.redirects == "follow":
            return ""
        if parent.off_scope_hops >= LINK_OUTSIDE:  # the path left the scope earlier
            return ""
        if self._settings.redirects == "seeds" and not start:
            self.add_moved_seeds(((link.url, parent.seed or parent.url),))
            return ""
        return f"redirects: {self._settings.redirects}"

    def _guessing(self, link: Link, parent: Claim, about: UrlFacts) -> str:
        """Return the rule that refuses *link* because only a script names it, or "".

        Such links may go to the hosts of the seeds. A link relative to the script may also go to the script's host.
        Other strings in a script are relative to the page that runs it, which is unknown here.
        """
        moved = link.hop is Hop.REDIRECT and is_guess(parent.path)
        if not moved and link.hop is not Hop.SPECULATIVE:
            return ""
        if link.context in SOURCE_MAPS and not self._settings.source_maps:
            return "source-maps: false"
        if about.inside or about.at_home or self._settings.speculative == "any":
            return ""
        own = (moved or link.context in OF_THE_SCRIPT) and url.origin(link.url) == url.origin(parent.url)
        return "" if own else f"speculative: {self._settings.speculative}"

    def _off_scope_hops(self, link: Link, parent: Claim, about: UrlFacts) -> int | None:
        """Return the hops out of scope, as in `Claim.off_scope_hops`; None if the link must not leave the scope."""
        match link.hop:
            case Hop.REDIRECT | Hop.PREREQUISITE:
                return 0 if about.inside else parent.off_scope_hops or self._moved_out(link, parent)
            case Hop.REQUISITE | Hop.SPECULATIVE:
                return 0 if about.inside else self._needed_out(link, parent, about)
            case Hop.MANIFEST if self._settings.scope != "page":
                wanted = parent.hop is Hop.MANIFEST or self._about(parent.url, True).at_home
                return parent.off_scope_hops if wanted or self._settings.scope == "any" else None
            case Hop.LINK if not about.inside:
                return self._linked_out(parent)
            case _:
                return 0 if about.inside else None

    def _needed_out(self, link: Link, parent: Claim, about: UrlFacts) -> int | None:
        """Return the off-scope hops of a requisite of *parent*. For a page out of scope, its own host is no hop."""
        beside = parent.off_scope_hops >= LINK_OUTSIDE and url.site(link.url) == url.site(parent.url)
        if about.at_home or beside:
            return parent.off_scope_hops
        off_scope_hops = parent.off_scope_hops + 1
        return off_scope_hops if off_scope_hops % LINK_OUTSIDE else None

    def _linked_out(self, parent: Claim) -> int | None:
        """Return the off-scope hops of a page out of scope that *parent* or its frame links to; None: too far."""
        named_by_page = parent.path.rstrip(Hop.REDIRECT)[-1:] in {"", Hop.LINK, Hop.REQUISITE}
        if not named_by_page or parent.off_scope_hops % LINK_OUTSIDE:
            return None
        off_scope_hops = parent.off_scope_hops + LINK_OUTSIDE
        return off_scope_hops if off_scope_hops <= self._settings.extra_hops * LINK_OUTSIDE else None

    def _moved_out(self, link: Link, parent: Claim) -> int:
        """Return the off-scope hops of a redirect from a page in scope: as many as those of a link there."""
        start = parent.path.rstrip(Hop.REDIRECT)
        page = link.hop is Hop.REDIRECT and start[-1:] in {"", Hop.LINK}
        stays = self._settings.redirects == "seeds" and not start
        return LINK_OUTSIDE if page and not stays and self._settings.extra_hops else 0


def _if_wanted(about: UrlFacts, *, wanted: bool) -> UrlFacts:
    return about._replace(inside=True, at_home=True) if wanted else about


def _slowly(about: UrlFacts) -> str:
    return f" ({about.slow} took too long on this URL)" if about.slow else ""


def bare(address: str) -> str:
    """Return *address* without the parts that `site` drops, with percent escapes in capitals."""
    return url.site(address) + url.in_capitals(url.target(address))


def folder(seed: str) -> str:
    """Return the prefix, without scheme and `www.`, of the URLs below the path of *seed*."""
    return url.site(seed) + url.in_capitals(url.path(seed)).rpartition("/")[0] + "/"
