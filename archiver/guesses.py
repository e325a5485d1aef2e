"""Guesses: how many files that only a script names are asked for on one host, and when that ends. Pure.

A guess costs a site a request that no page of it asked for, so there is a budget for each host, and it ends early where
most of what was guessed is not there. Invariant: what was not asked for does not count.
"""

from collections.abc import Iterable

from archiver import url
from archiver.config.settings import ScopeSettings
from archiver.model import PatternTally

MARK = "speculative "  # begins the name of a tally that is ours
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
        if tally is None:
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
