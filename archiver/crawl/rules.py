"""What the WARC files of a crawl say of themselves: their names, and who made them, why, and by which settings.

What settings mean for the visits of a crawl: by which terms each is judged, with what earlier runs have learned.

Sitemaps say when a page has changed: what is newer than every capture of earlier crawls is asked for first.

A hint: it changes the order, and nothing is left out because of it. How a sitemap says it stands with the link.
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
from archiver.config.secrets import has_secrets, without_secrets
from archiver.config.seeds import SeedSetting
from archiver.config.settings import Settings, every_setting, key_of
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
    """What every WARC file of this crawl says of itself."""
    return WarcIdentity(
        prefix=settings.warc.warc_prefix,
        host=re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "localhost",
        size=settings.warc.warc_size,
        algorithm=settings.warc.digest,
        info=_warcinfo(without_secrets(settings)),
        private=has_secrets(settings),
    )


def next_serial(layout: Layout) -> int:
    """The number of the next WARC file: one more than any that is there."""
    numbers = (re.search(r"-\d{17}-(\d{5,})-", path.name) for path in layout.archive.iterdir())
    return max((int(found[1]) + 1 for found in numbers if found), default=0)


def _warcinfo(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What each file says of the crawl: who, why, by which software, and the settings, as crawl.toml has them."""
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
    in_force = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        write = entry.metadata["kind"].write
        values = [[write(one)] for one in value] if entry.metadata["many"] else [write(value)]
        in_force += [("setting", f"{key_of(entry)} = {toml_value(single)}") for single in values]
    seeds = [("seed", seed) for seed in settings.seeds]
    return tuple((name, value) for name, value in (*described, *in_force, *seeds) if value)


log = logging.getLogger(__name__)


def terms_of(settings: Settings, known: Sequence[PatternTally] = ()) -> VisitRules:
    """By what visits of this crawl are judged; *known*: what patterns of its URLs have brought so far."""
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
    """Which links the crawl takes."""
    reaches = {settings.scope.scope, *(own.get("scope") for own in settings.scope.seed_setting)}
    return scope_of(settings.scope, settings.seeds, registered_domains() if "domain" in reaches else str)


async def learned_terms(settings: Settings, frontier: Frontier) -> VisitRules:
    """By what visits are judged, with what earlier runs of the crawl have learned of its sites."""
    terms = terms_of(settings, await frontier.tallies(MOST_PATTERNS))
    if settings.scope.redirects == "seeds":
        terms.scope.welcome(await frontier.moved())
    return terms


@cache
def registered_domains() -> Callable[[str], str]:
    """Host name to registered domain, by the list that comes with tldextract; the network is never asked."""
    import tldextract  # noqa: PLC0415 - a fifth of a second, for those only who crawl a domain

    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    return lambda host: extract(host).top_domain_under_public_suffix or host


@cache
def owners() -> Callable[[str], str]:
    """Return a function from a host name to what one owner has: its registered domain, also below an unlisted suffix.

    The Public Suffix List says that each name stands for a suffix that no rule of it matches.
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
    """*settings*, with *further* seeds; whoever added these has written their own settings to crawl.toml first."""
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


MOST = 10_000  # entries of one sitemap that are looked up: a tenth of a second


def hurried(settlement: Settlement, links: Links, memory: EarlierCrawls) -> Settlement:
    """*settlement*, in which pages that are newer than what *memory* has wait as seeds do, before all other pages."""
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
    """The terms by which visits are judged from now on: one value, put in the place of another while the crawl runs."""

    def __init__(self, terms: VisitRules, memory: EarlierCrawls | None = None) -> None:
        self.terms = terms
        self._memory = memory

    def refusal(self, claim: Claim) -> Visited | None:
        """What becomes of *claim* without a request, because of what other pages brought since it was taken."""
        visited = refusal(self.terms, claim)
        return None if visited is not None and visited.event is Event.HOLD and self._had(claim.url) else visited

    def learn(self, tallies: Sequence[PatternTally]) -> None:
        """What somebody else allows patterns of URLs to cost."""
        if self.terms.traps is not None:
            with self.terms.turn:
                self.terms.traps.learn(tally for tally in tallies if not tally.pattern.startswith(MARK))

    def hurried(self, settlement: Settlement, links: Links) -> Settlement:
        """*settlement*, in which nothing that earlier crawls have is held, and news of sitemaps go first."""
        if self._memory is None:
            return settlement
        if any(new.held for new in settlement.found):
            found = (new._replace(held="") if new.held and self._had(new.url) else new for new in settlement.found)
            settlement = settlement._replace(found=tuple(found))
        return hurried(settlement, links, self._memory)

    def _had(self, address: str) -> bool:
        """Return True if earlier crawls have *address*: then no rule against traps holds it."""
        before = self._memory.newest(address) if self._memory is not None else None
        return before is not None and is_there(before)
