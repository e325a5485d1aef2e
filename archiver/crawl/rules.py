"""Turns settings into the rules of a crawl: its scope, traps and budgets, and the warcinfo of its WARC files.

`CurrentRules` holds the rules that are valid now; they are replaced while the crawl runs when seeds are added. It also
applies what earlier crawls and sitemaps say: a page that a sitemap calls newer than our latest capture is fetched
first. That changes only the order. How a sitemap says it is stored with the link.
"""

import logging
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from archiver import __version__
from archiver.collection.earlier_crawls import EarlierCrawls, is_there
from archiver.collection.layout import Layout
from archiver.collection.writer import WarcIdentity
from archiver.config.seeds import SeedSetting
from archiver.config.settings import Settings, every_setting, has_secrets, key_of, without_secrets
from archiver.config.toml import parse, toml_value
from archiver.crawl.visit import RobotsSettings, Visited, VisitRules, refusal
from archiver.errors import ConfigError
from archiver.extract.sitemap import modified
from archiver.fetch.private_networks import spelled_address
from archiver.fetch.request import user_agent
from archiver.frontier.port import Frontier
from archiver.model import Claim, Event, Hop, Links, PatternTally, Settlement
from archiver.policy.retry import ONCE
from archiver.policy.robots import product_token
from archiver.policy.scope import PRIORITY_PAGE, Scope
from archiver.policy.seed_scopes import Scopes, scope_of
from archiver.policy.speculative import MARK, PROBED, Probes, SpeculativeBudget
from archiver.policy.traps import MOST_PATTERNS, Traps
from archiver.storage import open_file


def identity_of(settings: Settings) -> WarcIdentity:
    """Return the warcinfo of every WARC file of this crawl."""
    return WarcIdentity(
        prefix=settings.warc.warc_prefix,
        host=re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "localhost",
        size=settings.warc.warc_size,
        algorithm=settings.warc.digest,
        info=_warcinfo(without_secrets(settings)),
        private=has_secrets(settings),
    )


def next_serial(layout: Layout) -> int:
    """Return the number of the next WARC file, one more than the highest that exists."""
    numbers = (re.search(r"-\d{17}-(\d{5,})-", path.name) for path in layout.archive.iterdir())
    return max((int(found[1]) + 1 for found in numbers if found), default=0)


def _warcinfo(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the fields of the warcinfo: who crawls, why, with which software and settings (as in crawl.toml)."""
    described = [
        ("software", f"archiver/{__version__}"),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
        ("hostname", socket.gethostname()),
        ("operator", settings.warc.operator),
        ("description", settings.warc.description),
        ("robots", settings.politeness.robots),
        ("http-header-user-agent", user_agent(settings.fetch)),
        ("http-header-from", settings.fetch.contact),
    ]
    given = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        write = entry.metadata["kind"].write
        values = [[write(one)] for one in value] if entry.metadata["many"] else [write(value)]
        given += [("setting", f"{key_of(entry)} = {toml_value(single)}") for single in values]
    seeds = [("seed", seed) for seed in settings.seeds]
    return tuple((name, value) for name, value in (*described, *given, *seeds) if value)


log = logging.getLogger(__name__)


def terms_of(settings: Settings, known: Sequence[PatternTally] = ()) -> VisitRules:
    """Return the rules for the visits of this crawl; *known*: what URL patterns have brought so far."""
    politeness = settings.politeness
    rules = RobotsSettings(
        patience=politeness.robots_patience if politeness.robots == "obey" else ONCE,
        nofollow=product_token(user_agent(settings.fetch)) if politeness.nofollow == "obey" else "",
    )
    traps = Traps(settings.traps, (tally for tally in known if not tally.pattern.startswith((MARK, PROBED))))
    probes = Probes(known) if settings.scope.probe == "on" else None
    return VisitRules(
        scope_for(settings), settings.fetch.retries, traps, rules, SpeculativeBudget(settings.scope, known), probes
    )


def scope_for(settings: Settings) -> Scope | Scopes:
    """Return the scope of the crawl."""
    reaches = {settings.scope.scope, *(own.get("scope") for own in settings.scope.seed_setting)}
    return scope_of(settings.scope, settings.seeds, registered_domains() if "domain" in reaches else str)


async def learned_terms(settings: Settings, frontier: Frontier) -> VisitRules:
    """Return the rules for visits, with what earlier runs of the crawl have learned about its sites."""
    terms = terms_of(settings, await frontier.pattern_tallies(MOST_PATTERNS))
    if settings.scope.redirects == "seeds":
        terms.scope.welcome(await frontier.seed_redirects())
    return terms


@cache
def registered_domains() -> Callable[[str], str]:
    """Return a function from host name to registered domain. It uses the list in tldextract, never the network."""
    import tldextract  # noqa: PLC0415 - takes a fifth of a second, and only domain scopes need it

    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    return lambda host: extract(host).top_domain_under_public_suffix or host


@cache
def owners() -> Callable[[str], str]:
    """Return a function from host name to its owner's domain: the registered domain, even if its suffix is not listed.

    The Public Suffix List treats a top-level domain without a rule as a suffix.
    """
    registered = registered_domains()

    def owner(host: str) -> str:
        found = registered(host)
        if found != host or spelled_address(host) is not None:
            return found
        return ".".join(host.rstrip(".").split(".")[-2:])

    return owner


def _text(path: Path) -> str:
    with open_file(path) as file:
        return file.read().decode()


def with_seeds(settings: Settings, further: Sequence[str], layout: Layout) -> Settings:
    """Return *settings* with *further* seeds, whose own settings were written to crawl.toml before they were added."""
    own: tuple[SeedSetting, ...] = ()
    try:
        own = parse(_text(layout.settings), str(layout.settings)).get("seed_setting", ())
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        log.warning("seeds that were added have the settings of the crawl, for their own cannot be read: %s", error)
    new = set(further)
    scope = replace(
        settings.scope, seed_setting=(*settings.scope.seed_setting, *(one for one in own if one.url in new))
    )
    return replace(settings, seeds=(*settings.seeds, *further), scope=scope)


MOST = 10_000  # entries of one sitemap that we look up: a tenth of a second


def hasten(settlement: Settlement, links: Links, memory: EarlierCrawls) -> Settlement:
    """Give pages in *settlement* that are newer than our latest capture the priority of seeds."""
    dates = {link.url: date for link in links.links[:MOST] if link.hop is Hop.LINK and (date := modified(link.context))}
    if not dates:
        return settlement
    newer = {address for address, date in dates.items() if _is_newer(address, date, memory)}
    found = tuple(
        new._replace(priority=min(new.priority, PRIORITY_PAGE)) if new.url in newer else new for new in settlement.found
    )
    return settlement._replace(found=found)


def _is_newer(address: str, date: float, memory: EarlierCrawls) -> bool:
    taken = memory.newest(address)
    return taken is None or date > taken.timestamp / 1e6


class CurrentRules:
    """The rules that are valid now: one value, which is replaced while the crawl runs."""

    def __init__(self, terms: VisitRules, memory: EarlierCrawls | None = None) -> None:
        self.terms = terms
        self._memory = memory

    def refusal(self, claim: Claim) -> Visited | None:
        """Return the visit that *claim* becomes without a request, because of what other pages have brought since."""
        visited = refusal(self.terms, claim)
        return None if visited is not None and visited.event is Event.HOLD and self._had(claim.url) else visited

    def learn(self, tallies: Sequence[PatternTally]) -> None:
        """Take in the budgets that another process has given to URL patterns."""
        if self.terms.traps is not None:
            with self.terms.lock:
                self.terms.traps.learn(tally for tally in tallies if not tally.pattern.startswith(MARK))

    def adjust(self, settlement: Settlement, links: Links) -> Settlement:
        """Release what earlier crawls have captured, and put pages first that a sitemap calls newer."""
        if self._memory is None:
            return settlement
        if any(new.held for new in settlement.found):
            found = (new._replace(held="") if new.held and self._had(new.url) else new for new in settlement.found)
            settlement = settlement._replace(found=tuple(found))
        return hasten(settlement, links, self._memory)

    def _had(self, address: str) -> bool:
        """Return True if earlier crawls have captured *address*, so that no trap rule holds it."""
        before = self._memory.newest(address) if self._memory is not None else None
        return before is not None and is_there(before)
