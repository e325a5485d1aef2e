"""Several scopes in one crawl: seeds with settings of their own, and seeds with the settings of the crawl. Pure.

The seeds with a URL in their scope judge it. If there is none, the seeds of its host do, and else the settings of the
crawl. A URL is accepted if any of them accepts it. The path to a URL does not matter, so the result is the same
whichever page names it first. Only a seed that has moved keeps its settings.

Seeds with the same settings are one group. A URL is compared only with groups of its registered domain, or without
bounds.

Accepted links are cached with their context, because most links of a page were on another page before. So are the hosts
to whose pages no link is taken. The cache is cleared when a rule changes. It is bounded: some four megabytes with usual
URLs, twenty at most. Two threads may use it at once.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from archiver import url
from archiver.config.option_types import Pattern
from archiver.config.scope_settings import ScopeSettings
from archiver.config.seeds import SeedSetting, written
from archiver.model import LINK_OUTSIDE, Claim, Hop, Link, NewUrl, Refusal
from archiver.policy.scope import LONGEST_REMEMBERED, REMEMBERED, Moved, Scope, bare, folder, redirects_in_a_row
from archiver.policy.url_forms import Respelling

LEVELS = 64  # folders of a path that are searched for the nearest seed
LEAST_REMEMBERED = 256  # URLs, for each group

_NUMBERED = re.compile(r"exclude\[(\d+)\]: ")
_LISTED = re.compile(r"include\[\d+\]: ")


def scope_of(
    settings: ScopeSettings, seeds: Iterable[str], registered_domain: Callable[[str], str]
) -> "Scope | Scopes":
    """Return the scope for *settings*, including the settings of single seeds."""
    if not any(own.for_scope for own in settings.seed):
        return Scope(settings, seeds, registered_domain)
    return Scopes(settings, seeds, registered_domain)


def merged(settings: ScopeSettings, own: SeedSetting) -> ScopeSettings:
    """Return the settings of the seed with *own*. The includes and SURTs of *settings* are for other seeds only."""
    return replace(
        settings,
        scope=own.get("scope", settings.scope),
        max_depth=own.get("max-depth", settings.max_depth),
        max_hops=own.get("max-hops", settings.max_hops),
        include=own.all("include"),
        exclude=(*settings.exclude, *own.all("exclude")),
        scope_surt=(),
        seed=(),
    )


class SeedGroup:
    """Seeds with the same settings. *own*: the settings of each, with their number in the settings file."""

    def __init__(self, settings: ScopeSettings, scope: Scope, own: Sequence[tuple[int, SeedSetting]] = ()) -> None:
        self.settings = settings
        self.scope = scope
        self.own = own
        self.wide = settings.scope == "any" or bool(settings.include)  # may contain URLs of any host
        self.places: dict[str, int] = {}

    def place(self, seed: str, number: int, domain: str) -> None:
        """Use the settings at *number* of `own` for URLs near *seed*, unless another seed is nearer."""
        for place in (bare(seed), folder(seed), url.site(seed), f"*.{domain}"):
            self.places.setdefault(place, number)

    def nearest(self, address: str, domain: str) -> tuple[int, SeedSetting]:
        """Return the settings, with their number, of the seed nearest to *address*."""
        host, path = url.site(address), url.in_capitals(url.path(address))
        slashes = [place for place, letter in enumerate(path) if letter == "/"][:LEVELS]
        folders = (host + path[: place + 1] for place in reversed(slashes))
        places = (bare(address), *folders, host, f"*.{domain}")
        return self.own[next((self.places[place] for place in places if place in self.places), 0)]


class Scopes:
    """Judges links by the settings of each seed. *registered_domain* maps a host name to its domain."""

    def __init__(self, settings: ScopeSettings, seeds: Iterable[str], registered_domain: Callable[[str], str]) -> None:
        self._settings = settings
        self.judges_by_host = False  # see `Scope`: the settings of a seed may be for one of its paths
        self._domain_of = lru_cache(maxsize=4096)(registered_domain)
        self._respelled = Respelling(settings.query, settings.drop_query)
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._found)
        self._local: dict[str, list[SeedGroup]] = {}
        self._wide: list[SeedGroup] = []
        self._of_seed: dict[str, tuple[SeedGroup, int]] = {}
        self.moved_seeds: tuple[Moved, ...] = ()  # places that seeds have moved to
        own = {one.url: (number, one) for number, one in enumerate(settings.seed) if one.for_scope}
        common: list[str] = []
        apart: dict[ScopeSettings, list[tuple[int, SeedSetting]]] = {}
        for seed in dict.fromkeys(seeds):
            if seed in own:
                apart.setdefault(merged(settings, own[seed][1]), []).append(own[seed])
            else:
                common.append(seed)
        self._base = SeedGroup(settings, Scope(settings, common, registered_domain))
        remembered = max(LEAST_REMEMBERED, REMEMBERED // (len(apart) + 1))
        for theirs, members in apart.items():
            scope = Scope(theirs, [one.url for _, one in members], registered_domain, remembered)
            self._join(SeedGroup(theirs, scope, members))

    def add_moved_seeds(self, moved: Iterable[Moved]) -> None:
        """Treat the places that seeds have *moved* to as seeds too, with the settings of those seeds."""
        for address, seed in moved:
            group, number = self._of_seed.get(seed, (self._base, 0))
            group.scope.add_moved_seeds(((address, seed),))
            if (address, seed) not in self.moved_seeds:
                self.moved_seeds += ((address, seed),)
            if group.own:
                self._put(group, address, number)
        self._remembered.cache_clear()

    def judge(self, link: Link, parent: Claim, *, wanted: bool = False) -> NewUrl | Refusal:
        """Accept or refuse *link*, found in the document of *parent*. An accepted URL is normalized by the settings.

        *wanted*: the link is in scope, as if a pattern included it.
        """
        as_it_is = link.hop is Hop.REDIRECT or link.hop is Hop.PREREQUISITE
        address = link.url if as_it_is else self._respelled(link.url)
        groups, inside = self._judges(address)
        seed = parent.seed or parent.url
        home = inside or wanted
        leaves = not home and link.hop is Hop.REDIRECT and redirects_in_a_row(parent.path) == len(parent.path)
        if leaves:
            groups = (self._of_seed.get(seed, (self._base, 0))[0],)
        refusals = []
        for group in groups:
            verdict = group.scope.judge(link, parent, wanted=wanted)
            if isinstance(verdict, NewUrl):
                if leaves and self._settings.redirects == "seeds":
                    self.add_moved_seeds(((link.url, seed),))
                return verdict
            refusals.append((group, verdict))
        return self._in_words(*refusals[0])

    def unnamed(self, address: str, parent: Claim, *, shown: bool) -> NewUrl | None:
        """Return *address*, which no link names, for the page of *parent* if a seed wants it, else None."""
        groups, _ = self._judges(parent.url)
        taken = (group.scope.unnamed(address, parent, shown=shown) for group in groups)
        return next((new for new in taken if new is not None), None)

    def contains(self, address: str) -> bool:
        """Return True if *address* is in the scope of a seed, or included by a pattern."""
        return self._judges(address)[1]

    def own_rule(self, address: str, depth: int = 0) -> str:
        """Return the rule of a seed with its own settings that accepts *address* at *depth* links, or ""."""
        groups, inside = self._judges(address)
        for group in groups if inside else ():
            most = group.settings.max_depth
            if not group.own or group.scope.excludes(address) or (most is not None and depth > most):
                continue
            number, own = group.nearest(address, self._domain(address))
            narrow = replace(group.settings, include=())
            if Scope(narrow, self._seeds(group), self._domain_of).contains(address):
                scope = f"scope: {narrow.scope}"
                return _named(number, own, written("scope", narrow.scope)) if own.has("scope") else scope
            for pattern in own.all("include"):
                if Pattern("", pattern).found_in(address) is True:
                    return _named(number, own, written("include", pattern))
        return ""

    def _join(self, group: SeedGroup) -> None:
        if group.wide:
            self._wide.append(group)
        for number, (_, own) in enumerate(group.own):
            self._of_seed[own.url] = group, number
            self._put(group, own.url, number)

    def _put(self, group: SeedGroup, seed: str, number: int) -> None:
        domain = self._domain(seed)
        group.place(seed, number, domain)
        there = self._local.setdefault(domain, [])
        if not group.wide and there[-1:] != [group]:
            there.append(group)

    def _seeds(self, group: SeedGroup) -> list[str]:
        return [*(own.url for _, own in group.own), *(address for address, _ in group.scope.moved_seeds)]

    def _domain(self, address: str) -> str:
        return self._domain_of(url.host(address).removeprefix("www."))

    def _judges(self, address: str) -> tuple[tuple[SeedGroup, ...], bool]:
        return self._found(address) if len(address) > LONGEST_REMEMBERED else self._remembered(address)

    def _found(self, address: str) -> tuple[tuple[SeedGroup, ...], bool]:
        """Return the groups that judge *address*, and True if it is in their scope."""
        near = (*self._local.get(self._domain(address), ()), *self._wide, self._base)
        holding = tuple(group for group in near if group.scope.contains(address))
        if holding:
            return holding, True
        return tuple(group for group in near if group.scope.at_home(address)) or (self._base,), False

    def _in_words(self, group: SeedGroup, refusal: Refusal) -> Refusal:
        """Return *refusal* with its rule as written in the settings file, and with the seed of that setting."""
        if not group.own:
            return refusal
        number, own = group.nearest(refusal.url, self._domain(refusal.url))
        rule = _LISTED.sub("include=", refusal.rule)
        excluded = _NUMBERED.match(rule)
        if excluded and int(excluded[1]) >= len(self._settings.exclude):
            value = own.all("exclude")[int(excluded[1]) - len(self._settings.exclude)]
            text = written("exclude", value) + rule[excluded.end() + len(value) :]
            return Refusal(refusal.url, _named(number, own, text))
        key, _, rest = rule.partition(": ")
        if not own.has(key):
            return Refusal(refusal.url, rule)
        return Refusal(refusal.url, _named(number, own, f"{key}={rest}"))


def _named(number: int, own: SeedSetting, text: str) -> str:
    return f"seed[{number}]: {own.url} {text}"


MOST = 16_384  # verdicts; then all are dropped …
MOST_PLACES = 32  # … as they are at so many contexts
MOST_FOREIGN = 1024  # refused hosts in each of them
LONGEST = 256  # characters of a URL that is remembered


class KnownVerdicts(NamedTuple):
    """The known verdicts on links at one place in the crawl."""

    pages: dict[str, NewUrl]  # by URL: on links that were accepted, to pages …
    parts: dict[str, NewUrl]  # … and to requisites
    foreign: dict[str, str]  # by origin: the rule that refuses all links to pages there, if hosts alone decide

    @classmethod
    def none(cls) -> "KnownVerdicts":
        """Return a cache that is empty."""
        return cls({}, {}, {})


class ScopeCache:
    """A cache of verdicts, valid while the grounds are the same object and the year is the same."""

    def __init__(self) -> None:
        self._now: tuple[object, int, dict[tuple[str, int, int, str], KnownVerdicts]] = (None, 0, {})

    def at(self, parent: Claim, grounds: object, year: int, policy: str = "") -> KnownVerdicts:
        """Return the known verdicts on links in the document of *parent* that have the referrer *policy*."""
        if parent.off_scope_hops >= LINK_OUTSIDE:  # out of scope, a verdict also depends on the host of the page
            return KnownVerdicts.none()
        known_grounds, known_year, places = self._now
        full = len(places) >= MOST_PLACES or sum(len(each[0]) + len(each[1]) for each in places.values()) >= MOST
        if known_grounds is not grounds or known_year != year or full:
            places = {}
            self._now = grounds, year, places  # in one step, because another thread may read it
        where = parent.path, parent.depth, parent.off_scope_hops, policy
        known = places.get(where)
        return places.setdefault(where, KnownVerdicts.none()) if known is None else known


def remember(known: dict[str, NewUrl], address: str, verdict: NewUrl) -> None:
    """Add the *verdict* on *address* to *known*, if there is room."""
    if len(address) <= LONGEST and len(known) < MOST:
        known[address] = verdict


def remember_foreign(foreign: dict[str, str], address: str, rule: str) -> None:
    """Remember in *foreign* that *rule* refuses links to pages on the host of *address*, if there is room."""
    origin = url.origin(address)
    if len(origin) <= LONGEST and len(foreign) < MOST_FOREIGN:
        foreign[origin] = rule
