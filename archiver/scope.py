"""Scope: what belongs to the archive, and by which rule. Pure: no network, no lists of its own.

Every refusal names the rule that made it, in the words of the settings. What is refused never enters the queue.
The order: exclude, redirects in a row, depth, include and the scope itself, then requisites outside of it.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from archiver import url
from archiver.config.settings import ScopeSettings
from archiver.model import Claim, Hop, Link, NewUrl, Refusal

MAX_STRAYS = 2  # requisite hops outside the scope: a foreign style sheet, and the fonts it names
MAX_MANIFESTS = 3  # sitemaps in a row: an index, its sitemaps, and one more for those that nest against the rules
PATH_KEPT = 250  # hops of a path that are written out; before them stands how many more there were

PRIORITY_PREREQUISITE = -1
PRIORITY_REQUISITE = 0  # before further pages, so that pages become whole early
PRIORITY_PAGE = 1  # and one more for each link on the path: breadth first


def extend(path: str, hop: Hop) -> str:
    """The hop path one hop further; a very long one as Heritrix writes it, `12+LLL…`."""
    dropped, plus, letters = path.rpartition("+")
    letters += hop.value
    if len(letters) <= PATH_KEPT:
        return f"{dropped}{plus}{letters}"
    return f"{int(dropped or 0) + 1}+{letters[1:]}"


def redirects_in_a_row(path: str) -> int:
    """How many redirects stand at the end of the hop *path*."""
    return len(path) - len(path.rstrip(Hop.REDIRECT))


def site(address: str) -> str:
    """What people mean by one host: no `www.`, http and https alike, the port only where it is an odd one."""
    return url.authority(address).removeprefix("www.")


def priority(path: str, depth: int) -> int:
    """What a URL with the hop *path* goes by, *depth* links from its seed; a redirect as the URL that led to it."""
    match path.rstrip(Hop.REDIRECT)[-1:]:
        case Hop.PREREQUISITE:
            return PRIORITY_PREREQUISITE
        case Hop.REQUISITE | Hop.SPECULATIVE:
            return PRIORITY_REQUISITE
        case _:
            return PRIORITY_PAGE + depth


class Scope:
    """Judges links by one set of settings and seeds. *registered_domain* maps a host name to its domain."""

    def __init__(self, settings: ScopeSettings, seeds: Iterable[str], registered_domain: Callable[[str], str]) -> None:
        self._settings = settings
        self._include = [(f"include[{n}]: {text}", re.compile(text)) for n, text in enumerate(settings.include)]
        self._exclude = [(f"exclude[{n}]: {text}", re.compile(text)) for n, text in enumerate(settings.exclude)]
        self._domain_of = lru_cache(maxsize=4096)(registered_domain)
        seeds = tuple(seeds)
        self._sites = frozenset(map(site, seeds))
        self._domains = frozenset(registered_domain(url.host(seed)) for seed in seeds)
        self._prefixes = tuple(_prefix(seed) for seed in seeds)
        self._pages = frozenset(seeds)

    def judge(self, link: Link, parent: Claim) -> NewUrl | Refusal:
        """Whether *link*, found in the document of *parent*, may be fetched, and as what."""
        rule = self._refused(link, parent)
        if rule:
            return Refusal(link.url, rule)
        strays = self._strays(link, parent)
        if strays is None:
            return Refusal(link.url, f"scope: {self._settings.scope}")
        if strays > MAX_STRAYS:
            return Refusal(link.url, f"requisites outside the scope: at most {MAX_STRAYS} hops")
        depth = parent.depth + (link.hop is Hop.LINK)
        path = extend(parent.path, link.hop)
        return NewUrl(link.url, link.hop, path, depth, strays, priority(path, depth))

    def contains(self, address: str) -> bool:
        """Whether *address* lies in the scope itself, or is included by a pattern."""
        if self._included(address):
            return True
        match self._settings.scope:
            case "host":
                return site(address) in self._sites
            case "domain":
                return self._domain_of(url.host(address)) in self._domains
            case "prefix":
                return _bare(address).startswith(self._prefixes)
            case _:
                return address in self._pages

    def _included(self, address: str) -> bool:
        return any(pattern.search(address) for _, pattern in self._include)

    def _at_home(self, address: str) -> bool:
        """Whether *address* lies on a host that the seeds stand for, be it within the scope or not."""
        if site(address) in self._sites or self._included(address):
            return True
        return self._settings.scope == "domain" and self._domain_of(url.host(address)) in self._domains

    def _refused(self, link: Link, parent: Claim) -> str | None:
        for rule, pattern in self._exclude:
            if pattern.search(link.url):
                return rule
        settings = self._settings
        match link.hop:
            case Hop.REDIRECT if redirects_in_a_row(parent.path) >= min(settings.max_redirects, PATH_KEPT - 1):
                return f"max-redirects: {settings.max_redirects}"
            case Hop.LINK if settings.max_depth is not None and parent.depth >= settings.max_depth:
                return f"max-depth: {settings.max_depth}"
            case Hop.MANIFEST if settings.max_depth == 0:
                return "max-depth: 0"
            case Hop.MANIFEST if parent.path.count(Hop.MANIFEST) >= MAX_MANIFESTS:
                return f"sitemaps in sitemaps: at most {MAX_MANIFESTS} deep"
            case Hop.REQUISITE | Hop.SPECULATIVE if not settings.page_requisites:
                return "page-requisites: false"
        return None

    def _strays(self, link: Link, parent: Claim) -> int | None:
        """Requisite hops since the scope was left; None where the scope may not be left."""
        match link.hop:
            case Hop.REDIRECT | Hop.PREREQUISITE:
                return 0 if self.contains(link.url) else parent.strays
            case Hop.REQUISITE | Hop.SPECULATIVE:
                if self.contains(link.url):
                    return 0
                return parent.strays + (not self._at_home(link.url))
            case Hop.MANIFEST if self._settings.scope != "page":
                wanted = parent.hop is Hop.MANIFEST or self._at_home(parent.url)
                return parent.strays if wanted else None
            case _:
                return 0 if self.contains(link.url) else None


def _bare(address: str) -> str:
    return site(address) + url.target(address)


def _prefix(seed: str) -> str:
    return site(seed) + url.path(seed).rpartition("/")[0] + "/"
