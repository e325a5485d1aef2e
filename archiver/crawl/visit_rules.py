"""The rules by which visits are judged: of the whole crawl, and of single hosts."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock

from archiver import url
from archiver.config.option_types import Pattern
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.session import Session
from archiver.fetch.request import user_agent
from archiver.model import PatternTally
from archiver.policy.retry import ONCE
from archiver.policy.robots import product_token
from archiver.policy.scope import Scope
from archiver.policy.seed_scopes import ScopeCache, Scopes
from archiver.policy.speculative import MARK, Probes, SpeculativeBudget
from archiver.policy.traps import Traps


@dataclass(frozen=True, slots=True)
class HostVisitRules:
    """The rules for visits to one host: retries, the patience with robots.txt, and links that may not be followed."""

    retries: int
    patience: float = 300.0  # seconds of errors before we give up robots.txt; 0: no limit
    nofollow: str = ""  # our name in pages that forbid to follow their links; empty: they may not

    @classmethod
    def of(cls, settings: Settings) -> "HostVisitRules":
        """Return the rules for hosts with *settings*."""
        politeness = settings.politeness
        return cls(
            settings.fetch.retries,
            politeness.robots_patience if politeness.robots == "obey" else ONCE,
            product_token(user_agent(settings.fetch)) if politeness.nofollow == "obey" else "",
        )


LOGOUT = re.compile(r"[/?&=:](?:user)?(?:log|sign)[-_]?(?:out|off)(?:$|[/?&.=])", re.IGNORECASE)


def logs_out(address: str) -> bool:
    """Return True if the path or the query of *address* says that it logs out."""
    return LOGOUT.search(url.target(address)) is not None


class LogoutLinks:
    """Refuses links that log out, on the sites of *pages* (URLs of login forms), unless a pattern includes them."""

    def __init__(self, pages: Iterable[str], include: Iterable[str], domain_of: Callable[[str], str]) -> None:
        self._domain_of = domain_of
        self._sites = {domain_of(url.host(page)) for page in pages}
        self._include = [Pattern(f"include[{number}]", text) for number, text in enumerate(include)]

    def refusal(self, address: str) -> str:
        """Return the rule that refuses *address*, or ""."""
        if not logs_out(address) or self._domain_of(url.host(address)) not in self._sites:
            return ""
        if any(pattern.found_in(address) is True for pattern in self._include):
            return ""
        return "login: the link logs out (--include takes it)"


@dataclass(frozen=True, slots=True)
class VisitRules:
    """The rules by which visits are judged."""

    scope: Scope | Scopes
    common: HostVisitRules
    traps: Traps | None = None
    guesses: SpeculativeBudget | None = None
    probes: Probes | None = None
    settings: SettingsByHost = field(default_factory=lambda: SettingsByHost(Settings()))  # of hosts with other rules
    verdicts: ScopeCache = field(default_factory=ScopeCache)
    session: Session = field(default_factory=Session)
    logouts: LogoutLinks | None = None
    lock: Lock = field(default_factory=Lock)  # one thread at a time counts what pages have brought

    def of_host(self, address: str) -> HostVisitRules:
        """Return the rules for visits to the host of the URL *address*."""
        if not self.settings.any:
            return self.common
        return HostVisitRules.of(self.settings.of(url.origin(address)))

    def learn(self, tallies: Iterable[PatternTally]) -> None:
        """Take in the budgets that another process has given to URL patterns."""
        if self.traps is not None:
            with self.lock:
                self.traps.learn(tally for tally in tallies if not tally.pattern.startswith(MARK))
