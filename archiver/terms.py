"""What settings mean for the visits of a crawl: by which terms each is judged, with what earlier runs have learned."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from archiver.addresses import read
from archiver.archive.layout import Layout
from archiver.config.own import SeedSetting
from archiver.config.settings import Settings
from archiver.config.toml import parse
from archiver.disk import opened
from archiver.errors import ConfigError
from archiver.fetch.client import user_agent
from archiver.frontier.port import Frontier
from archiver.guesses import MARK, PROBED, Guesses, Probes
from archiver.model import PatternTally
from archiver.outcome import ONCE
from archiver.robots import product_token
from archiver.scope import Scope, Scopes, scope_of
from archiver.traps import MOST_PATTERNS, Traps
from archiver.visit import RobotsTerms, Terms

log = logging.getLogger(__name__)


def terms_of(settings: Settings, known: Sequence[PatternTally] = ()) -> Terms:
    """By what visits of this crawl are judged; *known*: what patterns of its URLs have brought so far."""
    politeness = settings.politeness
    rules = RobotsTerms(
        patience=politeness.robots_patience if politeness.robots == "obey" else ONCE,
        nofollow=product_token(user_agent(settings.fetch)) if politeness.nofollow == "obey" else "",
    )
    traps = Traps(settings.traps, (tally for tally in known if not tally.pattern.startswith((MARK, PROBED))))
    probes = Probes(known) if settings.scope.probe == "on" else None
    return Terms(scope_for(settings), settings.fetch.retries, traps, rules, Guesses(settings.scope, known), probes)


def scope_for(settings: Settings) -> Scope | Scopes:
    """Which links the crawl takes."""
    reaches = {settings.scope.scope, *(own.get("scope") for own in settings.scope.seed_setting)}
    return scope_of(settings.scope, settings.seeds, registered_domains() if "domain" in reaches else str)


async def learned_terms(settings: Settings, frontier: Frontier) -> Terms:
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
        if found != host or read(host) is not None:
            return found
        return ".".join(host.rstrip(".").split(".")[-2:])

    return owner


def _text(path: Path) -> str:
    with opened(path) as file:
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
