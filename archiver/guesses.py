"""Guesses: how many files that only a script names a host is asked for, and which it is asked for unnamed. Pure.

A guess costs a site a request that no page of it asked for, so there is a budget for each host, and it ends early where
most of what was guessed is not there. Invariant: what was not asked for does not count.
"""

from collections.abc import Iterable

from archiver import url
from archiver.config.settings import ScopeSettings
from archiver.model import Claim, Hop, Links, PatternTally

MARK = "speculative "  # begins the name of a tally that is ours
PROBED = "probe "  # begins the name of one that says what a host need not be asked for any more
SITEMAPS = ("/sitemap.xml", "/sitemap_index.xml")
ICON = "/favicon.ico"
_UNNAMED = frozenset((*SITEMAPS, ICON))
_MAPPED, _SHOWN = 1, 2  # what such a tally says, added up: sitemaps are known, and the icon
FORGIVEN = 20  # guesses of one host that may be wrong; beyond, no more of them than are right
MOST_HOSTS = 10_000  # remembered; of those before them the count begins anew


class Guesses:
    """What came of the guesses on each host. Not for two threads at once. *known*: what earlier runs have seen."""

    def __init__(self, settings: ScopeSettings, known: Iterable[PatternTally] = ()) -> None:
        self.per_page = settings.speculative_per_page
        self._per_host = settings.speculative_per_host
        self._hosts: dict[str, PatternTally] = {}
        for tally in known:
            if tally.pattern.startswith(MARK):
                self._keep(tally)

    def refusal(self, address: str) -> str:
        """The rule by which the host of *address* is asked for no more guesses, "" where none does."""
        tally = self._hosts.get(MARK + url.origin(address))
        if tally is None or is_unnamed(address):
            return ""
        if self._per_host and tally.visits >= self._per_host:
            return f"speculative-per-host: {self._per_host}"
        wrong = tally.visits - tally.fruitful
        if wrong > max(FORGIVEN, tally.fruitful):
            return f"speculative: {wrong} of {tally.visits} on this host were not there"
        return ""

    def saw(self, address: str, *, there: bool) -> PatternTally:
        """Count one that was asked for, and whether it was *there*; what is to be remembered of its host."""
        name = MARK + url.origin(address)
        before = self._hosts.pop(name, None) or PatternTally(name, 0, 0, 0, strict=False)
        tally = PatternTally(name, before.visits + 1, before.fruitful + there, 1, strict=False)
        self._keep(tally)
        return tally

    def _keep(self, tally: PatternTally) -> None:
        self._hosts[tally.pattern] = tally
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.pop(next(iter(self._hosts)))


def is_unnamed(address: str) -> bool:
    """Whether *address* is one of the files that sites have without naming them."""
    return url.target(address) in _UNNAMED


class Probes:
    """Which hosts need not be asked for sitemaps and icon. Not for two threads at once. *known*: from earlier runs."""

    def __init__(self, known: Iterable[PatternTally] = ()) -> None:
        self._hosts = {tally.pattern: tally.visits for tally in known if tally.pattern.startswith(PROBED)}

    def named(self, claim: Claim, links: Links) -> tuple[PatternTally, ...]:
        """The robots.txt of *claim* names *links*: what is to be remembered of the hosts that it speaks for."""
        if not any(link.hop is Hop.MANIFEST for link in links.links):
            return ()
        hosts = dict.fromkeys(url.origin(address) for address in (claim.url, claim.via) if address)
        return tuple(self._learned(host, _MAPPED) for host in hosts)

    def after(self, page: str, links: Links, *, html: bool) -> tuple[list[str], tuple[PatternTally, ...]]:
        """What the host of *page*, which names *links*, is asked for unnamed, and what is to be remembered."""
        origin = url.origin(page)
        known = self._hosts.get(PROBED + origin, 0)
        if known == _MAPPED | _SHOWN:
            return [], ()
        wanted: list[str] = []
        if not known & _MAPPED and not any(link.hop is Hop.MANIFEST for link in links.links):
            wanted += (origin + target for target in SITEMAPS)
        shown = html and not known & _SHOWN and not links.icon
        if shown:
            wanted.append(origin + ICON)
        learned = known | _MAPPED | _SHOWN * shown
        return wanted, () if learned == known else (self._learned(origin, learned),)

    def _learned(self, origin: str, what: int) -> PatternTally:
        name = PROBED + origin
        known = self._hosts.pop(name, 0) | what
        self._hosts[name] = known
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.pop(next(iter(self._hosts)))
        return PatternTally(name, known, 0, 1, strict=False)
