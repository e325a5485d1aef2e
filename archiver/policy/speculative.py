"""The budget for speculative URLs, which only a script names. Pure.

A speculative URL may cost the site a useless request, or be the only way to a page. So correct ones cost nothing: only
URLs that are not there count, against the document that named them and against its host. A table of contents in a
script is followed to its end. A document with mostly wrong URLs is given up after a few. On a host where most were
wrong, each further document gets a short trial.
Invariant: a URL that was not requested does not count.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from archiver import url
from archiver.config.scope_settings import ScopeSettings
from archiver.model import Claim, Hop, Links, PatternTally

MARK = "speculative "  # begins the names of our tallies
PROBED = "probe "  # begins the names of tallies of the files that a host need not be asked for again
SITEMAPS = ("/sitemap.xml", "/sitemap_index.xml")
FAULTY_SITEMAP = "sitemap: "  # prefix of the note of a sitemap that may name less than it should
ICON = "/favicon.ico"
_UNNAMED = frozenset((*SITEMAPS, ICON))
_MAPPED, _SHOWN = 1, 2  # flags in such a tally: the sitemaps are known, the icon is known
FORGIVEN = 20  # wrong guesses allowed for one host or document; beyond, no more than right ones
TRIAL = 3  # guesses of a document on a host that has used these up
MOST_TRIALS = 200  # wrong guesses on such a host; then no other document gets a trial
MOST_HOSTS = 10_000  # remembered; older ones start again at zero
MOST_DOCUMENTS = 10_000  # the same for documents
MOST_FOLDERS = 10  # of one host in which a sitemap is asked for
MOST_BODIES = 1000  # remembered, to recognize one page under many URLs

_Reading = tuple[str, bool, bool]


@dataclass(slots=True)
class _GuessCount:
    """The outcomes of the guesses of one kind in one document."""

    right: int = 0
    wrong: int = 0


class SpeculativeBudget:
    """The outcomes of guesses on each host. Not thread-safe. *known*: the counts of earlier runs."""

    def __init__(self, settings: ScopeSettings, known: Iterable[PatternTally] = ()) -> None:
        self._per_page = settings.speculative_per_page
        self._per_host = settings.speculative_per_host
        self._hosts: dict[str, PatternTally] = {}
        self._documents: dict[_Reading, _GuessCount] = {}
        self._bodies: dict[tuple[str, int], bool] = {}
        for tally in known:
            if tally.pattern.startswith(MARK):
                self._keep(tally)

    def refusal(self, address: str, named_by: str = "") -> str:
        """Return the rule that refuses *address*, which the document *named_by* names, or ""."""
        if is_unnamed(address):
            return ""
        count = self._documents.get(_reading(address, named_by), _NOTHING)
        if count.wrong > max(FORGIVEN, count.right):
            return f"speculative: {count.wrong} of {count.right + count.wrong} that {named_by} names were not there"
        if self._per_page and count.wrong >= self._per_page:
            return f"speculative-per-page: {self._per_page}"
        tally = self._hosts.get(MARK + url.origin(address))
        if tally is None:
            return ""
        wrong = tally.visits - tally.fruitful
        if self._per_host and wrong >= self._per_host:
            return f"speculative-per-host: {self._per_host}"
        if wrong <= max(FORGIVEN, tally.fruitful) or (count.right and count.right >= count.wrong):
            return ""
        if wrong < MOST_TRIALS and count.right + count.wrong < TRIAL:
            return ""
        return f"speculative: {wrong} of {tally.visits} on this host were not there"

    def saw(self, address: str, named_by: str = "", *, there: bool, page: bytes | None = None) -> PatternTally:
        """Count a speculative URL that was requested. Return the tally of its host.

        Many sites send the same page for all missing URLs, so a *page* that came under another URL counts as missing.
        """
        origin = url.origin(address)
        there = there and not (page is not None and self._came_before(origin, page))
        count = self._documents.pop(_reading(address, named_by), None) or _GuessCount()
        count.right += there
        count.wrong += not there
        self._documents[_reading(address, named_by)] = count
        if len(self._documents) > MOST_DOCUMENTS:
            self._documents.pop(next(iter(self._documents)))
        name = MARK + origin
        before = self._hosts.pop(name, None) or PatternTally(name, 0, 0, 0)
        tally = PatternTally(name, before.visits + 1, before.fruitful + there, 1)
        self._keep(tally)
        return tally

    def _came_before(self, origin: str, page: bytes) -> bool:
        known = (origin, hash(page))
        before = self._bodies.pop(known, False)
        self._bodies[known] = True
        if len(self._bodies) > MOST_BODIES:
            self._bodies.pop(next(iter(self._bodies)))
        return before

    def _keep(self, tally: PatternTally) -> None:
        self._hosts[tally.pattern] = tally
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.pop(next(iter(self._hosts)))


_NOTHING = _GuessCount()


def _reading(address: str, named_by: str) -> _Reading:
    """Return a key to count guesses separately: pages or files, and below the document's folder or not."""
    folder = named_by.partition("?")[0].rpartition("/")[0] + "/"
    return named_by, address.startswith(folder), url.may_be_page(address)


def is_unnamed(address: str) -> bool:
    """Return True if *address* is a file that sites have without linking to it: a sitemap or the icon."""
    return url.target(address) in _UNNAMED or is_sitemap(address)


def is_sitemap(address: str) -> bool:
    """Return True if *address* is where sites have a sitemap: at the root, or in a folder that is a site of its own."""
    return url.target(address).endswith(SITEMAPS)


def _folder(address: str) -> str:
    """Return the folder below the root of which *address* is the index, as it is the home of a site; "" if none."""
    folder, _, name = address.partition("?")[0].rpartition("/")
    is_home = not name or name.startswith(("index.", "sitemap"))
    return f"{folder}/" if is_home and folder != url.origin(address) else ""


class Probes:
    """The places that need not be asked for sitemaps or the icon. Not thread-safe. *known*: from earlier runs."""

    def __init__(self, known: Iterable[PatternTally] = ()) -> None:
        self._hosts = {tally.pattern: tally.visits for tally in known if tally.pattern.startswith(PROBED)}
        self._folders = Counter(url.origin(name.removeprefix(PROBED)) for name in self._hosts if name.endswith("/"))

    def named(self, claim: Claim, links: Links) -> tuple[PatternTally, ...]:
        """Record the *links* in the robots.txt of *claim*. Return the changed tallies of its hosts."""
        if not any(link.hop is Hop.MANIFEST for link in links.links):
            return ()
        hosts = dict.fromkeys(url.origin(address) for address in (claim.url, claim.via) if address)
        maps = [link.url for link in links.links if link.hop is Hop.MANIFEST]
        folders = dict.fromkeys(folder for each in maps[:MOST_FOLDERS] if (folder := _folder(each)))
        return tuple(self._learned(place, _MAPPED) for place in (*hosts, *folders))

    def below(self, seed: str, links: Links) -> tuple[list[str], tuple[PatternTally, ...]]:
        """Return the sitemap to request in the folder of *seed*, which names *links*, and the tallies to remember.

        Many programs are installed below a path, and robots.txt at the root names no sitemap of theirs.
        """
        folder, origin = _folder(seed), url.origin(seed)
        named = any(link.hop is Hop.MANIFEST for link in links.links)
        if not folder or named or PROBED + folder in self._hosts or self._folders[origin] >= MOST_FOLDERS:
            return [], ()
        self._folders[origin] += 1
        return [folder + SITEMAPS[0][1:]], (self._learned(folder, _MAPPED),)

    def after(self, page: str, links: Links, *, html: bool) -> tuple[list[str], tuple[PatternTally, ...]]:
        """Return the unnamed URLs to request for *page*, which names *links*, and the tallies to remember."""
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

    def _learned(self, place: str, what: int) -> PatternTally:
        name = PROBED + place
        known = self._hosts.pop(name, 0) | what
        self._hosts[name] = known
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.pop(next(iter(self._hosts)))
        return PatternTally(name, known, 0, 1)
