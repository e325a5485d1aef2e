"""The rules by which visits are judged: of the whole crawl, and of single hosts."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING

from archiver import url
from archiver.config.fetch_settings import FetchSettings
from archiver.config.option_types import Pattern
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.session import Session
from archiver.extract.exchange import PAGES, is_page, is_robots
from archiver.fetch.request import user_agent
from archiver.frontier.gathered.redirects import MOVED
from archiver.model import Claim, Event, Framing, Hop, Link, Links, NewUrl, PatternTally, Refusal
from archiver.policy.retry import ONCE
from archiver.policy.robots import product_token
from archiver.policy.scope import HOOK, OUTSIDE, PRIORITY_GUESS, Scope
from archiver.policy.seed_scopes import ScopeCache, Scopes, remember_foreign
from archiver.policy.speculative import MARK, Probes, SpeculativeBudget
from archiver.policy.traps import FREE, Suspicion, Traps
from archiver.policy.url_forms import pattern
from archiver.policy.views import ViewNeed, need_of

if TYPE_CHECKING:
    from archiver.crawl.hooks.hooks import Hooks


@dataclass(frozen=True, slots=True)
class HostVisitRules:
    """The rules for visits to one host: retries, the patience with robots.txt, and links that may not be followed."""

    retries: int
    patience: float = 300.0  # seconds of errors before we give up robots.txt; 0: no limit
    nofollow: str = ""  # our name in pages that forbid to follow their links; empty: they may not
    languages: tuple[str, ...] = ()  # in which a URL is visited too, if its answer depends on the language

    @classmethod
    def of(cls, settings: Settings) -> "HostVisitRules":
        """Return the rules for hosts with *settings*."""
        politeness = settings.politeness
        return cls(
            settings.fetch.retries,
            politeness.robots_patience if politeness.robots == "obey" else ONCE,
            product_token(user_agent(settings.fetch)) if politeness.nofollow == "obey" else "",
            further_languages(settings.fetch),
        )


ERRORS = 400  # the first status of an error
YEAR = 31_556_952  # seconds
LATER = 2 * PRIORITY_GUESS  # added to a priority for each level of suspicion; greater than any without suspicion


def further_languages(settings: FetchSettings) -> tuple[str, ...]:
    """Return the languages for further visits, each once, without that of the first visit."""
    if not settings.also_accept_language:
        return ()
    given = [line.partition(":")[::2] for line in settings.header]
    first = next((value for name, value in given if name.lower() == "accept-language"), settings.accept_language)
    wanted = {each.strip().lower(): each.strip() for each in settings.also_accept_language.split(",") if each.strip()}
    return tuple(each for name, each in wanted.items() if name != first.strip().lower())


def varies(framing: Framing) -> bool:
    """Return True if a response is no error and says that it depends on Accept-Language (RFC 9110 §12.5.5).

    `Vary: *` does not count: it says that anything may change the response, and names nothing.
    """
    fields = (name.strip().lower() for value in framing.all("vary") for name in value.split(","))
    return framing.status < ERRORS and "accept-language" in fields


def is_there(claim: Claim, framing: Framing) -> bool:
    """Return True if a guess was right: many sites answer with a page and status 200 although there is no such file."""
    as_guessed = framing.media_type not in PAGES or is_page(claim)
    return 200 <= framing.status < 400 and as_guessed


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
    views: str = "off"  # which pages a browser shows: off, auto, all
    hooks: "Hooks | None" = None
    lock: Lock = field(default_factory=Lock)  # one thread at a time counts what pages have brought

    def of_host(self, address: str) -> HostVisitRules:
        """Return the rules for visits to the host of the URL *address*."""
        if not self.settings.any:
            return self.common
        return HostVisitRules.of(self.settings.of(url.origin(address)))

    def asked(self, claim: Claim, links: Links) -> tuple[dict[tuple[str, Hop], bool], str]:
        """Return which of *links* in the document of *claim* a hook takes or refuses, and the note if it failed."""
        return ({}, "") if self.hooks is None else self.hooks.judge(claim, links)

    def follow_up(self, claim: Claim, event: Event, framing: Framing | None = None) -> tuple[Event, str]:
        """Return what a visit that ended with *event* means for its URL, and the language of its next visit.

        *framing*: of the response, if there is one. However the visit of a variant ends, its URL is archived.
        """
        if event in {Event.RETRY, Event.DELAY} or claim.priority < 0:
            return event, claim.language
        if claim.language:
            wanted = self.of_host(claim.url).languages  # without its own, if the settings have changed meanwhile
            language = next((after for one, after in pairwise(wanted) if one == claim.language), "")
            return Event.VARIANT if language else Event.CAPTURE, language
        if event is not Event.CAPTURE or framing is None or not (self.common.languages or self.settings.any):
            return event, ""
        wanted = self.of_host(claim.url).languages if varies(framing) and not is_robots(claim) else ()
        return (Event.VARIANT, wanted[0]) if wanted else (event, "")

    def view(self, claim: Claim, event: Event, framing: Framing, links: Links) -> tuple[int, str] | None:
        """Return how much a visited page needs a browser, and its URL pattern; None if no browser is to show it."""
        stored = event is Event.CAPTURE and not claim.language and 200 <= framing.status < 300
        if self.views == "off" or not stored or links.page is None or framing.media_type not in PAGES:
            return None
        need = need_of(links.page)
        return min(need, ViewNeed.SCRIPTED) if self.views == "all" else need, pattern(claim.url)

    def learn(self, tallies: Iterable[PatternTally]) -> None:
        """Take in the budgets that another process has given to URL patterns."""
        if self.traps is not None:
            with self.lock:
                self.traps.learn(tally for tally in tallies if not tally.pattern.startswith(MARK))

    def recall(self, links: Iterable[tuple[str, str]]) -> None:
        """Take in the *links*, as (page, target), that earlier runs or other crawlers have queued."""
        if self.traps is not None:
            with self.lock:
                self.traps.recall(links)


def placed(new: NewUrl, standing: Suspicion) -> NewUrl:
    """Return *new* with the lower priority that its suspicion means, or held."""
    if standing is FREE or not standing.level:
        return new
    held = f"{standing.rule}: {standing.pattern}" if standing.rule else ""
    return new._replace(priority=new.priority + LATER * standing.level, held=held)


def year_of(now: float) -> int:
    """Return the year of *now*, in seconds since the epoch."""
    return int(now / YEAR) + 1970


def judged_alone(rules: VisitRules, link: Link, claim: Claim, now: float, text: str = "") -> NewUrl | Refusal:
    """Do the same as `judged`, and ask the hook first, which gets the *text* of the link."""
    alone = Links((link,), texts={link[:2]: text})
    wanted = rules.asked(claim, alone)[0].get((link.url, link.hop))
    return Refusal(link.url, HOOK) if wanted is False else judged(rules, link, claim, now, wanted=bool(wanted))


def judged(rules: VisitRules, link: Link, claim: Claim, now: float, *, wanted: bool = False) -> NewUrl | Refusal:
    """Return the new URL that *link*, found in the document of *claim*, becomes, or the rule that refuses it.

    *wanted*: a hook takes it, so it is in scope.
    """
    if port := url.blocked_port(link.url):
        return Refusal(link.url, f"blocked-port: {port}")
    if rules.logouts is not None and (rule := rules.logouts.refusal(link.url)):
        return Refusal(link.url, rule)
    verdict = rules.scope.judge(link, claim, wanted=wanted)
    if isinstance(verdict, Refusal):
        return verdict
    if (
        link.hop is Hop.SPECULATIVE
        and rules.guesses is not None
        and (rule := rules.guesses.refusal(verdict.url, claim.url))
    ):
        return Refusal(verdict.url, rule)
    if rules.traps is None:
        return verdict
    hop = link.hop if link.hop is not Hop.REDIRECT or is_page(claim) else Hop.REQUISITE
    if hop is Hop.SPECULATIVE and url.may_be_page(verdict.url):
        hop = Hop.LINK
    return placed(verdict, rules.traps.judge(verdict.url, hop, claim.url, year_of(now)))


def judged_first(rules: VisitRules, link: Link, claim: Claim, now: float, foreign: dict[str, str]) -> NewUrl | Refusal:
    """Do the same as `judged`, and remember in *foreign* the hosts to whose pages no link is taken."""
    if link.hop is not Hop.LINK or not rules.scope.judges_by_host or rules.logouts is not None:
        return judged(rules, link, claim, now)
    if rule := foreign.get(url.origin(link.url)):
        return Refusal(link.url, rule)
    verdict = judged(rules, link, claim, now)
    if isinstance(verdict, Refusal):
        remember_foreign(foreign, link.url, verdict.rule)
    return verdict


def redirect_note(scope: Scope | Scopes, claim: Claim, link: Link, verdict: NewUrl | Refusal) -> str:
    """Return the note on a URL that redirects by *link*; *verdict*: that of the scope on its target."""
    if link.url == claim.url:
        return "redirect loop: back to itself"
    if isinstance(verdict, Refusal):
        return f"{MOVED}{link.url}, not followed ({verdict.rule})"
    return f"{MOVED}{link.url}" if scope.contains(link.url) else f"{MOVED}{link.url}, {OUTSIDE}"
