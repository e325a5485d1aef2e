"""The tallies of URL patterns, of their families, and of sites, and how late each pattern goes. Pure."""

from collections import Counter
from collections.abc import Iterable

from archiver import url
from archiver.model import PatternTally
from archiver.policy.dead_ends import lateness

SITE = "site "  # begins the tally name of a whole site
MOST_PATTERNS = 20_000  # in memory, and restored by a later run; the least recently seen is forgotten


class PatternTallies:
    """The newest tally of each pattern, and in *levels* how late suspicious ones go. Not thread-safe."""

    def __init__(self) -> None:
        self._tallies: dict[str, PatternTally] = {}
        self.levels: dict[str, int] = {}  # of patterns and families; only `keep` changes it
        self._led: Counter[str] = Counter()  # pages, by pattern and family, that brought only links to others
        self.get = self._tallies.get

    def __contains__(self, name: object) -> bool:
        return name in self._tallies

    def level(self, name: str) -> int:
        """Return how late the pages of the pattern or family *name* go; 0: in their turn."""
        return self.levels.get(name, 0)

    def suspicious_sites(self) -> set[str]:
        """Return the origins that have a suspicious pattern. Names in a damaged database may have none."""
        return {url.origin(name) for name in self.levels if url.has_origin(name)}

    def keep(self, tally: PatternTally, patience: int) -> PatternTally:
        """Remember *tally* and return it. *patience*: barren pages after which its pattern is suspicious; 0: never."""
        name = tally.pattern
        self._tallies.pop(name, None)
        self._tallies[name] = tally
        if len(self._tallies) > MOST_PATTERNS:
            gone = next(iter(self._tallies))
            self.levels.pop(gone, None)
            self._led.pop(gone, None)
            del self._tallies[gone]
        late = 0 if name.startswith(SITE) else lateness(tally, patience)
        if late:
            self.levels[name] = late
        else:
            self.levels.pop(name, None)
        return tally

    def learn(self, known: Iterable[PatternTally], patience: int) -> None:
        """Take from *known* the barren pages that a person now allows per pattern, and counts that are higher."""
        for tally in known:
            mine = self._tallies.get(tally.pattern)
            if mine is None or tally.visits > mine.visits:
                self.keep(tally, patience)
            else:
                self.keep(mine._replace(released=tally.released), patience)

    def led(self, names: Iterable[str]) -> None:
        """Count a page of *names* that brought only links to other pages."""
        self._led.update(names)

    def has_brought(self, pattern: str, family: str) -> bool:
        """Return True if most pages of *pattern*, or else of *family*, brought something. Links alone do not count."""
        tally = self._tallies.get(pattern)
        if tally is None or not tally.visits:
            tally = self._tallies.get(family)
        return tally is not None and tally.fruitful - self._led[tally.pattern] > tally.barren + self._led[tally.pattern]
