"""Turns settings into the rules of a crawl: scope, traps, budgets and limits of hosts. Writes warcinfo."""

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from archiver import __version__, url
from archiver.collection.earlier_crawls import EarlierCrawls
from archiver.collection.layout import Layout
from archiver.collection.settings_file import stored_text
from archiver.collection.writer import WarcIdentity
from archiver.config.option_types import Rate
from archiver.config.politeness_settings import PolitenessSettings
from archiver.config.secret_settings import has_secrets, without_secrets
from archiver.config.seeds import SeedSetting
from archiver.config.settings import (
    Settings,
    SettingsByHost,
    all_values_of,
    every_setting,
    key_of,
)
from archiver.config.toml import parse, toml_value
from archiver.crawl.budget import ReservedStarts
from archiver.crawl.hooks.hooks import Hooks
from archiver.crawl.hooks.plugins import extractors
from archiver.crawl.login.authentication import Authenticator
from archiver.crawl.secrets import Secrets
from archiver.crawl.session import Session
from archiver.crawl.visit_rules import HostVisitRules, LogoutLinks, VisitRules
from archiver.errors import ArchiveError, ConfigError
from archiver.fetch.private_networks import spelled_address
from archiver.fetch.request import user_agent
from archiver.frontier import cookies as cookie_rows
from archiver.frontier.address import host_name
from archiver.frontier.connection import Reader
from archiver.frontier.port import Frontier, HostRow
from archiver.model import Cookie, PatternTally
from archiver.policy import cookie_files
from archiver.policy.domains import public_suffix, registered_domains, scope_for
from archiver.policy.limits import GlobalLimits, GroupLimits
from archiver.policy.patterns.tallies import MOST_PATTERNS
from archiver.policy.recrawl import SitemapDates
from archiver.policy.schedule import Schedule
from archiver.policy.speculative import MARK, PROBED, Probes, SpeculativeBudget
from archiver.policy.traps import Traps
from archiver.storage import open_file, replace_file


class Provided(NamedTuple):
    """The things that the caller of a crawl provides."""

    cookies: Sequence[Cookie] = ()  # the user's own
    result: Callable[[Reader], Mapping[str, object]] | None = None  # reads the result of a crawl, for its last event


NOTHING_MORE = Provided()


def identity_of(settings: Settings) -> WarcIdentity:
    """Return the warcinfo of every WARC file of this crawl."""
    return WarcIdentity(
        prefix=settings.warc.warc_prefix,
        host=host_name(),
        size=settings.warc.warc_size,
        algorithm=settings.warc.digest,
        info=_warcinfo(without_secrets(settings)),
        private=has_secrets(settings),
        age=settings.warc.warc_age if settings.warc.store else 0.0,
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
        ("http-header-user-agent", "" if settings.warc.recording else user_agent(settings.fetch)),
        ("http-header-from", settings.fetch.contact),
    ]
    given = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        write = entry.metadata["kind"].write
        values = [[write(one)] for one in value] if entry.metadata["many"] else [write(value)]
        given += [("setting", f"{key_of(entry)} = {toml_value(single)}") for single in values]
    seeds = [("seed", seed) for seed in settings.seeds]
    described += [("extractor", str(each)) for each in extractors(settings.hooks)]
    return tuple((name, value) for name, value in (*described, *given, *seeds) if value)


log = logging.getLogger(__name__)


def visit_rules_of(
    settings: Settings,
    known: Sequence[PatternTally] = (),
    secrets: Secrets | None = None,
    hooks: Hooks | None = None,
) -> VisitRules:
    """Return the rules for the visits of this crawl; *known*: what URL patterns have brought so far.

    Without *secrets* no request may be made. *hooks* of the user are asked first.
    """
    by_host = SettingsByHost(settings, hooks.answers if hooks is not None else None)
    traps = Traps(settings.traps, (tally for tally in known if not tally.pattern.startswith((MARK, PROBED))))
    probes = Probes(known) if settings.scope.probe == "on" else None
    return VisitRules(
        scope_for(settings),
        HostVisitRules.of(settings),
        traps,
        SpeculativeBudget(settings.scope, known),
        probes,
        by_host,
        session=Session(by_host, public_suffix, Authenticator(by_host, secrets) if secrets else None),
        logouts=_logouts(settings),
        views=settings.browser.browser,
        hooks=hooks,
    )


def _logouts(settings: Settings) -> LogoutLinks | None:
    """Return the refusal of links that log out, if the crawl logs in anywhere."""
    pages = [login.page for login in settings.fetch.login]
    return LogoutLinks(pages, settings.scope.include, owners()) if pages else None


async def learned_rules(
    settings: Settings, frontier: Frontier, secrets: Secrets | None = None, hooks: Hooks | None = None
) -> VisitRules:
    """Return the rules for visits, with what earlier runs of the crawl have learned about its sites."""
    rules = visit_rules_of(settings, await frontier.pattern_tallies(MOST_PATTERNS), secrets, hooks)
    if settings.scope.redirects == "seeds":
        rules.scope.add_moved_seeds(await frontier.seed_redirects())
    if rules.traps is not None and (sites := rules.traps.suspicious_sites()):
        rules.recall(await frontier.latest_links(sites))
    return rules


async def learn_about(site: str, rules: VisitRules, frontier: Frontier) -> None:
    """Take in what other crawlers have learned about *site* (scheme and authority)."""
    rules.learn(await frontier.tallies_of(site))
    if rules.traps is not None and site in rules.traps.suspicious_sites():
        rules.recall(await frontier.latest_links((site,)))


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


def put_cookies(layout: Layout, cookies: Sequence[Cookie]) -> None:
    """Write the user's *cookies*, if any, to a file of their own, so that a crash cannot lose them."""
    if cookies:
        content = cookie_rows.text_of((*given_cookies(layout), *cookies))
        replace_file(layout.loaded_cookies, lambda file: file.writelines((content,)), private=True)


def given_cookies(layout: Layout) -> list[Cookie]:
    """Return the cookies that `put_cookies` has written, and the database does not hold yet."""
    try:
        with open_file(layout.loaded_cookies) as file:
            return cookie_rows.cookies_of(file.read(cookie_files.MAX_FILE))
    except FileNotFoundError:
        return []
    except ValueError:
        raise ConfigError(f"{layout.loaded_cookies} is damaged; delete it, and give --load-cookies again") from None


async def settings_now(layout: Layout, frontier: Frontier) -> str:
    """Return the text of crawl.toml, or of the settings that all machines have in common; "" if it cannot be read."""
    with suppress(ArchiveError, UnicodeDecodeError):
        shared = (await frontier.settings()).text
        return shared or await asyncio.to_thread(stored_text, layout.settings)
    return ""


def with_seeds(settings: Settings, further: Sequence[str], text: str) -> Settings:
    """Return *settings* with *further* seeds, whose own settings were in *text* before they were added."""
    own: tuple[SeedSetting, ...] = ()
    try:
        own = parse(text, "crawl.toml").get("seed", ())
    except ConfigError as error:
        log.warning("seeds that were added have the settings of the crawl, for their own cannot be read: %s", error)
    new = set(further)
    scope = replace(settings.scope, seed=(*settings.scope.seed, *(one for one in own if one.url in new)))
    return replace(settings, seeds=(*settings.seeds, *further), scope=scope)


RESERVE = 0.03  # of the interval of third parties: on a busy machine requests arrive closer together than they left
FIRST = 1  # request at once on a host we know nothing about, to see how long its answers take without load


class GroupsOfHosts:
    """Decides which hosts share limits: `--politeness-group`, `--third-party-rate` and `--host`.

    Hosts with different limits never share. A page can name any number of hosts that lead to one server, so hosts that
    are not seeds share one rate by registered domain, and by address as soon as we know that.
    """

    def __init__(
        self,
        settings: PolitenessSettings,
        by_host: SettingsByHost,
        seeds: Iterable[str],
        hooks: Hooks | None = None,
        resumed: float = 0.0,
    ) -> None:
        """*hooks* give settings to hosts. *resumed*: until then another run may have asked the hosts; 0: none did."""
        self._by_host = by_host
        self._hooks = hooks
        self._resumed = resumed
        self._domain_of: Callable[[str], str] | None = None
        self._seeds: set[str] = set()  # scheme aside: with each port
        self._names: set[str] = set()
        self.take(settings)
        self.add_seeds(seeds)

    def take(self, settings: PolitenessSettings) -> None:
        """Use *settings* from now on."""
        self._settings = settings
        self._shared = settings.rate if settings.third_party_rate is None else settings.third_party_rate

    def add_seeds(self, seeds: Iterable[str]) -> None:
        """Limit each host of *seeds* (canonical URLs) by itself, with and without www."""
        for seed in seeds:
            authority = url.origin(seed).partition("://")[2]
            self._seeds |= {authority, authority.removeprefix("www."), f"www.{authority}"}
            self._names.add(url.host(seed))

    async def limits(self, rows: Sequence[HostRow]) -> list[GroupLimits]:
        """Return the limits of each of *rows*, and the groups in which they share them."""
        by_domain = self._settings.politeness_group == "domain" or any(self._is_third_party(row.key) for row in rows)
        if by_domain and self._domain_of is None:
            self._domain_of = await asyncio.to_thread(owners)  # which takes a moment
        if self._hooks is not None:
            await self._hooks.learn([row.key for row in rows])
        return [self._limits(row.key) for row in rows]

    def _is_third_party(self, key: str) -> bool:
        return self._shared.starts > 0 and key.partition("://")[2] not in self._seeds

    def _limits(self, key: str) -> GroupLimits:
        settings, name = self._by_host.of(key).politeness, url.host(f"{key}/")
        rate, rules = settings.rate, self._by_host.rules(key)
        rule = rules.get("rate") or rules.get("host-concurrency", "")
        domain = self._domain_of(name) if self._domain_of is not None else ""
        third_party = self._is_third_party(key)
        if third_party and settings.politeness_group == "domain" and self._domain_of is not None:
            third_party = domain not in map(self._domain_of, self._names)
        if third_party and not rule:
            rate = slower(rate, self._shared)
            rate = Rate(rate.starts, rate.interval * (1 + RESERVE))
        group = f"domain {domain} {rule}" if third_party or settings.politeness_group == "domain" else ""
        by_address = f"ip {rule}" if third_party or settings.politeness_group == "ip" else ""
        limits = GroupLimits(
            rate, settings.host_concurrency, FIRST, group, bandwidth=settings.host_bandwidth, by_address=by_address
        )
        by_hook = self._hooks is not None and self._resumed and rate.starts
        return replace(limits, not_before=self._resumed + rate.interval) if by_hook else limits


def schedule_of(given: Settings, now: float, *, resume: bool, crawlers: int = 0) -> Schedule:
    """Return the schedule; with *resume* it assumes that the last run used its rates fully until *now*.

    So many *crawlers*, or more, share the frontier and the limits on the whole crawl; 0: we are alone.
    """
    settings = given.politeness
    third = settings.third_party_rate or settings.rate
    rates = (*all_values_of(given, "rate"), third, settings.global_rate)
    interval = max((rate.interval for rate in rates if rate.starts), default=0.0)
    not_before = now + interval if resume and interval else 0.0
    together = crawlers > 0 and settings.global_rate.starts > 0
    reserved = ReservedStarts(settings.global_rate, crawlers, not_before) if together else None
    total = GlobalLimits(settings.global_rate, settings.bandwidth, crawlers > 0, reserved)
    return Schedule(settings.rate, settings.host_concurrency, not_before=not_before, total=total)


def slower(one: Rate, other: Rate) -> Rate:
    """Return the rate with fewer starts a second; 0 means no limit."""
    rates = [rate for rate in (one, other) if rate.starts]
    return min(rates, key=lambda rate: rate.starts / rate.interval, default=one)


@dataclass(slots=True)
class CurrentRules:
    """The rules that are valid now, which are replaced while the crawl runs, and what earlier crawls have archived."""

    visit_rules: VisitRules
    memory: EarlierCrawls | None = None
    sitemap_dates: SitemapDates = field(default_factory=SitemapDates)
