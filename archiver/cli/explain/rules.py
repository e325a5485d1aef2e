"""Find the rule that takes or refuses a URL, with the functions of the crawl, in the words of the settings file.

For a URL in the frontier, this is the rule by which it came there. For any other URL, it is what would happen to a link
to it on the page of a seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from archiver import url
from archiver.cli.explain.text import HostSetting, RuleDecision, RuleVerdict
from archiver.config.scope_settings import ScopeSettings
from archiver.config.secret_settings import without_secrets
from archiver.config.settings import Settings, SettingsByHost, every_setting, key_of
from archiver.crawl.rules import visit_rules_of
from archiver.crawl.visit import refusal
from archiver.crawl.visit_rules import judged
from archiver.errors import Failure, FetchError
from archiver.fetch.private_networks import AddressGuard, normalized_host
from archiver.fetch.request import user_agent
from archiver.frontier.url_lookup import HostState, UrlRow
from archiver.model import LINK_OUTSIDE, Claim, Event, Hop, Link, NewUrl, PatternTally, Refusal, State
from archiver.policy.domains import registered_domains
from archiver.policy.robots import Rules, product_token
from archiver.policy.scope import Moved, Scope, is_guess
from archiver.policy.seed_scopes import Scopes
from archiver.policy.speculative import is_unnamed

NOT_NAMED = "allow-private: does not name it"
LOOPBACK = "127.0.0.1"  # the address of names below localhost (RFC 6761)
MAX_PARENTS = 1000  # seeds that are tried as the page of the link
MAX_RULE = 300  # characters of a line of robots.txt that are shown


@dataclass(frozen=True, slots=True)
class LearnedState:
    """The knowledge that the crawl has gained: where seeds have moved to, and the tallies of URL patterns."""

    moved: Sequence[Moved] = ()
    tallies: Sequence[PatternTally] = ()


class RuleJudge:
    """Finds the rule for a URL, by the settings and by what the crawl has learned."""

    def __init__(self, settings: Settings, learned: LearnedState, now: float) -> None:
        self._settings = settings
        self._by_host = SettingsByHost(settings)
        self._moved = learned.moved
        self._now = now
        self._visit_rules = visit_rules_of(settings, learned.tallies)
        self._visit_rules.scope.add_moved_seeds(learned.moved)
        self._plain_scope = self._narrowed(include=(), scope_surt=())
        self._listed_scope = self._narrowed(include=(), scope_surt=settings.scope.scope_surt)
        self._guard = AddressGuard(settings.fetch.allow_private, settings.seeds)

    def of_known(self, row: UrlRow, host: HostState | None) -> RuleVerdict:
        """Return the rule behind the state of *row*."""
        if row.failure == Failure.PRIVATE:
            return RuleVerdict(RuleDecision.REFUSED, NOT_NAMED, row.note)
        if row.failure == Failure.ROBOTS:
            where = f" ({host.robots_url})" if host is not None and host.robots_url else ""
            return RuleVerdict(RuleDecision.REFUSED, self._robots(row.url), f"{row.note}{where}")
        if row.state is State.EXCLUDED:
            return RuleVerdict(RuleDecision.REFUSED, row.note or row.failure)
        if row.state is State.HELD:
            return RuleVerdict(RuleDecision.HELD, row.note, "to fetch it: archiver retry DIR --held, or with this URL")
        taken = self._taken(row)
        if row.state is not State.WAITING:
            return taken
        claim = Claim(row.id, row.url, 0, row.hop, row.path, row.depth, row.off_scope_hops, row.tries)
        inside = self._private(row.url)
        coming = refusal(self._visit_rules, claim)
        if coming is not None and coming.event is Event.HOLD:
            return replace(taken, detail=f"but it will be held by {coming.forbidden}")
        refused = coming.forbidden if coming is not None and coming.event is Event.FORBID else ""
        refused = refused or (f"{NOT_NAMED}: {inside}" if inside else "")
        return replace(taken, detail=f"but it will be refused by {refused}") if refused else taken

    def of_unknown(self, address: str, host: HostState | None) -> RuleVerdict:
        """Return the rule that would apply to a link to *address*."""
        if address in self._settings.seeds:
            return RuleVerdict(RuleDecision.WOULD_TAKE, "seeds", "it is a seed that the crawl has not queued yet")
        as_link = self._as_found(address, Hop.LINK)
        if isinstance(as_link, Refusal):
            shown = self._as_found(address, Hop.REQUISITE)
            detail = "" if isinstance(shown, Refusal) else "as an image, style or script of a page, it would be taken"
            return RuleVerdict(RuleDecision.WOULD_REFUSE, as_link.rule, detail)
        if inside := self._private(address):
            return RuleVerdict(RuleDecision.WOULD_REFUSE, NOT_NAMED, inside)
        if as_link.held:
            return RuleVerdict(RuleDecision.WOULD_HOLD, as_link.held)
        line = self._line(address, host) if self.of_host(address).politeness.robots == "obey" else ""
        if line:
            return RuleVerdict(RuleDecision.WOULD_REFUSE, self._robots(address), line)
        scope = self._settings.scope
        rule = f"extra-hops: {scope.extra_hops}" if as_link.off_scope_hops else f"scope: {scope.scope}"
        return RuleVerdict(RuleDecision.WOULD_TAKE, self._home_rule(address, 1) or rule)

    def of_host(self, address: str) -> Settings:
        """Return the settings of the host of *address*."""
        return self._by_host.of(url.origin(address))

    def host_settings(self, address: str) -> tuple[HostSetting, ...]:
        """Return the settings of the host of *address* that a rule sets, without secrets."""
        bare, origin = SettingsByHost(without_secrets(self._settings)), url.origin(address)
        own = bare.of(origin)
        found = []
        for part, entry in every_setting():
            if rule := bare.rules(origin).get(key_of(entry)):
                write, value = entry.metadata["kind"].write, getattr(getattr(own, part), entry.name)
                found.append(
                    HostSetting(key_of(entry), [*map(write, value)] if entry.metadata["many"] else write(value), rule)
                )
        return tuple(found)

    def delay(self, host: HostState) -> float:
        """Return the Crawl-delay in the robots.txt of *host*, in seconds."""
        return self._rules(host).delay if host.answer is not None else 0.0

    def _taken(self, row: UrlRow) -> RuleVerdict:
        scope = self._settings.scope
        if not row.path:
            return RuleVerdict(RuleDecision.TOOK, "seeds")
        if row.path.startswith(Hop.PREREQUISITE) and not row.path.strip(Hop.PREREQUISITE + Hop.REDIRECT):
            return RuleVerdict(
                RuleDecision.TOOK, self._robots(row.url), "it says what archiver may fetch from its host"
            )
        if is_guess(row.path) and is_unnamed(row.url):
            return RuleVerdict(RuleDecision.TOOK, f"probe: {scope.probe}", "many sites have it without linking to it")
        if is_guess(row.path):
            return RuleVerdict(RuleDecision.TOOK, f"speculative: {scope.speculative}", "only a script names it")
        if home := self._home_rule(row.url, row.depth):
            return RuleVerdict(RuleDecision.TOOK, home)
        return RuleVerdict(RuleDecision.TOOK, *_outside(row, scope))

    def _home_rule(self, address: str, depth: int) -> str:
        """Return the rule that puts *address*, *depth* links from a seed, in scope; "" if it is out of scope."""
        scope, everywhere = self._settings.scope, self._visit_rules.scope
        own = everywhere.own_rule(address, depth) if isinstance(everywhere, Scopes) else ""
        if own and scope.max_depth is not None and depth > scope.max_depth:
            return own
        return self._common_rule(address) or own

    def _common_rule(self, address: str) -> str:
        """Return the rule that puts *address* in the scope of seeds without settings of their own; "" if none does."""
        scope = self._settings.scope
        if self._plain_scope.contains(address):
            return f"scope: {scope.scope}"
        if self._listed_scope.contains(address):
            form = url.form(address)
            return next(f"scope-surt[{n}]: {text}" for n, text in enumerate(scope.scope_surt) if form.startswith(text))
        for number, pattern in enumerate(scope.include):
            if self._narrowed(include=(pattern,), scope_surt=()).contains(address):
                return f"include[{number}]: {pattern}"
        return ""

    def _narrowed(self, include: tuple[str, ...], scope_surt: tuple[str, ...]) -> Scope:
        """Return the scope of seeds without settings of their own, with only these *include* and *scope_surt*."""
        apart = {own.url for own in self._settings.scope.seed if own.for_scope}
        settings = replace(self._settings.scope, include=include, scope_surt=scope_surt, seed=())
        seeds = tuple(seed for seed in self._settings.seeds if seed not in apart)
        scope = Scope(settings, seeds, registered_domains() if settings.scope == "domain" else str)
        scope.add_moved_seeds((place, seed) for place, seed in self._moved if seed not in apart)
        return scope

    def _private(self, address: str) -> str:
        """Return why *address* would be refused as private, as far as its host name shows it (no DNS look-up)."""
        host = normalized_host(url.host(address))
        here = host == "localhost" or host.endswith(".localhost")
        if here and host in {normalized_host(url.host(seed)) for seed in self._settings.seeds}:
            return ""
        try:
            self._guard.check(host, LOOPBACK if here else None)
        except FetchError as error:
            return error.reason
        return ""

    def _as_found(self, address: str, hop: Hop) -> NewUrl | Refusal:
        """Return the best verdict on a link or reference to *address* on the page of any seed."""
        link, seeds = Link(address, hop), self._settings.seeds
        near = sorted(seeds[:MAX_PARENTS], key=lambda seed: url.origin(seed) != url.origin(address))
        parents = (Claim(0, seed, 0, Hop.LINK, "", 0, 0, 0, seed=seed) for seed in near)
        verdicts = [judged(self._visit_rules, link, parent, self._now) for parent in parents]
        return next((verdict for verdict in verdicts if isinstance(verdict, NewUrl)), verdicts[0])

    def _robots(self, address: str) -> str:
        return f"robots: {self.of_host(address).politeness.robots}"

    def _rules(self, host: HostState) -> Rules:
        assert host.answer is not None
        return Rules(host.answer, product_token(user_agent(self.of_host(f"{host.key}/").fetch)))

    def _line(self, address: str, host: HostState | None) -> str:
        """Return the line of robots.txt that forbids *address*, with its URL; "" if none does."""
        if host is None or host.answer is None:
            return ""
        rules = self._rules(host)
        if rules.unreachable:
            answer = (
                f"answered {host.answer.status}" if host.answer.status else host.answer.body.decode(errors="replace")
            )
            return f"{host.robots_url} could not be fetched: {answer[:MAX_RULE]}"
        refusal = rules.refusal(address)
        return f"{host.robots_url} says {refusal[:MAX_RULE]}" if refusal else ""


def _outside(row: UrlRow, scope: ScopeSettings) -> tuple[str, str]:
    """Return the rule that took *row* although it is out of scope, and what that means."""
    match row.hop:
        case Hop.LINK if row.off_scope_hops >= LINK_OUTSIDE:
            return f"extra-hops: {scope.extra_hops}", "a page of the crawl links to it"
        case Hop.REDIRECT if row.path.rstrip(Hop.REDIRECT)[-1:] in {"", Hop.LINK}:
            return f"redirects: {scope.redirects}", "a page of the crawl redirects to it"
        case Hop.REDIRECT:
            return f"max-redirects: {scope.max_redirects}", "a requisite of a page of the crawl redirects to it"
        case Hop.REQUISITE:
            return f"page-requisites: {str(scope.page_requisites).lower()}", "a page of the crawl needs it"
        case Hop.MANIFEST:
            return f"scope: {scope.scope}", "a sitemap of the site names it"
    return f"scope: {scope.scope}", "the settings at that time took it; the current ones would not"
